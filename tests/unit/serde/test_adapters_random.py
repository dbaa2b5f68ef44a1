"""Random classes of every library: their objects come through JSON, Avro and Protobuf, and columns equal rows."""

import dataclasses
import itertools
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from types import GenericAlias
from typing import Any, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID

import attrs
import msgspec
import pyarrow as pa
import pydantic
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_serde import CborSerializer, JsonSerializer, SchemaError, typed
from tests.unit.serde._schema_classes import Box, Inner, Kinds, Sizes
from tests.unit.serde.test_adapters_schemas import check_avro, check_protobuf, shown

LONGS = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-2, 2)
FLOATS = st.floats(allow_nan=False) | st.integers(-2, 2).map(float)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)).map(
    lambda at: at.replace(fold=0)
)
DECIMALS = st.integers(-(10**20), 10**20).map(lambda digits: Decimal(digits).scaleb(-6))
TIMES = st.times().map(lambda at: at.replace(fold=0))

#: Types, and their values.
Leaves = list[tuple[Any, st.SearchStrategy[Any]]]

#: With columns in JSON.
COLUMNS: Leaves = [
    (bool, st.booleans()),
    (int, LONGS),
    (float, FLOATS),
    (str, TEXTS),
    (bytes, st.binary(max_size=4)),
    (date, st.dates()),
    (datetime, MOMENTS),
    (Decimal, DECIMALS),
    (UUID, st.uuids()),
    (Kinds, st.sampled_from(Kinds)),
    (Sizes, st.sampled_from(Sizes)),
    (Inner, st.builds(Inner, LONGS, st.none() | TEXTS)),
    (Literal["x", "y"], st.sampled_from(["x", "y"])),
    (dict[Kinds, int], st.dictionaries(st.sampled_from(Kinds), LONGS, max_size=2)),
    (dict[UUID, float], st.dictionaries(st.uuids(), FLOATS, max_size=2)),
]
#: That JSON can tell apart.
ROWS: Leaves = [
    *COLUMNS,
    (time, TIMES),
    (timedelta, st.timedeltas(timedelta(-99999), timedelta(99999))),
    (int | str, LONGS | TEXTS),
    (float | int, FLOATS | LONGS),
    (int | float | None, st.none() | FLOATS | LONGS),
    (tuple[float, int], st.tuples(FLOATS, LONGS)),
    (list[int | float], st.lists(FLOATS | LONGS, max_size=3)),
    (bool | bytes | None, st.none() | st.booleans() | st.binary(max_size=3)),
]
#: That formats with a schema can tell apart.
SCHEMAS: Leaves = [
    *ROWS,
    (Decimal | int, DECIMALS | LONGS),
    (float | Decimal, DECIMALS | FLOATS),
    (tuple[Decimal, float, int], st.tuples(DECIMALS, FLOATS, LONGS)),
]

T = TypeVar("T")


class Wrap(msgspec.Struct, Generic[T]):
    content: T
    more: list[T] = []


class Pair(NamedTuple, Generic[T]):
    content: T
    number: int = 2


GENERIC: list[Any] = [Box, Wrap, Pair]

#: Makers of classes, and the generic classes that their fields can have.
MAKERS: list[tuple[Any, list[Any]]] = [
    (dataclasses.make_dataclass, GENERIC),
    (msgspec.defstruct, GENERIC),
    (lambda name, fields: attrs.make_class(name, {field: attrs.field(type=kind) for field, kind in fields}), GENERIC),
    (
        lambda name, fields: pydantic.create_model(
            name,
            __config__=pydantic.ConfigDict(val_json_bytes="base64"),
            **dict[str, Any]({field: (kind, ...) for field, kind in fields}),
        ),
        [Box],
    ),
]
NUMBERS = itertools.count()  # a schema has each name once


