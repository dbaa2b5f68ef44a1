"""Events read one at a time.

| CBOR | Python |
|---|---|
| integer, bignum (tags 2, 3) of up to 1024 bytes | int |
| float of 2, 4 or 8 bytes | float |
| text, byte string | str, bytes |
| true, false, null | bool, None |
| array; map | list; dict, whose keys are texts, byte strings or integers |
| decimal fraction (tag 4) | Decimal |
| date-time (tags 0, 1); date (tags 100, 1004) | datetime with its zone; date |
| UUID (tag 37) | UUID |
| another tag, a simple value, undefined | cbor2's CBORTag, CBORSimpleValue, undefined |

A tag stays a CBORTag if its content is invalid, or exceeds Python's types. The content of an event never causes
anything else to be built or called. The tags of references are refused, because a few bytes could represent any other
part of the event.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import cbor2
import pyarrow as pa

from pravega_serde.cbor.convert import converter
from pravega_serde.cbor.scan import MAX_DEPTH, REFERENCES, check, check_cost
from pravega_serde.columnar import MalformedError
from pravega_serde.columnar.inference import RowInference
from pravega_serde.columnar.limits import ItemLimit
from pravega_serde.columnar.parsed import EXACT
from pravega_serde.errors import DeserializationError

#: Bytes of a bignum: some 2,400 digits, which Python still writes as text.
_MAX_BIGNUM: Final = 1024

#: Number that ends each event for cbor2, which does not report where it stopped. No event has it: it is created for
#: this process. It is not a string, since an event could leave a string open that the next event ends.
_MARK: Final = b"\x1b" + os.urandom(8)
_END: Final = int.from_bytes(_MARK[1:], "big")

#: Head of an array of two.
_PAIR: Final = b"\x82"

_Read = Callable[[Any, bool], Any]


def parse(data: bytes) -> Any:
    """Return the Python value of an event. Raise :class:`DeserializationError` for an invalid one."""
    return _parse(bytes(data), _ROWS)


class Inference(RowInference):
    """Inference of columns from CBOR events."""

    def __init__(self) -> None:
        super().__init__(parse)


def _parse(data: bytes, tags: _Tags) -> Any:
    try:
        check_cost(data)
        try:
            value, end = _load(_PAIR + data + _MARK, tags)
            if end == _END:
                return value
        except cbor2.CBORDecodeError:
            pass
        check(data)
        # All keys are integers, bytes and texts here; an attacker cannot make many of them with the same hash.
        return _load(data, tags, strict=False)
    except MalformedError as error:
        raise error.in_event("CBOR") from error
    except cbor2.CBORDecodeError as error:
        raise DeserializationError(f"invalid CBOR: {error}"[:300]) from error


def _load(data: bytes, tags: _Tags, *, strict: bool = True) -> Any:
    return cbor2.loads(
        data,
        semantic_decoders=tags,
        max_depth=MAX_DEPTH + 1,
        allow_duplicate_keys=False,
        strict_hashable_types=strict,
    )


#: Tags that are few enough to be kept.
_OFTEN: Final = 1024


class _Tags(dict[int, _Read]):
    """Readers of the content of each tag; ``other`` returns the reader of any other tag."""

    def __init__(self, known: dict[int, _Read], other: Callable[[int], _Read]) -> None:
        super().__init__(known)
        self._other = other

    def __missing__(self, tag: int) -> _Read:
        read = self._other(tag)
        if tag < _OFTEN:
            self[tag] = read
        return read


def _refuse(tag: int) -> _Read:
    def refuse(value: Any, immutable: bool) -> Any:
        raise cbor2.CBORDecodeError(f"tag {tag} ({REFERENCES[tag]}) is not supported")

    return refuse


def _keep(tag: int) -> _Read:
    return lambda value, immutable: cbor2.CBORTag(tag, value)


def _content(tag: int) -> _Read:
    # Immutable values are in the key of a map, where no tag is read. A tag without content would consume the mark.
    return lambda value, immutable: cbor2.CBORTag(tag, value) if immutable or value == _END else value


def _made(tag: int, make: Callable[[Any], Any]) -> _Read:
    """Return the result of ``make`` for the content, or the tag itself if ``make`` raises."""

    def read(value: Any, immutable: bool) -> Any:
        try:
            return make(value)
        except (ArithmeticError, OSError, TypeError, ValueError):
            return cbor2.CBORTag(tag, value)

    return read


def _natural(value: Any) -> int:
    if type(value) is not bytes or len(value) > _MAX_BIGNUM:
        raise ValueError
    return int.from_bytes(value, "big")


def _decimal(value: Any) -> Decimal:
    exponent, digits = value
    if type(exponent) is not int or type(digits) is not int:
        raise TypeError
    return Decimal(digits).scaleb(exponent, EXACT)


def _date_time(value: Any) -> datetime:
    made = datetime.fromisoformat(value)
    if made.tzinfo is None:
        raise ValueError
    return made


_1970: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _seconds(value: Any) -> datetime:
    if type(value) is not int and (type(value) is not float or not math.isfinite(value)):
        raise TypeError
    return _1970 + timedelta(seconds=value)


def _days(value: Any) -> date:
    if type(value) is not int:
        raise TypeError
    return date(1970, 1, 1) + timedelta(days=value)


def _uuid(value: Any) -> UUID:
    if type(value) is not bytes:
        raise TypeError
    return UUID(bytes=value)


_NUMBERS: Final[dict[int, _Read]] = {tag: _refuse(tag) for tag in REFERENCES} | {
    2: _made(2, _natural),
    3: _made(3, lambda value: -1 - _natural(value)),
    4: _made(4, _decimal),
}
_ROWS: Final = _Tags(
    _NUMBERS
    | {
        0: _made(0, _date_time),
        1: _made(1, _seconds),
        37: _made(37, _uuid),
        100: _made(100, _days),
        1004: _made(1004, date.fromisoformat),
    },
    _keep,
)
_COLUMNS: Final = _Tags(_NUMBERS | {tag: _keep(tag) for tag in (0, 1, 37, 100, 1004)}, _content)


class TypedReader:
    """Reader of single events as values of an Arrow type.

    Entries that the type lacks are ignored, absent ones are null. Types are strict: a text is not read as a number.
    """

    __slots__ = ("_convert", "_limit")

    def __init__(self, kind: pa.DataType) -> None:
        self._convert, self._limit = converter(kind), ItemLimit(kind)

    def __call__(self, data: bytes) -> Any:
        """Return the value of an event, as ``pa.array`` accepts it for the type.

        Raises :class:`DeserializationError`.
        """
        value = _parse(data, _COLUMNS)
        try:
            self._limit.check(len(data), value)
            return self._convert(value)
        except MalformedError as error:
            raise error.in_event("value") from error
