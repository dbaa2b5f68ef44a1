"""Files of lines: bounds of each record, and the records that do not fit the columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_connector.errors import BadRecordError
from pravega_connector.operations.ingest.replayable import Chunk, Rejected

BLOCK: Final = 1 << 20
# A larger record cannot be an event. Without this limit, a missing quote would read a whole file into memory.
MAX_RECORD: Final = 64 << 20
#: Bytes in which most files have a line end.
_BEGINNING: Final = 1 << 12
_NEWLINE, _RETURN, _QUOTE, _SPACE, _TAB = 10, 13, 34, 32, 9
_BOM: Final = b"\xef\xbb\xbf"
# Positions in pyarrow's messages refer to a block, not to the file.
_PLACE: Final = re.compile(r"^(CSV|JSON) parse error: (Row #\d+: )?|In CSV column #\d+: (Row #\d+: )?")
# The text of the row, which errors show anyway.
_ROW: Final = re.compile(r"(?<=columns, got )(\d+): .*", re.DOTALL)
SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Lines:
    """Consecutive whole records."""

    data: bytes
    starts: npt.NDArray[np.int64]
    """Start of each record in ``data``; blank lines may be left out."""
    ends: npt.NDArray[np.int64]
    """End of each record, line end not included."""
    lines: npt.NDArray[np.int64]
    """Number of the line in which each record begins, from 1."""

    def __len__(self) -> int:
        return len(self.starts)

    def is_like(self, other: Lines) -> bool:
        """Return True for the same records."""
        return len(self) == len(other) and self.starts[0] == other.starts[0] and self.data == other.data

    def tail(self, count: int) -> Lines:
        """Return the records without the first ``count``."""
        return Lines(self.data, self.starts[count:], self.ends[count:], self.lines[count:])

    def joined(self) -> memoryview:
        """Return the bytes from the first record to the end of the last one, including blank lines between them."""
        return memoryview(self.data)[int(self.starts[0]) : int(self.ends[-1])] if len(self) else memoryview(b"")

    @property
    def returns(self) -> bool:
        """True if the lines end with CR alone."""
        end = int(self.ends[0])
        return self.data[end : end + 1] == b"\r" and self.data[end + 1 : end + 2] != b"\n"

    def column(self) -> pa.BinaryArray:
        """Return the records as a column over the same bytes; each may be followed by its line end and blank lines."""
        offsets = np.append(self.starts, self.ends[-1:]).astype(np.int32)
        return pa.Array.from_buffers(pa.binary(), len(self), [None, pa.py_buffer(offsets), pa.py_buffer(self.data)])

    def without_blanks(self) -> Lines:
        """Return the records that have more than blanks."""
        first = np.frombuffer(self.data, np.uint8)[self.starts]
        doubtful = np.flatnonzero((first == _SPACE) | (first == _TAB)).tolist()
        blank = [row for row in doubtful if not self.data[int(self.starts[row]) : int(self.ends[row])].strip()]
        if not blank:
            return self
        return Lines(self.data, *(np.delete(each, blank) for each in (self.starts, self.ends, self.lines)))

    def without(self, rows: Collection[int]) -> Lines:
        """Return the records without some, one after the other."""
        kept = np.delete(np.arange(len(self)), list(rows))
        starts, ends = self.starts[kept], self.ends[kept]
        data = b"\n".join([self.data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
        bounds = np.append(0, np.cumsum(ends - starts + 1))
        return Lines(data, bounds[:-1], bounds[1:] - 1, self.lines[kept])

    def text(self, record: int) -> str:
        """Return a record as text."""
        return self.data[int(self.starts[record]) : int(self.ends[record])].decode(errors="replace")


def lines_of(
    file: Any, name: str, *, quotes: bool = False, blanks: bool = False, returns: bool = False, escapes: bool = False
) -> Iterator[Lines]:
    """Yield the records of an open binary file, a mebibyte at a time, without a byte order mark.

    With ``quotes``, a line end between two double quotes is part of its record. With ``blanks``, blank lines are
    records. With ``returns``, the line ends may be CR alone, as the first of them outside quotes is. With ``escapes``,
    quotes count for nothing: as in JSON, they may be escaped, and no line end is between them.

    Raises BadRecordError for a record over 64 MiB, and the errors of the file.
    """
    # Bytes of a record without an end so far are searched once. They may end within quotes.
    parts, size, quoted = [b""], 0, False
    line, known = 1, None if returns else _NEWLINE
    block = file.read(BLOCK)
    if block.startswith(_BOM):
        block = block.removeprefix(_BOM) or file.read(BLOCK)
    while block or size:
        if known is None and block.endswith(b"\r"):
            block += file.read(1)  # perhaps the rest of the line end
        following = file.read(BLOCK) if block else b""
        if known is None:
            marks = None if escapes else quoted
            known = _line_end(block[:_BEGINNING], marks) or _line_end(block, marks)
        end = known or _NEWLINE
        ends = _record_ends(block, end, quotes=quotes, quoted=quoted)
        if not following and (not len(ends) or ends[-1] != len(block) - 1):
            ends = np.append(ends, len(block))  # the last line has no line end
        used = 0
        if len(ends):
            used = min(int(ends[-1]) + 1, len(block))
            data = b"".join([*parts, block]) if size else block
            found, line = _cut(data, ends + size, line, end, quotes=quotes, blanks=blanks)
            if len(found):
                yield found
            parts, size, quoted = [], 0, False
        rest = block[used:]
        parts.append(rest)
        size += len(rest)
        quoted ^= rest.count(b'"') % 2 == 1
        block = following
        if not used:
            _check_length(name, line, size)


def _line_end(data: bytes, quoted: bool | None) -> int | None:
    """Return the byte that ends lines: CR if the first line end outside quotes is CR without LF. None if unknown.

    ``quoted`` is True if the data begin within quotes. If it is None, quotes count for nothing.
    """
    view = np.frombuffer(data, np.uint8)
    outside = np.flatnonzero((view == _NEWLINE) | (view == _RETURN))
    if quoted is not None:
        outside = outside[np.searchsorted(np.flatnonzero(view == _QUOTE), outside) % 2 == quoted]
    if not len(outside) or (view[outside[0]] == _RETURN and outside[0] == len(data) - 1):
        return None
    first = int(outside[0])
    return _RETURN if data[first] == _RETURN and data[first + 1] != _NEWLINE else _NEWLINE


def _check_length(name: str, line: int, size: int) -> None:
    if size > MAX_RECORD:
        raise BadRecordError(
            f"{name}, line {line}: a record of more than {MAX_RECORD} bytes; is a quote missing, or is it binary?"
        )


def _record_ends(data: bytes, end: int, *, quotes: bool, quoted: bool) -> npt.NDArray[np.int64]:
    """Return the positions of the line ends that end a record. ``quoted`` is True if the data begin within quotes."""
    view = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(view == end)
    if not quotes or not (quoted or b'"' in data):
        return ends
    # A line end is outside quotes if the number of quotes before it is even; a doubled quote counts as two.
    marks = np.flatnonzero(view == _QUOTE)
    outside: npt.NDArray[np.int64] = ends[np.searchsorted(marks, ends) % 2 == quoted]
    return outside


def _cut(
    data: bytes, ends: npt.NDArray[np.int64], line: int, end: int, *, quotes: bool, blanks: bool
) -> tuple[Lines, int]:
    """Return the records that end at ``ends``, and the number of the line after them.

    The first record begins in line number ``line``.
    """
    starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    numbers, after = _line_numbers(data, starts, ends, line, end, quotes=quotes)
    view = np.frombuffer(data, np.uint8)
    ends = ends - ((ends > starts) & (view[np.maximum(ends - 1, 0)] == _RETURN))
    if not blanks:
        kept = ends > starts
        starts, ends, numbers = starts[kept], ends[kept], numbers[kept]
    return Lines(data, starts, ends, numbers), after


def _line_numbers(
    data: bytes, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], line: int, end: int, *, quotes: bool
) -> tuple[npt.NDArray[np.int64], int]:
    if not quotes:
        return np.arange(line, line + len(starts), dtype=np.int64), line + len(starts)
    newlines = np.flatnonzero(np.frombuffer(data, np.uint8) == end)
    numbers = line + np.searchsorted(newlines, starts)
    return numbers, line + int(np.searchsorted(newlines, int(ends[-1]) + 1))


def from_offset(blocks: Iterator[Lines], offset: int) -> Iterator[tuple[Lines, int]]:
    """Yield the records from number ``offset``, with the number of the first of them."""
    first = 0
    for block in blocks:
        end = first + len(block)
        if end > offset:
            yield block.tail(max(0, offset - first)), max(first, offset)
        first = end


def rejected(name: str, lines: Lines, row: int, first: int, reason: str, *, reject: bool) -> Rejected:
    """Return the record of a row as rejected; ``first`` is the number of row 0. Or raise BadRecordError for it."""
    line, text = int(lines.lines[row]), lines.text(row)
    if not reject:
        raise BadRecordError(f"{name}, line {line}: {reason}: {text[:SHOWN]!r}") from None
    return Rejected(first + row, line, reason, text)


@dataclass(frozen=True, slots=True)
class LineReader:
    """Reader of the chunks of one file of lines."""

    name: str
    parse: Callable[[Lines], tuple[pa.RecordBatch, dict[int, str]]]
    """Returns the valid records, and the reasons to reject the others, by row."""
    reject: bool
    """If True, malformed records are returned as rejected; otherwise they raise BadRecordError."""

    def chunks(self, blocks: Iterator[Lines], offset: int) -> Iterator[Chunk]:
        """Yield the records from number ``offset``."""
        for lines, first in from_offset(blocks, offset):
            batch, reasons = self.parse(lines)
            bad = tuple(
                rejected(self.name, lines, row, first, reasons[row], reject=self.reject) for row in sorted(reasons)
            )
            yield Chunk(batch, first, len(lines), bad, len(lines.joined()))


def reason_of(error: Exception) -> str:
    """Return the text of an error, without positions within a block, and without the text of the row."""
    return _ROW.sub(r"\1", _PLACE.sub("", str(error).partition("\n")[0])).strip()
