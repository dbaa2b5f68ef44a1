"""Random columns of all Arrow types, with edges, and the comparison of their values with what was read."""

from __future__ import annotations

import base64
import math
import random
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

__all__ = ["COLUMNS", "Column", "Moment", "factor_of", "nanos_of", "same", "same_number", "same_time"]

_T: Final = pa.types
_NULLS: Final = 0.1
_EPOCH: Final = date(1970, 1, 1).toordinal()
#: Days and seconds of 0001-01-01 and 9999-12-31.
_DAYS: Final = (1 - _EPOCH, date.max.toordinal() - _EPOCH)
_SECONDS: Final = (_DAYS[0] * 86_400, _DAYS[1] * 86_400 + 86_399)
#: Nanoseconds of each unit of times.
_FACTORS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
#: Avro's decimals of more digits are bytes.
_MOST_DIGITS: Final = 38
_DAY_NANOS: Final = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class Column:
    """Type of a column, and a generator of its values as ``pyarrow.array`` accepts them; times are integers."""

    kind: pa.DataType
    make: Callable[[random.Random], Any]

    def values(self, rng: random.Random, rows: int) -> list[Any]:
        """Return random values, some of them None."""
        return [None if rng.random() < _NULLS else self.make(rng) for _ in range(rows)]


# ---- values ----

_TEXTS: Final = (
    *(
        "tea",
        "",
        "NA",
        "NaN",
        "null",
        "None",
        "true",
        "007",
        "+44123",
        "0x1A",
        "1E5",
        "7E400",
        "1.50",
        "-0",
        "1e5",
        " ",
    ),
    *(
        'a"b',
        '"',
        "x,y",
        "x;y\tz",
        "ü☕😀",
        "\U0010ffff",
        "\ufeffx",
        "\u2028",
        "  blank ",
        "'",
        "\\",
        "\\u0041",
        "{}",
        "[1]",
    ),
    *("2026-05-01", "2026-05-01T12:00:00Z", "9007199254740993", "1234567890123456789012345", "0.1", ".5", "1.", "-"),
)
_CONTROLS: Final = ("a\nb", "a\r\nb", "a\rb", "\x00", "\x01\x1f\x7f", "\x85")


def _text(rng: random.Random) -> str:
    if rng.random() < 0.02:
        return "long☕" * rng.randrange(1_000, 4_000)
    return rng.choice(_TEXTS)


def _controls(rng: random.Random) -> str:
    return rng.choice(_CONTROLS) if rng.random() < 0.5 else _text(rng)


def _blob(rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice([0, 1, 2, 3, 16, 300]))


def _integer(low: int, high: int) -> Callable[[random.Random], int]:
    edges = [low, high, 0, 1, -1, 2**31, 2**53, 2**63, -(2**53), -(2**31)]

    def make(rng: random.Random) -> int:
        edge = rng.choice(edges) + rng.randint(-2, 2)
        return max(low, min(high, edge if rng.random() < 0.5 else rng.randint(low, high) >> rng.randrange(64)))

    return make


_DOUBLES: Final = (0.0, -0.0, 0.1, 1e300, 5e-324, 2.2250738585072014e-308, 2.0**53 + 2, 1e22, 1e-5, 123456789.125)
_SPECIAL: Final = (math.nan, math.inf, -math.inf)


def _finite(rng: random.Random) -> float:
    return rng.choice([rng.random(), rng.uniform(-1e6, 1e6), rng.choice(_DOUBLES), round(rng.uniform(-100, 100), 2)])


def _double(rng: random.Random) -> float:
    return rng.choice(_SPECIAL) if rng.random() < 0.05 else _finite(rng)


def _narrow(kind: type[np.floating]) -> Callable[[random.Random], Any]:
    return lambda rng: kind(rng.choice([rng.random(), rng.uniform(-1e4, 1e4), 0.1, -0.0, 65504.0, *_SPECIAL]))


