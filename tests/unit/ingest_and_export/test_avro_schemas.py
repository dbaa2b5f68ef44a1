"""The schema of exported Avro files: the events' schema, not one derived from the columns."""

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pravega_connector.operations.export import avro_schema_of_rows, open_writer
from pravega_connector.rows.pickled import Pickled
from pravega_serde.avro import AvroSerializer
from pravega_serde.java import JavaSerializer

EVENT: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "namespace": "plant",
    "doc": "one value",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["HOT", "COLD"]}, "default": "HOT"},
        {"name": "key", "type": {"type": "fixed", "name": "Key", "size": 2}},
        {"name": "of_day", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "either", "type": ["null", "long", "string"]},
        {"name": "name", "type": ["string", "null"], "default": "x"},
    ],
}
ROW = {"at": 1_700_000_000_123, "kind": "COLD", "key": b"ab", "of_day": 5, "either": "s", "name": None}
META = ("offset", pa.int64())


def _rows(definition: Any, event: bytes) -> tuple[AvroSerializer, pa.Array]:
    serializer = AvroSerializer(definition)
    return serializer, serializer.decode_column(pa.array([event]))


def _file(text: str | None, batch: pa.RecordBatch) -> io.BytesIO:
    sink = io.BytesIO()
    writer = open_writer(sink, batch.schema, "avro", "deflate", {}, avro_schema=text)
    writer.write(batch)
    writer.finish()
    return io.BytesIO(sink.getvalue())


def _event() -> bytes:
    plain = json.loads(
        json.dumps(EVENT)
        .replace(', "logicalType": "timestamp-millis"', "")
        .replace(', "logicalType": "time-millis"', "")
    )
    return AvroSerializer(plain).serialize(ROW)


def test_a_file_has_the_schema_of_its_events() -> None:
    serializer, column = _rows(EVENT, _event())
    text = avro_schema_of_rows(pa.schema(list(column.type)), Pickled(serializer), nullable=False)
    assert text is not None
    assert json.loads(text) == EVENT
    file = _file(text, pa.RecordBatch.from_struct_array(column))
    reader = fastavro.reader(file)
    assert json.loads(reader.metadata["avro.schema"]) == EVENT
    (row,) = reader
    assert (row["at"].microsecond, row["kind"], row["key"], row["either"], row["name"]) == (
        123_000,
        "COLD",
        b"ab",
        "s",
        None,
    )
    # The data is the event, byte for byte.
    (block,) = fastavro.block_reader(io.BytesIO(file.getvalue()))
    assert block.bytes_.getvalue() == _event()


def test_other_columns_stand_behind_and_bad_records_make_fields_nullable() -> None:
    serializer, column = _rows(EVENT, _event())
    schema = pa.schema([*column.type, META])
    batch = pa.RecordBatch.from_arrays([*column.flatten(), pa.array([7])], schema=schema)
    both = pa.Table.from_batches(
        [batch, pa.RecordBatch.from_arrays([pa.nulls(1, f.type) for f in schema], schema=schema)]
    )
    text = avro_schema_of_rows(schema, Pickled(serializer), nullable=True)
    assert text is not None
    fields = {field["name"]: field["type"] for field in json.loads(text)["fields"]}
    assert fields["at"] == ["null", {"type": "long", "logicalType": "timestamp-millis"}]
    assert fields["kind"][1:] == ["null"]
    assert fields["either"] == ["null", "long", "string"]
    first, second = fastavro.reader(_file(text, both.combine_chunks().to_batches()[0]))
    assert (first["kind"], first["offset"], first["at"].microsecond) == ("COLD", 7, 123_000)
    assert set(second.values()) == {None}


def test_single_values_keep_their_type_too() -> None:
    definition = {"type": "long", "logicalType": "timestamp-millis"}
    serializer, column = _rows(definition, b"\x0a")
    schema = pa.schema([("value", column.type)])
    text = avro_schema_of_rows(schema, Pickled(serializer), nullable=False)
    assert text is not None
    assert json.loads(text)["fields"] == [{"name": "value", "type": definition}]
    (row,) = fastavro.reader(_file(text, pa.RecordBatch.from_arrays([column], schema=schema)))
    assert row["value"].microsecond == 5000


@pytest.mark.parametrize("decoder", [None, Pickled(JavaSerializer("java.lang.Long"))])
def test_events_without_an_avro_schema_have_none(decoder: Any) -> None:
    assert avro_schema_of_rows(pa.schema([META]), decoder, nullable=False) is None
