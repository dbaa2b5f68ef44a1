"""Starts a server until it is ready for work: its controller answers long before it can store an event."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, Protocol, TypeVar

from connector.client import EventWriter, PravegaClient
from connector.config import PravegaConfig
from connector.errors import LocalServerError
from connector.local._jvm import PortTakenError, with_log
from connector.local._ports import listens
from connector.local._process import SupervisedProcess
from connector.wire import StreamName
from pravega_serde.errors import PravegaError

__all__ = ["NotReadyError", "await_ready", "start_until_ready"]

_SCOPE: Final = "local-readiness"
# Of the probe's stream, for each of several stores, so that none of them is left out by chance; and events for each.
_SEGMENTS: Final = 8
_EVENTS: Final = 4
_PAUSE: Final = 0.1
# One call of the client; between calls the server is checked.
_CALL_SECONDS: Final = 10.0


class _Launched(Protocol):
    @property
    def process(self) -> SupervisedProcess: ...

    @property
    def folder(self) -> Path: ...

    @property
    def log(self) -> Path: ...


S = TypeVar("S", bound=_Launched)


class NotReadyError(LocalServerError):
    """A server took too long."""


def start_until_ready(spawn: Callable[[], S], await_one: Callable[[S, float], None], *, seconds: float) -> S:
    """A server that ``spawn`` has started and ``await_one`` has found ready before a value of ``time.monotonic()``.

    One whose ports were taken is started again on others, and so is one that is not ready in half of the time: a
    segment store is silent about a port that it cannot have. Raises LocalServerError, which names the log; nothing is
    left running then.
    """
    deadline = time.monotonic() + seconds
    while True:
        server = spawn()
        try:
            await_one(server, min(deadline, time.monotonic() + seconds / 2))
        except (PortTakenError, NotReadyError) as error:
            last = time.monotonic() >= deadline
            server.process.close(keep=last)
            if last:
                raise LocalServerError(with_log(error.message, server.log)) from error
            # A server that ended by itself leaves its log; that of a try that is made again explains nothing.
            shutil.rmtree(server.folder, ignore_errors=True)
        except BaseException as error:
            server.process.close(keep=isinstance(error, PravegaError))
            raise
        else:
            return server


def await_ready(
    config: PravegaConfig, stores: Collection[tuple[str, int]], *, deadline: float, check: Callable[[], None]
) -> None:
    """Return once events were written to each store and read back; ``deadline`` is a value of ``time.monotonic()``.

    ``check`` raises what ends the waiting. ``stores`` is where the server's events have to go: another server may have
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
            # gRPC waits a second and more before it tries again; a server takes a few seconds to start.
            if listens(config.endpoints[0]):
                with PravegaClient(config, timeout=_CALL_SECONDS, failover_timeout=_CALL_SECONDS) as client:
                    _round_trip(client, stream, stores)
                    return _clean_up(client, stream)
        except PravegaError as error:
            last = error.message
        time.sleep(_PAUSE)
    raise NotReadyError(f"the Pravega server was not ready in time: {last}")


def _round_trip(client: PravegaClient, stream: StreamName, stores: Collection[tuple[str, int]]) -> None:
    segments = 1 if len(stores) == 1 else _SEGMENTS * len(stores)
    client.create_stream(stream, segments)
    places = {client.controller.endpoint(stream, number) for number in range(segments)}
    if not places <= set(stores):
        raise LocalServerError(f"another server answers at {client.config.controller}: its events go to {places}")
    if places != set(stores):
        raise NotReadyError(f"only {len(places)} of its {len(stores)} segment stores have been given work")
    events = [f"ready {number}".encode() for number in range(_EVENTS * segments)]
    writer: EventWriter[bytes] = client.writer(stream, timeout=_CALL_SECONDS)
    with writer:
        for event in events:
            writer.write(event, routing_key=event.decode())
    if sorted(client.read(stream)) != sorted(events):
        raise LocalServerError("events that were written are not there")


def _clean_up(client: PravegaClient, stream: StreamName) -> None:
    # What is left after a failure here harms nobody.
    with contextlib.suppress(PravegaError):
        client.controller.seal_stream(stream)
        client.controller.delete_stream(stream)
        client.controller.delete_scope(stream.scope)
