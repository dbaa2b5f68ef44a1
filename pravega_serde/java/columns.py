"""Column reader: reads all events of a column at once, and leaves unusual events to the plain path.

The descriptor at the start of an event has the same bytes in every event of a class, so it is compared, not parsed. The
fields follow in a fixed order, and one NumPy operation moves the cursors of all events past one field. Fast paths exist
for strings, byte arrays, boxes, and flat objects (primitives, strings and boxes).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import Attempt, ByteColumn, FastPath, cut, nothing, number_column, select, text_column
from pravega_serde.java.convert import ColumnType
from pravega_serde.java.jdk_classes import array_descriptor, jdk_descriptor
from pravega_serde.java.model import ClassDescriptor, Field
from pravega_serde.java.protocol import (
    BASE_HANDLE,
    DTYPES,
    SC_WRITE_METHOD,
    STREAM_HEADER,
    TC_ARRAY,
    TC_NULL,
    TC_OBJECT,
    TC_REFERENCE,
    TC_STRING,
)
from pravega_serde.java.types import ARROW
from pravega_serde.java.write_rows import Writer

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

STRING: Final = "Ljava/lang/String;"
BOXES: Final = {f"Ljava/lang/{name};": code for name, code in (
    ("Boolean", "Z"), ("Byte", "B"), ("Character", "C"), ("Double", "D"),
    ("Float", "F"), ("Integer", "I"), ("Long", "J"), ("Short", "S"),
)}  # fmt: skip
_WIDTH: Final = {code: dtype.itemsize for code, dtype in DTYPES.items()}
"""Bytes of a primitive value by its type code."""
_IN_MEMORY: Final = {code: dtype.newbyteorder("=") for code, dtype in DTYPES.items()}


def object_prefix(descriptor: ClassDescriptor, token: int = TC_OBJECT) -> bytes:
    """Return the bytes from the start of a stream to the data of an object (or array, with its token) of that class."""
    writer = Writer()
    writer.write(descriptor)
    return STREAM_HEADER + bytes([token]) + bytes(writer.out[len(STREAM_HEADER) :])


def _matches(column: ByteColumn, at: Int64s, expected: bytes) -> Bools:
    """Return True for each event with these bytes at its cursor, which may be anywhere inside the data."""
    # Eight bytes at a time, as little-endian words. No word exists after the last one: a cursor there compares with
    # other bytes, and the check of the event's end rejects it.
    result = np.ones(len(at), np.bool_)
    last = len(column.words) - 1
    for start in range(0, len(expected), 8):
        piece = expected[start : start + 8]
        mask = (1 << 8 * len(piece)) - 1
        words = column.words[np.minimum(at + start, last)]
        if mask != (1 << 64) - 1:
            words = words & np.uint64(mask)
        result &= words == np.uint64(int.from_bytes(piece, "little"))
    return result


def _numbers_at(column: ByteColumn, at: Int64s, code: str) -> npt.NDArray[Any]:
    """Return the big-endian numbers of one primitive type at the cursors."""
    width = _WIDTH[code]
    # The word at a cursor begins with the number; swapped, the number is its top bytes.
    words = column.words[at].byteswap()
    if width == 8:
        return words.view(_IN_MEMORY[code])
    return (words >> np.uint64(64 - 8 * width)).astype(f"u{width}").view(_IN_MEMORY[code])


def _u16_at(column: ByteColumn, at: Int64s) -> Int64s:
    """Return the big-endian 16-bit numbers at the cursors."""
    return (column.data[at].astype(np.int64) << 8) | column.data[at + 1]


def _u32_at(column: ByteColumn, at: Int64s) -> Int64s:
    """Return the big-endian 32-bit numbers at the cursors."""
    return (_u16_at(column, at) << 16) | _u16_at(column, at + 2)


def _array_of(numbers: npt.NDArray[Any], code: str, bad: Bools) -> pa.Array:
    """Return an Arrow array of primitive values. Chars that are surrogates are marked as malformed."""
    if code == "Z":
        return number_column(numbers != 0)
    if code != "C":
        return number_column(numbers)
    surrogate = (numbers >= 0xD800) & (numbers < 0xE000)
    bad |= surrogate
    return select(_characters(), numbers.astype(np.int64), valid=~surrogate)


@functools.cache
def _characters() -> pa.Array:
    """Return all chars as strings, indexed by code unit.

    Surrogates are empty, because they are not text by themselves.
    """
    return text_column(["" if 0xD800 <= unit < 0xE000 else chr(unit) for unit in range(0x10000)])


def _text_of(column: ByteColumn, starts: Int64s, ends: Int64s, bad: Bools) -> pa.Array:
    """Return strings of slices in modified UTF-8.

    Slices that are not also UTF-8 become empty, and are marked as malformed.
    """
    values = cut(column.data, starts, ends)
    suspicious = _not_utf8(values)
    if suspicious is None:
        return values.view(pa.string())
    # Few rows have such bytes. They become empty here, and are decoded one by one.
    rows = np.unique(np.searchsorted(_ends_of(values), suspicious, side="right"))
    try:
        values = _cut_without(column, starts, ends, bad, rows)
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        # Overlong forms, which Java accepts, or malformed bytes: all rows that are not ASCII are decoded one by one.
        raw = _payload(values)
        rows = np.unique(np.searchsorted(_ends_of(values), np.flatnonzero(raw >= 0x80), side="right"))
        return _cut_without(column, starts, ends, bad, rows).cast(pa.string())


def _cut_without(column: ByteColumn, starts: Int64s, ends: Int64s, bad: Bools, rows: Int64s) -> pa.Array:
    bad[rows] = True
    return cut(column.data, np.where(bad, ends, starts), ends)


def _payload(values: pa.Array) -> npt.NDArray[np.uint8]:
    buffer = values.buffers()[2]
    size = int(_ends_of(values)[-1]) if len(values) else 0
    return np.frombuffer(buffer, np.uint8, size) if size else np.empty(0, np.uint8)


def _ends_of(values: pa.Array) -> npt.NDArray[np.int32]:
    """Return the end offset of each value of a new array."""
    return np.frombuffer(values.buffers()[1], np.int32, len(values), 4)


def _not_utf8(values: pa.Array) -> Int64s | None:
    """Return the positions of bytes with different meanings in modified UTF-8 and UTF-8, or None for pure ASCII."""
    raw = _payload(values)
    if not len(raw) or int(raw.max()) < 0x80:
        return None
    # C0 80 is NUL in modified UTF-8. F0.. begins the four bytes of an astral character, which it does not have.
    odd = (raw == 0xC0) | (raw >= 0xF0)
    odd[:-1] |= (raw[:-1] == 0xED) & (raw[1:] >= 0xA0)  # surrogates; ED before a smaller byte is Korean
    return np.flatnonzero(odd)


_UNKNOWN: Final = -1
"""Handle of a class or string that an event does not have yet."""


class _Walk:
    """Cursors of all events of a column, and the handles that each event has assigned so far."""

    def __init__(self, column: ByteColumn, prefix: bytes, handles: int) -> None:
        self.column = column
        self.good: Bools = (column.ends - column.starts >= len(prefix)) & _matches(column, column.starts, prefix)
        self.at: Int64s = np.where(self.good, column.starts + len(prefix), column.starts)
        self.next_handle: Int64s = np.full(len(column.starts), BASE_HANDLE + handles, np.int64)
        self.classes: dict[str, Int64s] = {}
        self.strings: list[tuple[Int64s, Int64s, Int64s]] = []

    def move(self, size: int | Int64s) -> None:
        """Move all cursors. An event becomes suspect if its cursor leaves it."""
        moved = self.at + size
        self.good &= moved <= self.column.ends
        self.at = np.where(self.good, moved, self.column.starts)

    def require(self, condition: Bools) -> None:
        """Mark the events as suspect for which the condition is false."""
        self.good &= condition
        self.at = np.where(self.good, self.at, self.column.starts)

    def token(self) -> npt.NDArray[np.uint8]:
        """Return the byte at each cursor."""
        return self.column.data[self.at]


@dataclass(frozen=True, slots=True)
class _Slices:
    """String field of all events: starts and ends of its texts, and a mask of nulls."""

    starts: Int64s
    ends: Int64s
    null: Bools


def _walk_string(walk: _Walk) -> _Slices:
    """Move past a string field: a string, null, or a reference to an earlier string field."""
    token = walk.token()
    new, null = token == TC_STRING, token == TC_NULL
    starts = walk.at + 3
    ends = starts + np.where(new, _u16_at(walk.column, walk.at + 1), 0)
    # A repeated string in the same object is a reference (TC_REFERENCE and four bytes of handle).
    referred = token == TC_REFERENCE
    size = np.where(new, ends - walk.at, np.where(null, 1, 5))
    known = new | null
    if referred.any():
        target = _u32_at(walk.column, walk.at + 1)
        for handle, first, last in walk.strings:
            found = referred & (handle == target)
            starts, ends = np.where(found, first, starts), np.where(found, last, ends)
            known |= found
    walk.strings.append((np.where(new, walk.next_handle, _UNKNOWN), starts, ends))
    walk.next_handle = walk.next_handle + new
    walk.require(known)
    walk.move(size)
    return _Slices(starts, ends, null)


def _walk_class(walk: _Walk, descriptor: ClassDescriptor, here: Bools) -> None:
    """Move the events of ``here`` past a class descriptor, which is complete or a reference to its handle."""
    handle = walk.classes.setdefault(descriptor.name, np.full(len(here), _UNKNOWN, np.int64))
    token = walk.token()
    referred = here & (token == TC_REFERENCE)
    whole = here & ~referred
    raw = class_bytes(descriptor)
    matched = np.where(referred, _u32_at(walk.column, walk.at + 1) == handle, _matches(walk.column, walk.at, raw))
    walk.require(~here | matched)
    walk.classes[descriptor.name] = np.where(whole, walk.next_handle, handle)
    walk.next_handle = walk.next_handle + whole
    walk.move(np.where(referred, 5, np.where(whole, len(raw), 0)))
    # Number is the superclass of all numeric boxes, so its handle depends on which of them came first.
    if isinstance(descriptor.super_class, ClassDescriptor):
        _walk_class(walk, descriptor.super_class, whole)
    else:
        walk.require(~whole | (walk.token() == TC_NULL))
        walk.move(whole.astype(np.int64))


@functools.cache
def class_bytes(descriptor: ClassDescriptor) -> bytes:
    """Return the bytes of a class descriptor of primitive fields, up to its superclass."""
    return object_prefix(
        ClassDescriptor(descriptor.name, descriptor.serial_version_uid, descriptor.flags, descriptor.fields)
    )[len(STREAM_HEADER) + 1 : -1]


def _walk_box(walk: _Walk, signature: str) -> tuple[Int64s, Bools]:
    """Move past a box: null, or an object with a class that may be a reference.

    Returns the positions of values, and the nulls.
    """
    token = walk.token()
    null = token == TC_NULL
    here = token == TC_OBJECT
    walk.require(null | here)
    walk.move(1)
    descriptor = jdk_descriptor(signature[1:-1].replace("/", "."))
    assert descriptor is not None
    _walk_class(walk, descriptor, here & walk.good)
    walk.next_handle = walk.next_handle + here
    at = walk.at
    walk.move(np.where(here, _WIDTH[BOXES[signature]], 0))
    return at, null


def _object_path(descriptor: ClassDescriptor, arrow_type: pa.DataType) -> FastPath | None:
    """Return a decoder of flat objects, which have only primitives, strings and boxes.

    Return None if the class is not flat.
    """
    steps = _compile(descriptor, arrow_type)
    if steps is None:
        return None
    writer = Writer()
    writer.write(descriptor)
    handles = writer.handles
    prefix = object_prefix(descriptor)

    def decode(events: pa.BinaryArray) -> Attempt:
        column = ByteColumn.of(events)
        walk = _Walk(column, prefix, handles + 1)
        parts: dict[str, Callable[[Bools], pa.Array]] = {}
        for step in steps:
            step(walk, parts)
        # Bytes after the object are legal but rare. The reader of single events ignores them.
        walk.require(walk.at == column.ends)
        bad = ~walk.good
        children = [parts[each.name](bad) for each in arrow_type]
        return Attempt(pa.StructArray.from_arrays(children, fields=list(arrow_type)), np.flatnonzero(bad))

    return decode


_Step = Callable[[_Walk, dict[str, Callable[[Bools], pa.Array]]], None]


def _compile(descriptor: ClassDescriptor, arrow_type: pa.DataType) -> list[_Step] | None:
    """Return the steps over the fields of a class in stream order.

    Return None if a field is not flat or has another Arrow type.
    """
    names = iter(descriptor.field_names)
    wanted = {each.name: each.type for each in arrow_type} if pa.types.is_struct(arrow_type) else {}
    if not wanted or descriptor.is_external or any(owner.flags & SC_WRITE_METHOD for owner in descriptor.hierarchy):
        return None
    steps: list[_Step] = []
    for owner in descriptor.hierarchy:
        for each in owner.fields:
            name = next(names)
            code = each.type if each.primitive else BOXES.get(each.type)
            natural = pa.string() if each.type == STRING else ARROW[code] if code else None
            if natural is None or wanted.pop(name, natural) != natural:
                return None
            steps.append(_step(name, each, code))
    return None if wanted else steps


def _step(name: str, each: Field, code: str | None) -> _Step:
    if each.primitive:
        return functools.partial(_primitive_step, name, each.type)
    if code is None:
        return functools.partial(_string_step, name)
    return functools.partial(_box_step, name, each.type, code)


def _primitive_step(name: str, code: str, walk: _Walk, parts: dict[str, Callable[[Bools], pa.Array]]) -> None:
    column, at = walk.column, walk.at
    parts[name] = lambda bad: _array_of(_numbers_at(column, at, code), code, bad)
    walk.move(_WIDTH[code])


def _string_step(name: str, walk: _Walk, parts: dict[str, Callable[[Bools], pa.Array]]) -> None:
    column = walk.column
    slices = _walk_string(walk)

    def make(bad: Bools) -> pa.Array:
        empty = bad | slices.null
        ends = np.where(empty, column.ends, slices.ends)
        values = _text_of(column, np.where(empty, column.ends, slices.starts), ends, bad)
        return _with_nulls(values, slices.null)

    parts[name] = make


def _box_step(name: str, box: str, code: str, walk: _Walk, parts: dict[str, Callable[[Bools], pa.Array]]) -> None:
    column = walk.column
    at, null = _walk_box(walk, box)
    parts[name] = lambda bad: _with_nulls(_array_of(_numbers_at(column, at, code), code, bad), null)


def _with_nulls(values: pa.Array, null: Bools) -> pa.Array:
    if not null.any():
        return values
    return pc.if_else(number_column(null), nothing(values.type), values)


def fast_path(kind: ColumnType) -> FastPath | None:
    """Return a decoder of whole columns of a type, or None if events must be read one by one."""
    if isinstance(kind.java_type, ClassDescriptor):
        return _object_path(kind.java_type, kind.arrow_type)
    if kind.java_type == STRING and kind.arrow_type == pa.string():
        return _strings
    if kind.java_type == "[B" and kind.arrow_type == pa.binary():
        return _byte_arrays
    code = BOXES.get(kind.java_type or "")
    if code is None or kind.arrow_type != ARROW[code]:
        return None
    assert kind.java_type is not None
    descriptor = jdk_descriptor(kind.java_type[1:-1].replace("/", "."))
    assert descriptor is not None
    return functools.partial(_boxed, object_prefix(descriptor), code)


def _strings(events: pa.BinaryArray) -> Attempt:
    column = ByteColumn.of(events)
    # The first eight bytes of an event as a little-endian word: AC ED 00 05 74, and two bytes of big-endian length.
    head = column.words[column.starts]
    good = head & np.uint64(0xFFFFFFFFFF) == np.uint64(0x74_0500_EDAC)
    length = (head >> np.uint64(32) & np.uint64(0xFF00) | head >> np.uint64(48) & np.uint64(0xFF)).astype(np.int64)
    good &= column.ends - column.starts == length + 7
    bad = ~good
    values = _text_of(column, np.where(good, column.starts + 7, column.ends), column.ends, bad)
    return Attempt(values, np.flatnonzero(bad))


def _byte_arrays(events: pa.BinaryArray) -> Attempt:
    column = ByteColumn.of(events)
    prefix = object_prefix(array_descriptor("[B"), TC_ARRAY)
    body = column.starts + len(prefix) + 4
    good = (column.ends >= body) & _matches(column, column.starts, prefix)
    safe = np.where(good, body - 4, column.starts)
    good &= _u32_at(column, safe) == column.ends - body
    return Attempt(cut(column.data, np.where(good, body, column.ends), column.ends), np.flatnonzero(~good))


def _boxed(prefix: bytes, code: str, events: pa.BinaryArray) -> Attempt:
    column = ByteColumn.of(events)
    good = (column.ends - column.starts == len(prefix) + _WIDTH[code]) & _matches(column, column.starts, prefix)
    at = np.where(good, column.starts + len(prefix), column.starts)
    bad = ~good
    values = _array_of(_numbers_at(column, at, code), code, bad)
    return Attempt(values, np.flatnonzero(bad))
