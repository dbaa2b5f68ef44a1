"""Types in own classes: unions of numbers, generic classes, keys, columns, and what is refused with its path."""

import collections
import dataclasses
import enum
import math
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar, Union
from uuid import UUID

import attrs
import msgspec
import pyarrow as pa
import pydantic
import pytest
import typing_extensions

from pravega_serde import (
    AvroSerializer,
    DeserializationError,
    LimitExceededError,
    SchemaError,
    SerializationError,
    arrow_type_of,
    avro_schema_of,
    protobuf_schema_of,
    typed,
)
from pravega_serde.cbor import CborSerializer
from pravega_serde.java import JavaSerializer
from pravega_serde.json import JsonSerializer
from tests.unit.serde._schema_classes import Kinds, Sizes
from tests.unit.serde._typed import FORMATS, Positioned, Root, Whole, again, model, one

# ---- unions of numbers ----

NUMBERS: list[tuple[Any, list[Any]]] = [
    (float | int, [1, 1.0, 1 << 62, -0.0]),
    (int | float, [1, 1.0]),
    (float | bool, [1.0, True]),
    (tuple[float, int], [(1.0, 1)]),
    (list[float | int], [[1.0, 1, 2.5]]),
    (dict[str, int | float], [{"a": 1, "b": 1.0}]),
]
DECIMALS: list[tuple[Any, list[Any]]] = [
    (Decimal | int, [1, Decimal(1), Decimal("1.5")]),
    (int | Decimal, [1, Decimal(1)]),
    (Decimal | float, [1.0, Decimal(1), 0.1]),
    (int | float | Decimal, [1, 1.0, Decimal(1)]),
]


def types_of(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: types_of(inner) for name, inner in value.items()}
    return [types_of(inner) for inner in value] if isinstance(value, list | tuple) else (type(value), str(value)[:1])


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("make", [one, lambda kind: pydantic.create_model("Model", field=(kind, ...))])
def test_a_union_of_numbers_keeps_the_type_of_each_value(format_name: str, make: Any) -> None:
    for field, values in NUMBERS + (DECIMALS if format_name != "json" else []):
        kind = make(field)
        for value in values:
            found = again(format_name, kind, kind(field=value)).field
            assert (found, types_of(found)) == (value, types_of(value))


@pytest.mark.parametrize("field", [float | int, int | float | None, float | datetime, bytes | float])
@pytest.mark.parametrize("format_name", FORMATS)
def test_nan_in_a_union_is_a_number(format_name: str, field: Any) -> None:
    kind = one(field)
    assert math.isnan(again(format_name, kind, kind(math.nan)).field)
    assert again(format_name, kind, kind(-math.inf)).field == -math.inf


def test_a_default_of_a_union_has_the_branch_of_its_own_type() -> None:
    assert '"type":["long","double"],"default":1}' in avro_schema_of(one(float | int, 1))


class Cat(pydantic.BaseModel):
    name: str


class Dog(pydantic.BaseModel):
    name: str


class Bird(pydantic.BaseModel):
    name: str
    wings: int = 2


class Bat(pydantic.BaseModel):
    kind: Literal["bat"] = "bat"
    name: str


