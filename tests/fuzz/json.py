"""JSON: any value as a row, and columns by each of the paths."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pravega_serde.json import JsonSerializer
from tests.fuzz._target import Format, self_describing

__all__ = ["FORMAT"]

_VECTORS: Final = Path(__file__).parents[2] / "tests/vectors/text_golden.jsonl"
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
        ("points", pa.list_(pa.struct([("x", pa.float64()), ("y", pa.int16())]))),
        ("by_name", pa.map_(pa.string(), pa.list_(pa.int64()))),
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
    ]
)


def _flat(source: random.Random) -> Any:
    place = {"x": source.randrange(100) / 4, "label": source.choice(["", "here", 'q"\\', "ü€😀"])}
    names = ["sensor-1", "ü", None, "a longer name of a sensor, of forty letters"]
    return {
        "id": source.randrange(-(10**12), 10**12),
        "name": source.choice(names),
        "temp": source.choice([1.5, -2.25e300, 0.1, 3, -0.0, 1e22]),
        "count": source.randrange(1000),
        "ok": source.random() < 0.5,
        "place": source.choice([place, place, None]),
    }


def _nested(source: random.Random) -> Any:
    return {
        "id": source.randrange(2**64),
        "tags": ["a", None, "ü"][: source.randrange(4)],
        "points": [{"x": 0.5, "y": n} for n in range(source.randrange(4))],
        "by_name": {f"k{n}": [n] * n for n in range(source.randrange(4))},
        "deep": [[[1], []], [], None][: source.randrange(4)],
    }


def _scalars(source: random.Random) -> Any:
    return {
        "price": source.choice([1, 12.5, 99999999.9999, -0.0001, None]),
        "data": base64.b64encode(source.randbytes(source.randrange(9))).decode(),
        "day": source.choice(["2024-02-29", "0001-01-01", "9999-12-31", 19_000]),
        "at": source.choice(["2024-02-29T12:00:00", "2024-02-29T12:00:00.123456", 1_700_000_000_000]),
        "seen": source.choice(["2024-02-29T12:00:00Z", "2024-02-29T12:00:00.5+02:00", 1_700_000_000_000]),
        "prices": [1, 2.5, 100.25][: source.randrange(4)],
    }


def _texts(make: Callable[[random.Random], Any]) -> list[bytes]:
    source = random.Random(1)
    tight = [json.dumps(make(source), ensure_ascii=False, separators=(",", ":")).encode() for _ in range(60)]
    return tight + [json.dumps(make(source), indent=source.choice([None, 1])).encode() for _ in range(20)]


def _golden() -> list[bytes]:
    lines = map(json.loads, _VECTORS.read_text().splitlines())
    return [bytes.fromhex(line["hex"]) for line in lines if line["kind"] == "json"]


def _filled(item: str, before: str = "[", after: str = "0]") -> bytes:
    one, ends = item.encode(), (before + after).encode()
    return before.encode() + one * ((_SIZE - len(ends)) // len(one)) + after.encode()


def _many_keys(key: Callable[[int], str]) -> bytes:
    members: list[str] = []
    size = 2
    while size < _SIZE - 64:
        members.append(f"{json.dumps(key(len(members)))}:0")
        size += len(members[-1]) + 1
    return ("{" + ",".join(members) + "}").encode()


_BOMBS: Final[Mapping[str, Callable[[], bytes]]] = {
    "nested arrays": lambda: b"[" * _SIZE,
    "nested and closed arrays": lambda: b"[" * (_SIZE // 2) + b"]" * (_SIZE // 2),
    "arrays to the limit, often": lambda: _filled("[" * 400 + "]" * 400 + ","),
    "nested objects": lambda: b'{"":' * (_SIZE // 4),
    "objects to the limit, often": lambda: _filled('{"":' * 300 + "0" + "}" * 300 + ","),
    "empty arrays": lambda: _filled("[],"),
    "arrays of empty arrays": lambda: _filled("[[]],"),
    "empty objects": lambda: _filled("{},"),
    "small objects": lambda: _filled('{"":0},'),
    "objects in objects": lambda: _filled('{"":{}},'),
    "numbers": lambda: _filled("1,"),
    "floats": lambda: _filled(".5,".replace(".", "0.")),
    "empty strings": lambda: _filled('"",'),
    "two letters": lambda: _filled('"ü€",'),
    "many keys": lambda: _many_keys(str),
    "one key": lambda: _many_keys(lambda _: "k"),
    "keys of one Java hash": lambda: _many_keys(lambda n: "".join("AaBB"[bit * 2 :][:2] for bit in _bits(n))),
    "numbers of one hash as keys": lambda: _many_keys(lambda n: str((2**61 - 1) * n)),
    "digits": lambda: b"1" * _SIZE,
    "digits behind the point": lambda: b"0." + b"1" * (_SIZE - 2),
    "exponent": lambda: b"1e" + b"9" * (_SIZE - 2),
    "exponents": lambda: _filled("1e999999999,"),
    "escapes": lambda: b'"' + b"\\u0041" * (_SIZE // 6 - 1) + b'"',
    "surrogates": lambda: b'"' + b"\\ud83d" * (_SIZE // 6 - 1) + b'"',
    "astral text": lambda: b'"' + "😀".encode() * (_SIZE // 4 - 1) + b'"',
    "one astral letter": lambda: b'"' + b"a" * (_SIZE - 9) + "😀".encode() + b'"',
    "spaces": lambda: b" " * _SIZE,
    "zeros": lambda: b"1" + b"\0" * (_SIZE - 1),
    "zeros in a value": lambda: b'"' + b"\0" * (_SIZE - 1),
}


def _bits(number: int) -> list[int]:
    return [number >> bit & 1 for bit in range(14)]


def _typed_bombs(field: str, item: str) -> Mapping[str, Callable[[], bytes]]:
    """A field's array with as many items as fit, and the plain bombs."""
    return {f"{item} in {field}": lambda: _filled(item + ",", before=f'{{"{field}":[', after=item + "]}")}


