"""Kafka topic as a source of ingestion: a partition is an item, and its position is an offset.

The feed works in rounds: a round takes the ends of all partitions, and ingests one partition after the other up to its
end. Records of one partition stay in order. A key that moves to another partition, because partitions were added, has
no order in Kafka, either. It keeps its order if an ingestion has reached the end between the two.

The first run records the position of each partition. From then on, a first offset after the position is data loss, and
so is a first offset above 0 in a partition that was added.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from pravega_connector.errors import DataLossError, KafkaUnavailableError, SourceError
from pravega_connector.operations.ingest.encode import Encoding
from pravega_connector.operations.ingest.feed import Draft, Move, Piece, Positions, Progress, Sizes
from pravega_connector.operations.ingest.kafka_records import RecordColumns
from pravega_connector.operations.ingest.kafka_topic import (
    SCHEME,
    Identity,
    KafkaAddress,
    KafkaTopic,
    OutOfRangeError,
    check_id,
)
from pravega_connector.operations.ingest.replayable import Chunk
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions

_log: Final = logging.getLogger(__name__)
_MESSAGES: Final = 1000  # of one call
# Seconds without records before a partition counts as unavailable, in an outage and otherwise. Long ranges of aborted
# records take time, but return nothing.
_OUTAGE: Final = 5.0
_SILENCE: Final = 120.0
_SAMPLED: Final = 1000


@dataclass(frozen=True, kw_only=True)
class KafkaOptions:
    """Options for reading a topic."""

    config: Mapping[str, object] = field(default_factory=dict, repr=False)
    """Settings of librdkafka, such as ``security.protocol``. They are not recorded."""
    input: Mapping[str, str] | None = None
    """Format of the values, as options of the Spark source: ``{"format": "json"}``. None: they stay bytes."""
    reject: bool = False
    """If True, malformed values are rejected; otherwise they raise BadRecordError. They need a format."""
    skip_lost: bool = False
    """If True, continue after records that were deleted before they were ingested. Otherwise, they are an error."""


class KafkaSource:
    """Topic at ``kafka://host:port/topic``. Not thread safe."""

    def __init__(self, url: str, options: KafkaOptions | None = None) -> None:
        """Connect to nothing yet. Raises ConfigError, MissingExtraError."""
        self.address, self.options = KafkaAddress.parse(url), options or KafkaOptions()
        self.topic = KafkaTopic(self.address, self.options.config)
        given = self.options.input
        named = None if given is None else {"path": f"kafka/{self.address.topic}", **given}
        self._input = None if named is None else parse_options(SourceOptions, named)
        self._columns: RecordColumns | None = None
        self._recorded: pa.Schema | None = None
        self._schema: pa.Schema | None = None

    def connect(self) -> Identity:
        """Return the id and the partitions of the topic.

        Raises KafkaUnavailableError, KafkaRefusedError, KafkaTopicNotFoundError.
        """
        return self.topic.identity()

    def prepare(self, sink: SinkOptions, *, ordered: bool) -> Callable[[pa.Schema], Encoding]:
        """Choose the columns for the events, and return their encoding. Raises ConfigError."""
        self._columns = RecordColumns(self.address.topic, self._input, sink, ordered=ordered)
        self._recorded = self._schema = None
        return self._columns.encoding

    @property
    def columns(self) -> RecordColumns:
        """Columns of the records; see :meth:`prepare`."""
        assert self._columns is not None
        return self._columns

    @property
    def schema(self) -> pa.Schema:
        """Columns of all records. Raises ColumnTypeError if the topic has no records to find them."""
        if self._schema is None:
            sampled = self.columns.must_sample and self._recorded is None
            self._schema = self.columns.find(self._sample() if sampled else (), self._recorded)
        return self._schema

    def fix(self, schema: pa.Schema) -> None:
        """Use the columns that a run has recorded for values without a schema."""
        self._recorded, self._schema = schema, None

    def change(self, id_: str, mark: str) -> str | None:
        """Return None: the feed has checked the topic after it has read the records."""
        return None

    def size(self, id_: str) -> int:
        """Return 0: Kafka does not report the bytes of records."""
        return 0

    def name(self, partition: int) -> str:
        """Return the name of a partition."""
        return f"{self.address.topic}-{partition}"

    def id(self, partition: int) -> str:
        """Return the name of a partition among the sources of an ingestion."""
        return f"kafka:{self.name(partition)}"

    def partition(self, id_: str) -> int:
        """Return the partition of a name."""
        return int(id_.rpartition("-")[2])

    def close(self) -> None:
        """Close the connections."""
        self.topic.close()

    def _sample(self) -> list[bytes]:
        """Return the first values of the partitions."""
        partitions = self.topic.identity().partitions
        firsts, ends = self.topic.first_offsets(partitions), self.topic.end_offsets(partitions)
        values: list[bytes] = []
        for partition in partitions:
            share = -(-_SAMPLED // len(partitions))
            for messages, _ in self.read(partition, firsts[partition], ends[partition], share):
                values += [message.value() for message in messages if message.value() is not None]
        self.topic.pause()
        return values

    def read(self, partition: int, offset: int, end: int, most: int) -> Iterator[tuple[list[Any], int]]:
        """Yield at most ``most`` messages before ``end``, and the offset after them, which is ``end`` at the end.

        Raises OutOfRangeError, KafkaUnavailableError, KafkaTopicNotFoundError, KafkaRefusedError.
        """
        moved = time.monotonic()
        while offset < end and most > 0:
            messages, after = self.topic.read(partition, offset, min(_MESSAGES, most))
            most -= len(messages)
            if after > offset:
                moved = time.monotonic()
            elif time.monotonic() - moved > (_OUTAGE if self.topic.is_down else _SILENCE):
                raise KafkaUnavailableError(
                    f"{self.address}: no broker answers: partition {partition} returns no records from offset {offset}"
                )
            offset = min(after, end)
            yield [message for message in messages if message.offset() < end], offset


def is_kafka(source: object) -> bool:
    """Return True for the address of a topic."""
    return isinstance(source, str) and source.startswith(SCHEME)


class KafkaFeed:
    """Drafts of transactions with records of all partitions: one round, see above. Each draft is kept in memory."""

    def __init__(self, source: KafkaSource, sizes: Sizes) -> None:
        self._source, self._sizes = source, sizes
        self._id = ""
        self._positions = Positions({})
        self._next: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self.settled: dict[str, Move] = {}
        """First positions, and positions after deleted records."""
        self.failed: dict[str, SourceError] = {}
        """Partitions that are left out."""
        self.changed: dict[str, str] = {}
        """Always empty: a changed topic is an error."""

    def begin(self, known: Mapping[str, Sequence[Any]]) -> None:
        """Begin a round after known positions, in their JSON form.

        Raises SourceChangedError for a recreated topic, DataLossError, and the errors of the topic.
        """
        topic = self._source.topic
        found = topic.identity()
        self._id = found.id
        ids = {self._source.id(partition): partition for partition in found.partitions}
        positions = {id_: Progress.from_json(known[id_]) for id_ in ids if id_ in known}
        self._check_identity(known)
        firsts = topic.first_offsets(found.partitions)
        self._next = {id_: self._position(id_, positions, firsts[partition]) for id_, partition in ids.items()}
        self._positions = Positions(known)
        self.settled = {
            id_: self._positions.move(id_, Progress(self._id, at, finished=False))
            for id_, at in self._next.items()
            if id_ not in positions or at != positions[id_].offset
        }
        ends = topic.end_offsets(found.partitions)
        self._ends = {id_: ends[partition] for id_, partition in ids.items()}
        for id_, position in self._next.items():
            if position > self._ends[id_]:
                raise self._beyond(id_, self._ends[id_])

    def _beyond(self, id_: str, end: int) -> DataLossError:
        return DataLossError(
            f"{self._source.address}: partition {self._source.partition(id_)} ends at offset {end}, but the stream has "
            f"its records up to {self._next[id_]}: the brokers have lost records. Ingest the topic into a new stream"
        )

    def _check_identity(self, known: Mapping[str, Sequence[Any]]) -> None:
        prefix = self._source.id(0)[:-1]
        for id_, position in known.items():
            if id_.startswith(prefix) and id_[len(prefix) :].isdigit():
                check_id(self._source.address, self._id, Progress.from_json(position).mark)

    def _position(self, id_: str, positions: Mapping[str, Progress], first: int) -> int:
        """Return the next offset of a partition. Without any position of the topic, begin at the first record."""
        if id_ not in positions and not positions:
            return first
        position = positions[id_].offset if id_ in positions else 0
        return position if position >= first else self._lost(id_, position, first)

    def _lost(self, id_: str, position: int, first: int) -> int:
        what = f"{self._source.address}: partition {self._source.partition(id_)}, offset {position}"
        if not self._source.options.skip_lost:
            raise DataLossError(
                f"{what}: the records before offset {first} were deleted before they were ingested; to continue "
                "without them, set skip_lost (--skip-lost), or change the topic's retention to keep records longer"
            )
        _log.warning("%s: skipped deleted records up to offset %d", what, first)
        return first

    @property
    def pending(self) -> list[str]:
        """Partitions with more records in this round, in their order."""
        return [id_ for id_, end in self._ends.items() if self._next[id_] < end and id_ not in self.failed]

    def fail(self, id_: str, error: SourceError) -> None:
        """Leave a partition out from now on."""
        self.failed[id_] = error

    def committed(self, draft: Draft) -> None:
        """Do nothing: partitions grow."""

    def next(self) -> Draft | None:
        """Return the next draft; None at the end of the round.

        Raises BadRecordError with ``source_id``, and the errors of :meth:`begin`.
        """
        parts: list[tuple[str, Chunk]] = []
        size = count = 0
        before = dict(self._next)
        try:
            for id_ in self.pending:
                for chunk in self._chunks(id_, self._sizes.records - count):
                    parts.append((id_, chunk))
                    size, count = size + chunk.batch.nbytes, count + chunk.batch.num_rows + len(chunk.rejected)
                    if size >= self._sizes.bytes or count >= self._sizes.records:
                        break
                if size >= self._sizes.bytes or count >= self._sizes.records:
                    break
        except SourceError:
            self._next = before
            raise
        moved = {id_: end for id_, end in self._next.items() if end != before[id_]}
        if not moved:
            self._source.topic.pause()
            return None
        # The records are of the topic with the recorded id only if it still exists after they were read.
        mark, self._id = self._id, self._source.topic.identity().id
        check_id(self._source.address, self._id, mark)
        pieces = tuple(Piece(id_, before[id_], end, mark) for id_, end in moved.items())
        moves = {piece.source: self._positions.move(piece.source, piece.after) for piece in pieces}
        return Draft(pieces, iter(parts), moves)

    def again(self, pieces: Sequence[Piece]) -> Draft:
        """Return a draft with the records of pieces that were read before. Raises the errors of :meth:`begin`."""
        for piece in pieces:
            check_id(self._source.address, self._id, piece.mark)
        now = self._next, self._ends
        self._next = {piece.source: piece.offset for piece in pieces}
        self._ends = {piece.source: piece.offset if piece.end is None else piece.end for piece in pieces}
        try:
            parts = [(piece.source, chunk) for piece in pieces for chunk in self._chunks(piece.source, sys.maxsize)]
        finally:
            self._next, self._ends = now
        check_id(self._source.address, self._id, self._source.topic.identity().id)
        return Draft(tuple(pieces), iter(parts))

    def _chunks(self, id_: str, most: int) -> Iterator[Chunk]:
        """Yield the records of a partition up to the end of the round, and move its position.

        Each chunk has at most ``most`` records.
        """
        source, partition = self._source, self._source.partition(id_)
        schema = source.schema
        while True:
            try:
                for messages, after in source.read(partition, self._next[id_], self._ends[id_], most):
                    self._next[id_], most = after, most - len(messages)
                    if messages:
                        yield source.columns.chunk(
                            source.name(partition), schema, messages, reject=source.options.reject
                        )
            except OutOfRangeError:  # retention was faster
                first = source.topic.first_offsets([partition])[partition]
                if first <= self._next[id_]:
                    raise self._beyond(id_, source.topic.end_offsets([partition])[partition]) from None
                self._next[id_] = self._lost(id_, self._next[id_], first)
            else:
                return
