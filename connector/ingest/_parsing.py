"""Lines into columns: those that are no records of the columns are found one by one, and told."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from connector.errors import BadRecordError
from connector.ingest._lines import Lines
from connector.ingest._source import Chunk, Rejected

__all__ = ["LineReader", "NotRecordsError"]

# What pyarrow says of a block says nothing of the file.
_PLACE: Final = re.compile(r"^(CSV|JSON) parse error: (Row #\d+: )?|In CSV column #\d+: (Row #\d+: )?")
_SHOWN: Final = 200


class NotRecordsError(ValueError):
    """These lines are not as many records as there are lines."""


@dataclass(frozen=True, slots=True)
class LineReader:
    """Reads the chunks of one file of lines."""

    name: str
    parse: Callable[[Lines], pa.RecordBatch]
    """One row for each record; raises ArrowInvalid or NotRecordsError if there is a record that is none."""
    reject: bool
    """Whether bad records are handed over, instead of raising BadRecordError."""

    def chunks(self, blocks: Iterator[Lines], offset: int) -> Iterator[Chunk]:
        """The records from number ``offset`` on."""
        first = 0
        for block in blocks:
            end = first + len(block)
            if end > offset:
                yield self._chunk(block.tail(max(0, offset - first)), max(first, offset))
            first = end

    def _chunk(self, lines: Lines, first: int) -> Chunk:
        size = len(lines.joined())
        try:
            return Chunk(self.parse(lines), first, len(lines), bytes=size)
        except (pa.ArrowInvalid, NotRecordsError):
            pass
        good: list[pa.RecordBatch] = []
        bad: list[Rejected] = []
        self._sieve(lines, first, good, bad)
        table = pa.Table.from_batches(good).combine_chunks()
        batches = table.to_batches()
        batch = batches[0] if batches else good[0]
        return Chunk(batch, first, len(lines), tuple(bad), size)

    def _sieve(self, lines: Lines, first: int, good: list[pa.RecordBatch], bad: list[Rejected]) -> None:
        """Parse halves until what cannot be parsed is one record."""
        try:
            good.append(self.parse(lines))
        except (pa.ArrowInvalid, NotRecordsError) as error:
            if len(lines) > 1:
                middle = len(lines) // 2
                self._sieve(lines.part(0, middle), first, good, bad)
                self._sieve(lines.part(middle, len(lines)), first + middle, good, bad)
                return
            bad.append(self._rejected(lines, first, error))
            good.append(self.parse(lines.part(0, 0)))

    def _rejected(self, lines: Lines, record: int, error: Exception) -> Rejected:
        reason, line, text = reason_of(error), int(lines.lines[0]), lines.text(0)
        if not self.reject:
            raise BadRecordError(f"{self.name}, line {line}: {reason}: {text[:_SHOWN]!r}") from None
        return Rejected(record, line, reason, text)


def reason_of(error: Exception) -> str:
    """What an error says, without places in a block."""
    return _PLACE.sub("", str(error).partition("\n")[0]).strip()


def conform(batch: Any, schema: pa.Schema, name: str) -> pa.RecordBatch:
    """A batch of these columns, by their names. Raises BadRecordError for others, and for values that do not fit."""
    if batch.schema.equals(schema):
        return batch
    if unlike := sorted(set(batch.schema.names) ^ set(schema.names)):
        verb = "has" if unlike[0] in batch.schema.names else "lacks"
        raise BadRecordError(
            f"{name} {verb} the column {unlike[0]!r}; all sources must have the columns {', '.join(schema.names)}"
        )
    try:
        return pa.RecordBatch.from_arrays([batch.column(f.name).cast(f.type) for f in schema], schema=schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadRecordError(f"{name} has other types than the sources before it: {reason_of(error)}") from error
