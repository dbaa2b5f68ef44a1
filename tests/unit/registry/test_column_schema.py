"""Schemas that follow from columns, after an earlier one of the same type."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from pravega_serde.avro import AvroSerializer, avro_schema_of
from pravega_serde.errors import SchemaError
from pravega_serde.protobuf import ProtobufSerializer
from pravega_serde.registry import SchemaInfo, column_schema, event_type, registry_format
from pravega_serde.registry import SerializationFormat as Format

LINE = pa.struct([("sku", pa.string()), ("count", pa.int32())])
FIRST = pa.schema(
    [
        ("id", pa.int64()),
        ("item", pa.string()),
        ("lines", pa.map_(pa.string(), LINE)),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


def of(columns: pa.Schema, after: Any = None, fmt: str = "protobuf") -> Any:
    return column_schema(columns, format=fmt, type="shop.Order", after=after)


def numbers(info: SchemaInfo) -> dict[str, int]:
    message = ProtobufSerializer(info.data, message_type=info.type).message_class.DESCRIPTOR
    return {field.name: field.number for field in message.fields}


@pytest.mark.parametrize("fmt", ["avro", "json", "protobuf"])
def test_the_same_columns_have_the_same_schema(fmt: str) -> None:
    first = of(FIRST, fmt=fmt)
    again = of(FIRST, first.info, fmt)
    assert again.info == first.info
    assert again.casts == first.casts == (fmt == "protobuf")


def test_fields_of_protobuf_keep_their_numbers() -> None:
    first = of(FIRST)
    inner = pa.struct([("note", pa.string()), ("count", pa.int32())])
    columns = pa.schema([("new", pa.string()), ("lines", pa.map_(pa.string(), inner)), ("id", pa.int64()),
                         ("item", pa.string())])  # fmt: skip
    second = of(columns, first.info)
    assert numbers(second.info) == {"new": 5, "lines": 3, "id": 1, "item": 2}
    # Each reads what the other writes.
    row = {"id": 7, "item": "tea", "lines": [("a", {"sku": "x", "count": 3})], "at": None}
    written = first.payloads.encode_column(first.fitted(pa.array([row], pa.struct(list(FIRST)))))
    assert second.payloads.decode_column(written).to_pylist() == [
        {"new": None, "lines": [("a", {"note": None, "count": 3})], "id": 7, "item": "tea"}
    ]
    third = of(columns.append(pa.field("back", pa.int32())), second.info)
    assert numbers(third.info)["back"] == 6, "4 stays reserved"


@pytest.mark.parametrize(("fmt", "column"), [("protobuf", pa.int64()), ("json", pa.int64())])
def test_what_the_earlier_schemas_readers_would_get_wrong_is_refused(fmt: str, column: pa.DataType) -> None:
    first = of(FIRST, fmt=fmt)
    with pytest.raises(SchemaError, match=r"is incompatible with the latest schema of 'shop\.Order': backward: .*item"):
        of(FIRST.set(1, pa.field("item", column)), first.info, fmt)


avro_reader_for = registry_format("avro").reader_for


def registered(columns: pa.Schema) -> SchemaInfo:
    return event_type(avro_schema_of(columns, "shop.Order"), format="avro").info


def test_an_avro_reader_of_the_columns_that_exist_is_the_registered_schema() -> None:
    schema = registered(FIRST)
    wanted = pa.struct([FIRST.field("at"), FIRST.field("id")])
    assert avro_reader_for(schema, wanted).info is schema
    single = SchemaInfo("long", Format.AVRO, b'"long"')
    assert avro_reader_for(single, pa.struct([("value", pa.string())])).info is single


def test_an_avro_reader_promotes_and_fills() -> None:
    schema = registered(pa.schema([("id", pa.int32()), ("item", pa.string())]))
    wanted = pa.struct([("id", pa.int64()), ("later", pa.string()), ("item", pa.string())])
    reader = avro_reader_for(schema, wanted)
    assert reader.payloads.arrow_type == wanted
    assert reader.info.type == "shop.Order"


@pytest.mark.parametrize(
    ("kind", "default", "column", "value"),
    [
        ("int", 7, pa.int32(), 7),
        ("int", 7, pa.int64(), 7),
        ("int", 7, pa.float64(), 7.0),
        ("long", 7, pa.int32(), 7),
        (["int", "null"], 7, pa.int64(), 7),
        (["null", "int"], None, pa.int64(), None),
        ({"type": "array", "items": "int"}, [1], pa.list_(pa.field("element", pa.int64())), [1]),
        ({"type": "map", "values": "int"}, {"a": 1}, pa.map_(pa.string(), pa.int64()), [("a", 1)]),
    ],
)
def test_an_avro_column_of_another_width_has_the_registered_default(
    kind: Any, default: Any, column: pa.DataType, value: Any
) -> None:
    first = {"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "long"}]}
    second = {**first, "fields": [*first["fields"], {"name": "cups", "type": kind, "default": default}]}
    reader = avro_reader_for(event_type(second, format="avro").info, pa.struct([("cups", column)]))
    event = AvroSerializer(first).serialize({"id": 1})
    resolved = AvroSerializer(first, reader_schema=reader.info.data.decode())
    assert resolved.decode_column(pa.array([event])).field("cups").to_pylist() == [value]


def test_a_default_that_a_narrower_column_cannot_hold_is_an_error_where_it_is_used() -> None:
    first = {"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "long"}]}
    second = {**first, "fields": [*first["fields"], {"name": "cups", "type": "long", "default": 1 << 40}]}
    reader = avro_reader_for(event_type(second, format="avro").info, pa.struct([("cups", pa.int32())]))
    with pytest.raises(SchemaError, match=r"the default of field 'cups' does not fit its type"):
        AvroSerializer(first, reader_schema=reader.info.data.decode())


INNER = {"type": "record", "name": "Point", "namespace": "geo", "fields": [
    {"name": "x", "type": "int"},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]}  # fmt: skip
NESTED = {"type": "record", "name": "shop.Order", "fields": [
    {"name": "point", "type": ["null", INNER], "default": None},
    {"name": "more", "type": {"type": "array", "items": "geo.Point"}},
    {"name": "by_name", "type": {"type": "map", "values": "geo.Point"}},
    {"name": "id", "type": "long"},
]}  # fmt: skip


def test_what_is_inside_a_column_stays_as_it_is_registered() -> None:
    schema = event_type(NESTED, format="avro").info
    point = pa.struct([("later", pa.string()), ("x", pa.int64()), ("kind", pa.string()),
                       ("at", pa.timestamp("us", "UTC"))])  # fmt: skip
    element = pa.field("element", pa.struct([point.field("at"), point.field("kind")]))
    wanted = pa.struct([("by_name", pa.map_(pa.string(), point)), ("more", pa.list_(element)), ("point", point),
                        ("id", pa.int64())])  # fmt: skip
    reader = avro_reader_for(schema, wanted)
    assert reader.payloads.arrow_type == wanted
    at = datetime(2026, 1, 2, tzinfo=UTC)
    value = {"x": 7, "kind": "B", "at": at}
    written = event_type(schema).payloads.serialize({"point": value, "more": [value], "by_name": {"k": value}, "id": 1})
    resolved = AvroSerializer(schema.data.decode(), reader_schema=reader.info.data.decode())
    full = {"later": None, **value}
    assert resolved.decode_column(pa.array([written])).to_pylist() == [
        {"by_name": [("k", full)], "more": [{"at": at, "kind": "B"}], "point": full, "id": 1}
    ]


def test_a_column_alone_takes_what_it_needs_from_the_others() -> None:
    schema = event_type(NESTED, format="avro").info
    point = pa.struct([("x", pa.int32())])
    wanted = pa.struct([("more", pa.list_(pa.field("element", point)))])
    assert avro_reader_for(schema, wanted).payloads.arrow_type == wanted


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.field("id", pa.string()), r"\$\.id: long -> \[null, string\]"),
        (pa.field("point", pa.struct([("x", pa.bool_())])), r"\$\.point"),
        (pa.field("more", pa.string()), r"\$\.more: array"),
        (pa.field("id", pa.timestamp("us")), None),
        (pa.field("id", pa.int32()), None),
        (pa.field("id", pa.uint64()), "not supported by Avro"),
    ],
)
def test_columns_that_no_event_can_be_read_as_are_an_error_at_once(column: pa.Field, words: str | None) -> None:
    schema = event_type(NESTED, format="avro").info
    if words is None:
        assert avro_reader_for(schema, pa.struct([column])).info.type == "shop.Order"
        return
    with pytest.raises(SchemaError, match=words):
        avro_reader_for(schema, pa.struct([column]))
