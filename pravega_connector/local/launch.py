"""Start of a server in its own folder, and the wait until it is ready.

A controller answers long before the server can store an event. A free port may be taken a moment later.
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
# A segment store checks the rate of a segment every two minutes (SegmentStatsRecorderImpl, AutoScaleProcessor), so no
# segment is split earlier. A segment that no check found busy during the cache expiry may be merged. With an expiry of
# less than two minutes, all segments would be merged.
QUICK_SCALING: Final[Mapping[str, object]] = {
    "autoScale.cooldown.time.seconds": 10,
    "autoScale.mute.time.seconds": 10,
    "autoScale.cache.expiry.seconds": 130,
    "autoScale.cache.cleanUp.interval.seconds": 5,
}
_LOG_NAME: Final = "server.log"
_SCOPE: Final = "local-readiness"
# Segments of the probe's stream for each of several stores, to reach every store, and events for each segment.
_SEGMENTS: Final = 8
_EVENTS: Final = 4
_PAUSE: Final = 0.1
# Timeout of one call of the client. The server is checked between calls.
_CALL_SECONDS: Final = 10.0
_CLEAN_UP_SECONDS: Final = 60.0
# Free space of the disk that a server needs to start. Less of it shows as calls that are never answered.
_LEAST_SPACE: Final = 256 << 20
#: What the servers print if a port is taken: those of Pravega, and programs with Quarkus.
_TAKEN: Final = (b"Address already in use", b"in use by another process")


class PortTakenError(LocalServerError):
    """Another process took a port first. Start the server on other ports."""


class NotReadyError(LocalServerError):
    """A server was not ready in time."""


@dataclass(frozen=True, slots=True)
class Launched(ABC):
    """Running server: its process, and its folder with configuration, log and data."""

    title: ClassVar[str]

    process: SupervisedProcess
    folder: Path

    @property
    @abstractmethod
    def uri(self) -> str:
        """Address for clients."""

    @property
    def log(self) -> Path:
        """Log of the server: warnings, errors, and output of the JVM."""
        return self.folder / _LOG_NAME

    def check(self) -> None:
        """Raise LocalServerError if the server has ended, or PortTakenError if a port of it is taken."""
        check_log(f"the {self.title}", self.log, self.process.exit_code())


S = TypeVar("S", bound=Launched)


def start_in_folder(
    prefix: str, prepare: Callable[[Path], Sequence[str]], *, log: str = _LOG_NAME, lock: Path | None = None
) -> tuple[SupervisedProcess, Path]:
    """Start a command in a new folder. ``prepare`` writes its files into the folder and returns the command.

    ``log`` is the file for its output. ``lock`` is a file that stays locked while the command runs. Raises
    LocalServerError if the disk has too little space.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        if (free := shutil.disk_usage(folder).free) < _LEAST_SPACE:
            raise LocalServerError(
                f"a local server needs {_LEAST_SPACE >> 20} MiB of disk, but {folder.parent} has {free >> 20} MiB "
                "left: free some, or set TMPDIR to a folder on another disk"
            )
        command = prepare(folder)
        with open(folder / log, "wb") as output:
            return SupervisedProcess(command, output=output, folder=folder, lock=lock), folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def start_until_ready(spawn: Callable[[], S], await_one: Callable[[S, float], None], *, seconds: float) -> S:
    """Start a server with ``spawn``, and return it when ``await_one`` finds it ready.

    ``await_one`` gets a deadline, a value of ``time.monotonic()``. If the ports of a server were taken, another one is
    started on other ports. The same applies if it is not ready in half of the time, because a segment store does not
    report a port that it cannot use. Raises LocalServerError, which names the log. Nothing is left running then.
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
            # A server that ended by itself leaves its log, which is useless after a retry.
            shutil.rmtree(server.folder, ignore_errors=True)
        except BaseException as error:
            server.process.close(keep=isinstance(error, PravegaError))
            raise
        else:
            return server


def check_log(name: str, log: Path, exit_code: int | None) -> None:
    """Raise PortTakenError if a JVM reported that a port is taken, or LocalServerError if it has ended."""
    printed = log.read_bytes()
    if any(words in printed for words in _TAKEN):
        raise PortTakenError(f"a port of {name} was taken by another process; see {log}")
    if exit_code is not None:
        raise LocalServerError(f"{name} ended with exit code {exit_code} ({last_words(printed)}); see {log}")


def last_words(printed: bytes) -> str:
    """Return the last line that a JVM printed before it ended.

    The cause of an exception is preferred to lines of its stack.
    """
    lines = [line for line in printed.decode(errors="replace").strip().splitlines() if not line.startswith("\tat ")]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes or lines or ["it printed nothing"])[-1][:200]


def await_ready(
    config: PravegaConfig, stores: Collection[tuple[str, int]], *, deadline: float, check: Callable[[], None]
) -> None:
    """Return when events were written to each store and read back. ``deadline`` is of ``time.monotonic()``.

    ``check`` raises an error to end the wait. ``stores`` are the addresses to which the events must go. Another server
    may have taken the controller's port, and would answer instead. Raises NotReadyError at the deadline.
    """
    last = "its controller does not listen"
    for attempt in itertools.count():
        if time.monotonic() >= deadline:
            break
        check()
        # Each attempt has its own stream, because the last attempt may have ended at any step.
        stream = StreamName(_SCOPE, f"probe{attempt}")
        try:
            # gRPC waits a second or more before a retry, and a server takes a few seconds to start.
            if listens(config.endpoints[0]):
                with _client(config, _CALL_SECONDS) as client:
                    _round_trip(client, stream, stores)
                return _clean_up(config, stream)
        except PravegaError as error:
            last = error.message
        time.sleep(_PAUSE)
    raise NotReadyError(f"the Pravega server was not ready in time: {last}")


def _client(config: PravegaConfig, seconds: float) -> PravegaClient:
    return PravegaClient(config, timeout=seconds, failover_timeout=seconds)


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


def _clean_up(config: PravegaConfig, stream: StreamName) -> None:
    # A failure here leaves a harmless stream.
    with contextlib.suppress(PravegaError), _client(config, _CLEAN_UP_SECONDS) as client:
        client.controller.seal_stream(stream)
        client.controller.delete_stream(stream)
        client.controller.delete_scope(stream.scope)
