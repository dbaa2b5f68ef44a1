"""An application's own classes, the same order in four kinds of them, and serializers of each in every format."""

import dataclasses
import enum
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import strategies as st

from pravega_serde.adapters import typed
from pravega_serde.avro import AvroSerializer
from pravega_serde.java import ClassDescriptor, JavaSerializer
from pravega_serde.json import JsonSerializer


class Side(enum.StrEnum):
    BUY = "BUY"
    SELL = "SELL"


@dataclasses.dataclass
class Line:
    sku: str
    count: int
    price: Decimal


@dataclasses.dataclass
class Order:
    id: int
    side: Side
    at: datetime
    day: date
    lines: list[Line]
    key: UUID
    raw: bytes
    note: str | None = None
    tags: dict[str, int] = dataclasses.field(default_factory=dict)


class LineStruct(msgspec.Struct):
    sku: str
    count: int
    price: Decimal


class OrderStruct(msgspec.Struct):
    id: int
    side: Side
    at: datetime
    day: date
    lines: list[LineStruct]
    key: UUID
    raw: bytes
    note: str | None = None
    tags: dict[str, int] = {}


@attrs.define
class LineAttrs:
    sku: str
    count: int
    price: Decimal


@attrs.define
class OrderAttrs:
    id: int
    side: Side
    at: datetime
    day: date
    lines: list[LineAttrs]
    key: UUID
    raw: bytes
    note: str | None = None
    tags: dict[str, int] = attrs.field(factory=dict)


class LineModel(pydantic.BaseModel):
    sku: str
    count: int
    price: Decimal


class OrderModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(val_json_bytes="base64")

    id: int
    side: Side
    at: datetime
    day: date
    lines: list[LineModel]
    key: UUID
    raw: bytes
    note: str | None = None
    tags: dict[str, int] = {}


LINES = {Order: Line, OrderStruct: LineStruct, OrderAttrs: LineAttrs, OrderModel: LineModel}

AVRO = """{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"},
    {"name": "side", "type": {"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
        {"name": "sku", "type": "string"}, {"name": "count", "type": "int"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 6}}]}}},
    {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "raw", "type": "bytes"},
    {"name": "note", "type": ["null", "string"]},
    {"name": "tags", "type": {"type": "map", "values": "long"}}]}"""

JAVA_LINE = ClassDescriptor.of(
    "com.example.Line", 1, {"sku": "java.lang.String", "count": "int", "price": "java.math.BigDecimal"}
)
JAVA_ORDER = ClassDescriptor.of(
    "com.example.Order",
    2,
    {
        "id": "long",
        "side": "com.example.Side",
        "at": "java.time.Instant",
        "day": "java.time.LocalDate",
        "lines": "java.util.List",
        "key": "java.util.UUID",
        "raw": "byte[]",
        "note": "java.lang.String",
        "tags": "java.util.Map",
    },
)
JAVA_SIDE = ClassDescriptor("com.example.Side", 0, 0x12, (), ClassDescriptor("java.lang.Enum", 0, 0x12))


def serializer(name: str, kind: Any) -> Any:
    if name == "avro":
        return typed(AvroSerializer(AVRO), kind)
    if name == "json":
        return typed(JsonSerializer(), kind)
    java = {kind: JAVA_ORDER, LINES[kind]: JAVA_LINE, Side: JAVA_SIDE}
    return typed(JavaSerializer(), kind, java_classes=java)


SERIALIZERS = {(name, kind): serializer(name, kind) for name in ("avro", "java", "json") for kind in LINES}

FORMATS = pytest.mark.parametrize("name", ["avro", "java", "json"])

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
decimals = st.integers(-(10**20), 10**20).map(lambda digits: Decimal(digits).scaleb(-6))


@st.composite
def values(draw: Any) -> dict[str, Any]:
    lines = st.fixed_dictionaries({"sku": texts, "count": st.integers(-(1 << 31), (1 << 31) - 1), "price": decimals})
    return {
        "id": draw(st.integers(-(1 << 63), (1 << 63) - 1)),
        "side": draw(st.sampled_from(Side)),
        "at": draw(moments),
        "day": draw(st.dates()),
        "lines": draw(st.lists(lines, max_size=3)),
        "key": draw(st.uuids()),
        "raw": draw(st.binary(max_size=6)),
        "note": draw(st.none() | texts),
        "tags": draw(st.dictionaries(texts, st.integers(-(1 << 31), (1 << 31) - 1), max_size=3)),
    }


def make(kind: Any, fields: dict[str, Any]) -> Any:
    return kind(**{**fields, "lines": [LINES[kind](**line) for line in fields["lines"]]})


SOME = {
    "id": 7,
    "side": Side.SELL,
    "at": datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
    "day": date(2026, 1, 2),
    "lines": [{"sku": "a", "count": 2, "price": Decimal("1.100000")}],
    "key": UUID(int=5),
    "raw": b"\xff\x00",
    "note": None,
    "tags": {"x": 1},
}


class Renamed(msgspec.Struct, rename="camel"):
    order_id: int


class Base:
    pass


@dataclasses.dataclass
class Node:
    next: "Node | None" = None
