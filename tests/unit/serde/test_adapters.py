"""Serializers from plain functions, and of an application's own classes over every format."""

import dataclasses
import enum
import pickle
import re
import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, TypedDict
from uuid import UUID

import attrs
import msgspec
import numpy as np
import pyarrow as pa
import pydantic
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_serde import DeserializationError, LimitExceededError, SchemaError, SerializationError
from pravega_serde.adapters import FunctionSerializer, arrow_type_of, typed
from pravega_serde.avro import AvroSerializer
from pravega_serde.java import (
    ClassDescriptor,
    Copies,
    JavaArray,
    JavaList,
    JavaObject,
    JavaSerializer,
    Long,
    NanoDatetime,
)
from pravega_serde.java._jdk_table import jdk_descriptor
from pravega_serde.json import JsonSerializer
from pravega_serde.protobuf import ProtobufSerializer


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
    id: int
    side: Side
    at: datetime
    day: date
    lines: list[LineModel]
    key: UUID
    raw: bytes
    note: str | None = None
    tags: dict[str, int] = {}


class Trade(pydantic.BaseModel):
    id: int
    side: Side
    at: datetime
    lines: list[LineModel]
    note: str | None = None
    key: UUID


KEY = {"type": "fixed", "name": "Key", "size": 16, "logicalType": "uuid"}
LINES = {Order: Line, OrderStruct: LineStruct, OrderAttrs: LineAttrs, OrderModel: LineModel}
#: Pydantic cannot read bytes and decimals from JSON together, and says so: see below.
JSON_CLASSES = pytest.mark.parametrize("kind", [Order, OrderStruct, OrderAttrs, Trade])
CLASSES = pytest.mark.parametrize("kind", LINES)

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

UNTYPED = {"avro": AvroSerializer(AVRO), "java": JavaSerializer(), "json": JsonSerializer()}

FORMATS = pytest.mark.parametrize("name", ["avro", "java", "json"])
PAIRS = pytest.mark.parametrize(("name", "kind"), sorted(SERIALIZERS.keys() - {("json", OrderModel)}, key=str))

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


@PAIRS
@given(fields=values())
@settings(max_examples=40, deadline=None)
def test_objects_come_back_as_they_were(name: str, kind: Any, fields: dict[str, Any]) -> None:
    chosen = SERIALIZERS[name, kind]
    value = make(kind, fields)
    assert chosen.deserialize(chosen.serialize(value)) == value


@FORMATS
def test_every_class_writes_the_same_event(name: str) -> None:
    first, *others = [SERIALIZERS[name, kind].serialize(make(kind, SOME)) for kind in LINES]
    plain = UNTYPED[name].deserialize
    assert all(_comparable(plain(event)) == _comparable(plain(first)) for event in others)


def _comparable(value: Any) -> Any:
    if isinstance(value, JavaObject | dict):
        return {name: _comparable(value[name]) for name in value}
    return [*map(_comparable, value)] if isinstance(value, list) else value


def test_json_is_what_jackson_writes() -> None:
    assert serializer("json", Order).serialize(make(Order, SOME)) == (
        b'{"id":7,"side":"SELL","at":"2026-01-02T03:04:05.000678Z","day":"2026-01-02","lines":[{"sku":"a","count":2,'
        b'"price":1.100000}],"key":"00000000-0000-0000-0000-000000000005","raw":"/wA=","note":null,"tags":{"x":1}}'
    )


@pytest.mark.parametrize("kind", ["string", {"type": "string", "logicalType": "uuid"}, KEY])
@pytest.mark.parametrize("optional", [False, True])
def test_uuids_are_what_the_avro_schema_says(kind: Any, optional: bool) -> None:
    schema = {"type": "record", "name": "K", "fields": [{"name": "id", "type": ["null", kind] if optional else kind}]}
    for cls in (dataclasses.make_dataclass("K", [("id", UUID)]), pydantic.create_model("K", id=UUID)):
        keys = typed(AvroSerializer(schema), cls)
        assert keys.deserialize(keys.serialize(cls(id=UUID(int=7)))) == cls(id=UUID(int=7))


def test_decimals_of_json_keep_their_digits() -> None:
    prices = typed(JsonSerializer(), dict[str, Decimal])
    assert prices.deserialize(b'{"a":0.12345678901234567890123}') == {"a": Decimal("0.12345678901234567890123")}