class Model(pydantic.BaseModel):
    day: str | date = ""


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (one(Decimal | int), r"Decimal and int \(at \$\.field\) are the same in JSON"),
        (one(list[Decimal | float | None]), r"Decimal and float \(at \$\.field\[\]\) are the same in JSON"),
        (one(dict[str, date | str]), r"date and str \(at \$\.field\{\}\)"),
        (list[Cat | Dog], r"Cat and Dog \(at \$\[\]\)"),
        (one(Bird | Cat), r"Bird and Cat \(at \$\.field\)"),
        (one(Cat | dict[str, str]), r"Cat and dict\[str, str\] \(at \$\.field\)"),
        (Model, r"str and date \(at \$\.day\)"),
        (
            pydantic.create_model("Lists", items=(list[int] | set[int], ...)),
            r"list\[int\] and set\[int\] \(at \$\.items",
        ),
    ],
    ids=str,
)
def test_a_union_that_json_cannot_tell_apart_is_refused_with_its_path(kind: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        typed(JsonSerializer(), kind)


def two(one: Any, other: Any) -> Any:
    """Return the union of two models with a field of the same name."""
    return model("P", field=one) | model("Q", field=other)


Numbered = enum.Enum("Numbered", {"ONE": 1})


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (two(date, str), "json"),
        (two(str, date), "json"),
        (two(Kinds, str), "json cbor"),
        (two(int, Kinds), "json cbor"),
        (two(float, int), "json cbor"),
        (two(float, Decimal), "json cbor"),
        (two(int, Decimal), "json"),
        (two(bool, Decimal), "json"),
        (two(time, timedelta), "json cbor"),
        (two(list[int], tuple[str, str]), "json cbor"),
        (two(Any, int), "json cbor"),
        (two(int | None, str | None), "json cbor"),
        (two(Cat, Dog), "json cbor"),
        (two(Literal[1], bool), "json cbor"),
        (two(Literal["a", "b"], Literal["b", "c"]), "json cbor"),
        (dict[str, date] | dict[str, str], "json"),
        (dict[str, Kinds] | dict[str, str], "json cbor"),
        (dict[str, float] | dict[str, int], "json"),
        (dict[int, str] | dict[str, UUID], "json"),
        (dict[str, Any] | dict[str, int], "json cbor"),
        (bool | Decimal, "json"),
        (datetime | Decimal, "json"),
        (timedelta | Decimal, "json"),
        (time | str, "json cbor"),
        (timedelta | time, "json cbor"),
        (Literal[1] | bool, "json cbor"),
        (Literal[2] | float, "json cbor"),
        (Any | Kinds, "json cbor"),
        (Numbered | int, "json cbor"),
        (dict[Kinds, int] | dict[UUID, float], "json cbor"),
        # Their events differ.
        (two(int, str), ""),
        (two(bool, int), ""),
        (two(int, list[int]), ""),
        (two(Literal["a"], Literal["b"]), ""),
        (model("P", kind=Literal["p"], at=date) | model("Q", kind=Literal["q"], at=str), ""),
        (model("P", at=date) | model("Q", at=str, other=int), ""),
        (dict[str, int] | dict[str, str], ""),
        (dict[str, int] | dict[str, int | str], ""),
        (Literal["a"] | Literal["b"] | int, ""),
        (Kinds | int | None, ""),
        (Any | int | None, ""),
        (bool | bytes | UUID | None, "json cbor"),
        (bytes | timedelta, "json cbor"),
        (Kinds | bytes, "json cbor"),
        (str | bytes, "json"),
    ],
    ids=str,
)
def test_a_union_is_refused_in_the_formats_whose_events_do_not_tell_its_types(kind: Any, names: str) -> None:
    for name in ("json", "cbor"):
        objects = model("Holder", items=list[kind])  # type: ignore[valid-type]
        if name in names.split():
            with pytest.raises(SchemaError, match=r"\(at \$\.items\[\]\) are the same in"):
                typed(FORMATS[name](objects), objects)
        else:
            typed(FORMATS[name](objects), objects)


@pytest.mark.parametrize(
    "kind", [Numbered | int, Decimal | Numbered, bool | Numbered, Literal[1] | bool, Literal[2] | float], ids=str
)
@pytest.mark.parametrize("format_name", FORMATS)
def test_a_union_that_pydantic_reads_as_an_equal_number_is_refused(kind: Any, format_name: str) -> None:
    holder = model("Holder", item=kind)
    inner = FORMATS[format_name](holder)
    with pytest.raises(SchemaError, match=r"\(at \$\.item\) are the same in"):
        typed(inner, holder)


def test_msgspec_distinguishes_more_numbers() -> None:
    for kind, value in ((bool | Decimal, Decimal(1)), (Literal[1] | bool, True), (Literal[1] | float, 1.0)):
        holder = one(kind)
        assert repr(again("json", holder, holder(value))) == repr(holder(value))


