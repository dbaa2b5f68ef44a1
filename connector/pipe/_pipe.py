"""Reads, frames, routes and writes events, and tells what is durable.

Theory of operation
-------------------
One thread. While the input has something, its events are handed to an idempotent writer; when it pauses, or when so
many bytes are not acknowledged, the thread waits until all of them are durable and acknowledges them. So what is read
and not durable is bounded, and a slow stream slows the input: a pipe or a socket that is not read fills up, and its
other end waits. While the thread waits the input gathers, so appends grow with the load by themselves.

Lost connections, moved and sealed segments are the writer's matter: no event is lost or written twice by them. What
a crash of this process leaves is that events were read, and perhaps written, but not acknowledged. Whoever sends them
again gets each at least once; nobody can do better for a source that does not remember.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from connector.client import EventWriter
from connector.errors import ConnectorError, DeadlineExceededError, EventError, InputLostError
from connector.pipe._frames import Frames
from connector.pipe._inputs import Input, Source
from pravega_serde.routing import EventRouter

__all__ = ["MAX_UNACKNOWLEDGED", "Pipe", "PipeSummary"]

_log: Final = logging.getLogger(__name__)

#: Bytes of events that are read and not durable.
MAX_UNACKNOWLEDGED: Final = 8 << 20
# Seconds that events are not durable before the log is told, and between two lines that tell it.
_WARN_AFTER: Final = 10.0
_WARN_EVERY: Final = 30.0


@dataclass(slots=True)
class PipeSummary:
    """How far a pipe is: counts of events, and bytes at the ends of sources that are no event."""

    read: int = 0
    acknowledged: int = 0
    without_key: int = 0
    bytes: int = 0
    bytes_left: int = 0
    errors: list[ConnectorError] = field(default_factory=list)

    @property
    def not_acknowledged(self) -> int:
        """Events that were read and may not be in the stream."""
        return self.read - self.acknowledged


class Pipe:
    """Copies events from an input to a writer, which it flushes but does not close."""

    def __init__(
        self,
        input: Input,  # noqa: A002 - what it is
        writer: EventWriter[bytes],
        frames: Callable[[], Frames],
        *,
        router: EventRouter | None = None,
        max_unacknowledged: int = MAX_UNACKNOWLEDGED,
        failover_timeout: float = 300.0,
    ) -> None:
        """``frames`` cut the bytes of one source; ``router`` gives the keys of a batch with the column ``event``.

        ``failover_timeout`` is how many seconds the servers have to make durable what was read.
        """
        self._input, self._writer, self._new_frames, self._router = input, writer, frames, router
        self._frames: dict[Source, Frames] = {}
        self._limit, self._failover_timeout = max_unacknowledged, failover_timeout
        self._size = 0  # bytes since the last acknowledgement
        self.summary = PipeSummary()

    def run(self) -> PipeSummary:
        """Return when the input has ended, or was stopped, and all events that were read are durable; it is closed.

        What becomes of a source that cannot be read, or holds what is no event: where sources come and go it is ended
        alone, and the summary has its error; else the pipe ends, and raises it when what came before is durable.

        Raises DeadlineExceededError when the servers stay away for longer than they may, and what the writer raises.
        The summary says then how many events are acknowledged; the others may be in the stream or not.
        """
        try:
            self._copy()
        except DeadlineExceededError as error:
            raise DeadlineExceededError(
                f"{error.message}; {self.summary.acknowledged} events are acknowledged, "
                f"{self.summary.not_acknowledged} more were read and may not be in the stream: send them again"
            ) from error
        finally:
            self._input.close()
        if self.summary.errors and not self._input.many:
            raise self.summary.errors[0]
        return self.summary

    def _copy(self) -> None:
        while self._input.open:
            found = self._input.ready(wait=not self._size)
            for source in found:
                self._take(source)
            if not found or self._size >= self._limit:
                self._acknowledge()
        self._acknowledge()
        # Those that were stopped in the middle of an event.
        self.summary.bytes_left += sum(frames.pending for frames in self._frames.values())

    def _take(self, source: Source) -> None:
        frames = self._frames.get(source)
        if frames is None:
            frames = self._frames[source] = self._new_frames()
        try:
            data = source.read()
            self._write(source, frames.feed(data) if data else frames.finish())
            if frames.broken is not None:
                raise frames.broken
        except (EventError, InputLostError) as error:
            self.summary.errors.append(type(error)(f"{source.name}: {error.message}"))
            data = b""
        if not data:
            self._end(source, frames)

    def _end(self, source: Source, frames: Frames) -> None:
        self.summary.bytes_left += frames.pending
        self._acknowledge()
        del self._frames[source]
        self._input.drop(source)

    def _write(self, source: Source, events: list[bytes]) -> None:
        if not events:
            return
        column = pa.array(events, pa.large_binary())
        keys = None
        if self._router is not None:
            keys = self._router.keys(pa.RecordBatch.from_arrays([column], ["event"]))
        self.summary.read += len(events)
        self._writer.write_column(column, keys)
        source.written += len(events)
        self.summary.without_key += 0 if keys is None else keys.null_count
        size = sum(map(len, events))
        self.summary.bytes += size
        # An empty event waits for its acknowledgement too.
        self._size += size + len(events)

    def _acknowledge(self) -> None:
        if not self._size:
            return
        self._flush()
        self.summary.acknowledged, self._size = self.summary.read, 0
        for source in self._frames:
            source.acknowledge()

    def _flush(self) -> None:
        """Wait until all is durable, and tell the log if that takes long. Raises DeadlineExceededError."""
        began, pause = time.monotonic(), _WARN_AFTER
        while True:
            left = began + self._failover_timeout - time.monotonic()
            try:
                self._writer.flush(min(pause, left))
                break
            except DeadlineExceededError as error:
                waited, pause = time.monotonic() - began, _WARN_EVERY
                if waited >= self._failover_timeout:
                    raise
                _log.warning(
                    "%s waits: %d events (%d bytes) for stream %s are not durable after %.0f s, %.0f s are left: %s",
                    self._input.name,
                    self.summary.not_acknowledged,
                    self._size,
                    self._writer.stream,
                    waited,
                    self._failover_timeout - waited,
                    error.message,
                )
        if pause == _WARN_EVERY:
            _log.warning("%s goes on after %.0f s", self._input.name, time.monotonic() - began)
