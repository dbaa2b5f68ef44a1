"""Spark's real-time mode: tasks follow the segments as events arrive, and a batch ends where they are then.

Only the reader inside the JVM can run such tasks. It calls these methods of the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pravega_connector.errors import ConfigError
from pravega_connector.reader.rows import NO_TIMES
from pravega_connector.rows.columns import wants_event_time
from pravega_connector.rows.offsets import Offset
from pravega_connector.spark.source.readers import PravegaStreamReader
from pravega_connector.spark.source.tasks import SlicesPartition
from pravega_connector.spark.versions import InputPartition
from pravega_connector.wire import StreamName


class RealTimeReader(PravegaStreamReader):
    """Stream reader that plans micro-batches, and batches in real-time mode."""

    def prepare_for_real_time(self) -> None:
        """Raise ConfigError if the query cannot run in Spark's real-time mode."""
        if wants_event_time(self.options):
            raise ConfigError(
                "real-time mode has no event times, because watermarks come after the events: leave "
                "'event_time_low' and 'event_time_high' out of option 'columns', or use another trigger"
            )
        if self.options.dead_letter_path is not None:
            raise ConfigError(
                "real-time mode does not support 'dead_letter_path', because a file is complete only when a range was "
                "read to its end: set 'dead_letter_stream' instead, or use another trigger"
            )

    def follow(self, start: dict[str, Any], tasks: int) -> Sequence[InputPartition]:
        """Return the tasks that follow the segments from an offset in real-time mode: at most ``tasks``, at least one.

        A task without segments waits for the end of the batch, so that batches of a sealed stream follow slowly.
        """
        slices = self._plan.follow(Offset.from_json(start))
        groups = [tuple(slices[i::tasks]) for i in range(min(tasks, len(slices)))] or [()]
        return [SlicesPartition(group, (NO_TIMES,) * len(group), (None,) * len(group)) for group in groups]

    def end_of_followed(self, positions: Iterable[Sequence[Any]]) -> dict[str, Any]:
        """Return the end of a batch of :meth:`follow`. Its tasks have reached ``positions``: stream, id, offset."""
        reached: dict[StreamName, dict[int, int]] = {}
        for stream, segment_id, at in positions:
            reached.setdefault(StreamName.parse(stream), {})[segment_id] = at
        end = self._plan.end_of_followed(reached)
        self._planned = end.cuts
        return end.to_json()
