"""Avro: schemas of every kind, events of the writer's read with the writer's or another schema."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final

from pravega_serde.avro import AvroSerializer
from tests.fuzz._target import Format, Target

__all__ = ["FORMAT"]

_SIZE: Final = (1 << 20) - 64


def _varint(number: int) -> bytes:
    """As Avro writes it: zigzag, seven bits a byte."""
    value, out = (number << 1) ^ (number >> 63), bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _record(name: str, /, **fields: Any) -> dict[str, Any]:
    entries = [{"name": field, **(kind if "default" in kind else {"type": kind})} for field, kind in fields.items()]
    return {"type": "record", "name": name, "fields": entries}


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _map(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


def _logical(kind: Any, name: str, **more: Any) -> dict[str, Any]:
    return {**(kind if isinstance(kind, dict) else {"type": kind}), "logicalType": name, **more}


_MILLIS: Final = _logical("long", "timestamp-millis")
_SENSOR: Final = _record(
    "Sensor", id="long", name="string", temp="double", count="int", ok="boolean", ts=_MILLIS, place=["null", "string"]
)
_SENSOR_READ: Final = _record(
    "Sensor",
    ts=_MILLIS,
    count="double",
    unit={"type": "string", "default": "C"},
    tags={"type": _array("int"), "default": [1, 2]},
    id=["null", "long"],
    place=["string", "null"],
)
_COLOUR: Final = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN", "BLUE"]}
_KEY: Final = {"type": "fixed", "name": "Key", "size": 5}
_INNER: Final = _record("Inner", x="int", colour="Colour")
_NESTED: Final = _record(
    "Nested",
    colour=_COLOUR,
    key=_KEY,
    inner=_INNER,
    items=_array("Inner"),
    counts=_map("long"),
    grid=_array(_array("int")),
    lists=_map(_array("string")),
    any=["null", "int", "string", "Inner", _array("double"), _map("boolean"), "bytes"],
    either=_array(["long", "string"]),
)
_SCALARS: Final = _record(
    "Scalars",
    data="bytes",
    price=_logical("bytes", "decimal", precision=12, scale=3),
    cost=_logical({"type": "fixed", "name": "Cost", "size": 6}, "decimal", precision=10, scale=2),
    id=_logical("string", "uuid"),
    day=_logical("int", "date"),
    at=_logical("int", "time-millis"),
    then=_logical("long", "time-micros"),
    seen=_logical("long", "timestamp-micros"),
    local=_logical("long", "local-timestamp-millis"),
    ratio="float",
    days=_array(_logical("int", "date")),
)
_LIST: Final = _record("List", value="int", next=["null", "List"])
_TREE: Final = _record("Tree", name="string", children=_array("Tree"), by_name=_map("Tree"))
_NOTHING: Final = _record("Nothing")
_EMPTY: Final = _record(
    "Empty", nulls=_array("null"), nothings=_array(_NOTHING), by_name=_map("null"), nested=_array(_array("null"))
)


def _sensor(source: random.Random) -> Any:
    return {
        "id": source.randrange(-(2**63), 2**63) >> source.randrange(64),
        "name": source.choice(["", "sensor-1", "ü€😀", "a longer name " * 6]),
        "temp": source.choice([0.5, -1e300, float("inf")]),
        "count": source.randrange(-100, 100),
        "ok": source.random() < 0.5,
        "ts": datetime(2024, 1, 1, 12, source.randrange(60), tzinfo=UTC),
        "place": source.choice([None, "here"]),
    }


def _nested(source: random.Random) -> Any:
    inner = {"x": source.randrange(-300, 300), "colour": source.choice(["RED", "BLUE"])}
    return {
        "colour": source.choice(["RED", "GREEN", "BLUE"]),
        "key": source.randbytes(5),
        "inner": inner,
        "items": [inner] * source.randrange(4),
        "counts": {f"k{n}": n << n for n in range(source.randrange(4))},
        "grid": [[n] * n for n in range(source.randrange(4))],
        "lists": {"a": ["x", "yy"], "b": []} if source.random() < 0.5 else {},
        "any": source.choice([None, 5, "text", inner, [0.5, 1.5], {"k": True}, b"raw"]),
        "either": [1, "two", 3][: source.randrange(4)],
    }


def _scalars(source: random.Random) -> Any:
    return {
        "data": source.randbytes(source.randrange(6)),
        "price": Decimal(source.randrange(-(10**11), 10**11)).scaleb(-3),
        "cost": Decimal(source.randrange(-(10**9), 10**9)).scaleb(-2),
        "id": uuid.UUID(int=source.getrandbits(128)),
        "day": date(source.randrange(1, 9999), 2, 28),
        "at": time(12, 30, 1, 5000),
        "then": time(23, 59, 59, 999_999),
        "seen": datetime(source.randrange(1, 9999), 2, 28, tzinfo=UTC),
        "local": datetime(source.randrange(1, 9999), 2, 28),
        "ratio": 0.25,
        "days": [date(2024, 2, 29)] * source.randrange(3),
    }


def _list(source: random.Random) -> Any:
    value = None
    for number in range(source.choice((1, 2, 5, 150))):
        value = {"value": number, "next": value}
    return value


def _tree(source: random.Random, depth: int = 3) -> Any:
    children = [_tree(source, depth - 1) for _ in range(source.randrange(3 if depth else 1))]
    return {"name": "n", "children": children, "by_name": {"c": children[0]} if children else {}}


def _empty(source: random.Random) -> Any:
    count = source.choice((0, 1, 3, 900))
    nulls = [None] * count
    return {"nulls": nulls, "nothings": [{}] * count, "by_name": {"a": None}, "nested": [nulls, nulls]}


def _events(schema: Any, make: Callable[[random.Random], Any]) -> list[bytes]:
    source, serializer = random.Random(1), AvroSerializer(schema)
    return [serializer.serialize(make(source)) for _ in range(60)]


def _target(name: str, schema: Any, make: Callable[[random.Random], Any], *, reader: Any = None, **more: Any) -> Target:
    serializer = AvroSerializer(schema, reader_schema=reader)
    return Target(name=name, serializer=serializer, corpus=_events(schema, make), **more)


def _bomb(name: str, schema: Any, event: Callable[[], bytes], *, reader: Any = None, columns: bool = True) -> Target:
    serializer = AvroSerializer(schema, reader_schema=reader)
    return Target(name=name, serializer=serializer, corpus=[], bombs={name: event}, columns=columns)


def _filled(item: bytes, *, negative: bool = False) -> bytes:
    """An array with as many of an item as fit."""
    count = _SIZE // len(item)
    head = _varint(-count) + _varint(count * len(item)) if negative else _varint(count)
    return head + item * count + b"\0"


def _blocks(item: bytes) -> bytes:
    """An array with as many blocks of one item as fit."""
    return (b"\2" + item) * (_SIZE // (len(item) + 1)) + b"\0"


def _keys(value: bytes) -> bytes:
    entries = [_varint(len(key)) + key + value for key in (b"%x" % n for n in range(_SIZE // (7 + len(value))))]
    return _varint(len(entries)) + b"".join(entries) + b"\0"


def _wide(count: int, kind: Any, name: str = "Wide") -> Any:
    return _record(name, **{f"f{n}": kind for n in range(count)})


def _boxes(depth: int) -> Any:
    """A record in a record in a record ... of one byte in all."""
    kind: Any = "boolean"
    for level in range(depth):
        kind = _record(f"Box{level}", inside=kind)
    return kind


_DATE: Final = _logical("int", "date")
_DECIMAL: Final = _logical("bytes", "decimal", precision=9, scale=2)
_POINT: Final = _record("Point", x="boolean")
_DEFAULTS: Final = _record("Point", **{f"f{n}": {"type": "long", "default": n} for n in range(100)})
_LISTS: Final = _record("Point", **{f"f{n}": {"type": _array("long"), "default": [n] * 100} for n in range(5)})


def _bombs() -> list[Target]:
    """Each with its own schema."""
    tree = b"\0" + b"\2\0" * 100_000
    return [
        _bomb("booleans", _array("boolean"), lambda: _filled(b"\1")),
        _bomb("booleans, sized", _array("boolean"), lambda: _filled(b"\1", negative=True)),
        _bomb("booleans, one a block", _array("boolean"), lambda: _blocks(b"\1")),
        _bomb("longs", _array("long"), lambda: _filled(_varint(300))),
        _bomb("doubles", _array("double"), lambda: _filled(b"\1" * 8)),
        _bomb("strings", _array("string"), lambda: _filled(b"\0")),
        _bomb("letters", _array("string"), lambda: _filled(b"\4\xc3\xbc")),
        _bomb("bytes", _array("bytes"), lambda: _filled(b"\4ab")),
        _bomb("dates", _array(_DATE), lambda: _filled(b"\2")),
        _bomb("timestamps", _array(_MILLIS), lambda: _filled(b"\2")),
        _bomb("decimals", _array(_DECIMAL), lambda: _filled(b"\2\1")),
        _bomb("long decimal", _DECIMAL, lambda: _varint(_SIZE) + b"\1" * _SIZE),
        _bomb("empty lists", _array(_array("int")), lambda: _filled(b"\0")),
        _bomb("lists of empty lists", _array(_array(_array("int"))), lambda: _filled(b"\2\0\0")),
        _bomb("empty maps", _array(_map("int")), lambda: _filled(b"\0")),
        _bomb("keys", _map("int"), lambda: _keys(b"\0")),
        _bomb("one key", _map("int"), lambda: _filled(b"\2k\0")),
        _bomb("keys of lists", _map(_array("int")), lambda: _keys(b"\0")),
        _bomb("records of a byte", _array(_POINT), lambda: _filled(b"\1")),
        _bomb("boxes of a byte", _array(_boxes(20)), lambda: _filled(b"\1")),
        _bomb("defaults", _array(_POINT), lambda: _filled(b"\1"), reader=_array(_DEFAULTS)),
        _bomb("lists by default", _array(_POINT), lambda: _filled(b"\1"), reader=_array(_LISTS)),
        _bomb("members", _array(["null", _POINT, _record("Other", x="int")]), lambda: _filled(b"\2\1")),
        _bomb("wide and null", _array(_wide(100, "null")), lambda: _varint(1 << 40) + b"\0"),
        _bomb("wide and null, less", _array(_wide(1000, "null")), lambda: _varint(60_000) + b"\0"),
        _bomb("wide unions", _array(_wide(50, ["null", "long"])), lambda: _filled(b"\0" * 50)),
        _bomb("nulls", _array("null"), lambda: _varint((1 << 63) - 1) + b"\0"),
        _bomb("nulls, sized", _array("null"), lambda: _varint(-(1 << 62)) + _varint(0) + b"\0"),
        _bomb("nulls, the least count", _array("null"), lambda: _varint(-(1 << 63)) + _varint(0) + b"\0"),
        _bomb("nulls in blocks", _array("null"), lambda: _varint(1 << 15) * (_SIZE // 3) + b"\0"),
        _bomb("nulls in lists", _array(_array("null")), lambda: _filled(_varint(1 << 12) + b"\0")),
        _bomb("nothings", _array(_NOTHING), lambda: _varint(1 << 31) + b"\0"),
        _bomb("nothings, as many as are believed", _array(_NOTHING), lambda: _varint(65_536) + b"\0"),
        _bomb("nothing at all", _array(_array(_NOTHING)), lambda: _filled(b"\2\0")),
        _bomb("null unions", _array(["null", "long"]), lambda: _filled(b"\0")),
        _bomb("huge text", "string", lambda: _varint(1 << 62) + b"x"),
        _bomb("negative text", "string", lambda: _varint(-5) + b"x" * 9),
        _bomb("long number", "long", lambda: b"\xff" * _SIZE + b"\0"),
        _bomb("zeros", "long", lambda: b"\2" + b"\0" * _SIZE),
        _bomb("empty blocks", _array("int"), lambda: _varint(-1) * (_SIZE // 2)),
        _bomb("list in a list in a list", _LIST, lambda: b"\2\2" * (_SIZE // 2), columns=False),
        _bomb("tree in a tree", _TREE, lambda: tree, columns=False),
        _bomb("forest", _TREE, lambda: b"\0" + _filled(b"\0\0\0") + b"\0", columns=False),
        _bomb("nested lists", _nest(60), lambda: b"\2" * _SIZE),
        _bomb("nested lists, many", _nest(30), lambda: _filled(b"\2" * 29 + b"\0" * 30)),
    ]


def _nest(depth: int) -> Any:
    kind: Any = "int"
    for _ in range(depth):
        kind = _array(kind)
    return kind


def _format() -> Format:
    return Format(
        targets=[
            # Python's times end with the year 9999.
            _target("sensor", _SENSOR, _sensor, smaller_in_python="outside the range of Python's", rewritten=True),
            _target(
                "sensor, resolved",
                _SENSOR,
                _sensor,
                reader=_SENSOR_READ,
                smaller_in_python="outside the range of Python's",
            ),
            _target("nested", _NESTED, _nested, rewritten=True),
            _target("scalars", _SCALARS, _scalars, smaller_in_python="outside the range of Python's", rewritten=True),
            _target("list", _LIST, _list, columns=False),
            _target("tree", _TREE, _tree, columns=False),
            _target("empty", _EMPTY, _empty, rewritten=True),
            *_bombs(),
        ],
        tokens=_TOKENS,
    )


_COUNTS: Final[Sequence[int]] = (
    -1,
    -2,
    -3,
    -64,
    63,
    64,
    127,
    300,
    1 << 16,
    (1 << 16) + 1,
    1 << 20,
    1 << 31,
    -(1 << 31),
)
_LONGS: Final[Sequence[int]] = (1 << 62, (1 << 63) - 1, -(1 << 62), -(1 << 63))
_TOKENS: Final = [
    *map(_varint, (*range(5), *_COUNTS, *_LONGS)),
    *(b"\xff" * 9 + b"\1", b"\xff" * 10, b"\x80\0", b"\x80" * 9 + b"\2", b"\xf0\x7f", b"\xff\xff\xff\xff", b"\0" * 8),
    *(b"\2\0", b"\1\2", b"\xc3", b"\xed\xa0\x80", b"\0\0\0\0\0\0\xf8\x7f", b"\0\0\0\0\0\0\xf0\xff"),
]

FORMAT: Final = _format()
