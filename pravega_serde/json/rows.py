"""Events read one at a time: msgspec where it is sure, Python's own JSON as the authority on what is valid.

Accepted is what Jackson accepts by default: one value in UTF-8, with or without a byte order mark; no NaN, no comments.
The last of several members of one name counts. Zeros behind the value are ignored, because some of Java's writers pad
with them.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, Final

import msgspec
import pyarrow as pa

from pravega_serde.columnar import MalformedError, MemoryLimit
from pravega_serde.errors import DeserializationError, LimitExceededError
from pravega_serde.json.convert import contains_decimal, converter

__all__ = ["LONG_EVENT", "ObjectLimit", "TypedReader", "is_slow", "parse", "parse_plainly", "strip"]

#: Events up to this many bytes are never slow: msgspec takes some 8 µs for a number near the ends of the range of
#: doubles, Python 0.3 µs, and so short an event has too few of them to matter.
LONG_EVENT: Final = 64 * 1024

_LONG_EXPONENT: Final = re.compile(rb"[eE][+-]?[0-9]{3}")

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_decode: Final = msgspec.json.Decoder().decode


def _refuse_constant(name: str) -> Any:
    raise MalformedError(f"invalid value {name}")


_DECODERS: Final = {
    False: json.JSONDecoder(parse_constant=_refuse_constant),
    True: json.JSONDecoder(parse_constant=_refuse_constant, parse_float=Decimal),
}


def parse(data: bytes) -> Any:
    """Python value of an event. Raises :class:`DeserializationError`."""
    if is_slow(data):
        return parse_plainly(data)
    try:
        return _decode(data)
    # msgspec's errors, and those of Python's strings and numbers: the plain parser decides, and says what is wrong.
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return parse_plainly(data)


def is_slow(data: bytes) -> bool:
    """Whether msgspec could take seconds for an event."""
    return len(data) > LONG_EVENT and _LONG_EXPONENT.search(data) is not None


def parse_plainly(data: bytes, *, decimals: bool = False) -> Any:
    """Value of an event by Python's own JSON; ``decimals`` reads numbers with a fraction or exponent as Decimal."""
    try:
        return _DECODERS[decimals].decode(strip(data).decode())
    except UnicodeDecodeError as error:
        raise DeserializationError(f"not JSON: invalid UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise DeserializationError(f"not JSON: {error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise LimitExceededError("JSON nested beyond the interpreter's recursion limit") from error
    # A number of thousands of digits, or an exponent of as many, which Python refuses; a refused constant.
    except (ArithmeticError, ValueError) as error:
        raise DeserializationError(f"not JSON: {error}") from error


def strip(data: bytes) -> bytes:
    """The event without its byte order mark and trailing zeros."""
    return bytes(data).removeprefix(_BYTE_ORDER_MARK).rstrip(b"\0")


class TypedReader:
    """Read single events as values of an Arrow type: the plain path of columns.

    Members beyond the type are ignored, absent ones are null. Types are strict: a string is not read as a number.
    """

    __slots__ = ("_convert", "_decimals", "_limit")

    def __init__(self, kind: pa.DataType) -> None:
        self._limit = ObjectLimit.of(kind)
        self._convert = converter(kind)
        self._decimals = contains_decimal(kind)

    def __call__(self, data: bytes) -> Any:
        """Value of an event, as ``pa.array`` takes it for the type. Raises :class:`DeserializationError`."""
        value = parse_plainly(data, decimals=self._decimals)
        self._limit.check(data, value)
        try:
            return self._convert(value)
        except MalformedError as error:
            raise error.in_event("value") from error


class ObjectLimit:
    """Limit of the memory of an event's objects, each of which becomes a value of ``weight`` bytes at most.

    ``{}`` is two bytes of JSON. As an item of a list of structs it is a null in each of their columns, so a mebibyte of
    them could become gigabytes.
    """

    __slots__ = ("_weight",)

    def __init__(self, weight: int) -> None:
        self._weight = weight

    @classmethod
    def of(cls, kind: pa.DataType) -> ObjectLimit:
        """Limit for events that are read as an Arrow type."""
        # A struct outside lists and maps comes once, however wide it is: that is the type's own size.
        return cls(_heaviest(kind, repeated=False))

    def concerns(self, size: int) -> bool:
        """Whether an event of so many bytes could exceed the limit: an object has at least its two braces."""
        return size // 2 * self._weight > _ALLOWED.of(size)

    def may_be_exceeded(self, event: bytes) -> bool:
        """Whether the event could exceed the limit by its opening braces, those within strings included."""
        return bool(self._weight) and event.count(b"{") * self._weight > _ALLOWED.of(len(event))

    def check(self, event: bytes, value: Any) -> None:
        """Raise :class:`LimitExceededError` if the parsed ``value`` of ``event`` has too many objects."""
        if self.may_be_exceeded(event) and _objects(value) * self._weight > _ALLOWED.of(len(event)):
            raise _ALLOWED.exceeded(len(event)).in_event("value")


#: Memory that the objects of an event may take.
_ALLOWED: Final = MemoryLimit(per_byte=16, base=16 << 20)

#: Bytes of a tuple, and of one of its places; of a cell of an Arrow column, null or not.
_TUPLE: Final = 56
_PLACE: Final = 8
_CELL: Final = 9


def _heaviest(kind: pa.DataType, *, repeated: bool) -> int:
    """Bytes of the heaviest struct that is an item of a list or map within a type; 0 without such a struct."""
    own = 0
    if pa.types.is_struct(kind) and repeated:
        own = _TUPLE + _PLACE * kind.num_fields + _CELL * _cells(kind)
    inside = repeated or pa.types.is_list(kind) or pa.types.is_map(kind)
    return max([own, *(_heaviest(kind.field(i).type, repeated=inside) for i in range(kind.num_fields))])


def _cells(kind: pa.DataType) -> int:
    if not pa.types.is_struct(kind):
        return 1
    return 1 + sum(_cells(entry.type) for entry in kind)


def _objects(value: Any) -> int:
    """Number of objects in a parsed value."""
    found, waiting = 0, [value]
    while waiting:
        at = waiting.pop()
        if isinstance(at, dict):
            found += 1
            waiting.extend(at.values())
        elif isinstance(at, list):
            waiting.extend(at)
    return found
