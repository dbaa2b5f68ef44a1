"""Events written one at a time, in a form that any CBOR library reads, Jackson's among them.

| Python | CBOR |
|---|---|
| None, bool, str, bytes, list, tuple | null, true or false, text, byte string, array |
| int | integer; beyond 64 bits a bignum (tags 2, 3) |
| float | eight bytes; NaN and infinities in two |
| Decimal | decimal fraction (tag 4), with all its zeros |
| mapping, dataclass | map; keys are texts, integers, byte strings, the names of enums, the texts of UUIDs |
| Enum | text: its name |
| datetime with its zone | text of an instant (tag 0), in UTC, with Z |
| date; UUID | text of a date (tag 1004); its bytes (tag 37) |
| datetime without zone; time | text in ISO 8601, without a tag: the standard has none; time in microseconds |
| cbor2's CBORTag, CBORSimpleValue, undefined | what they hold |

Deterministic events (RFC 8949, section 4.2) have their floats in as few bytes as hold them, and maps sorted by the
bytes of their keys, shorter ones first.
"""

from __future__ import annotations

import dataclasses
import enum
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

import cbor2
import numpy as np

from pravega_serde.cbor.convert import DATE_TEXT, DATE_TIME
from pravega_serde.cbor.scan import MAX_DEPTH
from pravega_serde.columnar import MalformedError
from pravega_serde.columnar.bad_rows import in_utc, lone_surrogate
from pravega_serde.columnar.parsed import EXACT

#: Arrays, maps and tags inside each other. A decimal number has two levels itself.
_DEEPEST: Final = MAX_DEPTH - 2

#: Types that cbor2 writes as the table says.
_NATURAL: Final = frozenset(
    {type(None), bool, int, float, bytes, Decimal, uuid.UUID, cbor2.CBORSimpleValue, type(cbor2.undefined)}
)
_SCALARS: Final = _NATURAL | {str}
_TEXT: Final = frozenset({str})


def to_cbor(value: Any, *, deterministic: bool = False) -> bytes:
    """Return the event of a value.

    Raises :class:`SerializationError`, with the path of the part without a form in CBOR.
    """
    try:
        return written(prepared(value), deterministic=deterministic)
    except UnicodeEncodeError:
        error = _without_partner(value) or lone_surrogate()
        raise error.in_value("CBOR") from error
    except MalformedError as error:
        raise error.in_value("CBOR") from error


def written(value: Any, *, deterministic: bool) -> bytes:
    """Return the event of a value that has only parts that cbor2 writes correctly."""
    event = cbor2.dumps(value, canonical=deterministic)
    if deterministic or not ((b"\xc2" in event or b"\xc3" in event) and _HIGH_BIGNUM.search(event)):
        return event
    return cbor2.dumps(value, encoders={int: _write_int, Decimal: _write_decimal})


#: Begin of a bignum with its first bit set, which Jackson reads as a negative number. In a text it means nothing.
_HIGH_BIGNUM: Final = re.compile(rb"[\xc2\xc3](?:[\x49-\x57]|\x58.|\x59..)[\x80-\xff]", re.DOTALL)


