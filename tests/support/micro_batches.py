"""A streaming query without Spark's JVM: the source's reader, called as Spark's micro-batch execution calls it.

It does in milliseconds what takes Spark a second, so that tests can have hundreds of batches and restarts. Offsets go
through text, as they do through a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyspark.sql.datasource import InputPartition

from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.source.readers import PravegaStreamReader

__all__ = ["Batch", "MicroBatches", "Row"]


class Row(NamedTuple):
    scope: str
    stream: str
    segment_id: int
    offset: int
    event: bytes


@dataclass(frozen=True)
class Batch:
    """One micro-batch: its number, its offset as text, and its rows by task."""

    number: int
    end: str
    tasks: list[list[Row]]

    @property
    def rows(self) -> list[Row]:
        return [row for task in self.tasks for row in task]

    @property
    def bytes(self) -> int:
        return sum(8 + len(row.event) for row in self.rows)


@dataclass
class MicroBatches:
    """A query's checkpoint, and runs over it: ``offsets`` are the planned ends, ``committed`` how many are done."""

    offsets: list[str] = field(default_factory=list)
    committed: int = 0
    first: str = ""

    def run(self, *, available_now: bool = True, **options: str) -> Iterator[Batch]:
        """One run: what was planned and not committed again, then batch after batch.

        It ends where Spark's would with AvailableNow, or else when there is nothing new at some moment. A consumer
        that stops after a batch leaves it planned and not committed, as a crash does.
        """
        source = PravegaDataSource({"columns": "event,scope,stream,segment_id,offset", **options})
        reader = source.streamReader(source.schema())
        if available_now:
            reader.prepareForTriggerAvailableNow()
        while self.committed < len(self.offsets) or self._plan(reader):
            number = self.committed
            yield self._read(reader, number)
            self.committed = number + 1

    def _plan(self, reader: PravegaStreamReader) -> bool:
        if not self.offsets:
            self.first = json.dumps(reader.initialOffset())
        start = self.offsets[-1] if self.offsets else self.first
        end = json.dumps(reader.latestOffset(json.loads(start)))
        if end == start:
            return False
        self.offsets.append(end)
        return True

    def _read(self, reader: PravegaStreamReader, number: int) -> Batch:
        start = self.offsets[number - 1] if number else self.first
        partitions = reader.partitions(json.loads(start), json.loads(self.offsets[number]))
        return Batch(number, self.offsets[number], [rows_of(reader, partition) for partition in partitions])


def rows_of(reader: Any, partition: InputPartition) -> list[Row]:
    """The rows of a task."""
    rows = []
    for batch in reader.read(partition):
        columns = [batch.column(name).to_pylist() for name in ("scope", "stream", "segment_id", "offset", "event")]
        rows += map(Row._make, zip(*columns, strict=True))
    return rows
