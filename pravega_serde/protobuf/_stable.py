"""Equal messages as equal bytes: the entries of maps in the order of their keys.

Google's parser keeps maps in an order of its own, another one in every process. It can sort them when it writes, but
by rules that differ between its versions (numbers have been seen descending, and as unsigned ones). So its bytes are
sorted here, as Java's deterministic writer sorts them. Sorting moves entries only within their message, so no length
changes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf.message import EncodeError, Message

from pravega_serde.errors import SerializationError
from pravega_serde.protobuf._numbers import LENGTH
from pravega_serde.protobuf._plan import FieldPlan, MessagePlan, reachable
from pravega_serde.protobuf._required import required_in
from pravega_serde.protobuf._wire import GROUP, MAX_DEPTH, Walker

__all__ = ["StableBytes"]


class StableBytes:
    """Writes messages of a type, each always with the same bytes."""

    __slots__ = ("_any_maps", "_looked_at", "_plan", "_required")

    def __init__(self, plan: MessagePlan) -> None:
        self._plan, self._required = plan, required_in(plan)
        self._looked_at = {inner.name: _with_maps(inner) for inner in reachable(plan)}
        self._any_maps = bool(self._looked_at[plan.name])

    def __call__(self, message: Message) -> bytes:
        """The event of a message; :class:`SerializationError` if a required field is missing."""
        if self._required is not None and (missing := self._required.missing(message)):
            raise SerializationError(f"cannot write as Protobuf: required fields are missing: {missing}")
        try:
            data = message.SerializePartialToString()
        except (EncodeError, ValueError) as error:
            raise SerializationError(f"cannot write as Protobuf: {error}") from error
        return self._sorted(data, 0, len(data), self._plan, 0) if self._any_maps else data

    def _sorted(self, data: bytes, start: int, end: int, plan: MessagePlan, group: int) -> bytes:
        """Part of an event, with all its maps sorted. The entries of a map stand together."""
        looked_at = self._looked_at[plan.name]
        parts: list[bytes] = []
        entries: list[tuple[Any, bytes]] = []
        before, last = start, 0
        for number, wire, value, stop in Walker(data).fields(start, end, depth=MAX_DEPTH, group=group):
            if number != last and entries:
                parts += _in_order(entries)
                entries = []
            last = number
            field = looked_at.get(number)
            if field is None or field.message is None or wire not in (LENGTH, GROUP):
                parts.append(data[before:stop])
            else:
                inner = self._sorted(data, value, stop, field.message, number if wire == GROUP else 0)
                if field.label == "map":
                    entries.append((_key(inner, field.message.fields[0]), data[before:value] + inner))
                else:
                    parts.append(data[before:value] + inner)
            before = stop
        return b"".join([*parts, *_in_order(entries), data[before:end]])


def _with_maps(plan: MessagePlan) -> dict[int, FieldPlan]:
    """Fields that are maps, or have any in them."""
    return {
        field.number: field
        for field in plan.fields
        if (
            field.message is not None
            and any(inner.label == "map" for part in reachable(field.message) for inner in part.fields)
        )
        or field.label == "map"
    }


def _in_order(entries: list[tuple[Any, bytes]]) -> list[bytes]:
    return [entry for _, entry in sorted(entries)]


def _key(entry: bytes, field: FieldPlan) -> Any:
    """The key of an entry, in a form that sorts as the key does."""
    walker = Walker(entry)
    for number, _, start, stop in walker.fields(0, len(entry), depth=MAX_DEPTH):
        if number == 1:
            return entry[start:stop] if field.kind == "string" else _NUMBERS[field.kind](entry[start:stop])
    raise AssertionError("both parts of an entry are always written")


def _varint(data: bytes) -> int:
    return Walker(data).varint(0, len(data))[0]


def _signed(data: bytes) -> int:
    number = _varint(data)
    return number - (1 << 64) if number >> 63 else number


def _zigzag(data: bytes) -> int:
    number = _varint(data)
    return (number >> 1) ^ -(number & 1)


def _fixed(form: str) -> Callable[[bytes], Any]:
    unpack = struct.Struct(form).unpack
    return lambda data: unpack(data)[0]


_NUMBERS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "bool": _varint,
    "fixed32": _fixed("<I"),
    "fixed64": _fixed("<Q"),
    "int32": _signed,
    "int64": _signed,
    "sfixed32": _fixed("<i"),
    "sfixed64": _fixed("<q"),
    "sint32": _zigzag,
    "sint64": _zigzag,
    "uint32": _varint,
    "uint64": _varint,
}
