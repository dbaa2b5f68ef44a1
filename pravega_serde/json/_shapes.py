"""The fastest path: the events of one program look alike.

The first event is taken apart into what is the same in every event of its *shape* (braces, keys, colons, commas) and
the *slots* between, which hold strings, numbers, booleans and nulls. Where each slot ends in all other events follows
from the quotes, which one pass finds; that everything between the slots is the same is checked word by word; and the
slots' values are read all at once. Events of another shape are tried with theirs, a few times.

What has no such shape (arrays, escapes in strings, exponents) is left to the next path. An event is only taken if it is
valid as a whole, so what is taken here is what the plain path would give.
"""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_serde.columnar import Attempt, ByteColumn, FastPath
from pravega_serde.columnar.arrays import SLACK, Int64s
from pravega_serde.errors import DeserializationError
from pravega_serde.json._derive import Deriver, Shape, ShapelessError, type_at
from pravega_serde.json._read_rows import TypedReader
from pravega_serde.json._scalars import FRONT, Bools, Texts
from pravega_serde.json._slots import is_scalar, slot_reader

__all__ = ["shape_reader"]

#: So many shapes are tried on a column; each costs a pass over the rows that are left.
MAX_SHAPES: Final = 8

#: Rows whose temporaries still fit the processor's cache.
_ROWS_AT_ONCE: Final = 16_384

#: An event with more slots than this is read otherwise: each slot costs several passes.
MAX_SLOTS: Final = 200

_QUOTE, _BACKSLASH, _SPACE = 0x22, 0x5C, 0x20


def shape_reader(kind: pa.DataType) -> FastPath | None:
    """The fast path for structs of scalars and of such structs; None for other types."""
    readable = pa.types.is_struct(kind) and kind.num_fields > 0 and _is_readable(kind)
    return _ShapeReader(kind) if readable else None