def test_json_takes_what_javas_writers_put_around_it() -> None:
    assert typed(JsonSerializer(), Line).deserialize(b'\xef\xbb\xbf{"sku":"a","count":1,"price":2}\0\0').price == 2


@PAIRS
def test_a_serializer_survives_pickling(name: str, kind: Any) -> None:
    chosen = serializer(name, kind)
    again = pickle.loads(pickle.dumps(chosen))
    value = make(kind, SOME)
    assert again.deserialize(chosen.serialize(value)) == value
    assert repr(again) == repr(chosen)


@JSON_CLASSES
@pytest.mark.parametrize(
    ("event", "place"),
    [
        (
            b'{"id":1,"side":"BUY","at":"2026-01-02T03:04:05Z","day":"2026-01-02","lines":[],"raw":""}',
            r"field \$(\.key)?\)",
        ),
        (b'{"id":"x"}', r"\$\.id"),
        (b'{"id":1,"side":"NO"}', r"\$\.side"),
        (
            b'{"id":1,"side":"BUY","at":"2026-01-02T03:04:05Z","day":"2026-01-02","lines":[{"sku":1}]}',
            r"lines\[0\]\.sku",
        ),
    ],
)
def test_a_bad_event_names_its_field(kind: Any, event: bytes, place: str) -> None:
    with pytest.raises(DeserializationError, match=f"does not fit {kind.__name__}") as caught:
        typed(JsonSerializer(), kind).deserialize(event)
    assert re.search(place, str(caught.value))


@JSON_CLASSES
@pytest.mark.parametrize(
    "event", [b"", b"{", b'{"id":1}x', b"\xff", b'"\xff"', b'{"id":1,"other":"\xff"}', b"[" * 100_000]
)
def test_what_is_not_json_is_told_as_ever(kind: Any, event: bytes) -> None:
    with pytest.raises(DeserializationError) as expected:
        JsonSerializer().deserialize(event)
    with pytest.raises(DeserializationError) as caught:
        typed(JsonSerializer(), kind).deserialize(event)
    assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("kind", [bytes, datetime, Decimal, Side, UUID])
def test_half_a_character_is_only_text(kind: Any) -> None:
    assert typed(JsonSerializer(), list[str]).deserialize(b'["\\ud800"]') == ["\ud800"]
    with pytest.raises(DeserializationError, match="does not fit"):
        typed(JsonSerializer(), list[kind]).deserialize(b'["\\ud800"]')
    with pytest.raises(DeserializationError, match="does not fit"):
        typed(JavaSerializer(), list[kind]).deserialize(JavaSerializer().serialize(["\ud800"]))


@FORMATS
@given(event=st.binary(max_size=40))
@settings(deadline=None)
def test_no_bytes_raise_anything_else(name: str, event: bytes) -> None:
    for kind in (Order, OrderStruct, OrderAttrs):
        with pytest.raises(DeserializationError):
            SERIALIZERS[name, kind].deserialize(event)


def test_another_class_is_refused() -> None:
    with pytest.raises(SerializationError, match="a Line where a Order is expected"):
        serializer("json", Order).serialize(Line("a", 1, Decimal(1)))


@CLASSES
def test_a_value_without_a_form_is_refused(kind: Any) -> None:
    value = make(kind, SOME)
    value.note = object()
    with pytest.raises(SerializationError):
        serializer("json", kind).serialize(value)


@FORMATS
def test_a_value_that_contains_itself_is_refused(name: str) -> None:
    value = make(Order, SOME)
    value.tags = {"x": value.tags}  # type: ignore[dict-item]
    value.tags["x"] = value.tags  # type: ignore[assignment]
    with pytest.raises(SerializationError, match="contains itself"):
        serializer(name, Order).serialize(value)


def test_columns_are_the_wrapped_serializers() -> None:
    inner = JsonSerializer(arrow_type=arrow_type_of(Line))
    lines = typed(inner, Line)
    assert lines.arrow_type == inner.arrow_type
    events = lines.encode_column(pa.array([{"sku": "a", "count": 1, "price": 2}], lines.arrow_type))
    lines.check_encodable(lines.arrow_type)
    assert lines.decode_column(events).to_pylist() == [{"sku": "a", "count": 1, "price": 2}]


