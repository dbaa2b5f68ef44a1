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
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_serde.columnar import Attempt, ByteColumn, FastPath
from pravega_serde.columnar._bytes import SLACK, Int64s
from pravega_serde.errors import DeserializationError
from pravega_serde.json._read_rows import INT64_MAX, TypedReader, limits, parse_times
from pravega_serde.json._scalars import FRONT, Bools, Texts, booleans, doubles, integers, nulls

__all__ = ["shape_reader"]

#: So many shapes are tried on a column; each costs a pass over the rows that are left.
MAX_SHAPES: Final = 8

#: Rows whose temporaries still fit the processor's cache.
_ROWS_AT_ONCE: Final = 16_384

#: An event with more slots than this is read otherwise: each slot costs several passes.
MAX_SLOTS: Final = 200

_TOKENS: Final = re.compile(rb'"[^"]*"|[{}\[\]:,]|[ \t\r\n]+|[^"{}\[\]:, \t\r\n]+')
_QUOTE, _BACKSLASH, _SPACE = 0x22, 0x5C, 0x20

#: Reads a slot: an Arrow array, and which rows are good.
Read = Callable[[Texts], tuple[pa.Array, Bools]]


@dataclass(frozen=True, slots=True)
class _Slot:
    """A place for a value."""

    path: tuple[int, ...] | None
    """Positions of the fields that lead to it; None if its value is not wanted."""
    quoted: bool


@dataclass(slots=True)
class _Shape:
    """``literals[i]`` stands before ``slots[i]``, and the last one behind all."""

    literals: list[bytes] = field(default_factory=lambda: [b""])
    slots: list[_Slot] = field(default_factory=list)
    present: set[tuple[int, ...]] = field(default_factory=set)
    """The structs that are there (not null)."""

    def add(self, text: bytes) -> None:
        self.literals[-1] += text

    def add_slot(self, slot: _Slot) -> None:
        self.slots.append(slot)
        self.literals.append(b"")

    def quotes(self) -> int:
        return sum(literal.count(b'"') for literal in self.literals)


class _Shapeless(Exception):  # noqa: N818 -- not an error: another path will do
    """The event has something that no shape has."""


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
    return _reader(kind, quoted=True) is not None or _reader(kind, quoted=False) is not None


class _ShapeReader:
    """Holds no state but its type: shapes are those of one column."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._plain = TypedReader(kind)

    def __call__(self, column: pa.BinaryArray) -> Attempt:
        shapes: list[_Shape] = []
        passes = range(0, len(column), _ROWS_AT_ONCE)
        attempts = [self._attempt(column.slice(start, _ROWS_AT_ONCE), shapes) for start in passes]
        suspects = [attempt.suspects + start for attempt, start in zip(attempts, passes, strict=True)]
        return Attempt(pa.concat_arrays([attempt.values for attempt in attempts]), np.concatenate(suspects))

    def _attempt(self, column: pa.BinaryArray, shapes: list[_Shape]) -> Attempt:
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

    def _derive(self, event: bytes) -> _Shape:
        """The shape of an event; one that no event has, if it is not valid, or has none."""
        try:
            self._plain(event)
            shape = _Deriver(self._kind).derive(event.rstrip(b"\0"))
        except (DeserializationError, _Shapeless):
            return _Shape()
        return shape if len(shape.slots) <= MAX_SLOTS else _Shape()

    def _read(self, events: _Events, rows: Int64s, shape: _Shape) -> tuple[Int64s, Any]:
        rows, slots = events.fit(rows, shape)
        good = np.ones(len(rows), np.bool_)
        values: dict[tuple[int, ...], pa.Array] = {}
        for slot, texts in zip(shape.slots, slots, strict=True):
            if slot.path is None:
                good &= slot.quoted | _is_scalar(texts)
                continue
            read = _reader(_type_at(self._kind, slot.path), quoted=slot.quoted)
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

    def fit(self, rows: Int64s, shape: _Shape) -> tuple[Int64s, list[Texts]]:
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


class _Deriver:
    """Takes one valid event apart."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._shape = _Shape()

    def derive(self, event: bytes) -> _Shape:
        tokens = iter(_TOKENS.findall(event))
        self._value(tokens, ())
        for token in tokens:
            self._shape.add(token)
        return self._shape

    def _next(self, tokens: Iterator[bytes]) -> bytes:
        """The next token that is not space; space is part of the shape."""
        for token in tokens:
            if not token.isspace():
                return token
            self._shape.add(token)
        raise _Shapeless

    def _value(self, tokens: Iterator[bytes], path: tuple[int, ...] | None) -> None:
        token = self._next(tokens)
        kind = None if path is None else _type_at(self._kind, path)
        nested = kind is not None and pa.types.is_struct(kind)
        if token == b"[":
            raise _Shapeless
        if token == b"{":
            self._shape.add(token)
            self._object(tokens, path)
        elif token[:1] == b'"':
            self._string(path)
        elif nested or (token == b"null" and (kind is None or _reader(kind, quoted=False) is None)):
            # A null in the place of a string or object makes a shape of its own; it has other quotes.
            self._shape.add(token)
        else:
            self._scalar(path)

    def _object(self, tokens: Iterator[bytes], path: tuple[int, ...] | None) -> None:
        names: set[bytes] = set()
        if path is not None:
            self._shape.present.add(path)
        while (token := self._next(tokens)) != b"}":
            self._shape.add(token)
            if token == b",":
                continue
            if token in names:
                raise _Shapeless
            names.add(token)
            self._shape.add(self._next(tokens))
            self._value(tokens, self._field(path, token[1:-1].decode()))
        self._shape.add(token)

    def _field(self, path: tuple[int, ...] | None, name: str) -> tuple[int, ...] | None:
        if path is None:
            return None
        index = _type_at(self._kind, path).get_field_index(name)
        return None if index < 0 else (*path, index)

    def _string(self, path: tuple[int, ...] | None) -> None:
        if path is not None and _reader(_type_at(self._kind, path), quoted=True) is None:
            raise _Shapeless
        self._shape.add(b'"')
        self._shape.add_slot(_Slot(path, quoted=True))
        self._shape.add(b'"')

    def _scalar(self, path: tuple[int, ...] | None) -> None:
        if path is not None and _reader(_type_at(self._kind, path), quoted=False) is None:
            raise _Shapeless
        self._shape.add_slot(_Slot(path, quoted=False))


