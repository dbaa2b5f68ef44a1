"""Start of a server: a folder of its own, and the wait until it is ready for work.

A controller answers long before the server can store an event, and a port that was free may be taken a moment later.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import LocalServerError
from pravega_connector.local.process import SupervisedProcess
from pravega_connector.tcp_ports import listens
from pravega_connector.wire import StreamName
from pravega_connector.writer.event_writer import EventWriter
from pravega_serde.errors import PravegaError

HOST: Final = "127.0.0.1"
# A segment store looks at a segment's rate every two minutes (SegmentStatsRecorderImpl, AutoScaleProcessor), so none is
# split before. What no look has found busy for the cache's expiry may be merged: at less than two minutes all would be.
QUICK_SCALING: Final[Mapping[str, object]] = {
    "autoScale.cooldown.time.seconds": 10,
    "autoScale.mute.time.seconds": 10,
    "autoScale.cache.expiry.seconds": 130,
    "autoScale.cache.cleanUp.interval.seconds": 5,
}
_LOG_NAME: Final = "server.log"
_SCOPE: Final = "local-readiness"
# Of the probe's stream, for each of several stores, so that none of them is left out by chance; and events for each.
_SEGMENTS: Final = 8
_EVENTS: Final = 4
_PAUSE: Final = 0.1
# One call of the client; between calls the server is checked.
_CALL_SECONDS: Final = 10.0


class PortTakenError(LocalServerError):
    """Another process was faster; the server has to be started on other ports."""


class NotReadyError(LocalServerError):
    """A server took too long."""


@dataclass(frozen=True, slots=True)
class Launched(ABC):
    """Running server: its process and its folder (configuration, log, what it stores)."""

    title: ClassVar[str]

    process: SupervisedProcess
    folder: Path

    @property
    @abstractmethod
    def uri(self) -> str:
        """Address for clients."""

    @property
    def log(self) -> Path:
        """Log of the server: warnings, errors, and what the JVM said."""
        return self.folder / _LOG_NAME

    def check(self) -> None:
        """Raise LocalServerError if the server has ended, PortTakenError if it cannot have its ports."""
        check_log(f"the {self.title}", self.log, self.process.exit_code())


S = TypeVar("S", bound=Launched)


def start_in_folder(
    prefix: str, prepare: Callable[[Path], Sequence[str]], *, log: str = _LOG_NAME, lock: Path | None = None
) -> tuple[SupervisedProcess, Path]:
    """Start a command in a new folder; ``prepare`` writes there what the command reads, and returns the command.

    ``log`` takes what it prints, ``lock`` is a file that stays locked while it runs.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        command = prepare(folder)
        with open(folder / log, "wb") as output:
            return SupervisedProcess(command, output=output, folder=folder, lock=lock), folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def start_until_ready(spawn: Callable[[], S], await_one: Callable[[S, float], None], *, seconds: float) -> S:
    """Server that ``spawn`` has started and ``await_one`` has found ready before a value of ``time.monotonic()``.

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
                known = error.message if str(server.log) in error.message else f"{error.message}; see {server.log}"
                raise LocalServerError(known) from error
            # A server that ended by itself leaves its log; that of a try that is made again explains nothing.
            shutil.rmtree(server.folder, ignore_errors=True)
        except BaseException as error:
            server.process.close(keep=isinstance(error, PravegaError))
            raise
        else:
            return server


def check_log(name: str, log: Path, exit_code: int | None) -> None:
    """Raise LocalServerError for a JVM that has ended, PortTakenError for one that said that it cannot have a port."""
    printed = log.read_bytes()
    if b"Address already in use" in printed:
        raise PortTakenError(f"a port of {name} was taken by another process; see {log}")
    if exit_code is not None:
        raise LocalServerError(f"{name} ended with exit code {exit_code} ({last_words(printed)}); see {log}")


def last_words(printed: bytes) -> str:
    """Last line that a JVM printed before it ended, the cause of an exception rather than a line of the stack."""
    lines = [line for line in printed.decode(errors="replace").strip().splitlines() if not line.startswith("\tat ")]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes or lines or ["it printed nothing"])[-1][:200]


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
    # What is left after a failure here is harmless.
    with contextlib.suppress(PravegaError):
        client.controller.seal_stream(stream)
        client.controller.delete_stream(stream)
        client.controller.delete_scope(stream.scope)