def test_types_made_of_classes_will_do() -> None:
    lines = typed(JsonSerializer(), list[Line])
    value = [Line("a", 1, Decimal("1.5"))]
    assert lines.deserialize(lines.serialize(value)) == value


class Renamed(msgspec.Struct, rename="camel"):
    order_id: int


class Aliased(pydantic.BaseModel):
    order_id: int = pydantic.Field(alias="orderId")


@pytest.mark.parametrize("value", [Renamed(5), Aliased(orderId=5)])
def test_renamed_fields_have_their_names_in_events(value: Any) -> None:
    renamed = typed(JsonSerializer(), type(value))
    assert renamed.serialize(value) == b'{"orderId":5}'
    assert renamed.deserialize(b'{"orderId":5}') == value
    described = ClassDescriptor.of("Order", 1, {"orderId": "long"})
    java = typed(JavaSerializer(described), type(value))
    assert java.deserialize(java.serialize(value)) == value


Wide = dataclasses.make_dataclass("Wide", [(f"f{n}", int, dataclasses.field(default=0)) for n in range(100)])


def test_objects_that_take_far_more_than_their_bytes_are_refused() -> None:
    wide = typed(JsonSerializer(), list[Wide])  # type: ignore[valid-type]
    assert len(wide.deserialize(b"[%s{}]" % (b"{}," * 1000))) == 1001
    with pytest.raises(LimitExceededError, match="objects of 300004 bytes"):
        wide.deserialize(b"[%s{}]" % (b"{}," * 100_000))
    texts = typed(JsonSerializer(), list[Wide | str])  # type: ignore[valid-type]
    assert texts.deserialize(b'["%s"]' % (b"{" * 500_000)) == ["{" * 500_000]


class Sets(pydantic.BaseModel):
    sides: set[Side]


def test_models_write_sets_as_lists_and_enums_by_value() -> None:
    assert typed(JsonSerializer(), Sets).serialize(Sets(sides={Side.BUY})) == b'{"sides":["BUY"]}'


@given(fields=values())
@settings(max_examples=40, deadline=None)
def test_models_come_back_from_json(fields: dict[str, Any]) -> None:
    value = Trade(**{name: fields[name] for name in Trade.model_fields})
    trades = typed(JsonSerializer(), Trade)
    assert trades.deserialize(trades.serialize(value)) == value


class Strict(pydantic.BaseModel, strict=True, val_json_bytes="base64"):
    at: datetime
    raw: list[bytes]


def test_models_read_json_in_jsons_own_way() -> None:
    strict = typed(JsonSerializer(), Strict)
    value = Strict(at=datetime(2026, 1, 1, tzinfo=UTC), raw=[b"\xff"])
    assert strict.deserialize(strict.serialize(value)) == value
    with pytest.raises(DeserializationError, match=r"raw\[0\]|raw\.0"):
        strict.deserialize(b'{"at":"2026-01-01T00:00:00Z","raw":["!"]}')


class Blob(pydantic.BaseModel):
    raw: list[bytes]


class Bill(pydantic.BaseModel, val_json_bytes="base64"):
    signature: bytes
    sum: Decimal


