"""Runs rust_peer.py: the official Rust client's binding, in a process that is ended when it does not come back."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pravega_connector.wire import StreamName
from tests.interop._files import dump_events, load_read

__all__ = ["RustPeer", "rust_python"]

_PROGRAM: Final = Path(__file__).parent / "rust_peer.py"
_SECONDS: Final = 120


def rust_python() -> Path | None:
    """Return the interpreter of the environment that has the Rust client, next to this one; None without it.

    ``./run test`` creates the environment if it finds a Python 3.11.
    """
    python = Path(sys.prefix).resolve().with_name(".venv-rust") / "bin" / "python"
    return python if python.exists() else None


class RustPeer:
    """The Rust client against one controller. ``folder`` takes the events in flight."""

    def __init__(self, controller: str, folder: Path) -> None:
        self._controller, self._folder = controller, folder

    def write(self, stream: StreamName, events: Iterable[tuple[str | None, bytes]]) -> None:
        """Write (routing key, payload) pairs."""
        file = self._file()
        dump_events(file, events)
        self._run("write", stream, file)

    def read(self, stream: StreamName, count: int, group: str = "") -> list[bytes]:
        """`count` payloads in the order of arrival, through a reader group: a new one, or of that name."""
        file = self._file()
        self._run("read", stream, file, str(count), *filter(None, [group]))
        return [event.payload for event in load_read(file)]

    def _run(self, command: str, stream: StreamName, file: Path, *more: str) -> None:
        python = rust_python()
        assert python is not None, "the Rust client is not installed; ./run test installs it if it finds a Python 3.11"
        arguments = [command, self._controller, stream.scope, stream.stream, str(file), *more]
        done = subprocess.run(
            [python, _PROGRAM, *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        assert done.returncode == 0, f"rust_peer.py {command} failed:\n{done.stderr[-4000:]}"

    def _file(self) -> Path:
        return self._folder / uuid.uuid4().hex
