"""Avro with random schemas and values: rows, columns and fastavro agree, and bad bytes are nothing but that."""

import io
import itertools
import json
import math
import string
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

from pravega_serde import DeserializationError
from pravega_serde.avro import AvroSerializer
from pravega_serde.avro.storage import lowering

LONG = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-200, 200)
INT = st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-200, 200)
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))

PRIMITIVES = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": INT,
    "long": LONG,
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=12),
    "string": TEXT,
}


def millis(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


LOGICAL = {
    ("int", "date"): st.dates(),
    ("long", "timestamp-millis"): MOMENTS.map(lambda m: millis(m).replace(tzinfo=UTC)),
    ("long", "timestamp-micros"): MOMENTS.map(lambda m: m.replace(tzinfo=UTC)),
    ("long", "local-timestamp-millis"): MOMENTS.map(millis),
    ("long", "local-timestamp-micros"): MOMENTS,
    ("int", "time-millis"): st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)),
    ("long", "time-micros"): st.times(),
    ("string", "uuid"): st.uuids(),
}


@st.composite
def schemas(draw: Any, names: Any = None, depth: int = 3, in_union: bool = False) -> tuple[Any, Any]:
    """A schema and the strategy of its natural values."""
    names = names if names is not None else (f"N{i}" for i in itertools.count())
    kinds = ["primitive", "logical", "decimal", "enum", "fixed"]
    if depth:
        kinds += ["array", "map", "record", "record"] + ([] if in_union else ["optional", "union"])
    kind = draw(st.sampled_from(kinds))
    return draw(BUILD[kind](names, depth - 1))


@st.composite
def _primitive(draw: Any, names: Any, depth: int) -> tuple[Any, Any]:
    name = draw(st.sampled_from(sorted(PRIMITIVES)))
    return (name if draw(st.booleans()) else {"type": name}), PRIMITIVES[name]


@st.composite
def _logical(draw: Any, names: Any, depth: int) -> tuple[Any, Any]:
    kind, logical = draw(st.sampled_from(sorted(LOGICAL)))
    return {"type": kind, "logicalType": logical}, LOGICAL[kind, logical]


@st.composite
def _decimal(draw: Any, names: Any, depth: int) -> tuple[Any, Any]:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    limit = 10**precision - 1
    values = st.integers(-limit, limit).map(
        lambda n: Decimal(n).scaleb(-scale) if precision < 28 else Decimal(f"{n}E-{scale}")
    )
    schema = {"logicalType": "decimal", "precision": precision, "scale": scale}
    if draw(st.booleans()):
        return {"type": "bytes", **schema}, values
    return {"type": "fixed", "name": next(names), "size": draw(st.integers(16, 17)), **schema}, values


@st.composite
def _enum(draw: Any, names: Any, depth: int) -> tuple[Any, Any]:
    symbols = draw(st.lists(st.text(string.ascii_letters, min_size=1, max_size=4), min_size=1, max_size=5, unique=True))
    return {"type": "enum", "name": next(names), "symbols": symbols}, st.sampled_from(symbols)


@st.composite
def _fixed(draw: Any, names: Any, depth: int) -> tuple[Any, Any]:
    size = draw(st.integers(0, 9))
    return {"type": "fixed", "name": next(names), "size": size}, st.binary(min_size=size, max_size=size)


@st.composite
def _array(draw: Any, names: Any, depth: int) -> tuple[Any, Any]:
    items, values = draw(schemas(names, depth))
    return {"type": "array", "items": items}, st.lists(values, max_size=4)


@st.composite
def _map(draw: Any, names: Any, depth: int) -> tuple[Any, Any]:
    inner, values = draw(schemas(names, depth))
    return {"type": "map", "values": inner}, st.dictionaries(TEXT, values, max_size=3)


@st.composite
def _record(draw: Any, names: Any, depth: int) -> tuple[Any, Any]:
    fields, values = [], {}
    name = next(names)
    for index in range(draw(st.integers(0, 4))):
        kind, inner = draw(schemas(names, depth))
        fields.append({"name": f"f{index}", "type": kind})
        values[f"f{index}"] = inner
    return {"type": "record", "name": name, "fields": fields}, st.fixed_dictionaries(values)


@st.composite
def _optional(draw: Any, names: Any, depth: int) -> tuple[Any, Any]:
    inner, values = draw(schemas(names, depth, True))
    assume(inner not in ("null", {"type": "null"}))
    branches = ["null", inner] if draw(st.booleans()) else [inner, "null"]
    return branches, st.none() | values


