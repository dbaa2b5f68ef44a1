"""Writers of one task, one for each of its target streams."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from pravega_connector.rows.encoding import EventEncoder, LatestTime
from pravega_connector.rows.target_streams import Written
from pravega_connector.spark.sink.kept_writers import KeptWriters, TaskWriter
from pravega_connector.wire import StreamName

#: Maximum streams that a task writes to at a time: each has a thread, and memory for unacknowledged events.
MAX_TARGETS: Final = 64


class TargetWriters:
    """Writers of one task, at most ``MAX_TARGETS`` at a time, and the latest event time of each stream."""

    def __init__(self, taken: Callable[[StreamName], TaskWriter], kept: KeptWriters, encoder: EventEncoder) -> None:
        """Set up; ``taken`` returns the writer of a stream, or raises StreamNotFoundError. ``kept`` gets it back."""
        self._taken, self._kept, self._encoder = taken, kept, encoder
        self._writers: OrderedDict[StreamName, TaskWriter] = OrderedDict()  # the most recently used one is last
        self._latest: dict[StreamName, LatestTime] = {}

    def write(self, part: Written) -> int:
        """Write rows and return their size in bytes. A writer that makes room for another makes its rows durable."""
        if part.stream in self._writers:
            self._writers.move_to_end(part.stream)
        else:
            if len(self._writers) >= MAX_TARGETS:
                oldest = next(iter(self._writers))
                self._writers[oldest].writer.flush()
                self._keep(oldest)
            self._writers[part.stream] = self._taken(part.stream)
        self._writers[part.stream].writer.write_column(part.events, part.keys)
        return int(part.events.nbytes)

    def note(self, part: Written) -> None:
        """Include the event times of rows."""
        self._latest.setdefault(part.stream, LatestTime(self._encoder.event_time)).add(part.rows)

    def flush(self) -> None:
        """Return when all rows are durable."""
        for each in self._writers.values():
            each.writer.flush()

    def keep(self) -> None:
        """Keep the writers for the next task, after :meth:`flush`."""
        for stream in list(self._writers):
            self._keep(stream)

    def _keep(self, stream: StreamName) -> None:
        self._kept.keep(self._writers[stream])
        # Only now: after an interrupt in between, the writer is abandoned, and no task uses it.
        del self._writers[stream]

    def drop(self, stream: StreamName) -> None:
        """Discard the rows of a stream that are not durable yet."""
        if (dropped := self._writers.get(stream)) is not None:
            dropped.writer.abandon()
            del self._writers[stream]

    def close(self) -> None:
        """Close the writers that are not kept; rows that are not durable are discarded."""
        for stream in list(self._writers):
            self.drop(stream)

    def times(self) -> tuple[tuple[StreamName, int], ...]:
        """Return the event time to note for each stream with event times."""
        return tuple((stream, latest.millis) for stream, latest in self._latest.items() if latest.millis is not None)
