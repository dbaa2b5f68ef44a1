"""Models of pydantic: strict models, types that pydantic only accepts as objects, and serializers of models."""

import collections
import enum
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from uuid import UUID

import msgspec
import pydantic
import pytest
import typing_extensions

from pravega_serde import DeserializationError, SchemaError, SerializationError, typed
from pravega_serde.cbor import CborSerializer
from pravega_serde.json import JsonSerializer
from tests.unit.serde._schema_classes import Kinds, Sizes
from tests.unit.serde._typed import FORMATS, Plain, Positioned, Root, Whole, again, model, one


class Strict(pydantic.BaseModel, strict=True):
    id: UUID
    numbers: set[int]
    some: frozenset[Kinds]
    pair: tuple[int, str]
    more: tuple[timedelta, ...]
    kind: Kinds | None
    sizes: dict[Sizes, UUID]
    either: UUID | int
    at: time
    ratio: float
    prices: list[Decimal]
    blob: bytes
    inner: "Strict | None" = None


class StrictFields(pydantic.BaseModel):
    id: UUID = pydantic.Field(strict=True)
    days: list[Annotated[timedelta, pydantic.Strict()]]
    kind: Annotated[Kinds, pydantic.Field(strict=True)]


@pytest.mark.parametrize("format_name", FORMATS)
def test_strict_models_read_what_they_write(format_name: str) -> None:
    values: dict[str, Any] = {
        "id": UUID(int=3),
        "numbers": {1, 2},
        "some": frozenset({Kinds.LARGE}),
        "pair": (1, "a"),
        "more": (timedelta(1), timedelta(microseconds=1)),
        "kind": Kinds.SMALL,
        "sizes": {Sizes.HUGE: UUID(int=4)},
        "either": UUID(int=5),
        "at": time(1, 2, 3),
        "ratio": -math.inf,
        "prices": [Decimal(0), Decimal("1.5")],
        "blob": b"abcd",
    }
    value = Strict(**values, inner=Strict(**{**values, "kind": None, "either": 5}))
    assert again(format_name, Strict, value) == value
    fields = StrictFields(id=UUID(int=3), days=[timedelta(1)], kind=Kinds.LARGE)
    assert again(format_name, StrictFields, fields) == fields


def test_a_strict_model_remains_strict() -> None:
    objects = typed(CborSerializer(), StrictFields)
    event = CborSerializer().serialize({"id": 3, "days": [], "kind": "LARGE"})
    with pytest.raises(DeserializationError, match=r"should be an instance of UUID .*\$\.id"):
        objects.deserialize(event)


@pydantic.dataclasses.dataclass(config=pydantic.ConfigDict(strict=True))
class StrictPlain:
    number: int


class Named(NamedTuple):
    kind: Kinds


class Small(pydantic.BaseModel, frozen=True):
    number: int


def strict(field: Any) -> Any:
    return pydantic.create_model("Holder", __config__=pydantic.ConfigDict(strict=True), field=(field, ...))


@pytest.mark.parametrize("format_name", ["cbor", "avro", "protobuf"])
@pytest.mark.parametrize("kind", [strict(Plain), StrictPlain, model("Holder", field=StrictPlain), strict(set[Small])])
def test_strict_models_with_objects_that_events_do_not_have_are_refused(format_name: str, kind: Any) -> None:
    with pytest.raises(SchemaError, match="in strict mode"):
        typed(FORMATS[format_name](kind), kind)


def test_strict_models_read_dataclasses_from_json() -> None:
    kind = strict(Plain)
    assert again("json", kind, kind(field=Plain(1))) == kind(field=Plain(1))


def any_model(field: Any) -> Any:
    config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    return pydantic.create_model("Holder", __config__=config, field=(field, ...))


@pytest.mark.parametrize(
    "field",
    [Named, list[Named], Positioned, bytearray, memoryview, complex, collections.deque[int], collections.Counter[str]],
    ids=str,
)
@pytest.mark.parametrize("format_name", ["json", "cbor"])
def test_a_type_of_which_pydantic_only_accepts_objects_is_refused(format_name: str, field: Any) -> None:
    kind = any_model(field)
    with pytest.raises(SchemaError, match=r"pydantic cannot read .* \(at \$\.field"):
        typed(FORMATS[format_name](kind), kind)


AliasChoices = pydantic.AliasChoices
Computes = {"double": pydantic.computed_field(property(lambda self: 1), return_type=int)}