@st.composite
def _union(draw: Any, names: Any, depth: int) -> tuple[Any, Any]:
    """Labels distinguish members where Python's types do not; fastavro does the same."""
    members = {}
    for _ in range(draw(st.integers(1, 4))):
        inner, values = draw(schemas(names, depth, True))
        label = inner if isinstance(inner, str) else inner.get("name") or inner["type"]
        members[label] = (inner, values)
    tagged = [
        values.map(lambda value, label=label: None if label == "null" else (label, value))
        for label, (_, values) in members.items()
    ]
    only = [label for label in members if label != "null"]
    if len(only) < 2:
        tagged = [values for _, values in members.values()]
    return [inner for inner, _ in members.values()], st.one_of(tagged)


BUILD = {
    "primitive": _primitive,
    "logical": _logical,
    "decimal": _decimal,
    "enum": _enum,
    "fixed": _fixed,
    "array": _array,
    "map": _map,
    "record": _record,
    "optional": _optional,
    "union": _union,
}


@st.composite
def examples(draw: Any, most: int = 8) -> tuple[Any, list[Any]]:
    schema, values = draw(schemas())
    return schema, draw(st.lists(values, min_size=1, max_size=most))


def unlabelled(value: Any) -> Any:
    if isinstance(value, tuple):
        return unlabelled(value[1])
    if isinstance(value, dict):
        return {key: unlabelled(inner) for key, inner in value.items()}
    return [unlabelled(inner) for inner in value] if isinstance(value, list) else value


def by_fastavro(schema: Any, data: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(schema), None)


@given(examples())
def test_rows_survive_and_fastavro_reads_them(example: tuple[Any, list[Any]]) -> None:
    schema, values = example
    serializer = AvroSerializer(schema)
    for value in values:
        data = serializer.serialize(value)
        again = serializer.deserialize(data)
        assert unlabelled(again) == unlabelled(value)
        assert serializer.serialize(serializer.deserialize(data)) == data or _ambiguous(schema)
        assert serializer.deserialize(data + bytes(5)) == again
        assert unlabelled(by_fastavro(schema, data)) == unlabelled(value)


def _ambiguous(schema: Any) -> bool:
    """Return True if a union has two branches with similar values, so that writing again may choose the other."""
    text = str(schema)
    return any(text.count(word) for word in ("int", "float", "bytes", "string", "long", "map", "decimal"))


