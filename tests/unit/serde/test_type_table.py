"""One table has the forms of all Arrow types, and every format uses it."""

import json
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pravega_serde import (
    AvroSerializer,
    CborSerializer,
    JavaSerializer,
    JsonSerializer,
    ProtobufSerializer,
    SchemaError,
    avro_schema_of,
    json_schema_of,
)
from pravega_serde.columnar.types import ROWS, row_of
from pravega_serde.java import Long
from pravega_serde.json import arrow_type_of_json_schema
from pravega_serde.protobuf import protobuf_schema_of

#: A type for each row.
TYPES: dict[str, pa.DataType] = {
    "decimal": pa.decimal128(5, 2),
    "decimal (p > 38)": pa.decimal256(40, 2),
    "decimal (s < 0)": pa.decimal128(5, -2),
    "fixed_size_binary": pa.binary(4),
    "date": pa.date64(),
    "timestamp[ms, tz]": pa.timestamp("s", "UTC"),
    "timestamp[us, tz]": pa.timestamp("ns", "Asia/Tokyo"),
    "timestamp[ms]": pa.timestamp("ms"),
    "timestamp[us]": pa.timestamp("us"),
    "time32": pa.time32("ms"),
    "time64": pa.time64("us"),
    "duration": pa.duration("us"),
    "struct": pa.struct([("x", pa.int32())]),
    "list": pa.large_list(pa.int32()),
    "map": pa.map_(pa.string(), pa.int32()),
    "dictionary": pa.dictionary(pa.int8(), pa.int32()),
}
NESTED = ("struct", "list", "map", "dictionary")


def _avro(kind: pa.DataType) -> str:
    schema = json.loads(avro_schema_of(pa.schema([("f", kind)]), "R"))["fields"][0]["type"]
    leaf = next((branch for branch in schema if branch != "null"), "null") if isinstance(schema, list) else schema
    return leaf if isinstance(leaf, str) else ", ".join(leaf[key] for key in ("type", "logicalType") if key in leaf)


def _protobuf(kind: pa.DataType) -> str:
    (file,) = protobuf_schema_of(pa.schema([("f", kind)]), "R").file
    field = file.message_type[0].field[0]
    return field.type_name[1:] or field.Type.Name(field.type)


def _json(kind: pa.DataType) -> str:
    schema = json.loads(json_schema_of(pa.schema([("f", kind)]), "R"))["properties"]["f"]
    name = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
    return f"{name}, format {schema['format']}" if "format" in schema else name


DERIVED: dict[str, tuple[Callable[[pa.DataType], str], Callable[[Any], str]]] = {
    "avro": (_avro, lambda row: row.avro),
    "protobuf": (_protobuf, lambda row: row.protobuf if "." in row.protobuf else f"TYPE_{row.protobuf.upper()}"),
    "schema": (_json, lambda row: row.schema.replace("p,s", "5,2" if row.name == "decimal" else "40,2")),
}


@pytest.mark.parametrize("column", DERIVED)
@pytest.mark.parametrize("name", ROWS)
def test_a_derived_schema_has_the_form_of_the_table_or_is_refused_with_its_path(name: str, column: str) -> None:
    kind = TYPES[name] if name in TYPES else pa.type_for_alias(name)
    row = row_of(kind)
    assert row is not None
    assert row.name == name
    derive, form = DERIVED[column]
    if not getattr(row, column):
        with pytest.raises(SchemaError, match=r"is not supported by .* \(at \$\.f\); cast it"):
            derive(kind)
    elif name not in NESTED:
        assert derive(kind) == form(row)
    else:
        derive(kind)


@pytest.mark.parametrize(
    "kind",
    [pa.month_day_nano_interval(), pa.list_view(pa.int8()), pa.uuid(), pa.run_end_encoded(pa.int32(), pa.int8())],
)
@pytest.mark.parametrize("derive", [avro_schema_of, json_schema_of, protobuf_schema_of])
def test_a_type_without_a_row_is_refused_with_its_path(derive: Any, kind: pa.DataType) -> None:
    inside = pa.struct([("x", pa.map_(pa.string(), pa.struct([("y", kind)])))])
    with pytest.raises(SchemaError, match=r"is not supported by .* \(at \$\.f\.x\{\}\.y\); cast it"):
        derive(pa.schema([("f", inside)]), "R")


@pytest.mark.parametrize("name", [name for name in ROWS if name != "dictionary"])
def test_json_and_cbor_write_the_types_that_have_values_in_the_table(name: str) -> None:
    kind = pa.struct([("f", TYPES[name] if name in TYPES else pa.type_for_alias(name))])
    for serializer, form in zip((JsonSerializer(), CborSerializer()), ROWS[name].values, strict=True):
        if form:
            serializer.check_encodable(kind)
        else:
            with pytest.raises(SchemaError, match=r"is not supported by (JSON|CBOR) \(at \$\.f\); cast it"):
                serializer.check_encodable(kind)


