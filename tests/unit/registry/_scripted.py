"""A scripted registry, over real sockets, that counts: for faults that a real one has not on demand."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

AVRO = {"serializationFormat": "Avro", "fullTypeName": "Avro"}
SCHEMA = {"type": "n.R", "serializationFormat": AVRO, "schemaData": "e30=", "properties": {}}
VERSION = {"type": "n.R", "serializationFormat": "Avro", "version": 0, "id": 0}
ENCODING = {"schemaInfo": SCHEMA, "versionInfo": VERSION, "codecType": {"name": "", "properties": {}}}
LATEST = {"schemas": [{"schemaInfo": SCHEMA, "versionInfo": VERSION}]}

#: Answer to a request: a status with a body (JSON unless bytes), or a function of the handler.
Action = tuple[int, Any] | Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Scripted:
    """``actions`` are done in turn, the last one for ever."""

    actions: list[Action] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    uri: str = ""
    port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def act(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        with self.lock:
            self.requests.append(Request(handler.command, handler.path, dict(handler.headers), body))
            action = self.actions.pop(0) if len(self.actions) > 1 else self.actions[0]
        if isinstance(action, tuple):
            answer(handler, *action)
        else:
            action(handler)


def answer(handler: BaseHTTPRequestHandler, status: int, body: Any) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    with contextlib.suppress(ConnectionError):
        handler.wfile.write(content)


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    """End the connection without an answer."""
    handler.close_connection = True


@contextlib.contextmanager
def scripted(*actions: Action, port: int = 0) -> Iterator[Scripted]:
    registry = Scripted(list(actions))
    connections: list[socket.socket] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            connections.append(self.connection)

        def handle(self) -> None:
            with contextlib.suppress(ConnectionError):
                super().handle()

        def do_GET(self) -> None:
            registry.act(self)

        do_POST = do_PUT = do_DELETE = do_GET

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", port), Handler) as server:
        registry.port = server.server_port
        registry.uri = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
            for connection in connections:
                # Those that it has answered and kept open; others are closed already.
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