@pytest.mark.parametrize("format_name", ["json", "cbor"])
def test_models_in_a_union_are_told_apart_by_their_required_fields(format_name: str) -> None:
    more, less = model("More", kind=Kinds, number=int), model("Less", kind=int)
    for value in (more(kind=Kinds.LARGE, number=1), less(kind=1)):
        assert again(format_name, list[more | less], [value]) == [value]  # type: ignore[valid-type]


def test_models_with_tags_of_pydantic_are_told_apart_by_their_function() -> None:
    shipped, note = model("Shipped", at=date), model("Note", at=str)
    choose = pydantic.Discriminator(lambda given: "note" if "x" in str(getattr(given, "at", given)) else "shipped")
    union: Any = Annotated[shipped, pydantic.Tag("shipped")] | Annotated[note, pydantic.Tag("note")]
    holder = model("Holder", item=Annotated[union, choose])
    for value in (shipped(at=date(2026, 1, 2)), note(at="x")):
        assert again("json", holder, holder(item=value)).item == value


@pytest.mark.parametrize("value", [Cat(name="a"), Bird(name="a"), Bat(name="a")], ids=repr)
@pytest.mark.parametrize("format_name", ["json", "cbor"])
def test_models_with_different_fields_need_no_tag(format_name: str, value: Any) -> None:
    found = again(format_name, list[Cat | Bird | Bat], [value])
    assert found == [value]
    assert type(found[0]) is type(value)


@dataclasses.dataclass
class Free:
    free: Any
    kind: Kinds
    price: Decimal


def test_numbers_without_a_declared_type_are_floats_in_json() -> None:
    value = Free({"a": [1.5, 2]}, Kinds.LARGE, Decimal("1.10"))
    assert repr(again("json", Free, value)) == repr(value)
    model = pydantic.create_model("FreeModel", free=(Any, ...), price=(Decimal, ...))
    assert type(again("json", model, model(free=1.5, price=Decimal("1.1"))).free) is float


# ---- generic classes ----

T = TypeVar("T")


class Positions(msgspec.Struct, Generic[T], array_like=True):
    content: T
    number: int = 1


class Left(msgspec.Struct, Generic[T], tag="left"):
    content: T


class Right(msgspec.Struct, Generic[T], tag="right"):
    content: T


class Sparse(msgspec.Struct, Generic[T], omit_defaults=True):
    content: T
    number: int = 3


class Pair(NamedTuple, Generic[T]):
    content: T
    number: int = 2


class Keyed(TypedDict, Generic[T]):
    content: T
    number: NotRequired[int]


@dataclasses.dataclass
class Base(Generic[T]):
    content: T
    name: str = ""


@dataclasses.dataclass
class Between(Base[dict[str, T]], Generic[T]):
    other: T | None = None


@dataclasses.dataclass
class Bound(Between[Decimal]):
    kind: Kinds = Kinds.LARGE


@dataclasses.dataclass
class Bare(Base, Generic[T]):  # type: ignore[type-arg]
    kind: Kinds = Kinds.LARGE
    more: T | None = None


@attrs.define
class AttrsBase(Generic[T]):
    content: T


@attrs.define
class AttrsBound(AttrsBase[list[Kinds]]):
    number: float = math.inf


class BoundStruct(Sparse[Decimal]):
    kind: Kinds = Kinds.SMALL


class BoundPair(Pair[Kinds]):
    pass


class BoundKeyed(Keyed[Kinds]):
    more: int


class BoundAgain(BoundKeyed):
    again: int


Either = Left[Kinds] | Right[Kinds]

LONG = Decimal("0.123456789012345678")


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Pair[int], Pair(1)),
        (Pair[Kinds], Pair(Kinds.LARGE)),
        (one(list[Pair[Kinds]]), None),
        (Either, Left(Kinds.SMALL)),
        (Either, Right(Kinds.LARGE)),
        (Sparse[Kinds], Sparse(Kinds.LARGE)),
        (Keyed[Kinds], {"content": Kinds.LARGE}),
        (Keyed[int], {"content": 1, "number": 2}),
        (Between[Kinds], Between({"a": Kinds.LARGE}, other=Kinds.SMALL)),
        (Bound, Bound({"a": LONG}, other=LONG)),
        (AttrsBound, AttrsBound([Kinds.LARGE])),
        (BoundStruct, BoundStruct(LONG)),
        (BoundPair, BoundPair(Kinds.LARGE)),
    ],
    ids=str,
)
def test_a_generic_class_comes_through_as_its_class_does(format_name: str, kind: Any, value: Any) -> None:
    value = kind([Pair(Kinds.SMALL)]) if value is None else value
    found = again(format_name, kind, value)
    assert found == value
    assert type(found) is type(value)