@pytest.mark.parametrize(
    ("kind", "reason"), [(Blob, "Blob reads bytes as text"), (Bill, "Bill. has bytes and decimals")]
)
def test_models_that_would_read_base64_as_text_are_refused(kind: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        typed(JsonSerializer(), list[kind]).deserialize(b"[]")


class Level(enum.Enum):
    LOW = 1


@dataclasses.dataclass
class Leveled:
    level: Level


class Base:
    pass


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(Leveled, r"constants of Level.*StrEnum"), (Line | Order, "cannot be read")],
)
def test_types_that_cannot_be_read_are_refused_at_once(kind: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        typed(JsonSerializer(), kind)


def test_classes_of_java_are_for_the_java_format() -> None:
    with pytest.raises(SchemaError, match="are for the Java format"):
        typed(JsonSerializer(), Line, java_classes={Line: JAVA_LINE})


class TestJava:
    def test_an_unknown_class_is_named(self) -> None:
        with pytest.raises(SerializationError, match=r"class of Side is not known.*java_classes"):
            typed(JavaSerializer(JAVA_ORDER), Order).serialize(make(Order, SOME))

    def test_a_class_without_such_a_field_is_refused(self) -> None:
        with pytest.raises(SchemaError, match=r"com\.example\.Line has no serializable field 'id'"):
            typed(JavaSerializer(), Order, java_classes={Order: JAVA_LINE})

    def test_a_type_without_fields_is_refused(self) -> None:
        with pytest.raises(SchemaError, match="Base has no fields"):
            typed(JavaSerializer(), Order, java_classes={Base: JAVA_LINE})

    def test_fields_that_the_class_lacks_are_javas_defaults(self) -> None:
        wide = ClassDescriptor.of("Wide", 1, {"orderId": "long", "more": "int", "text": "java.lang.String"})
        renamed = typed(JavaSerializer(wide), Renamed)
        assert JavaSerializer().deserialize(renamed.serialize(Renamed(3))).fields == {
            "more": 0,
            "orderId": 3,
            "text": None,
        }

    def test_an_object_of_another_class_is_refused(self) -> None:
        event = JavaSerializer().serialize(JAVA_LINE.new(sku="a", count=1))
        other = ClassDescriptor.of("com.example.Other", 1, {"sku": "java.lang.String"})
        with pytest.raises(DeserializationError, match=r"holds com\.example\.Line, not com\.example\.Other"):
            typed(JavaSerializer(other), msgspec.defstruct("Other", [("sku", str)])).deserialize(event)

    def test_an_object_of_a_subclass_will_do(self) -> None:
        below = ClassDescriptor.of("com.example.Below", 1, {"more": "int"}, JAVA_LINE)
        event = JavaSerializer().serialize(below.new(sku="a", count=1, price=Decimal(2)))
        assert typed(JavaSerializer(JAVA_LINE), Line).deserialize(event) == Line("a", 1, Decimal(2))

    @pytest.mark.parametrize(
        ("value", "kind", "plain"),
        [
            (Long(5), int, 5),
            (JavaList([1, 2], "java.util.LinkedList"), list[int], [1, 2]),
            (JavaArray(["a"], ClassDescriptor("[Ljava.lang.String;", 0)), list[str], ["a"]),
            (NanoDatetime.of(datetime(2026, 1, 1), 5), datetime, datetime(2026, 1, 1)),
            ({1: "a"}, dict[int, str], {1: "a"}),
            ({"a", "b"}, set[str], {"a", "b"}),
            (time(1, 2), time, time(1, 2)),
            (b"\1", bytes, b"\1"),
            (True, bool, True),
            (2.5, float, 2.5),
            (None, int | None, None),
        ],
    )
    def test_values_that_remember_their_type_become_plain(self, value: Any, kind: Any, plain: Any) -> None:
        made = typed(JavaSerializer(), kind).deserialize(JavaSerializer().serialize(value))
        assert made == plain
        assert type(made) is type(plain)

    def test_arrays_of_primitives_are_lists(self) -> None:
        serialize = JavaSerializer().serialize
        assert typed(JavaSerializer(), list[int]).deserialize(serialize(np.arange(3))) == [0, 1, 2]
        chars = np.array([65, 66], np.uint16)
        assert typed(JavaSerializer(), list[str]).deserialize(serialize(chars)) == ["A", "B"]

    def test_shared_lists_cannot_multiply(self) -> None:
        shared: Any = ["x"] * 10
        for _ in range(12):
            shared = [shared] * 10
        with pytest.raises(LimitExceededError, match="objects that others share"):
            typed(JavaSerializer(), list[Any]).deserialize(JavaSerializer().serialize(shared))

    def test_copies_beyond_all_bounds_are_refused(self) -> None:
        copies = jdk_descriptor("java.util.Collections$CopiesList")
        assert copies is not None
        few = Copies(copies, [2, "x"])
        assert typed(JavaSerializer(), list[str]).deserialize(JavaSerializer().serialize(few)) == ["x", "x"]
        huge = Copies(copies, [(1 << 31) - 1, "x"])
        with pytest.raises(LimitExceededError):
            typed(JavaSerializer(), list[str]).deserialize(JavaSerializer().serialize(huge))

    def test_deep_objects_are_refused(self) -> None:
        node = ClassDescriptor.of("Node", 1, {"next": "Node"})
        deep = node.new()
        for _ in range(5000):
            deep = node.new(next=deep)
        with pytest.raises(LimitExceededError):
            typed(JavaSerializer(), Node).deserialize(JavaSerializer().serialize(deep))


@dataclasses.dataclass
class Node:
    next: "Node | None" = None


@FORMATS
def test_a_class_may_contain_itself(name: str) -> None:
    avro = AvroSerializer({"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]})
    descriptor = ClassDescriptor.of("Node", 1, {"next": "Node"})
    inner: Any = {"avro": avro, "java": JavaSerializer(), "json": JsonSerializer()}[name]
    nodes = typed(inner, Node, java_classes={Node: descriptor} if name == "java" else None)
    assert nodes.deserialize(nodes.serialize(Node(Node(Node())))) == Node(Node(Node()))


@dataclasses.dataclass
class Task:
    name: str
    at: datetime
    took: timedelta
    parts: list[str]
    counts: dict[str, int]
    raw: bytes
    kind: Side | None = None
    before: "Task | None" = None


def message_class() -> Any:
    """A message with the fields of Task."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="adapters_task.proto",
        package="adapters",
        syntax="proto3",
        dependency=[timestamp_pb2.DESCRIPTOR.name, duration_pb2.DESCRIPTOR.name],
    )
    side = file.enum_type.add(name="Side")
    for number, name in enumerate(("NONE", "BUY", "SELL")):
        side.value.add(name=name, number=number)
    task = file.message_type.add(name="Task")
    entry = task.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=kinds.TYPE_INT64, label=1)
    task.field.add(name="name", number=1, type=kinds.TYPE_STRING, label=1)
    message = kinds.TYPE_MESSAGE
    task.field.add(name="at", number=2, type=message, type_name=".google.protobuf.Timestamp", label=1)
    task.field.add(name="took", number=3, type=message, type_name=".google.protobuf.Duration", label=1)
    task.field.add(name="parts", number=4, type=kinds.TYPE_STRING, label=3)
    task.field.add(name="counts", number=5, type=message, type_name=".adapters.Task.CountsEntry", label=3)
    task.field.add(name="raw", number=6, type=kinds.TYPE_BYTES, label=1)
    task.oneof_decl.add(name="_kind")
    task.field.add(
        name="kind",
        number=7,
        type=kinds.TYPE_ENUM,
        type_name=".adapters.Side",
        label=1,
        oneof_index=0,
        proto3_optional=True,
    )
    task.field.add(name="before", number=8, type=message, type_name=".adapters.Task", label=1)
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("adapters.Task"))


def test_messages_of_protobuf_become_objects() -> None:
    tasks = typed(ProtobufSerializer(message_class()), Task)
    at, took = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC), timedelta(seconds=5, microseconds=7)
    before = Task("first", at, took, [], {}, b"")
    for value in (before, Task("a", at, took, ["x", "y"], {"k": 5}, b"\xff", Side.SELL, before)):
        assert tasks.deserialize(tasks.serialize(value)) == value
    assert pickle.loads(pickle.dumps(tasks)).deserialize(tasks.serialize(before)) == before
    with pytest.raises(DeserializationError):
        tasks.deserialize(b"\xff")


def test_durations_are_text_where_a_format_has_none() -> None:
    durations = typed(JsonSerializer(), list[timedelta])
    assert durations.serialize([timedelta(days=1)]) == b'["P1D"]'
    assert durations.deserialize(b'["PT5S"]') == [timedelta(seconds=5)]


class Point(TypedDict):
    x: float
    y: Annotated[float | None, "up"]


class TestArrowTypes:
    def test_of_a_class(self) -> None:
        for kind in LINES:
            assert arrow_type_of(kind) == pa.struct(
                [
                    ("id", pa.int64()),
                    ("side", pa.string()),
                    ("at", pa.timestamp("us", "UTC")),
                    ("day", pa.date32()),
                    (
                        "lines",
                        pa.list_(
                            pa.field(
                                "element",
                                pa.struct(
                                    [("sku", pa.string()), ("count", pa.int64()), ("price", pa.decimal128(38, 18))]
                                ),
                            )
                        ),
                    ),
                    ("key", pa.string()),
                    ("raw", pa.binary()),
                    ("note", pa.string()),
                    ("tags", pa.map_(pa.string(), pa.int64())),
                ]
            )

    def test_of_a_typed_dict(self) -> None:
        assert arrow_type_of(Point) == pa.struct([("x", pa.float64()), ("y", pa.float64())])

    @pytest.mark.parametrize("kind", [int | str, Node, object, list, tuple[int, str], Base])
    def test_that_do_not_exist(self, kind: Any) -> None:
        with pytest.raises(SchemaError):
            arrow_type_of(kind)


class TestFunctions:
    BOTH = FunctionSerializer(lambda n: str(n).encode(), int, arrow_type=pa.int64())

    def test_rows(self) -> None:
        pickled = FunctionSerializer(pickle.dumps, pickle.loads)
        assert pickled.deserialize(pickled.serialize({"a": (1, 2)})) == {"a": (1, 2)}
        again = pickle.loads(pickle.dumps(pickled))
        assert repr(again) == repr(pickled) == "FunctionSerializer(dumps, loads, arrow_type=None)"

    def test_columns(self) -> None:
        column = pa.array([1, None, 3])
        events = self.BOTH.encode_column(column)
        assert events.to_pylist() == [b"1", None, b"3"]
        assert self.BOTH.decode_column(events) == column

    def test_bad_rows(self) -> None:
        errors: list[DeserializationError] = []
        events = pa.array([b"1", b"x", b"9" * 20, b"4"] * 20)
        made = self.BOTH.decode_column(events, on_error=errors.append)
        assert made.to_pylist() == [1, None, None, 4] * 20
        assert [error.row for error in errors[:3]] == [1, 2, 5]
        assert "failed: ValueError" in str(errors[0])
        assert "does not fit int64" in str(errors[1])

    def test_what_a_function_raises_names_it(self) -> None:
        with pytest.raises(SerializationError, match=r"dumps failed: .*local object"):
            FunctionSerializer(pickle.dumps, pickle.loads).serialize(lambda: 1)
        with pytest.raises(DeserializationError, match="loads failed: "):
            FunctionSerializer(pickle.dumps, pickle.loads).deserialize(b"")

    def test_errors_of_this_package_pass(self) -> None:
        both = FunctionSerializer(JsonSerializer().serialize, JsonSerializer().deserialize)
        with pytest.raises(SerializationError, match="cannot write as JSON"):
            both.serialize(object())
        with pytest.raises(DeserializationError, match=r"^.PRAVEGA-DESERIALIZATION. not JSON"):
            both.deserialize(b"")

    def test_a_function_that_makes_no_bytes(self) -> None:
        with pytest.raises(SerializationError, match="str made a str, not bytes"):
            FunctionSerializer(str, bytes.decode).serialize(1)  # type: ignore[arg-type]

    def test_columns_need_a_type(self) -> None:
        with pytest.raises(SchemaError, match="arrow_type"):
            FunctionSerializer(pickle.dumps, pickle.loads).decode_column(pa.array([b""]))
        with pytest.raises(SchemaError, match="does not become int64"):
            self.BOTH.check_encodable(pa.list_(pa.int8()))
        with pytest.raises(SerializationError):
            self.BOTH.encode_column(pa.array(["x"]))


def test_no_package_is_imported_that_is_not_used() -> None:
    code = (
        "import sys\nfrom pravega_serde.adapters import typed\n"
        "assert not {'attrs', 'pydantic', 'jsonschema'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_msgspec_the_extra_is_named() -> None:
    code = (
        "import sys\nsys.modules['msgspec'] = None\nimport dataclasses\n"
        "from pravega_serde import MissingExtraError\n"
        "from pravega_serde.adapters import FunctionSerializer, typed\nfrom pravega_serde.json import JsonSerializer\n"
        "import pydantic\n"
        "class M(pydantic.BaseModel):\n    x: int\n"
        "assert typed(JsonSerializer(), M).deserialize(b'{\"x\":1}') == M(x=1)\n"
        "try:\n    typed(JsonSerializer(), dataclasses.make_dataclass('C', [('x', int)]))\n"
        "except MissingExtraError as error:\n    assert 'pravega-serde[fast]' in str(error)\n"
        "else:\n    raise SystemExit('not raised')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
