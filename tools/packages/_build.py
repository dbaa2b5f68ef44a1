"""The two files of a release, and an index that has them."""

from __future__ import annotations

import email
import functools
import hashlib
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

__all__ = ["ROOT", "Files", "build", "index"]

ROOT: Final = Path(__file__).parents[2]
_NAME: Final = "pravega-serde"


@dataclass(frozen=True)
class Files:
    """A source distribution and a wheel."""

    sdist: Path
    wheel: Path

    @classmethod
    def found_in(cls, folder: Path) -> Files:
        """Files of a folder. Raises ValueError unless there is one of each."""
        (sdist,) = folder.glob("pravega_serde-*.tar.gz")
        (wheel,) = folder.glob("pravega_serde-*.whl")
        return cls(sdist, wheel)

    @functools.cached_property
    def metadata(self) -> bytes:
        """Metadata of the wheel, as they are in it."""
        with zipfile.ZipFile(self.wheel) as wheel:
            (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
            return wheel.read(name)

    def values(self, name: str) -> list[str]:
        """Values of a field of the metadata."""
        return email.message_from_bytes(self.metadata).get_all(name, [])

    def unpack(self, folder: Path) -> Path:
        """Unpack the source distribution into a folder; where it is then."""
        with tarfile.open(self.sdist) as archive:
            archive.extractall(folder, filter="data")
        return folder / self.sdist.name.removesuffix(".tar.gz")


def build(folder: Path) -> Files:
    """Build both, the wheel of what the source distribution has, as an index's users may. Needs only hatchling."""
    _hatchling(ROOT, "sdist", folder)
    (sdist,) = folder.glob("*.tar.gz")
    _hatchling(Files(sdist, sdist).unpack(folder / "unpacked"), "wheel", folder)
    return Files.found_in(folder)


def _hatchling(source: Path, kind: str, folder: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise RuntimeError(f"the {kind} cannot be built:\n{done.stdout}{done.stderr}")


class _Handler(BaseHTTPRequestHandler):
    """Pages of a package index (PEP 503) that has one project."""

    files: dict[str, bytes]

    def do_GET(self) -> None:  # the base's name for it
        *_, folder, name = self.path.rstrip("/").split("/")
        if folder == "simple" and name == _NAME:
            links = (
                f'<a href="/files/{n}#sha256={hashlib.sha256(d).hexdigest()}">{n}</a>' for n, d in self.files.items()
            )
            self._answer("<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>", "text/html")
        elif folder == "files" and name in self.files:
            self._answer(self.files[name], "application/octet-stream")
        else:
            self.send_error(404)

    def _answer(self, body: str | bytes, kind: str) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def index(files: Files) -> Iterator[str]:
    """Serve the files on a free port of loopback; the index's URL."""
    contents = {path.name: path.read_bytes() for path in (files.sdist, files.wheel)}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"files": contents}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
