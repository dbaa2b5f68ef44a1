"""Object store with the calls of S3 that tables need, in memory. A put with ``If-None-Match`` refuses to overwrite.

It is a process, because some calls of deltalake keep the other threads of the test from answering.
"""

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from email.utils import formatdate
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class ObjectStore:
    """Client of a store in another process."""

    def __init__(self, port: str) -> None:
        self._port = int(port)

    @property
    def storage(self) -> dict[str, str]:
        """Options for tables in this store."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }

    def put_first(self, path: str, data: bytes) -> None:
        """Store an object as another program, just before the next put to its path."""
        self._call("PUT", f"/first{path}", data)

    def refused(self) -> list[str]:
        """Return the paths of puts that came too late."""
        return self._call("GET", "/refused").split()

    def _call(self, method: str, path: str, data: bytes = b"") -> str:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        with closing(connection):
            connection.request(method, path, data)
            return connection.getresponse().read().decode()


class _Objects:
    """Objects by path. Thread safe."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.first: dict[str, bytes] = {}
        self.refused: list[str] = []
        self._lock = threading.Lock()

    def put(self, path: str, data: bytes, *, new: bool) -> bool:
        with self._lock:
            if path in self.first:
                self.objects[path] = self.first.pop(path)
            if new and path in self.objects:
                self.refused.append(path)
                return False
            self.objects[path] = data
            return True


def _handler(store: _Objects) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_args: Any) -> None:
            pass

        @property
        def _path(self) -> str:
            return unquote(urlsplit(self.path).path)

        def _answer(self, status: int, data: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            for name, value in {"Content-Length": str(len(data)), **named}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def do_PUT(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self._path.startswith("/first/"):
                store.first[self._path.removeprefix("/first")] = data
                self._answer(200)
                return
            is_done = store.put(self._path, data, new=self.headers.get("If-None-Match") == "*")
            self._answer(200 if is_done else 412, ETag=_tag(data))

        def do_DELETE(self) -> None:
            store.objects.pop(self._path, None)
            self._answer(204)

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
            if "list-type" in query:
                self._list(query)
                return
            if self._path == "/refused":
                self._answer(200, "\n".join(store.refused).encode())
                return
            data = store.objects.get(self._path)
            if data is None:
                self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
                return
            about = {"ETag": _tag(data), "Last_Modified": formatdate(usegmt=True)}
            wanted = self.headers.get("Range")
            if self.command == "HEAD":
                self._answer(200, **about, Content_Length=str(len(data)))
            elif wanted is None:
                self._answer(200, data, **about)
            else:
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                begin = int(first) if first else max(len(data) - int(last), 0)
                end = min(int(last) + 1, len(data)) if first and last else len(data)
                self._answer(206, data[begin:end], **about, Content_Range=f"bytes {begin}-{end - 1}/{len(data)}")

        def _list(self, query: dict[str, list[str]]) -> None:
            bucket = self._path.rstrip("/") + "/"
            prefix, mark = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
            after = query.get("start-after", [""])[0]
            entries, folders = [], set()
            for path, data in sorted(store.objects.items()):
                key = path.removeprefix(bucket)
                if not path.startswith(bucket + prefix) or key <= after:
                    continue
                rest = key.removeprefix(prefix)
                if mark and mark in rest:
                    folders.add(prefix + rest.partition(mark)[0] + mark)
                    continue
                entries.append(
                    f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                    f"<ETag>{escape(_tag(data))}</ETag><Size>{len(data)}</Size></Contents>"
                )
            found = [f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in sorted(folders)]
            text = "".join([*entries, *found])
            self._answer(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{text}</ListBucketResult>".encode())

    return Handler


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Start a store on a free port of this machine."""
    with subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield ObjectStore(process.stdout.readline())
        finally:
            process.kill()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(_Objects()))
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()