def test_a_class_has_the_columns_of_its_generic_base_with_arguments() -> None:
    assert arrow_type_of(Bound).field("content").type == pa.map_(pa.string(), arrow_type_of(Decimal))
    assert arrow_type_of(BoundPair).field("content").type == pa.string()


def test_a_generic_base_without_arguments_is_open() -> None:
    value: Any = Bare(1.5, more=LONG)
    assert repr(again("json", Bare[Decimal], value)) == repr(value)


@pytest.mark.parametrize("kind", [BoundKeyed, BoundAgain])
@pytest.mark.parametrize("use", [lambda kind: typed(JsonSerializer(), kind), avro_schema_of, protobuf_schema_of])
def test_a_typeddict_that_inherits_keys_of_a_generic_one_is_refused(kind: Any, use: Any) -> None:
    with pytest.raises(SchemaError, match=rf"{kind.__name__} inherits keys of a generic TypedDict|type ~T .* is open"):
        use(kind)


def test_a_generic_struct_without_names_is_a_list_in_json_and_refused_in_schemas() -> None:
    objects: Any = typed(JsonSerializer(), Positions[Kinds])
    assert objects.serialize(Positions(Kinds.LARGE)) == b'["LARGE",1]'
    assert again("json", Positions[Kinds], Positions(Kinds.LARGE)) == Positions(Kinds.LARGE)
    for derive in (avro_schema_of, protobuf_schema_of):
        with pytest.raises(SchemaError, match="array_like"):
            derive(Positions[int])


# ---- columns ----


class Area(pydantic.BaseModel):
    width: int = pydantic.Field(serialization_alias="Width", validation_alias="Width")
    secret: str = pydantic.Field("s", exclude=True)

    @pydantic.computed_field(alias="double")  # type: ignore[prop-decorator]
    @property
    def doubled(self) -> int:
        return 2 * self.width


class Tagged(msgspec.Struct, tag="tagged"):
    number: int


class Counted(msgspec.Struct, tag=3, tag_field="kind"):
    number: int


class HasRoot(pydantic.BaseModel):
    root: Root


@pytest.mark.parametrize(
    ("kind", "value", "row"),
    [
        (Area, Area(Width=2), {"Width": 2, "double": 4}),
        (Tagged, Tagged(1), {"type": "tagged", "number": 1}),
        (Counted, Counted(1), {"kind": 3, "number": 1}),
        (Root, Root([1, 2]), [1, 2]),
        (HasRoot, HasRoot(root=Root([1])), {"root": [1]}),
        (Pair[int], Pair(1), {"content": 1, "number": 2}),
    ],
    ids=str,
)
@pytest.mark.parametrize("format_name", FORMATS)
def test_columns_are_what_objects_are_written_with(format_name: str, kind: Any, value: Any, row: Any) -> None:
    objects: Any = typed(FORMATS[format_name](kind), kind)
    event = objects.serialize(value)
    found = objects.decode_column(pa.array([event])).to_pylist()
    assert found == [row if isinstance(row, dict) or format_name != "protobuf" else {"value": row}]
    assert objects.deserialize(event) == value


class Written(pydantic.BaseModel):
    number: int

    @pydantic.field_serializer("number")
    def as_text(self, number: int) -> str:
        return str(number)


class Annotations(pydantic.BaseModel):
    numbers: list[Annotated[int, pydantic.PlainSerializer(str)]]


