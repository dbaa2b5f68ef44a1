"""What Spark calls: the batch reader and the stream reader.

Spark makes several instances of these in several processes (the instance that plans is not the one that reads), so
what a read needs travels in its partition, and what the planning instance remembers is never needed after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from connector.client import PravegaClient, SegmentSlice, StreamCut, read_slices, shared_client, slices_between
from connector.errors import ConfigError
from connector.source._admission import Limits
from connector.source._columns import Decoder, RowBuilder, batches
from connector.source._offsets import from_offset, to_offset
from connector.source._options import SourceOptions
from connector.source._planner import Ceiling, StreamPlanner, slices_of

__all__ = ["PravegaBatchReader", "PravegaStreamReader", "require_stream"]


def client_for(options: SourceOptions) -> PravegaClient:
    """The process's client for the options."""
    return shared_client(options.config(), options.timeout_ms / 1000)


def require_stream(options: SourceOptions) -> None:
    """Raise StreamNotFoundError if the stream to read does not exist, ControllerUnavailableError if nobody knows."""
    # Half the time: Spark repeats a failed look at the schema once, in a new process, and both should fit.
    shared_client(options.config(), options.timeout_ms / 2000).require_stream(options.stream_name())


@dataclass(frozen=True)
class SlicePartition(InputPartition):  # type: ignore[misc]
    """One range of a segment, read by one task."""

    slice: SegmentSlice


class _Reader:
    """What both readers share: options and schema in, record batches out.

    ``schema`` is the Arrow schema of the rows, ``serializer`` decodes them, if they are to be decoded.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema, serializer: Decoder) -> None:
        self.options, self.schema, self.serializer = options, schema, serializer
        RowBuilder(schema, options, serializer)  # columns that cannot be are said here, before any task

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition."""
        # Spark asks once, for None, when there are no partitions.
        if not isinstance(partition, SlicePartition):
            return iter(())
        builder = RowBuilder(self.schema, self.options, self.serializer)
        return batches(builder, read_slices(client_for(self.options).stores, [partition.slice]))

    def _new_planner(self) -> StreamPlanner:
        return StreamPlanner(client_for(self.options), self.options.stream_name())

    def _start(self, planner: StreamPlanner, default: str) -> StreamCut:
        start = planner.resolve(self.options.start_stream_cut or default)
        if start is None:
            raise ConfigError("option 'start_stream_cut' must be 'earliest', 'latest' or a stream cut")
        return start


class PravegaBatchReader(_Reader, DataSourceReader):  # type: ignore[misc]
    """Reads a stream between two cuts, one partition for each part of a segment."""

    def partitions(self) -> Sequence[InputPartition]:
        """The ranges of segments between the start and the end cut."""
        planner = self._new_planner()
        start = self._start(planner, "earliest")
        end = planner.resolve(self.options.end_stream_cut or "latest") or planner.resolve("latest")
        assert end is not None
        return [SlicePartition(piece) for piece in slices_between(client_for(self.options).stores, start, end)]


class PravegaStreamReader(_Reader, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads a stream from a cut on, in micro-batches that keep the order per routing key.

    A batch is a function of its two offsets alone; see ``connector.source._planner``.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema, serializer: Decoder) -> None:
        super().__init__(options, schema, serializer)
        self._planner: StreamPlanner | None = None
        self._first: StreamCut | None = None
        self._available: StreamCut | None = None
        self._ceilings: list[Ceiling] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """The start cut; Spark asks twice, so "latest" is resolved once."""
        if self._first is None:
            self._first = self._start(self._own_planner(), "latest")
        return to_offset({self._first.stream: self._first})

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """All there is: the limits of the options are applied in latestOffset, where both can hold at once."""
        return ReadAllAvailable()

    def latestOffset(  # noqa: N802
        self,
        start: dict[str, Any] | None = None,
        limit: Any = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        """The end of the next batch, which begins at ``start``."""
        position = self._position(self.initialOffset() if start is None else start)
        limits = Limits(self.options.max_bytes_per_trigger, self.options.max_rows_per_trigger)
        end = self._own_planner().next_end(position, self._ceilings_from(position), limits)
        return to_offset({end.stream: end})

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the tail of this moment as the end of the run."""
        self._available = self._own_planner().resolve("latest")

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The ranges of segments between two offsets; depends on nothing else."""
        starts = from_offset(start)
        return [
            SlicePartition(piece)
            for stream, cut in sorted(from_offset(end).items())
            for piece in slices_of(starts.get(stream, StreamCut(stream, {})), cut)
        ]

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: the position lives in Spark's checkpoint."""

    def _own_planner(self) -> StreamPlanner:
        if self._planner is None:
            self._planner = self._new_planner()
        return self._planner

    def _position(self, offset: dict[str, Any]) -> StreamCut:
        stream, cuts = self.options.stream_name(), from_offset(offset)
        if cuts.keys() != {stream}:
            raise ConfigError(
                f"the checkpoint is of stream {', '.join(map(str, cuts))}, the query reads {stream}: a query "
                "that reads another stream needs a checkpoint of its own"
            )
        return cuts[stream]

    def _ceilings_from(self, position: StreamCut) -> list[Ceiling]:
        """Where this run ends: at the end cut, and at the tail that an AvailableNow run saw when it began."""
        if self._ceilings is None:
            planner = self._own_planner()
            end = planner.resolve(self.options.end_stream_cut or "unbounded")
            ends = [cut for cut in (end, self._available) if cut is not None]
            self._ceilings = [planner.ceiling(position, cut) for cut in ends]
        return self._ceilings
