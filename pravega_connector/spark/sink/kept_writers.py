"""Writers that a Spark worker keeps from one task to the next.

Opening a writer starts a thread, connects to segment stores and binds a session to each segment. A worker runs tasks of
many micro-batches, so a finished task leaves its writers to later tasks.

A task has a writer for itself. Only a writer whose events are all durable is kept, so no event of a failed task is
written later.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.core import io
from pravega_connector.core.events import RawEvents
from pravega_connector.errors import ConnectorError
from pravega_connector.wire import SegmentRange, StreamName
from pravega_connector.writer.event_writer import EventWriter
from pravega_connector.writer.routing import StreamDestination
from pravega_serde.per_process import PerProcess

#: Seconds after which a writer without a task is closed. Spark keeps an idle worker for as long.
IDLE_SECONDS: Final = 60.0
#: Maximum writers without a task: each has a thread, and a connection for each segment up to four for each store.
MAX_IDLE: Final = 64


@dataclass(frozen=True, slots=True)
class Target:
    """Settings that distinguish two writers of this process. Each configuration has its own client."""

    client: PravegaClient
    stream: StreamName
    max_event_size: int
    timeout: float
    """Maximum duration of a write in seconds."""


@dataclass(frozen=True, slots=True)
class TaskWriter:
    """Writer that belongs to one task until the task keeps or abandons it."""

    target: Target
    writer: EventWriter[bytes]
    segments: frozenset[int]
    """Ids of the stream's current segments when the writer was opened."""


class KeptWriters:
    """Writers without a task, at most ``MAX_IDLE``. Thread safe; one daemon thread closes those that stay idle."""

    def __init__(self) -> None:
        self._changed = io.condition()
        self._idle: OrderedDict[Target, tuple[float, TaskWriter]] = OrderedDict()  # idle since; the oldest is first
        self._closer: io.Worker | None = None
        self._closed = False

    def take(self, target: Target) -> TaskWriter:
        """Return a writer for a task: a kept one, or a new one.

        A kept writer is used only if the stream still has the segments for which it was opened. So a stream that was
        scaled, or deleted and created again, gets a new writer. Raises StreamNotFoundError, StreamSealedError.
        """
        with self._changed:
            _, kept = self._idle.pop(target, (0.0, None))
        try:
            destination = _CurrentSegments(target)
            if kept is not None and kept.segments == destination.ids and _is_intact(kept.writer):
                return kept
        except BaseException:
            if kept is not None:
                kept.writer.abandon()
            raise
        if kept is not None:
            kept.writer.abandon()
        writer = EventWriter(
            target.client.stores,
            target.stream,
            RawEvents(),
            max_event_size=target.max_event_size,
            timeout=target.timeout,
            destination=destination,
        )
        return TaskWriter(target, writer, destination.ids)

    def keep(self, done: TaskWriter) -> None:
        """Keep the writer of a task for the next one. Flush it before."""
        ended: list[TaskWriter] = []
        with self._changed:
            if (other := self._idle.pop(done.target, None)) is not None:
                ended.append(other[1])
            if self._closed:
                ended.append(done)
            else:
                self._idle[done.target] = time.monotonic(), done
            if len(self._idle) > MAX_IDLE:
                ended.append(self._idle.popitem(last=False)[1][1])
            if self._idle and self._closer is None:
                self._closer = io.start(self._close_idle, "pravega-kept-writers")
        for each in ended:
            each.writer.abandon()

    def close(self) -> None:
        """Close all writers that no task has, and keep no others."""
        with self._changed:
            self._closed = True
            ended = [each for _, each in self._idle.values()]
            self._idle.clear()
            self._changed.notify_all()
            closer = self._closer
        for each in ended:
            each.writer.abandon()
        if closer is not None:
            closer.join()

    def _close_idle(self) -> None:
        while (expired := self._next_expired()) is not None:
            expired.writer.abandon()

    def _next_expired(self) -> TaskWriter | None:
        """Wait for a writer whose time is over; None if no writer is left."""
        with self._changed:
            while self._idle:
                since, oldest = next(iter(self._idle.values()))
                left = since + IDLE_SECONDS - time.monotonic()
                if left <= 0:
                    del self._idle[oldest.target]
                    return oldest
                self._changed.wait(left)
            self._closer = None
            return None


class _CurrentSegments(StreamDestination):
    """The segments of a stream when a task starts to write."""

    def __init__(self, target: Target) -> None:
        """Ask the controller. Raises StreamNotFoundError, StreamSealedError."""
        super().__init__(target.client.controller, target.stream)
        self._ranges = super().ranges()
        self.ids = frozenset(each.id for each in self._ranges)

    def ranges(self) -> list[SegmentRange]:
        """The current segments."""
        return list(self._ranges)


def _is_intact(writer: EventWriter[bytes]) -> bool:
    """Return True if an idle writer was not closed and has met no error."""
    try:
        writer.flush()
    except ConnectorError:
        return False
    return True


_kept_of_process: Final[PerProcess[None, KeptWriters]] = PerProcess(KeptWriters.close)


def kept_writers() -> KeptWriters:
    """Return the kept writers of this process."""
    return _kept_of_process.get(None, KeptWriters)