@pytest.mark.parametrize("derive", [arrow_type_of, avro_schema_of, protobuf_schema_of])
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Written, r"Written\.number has its own serializer"),
        (Whole, r"Whole\.number has its own serializer"),
        (Annotations, r"Annotations\.numbers has its own serializer"),
        (one(list[Positioned]), r"Positioned \(at \$\.field\[\]\) is array_like"),
    ],
    ids=str,
)
def test_a_class_whose_events_have_unknown_types_is_refused(derive: Any, kind: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        derive(kind)


def test_a_serializer_that_only_pydantics_json_uses_changes_no_columns() -> None:
    kind: Any = Annotated[int, pydantic.PlainSerializer(str, when_used="json")]
    model = pydantic.create_model("Other", number=(kind, ...))
    assert arrow_type_of(model) == pa.struct([("number", pa.int64())])


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (one(float | int), r"\(at \$\.field\) has no single Arrow type"),
        (one(list[tuple[int, str]]), r"\(at \$\.field\[\]\) has no single Arrow type"),
        (one(dict[None, int]), r"\(at \$\.field\{\}\) has no single Arrow type"),
    ],
    ids=str,
)
def test_a_type_without_columns_is_refused_with_its_path(kind: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        arrow_type_of(kind)


# ---- keys ----


@pytest.mark.parametrize(
    ("key", "value", "names"),
    [
        (str, "a", "json cbor avro protobuf"),
        (UUID, UUID(int=3), "json cbor avro protobuf"),
        (Kinds, Kinds.LARGE, "json cbor avro protobuf"),
        (Sizes, Sizes.HUGE, "json cbor avro protobuf"),
        (Literal["a"], "a", "json cbor avro protobuf"),
        (int, -5, "json cbor protobuf"),
        (str | int, 1, "cbor"),
        (bool, True, "protobuf"),
        (float, 1.5, "json"),
        (bytes, b"\xff", "cbor"),
        *((each, None, "") for each in (Decimal, date, datetime, time, timedelta)),
        *((each, None, "") for each in (tuple[int, int], int | None, type(None))),
    ],
)
@pytest.mark.parametrize("make", [one, lambda kind: pydantic.create_model("Model", field=(kind, ...))])
def test_keys_come_through_or_are_refused_with_their_path(key: Any, value: Any, names: str, make: Any) -> None:
    kind = make(list[dict[key, int]])  # type: ignore[valid-type]
    for name, inner in FORMATS.items():
        if name in names.split():
            assert again(name, kind, kind(field=[{value: 1}])) == kind(field=[{value: 1}])
        else:
            with pytest.raises(SchemaError, match=r"\(?at \$\.field\[\]"):
                typed(inner(kind), kind)


@pytest.mark.parametrize(
    "key",
    [
        "a",
        UUID(int=3),
        5,
        2.0,
        True,
        b"\xff",
        Decimal("123456789012345678.50"),
        date(2026, 1, 2),
        timedelta(1),
        time(1),
    ],
    ids=repr,
)
def test_keys_of_java_come_through(key: Any) -> None:
    objects = typed(JavaSerializer(), dict[type(key), int])  # type: ignore[misc]
    assert objects.deserialize(objects.serialize({key: 1})) == {key: 1}


def test_keys_with_values_inside_are_refused() -> None:
    with pytest.raises(SchemaError, match=r"keys of dict\[tuple\[int, int\], int\] \(at \$\) have no form in Java"):
        typed(JavaSerializer(), dict[tuple[int, int], int])


def test_keys_that_a_written_schema_cannot_have_are_refused() -> None:
    kind = one(dict[date, int])
    schema = avro_schema_of(one(dict[str, int]))
    with pytest.raises(SchemaError, match=r"keys of dict\[datetime.date, int\] \(at \$\.field\) have no form in Avro"):
        typed(AvroSerializer(schema), kind)


# ---- values ----


@pytest.mark.parametrize("format_name", FORMATS)
def test_times_that_could_not_be_read_are_refused(format_name: str) -> None:
    kind, early = one(datetime), datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    with pytest.raises(SerializationError, match=r"beyond the years 1 to 9999 in UTC .*\$\.field"):
        again(format_name, kind, kind(early))


def test_a_duration_beyond_64_bits_of_microseconds_is_refused() -> None:
    kind = one(timedelta)
    for value in (timedelta.max, timedelta.min):
        with pytest.raises(SerializationError, match=r"beyond the 10,000 years .*\$\.field"):
            again("protobuf", kind, kind(value))


@dataclasses.dataclass
class Checked:
    number: int

    def __post_init__(self) -> None:
        if self.number > 5:
            raise LookupError("too large")


class CheckedModel(pydantic.BaseModel):
    number: int

    @pydantic.field_validator("number")
    @classmethod
    def check(cls, number: int) -> int:
        return [0, 1, 2, 3, 4, 5][number]


@pytest.mark.parametrize("kind", [Checked, CheckedModel])
def test_an_error_of_a_class_is_one_of_its_event(kind: Any) -> None:
    for inner in (JsonSerializer(), CborSerializer()):
        with pytest.raises(DeserializationError, match=rf"does not fit {kind.__name__}: (LookupError: too|IndexError)"):
            typed(inner, kind).deserialize(inner.serialize({"number": 6}))


def test_sets_that_java_does_not_have_are_refused() -> None:
    with pytest.raises(SerializationError, match="a set of these values has no form in Java"):
        typed(JavaSerializer(), set[tuple[int, int]]).serialize({(1, 2)})


# ---- errors ----


class Leaf(msgspec.Struct, tag="leaf"):
    number: int


class Branch(msgspec.Struct, tag="branch"):
    inner: Union["Branch", Leaf]


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_value_of_any_depth_is_written_or_an_error(format_name: str) -> None:
    objects: Any = typed(FORMATS[format_name](Branch), Branch)
    outcomes = collections.Counter[str]()
    value: Any = Leaf(1)
    for _ in range(40):
        for _ in range(20):
            value = Branch(value)
        try:
            event = objects.serialize(value)
        except SerializationError:
            outcomes["not written"] += 1
            continue
        try:
            assert objects.serialize(objects.deserialize(event)) == event
            outcomes["read"] += 1
        except LimitExceededError:
            outcomes["not read"] += 1
    assert outcomes["read"] > 1


class Odd:
    pass


@pytest.mark.parametrize("derive", [avro_schema_of, protobuf_schema_of])
@pytest.mark.parametrize(
    ("field", "default"),
    [
        (int, Odd()),
        (int | None, ...),
        (list[int], Odd()),
        (tuple[int, ...], (1, Odd())),
        (frozenset[int], frozenset({Odd()})),
        (float, 1j),
        (int, enum.Enum),
        (str, lambda: "x"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_default_of_another_type_is_refused_with_its_path(derive: Any, field: Any, default: Any) -> None:
    with pytest.raises(SchemaError, match=r"default .* at \$\.field does not fit its type"):
        derive(one(field, default))


def test_a_default_that_no_double_holds_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"at \$\.field is too large for a double"):
        avro_schema_of(one(float, 10**400))


Many = typing_extensions.TypeAliasType("Many", list[T], type_params=(T,))


def test_an_alias_that_contains_itself_is_refused_with_its_path() -> None:
    recursive: Any = type("TypeAliasType", (), {})()  # as Python 3.12 makes it of "type Tree = dict[str, Tree]"
    recursive.__value__ = dict[str, recursive]
    kind = dataclasses.make_dataclass("Kept", [("tree", recursive)])
    for use in (lambda: typed(JsonSerializer(), kind), lambda: avro_schema_of(kind), lambda: protobuf_schema_of(kind)):
        with pytest.raises(SchemaError, match=r"\(?at \$\.tree.*(contains itself|nested more than)"):
            use()
    with pytest.raises(SchemaError, match=r"at \$\.tree.*contains itself"):
        arrow_type_of(kind)


@pytest.mark.parametrize("format_name", FORMATS)
def test_an_alias_with_arguments_is_its_type(format_name: str) -> None:
    model = pydantic.create_model("Kept", kinds=(Many[Kinds], ...))  # type: ignore[valid-type]
    value = model(kinds=[Kinds.LARGE])
    assert again(format_name, model, value) == value
    assert arrow_type_of(Many[int]) == pa.list_(pa.field("element", pa.int64()))
