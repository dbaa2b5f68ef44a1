"""Tells when a server is ready for work: its controller answers long before it can store an event."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from collections.abc import Callable
from typing import Final

from connector.client import EventWriter, PravegaClient
from connector.config import PravegaConfig
from connector.errors import LocalServerError
from connector.wire import StreamName
from pravega_serde.errors import PravegaError

__all__ = ["NotReadyError", "await_ready"]

_SCOPE: Final = "local-readiness"
_EVENT: Final = b"ready"
_PAUSE: Final = 0.1
# One call of the client; between calls the server is checked.
_CALL_SECONDS: Final = 10.0


class NotReadyError(LocalServerError):
    """A server took too long."""


def await_ready(config: PravegaConfig, store: tuple[str, int], *, deadline: float, check: Callable[[], None]) -> None:
    """Return once an event was written and read back; ``deadline`` is a value of ``time.monotonic()``.

    ``check`` raises what ends the waiting. ``store`` is where the server's events have to go: another server may have
    taken the controller's port and would answer in its place. Raises NotReadyError at the deadline.
    """
    last = "its controller does not listen"
    for attempt in itertools.count():
        if time.monotonic() >= deadline:
            break
        check()
        # One of its own for each attempt: the last one may have ended anywhere.
        stream = StreamName(_SCOPE, f"probe{attempt}")
        try:
            if _listens(config):
                with PravegaClient(config, timeout=_CALL_SECONDS, failover_timeout=_CALL_SECONDS) as client:
                    _round_trip(client, stream, store)
                    return _clean_up(client, stream)
        except PravegaError as error:
            last = error.message
        time.sleep(_PAUSE)
    raise NotReadyError(f"the Pravega server was not ready in time: {last}")


def _listens(config: PravegaConfig) -> bool:
    # gRPC waits a second and more before it tries again; a server takes a few seconds to start.
    try:
        socket.create_connection(config.endpoints[0], timeout=_CALL_SECONDS).close()
    except OSError:
        return False
    return True


def _round_trip(client: PravegaClient, stream: StreamName, store: tuple[str, int]) -> None:
    client.create_stream(stream)
    place = client.controller.endpoint(stream, 0)
    if place != store:
        raise LocalServerError(f"another server answers at {client.config.controller}: its events go to {place}")
    writer: EventWriter[bytes] = client.writer(stream, timeout=_CALL_SECONDS)
    with writer:
        writer.write(_EVENT)
    if _EVENT not in client.read(stream):
        raise LocalServerError("an event that was written is not there")


def _clean_up(client: PravegaClient, stream: StreamName) -> None:
    # What is left after a failure here harms nobody.
    with contextlib.suppress(PravegaError):
        client.controller.seal_stream(stream)
        client.controller.delete_stream(stream)
        client.controller.delete_scope(stream.scope)