@given(examples())
def test_columns_read_as_rows_do(example: tuple[Any, list[Any]]) -> None:
    schema, values = example
    serializer = AvroSerializer(schema)
    events: list[Any] = [serializer.serialize(value) for value in values]
    events.insert(len(events) // 2, None)
    column = pa.array(events, pa.binary())
    decoded = serializer.decode_column(column)
    decoded.validate(full=True)
    assert decoded.type == serializer.arrow_type
    plain = serializer.column_reader.plain
    expected = pa.array([None if event is None else plain.read(event) for event in events], plain.arrow_type)
    assert decoded.equals(expected)
    padded = pa.array([None if event is None else event + bytes(3) for event in events], pa.binary())
    assert serializer.decode_column(padded).equals(expected)
    assert serializer.decode_column(column.slice(1)).equals(expected.slice(1))


@given(examples())
def test_columns_write_as_rows_do(example: tuple[Any, list[Any]]) -> None:
    schema, values = example
    serializer = AvroSerializer(schema)
    events = [serializer.serialize(value) for value in values]
    decoded = serializer.decode_column(pa.array(events, pa.binary()))
    serializer.check_encodable(decoded.type)
    assert serializer.encode_column(decoded).to_pylist() == written(schema, events, decoded)
    writer = serializer.column_writer
    stored = writer.stored(decoded)
    assert writer.plain(stored).to_pylist() == written(schema, events, decoded)
    # A decimal of more than sixteen bytes is the one thing that the fast path leaves to the plain one.
    if '"size": 17' not in json.dumps(schema):
        assert writer.fast(stored).to_pylist() == written(schema, events, decoded)
    with_null = pa.concat_arrays([decoded, pa.nulls(1, decoded.type), decoded])
    again = serializer.encode_column(with_null.slice(1))
    assert again.to_pylist()[len(events) - 1 :] == [
        written(schema, [None], pa.nulls(1, decoded.type))[0],
        *written(schema, events, decoded),
    ]


def written(schema: Any, events: list[Any], decoded: pa.Array) -> list[Any]:
    """A row that is null as a whole is not an event, even where null is a value of the schema."""
    return [event if there else None for event, there in zip(events, decoded.is_valid().to_pylist(), strict=True)]


FLAT_TYPES = ["boolean", "int", "long", "float", "double", "string"]
FLAT_LOGICAL = [("int", "date"), ("long", "timestamp-millis"), ("long", "timestamp-micros")]


@st.composite
def flat_examples(draw: Any) -> tuple[Any, list[Any]]:
    """Input of the compiled writer: records of primitives, dates and timestamps, or null."""
    fields, values = [], {}
    for index in range(draw(st.integers(1, 5))):
        name, logical = draw(st.sampled_from([(name, None) for name in FLAT_TYPES] + FLAT_LOGICAL))
        kind: Any = name if logical is None else {"type": name, "logicalType": logical}
        inner = PRIMITIVES[name] if logical is None else LOGICAL[name, logical]
        order = draw(st.sampled_from([None, ["null", kind], [kind, "null"]]))
        fields.append({"name": f"f{index}", "type": order or kind})
        values[f"f{index}"] = inner if order is None else st.none() | inner
    rows = draw(st.lists(st.fixed_dictionaries(values), min_size=1, max_size=8))
    return {"type": "record", "name": "R", "fields": fields}, rows


@st.composite
def compilable(draw: Any, names: Any, depth: int) -> tuple[Any, Any]:
    """A type that the compiled writer takes, and its values."""
    kinds = ["flat", "flat", "enum", *(["array", "map", "record", "optional"] if depth else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "enum":
        return draw(_enum(names, depth))
    if kind in ("array", "map"):
        items, values = draw(compilable(names, depth - 1))
        many = st.lists(values, max_size=3) if kind == "array" else st.dictionaries(TEXT, values, max_size=3)
        return {"type": kind, ("items" if kind == "array" else "values"): items}, many
    if kind == "optional":
        inner, values = draw(compilable(names, depth - 1).filter(lambda made: not isinstance(made[0], list)))
        return draw(st.sampled_from([["null", inner], [inner, "null"]])), st.none() | values
    if kind == "record":
        return draw(compilable_records(names, depth - 1))
    name, logical = draw(st.sampled_from([(name, None) for name in FLAT_TYPES] + FLAT_LOGICAL))
    return (
        (name, PRIMITIVES[name])
        if logical is None
        else ({"type": name, "logicalType": logical}, LOGICAL[name, logical])
    )


@st.composite
def compilable_records(draw: Any, names: Any, depth: int) -> tuple[Any, Any]:
    parts = [draw(compilable(names, depth)) for _ in range(draw(st.integers(1, 4)))]
    fields = [{"name": f"f{index}", "type": kind} for index, (kind, _) in enumerate(parts)]
    values = {f"f{index}": inner for index, (_, inner) in enumerate(parts)}
    return {"type": "record", "name": next(names), "fields": fields}, st.fixed_dictionaries(values)


@st.composite
def nested_examples(draw: Any) -> tuple[Any, list[Any]]:
    schema, values = draw(compilable_records((f"N{i}" for i in itertools.count()), 3))
    return schema, draw(st.lists(values, min_size=1, max_size=8))


@given(flat_examples() | nested_examples())
def test_the_compiled_writer_writes_the_same(example: tuple[Any, list[Any]]) -> None:
    schema, values = example
    serializer = AvroSerializer(schema)
    events = pa.array([serializer.serialize(value) for value in values])
    decoded = serializer.decode_column(events)
    writer = serializer.column_writer
    writer.check(decoded.type)
    stored = writer.stored(decoded)
    compiled = writer.compiled(stored)
    assert compiled is not None
    assert compiled.equals(events)
    assert writer.fast(stored).equals(events)


@given(examples(3), st.data())
def test_damaged_events_are_found_alike_by_rows_and_columns(example: tuple[Any, list[Any]], data: Any) -> None:
    schema, values = example
    serializer = AvroSerializer(schema)
    events = []
    for value in values:
        event = serializer.serialize(value)
        events += [event, event[: data.draw(st.integers(0, len(event)))], data.draw(st.binary(max_size=20))]
        damaged = bytearray(event)
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        events.append(bytes(damaged))
    rows: dict[int, DeserializationError] = {}
    plain = serializer.column_reader.plain
    expected = []
    for row, event in enumerate(events):
        try:
            expected.append(plain.read(event))
        except DeserializationError as error:
            rows[row] = error
            expected.append(None)
    errors: list[DeserializationError] = []
    decoded = serializer.decode_column(pa.array(events), on_error=errors.append)
    decoded.validate(full=True)
    assert [error.row for error in errors] == list(rows)
    assert [error.reason for error in errors] == [error.reason for error in rows.values()]
    assert shown(serializer, decoded) == shown(serializer, pa.array(expected, plain.arrow_type))


def shown(serializer: AvroSerializer, column: pa.Array) -> str:
    """Values as text: a NaN is not equal to itself. Dates as numbers: Python has none beyond its year 9999."""
    return str(lowering(serializer._writer, column.type)(column).to_pylist())


@given(examples(1), st.data())
def test_every_truncation_is_an_error_or_a_value(example: tuple[Any, list[Any]], data: Any) -> None:
    schema, values = example
    serializer = AvroSerializer(schema)
    event = serializer.serialize(values[0])
    for size in range(len(event)):
        with suppress(DeserializationError):
            serializer.deserialize(event[:size])


def test_nans_survive() -> None:
    serializer = AvroSerializer(["double", "float"])
    assert math.isnan(serializer.deserialize(serializer.serialize(math.nan)))