def _format() -> Format:
    deep = _typed_bombs("points", "{}") | _typed_bombs("deep", "[]") | _typed_bombs("deep", "[[]]")
    deep |= _typed_bombs("tags", '""') | {"many keys": lambda: b'{"by_name":' + _many_keys(str) + b"}"}
    deep |= {"many lists": lambda: b'{"by_name":' + _many_keys(str).replace(b":0", b":[]")[: _SIZE - 50] + b"}"}
    prices = {"long price": lambda: b'{"price":' + b"1" * (_SIZE - 20) + b"}"} | _typed_bombs("prices", "1e9999")
    flat, nested = _texts(_flat), _texts(_nested)
    typed = {
        "flat": (_FLAT, flat, _BOMBS),
        "nested": (_NESTED, nested, deep),
        "scalars": (_SCALARS, _texts(_scalars), prices),
    }
    return Format(targets=self_describing(JsonSerializer, [*_golden(), *flat, *nested], _BOMBS, typed), tokens=_TOKENS)


_TOKENS: Final = [
    *(b"[", b"]", b"{", b"}", b'"', b":", b",", b"\\", b"null", b"true", b"false", b"NaN", b"Infinity", b"-", b"."),
    *(b"e", b"E+", b"1e999", b"-0", b"00", b"0.", b"1e-400", b"9" * 25, b"9" * 400, b"9223372036854775808", b"\0"),
    *(
        b"\xef\xbb\xbf",
        b"\\u0000",
        b"\\ud800",
        b"\\udc00",
        b"\\x",
        b"\xff",
        b"\xed\xa0\x80",
        b" ",
        b"\n",
        b"\t",
        b"/**/",
    ),
    *(b'"id"', b'"":', b'"id":1,', b"[[", b"]]", b"1e5", b"1.0", b"true1", b'"2024-13-01"', b"99999999999999999"),
]

FORMAT: Final = _format()
