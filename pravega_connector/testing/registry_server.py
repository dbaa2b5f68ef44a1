"""Schema registry in this process with an HTTP address, so that other processes such as Spark's workers reach it."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qsl, urlsplit

from pravega_connector.errors import LocalServerError
from pravega_connector.tcp_ports import listen_on_free_port
from pravega_serde.registry.confluent_memory import (  # noqa: F401 - this module exports them
    ConfluentMemoryRegistry,
    mock_confluent_registry,
)
from pravega_serde.registry.memory import MemoryRegistry, mock_registry  # noqa: F401 - this module exports the second

_BASE: Final = "/v1"
_POLL_SECONDS: Final = 0.02


class InProcessRegistry:
    """Schema registry for tests, in this process and in memory. With ``username``, it accepts only this user.

    ``accepts`` returns True for the value of the header ``Authorization``, or None without it, if the registry should
    answer.

    It runs inside a ``with`` block, or from :meth:`start` to :meth:`close`. ``registry`` is a :class:`MemoryRegistry`,
    which can fail on request.
    """

    def __init__(
        self,
        *,
        username: str | None = None,
        password: str | None = None,
        accepts: Callable[[str | None], bool] | None = None,
    ) -> None:
        self.registry = MemoryRegistry()
        self._accepts = accepts
        if username is not None:
            known = "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
            self._accepts = lambda header: header == known
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the registry, which is ready on return."""
        if self._server is not None:
            raise LocalServerError(f"this in-process registry is running already, at {self.uri}")
        self._server = listen_on_free_port(lambda port: _Server(port, self.registry, self._accepts))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name="schema-registry", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End the registry. It keeps its groups for the next start."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server = None

    @property
    def uri(self) -> str:
        """Address, for serializers and clients."""
        if self._server is None:
            raise LocalServerError(
                "this in-process registry is not running; call start() or use it in a with statement"
            )
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, registry: MemoryRegistry, accepts: Callable[[str | None], bool] | None) -> None:
        self.registry, self.accepts = registry, accepts
        super().__init__(("127.0.0.1", port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def _serve(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, body = self._answer(content or None)
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if body[:1] == b"{" else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _serve  # noqa: N815 - names of the base class

    def _answer(self, content: bytes | None) -> tuple[int, bytes]:
        if self.server.accepts is not None and not self.server.accepts(self.headers.get("Authorization")):
            return 401, b""
        parts = urlsplit(self.path)
        if parts.path == "/ping":
            return 200, b""
        if not parts.path.startswith(f"{_BASE}/"):
            return 404, b""
        path = parts.path.removeprefix(_BASE)
        return self.server.registry.answer(self.command, path, dict(parse_qsl(parts.query)), content)

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""
