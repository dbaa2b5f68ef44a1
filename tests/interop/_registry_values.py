"""The value of each type with a number; Java makes the same ones by the same rules (java_registry/Values.java)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

__all__ = ["PULSE", "RICH", "SENSOR", "VALUES", "VERSIONS", "evolved"]

#: In other spellings than Java's: braces around types, other orders of attributes.
SENSOR: Final = {
    "namespace": "com.example.avro",
    "name": "Sensor",
    "type": "record",
    "fields": [
        {"type": {"type": "long"}, "name": "id"},
        {"type": "string", "name": "name"},
        {"type": "double", "name": "temp"},
        {"type": {"type": "int"}, "name": "count"},
        {"type": "boolean", "name": "ok"},
        {"default": None, "type": ["null", {"type": "string"}], "name": "note"},
    ],
}
PULSE: Final = {
    "type": "record",
    "fields": [{"name": "at", "type": "long"}, {"name": "beats", "type": {"items": "int", "type": "array"}}],
    "name": "com.example.avro.Pulse",
}
RICH: Final = {
    "type": "record",
    "name": "com.example.rich.Rich",
    "fields": [
        {"name": "level", "type": {"symbols": ["LOW", "MID", "HIGH"], "type": "enum", "name": "Level"}},
        {"aliases": ["message"], "name": "msg", "default": None, "type": ["null", "string"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
        {"name": "attrs", "type": {"type": "map", "values": "double"}},
        {"name": "digest", "type": {"type": "fixed", "size": 4, "name": "com.example.rich.D4"}},
        {
            "name": "inner",
            "type": {
                "type": "record",
                "namespace": "com.example.rich",
                "name": "Inner",
                "fields": [{"name": "a", "type": "float"}, {"name": "b", "type": ["null", "long", "string"]}],
            },
        },
        {"name": "price", "type": {"logicalType": "decimal", "precision": 10, "scale": 2, "type": "bytes"}},
        {"name": "day", "type": {"logicalType": "date", "type": "int"}},
        {"name": "at", "type": {"logicalType": "timestamp-micros", "type": "long"}},
    ],
    "doc": "all kinds",
}
_A, _B = {"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": "none"}
_C = {"name": "c", "type": "string", "default": "-"}
VERSIONS: Final = [
    {"type": "record", "name": "Evo", "namespace": "com.example", "fields": fields}
    for fields in ([_A, _C], [_A, _C, _B], [{"name": "a", "type": "long"}, _B])
]


def sensor(i: int) -> dict[str, Any]:
    return {
        "id": i * 1_000_003 * (1 if i % 2 == 0 else -1),
        "name": f"sensor-{i}" + ("é😀" if i % 3 == 0 else ""),
        "temp": i * 0.37 - 75,
        "count": i * 7919 % 100_000 - 5000,
        "ok": i % 2 == 0,
        "note": None if i % 5 == 0 else f"n{i}",
    }


def pulse(i: int) -> dict[str, Any]:
    return {"at": 1_700_000_000_000 + i, "beats": [i * beat - 3 for beat in range(i % 4)]}


def rich(i: int) -> dict[str, Any]:
    return {
        "level": ("LOW", "MID", "HIGH")[i % 3],
        "msg": None if i % 2 == 0 else f"msg {i}",
        "tags": [] if i % 4 == 0 else [f"t{i}", "é"],
        "attrs": {f"k{i}": i / 8},
        "digest": bytes((1, 2, i & 0xFF, 255)),
        "inner": {"a": i * 0.5, "b": (None, i * 5_000_000_000, f"b{i}")[i % 3]},
        "price": Decimal(i * 101 - 5000).scaleb(-2),
        "day": date(1970, 1, 1) + timedelta(days=i - 1000),
        "at": datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=i * 1_000_000_007),
    }


def version(i: int) -> dict[str, Any]:
    value: dict[str, Any] = {"a": i * 10_000_000_000 if i % 3 == 2 else i * 3}
    if i % 3 != 2:
        value["c"] = f"c{i}"
    if i % 3 != 0:
        value["b"] = f"b{i}"
    return value


def evolved(i: int) -> dict[str, Any]:
    """Value for the last version's reader."""
    value = version(i)
    return {"a": value["a"], "b": value.get("b", "none")}


def user(i: int) -> dict[str, Any]:
    return {
        "name": f"u{i}é😀",
        "age": 20 + i % 70,
        "score": None if i % 2 == 0 else i * 0.1,
        "tags": ["a", f'b"\\{i}'],
        "counts": {f"c{i}": i},
        "active": i % 2 == 1,
    }


def order(i: int) -> dict[str, Any]:
    return {"orderId": i * 1_000_000_007, "user": user(i + 1), "items": [] if i % 3 == 0 else ["i1", f"i{i}"]}


def point(i: int) -> dict[str, Any]:
    return {"x": -i, "y": i / 3, "label": f"p{i}"}


def money(i: int) -> dict[str, Any]:
    code = "EUR" if i % 2 == 0 else ""
    return {"currency_code": code, "units": i * 1_000_003 * (i % 3 - 1), "nanos": i % 1000}


def error_info(i: int) -> dict[str, Any]:
    metadata = {} if i % 3 == 0 else {f"k{i}": f"v{i}"}
    return {"reason": f"reason {i}é", "domain": "example.com", "metadata": metadata}


def alarm(i: int) -> dict[str, Any]:
    return {
        "level": ("LOW", "MID", "HIGH")[i % 3],
        "msg": None if i % 2 == 0 else "" if i % 4 == 1 else f"m{i}",
        "tags": [f"p{i}", ""],
        "attrs": {f"k{i}": i / 4},
        "digest": bytes((i & 0xFF, 255)),
        "inner": {"a": -i, "b": 2 * i, "packed": [1, 300 + i]},
        "s": f"ch{i}" if i % 3 == 0 else None,
        "n": -i if i % 3 == 1 else None,
    }


def line(i: int) -> str:
    return f"line {i} é"


def _alternating(*values: Callable[[int], Any]) -> Callable[[int], Any]:
    return lambda i: values[i % len(values)](i)


#: Group -> how many values, and the value of each number.
VALUES: Final[Mapping[str, tuple[int, Callable[[int], Any]]]] = {
    "avro": (10_000, sensor),
    "avro-gzip": (500, sensor),
    "avro-mask": (500, sensor),
    "avro-multi": (1000, _alternating(sensor, pulse)),
    "avro-reflect": (500, point),
    "avro-rich": (500, rich),
    "avro-snappy": (500, sensor),
    "avro-versions": (1500, version),
    "custom": (500, line),
    "json": (10_000, user),
    "json-gzip": (500, user),
    "json-multi": (1000, _alternating(user, order)),
    "json-multi-snappy": (500, _alternating(user, order)),
    "json-noheader": (500, user),
    "json-snappy": (500, user),
    "proto": (10_000, money),
    "proto-dynamic": (500, alarm),
    "proto-gzip": (500, money),
    "proto-imports": (500, error_info),
    "proto-multi": (1000, _alternating(money, error_info)),
    "proto-multi-gzip": (500, _alternating(money, error_info)),
    "proto-noheader": (500, money),
    "proto-snappy": (500, money),
    "with-schema": (1500, _alternating(sensor, money, user)),
    "with-schema-gzip": (500, _alternating(sensor, money, user)),
}