@pytest.mark.parametrize("make", [JsonSerializer, CborSerializer])
@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (pa.timestamp("ms", "UTC"), "read it as timestamp[us, tz=UTC]"),
        (pa.large_list(pa.string()), "read it as list<item: string>"),
        (pa.decimal64(5, 2), "read it as decimal128(5, 2)"),
        (pa.dictionary(pa.int8(), pa.string()), "read it as string"),
        (pa.time64("us"), "read it as string"),
        (pa.map_(pa.float64(), pa.int8()), "cast its keys to string"),
    ],
    ids=str,
)
def test_a_type_that_is_not_read_is_refused_at_once_with_the_type_to_read(make: Any, kind: Any, advice: str) -> None:
    inside = pa.struct([("x", pa.list_(pa.struct([("y", kind)])))])
    with pytest.raises(SchemaError, match=r"is not supported by reads of (JSON|CBOR) \(at \$\.x\[\]\.y\)") as caught:
        make(arrow_type=inside)
    assert str(caught.value).endswith(advice)


@pytest.mark.parametrize("name", ROWS)
def test_a_column_without_a_declared_java_class_is_written_as_that_of_the_table(name: str) -> None:
    kind = TYPES[name] if name in TYPES else pa.type_for_alias(name)
    if name in ("struct", "dictionary"):
        return  # a struct needs a class, and columns are not read as a dictionary
    serializer = JavaSerializer(arrow_type=kind)
    if not ROWS[name].java:
        with pytest.raises(SchemaError, match=r"is not supported by Java without a declared class \(at \$\); cast it"):
            serializer.check_encodable(kind)
        return
    column = pa.nulls(2, kind)
    assert serializer.decode_column(serializer.encode_column(column)).equals(column)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.time64("us"), time(1, 2, 3, 4)),
        (pa.time64("ns"), time(1, 2, 3, 4)),
        (pa.duration("us"), timedelta(days=-1, microseconds=3)),
        (pa.date64(), date(2024, 2, 29)),
        (pa.list_(pa.int32(), 2), [1, 2]),
        (pa.binary(2), b"ab"),
    ],
    ids=str,
)
def test_columns_of_java_need_no_class_if_the_table_has_one(kind: pa.DataType, value: Any) -> None:
    column = pa.array([value, None], kind)
    serializer = JavaSerializer(arrow_type=kind)
    assert serializer.decode_column(serializer.encode_column(column)).to_pylist() == [value, None]


@pytest.mark.parametrize("kind", [pa.uint8(), pa.uint64()])
def test_unsigned_columns_of_java_hold_their_own_range(kind: pa.DataType) -> None:
    serializer = JavaSerializer("java.lang.Long", arrow_type=kind)
    errors: list[Any] = []
    events = pa.array([JavaSerializer().serialize(value) for value in (Long(200), Long(-1))])
    assert serializer.decode_column(events, on_error=errors.append).to_pylist() == [200, None]
    assert [error.row for error in errors] == [1]


@pytest.mark.parametrize("make", [JsonSerializer, CborSerializer])
def test_two_columns_of_one_name_are_refused_at_once(make: Any) -> None:
    twice = pa.struct([("x", pa.list_(pa.struct([("y", pa.int8()), ("y", pa.int8())])))])
    with pytest.raises(SchemaError, match=r"the column \$\.x\[\]\.y exists twice"):
        make(arrow_type=twice)


@pytest.mark.parametrize("kind", [pa.decimal128(38, 38), pa.decimal256(39, 0), pa.decimal256(76, 4)])
def test_a_json_schema_of_decimals_is_read_as_the_same_type(kind: pa.DataType) -> None:
    columns = pa.struct([("f", kind)])
    assert arrow_type_of_json_schema(json_schema_of(pa.schema(columns), "R")) == columns


@pytest.mark.parametrize("make", [JsonSerializer, CborSerializer])
@pytest.mark.parametrize("rows", [1, 200])
def test_decimals_of_more_than_38_digits_are_read_as_they_are_written(make: Any, rows: int) -> None:
    kind = pa.struct([("x", pa.decimal256(60, 4))])
    column = pa.array([{"x": Decimal("-" + "9" * 56 + ".0001")}, {"x": None}] * rows, kind)
    serializer = make(arrow_type=kind)
    assert serializer.decode_column(serializer.encode_column(column)).equals(column)


@pytest.mark.parametrize("wanted", ["avro", "cbor", "json", "protobuf"])
def test_keys_of_maps_may_be_a_dictionary(wanted: str) -> None:
    kind = pa.map_(pa.dictionary(pa.int32(), pa.string()), pa.int32())
    keys = pa.array(["a", "b", "a"]).dictionary_encode()
    column = pa.MapArray.from_arrays(pa.array([0, 2, 3], pa.int32()), keys, pa.array([1, 2, 3], pa.int32()), type=kind)
    schema = pa.schema([("f", kind)])
    read = pa.schema([("f", pa.map_(pa.string(), pa.int32()))])
    makers: dict[str, Callable[[], Any]] = {
        "avro": lambda: AvroSerializer(avro_schema_of(schema, "R")),
        "cbor": lambda: CborSerializer(arrow_type=read),
        "json": lambda: JsonSerializer(arrow_type=read),
        "protobuf": lambda: ProtobufSerializer(protobuf_schema_of(schema, "R")),
    }
    made = makers[wanted]()
    events = made.encode_column(pa.record_batch([column], schema=schema))
    assert made.decode_column(events).field(0).to_pylist() == [[("a", 1), ("b", 2)], [("a", 3)]]


