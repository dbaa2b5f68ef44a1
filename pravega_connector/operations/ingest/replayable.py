"""Sources that can be read again: their interfaces for the ingestion, and the chunks that they return."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Rejected:
    """Record that cannot become an event."""

    record: int
    """Number of the record in its source, from 0."""
    line: int
    """Number of the line in which the record begins, from 1; 0 without lines."""
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive records of a source."""

    batch: pa.RecordBatch
    """The records that are events, in order."""
    first: int
    """Number of the first record in its source, from 0."""
    records: int
    """Number of records, rejected ones included."""
    rejected: tuple[Rejected, ...] = ()
    bytes: int = field(default=0, compare=False)
    """Approximate bytes of the records in the source; used only for progress."""

    def split(self, count: int) -> tuple[Chunk, Chunk]:
        """Return the first ``count`` records, and the rest."""
        end = self.first + count
        mine = tuple(bad for bad in self.rejected if bad.record < end)
        rows, size = count - len(mine), self.bytes * count // max(1, self.records)
        head = replace(self, batch=self.batch.slice(0, rows), records=count, rejected=mine, bytes=size)
        rest = Chunk(self.batch.slice(rows), end, self.records - count, self.rejected[len(mine) :], self.bytes - size)
        return head, rest


class RecordSource(Protocol):
    """Named sequences of records with common columns, such as files or the partitions of a topic."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of all records. Raises SourceError if they are unknown."""

    def fix(self, schema: pa.Schema) -> None:
        """Use these columns, which were found when the ingestion began."""

    def change(self, id_: str, mark: str) -> str | None:
        """Return a description of the change after a source had this mark; None if unchanged. Raises SourceError."""

    def size(self, id_: str) -> int:
        """Return the approximate bytes, for progress and the size of transactions; 0 if they are unknown."""


class ReplayableSource(RecordSource, Protocol):
    """Named sequences of records, such as files, that do not change and can be read again from any record.

    Repeated reads must return the same records. Only one thread reads at a time.
    """

    def ids(self) -> Iterable[str]:
        """Return the names of all current sources, in the order in which to ingest them."""

    def mark(self, id_: str) -> str:
        """Return a fingerprint of a source: a text that changes with its records. Raises SourceError."""

    def read(self, id_: str, offset: int = 0) -> Iterator[Chunk]:
        """Yield the records of a source from number ``offset``; none after its end. Raises SourceError."""
