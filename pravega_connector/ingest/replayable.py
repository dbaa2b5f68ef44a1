"""Sources that can be read again: what ingestion asks of them, and what they give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Rejected:
    """Record that cannot become an event."""

    record: int
    """Its number in the source, from 0."""
    line: int
    """The line it begins in, from 1; 0 where there are no lines."""
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some records that follow each other."""

    batch: pa.RecordBatch
    """The records that are events, in order."""
    first: int
    """Number of the first record in its source, from 0."""
    records: int
    """Number of records, rejected ones included."""
    rejected: tuple[Rejected, ...] = ()
    bytes: int = field(default=0, compare=False)
    """Roughly how much of the source they take; for progress alone."""

    def split(self, count: int) -> tuple[Chunk, Chunk]:
        """The first ``count`` records, and the rest."""
        end = self.first + count
        mine = tuple(bad for bad in self.rejected if bad.record < end)
        rows, size = count - len(mine), self.bytes * count // max(1, self.records)
        head = replace(self, batch=self.batch.slice(0, rows), records=count, rejected=mine, bytes=size)
        rest = Chunk(self.batch.slice(rows), end, self.records - count, self.rejected[len(mine) :], self.bytes - size)
        return head, rest


class ReplayableSource(Protocol):
    """Named sequences of records, files for example, that stay as they are and can be read again from any record.

    Whatever is read twice must be the same both times. Reading is by one thread at a time.
    """

    @property
    def schema(self) -> pa.Schema:
        """Columns of all records. Raises SourceError where they cannot be told."""

    def fix(self, schema: pa.Schema) -> None:
        """Take these columns, which were found when its ingestion began."""

    def ids(self) -> Iterable[str]:
        """Names of all that is there now, in the order in which to ingest it."""

    def mark(self, id_: str) -> str:
        """Fingerprint of a source: a text that differs as soon as its records do. Raises SourceError."""

    def change(self, id_: str, mark: str) -> str | None:
        """Description of the change of a source since it had this mark; None if unchanged. Raises SourceError."""

    def size(self, id_: str) -> int:
        """Roughly its bytes; for progress and for the size of transactions. 0 if it is gone."""

    def read(self, id_: str, offset: int = 0) -> Iterator[Chunk]:
        """Records of a source from number ``offset`` on; none behind its end. Raises SourceError."""
