"""Tells when a server is ready for work: its controller answers long before it can store an event."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Final

from connector.client import EventWriter, PravegaClient
from connector.errors import LocalServerError
from connector.wire import StreamName
from pravega_serde.errors import PravegaError

__all__ = ["NotReadyError", "await_ready"]

_PROBE: Final = StreamName("local-readiness", "probe")
_EVENT: Final = b"ready"
_PAUSE: Final = 0.1
# One call of the client; between calls the server is checked.
_CALL_SECONDS: Final = 5.0


class NotReadyError(LocalServerError):
    """A server took too long."""


def await_ready(controller_uri: str, store: tuple[str, int], *, deadline: float, check: Callable[[], None]) -> None:
    """Return once an event was written and read back; ``deadline`` is a value of ``time.monotonic()``.

    ``check`` raises what ends the waiting. ``store`` is where the server's events have to go: another server may have
    taken the controller's port and would answer in its place. Raises NotReadyError at the deadline.
    """
    last = "its controller does not listen"
    while time.monotonic() < deadline:
        check()
        try:
            if _listens(controller_uri):
                with PravegaClient(controller_uri, timeout=_CALL_SECONDS) as client:
                    return _round_trip(client, store)
        except PravegaError as error:
            last = error.message
        time.sleep(_PAUSE)
    raise NotReadyError(f"the Pravega server was not ready in time: {last}")


def _listens(controller_uri: str) -> bool:
    # gRPC waits a second and more before it tries again; a server takes a few seconds to start.
    host, _, port = controller_uri.rpartition("/")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CALL_SECONDS).close()
    except OSError:
        return False
    return True


def _round_trip(client: PravegaClient, store: tuple[str, int]) -> None:
    client.create_stream(_PROBE)
    place = client.controller.endpoint(_PROBE, 0)
    if place != store:
        raise LocalServerError(f"another server answers at {client.config.controller}: its events go to {place}")
    writer: EventWriter[bytes] = client.writer(_PROBE, timeout=_CALL_SECONDS)
    with writer:
        writer.write(_EVENT)
    if _EVENT not in client.read(_PROBE):
        raise LocalServerError("an event that was written is not there")
    client.controller.seal_stream(_PROBE)
    client.controller.delete_stream(_PROBE)
    client.controller.delete_scope(_PROBE.scope)
