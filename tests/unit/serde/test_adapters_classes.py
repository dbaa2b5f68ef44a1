"""Objects of an application's own classes over every format, and the Arrow types of those classes."""

import collections
import dataclasses
import enum
import pickle
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar
from uuid import UUID

import attrs
import msgspec
import pyarrow as pa
import pydantic
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2, wrappers_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_serde import (
    ByField,
    CborSerializer,
    DeserializationError,
    SchemaError,
    SerializationError,
    UTF8StringSerializer,
)
from pravega_serde.adapters import arrow_type_of, typed
from pravega_serde.avro import AvroSerializer
from pravega_serde.java import ClassDescriptor, JavaEnum, JavaObject, JavaSerializer
from pravega_serde.json import JsonSerializer
from pravega_serde.protobuf import ProtobufSerializer
from tests.unit.serde._classes import (
    AVRO,
    FORMATS,
    LINES,
    SERIALIZERS,
    SOME,
    Base,
    Line,
    Node,
    Order,
    OrderAttrs,
    OrderStruct,
    Renamed,
    Side,
    make,
    serializer,
    values,
)

KEY = {"type": "fixed", "name": "Key", "size": 16, "logicalType": "uuid"}
CLASSES = pytest.mark.parametrize("kind", LINES)

UNTYPED = {"avro": AvroSerializer(AVRO), "java": JavaSerializer(), "json": JsonSerializer()}
PAIRS = pytest.mark.parametrize(("name", "kind"), sorted(SERIALIZERS, key=str))


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


@pytest.mark.parametrize("kind", ["string", {"type": "string", "logicalType": "uuid"}, KEY])
@pytest.mark.parametrize("optional", [False, True])
def test_uuids_are_what_the_avro_schema_says(kind: Any, optional: bool) -> None:
    schema = {"type": "record", "name": "K", "fields": [{"name": "id", "type": ["null", kind] if optional else kind}]}
    for cls in (dataclasses.make_dataclass("K", [("id", UUID)]), pydantic.create_model("K", id=UUID)):
        keys = typed(AvroSerializer(schema), cls)
        assert keys.deserialize(keys.serialize(cls(id=UUID(int=7)))) == cls(id=UUID(int=7))


@PAIRS
def test_a_serializer_survives_pickling(name: str, kind: Any) -> None:
    chosen = serializer(name, kind)
    again = pickle.loads(pickle.dumps(chosen))
    value = make(kind, SOME)
    assert again.deserialize(chosen.serialize(value)) == value
    assert repr(again) == repr(chosen)


@FORMATS
@given(event=st.binary(max_size=40))
@settings(deadline=None)
def test_no_bytes_raise_anything_else(name: str, event: bytes) -> None:
    for kind in (Order, OrderStruct, OrderAttrs):
        with pytest.raises(DeserializationError):
            SERIALIZERS[name, kind].deserialize(event)


def test_the_class_may_come_first() -> None:
    assert repr(typed(Point, JsonSerializer())) == repr(typed(JsonSerializer(), Point))
    with pytest.raises(SchemaError, match="typed requires a serializer and a class"):
        typed(Point, str)  # type: ignore[call-overload]


def test_another_class_is_refused() -> None:
    with pytest.raises(SerializationError, match="expected a Order, not a Line"):
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


