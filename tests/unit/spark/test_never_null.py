"""Columns that are declared NOT NULL, and that they hold what they promise."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pravega_connector.client import EventBatch
from pravega_connector.rows.columns import decoded_fields, row_builder, serializer_of, with_never_null
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.wire import StreamName
from pravega_serde.avro import AvroSerializer

FIELDS: dict[str, Any] = {
    "id": "long",
    "note": ["null", "string"],
    "either": ["int", "string"],
    "any": ["int", "string", "null"],
    "only": ["double"],
    "nothing": "null",
    "inner": {"type": "record", "name": "I", "fields": [{"name": "x", "type": ["null", "int"]}]},
    "colour": {"type": "enum", "name": "C", "symbols": ["RED"]},
    "tags": {"type": "array", "items": ["null", "string"]},
}
SCHEMA = json.dumps(
    {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in FIELDS.items()]}
)
SURE = {"id", "either", "only", "inner", "colour", "tags"}
VALUE = {**dict.fromkeys(FIELDS), "id": 1, "either": 2, "only": 0.5, "inner": {"x": None}, "colour": "RED", "tags": []}


def read(events: list[bytes], **given: str) -> pa.RecordBatch:
    options = parse_options(SourceOptions, {"format": "avro", "avro_schema": SCHEMA, "columns": "offset", **given})
    serializer = serializer_of(options, None)
    schema = pa.schema(with_never_null(decoded_fields(options, serializer), options, serializer))
    offsets = np.arange(len(events))
    batch = EventBatch(StreamName("a", "b"), 0, pa.array(events, pa.binary()), offsets)
    (built,) = row_builder(schema, options, serializer).build_all(batch)
    return built


def required(batch: pa.RecordBatch) -> set[str]:
    return {field.name for field in batch.schema if not field.nullable}


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
def test_fields_without_null_are_not_null_where_bad_events_have_no_rows(mode: str):
    good = AvroSerializer(SCHEMA).serialize(VALUE)
    bad = [b"\xff"] if mode == "DROPMALFORMED" else []
    found = read([good, *bad, good], mode=mode)
    assert required(found) == SURE | {"offset"}
    found.validate(full=True)
    assert {name for name in found.schema.names if not found.column(name).null_count} >= required(found)
    assert found.num_rows == 2


def test_any_decoded_column_may_be_null_where_bad_events_are_rows():
    found = read([b"\xff"], mode="PERMISSIVE")
    assert required(found) == {"offset"}
    assert found.column("id").to_pylist() == [None]


def test_raw_events_and_their_places_are_never_null():
    options = parse_options(SourceOptions, {"columns": "event,scope,stream,segment_id,offset,encoding_id"})
    fields = with_never_null(decoded_fields(options, None), options, None)
    assert [field.name for field in fields if field.nullable] == ["encoding_id"]


def test_only_records_have_fields():
    assert AvroSerializer('"long"').never_null == frozenset()
    assert AvroSerializer(SCHEMA).never_null == SURE
