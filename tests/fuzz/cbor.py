"""CBOR: any value as a row, and as columns."""

from __future__ import annotations

import random
import struct
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import cbor2
import pyarrow as pa

from pravega_serde.cbor import CborSerializer
from tests.fuzz._target import Format, self_describing

__all__ = ["FORMAT"]

_SIZE: Final = (1 << 20) - 64

_FLAT: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("temp", pa.float64()),
        ("count", pa.int32()),
        ("ok", pa.bool_()),
        ("place", pa.struct([("x", pa.float32()), ("label", pa.string())])),
    ]
)
_NESTED: Final = pa.schema(
    [
        ("id", pa.uint64()),
        ("tags", pa.list_(pa.string())),
        ("points", pa.list_(pa.struct([("x", pa.float64()), ("y", pa.int16()), ("z", pa.struct([("u", pa.int8())]))]))),
        ("by_name", pa.map_(pa.string(), pa.list_(pa.int64()))),
        ("by_number", pa.map_(pa.int64(), pa.string())),
        ("deep", pa.list_(pa.list_(pa.list_(pa.int8())))),
    ]
)
_SCALARS: Final = pa.schema(
    [
        ("price", pa.decimal128(20, 4)),
        ("data", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("seen", pa.timestamp("us", "UTC")),
        ("prices", pa.list_(pa.decimal128(9, 2))),
        ("key", pa.string()),
        ("nothing", pa.null()),
    ]
)


def _flat(source: random.Random) -> Any:
    place = {"x": source.randrange(100) / 4, "label": source.choice(["", "here", 'q"\\', "ü€😀"])}
    names = ["sensor-1", "ü", None, "a longer name of a sensor, of forty letters"]
    return {
        "id": source.randrange(-(10**12), 10**12),
        "name": source.choice(names),
        "temp": source.choice([1.5, -2.25e300, 0.1, 3, -0.0, 1e22, float("nan")]),
        "count": source.randrange(1000),
        "ok": source.random() < 0.5,
        "place": source.choice([place, place, None]),
        **source.choice([{}, {}, {"more": [cbor2.CBORTag(32, "http://x"), cbor2.undefined, {"a": {1: b"x"}}]}]),
    }


def _nested(source: random.Random) -> Any:
    return {
        "id": source.randrange(2**64),
        "tags": ["a", None, "ü"][: source.randrange(4)],
        "points": [{"x": 0.5, "y": n, "z": None} for n in range(source.randrange(4))],
        "by_name": {f"k{n}": [n] * n for n in range(source.randrange(4))},
        "by_number": {n * 300: str(n) for n in range(source.choice([0, 0, 3]))},
        "deep": [[[1], []], [], None][: source.randrange(4)],
    }


def _scalars(source: random.Random) -> Any:
    decimals = [1, "12.5", "99999999.9999", "-0.0001", "1E+3"]
    return {
        "price": source.choice([*map(Decimal, decimals), 7, None]),
        "data": source.randbytes(source.randrange(9)),
        "day": source.choice([date(2024, 2, 29), cbor2.CBORTag(100, -700), [2024, 2, 29], "9999-12-31"]),
        "at": source.choice(
            ["2024-02-29T12:00:00", [2024, 2, 29, 12, 30], [2024, 2, 29, 1, 2, 3, 4000], 1_700_000_000_000]
        ),
        "seen": source.choice(
            [
                datetime(2024, 2, 29, 12, tzinfo=UTC),
                datetime(2024, 2, 29, 12, 0, 0, 5, tzinfo=UTC),
                cbor2.CBORTag(1, 1363896240.5),
                cbor2.CBORTag(1, 1363896240),
                Decimal("1700000000.123456789"),
                1_700_000_000_000,
            ]
        ),
        "prices": [Decimal(1), Decimal("2.5"), 100][: source.randrange(4)],
        "key": source.choice([uuid.UUID(int=source.randrange(2**128)), "text"]),
        "nothing": None,
    }


def _events(make: Callable[[random.Random], Any]) -> list[bytes]:
    source = random.Random(1)
    plain = [cbor2.dumps(make(source)) for _ in range(50)]
    canonical = [cbor2.dumps(make(source), canonical=True) for _ in range(15)]
    # Maps and arrays without lengths are what Jackson writes.
    return plain + canonical + [cbor2.dumps(make(source), indefinite_containers=True) for _ in range(30)]


def _values() -> list[bytes]:
    values: list[Any] = [
        0,
        -1,
        1 << 80,
        -(1 << 70),
        1.5,
        "",
        "ü",
        b"x",
        [],
        {},
        [1, [2]],
        {1: 2, b"k": "v"},
        True,
        None,
    ]
    values += [Decimal("1.50"), uuid.UUID(int=7), date(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC), cbor2.undefined]
    values += [cbor2.CBORSimpleValue(16), cbor2.CBORTag(32, "x"), cbor2.CBORTag(1, 1.5), cbor2.CBORTag(100, 5)]
    texts = [
        "5f42010243030405ff",
        "7f657374726561646d696e67ff",
        "9f018202039f0405ffff",
        "f90001",
        "fa47c35000",
        "d9d9f700",
    ]
    return [*map(cbor2.dumps, values), *map(bytes.fromhex, texts)]


def _filled(item: bytes, before: bytes = b"\x9f", after: bytes = b"\xff") -> bytes:
    return before + item * ((_SIZE - len(before) - len(after)) // len(item)) + after


def _many_keys(key: Callable[[int], bytes]) -> bytes:
    members: list[bytes] = []
    size = 2
    while size < _SIZE - 64:
        members.append(key(len(members)) + b"\xf6")
        size += len(members[-1])
    return b"\xbf" + b"".join(members) + b"\xff"


def _text(number: int) -> bytes:
    text = str(number).encode()
    return bytes([0x60 + len(text)]) + text


def _bignum(number: int) -> bytes:
    digits = number.to_bytes(24, "big")
    return b"\xc2\x58\x18" + digits


def _deep(head: bytes, end: bytes = b"\x00") -> bytes:
    return head * ((_SIZE - 8) // len(head)) + end


def _to_the_limit(head: bytes, end: bytes, tail: bytes = b"") -> bytes:
    return _filled(head * 390 + end + tail * 390)


_BOMBS: Final[Mapping[str, Callable[[], bytes]]] = {
    "nested arrays": lambda: _deep(b"\x81"),
    "nested arrays without length": lambda: _deep(b"\x9f"),
    "nested maps": lambda: _deep(b"\xa1\x60"),
    "nested tags": lambda: _deep(b"\xc6"),
    "nested shared values": lambda: _deep(b"\xd8\x1c"),
    "arrays to the limit, often": lambda: _to_the_limit(b"\x81", b"\x80"),
    "arrays without length to the limit, often": lambda: _to_the_limit(b"\x9f", b"", b"\xff"),
    "maps to the limit, often": lambda: _to_the_limit(b"\xa1\x60", b"\xa0"),
    "tags to the limit, often": lambda: _to_the_limit(b"\xc6", b"\x00"),
    "empty arrays": lambda: _filled(b"\x80"),
    "arrays of one": lambda: _filled(b"\x81\x80"),
    "empty maps": lambda: _filled(b"\xa0"),
    "small maps": lambda: _filled(b"\xa1\x60\x00"),
    "maps in maps": lambda: _filled(b"\xa1\x60\xa0"),
    "nulls": lambda: _filled(b"\xf6"),
    "undefined": lambda: _filled(b"\xf7"),
    "simple values": lambda: _filled(b"\xe0"),
    "numbers": lambda: _filled(b"\x00"),
    "numbers of three bytes": lambda: _filled(b"\x19\xff\xff"),
    "half floats": lambda: _filled(b"\xf9\x3c\x01"),
    "empty texts": lambda: _filled(b"\x60"),
    "texts of two": lambda: _filled(b"\x62ab"),
    "byte strings of one": lambda: _filled(b"\x41a"),
    "byte strings of two": lambda: _filled(b"\x42ab"),
    "one astral letter": lambda: b"\x7a" + struct.pack(">I", _SIZE) + b"a" * (_SIZE - 4) + "😀".encode(),
    "a text of pieces": lambda: _filled(b"\x61a", b"\x7f"),
    "a text of empty pieces": lambda: _filled(b"\x60", b"\x7f"),
    "a byte string of pieces": lambda: _filled(b"\x41a", b"\x5f"),
    "many keys": lambda: _many_keys(_text),
    "one key": lambda: _many_keys(lambda _: b"\x61k"),
    "numbers as keys": lambda: _many_keys(lambda n: b"\x1a" + struct.pack(">I", n)),
    "numbers of nearly one hash as keys": lambda: _many_keys(lambda n: b"\x1b" + struct.pack(">Q", n << 44)),
    "bignums of one hash as keys": lambda: _many_keys(lambda n: _bignum((2**61 - 1) * (n + 1))),
    "arrays as keys": lambda: _many_keys(lambda n: b"\x82\x00\x1a" + struct.pack(">I", n)),
    "maps as keys": lambda: _many_keys(lambda n: b"\xa1\x00\x1a" + struct.pack(">I", n)),
    "floats as keys": lambda: _many_keys(lambda n: b"\xfa" + struct.pack(">f", float(n))),
    "NaN as a key, often": lambda: _many_keys(lambda _: b"\xf9\x7e\x00"),
    "a number as a key, then maps": lambda: b"\xa1\x00" + _filled(b"\xa1\x60\xa0")[:-8] + b"\xff",
    "a number as a key, then texts": lambda: b"\xa1\x00" + _filled(b"\x62ab")[:-8],
    "a bignum": lambda: b"\xc2\x5a" + struct.pack(">I", _SIZE - 8) + b"\xff" * (_SIZE - 8),
    "bignums": lambda: _filled(b"\xc2\x44\xff\xff\xff\xff"),
    "large bignums": lambda: _filled(b"\xc2\x59\x04\x00" + b"\xff" * 1024),
    "decimal of a bignum": lambda: b"\xc4\x82\x00\xc2\x5a" + struct.pack(">I", _SIZE - 16) + b"\xff" * (_SIZE - 16),
    "decimals": lambda: _filled(b"\xc4\x82\x00\x01"),
    "decimals of large exponents": lambda: _filled(b"\xc4\x82\x1b\x0d\xe0\xb6\xb3\xa7\x63\xff\xff\x01"),
    "decimals of large digits": lambda: _filled(b"\xc4\x82\x3a\x7f\xff\xff\xff\xc2\x59\x04\x00" + b"\xff" * 1024),
    "binary fraction": lambda: b"\xc5\x82\x1b\x7f\xff\xff\xff\xff\xff\xff\xff\x01",
    "rational": lambda: b"\xd8\x1e\x82\x01\x00",
    "date-times": lambda: _filled(b"\xc1\x00"),
    "days": lambda: _filled(b"\xd8\x64\x00"),
    "a long date-time": lambda: b"\xc0\x7a" + struct.pack(">I", _SIZE - 8) + b"2" * (_SIZE - 8),
    "a regular expression": lambda: b"\xd8\x23\x7a" + struct.pack(">I", _SIZE - 8) + b"(" * (_SIZE - 8),
    "a nested repetition": lambda: b"\xd8\x23\x78\x1c" + b"((((x{9999}){9999}){9999}){9}",
    "a MIME message": lambda: b"\xd8\x24\x7a" + struct.pack(">I", _SIZE - 9) + b"a:b\n" * ((_SIZE - 9) // 4) + b"a:b",
    "networks": lambda: _filled(b"\xd9\x01\x04\x44\x7f\x00\x00\x01"),
    "sets": lambda: _filled(b"\xd9\x01\x02\x80"),
    "tags": lambda: _filled(b"\xc6\x00"),
    "shared values, doubled": lambda: b"\x9f" + b"".join(_doubled(level) for level in range(60)) + b"\xff",
    "string references": lambda: _filled(b"\xd8\x19\x00", b"\xd9\x01\x00\x9f\x78\x64" + b"x" * 100),
    "text beyond the end": lambda: b"\x7b\x7f\xff\xff\xff\xff\xff\xff\xff" + b"a" * 99,
    "array beyond the end": lambda: b"\x9b\x7f\xff\xff\xff\xff\xff\xff\xff" + b"\x00" * 99,
    "map beyond the end": lambda: b"\xbb\x7f\xff\xff\xff\xff\xff\xff\xff" + b"\x00" * 99,
    "arrays beyond the end": lambda: _deep(b"\x9a\xff\xff\xff\xff"),
    "items behind it": lambda: b"\x00" * _SIZE,
}


def _doubled(level: int) -> bytes:
    return b"\xd8\x1c\x82" + (
        b"\x00\x00" if not level else b"\xd8\x1d\x18" + bytes([level - 1, 0xD8, 0x1D, 0x18, level - 1])
    )


def _in_field(field: str, items: Mapping[str, bytes]) -> dict[str, Callable[[], bytes]]:
    """A field's array with as many items as fit."""
    before = b"\xa1" + _named(field) + b"\x9f"
    return {f"{name} in {field}": (lambda item=item: _filled(item, before)) for name, item in items.items()}


def _named(field: str) -> bytes:
    return bytes([0x60 + len(field)]) + field.encode()


def _format() -> Format:
    deep = _in_field("points", {"empty maps": b"\xa0", "nulls": b"\xf6"}) | _in_field("tags", {"texts": b"\x60"})
    deep |= _in_field("deep", {"empty arrays": b"\x80", "arrays": b"\x81\x80", "nulls": b"\xf6"})
    deep |= {"many keys": lambda: b"\xa1" + _named("by_name") + _many_keys(_text)[:-16] + b"\xff"}
    deep |= {
        "many numbers": lambda: b"\xa1" + _named("by_number") + _many_keys(lambda n: b"\x1a" + struct.pack(">I", n))
    }
    prices = _in_field("prices", {"decimals": b"\xc4\x82\x00\x01", "exponents": b"\xc4\x82\x1a\x7f\xff\xff\xff\x01"})
    digits = b"\x59\x04\x00" + b"\xff" * 1024
    for field in ("price", "at", "seen"):
        prices |= {
            f"small {field}": lambda name=field: b"\xa1" + _named(name) + b"\xc4\x82\x3a\x7f\xff\xff\xff\xc2" + digits,
            f"large {field}": lambda name=field: b"\xa1" + _named(name) + b"\xc4\x82\x1a\x7f\xff\xff\xff\xc2" + digits,
        }
    flat, nested, scalars = _events(_flat), _events(_nested), _events(_scalars)
    typed = {"flat": (_FLAT, flat, _BOMBS), "nested": (_NESTED, nested, deep), "scalars": (_SCALARS, scalars, prices)}
    anything = [*_values(), *flat, *nested, *scalars]
    return Format(targets=self_describing(CborSerializer, anything, _BOMBS, typed), tokens=_TOKENS)


_TOKENS: Final = [
    *(bytes([head]) for head in (0x00, 0x18, 0x1B, 0x20, 0x3B, 0x40, 0x58, 0x5B, 0x5F, 0x60, 0x78, 0x7B, 0x7F)),
    *(bytes([head]) for head in (0x80, 0x81, 0x9B, 0x9F, 0xA0, 0xA1, 0xBB, 0xBF, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4, 0xC5)),
    *(bytes([head]) for head in (0xE0, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFF)),
    *(
        b"\xd8\x19",
        b"\xd8\x1c",
        b"\xd8\x1d",
        b"\xd8\x1e",
        b"\xd8\x23",
        b"\xd8\x24",
        b"\xd8\x25",
        b"\xd8\x64",
        b"\xd9\x01\x00",
    ),
    *(b"\xd9\x01\x02", b"\xd9\x01\x04", b"\xd9\x01\x05", b"\xd9\x03\xec", b"\xd9\xd9\xf7", b"\xda\xff\xff\xff\xff"),
    *(
        b"\x1a\x7f\xff\xff\xff",
        b"\x3b" + b"\xff" * 8,
        b"\x1b" + b"\xff" * 8,
        b"\xf9\x7e\x00",
        b"\xfb\x7f\xf0" + bytes(6),
    ),
    *(
        b"\x83\x19\x07\xe8\x02\x1e",
        b"\x62id",
        b"\xa1\x01\x02",
        b"\xa1\x81\x01\x02",
        b"\x61k",
        b"\x6a2024-02-30",
        b"\xc3\x41\xff",
    ),
    *(
        b"\x742024-02-29T12:00:00Z",
        b"\x742024-02-29T12:00:60Z",
        b"\x540000-00-00T00:00:00Z",
        b"\xc4\x82\x20\x01",
        b"\x40",
    ),
]

FORMAT: Final = _format()