@pytest.mark.parametrize("format_of", [JsonSerializer, CborSerializer])
def test_a_format_without_columns_has_those_of_the_class(format_of: Any) -> None:
    value = Wrapped(Id(3), Pair(1, 2.5), Box(Kinds.SMALL), (1, Kinds.SMALL), "b")
    with pytest.raises(SchemaError, match=r"at \$\.fixed\) has no single Arrow type"):
        _ = typed(format_of(), Wrapped).arrow_type  # its tuple has two types
    pairs = typed(format_of(), Pairs)
    assert pairs.arrow_type == arrow_type_of(Pairs)
    one = Pairs(Id(3), Pair(1, 2.5), Box(Kinds.SMALL, [Kinds.SMALL]), (1, 2), "b")
    events = pa.array([pairs.serialize(one), None])
    row = {"id": 3, "pair": {"left": 1, "right": 2.5}, "box": {"content": "SMALL", "kept": ["SMALL"]}}
    decoded = pairs.decode_column(events)
    assert decoded.to_pylist() == [{**row, "both": [1, 2], "word": "b", "level": None}, None]
    assert [pairs.deserialize(event) for event in pairs.encode_column(decoded).to_pylist()[:1]] == [one]
    assert pickle.loads(pickle.dumps(pairs)).arrow_type == pairs.arrow_type
    assert typed(format_of(), Wrapped).deserialize(typed(format_of(), Wrapped).serialize(value)) == value
    with pytest.raises(SchemaError, match="contains itself"):
        _ = typed(format_of(), Node).arrow_type


def test_types_made_of_classes_will_do() -> None:
    lines = typed(JsonSerializer(), list[Line])
    value = [Line("a", 1, Decimal("1.5"))]
    assert lines.deserialize(lines.serialize(value)) == value


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


class Permission(enum.Flag):
    READ = 1
    WRITE = 2


@attrs.define
class Doubled:
    one: int
    two: int = attrs.Factory(lambda self: self.one * 2, takes_self=True)


@dataclasses.dataclass
class Unset:
    count: int | msgspec.UnsetType


class Split(pydantic.BaseModel):
    number: int = pydantic.Field(serialization_alias="written", validation_alias="read")


class Kinds(enum.Enum):
    SMALL = "s"


class ByValue(pydantic.BaseModel, use_enum_values=True):
    kind: Kinds


class KindOrText(pydantic.BaseModel):
    kind: Kinds | str | None


