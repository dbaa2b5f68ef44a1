"""A walk over an event's bytes, to say what is wrong with them, where padding begins, or what they would take.

Events are read by Google's parser; this is for those that it refuses, and for large ones of types that can expand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from pravega_serde.columnar import MalformedError
from pravega_serde.protobuf._cursor import LONGEST_LENGTH
from pravega_serde.protobuf._numbers import FIXED32, FIXED64, LENGTH, NUMBERS, VARINT
from pravega_serde.protobuf._plan import FieldPlan, MessagePlan

__all__ = ["GROUP", "MAX_DEPTH", "TooDeepError", "Walker", "padding_start", "walk"]

#: Messages in messages; protobuf-java's ``DEFAULT_RECURSION_LIMIT`` and Google's parser have the same.
MAX_DEPTH: Final = 100

GROUP, _END_GROUP = 3, 4
_SIZES: Final = {FIXED32: 4, FIXED64: 8}

#: Called with a message, or with the field of packed enum values, and its size.
Visit = Callable[[MessagePlan | FieldPlan, int], None]


class TooDeepError(MalformedError):
    """Messages nested beyond the limit."""


def padding_start(data: bytes) -> int:
    """Where the zeros begin that some of Java's writers put behind a message; its end, if there are none.

    A field's tag is never 0, so the first one that is ends the message.
    """
    return max((end for *_, end in Walker(data).fields(0, len(data), depth=MAX_DEPTH)), default=0)


def walk(data: bytes, plan: MessagePlan, visit: Visit | None = None, *, texts: bool = False) -> None:
    """Go through an event; :class:`MalformedError` at the first byte that is wrong.

    With ``texts``, a string that is not UTF-8 is wrong.
    """
    Walker(data, visit, texts=texts).message(plan, 0, len(data), depth=MAX_DEPTH)


class Walker:
    __slots__ = ("_data", "_texts", "_visit")

    def __init__(self, data: bytes, visit: Visit | None = None, *, texts: bool = False) -> None:
        self._data, self._visit, self._texts = data, visit, texts

    def message(self, plan: MessagePlan, position: int, end: int, *, depth: int, group: int = 0) -> None:
        """Everything in a message; in a group, up to the end tag of that number."""
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
            raise MalformedError(f"{end - position} bytes of packed numbers of {_SIZES[wire]} bytes each")

    def fields(self, position: int, end: int, *, depth: int, group: int = 0) -> Iterator[tuple[int, int, int, int]]:
        """Number, wire type, start and end of each field; at the top, zeros may follow the last one."""
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
                raise MalformedError(f"{number} is no field number (byte {position})")
            start, position = self._value(number, wire, start, end, depth=depth)
            yield number, wire, start, position

    def _value(self, number: int, wire: int, position: int, end: int, *, depth: int) -> tuple[int, int]:
        """Where a field's value starts and ends."""
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
        what = "the end of a group that did not start" if wire == _END_GROUP else f"the wire type {wire}, which is none"
        raise MalformedError(f"field {number} has {what} (byte {position - 1})")

    def _group(self, number: int, position: int, end: int, *, depth: int) -> int:
        """Behind the end tag of a group that starts here."""
        _deeper(depth)
        while position < end:
            tag, start = self.varint(position, end)
            if tag == number << 3 | _END_GROUP:
                return start
            if tag >> 3 == 0:
                raise MalformedError(f"0 is no field number (byte {position})")
            position = self._value(tag >> 3, tag & 7, start, end, depth=depth - 1)[1]
        raise MalformedError(f"the group of field {number} does not end")

    def varint(self, position: int, end: int) -> tuple[int, int]:
        """A number, and where it ends."""
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
                raise MalformedError(f"a number of more than ten bytes (byte {first})")
        raise MalformedError(f"the event ends inside a number (byte {first})")


def _short(size: int, position: int) -> None:
    if size > LONGEST_LENGTH:
        raise MalformedError(f"a tag or length of {size} bytes, more than {LONGEST_LENGTH} (byte {position})")


def _deeper(depth: int) -> None:
    if depth <= 0:
        raise TooDeepError(f"messages nested more than {MAX_DEPTH} levels deep")


def _text(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise MalformedError(f"a string that is not UTF-8: {error.reason} at its byte {error.start}") from error


def _end(position: int, length: int, end: int) -> int:
    if length > end - position:
        raise MalformedError(f"{length} bytes announced at byte {position}, and only {end - position} left")
    return position + length