def _write_int(encoder: cbor2.CBOREncoder, value: int) -> None:
    """Write a bignum with a zero in front if its first bit is set, as Jackson does.

    Other libraries skip the zero.
    """
    if -(1 << 64) <= value < 1 << 64:
        encoder.encode_int(value)
        return
    tag, size = (2, value) if value > 0 else (3, -1 - value)
    encoder.encode_semantic(tag, size.to_bytes(size.bit_length() // 8 + 1, "big"))


def _write_decimal(encoder: cbor2.CBOREncoder, value: Decimal) -> None:
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int):
        encoder.encode_semantic(4, [exponent, int(value.scaleb(-exponent, EXACT))])
    else:
        encoder.encode_decimal(value)


def prepared(value: Any) -> Any:
    """Return the value as cbor2 must write it. Raises MalformedError for a part without a form in CBOR."""
    return _prepared(value, _DEEPEST)


def _prepared(value: Any, depth: int) -> Any:
    """Return the value itself, or one that cbor2 writes as the table says.

    The depth is limited here, because cbor2 accepts any depth until the process ends.
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        return _dict(value, depth)
    if kind is list or kind is tuple:
        return _list(value, depth)
    return _other(value, depth)


def _dict(value: dict[Any, Any], depth: int) -> dict[Any, Any]:
    if not depth:
        raise _too_deep()
    if _TEXT.issuperset(map(type, value)) and _SCALARS.issuperset(map(type, value.values())):
        return value
    made: dict[Any, Any] = {}
    for key, inner in value.items():
        try:
            name = key if type(key) is str else _key(key)
            if name in made:
                raise MalformedError(f"the key {name!r} exists twice")
            made[name] = _prepared(inner, depth - 1)
        except MalformedError as error:
            raise error.within(f".{key}") from error
    return made


def _key(key: Any) -> str | int | bytes:
    if isinstance(key, enum.Enum):
        return key.name
    if isinstance(key, str | uuid.UUID):
        return str(key)
    if isinstance(key, bytes):
        return key
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and -(1 << 64) <= key < 1 << 64:
        return int(key)
    raise MalformedError(f"{key!r} ({type(key).__name__}) cannot be a key")


def _list(value: list[Any] | tuple[Any, ...], depth: int) -> list[Any] | tuple[Any, ...]:
    if not depth:
        raise _too_deep()
    if _SCALARS.issuperset(map(type, value)):
        return value
    made: list[Any] = []
    for index, inner in enumerate(value):
        try:
            made.append(_prepared(inner, depth - 1))
        except MalformedError as error:
            raise error.within(f"[{index}]") from error
    return made


def _too_deep() -> MalformedError:
    return MalformedError(f"nested more than {_DEEPEST} levels deep, or part of itself")


def _tag(value: cbor2.CBORTag, depth: int) -> cbor2.CBORTag:
    if not depth:
        raise _too_deep()
    return cbor2.CBORTag(value.tag, _prepared(value.value, depth - 1))


def _instant(value: datetime) -> Any:
    if value.tzinfo is None:
        return value.isoformat()
    return cbor2.CBORTag(DATE_TIME, f"{in_utc(value).isoformat()}Z")


def _other(value: Any, depth: int) -> Any:
    """Return a replacement for values of other types, their subclasses and similar types."""
    if isinstance(value, enum.Enum):
        return value.name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dict({entry.name: getattr(value, entry.name) for entry in dataclasses.fields(value)}, depth)
    if isinstance(value, Mapping):
        return _dict(dict(value), depth)
    if isinstance(value, cbor2.CBORTag):
        return _tag(value, depth)
    for kind, prepare in _OTHERS:
        if isinstance(value, kind):
            return prepare(value)
    if isinstance(value, list | tuple):
        return _list(value, depth)
    raise MalformedError(f"a {type(value).__name__} is not supported by CBOR")


_OTHERS: Final[list[tuple[Any, Callable[[Any], Any]]]] = [
    (datetime, _instant),
    (date, lambda value: cbor2.CBORTag(DATE_TEXT, value.isoformat())),
    (time, lambda value: value.isoformat(timespec="microseconds")),
    (bytearray | memoryview | bytes, bytes),
    (np.bool_, bool),
    (np.integer | int, int),
    (np.floating | float, float),
    (str, str.__str__),
    (Decimal, Decimal),
    (uuid.UUID, lambda value: uuid.UUID(int=value.int)),
]


def _without_partner(value: Any) -> MalformedError | None:
    """Return the error of the first text in a value that has no UTF-8, with its path."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return lone_surrogate()
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {entry.name: getattr(value, entry.name) for entry in dataclasses.fields(value)}
    steps: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        steps = [(f".{key}", part) for key, item in value.items() for part in (key, item)]
    elif isinstance(value, list | tuple):
        steps = [(f"[{index}]", item) for index, item in enumerate(value)]
    elif isinstance(value, cbor2.CBORTag):
        steps = [("", value.value)]
    found = ((step, _without_partner(part)) for step, part in steps)
    return next((error.within(step) for step, error in found if error is not None), None)