def classes_of(leaves: Leaves, make_class: Any, generic: list[Any]) -> st.SearchStrategy[Any]:
    """Return random classes of one library, each with the strategy of its objects."""

    def made_class(parts: list[Any]) -> Any:
        kind = make_class(f"Made{next(NUMBERS)}", [(f"f{position}", part[0]) for position, part in enumerate(parts)])
        fields = st.fixed_dictionaries({f"f{position}": part[1] for position, part in enumerate(parts)})
        return kind, fields.map(lambda given: kind(**given))

    def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            inner.map(lambda each: (GenericAlias(list, each[0]), st.lists(each[1], max_size=3))),
            inner.map(lambda each: (GenericAlias(dict, (str, each[0])), st.dictionaries(TEXTS, each[1], max_size=3))),
            inner.map(lambda each: (each[0] | None, st.none() | each[1])),
            inner.map(lambda each: (GenericAlias(tuple, (each[0], each[0])), st.tuples(each[1], each[1]))),
            st.tuples(st.sampled_from(generic), inner).map(lambda both: (both[0][both[1][0]], both[1][1].map(both[0]))),
            st.lists(inner, max_size=2).map(made_class),
        )

    return st.lists(st.recursive(st.sampled_from(leaves), larger, max_leaves=5), max_size=4).map(made_class)


def classes(leaves: Leaves) -> st.SearchStrategy[Any]:
    return st.sampled_from(MAKERS).flatmap(lambda maker: classes_of(leaves, *maker))


@given(chosen=classes(SCHEMAS), data=st.data())
@settings(max_examples=30, deadline=None)
def test_random_classes_come_through_their_schemas(chosen: Any, data: Any) -> None:
    kind, values = chosen
    value = data.draw(values)
    check_avro(kind, value)
    check_protobuf(kind, value)


@given(chosen=classes(ROWS), data=st.data())
@settings(max_examples=50, deadline=None)
def test_random_classes_come_through_json(chosen: Any, data: Any) -> None:
    kind, values = chosen
    value = data.draw(values)
    objects = typed(JsonSerializer(), kind)
    found = objects.deserialize(objects.serialize(value))
    assert found == value
    assert shown(found).replace("TzInfo(0)", "datetime.timezone.utc") == shown(value)


UNIONS: list[Any] = [
    lambda one, other: (one | other, lambda value, _: value),
    lambda one, other: (dict[str, one] | dict[str, other], lambda value, _: {"key": value}),  # type: ignore[valid-type]
    lambda one, other: (
        (first := made_model("First", field=one)) | (second := made_model("Second", field=other)),
        lambda value, position: (first, second)[position](field=value),
    ),
]


def made_model(name: str, **fields: Any) -> Any:
    config = pydantic.ConfigDict(val_json_bytes="base64")
    return pydantic.create_model(name, __config__=config, **{each: (kind, ...) for each, kind in fields.items()})


@given(
    leaves=st.tuples(*[st.sampled_from(ROWS)] * 2),
    make_union=st.sampled_from(UNIONS),
    serializer=st.sampled_from([JsonSerializer(), CborSerializer()]),
    data=st.data(),
)
@settings(max_examples=100, deadline=None)
def test_random_unions_come_through_or_are_refused(leaves: Any, make_union: Any, serializer: Any, data: Any) -> None:
    union, wrapped = make_union(*(kind for kind, _ in leaves))
    kind = made_model("Holder", held=union)
    try:
        objects: Any = typed(serializer, kind)
    except SchemaError:
        return
    for position, (_, values) in enumerate(leaves):
        # Without validation, which would choose a type of the union itself.
        value = kind.model_construct(held=wrapped(data.draw(values), position))
        found = objects.deserialize(objects.serialize(value))
        assert shown(found).replace("TzInfo(0)", "datetime.timezone.utc") == shown(value)


def exact(event: bytes) -> Any:
    """Return the values of an event with all digits of its numbers."""
    return json.loads(event, parse_float=Decimal)


@given(chosen=classes(COLUMNS), data=st.data())
@settings(max_examples=50, deadline=None)
def test_columns_of_random_classes_are_their_rows(chosen: Any, data: Any) -> None:
    kind, values = chosen
    objects = typed(JsonSerializer(), kind)
    rows = [objects.serialize(value) for value in data.draw(st.lists(values, min_size=1, max_size=3))]
    column = objects.decode_column(pa.array(rows))
    assert column.type == objects.arrow_type
    assert [exact(event) for event in objects.encode_column(column).to_pylist()] == [exact(event) for event in rows]
