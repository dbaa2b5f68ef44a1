"""A way to the registry that counts what passes, and can be shut."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["RegistryProxy"]


class RegistryProxy:
    """Hands on each call to the registry at ``target``; ``calls`` counts them by verb and path.

    Where the registry does not answer, the connection ends without an answer, too.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._port = 0
        self.calls: Counter[str] = Counter()
        self.open()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def open(self) -> None:
        """Listen, at the same port each time."""
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            # No kept-alive connections: none is left over when the way is shut.
            protocol_version = "HTTP/1.0"

            def handle_one(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                try:
                    status, headers, answer = proxy._pass(self.command, self.path, dict(self.headers), body)
                except OSError:
                    self.close_connection = True  # no server answers there, nor here
                    return
                self.send_response(status)
                self.send_header("Content-Type", headers)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PUT = do_DELETE = handle_one

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Refuse all connections from now on."""
        self._server.shutdown()
        self._server.server_close()

    def count(self, part: str) -> int:
        """Calls whose verb and path contain a text."""
        return sum(count for call, count in self.calls.items() if part in call)

    def _pass(self, verb: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        self.calls[f"{verb} {path}"] += 1
        kept = {name: value for name, value in headers.items() if name in ("Content-Type", "Accept")}
        request = urllib.request.Request(self._target + path, body or None, kept, method=verb)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.headers.get("Content-Type", ""), answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers.get("Content-Type", ""), error.read()