def with_fields(first: Any, second: Any, **more: Any) -> Any:
    names = {"__module__": __name__, "__annotations__": {"first": int, "second": int}}
    return type("Holder", (pydantic.BaseModel,), {**names, "first": first, "second": second, **more})


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (model("Holder", field=pydantic.Json), "pydantic.Json"),
        (model("Holder", field=pydantic.Json[list[int]] | None), "pydantic.Json"),
        (with_fields(pydantic.Field(alias="x"), pydantic.Field(alias="x")), "name of another field"),
        (with_fields(pydantic.Field(validation_alias=AliasChoices("second", "first")), 2), "name of another field"),
        (with_fields(pydantic.Field(validation_alias=AliasChoices("double", "first")), 2, **Computes), "another field"),
        (with_fields(1, 2, **Computes, model_config=pydantic.ConfigDict(extra="allow")), "computed double"),
        (with_fields(pydantic.Field(exclude=True), 2), "Holder.first is required, but excluded"),
        (
            with_fields(
                pydantic.Field(alias="x"),
                2,
                model_config=pydantic.ConfigDict(validate_by_alias=False, validate_by_name=True),
            ),
            "writes Holder.first as 'x'",
        ),
        (model("Holder", field=Literal["LARGE", Kinds.LARGE]), r"\(at \$\.field\) are the same text"),
        (model("Holder", field=Root | list[int]), r"\(at \$\.field\) are the same in events"),
        (
            msgspec.defstruct("Held", [("model", Small)]),
            "Held .*cannot|cannot be read as Held|pydantic cannot read Held",
        ),
        (one(enum.Enum("Big", {"ONE": 1 << 70})), "cannot be read as One"),
    ],
    ids=str,
)
@pytest.mark.parametrize("format_name", ["json", "cbor"])
def test_a_class_that_reads_other_values_than_it_writes_is_refused(format_name: str, kind: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        typed(FORMATS[format_name](kind), kind)


@pytest.mark.parametrize(
    "field", [Literal[b"a"], Literal[b"a", "YQ=="], dict[Literal[1, 2], int], TypeVar("AnyText", str, bytes)], ids=str
)
def test_a_type_that_pydantic_does_not_read_from_json_is_refused_there(field: Any) -> None:
    kind = model("Holder", field=field)
    with pytest.raises(SchemaError, match=r"\(at \$\.field\)"):
        typed(JsonSerializer(), kind)
    assert typed(CborSerializer(), kind)


IntSizes = enum.IntEnum("IntSizes", {"ONE": 1})


@pytest.mark.parametrize("field", [Literal[IntSizes.ONE] | int, Literal[1] | IntSizes], ids=str)
@pytest.mark.parametrize("format_name", FORMATS)
def test_a_literal_that_equals_a_value_next_to_it_is_refused_in_models(format_name: str, field: Any) -> None:
    kind = model("Holder", field=field)
    with pytest.raises(SchemaError, match=r"\(at \$\.field\) are the same"):
        typed(FORMATS[format_name](kind), kind)


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_constant_is_read_by_its_name_and_not_by_its_value(format_name: str) -> None:
    for field, value in (
        (enum.Enum("Big", {"ONE": 1 << 70}), 1 << 70),
        (enum.Enum("Truths", {"ONE": True, "OTHER": "x"}), True),
        (Literal[Kinds.LARGE] | int, None),
    ):
        kind = model("Holder", field=field)
        constant = Kinds.LARGE if value is None else field(value)  # type: ignore[operator]
        assert again(format_name, kind, kind(field=constant)).field is constant


@pytest.mark.parametrize("field", [date | datetime, datetime | str], ids=str)
def test_a_local_time_of_cbor_is_text_in_unions(field: Any) -> None:
    kind = model("Holder", field=field)
    with pytest.raises(SchemaError, match=r"\(at \$\.field\) are the same in CBOR"):
        typed(CborSerializer(), kind)


@pytest.mark.parametrize("make", [one, lambda kind: model("Model", field=kind), strict])
@pytest.mark.parametrize("format_name", FORMATS)
def test_a_uuid_in_a_union_comes_through(format_name: str, make: Any) -> None:
    uuid = UUID(int=3)
    for field, values in ((UUID | int, [uuid, 1]), (UUID | bool | None, [uuid, True]), (tuple[UUID, int], [(uuid, 1)])):
        kind = make(field)
        for value in values:
            assert again(format_name, kind, kind(field=value)).field == value


class Millis(pydantic.BaseModel):
    at: datetime

    @pydantic.field_serializer("at")
    def as_millis(self, at: datetime) -> int:
        return round(at.timestamp() * 1000)


class AliasedWritten(pydantic.BaseModel):
    number: typing_extensions.TypeAliasType("Next", Annotated[int, pydantic.PlainSerializer(lambda n: n + 1)])  # type: ignore[valid-type]


@pytest.mark.parametrize("format_name", ["json", "cbor"])
def test_the_event_of_a_models_own_serializer_is_read_when_it_is_written(format_name: str) -> None:
    value = Millis(at=datetime(2026, 1, 2, tzinfo=UTC))
    assert again(format_name, Millis, value) == value
    for other in (Millis(at=datetime(2026, 1, 2, 0, 0, 0, 5, tzinfo=UTC)), AliasedWritten(number=1)):
        with pytest.raises(SerializationError, match="has a serializer whose event is read as another value"):
            again(format_name, type(other), other)
    with pytest.raises(SerializationError, match="has a serializer whose event is not read"):
        again(format_name, Whole, Whole(number=1))