def _decimal(precision: int, scale: int) -> Callable[[random.Random], Decimal]:
    def make(rng: random.Random) -> Decimal:
        digits = rng.choice([0, 1, precision // 2, precision - 1, precision])
        number = rng.choice([10**digits - 1, rng.randrange(10**digits)])
        return Decimal(rng.choice([1, -1]) * number).scaleb(-scale, Context(prec=precision))

    return make


def _between(low: int, high: int) -> Callable[[random.Random], int]:
    return lambda rng: rng.choice([low, high, -1, 0, 1, rng.randint(low, high), rng.randint(low // 50, high // 50)])


def _time(unit: str) -> Callable[[random.Random], int]:
    low, high = _between_of(unit)
    steps = 10**9 // _FACTORS[unit]

    def make(rng: random.Random) -> int:
        value = _between(low, high)(rng)
        return value // steps * steps if rng.random() < 0.3 else value

    return make


def _between_of(unit: str) -> tuple[int, int]:
    if unit == "ns":
        return -(2**63) + 1, 2**63 - 1
    per = 10**9 // _FACTORS[unit]
    return _SECONDS[0] * per, _SECONDS[1] * per + per - 1


def _whole_micros(make: Callable[[random.Random], int]) -> Callable[[random.Random], int]:
    return lambda rng: make(rng) // 1000 * 1000


def _of_day(unit: str) -> Callable[[random.Random], int]:
    end = _DAY_NANOS // _FACTORS[unit]
    return lambda rng: rng.choice([0, end - 1, rng.randrange(end)])


_SCALARS: Final[Mapping[str, Column]] = {
    **{
        f"{sign}int{bits}": Column(
            getattr(pa, f"{sign}int{bits}")(), _integer(0 if sign else -(1 << bits - 1), (1 << bits - (not sign)) - 1)
        )
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    "small": Column(pa.int64(), lambda rng: rng.randint(-(10**6), 10**6)),
    "float16": Column(pa.float16(), _narrow(np.float16)),
    "float32": Column(pa.float32(), _narrow(np.float32)),
    "double": Column(pa.float64(), _double),
    "finite": Column(pa.float64(), _finite),
    "money": Column(pa.decimal128(20, 4), _decimal(20, 4)),
    "wide": Column(pa.decimal128(38, 0), _decimal(38, 0)),
    "fraction": Column(pa.decimal128(38, 38), _decimal(38, 38)),
    "decimal76": Column(pa.decimal256(76, 0), _decimal(76, 0)),
    "decimal76_30": Column(pa.decimal256(76, 30), _decimal(76, 30)),
    "flag": Column(pa.bool_(), lambda rng: rng.random() < 0.5),
    "text": Column(pa.string(), _text),
    "controls": Column(pa.string(), _controls),
    "large_text": Column(pa.large_string(), _text),
    "code": Column(pa.string(), lambda rng: rng.choice(["01", "+44", "0x1A", "7E400", "1.50", "-0", "1e5"])),
    "bytes": Column(pa.binary(), _blob),
    "large_bytes": Column(pa.large_binary(), _blob),
    "fixed": Column(pa.binary(8), lambda rng: rng.randbytes(8)),
    "day": Column(pa.date32(), _between(*_DAYS)),
    "day_millis": Column(pa.date64(), lambda rng: _between(*_DAYS)(rng) * 86_400_000),
    "time_s": Column(pa.time32("s"), _of_day("s")),
    "time_ms": Column(pa.time32("ms"), _of_day("ms")),
    "time_us": Column(pa.time64("us"), _of_day("us")),
    "time_ns": Column(pa.time64("ns"), _of_day("ns")),
    **{f"local_{unit}": Column(pa.timestamp(unit), _time(unit)) for unit in _FACTORS},
    **{f"instant_{unit}": Column(pa.timestamp(unit, "UTC"), _time(unit)) for unit in _FACTORS},
    "micros_in_ns": Column(pa.timestamp("ns"), _whole_micros(_time("ns"))),
    # pandas crashes for years that its nanoseconds do not have.
    "berlin": Column(pa.timestamp("us", "Europe/Berlin"), _between(-9 * 10**15, 9 * 10**15)),
    **{f"span_{unit}": Column(pa.duration(unit), _integer(-(10**15), 10**15)) for unit in _FACTORS},
    "dictionary": Column(pa.dictionary(pa.int32(), pa.string()), lambda rng: rng.choice(["a", "b", "", "ü"])),
    "uuid": Column(pa.uuid(), lambda rng: rng.randbytes(16)),
    "nothing": Column(pa.null(), lambda _: None),
}


def _items(inner: Column, limit: int = 4) -> Callable[[random.Random], list[Any]]:
    return lambda rng: inner.values(rng, rng.randrange(limit))


def _full(inner: Column) -> Callable[[random.Random], list[Any]]:
    return lambda rng: [inner.make(rng) for _ in range(rng.randrange(4))]


def _struct(names: Sequence[str]) -> Column:
    parts = {f"f{at}": _SCALARS[name] for at, name in enumerate(names)}

    def make(rng: random.Random) -> dict[str, Any]:
        return {name: None if rng.random() < _NULLS else part.make(rng) for name, part in parts.items()}

    return Column(pa.struct([(name, part.kind) for name, part in parts.items()]), make)


def _map(key: Column, value: Column) -> Column:
    def make(rng: random.Random) -> list[tuple[Any, Any]]:
        keys = {key.make(rng) for _ in range(rng.randrange(4))}
        return [(each, None if rng.random() < _NULLS else value.make(rng)) for each in keys]

    return Column(pa.map_(key.kind, value.kind), make)


_DEEP: Final = _struct(["int64", "text", "instant_us", "money", "bytes"])
_TEXT_LIST: Final = Column(pa.list_(pa.string()), _items(_SCALARS["text"]))
_NESTED: Final[Mapping[str, Column]] = {
    **{
        f"list<{name}>": Column(pa.list_(_SCALARS[name].kind), _items(_SCALARS[name]))
        for name in ("int64", "double", "text", "bytes", "money", "instant_us", "uuid")
    },
    # Protobuf has no null items.
    **{
        f"full list<{name}>": Column(pa.list_(_SCALARS[name].kind), _full(_SCALARS[name]))
        for name in ("int64", "double", "text", "bytes", "money", "day", "instant_us", "time_us", "flag", "uuid")
    },
    "large_list": Column(pa.large_list(pa.int64()), _items(_SCALARS["int64"])),
    "fixed_list": Column(pa.list_(pa.int64(), 3), lambda rng: _SCALARS["int64"].values(rng, 3)),
    "struct": _DEEP,
    "list<struct>": Column(pa.list_(_DEEP.kind), _items(_DEEP)),
    "list<list>": Column(
        pa.list_(pa.list_(pa.string())), _items(Column(pa.list_(pa.string()), _items(_SCALARS["text"])))
    ),
    "map<text, int64>": _map(_SCALARS["text"], _SCALARS["int64"]),
    "map<text, struct>": _map(_SCALARS["text"], _DEEP),
    "map<int64, text>": _map(_SCALARS["small"], _SCALARS["text"]),
}
#: All columns, by name.
COLUMNS: Final[Mapping[str, Column]] = {**_SCALARS, **_NESTED}


# ---- comparison ----


@dataclass(frozen=True, slots=True)
class Moment:
    """Time, date or duration as nanoseconds, as formats with such types have it."""

    nanos: int


_TIME: Final = re.compile(
    r"(?:(?P<y>[-+]?\d{4,6})-(?P<m>\d\d)-(?P<d>\d\d))?"
    r"(?:(?:^|[ T])(?P<H>\d\d):(?P<M>\d\d)(?::(?P<S>\d\d)(?:\.(?P<f>\d{1,9}))?)?)?(?P<z>Z|[-+]\d\d:?(?:\d\d)?)?"
)


def _parsed(text: str) -> tuple[int, bool] | None:
    """Return the nanoseconds of a time, and True if it has a zone."""
    found = _TIME.fullmatch(text)
    if found is None or not text:
        return None
    days = 0
    if found["y"]:
        year = int(found["y"])
        if not 1 <= year <= 9999:
            return None
        days = date(year, int(found["m"]), int(found["d"])).toordinal() - _EPOCH
    seconds = int(found["H"] or 0) * 3600 + int(found["M"] or 0) * 60 + int(found["S"] or 0)
    zone = found["z"]
    if zone and zone != "Z":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        offset = (int(digits[:2]) * 60 + int(digits[2:])) * 60
        seconds -= offset if zone[0] == "+" else -offset
    return (days * 86_400 + seconds) * 10**9 + int((found["f"] or "").ljust(9, "0") or 0), zone is not None


def same_time(one: str, other: str) -> bool:
    """Return True if two texts are the same time, with or without a zone."""
    first = _parsed(one)
    return first is not None and first == _parsed(other)


def nanos_of(text: str) -> int | None:
    """Return the nanoseconds of a text that is a time, since 1970 or midnight."""
    found = _parsed(text)
    return None if found is None else found[0]


def same_number(number: Decimal | float, found: Any) -> bool:
    """Return True if a value, or its text, is a number with the same digits and sign.

    The texts of a double in Python and Java may differ, such as ``5e-324`` and ``4.9E-324``.
    """
    if type(found) is bool or not isinstance(found, int | float | Decimal | str):
        return False
    try:
        one, other = (Decimal(repr(each) if isinstance(each, float) else each) for each in (number, found))
    except ArithmeticError:
        return False
    if one.is_nan() or other.is_nan():
        return one.is_nan() and other.is_nan()
    equal = one == other or (Decimal(repr(float(one))) == one and float(one) == float(other))
    return equal and one.is_signed() == other.is_signed()


def same(kind: pa.DataType, value: Any, found: Any) -> bool:
    """Return True if what was read is a value of this type, or its text."""
    if isinstance(kind, pa.BaseExtensionType):
        if isinstance(found, str):
            return found == str(uuid.UUID(bytes=value))
        return same(kind.storage_type, value, found)
    if _T.is_dictionary(kind):
        return same(kind.value_type, value, found)
    if value is None:
        return found is None
    return next(check for fits, check in _CHECKS if fits(kind))(kind, value, found)


def _same_float(kind: pa.DataType, value: Any, found: Any) -> bool:
    if isinstance(found, bool | bytes) or found is None:
        return False
    number = np.dtype(kind.to_pandas_dtype()).type(found)
    return bool(
        (number == value and math.copysign(1, number) == math.copysign(1, value))
        or (number != number and value != value)
    )


_DECIMAL: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?(E[-+]?[0-9]+)?")


def _same_decimal(kind: pa.DataType, value: Decimal, found: Any) -> bool:
    if kind.precision > _MOST_DIGITS and isinstance(found, str) and not _DECIMAL.fullmatch(found):
        found = base64.b64decode(found, validate=True)
    if isinstance(found, bytes):
        return Decimal(int.from_bytes(found, signed=True)).scaleb(-kind.scale, Context(prec=80)) == value
    return not isinstance(found, bool | None) and Decimal(repr(found) if isinstance(found, float) else found) == value


def _same_bytes(_: pa.DataType, value: bytes, found: Any) -> bool:
    return bool(found == value or (isinstance(found, str) and base64.b64decode(found, validate=True) == value))


def factor_of(kind: pa.DataType) -> int:
    """Return the nanoseconds of 1 in a column of dates, times or durations."""
    if _T.is_date(kind):
        return _DAY_NANOS if _T.is_date32(kind) else _FACTORS["ms"]
    return _FACTORS[kind.unit]


def _same_moment(kind: pa.DataType, value: int, found: Any) -> bool:
    zoned = _T.is_timestamp(kind) and kind.tz is not None
    nanos = value * factor_of(kind)
    if isinstance(found, Moment):
        return found.nanos == nanos
    if isinstance(found, str) and not re.fullmatch(r"-?\d+", found):
        return _parsed(found) == (nanos, zoned)
    if isinstance(found, bytes | bool | float | None) or _T.is_date(kind) or zoned:
        return False
    # Times of day and durations may be integers of their unit, of milliseconds or of microseconds.
    return nanos in (int(found) * _FACTORS[unit] for unit in {kind.unit, "ms", "us"})


def _same_list(kind: pa.DataType, value: list[Any], found: Any) -> bool:
    if not isinstance(found, list) or len(found) != len(value):
        return False
    return all(same(kind.value_type, one, other) for one, other in zip(value, found, strict=True))


def _same_struct(kind: pa.DataType, value: Mapping[str, Any], found: Any) -> bool:
    if not isinstance(found, Mapping) or not set(found) <= {entry.name for entry in kind}:
        return False
    return all(same(entry.type, value[entry.name], found.get(entry.name)) for entry in kind)


def _same_map(kind: pa.DataType, value: list[tuple[Any, Any]], found: Any) -> bool:
    entries = found.items() if isinstance(found, Mapping) else [_entry(each) for each in found]
    pairs = {str(key): item for key, item in entries}
    # A column of objects has all names; some are null.
    there = {str(key) for key, item in value if item is not None}
    return there == {key for key, item in pairs.items() if item is not None} and all(
        same(kind.item_type, item, pairs.get(str(key))) for key, item in value
    )


def _entry(entry: Any) -> tuple[Any, Any]:
    return (entry["key"], entry["value"]) if isinstance(entry, Mapping) else entry


_CHECKS: Final[Sequence[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, Any, Any], bool]]]] = (
    (_T.is_boolean, lambda _, value, found: found is value or found == str(value).lower()),
    (_T.is_integer, lambda _, value, found: type(found) is not bool and (found == value or found == str(value))),
    (_T.is_floating, _same_float),
    (_T.is_decimal, _same_decimal),
    (lambda kind: _T.is_string(kind) or _T.is_large_string(kind), lambda _, value, found: found == value),
    (lambda kind: _T.is_binary(kind) or _T.is_large_binary(kind) or _T.is_fixed_size_binary(kind), _same_bytes),
    (_T.is_struct, _same_struct),
    (_T.is_map, _same_map),
    (_T.is_nested, _same_list),
    (lambda _: True, _same_moment),
)