@pydantic.dataclasses.dataclass
class Late:
    number: int = dataclasses.field(init=False, default=3)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Line | Order, "cannot be read"),
        (Permission, "Permission is a Flag"),
        (Kinds | str, r"Kinds and str \(at \$\) are the same in JSON"),
        (KindOrText, r"Kinds and str \(at \$\.kind\) are the same in JSON"),
        (Doubled, "takes_self"),
        (Unset, "count can be UNSET, but it is required"),
        (Split, "writes Split.number as 'written', but reads 'read'"),
        (ByValue, "remove use_enum_values"),
        (Late, "init=False"),
        (dataclasses.make_dataclass("Queue", [("items", list[collections.deque[int] | None])]), "type deque"),
        (msgspec.defstruct("Wave", [("by_name", dict[str, complex])]), "type complex"),
    ],
)
def test_types_that_cannot_be_read_are_refused_at_once(kind: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        typed(JsonSerializer(), kind)


class Text(enum.StrEnum):
    NEW = "new"
    new = "NEW"  # the value of one is the name of the other


class Mixin(str, enum.Enum):  # noqa: UP042
    NEW = "new"


class Number(enum.IntEnum):
    NEW = 7


class Auto(enum.Enum):
    NEW = enum.auto()


@pytest.mark.parametrize("kind", [Text, Mixin, Number, Auto, Kinds])
@pytest.mark.parametrize(
    "plain",
    [
        JsonSerializer(),
        CborSerializer(),
        UTF8StringSerializer(),
        AvroSerializer("string"),
        AvroSerializer({"type": "enum", "name": "E", "symbols": ["s", "new", "NEW", "SMALL"]}),
        AvroSerializer(["null", "int", "string"]),
    ],
    ids=repr,
)
def test_an_enum_is_its_name_in_every_format(kind: Any, plain: Any) -> None:
    constant = next(iter(kind))
    assert plain.deserialize(plain.serialize(constant)) == constant.name
    objects = typed(plain, kind)
    assert objects.serialize(constant) == plain.serialize(constant)
    assert objects.deserialize(objects.serialize(constant)) is constant
    assert JavaSerializer().deserialize(JavaSerializer().serialize(constant)) == constant.name
    text = ProtobufSerializer(wrappers_pb2.StringValue)
    assert text.serialize(constant) == text.serialize(constant.name)


@dataclasses.dataclass
class Enums:
    one: Text
    many: list[Number]
    by_name: dict[Auto, Kinds | None]
    either: Kinds | float
    open: Any = None


class EnumsStruct(msgspec.Struct, rename="camel", tag="enums", omit_defaults=True):
    one: Text
    by_name: dict[Auto, Kinds | None]
    either: Kinds | float = 1.5


class EnumsModel(pydantic.BaseModel):
    one: Text
    many: list[Number]
    by_name: dict[Auto, Kinds | None]


ENUM_FIELDS: dict[str, Any] = {"one": Text.new, "by_name": {Auto.NEW: Kinds.SMALL}}


@pytest.mark.parametrize("format_of", [JsonSerializer, CborSerializer])
@pytest.mark.parametrize(
    ("value", "event"),
    [
        (
            Enums(many=[Number.NEW], either=Kinds.SMALL, **ENUM_FIELDS),
            {"one": "new", "many": ["NEW"], "by_name": {"NEW": "SMALL"}, "either": "SMALL", "open": None},
        ),
        (EnumsStruct(**ENUM_FIELDS), {"type": "enums", "one": "new", "byName": {"NEW": "SMALL"}}),
        (EnumsModel(many=[Number.NEW], **ENUM_FIELDS), {"one": "new", "many": ["NEW"], "by_name": {"NEW": "SMALL"}}),
    ],
)
def test_enums_inside_objects_are_their_names(format_of: Any, value: Any, event: Any) -> None:
    objects = typed(format_of(), type(value))
    assert format_of().deserialize(objects.serialize(value)) == event
    assert objects.deserialize(objects.serialize(value)) == value
    with pytest.raises(DeserializationError, match=r"'other' is not the name of a constant of Text.*\$\.one"):
        objects.deserialize(format_of().serialize({**event, "one": "other"}))


def test_java_constants_and_routing_keys_are_names() -> None:
    described = {Kinds: ClassDescriptor("x.Kinds", 0, 0x12, (), ClassDescriptor("java.lang.Enum", 0, 0x12))}
    kinds = typed(JavaSerializer(), Kinds, java_classes=described)
    assert JavaSerializer().deserialize(kinds.serialize(Kinds.SMALL)) == JavaEnum(described[Kinds], "SMALL")
    assert kinds.deserialize(kinds.serialize(Kinds.SMALL)) is Kinds.SMALL
    assert ByField("kind").key({"kind": Text.NEW}) == "NEW"


def test_a_field_without_annotation_is_named() -> None:
    untyped = attrs.make_class("Untyped", ["x"])
    with pytest.raises(SchemaError, match=r"Untyped.x has no annotation"):
        typed(JsonSerializer(), untyped)


@attrs.define
class Private:
    a: int
    _b: int = 3
    _c: float = 0.5


class Pair(NamedTuple):
    left: int
    right: float = 2.0


T = TypeVar("T")


@dataclasses.dataclass
class Box(Generic[T]):
    content: T
    kept: list[T] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Computed:
    a: int
    b: float = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.b = self.a / 2


@dataclasses.dataclass
class Maybe:
    a: int | msgspec.UnsetType = msgspec.UNSET
    b: float | msgspec.UnsetType = msgspec.UNSET


Id = NewType("Id", int)


@dataclasses.dataclass
class Wrapped:
    id: Id
    pair: Pair
    box: Box[Kinds]
    fixed: tuple[int, Kinds]
    word: Literal["a", "b"] = "a"


class Positions(msgspec.Struct, array_like=True, omit_defaults=True):
    count: int = 0
    size: int = 5
    kind: Kinds = Kinds.SMALL


class Omitting(msgspec.Struct, omit_defaults=True):
    kind: Kinds
    zero: float = 0.0
    price: Decimal = Decimal("1.0")
    names: list[str] = []


@dataclasses.dataclass
class Optionals:
    kind: Kinds | None = None
    kinds: list[Kinds | None] | None = None
    either: Kinds | float | None = None


class OptionalsModel(pydantic.BaseModel):
    kind: Kinds | None = None


@dataclasses.dataclass
class Pairs:
    id: Id
    pair: Pair
    box: Box[Kinds]
    both: tuple[int, int]
    word: Literal["a", "b"] = "a"
    level: Literal[1, 2] | None = None


INFINITE = float("inf")


@pytest.mark.parametrize("name", ["json", "cbor"])
@pytest.mark.parametrize(
    "value",
    [
        Private(1, 7, INFINITE),
        Pair(1, -INFINITE),
        Pair(1),
        Box[Kinds](Kinds.SMALL, [Kinds.SMALL]),
        Box(1.5, [INFINITE]),
        Computed(3),
        Maybe(),
        Maybe(5, -INFINITE),
        Wrapped(Id(3), Pair(1, INFINITE), Box(Kinds.SMALL), (1, Kinds.SMALL), "b"),
        Positions(0, 7),
        Omitting(Kinds.SMALL),
        Omitting(Kinds.SMALL, -0.0, Decimal("1.00"), [""]),
        Optionals(),
        Optionals(Kinds.SMALL, [Kinds.SMALL, None], Kinds.SMALL),
        OptionalsModel(),
    ],
    ids=repr,
)
def test_typed_reads_all_that_it_writes(name: str, value: Any) -> None:
    kind: Any = type(value)
    if kind is Box:
        kind = Box[type(value.content)]  # type: ignore[misc]
    objects = typed({"json": JsonSerializer(), "cbor": CborSerializer()}[name], kind)
    found = objects.deserialize(objects.serialize(value))
    assert found == value
    assert repr(found) == repr(value)  # also of equal values, such as -0.0


def test_json_has_nan_as_jackson_has_it() -> None:
    lists = typed(JsonSerializer(), dict[str, list[float]])
    assert lists.serialize({"a": [float("nan"), INFINITE]}) == b'{"a":["NaN","Infinity"]}'
    ((nan, infinite),) = lists.deserialize(b'{"a":["NaN","Infinity"]}').values()
    assert nan != nan and infinite == INFINITE  # noqa: PT018
    with pytest.raises(DeserializationError, match="Expected `float`"):
        lists.deserialize(b'{"a":["nan"]}')


def test_unset_is_null_where_events_have_all_fields() -> None:
    optional = {"type": "record", "name": "M", "fields": [{"name": "a", "type": ["null", "int"], "default": None}]}
    kind = dataclasses.make_dataclass("M", [("a", int | msgspec.UnsetType, msgspec.UNSET)])
    for inner in (AvroSerializer(optional), JavaSerializer(ClassDescriptor.of("M", 1, {"a": "java.lang.Integer"}))):
        objects = typed(inner, kind)
        assert objects.deserialize(objects.serialize(kind())) == kind()
        assert objects.deserialize(objects.serialize(kind(5))) == kind(5)


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


class Point(TypedDict):
    x: float
    y: Annotated[float | None, "up"]


class Sparse(TypedDict):
    x: int
    note: NotRequired[str]


class TestArrowTypes:
    def test_of_optional_keys(self) -> None:
        assert arrow_type_of(Sparse) == pa.struct([("x", pa.int64()), ("note", pa.string())])

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


def test_no_package_is_imported_that_is_not_used() -> None:
    code = (
        "import sys\nfrom pravega_serde.adapters import typed\n"
        "assert not {'attrs', 'pydantic', 'jsonschema'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