def _is_readable(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        names = [entry.name for entry in kind]
        return len(set(names)) == len(names) and all(_is_readable(entry.type) for entry in kind)
    if pa.types.is_null(kind):
        return True
    return slot_reader(kind, quoted=True) is not None or slot_reader(kind, quoted=False) is not None


class _ShapeReader:
    """Holds no state but its type: shapes are those of one column."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._plain = TypedReader(kind)

    def __call__(self, column: pa.BinaryArray) -> Attempt:
        shapes: list[Shape] = []
        passes = range(0, len(column), _ROWS_AT_ONCE)
        attempts = [self._attempt(column.slice(start, _ROWS_AT_ONCE), shapes) for start in passes]
        suspects = [attempt.suspects + start for attempt, start in zip(attempts, passes, strict=True)]
        return Attempt(pa.concat_arrays([attempt.values for attempt in attempts]), np.concatenate(suspects))

    def _attempt(self, column: pa.BinaryArray, shapes: list[Shape]) -> Attempt:
        """Read what has one of the shapes known so far, or that of an event which has none of them."""
        try:
            column.cast(pa.string())
        except pa.ArrowInvalid:
            return _gathered([], len(column), self._kind)
        events = _Events(column)
        left = events.candidates
        groups: list[tuple[Int64s, pa.Array]] = []
        for index in range(MAX_SHAPES):
            if not len(left):
                break
            new = index == len(shapes)
            if new:
                shapes.append(self._derive(column[int(left[0])].as_py()))
            rows, values = self._read(events, left, shapes[index])
            if len(rows):
                groups.append((rows, values))
                left = np.setdiff1d(left, rows, assume_unique=True)
            elif new:
                # Not even its own event: the next path's.
                left = left[1:]
        return _gathered(groups, len(column), self._kind)

    def _derive(self, event: bytes) -> Shape:
        """The shape of an event; one that no event has, if it is not valid, or has none."""
        try:
            self._plain(event)
            shape = Deriver(self._kind).derive(event.rstrip(b"\0"))
        # Objects inside objects that nobody wants can be nested deeper than this walk may go.
        except (DeserializationError, ShapelessError, RecursionError):
            return Shape()
        return shape if len(shape.slots) <= MAX_SLOTS else Shape()

    def _read(self, events: _Events, rows: Int64s, shape: Shape) -> tuple[Int64s, Any]:
        rows, slots = events.fit(rows, shape)
        good = np.ones(len(rows), np.bool_)
        values: dict[tuple[int, ...], pa.Array] = {}
        for slot, texts in zip(shape.slots, slots, strict=True):
            if slot.path is None:
                good &= slot.quoted | is_scalar(texts)
                continue
            read = slot_reader(type_at(self._kind, slot.path), quoted=slot.quoted)
            assert read is not None
            try:
                values[slot.path], valid = read(texts)
            except pa.ArrowInvalid:
                return rows[:0], None
            good &= valid
        built = _build(self._kind, (), values, shape.present, len(rows))
        if good.all():
            return rows, built
        return rows[good], built.filter(pa.array(good))


class _Events:
    """A column's bytes, its quotes, and the rows that may have a shape."""

    def __init__(self, column: pa.BinaryArray) -> None:
        opened = ByteColumn.of(column, before=FRONT)
        self.data, self.words = opened.data, opened.words
        self.starts, self.ends = opened.starts, _without_zeros(opened)
        used = self.data[:-SLACK]
        self._quotes = np.flatnonzero(used == _QUOTE)
        self._first_quote, self._quote_count = self._quotes_of_rows()
        plain = self.ends > self.starts
        for wrong in (used == _BACKSLASH, used < _SPACE):
            if wrong[FRONT:].any():
                places = np.flatnonzero(wrong)
                plain &= np.searchsorted(places, self.starts) == np.searchsorted(places, self.ends)
        self.candidates = np.flatnonzero(plain)

    def _quotes_of_rows(self) -> tuple[Int64s, Int64s]:
        """Each row's first quote, as a position among all quotes, and how many it has."""
        rows = len(self.starts)
        each, odd = divmod(len(self._quotes), rows)
        if each and not odd:
            # As many in each row, most likely. If so, each row's first and last one lie inside it.
            square = self._quotes.reshape(rows, each)
            if (square[:, 0] >= self.starts).all() and (square[:, -1] < self.ends).all():
                return np.arange(0, len(self._quotes), each), np.full(rows, each)
        first = np.searchsorted(self._quotes, self.starts)
        return first, np.searchsorted(self._quotes, self.ends) - first

    def fit(self, rows: Int64s, shape: Shape) -> tuple[Int64s, list[Texts]]:
        """The rows that have the shape, and their slots."""
        rows = rows[self._quote_count[rows] == shape.quotes()]
        at, ends, quote = self.starts[rows], self.ends[rows], self._first_quote[rows]
        good = np.ones(len(rows), np.bool_)
        spans: list[tuple[Int64s, Int64s]] = []
        for literal, following in itertools.pairwise(shape.literals):
            good &= self._is_here(at, literal)
            start = at + len(literal)
            quote = quote + literal.count(b'"')
            before_quote = following.find(b'"')
            at = ends - len(following) if before_quote < 0 else self._quotes[quote] - before_quote
            good &= (at >= start) & (at <= ends)
            if not good.all():
                # In rows of another shape the slot may end before it starts, or lie outside: they must not stray.
                start = np.where(good, start, self.starts[rows])
                at = np.where(good, at, start)
            spans.append((start, at))
        good &= self._is_here(at, shape.literals[-1])
        good &= at + len(shape.literals[-1]) == ends
        if good.all():
            return rows, [Texts(self.data, self.words, *span) for span in spans]
        kept = np.flatnonzero(good)
        return rows[kept], [Texts(self.data, self.words, start[kept], end[kept]) for start, end in spans]

    def _is_here(self, at: Int64s, literal: bytes) -> Bools:
        same = at + len(literal) <= len(self.data) - SLACK
        if not same.all():
            at = np.where(same, at, 0)
        for offset in range(0, len(literal), 8):
            part = literal[offset : offset + 8]
            found = self.words[at + offset]
            found &= np.uint64((1 << (8 * len(part))) - 1)
            same &= found == np.uint64(int.from_bytes(part, "little"))
        return same


def _without_zeros(opened: ByteColumn) -> Int64s:
    """Where the events end without the zeros behind them."""
    ends = opened.ends
    if not (opened.data[ends - 1] == 0).any():
        return ends
    filled = np.flatnonzero(opened.data)
    if not len(filled):
        return opened.starts
    last = filled[np.maximum(np.searchsorted(filled, ends) - 1, 0)] + 1
    return np.clip(last, opened.starts, ends)


def _build(
    kind: pa.DataType, path: tuple[int, ...], values: dict[tuple[int, ...], pa.Array], present: set[Any], count: int
) -> pa.Array:
    """The struct at a path; what the shape lacks is null."""
    if not pa.types.is_struct(kind):
        return values[path] if path in values else pa.nulls(count, kind)
    if path not in present:
        return pa.nulls(count, kind)
    if kind.num_fields == 0:
        return pa.array([{}] * count, kind)
    inside = [_build(entry.type, (*path, i), values, present, count) for i, entry in enumerate(kind)]
    return pa.StructArray.from_arrays(inside, fields=list(kind))


def _gathered(groups: list[tuple[Int64s, pa.Array]], count: int, kind: pa.DataType) -> Attempt:
    """The groups' values in their places; the rows of none are suspects."""
    if len(groups) == 1 and len(groups[0][0]) == count:
        return Attempt(groups[0][1], groups[0][0][:0])
    place = np.full(count, -1)
    before = 0
    for rows, _ in groups:
        place[rows] = before + np.arange(len(rows))
        before += len(rows)
    values = pa.concat_arrays([pa.nulls(0, kind), *(values for _, values in groups)])
    return Attempt(values.take(pa.array(place, mask=place < 0)), np.flatnonzero(place < 0))