def _type_at(kind: pa.DataType, path: tuple[int, ...]) -> pa.DataType:
    for index in path:
        kind = kind.field(index).type
    return kind


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


# Readers of slots


def _reader(kind: pa.DataType, *, quoted: bool) -> Read | None:
    """What reads a slot of a type; None if such a slot is not read here."""
    t = pa.types
    if quoted:
        if t.is_string(kind):
            return _strings
        return (lambda texts: _times(texts, kind)) if t.is_date32(kind) or t.is_timestamp(kind) else None
    if t.is_boolean(kind):
        return _booleans
    if t.is_signed_integer(kind):
        return lambda texts: _integers(texts, kind)
    if t.is_floating(kind):
        return lambda texts: _doubles(texts, kind)
    return _millis(kind) if t.is_timestamp(kind) else None


def _strings(texts: Texts) -> tuple[pa.Array, Bools]:
    binary = texts.cut()
    # The column was valid UTF-8, and quotes are at the borders of characters: no need to look again.
    return binary.view(pa.string()), np.ones(len(binary), np.bool_)


def _times(texts: Texts, kind: pa.DataType) -> tuple[pa.Array, Bools]:
    values = parse_times(_strings(texts)[0], kind)
    return values, np.ones(len(values), np.bool_)


def _nullable(values: npt.NDArray[Any], good: Bools, texts: Texts) -> tuple[pa.Array, Bools]:
    if good.all():
        return pa.array(values), good
    null = nulls(texts)
    return pa.array(values, mask=null), good | null


def _booleans(texts: Texts) -> tuple[pa.Array, Bools]:
    return _nullable(*booleans(texts), texts)


def _integers(texts: Texts, kind: pa.DataType) -> tuple[pa.Array, Bools]:
    values, good = integers(texts)
    low, high = limits(kind)
    good &= (values >= low) & (values <= high)
    return _nullable(values.astype(kind.to_pandas_dtype()), good, texts)


def _doubles(texts: Texts, kind: pa.DataType) -> tuple[pa.Array, Bools]:
    values, good = doubles(texts)
    with np.errstate(over="ignore"):
        return _nullable(values.astype(kind.to_pandas_dtype()), good, texts)


def _millis(kind: pa.DataType) -> Read:
    def read(texts: Texts) -> tuple[pa.Array, Bools]:
        values, good = integers(texts)
        good &= (values <= INT64_MAX // 1000) & (values >= -(INT64_MAX // 1000))
        array, good = _nullable(values * 1000, good, texts)
        return array.view(kind), good

    return read


def _is_scalar(texts: Texts) -> Bools:
    """Which texts are a number, boolean or null: a value that nobody wants must be valid all the same."""
    return doubles(texts)[1] | booleans(texts)[1] | nulls(texts)
