"""Tells when a server is ready for work: a stream is made, an event written to it and read back."""

from __future__ import annotations

import socket
import struct
import time
import uuid
from collections.abc import Callable

import grpc

__all__ = ["probe"]

_SERVICE = "/io.pravega.controller.stream.api.grpc.v1.ControllerService/"


def _field(number: int, data: bytes | str | int) -> bytes:
    if isinstance(data, int):
        return bytes([number << 3, data])
    raw = data.encode() if isinstance(data, str) else data
    return bytes([number << 3 | 2, len(raw)]) + raw


def _await(sock: socket.socket, wanted: bytes) -> None:
    seen = b""
    while wanted not in seen:
        chunk = sock.recv(4096)
        if not chunk:
            raise ConnectionError("the segment store closed the connection")
        seen += chunk


def probe(controller: tuple[str, int], store: tuple[str, int], deadline: float, alive: Callable[[], None]) -> None:
    """Temporary: speaks to the server by hand."""
    scope, stream = f"ready{uuid.uuid4().hex[:8]}", "s"
    with grpc.insecure_channel("%s:%d" % controller) as channel:

        def call(method: str, request: bytes) -> bytes:
            while True:
                alive()
                try:
                    return channel.unary_unary(_SERVICE + method)(request, timeout=5)
                except grpc.RpcError:
                    if time.monotonic() > deadline:
                        raise TimeoutError(method) from None
                    time.sleep(0.2)

        call("createScope", _field(1, scope))
        info = _field(1, scope) + _field(2, stream)
        while True:
            answer = call("createStream", _field(1, info) + _field(2, _field(1, 0) + _field(4, 1)))
            if answer == b"" or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        writer = uuid.uuid4().bytes
        segment = f"{scope}/{stream}/0.#epoch.0".encode()
        name = struct.pack(">H", len(segment)) + segment
        with socket.create_connection(store, timeout=10) as sock:
            sock.sendall(struct.pack(">iiii", -127, 8, 16, 5))
            body = struct.pack(">q", 1) + writer + name + b"\0\0"
            sock.sendall(struct.pack(">ii", 1, len(body)) + body)
            _await(sock, writer)
            event = struct.pack(">ii", 0, 5) + b"ready"
            body = writer + struct.pack(">ii", 0, len(event)) + event + struct.pack(">iqq", 1, 1, 2)
            sock.sendall(struct.pack(">ii", 4, len(body)) + body)
            _await(sock, writer)
            body = name + struct.pack(">qi", 0, len(event)) + b"\0\0" + struct.pack(">q", 3)
            sock.sendall(struct.pack(">ii", 9, len(body)) + body)
            _await(sock, b"ready" + struct.pack(">q", 3))
        call("sealStream", info)
        call("deleteStream", info)
        call("deleteScope", _field(1, scope))
