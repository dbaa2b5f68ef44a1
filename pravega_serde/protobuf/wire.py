"""Wire format: numbers and tags in an event, and a walk over its bytes.

Google's parser reads the events. The walk has three uses:

- It finds the fault of events that the parser refuses, and the start of padding.
- It counts the memory for large events of types that can expand.
- It sorts maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_serde.columnar import MalformedError
from pravega_serde.columnar.arrays import UInt64s, number_column
from pravega_serde.columnar.bad_rows import invalid_utf8
from pravega_serde.protobuf.plan import UINT64, FieldPlan, MessagePlan

#: Wire types.
VARINT, FIXED64, LENGTH, GROUP, _END_GROUP, FIXED32 = range(6)

#: Maximum bytes of a length, or a tag; Google's parser accepts no more.
LONGEST_LENGTH: Final = 5

Values = npt.NDArray[Any]

_U: Final = np.uint64


@dataclass(frozen=True, slots=True)
class Number:
    """Kind of number."""

    wire: int
    dtype: type[np.generic]
    decode: Callable[[UInt64s], Values]
    """Values of 64 bits each; bits above a fixed size are arbitrary."""
    to_arrow: Callable[[Values], pa.Array]


def _int32(x: UInt64s) -> Values:
    return x.astype(np.int32)


def _int64(x: UInt64s) -> Values:
    return x.view(np.int64)


def _uint32(x: UInt64s) -> Values:
    return (x & _U(0xFFFFFFFF)).view(np.int64)


def _sint32(x: UInt64s) -> Values:
    low = x.astype(np.uint32)
    return ((low >> np.uint32(1)) ^ (~(low & np.uint32(1)) + np.uint32(1))).view(np.int32)


def _sint64(x: UInt64s) -> Values:
    sign = (x & _U(1)).view(np.int64)
    return (x >> _U(1)).view(np.int64) ^ -sign


def _decimal(values: Values) -> pa.Array:
    """Return unsigned numbers of 64 bits as decimals: two words each, the upper one zero."""
    words = np.zeros((len(values), 2), _U)
    words[:, 0] = values
    return pa.Array.from_buffers(UINT64, len(values), [None, pa.py_buffer(words)])


NUMBERS: Final[Mapping[str, Number]] = {
    "bool": Number(VARINT, np.bool_, lambda x: x != 0, number_column),
    "double": Number(FIXED64, np.float64, lambda x: x.view(np.float64), number_column),
    "enum": Number(VARINT, np.int32, _int32, number_column),
    "fixed32": Number(FIXED32, np.int64, _uint32, number_column),
    "fixed64": Number(FIXED64, np.uint64, lambda x: x, _decimal),
    "float": Number(FIXED32, np.float32, lambda x: x.astype(np.uint32).view(np.float32), number_column),
    "int32": Number(VARINT, np.int32, _int32, number_column),
    "int64": Number(VARINT, np.int64, _int64, number_column),
    "sfixed32": Number(FIXED32, np.int32, _int32, number_column),
    "sfixed64": Number(FIXED64, np.int64, _int64, number_column),
    "sint32": Number(VARINT, np.int32, _sint32, number_column),
    "sint64": Number(VARINT, np.int64, _sint64, number_column),
    "uint32": Number(VARINT, np.int64, _uint32, number_column),
    "uint64": Number(VARINT, np.uint64, lambda x: x, _decimal),
}


@dataclass(frozen=True, slots=True)
class Tag:
    """Number and wire type of a field, as bytes of an event."""

    size: int
    word: int
    mask: int

    @classmethod
    def of(cls, number: int, wire: int) -> Tag:
        """Return the tag in as few bytes as possible."""
        left, word, size = number << 3 | wire, 0, 0
        while left > 0x7F:
            word |= (left & 0x7F | 0x80) << 8 * size
            left >>= 7
            size += 1
        return cls(size + 1, word | left << 8 * size, (1 << 8 * (size + 1)) - 1)

    @property
    def data(self) -> bytes:
        """Return the bytes of the tag."""
        return self.word.to_bytes(self.size, "little")


#: Maximum depth of messages in messages; protobuf-java's ``DEFAULT_RECURSION_LIMIT`` and Google's parser have the same.
MAX_DEPTH: Final = 100

_SIZES: Final = {FIXED32: 4, FIXED64: 8}

#: Called with a message, or with the field of packed enum values, and its size.
Visit = Callable[[MessagePlan | FieldPlan, int], None]


def padding_start(data: bytes) -> int:
    """Return the position of the zeros that some of Java's writers put after a message.

    Return the end of the event if there are none. A field's tag is never 0, so the first zero tag ends the message.
    """
    return max((end for *_, end in Walker(data).fields(0, len(data), depth=MAX_DEPTH)), default=0)


def walk(data: bytes, plan: MessagePlan, visit: Visit | None = None, *, texts: bool = False) -> None:
    """Walk through an event; raise :class:`MalformedError` at the first wrong byte.

    With ``texts``, a string that is not UTF-8 is wrong.
    """
    Walker(data, visit, texts=texts).message(plan, 0, len(data), depth=MAX_DEPTH)


class Walker:
    """Walker through the bytes of an event."""

    __slots__ = ("_data", "_texts", "_visit")

    def __init__(self, data: bytes, visit: Visit | None = None, *, texts: bool = False) -> None:
        self._data, self._visit, self._texts = data, visit, texts

    def message(self, plan: MessagePlan, position: int, end: int, *, depth: int, group: int = 0) -> None:
        """Walk through a message; in a group, up to the end tag of that number."""
        counts: dict[int, int] = {}
        for number, wire, start, stop in self.fields(position, end, depth=depth, group=group):
            field = plan.by_number.get(number)
            if field is None or wire not in (LENGTH, GROUP):
                continue
            counts[number] = counts.get(number, -1) + 1
            try:
                self._check(field, wire, start, stop, depth=depth)
            except MalformedError as error:
                index = f"[{counts[number]}]" if field.label in ("repeated", "map") else ""
                raise error.within(f".{field.name}{index}") from error

    def _check(self, field: FieldPlan, wire: int, start: int, stop: int, *, depth: int) -> None:
        if field.message is not None and (field.kind == "group") == (wire == GROUP):
            if self._visit is not None:
                self._visit(field.message, stop - start)
            _deeper(depth)
            self.message(field.message, start, stop, depth=depth - 1, group=field.number if wire == GROUP else 0)
        elif field.kind == "string" and self._texts:
            _text(self._data[start:stop])
        elif field.label == "repeated" and field.kind in NUMBERS and wire == LENGTH:
            if self._visit is not None and field.enum is not None:
                self._visit(field, stop - start)
            self._packed(start, stop, NUMBERS[field.kind].wire)

    def _packed(self, position: int, end: int, wire: int) -> None:
        if wire == VARINT:
            while position < end:
                _, position = self.varint(position, end)
        elif (end - position) % _SIZES[wire]:
            raise MalformedError(f"invalid packed numbers: {end - position} bytes, {_SIZES[wire]} each")

    def fields(self, position: int, end: int, *, depth: int, group: int = 0) -> Iterator[tuple[int, int, int, int]]:
        """Yield number, wire type, start and end of each field; at the top, zeros may follow the last one."""
        data = self._data
        while position < end:
            if data[position] == 0 and depth == MAX_DEPTH and not data[position:end].strip(b"\0"):
                return
            tag, start = self.varint(position, end)
            number, wire = tag >> 3, tag & 7
            _short(start - position, position)
            if wire == _END_GROUP and number == group:
                return
            if number == 0 or tag >= 1 << 32:
                raise MalformedError(f"invalid field number {number} (byte {position})")
            start, position = self._value(number, wire, start, end, depth=depth)
            yield number, wire, start, position

    def _value(self, number: int, wire: int, position: int, end: int, *, depth: int) -> tuple[int, int]:
        """Return the start and end of a field's value."""
        if wire == VARINT:
            return position, self.varint(position, end)[1]
        if wire == LENGTH:
            length, start = self.varint(position, end)
            _short(start - position, position)
            return start, _end(start, length, end)
        if wire in _SIZES:
            return position, _end(position, _SIZES[wire], end)
        if wire == GROUP:
            return position, self._group(number, position, end, depth=depth)
        what = "end of a group that did not start" if wire == _END_GROUP else f"invalid wire type {wire}"
        raise MalformedError(f"{what} in field {number} (byte {position - 1})")

    def _group(self, number: int, position: int, end: int, *, depth: int) -> int:
        """Return the position after the end tag of a group that starts here."""
        _deeper(depth)
        while position < end:
            tag, start = self.varint(position, end)
            if tag == number << 3 | _END_GROUP:
                return start
            if tag >> 3 == 0:
                raise MalformedError(f"invalid field number 0 (byte {position})")
            position = self._value(tag >> 3, tag & 7, start, end, depth=depth - 1)[1]
        raise MalformedError(f"the group of field {number} does not end")

    def varint(self, position: int, end: int) -> tuple[int, int]:
        """Return the number at a position, and its end."""
        value = shift = 0
        first = position
        while position < end:
            byte = self._data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF, position
            shift += 7
            if shift >= 70:
                raise MalformedError(f"invalid number: more than ten bytes (byte {first})")
        raise MalformedError(f"the event ends inside a number (byte {first})")


def _short(size: int, position: int) -> None:
    if size > LONGEST_LENGTH:
        raise MalformedError(f"invalid tag or length: {size} bytes, more than {LONGEST_LENGTH} (byte {position})")


def _deeper(depth: int) -> None:
    if depth <= 0:
        raise MalformedError(f"messages nested more than {MAX_DEPTH} levels deep", limit=True)


def _text(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise invalid_utf8(error) from error


def _end(position: int, length: int, end: int) -> int:
    if length > end - position:
        raise MalformedError(f"{length} bytes announced at byte {position}, only {end - position} left")
    return position + length