VIEWS: list[tuple[pa.DataType, list[Any]]] = [(pa.string_view(), ["a", "b"]), (pa.binary_view(), [b"a", b"\xff"])]


@pytest.mark.parametrize("wanted", ["avro", "cbor", "json", "java", "protobuf"])
@pytest.mark.parametrize(("view", "values"), VIEWS, ids=str)
@pytest.mark.parametrize("shape", ["column", "list", "map"])
def test_a_dictionary_of_views_is_written_as_its_values(wanted: str, view: Any, values: list[Any], shape: str) -> None:
    indices = pa.array([0, 1, 0] if shape != "column" else [0, None, 1], pa.int8())
    inner = pa.DictionaryArray.from_arrays(indices, pa.array(values, view))
    plain = inner.dictionary.cast(pa.string() if view == pa.string_view() else pa.binary()).take(indices)

    def shaped(items: pa.Array) -> pa.Array:
        if shape == "list":
            return pa.ListArray.from_arrays([0, 2, 3], items)
        return items if shape == "column" else pa.MapArray.from_arrays([0, 2, 3], pa.array(["a", "b", "a"]), items)

    if wanted == "java" and shape != "column":
        return  # Java has no default class of a dictionary in a list or map
    column, expected = shaped(inner), shaped(plain)
    schema = pa.schema([("f", expected.type)])
    makers: dict[str, Callable[[], Any]] = {
        "avro": lambda: AvroSerializer(avro_schema_of(schema, "R")),
        "cbor": CborSerializer,
        "json": JsonSerializer,
        "java": JavaSerializer,
        "protobuf": lambda: ProtobufSerializer(protobuf_schema_of(schema, "R")),
    }
    made = makers[wanted]()
    if wanted == "java":
        assert made.encode_column(column) == made.encode_column(expected)
        return
    batches = [pa.record_batch([each], names=["f"]) for each in (column, expected)]
    assert made.encode_column(batches[0]) == made.encode_column(batches[1])


@pytest.mark.parametrize(
    "kind", [pa.decimal128(3, 5), pa.decimal256(40, 41), pa.decimal32(3, 5), pa.decimal128(3, -38)], ids=str
)
def test_a_decimal_whose_scale_is_outside_its_precision_is_refused_with_its_path(kind: pa.DataType) -> None:
    inside = pa.struct([("x", pa.list_(pa.struct([("y", kind)])))])
    makers: list[Callable[[], Any]] = [
        *(lambda derive=derive: derive(pa.schema(inside), "R") for derive in DERIVES),
        *(lambda make=make: make(arrow_type=inside) for make in (CborSerializer, JsonSerializer, JavaSerializer)),
        *(lambda make=make: make().check_encodable(inside) for make in (CborSerializer, JsonSerializer)),
    ]
    for make in makers:
        with pytest.raises(SchemaError, match=r"\(at \$\.x\[\]\.y\); cast it to a scale from 0 to its precision"):
            make()


DERIVES: tuple[Any, ...] = (avro_schema_of, json_schema_of, protobuf_schema_of)


@pytest.mark.parametrize("key", [pa.time64("us"), pa.time32("ms"), pa.timestamp("us"), pa.timestamp("s", "UTC")])
def test_keys_that_protobuf_has_only_as_numbers_are_refused_when_the_schema_is_derived(key: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"\(at \$\.f\); cast its keys to string or an integer"):
        protobuf_schema_of(pa.schema([("f", pa.map_(key, pa.int8()))]), "R")


@pytest.mark.parametrize(
    ("key", "values"),
    [
        (pa.decimal128(20, 2), [Decimal("1.50"), Decimal("2.00"), Decimal("123456789012345678.00")]),
        (pa.binary(), [b"a", b"\xff"]),
        (pa.binary(2), [b"ab"]),
    ],
    ids=str,
)
def test_keys_of_java_that_python_cannot_look_up_have_columns(key: pa.DataType, values: list[Any]) -> None:
    kind = pa.map_(key, pa.int64())
    column = pa.array([[(value, 1)] for value in values], kind)
    made = JavaSerializer(arrow_type=kind)
    assert made.decode_column(made.encode_column(column)).equals(column)


@pytest.mark.parametrize("key", [pa.list_(pa.int8()), pa.struct([("x", pa.int8())]), pa.map_(pa.string(), pa.int8())])
def test_keys_of_java_with_values_inside_are_refused_at_once(key: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"\(at \$\); cast its keys to string"):
        JavaSerializer(arrow_type=pa.map_(key, pa.int8()))
