"""From events to Spark's record batches: metadata, decoded columns, bad records in all three modes."""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pravega_connector.client import EventBatch
from pravega_connector.errors import ConfigError
from pravega_connector.rows.columns import decoded_fields, row_builder, serializer_of
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.wire import StreamName
from pravega_serde import DeserializationError

STREAM = StreamName("shop", "orders")
AVRO = '{"type":"record","name":"R","fields":[{"name":"id","type":"int"},{"name":"item","type":"double"}]}'
DDL = pa.schema([("id", pa.int64()), ("item", pa.string())])
EVENTS = [b'{"id": 1, "item": "tea"}', b'{"id": "x"}', b"{", b'{"item": null}']
OFFSETS = np.array([100, 140, 160, 170])
JSON = {"format": "json"}


def rows(events: list[bytes] = EVENTS, wanted: pa.Schema | None = None, **given: str) -> pa.RecordBatch:
    options = parse_options(SourceOptions, given)
    serializer = serializer_of(options, wanted)
    schema = pa.schema(decoded_fields(options, serializer)) if wanted is None else wanted
    batch = EventBatch(STREAM, 7, pa.array(events, pa.binary()), OFFSETS[: len(events)])
    (built,) = row_builder(schema, options, serializer).build_all(batch)
    return built


def test_raw_events_have_the_scala_connectors_columns():
    assert rows([b"a", b"b"]).to_pylist() == [
        {"event": b"a", "scope": "shop", "stream": "orders", "segment_id": 7, "offset": 100},
        {"event": b"b", "scope": "shop", "stream": "orders", "segment_id": 7, "offset": 140},
    ]


def test_failfast_reports_event_and_field():
    with pytest.raises(DeserializationError, match=r"stream shop/orders, segment 7, offset 140, field \$\.id") as error:
        rows(wanted=DDL, **JSON)
    assert str(error.value).count("PRAVEGA-DESERIALIZATION") == 1


def test_permissive_keeps_event_and_error_of_bad_records():
    wanted = pa.schema([*DDL, ("_corrupt_record", pa.binary()), ("_corrupt_record_error", pa.string())])
    found = rows(wanted=wanted, mode="PERMISSIVE", **JSON)
    assert found.column("id").to_pylist() == [1, None, None, None]
    assert found.column("_corrupt_record").to_pylist() == [None, EVENTS[1], EVENTS[2], None]
    texts = found.column("_corrupt_record_error").to_pylist()
    assert (texts[0], texts[3]) == (None, None)
    assert texts[1].startswith("[PRAVEGA-DESERIALIZATION] ")
    assert "offset 140, field $.id" in texts[1]
    assert "offset 160" in texts[2]


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_events_that_decode_into_too_much_at_once_make_several_batches(mode: str):
    class Parts:
        """A serializer that decodes two events at once."""

        def __init__(self, inner: Any) -> None:
            self.arrow_type = inner.arrow_type
            self.decode_column = None
            self.decode_first = lambda events, **given: inner.decode_column(events[:2], **given)

        def get(self) -> Any:
            return self

    wanted = pa.schema([*DDL, ("offset", pa.int64()), ("_corrupt_record", pa.binary())])
    options = parse_options(SourceOptions, {"mode": mode, "columns": "offset", **JSON})
    serializer = serializer_of(options, wanted)
    assert serializer is not None
    bad = list[int]()
    builder = row_builder(
        wanted,
        options,
        Parts(serializer.get()),
        lambda batch, errors: bad.extend(batch.offsets[[e.row for e in errors]]),
    )
    batch = EventBatch(STREAM, 7, pa.array([*EVENTS[:3]], pa.binary()), OFFSETS[:3])
    parts = list(builder.build_all(batch))
    keeps = mode == "PERMISSIVE"
    assert [part.column("offset").to_pylist() for part in parts] == ([[100, 140], [160]] if keeps else [[100], []])
    assert bad == [140, 160]
    if keeps:
        assert parts[1].column("_corrupt_record").to_pylist() == [EVENTS[2]]


def test_a_corrupt_record_may_be_text_as_spark_has_it():
    wanted = pa.schema([("_corrupt_record", pa.string())])
    found = rows([b"{}", b"{", b"\xff"], wanted=pa.schema([*DDL, *wanted]), mode="PERMISSIVE", **JSON)
    assert found.column("_corrupt_record").to_pylist() == [None, "{", "\ufffd"]


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
@pytest.mark.parametrize("wanted", [None, pa.schema([("id", pa.int32()), ("_corrupt_record", pa.string())])])
def test_a_field_of_the_events_with_the_name_of_a_corrupt_record_is_refused(mode: str, wanted: pa.Schema | None):
    fields = '{"name":"id","type":"int"},{"name":"_corrupt_record","type":"string"}'
    schema = f'{{"type":"record","name":"R","fields":[{fields}]}}'
    with pytest.raises(ConfigError, match="column_name_of_corrupt_record"):
        rows([b"\x02\x02a"], wanted, format="avro", avro_schema=schema, mode=mode)
    found = rows([b"\x02\x02a"], format="avro", avro_schema=schema, mode=mode, column_name_of_corrupt_record="bad")
    assert found.select(["id", "_corrupt_record"]).to_pylist() == [{"id": 1, "_corrupt_record": "a"}]


def test_a_batch_without_bad_records_has_nulls_for_them():
    found = rows([b"a"], format="string", mode="PERMISSIVE", column_name_of_corrupt_record="bad")
    assert found.to_pylist() == [{"value": "a", "bad": None, "bad_error": None}]


def test_dropmalformed_leaves_bad_records_out():
    wanted = pa.schema([("offset", pa.int64()), *DDL, ("event", pa.binary())])
    found = rows(wanted=wanted, mode="DROPMALFORMED", columns="offset,event", **JSON)
    assert found.column("offset").to_pylist() == [100, 170]
    assert found.column("event").to_pylist() == [EVENTS[0], EVENTS[3]]
    assert found.column("item").to_pylist() == ["tea", None]
    assert rows([EVENTS[1]], wanted=wanted, mode="DROPMALFORMED", columns="offset,event", **JSON).num_rows == 0


def test_types_are_those_that_spark_asks_for():
    wanted = pa.schema([("value", pa.time64("ns"))])
    at = pa.array([0], pa.time64("us")).to_pylist()[0]
    event = serializer_of(parse_options(SourceOptions, JAVA_TIME), None).get().serialize(at)
    assert rows([event], wanted=wanted, **JAVA_TIME).column(0).to_pylist() == [at]


JAVA_TIME = {"format": "java", "java_type": "java.time.LocalTime"}


LINE = pa.struct([pa.field("sku", pa.string(), nullable=False)])
REQUIRED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("lines", pa.list_(LINE)),
        ("by_name", pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False))),
    ]
)


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (b"{}", "$.id"),
        (b'{"id": 1, "lines": [{"sku": "a"}, {}]}', "$.lines[].sku"),
        (b'{"id": 1, "by_name": {"a": 1, "b": null}}', "$.by_name[]"),
    ],
)
def test_not_null_is_checked(event: bytes, path: str):
    good = [b'{"id": 1, "lines": [null, {"sku": "a"}], "by_name": {"a": 1}}', b'{"id": 2}']
    assert rows(good, wanted=REQUIRED, **JSON).column("id").to_pylist() == [1, 2]
    with pytest.raises(DeserializationError, match=f"offset 160, field {re.escape(path)}") as error:
        rows([*good, event, event], wanted=REQUIRED, **JSON)
    assert "NOT NULL" in str(error.value)
    assert rows([*good, event, b"{"], wanted=REQUIRED, mode="DROPMALFORMED", **JSON).num_rows == 2


def test_rows_with_nulls_inside_that_may_not_be_are_bad_records():
    wanted = pa.schema([("lines", pa.list_(LINE)), ("_corrupt_record_error", pa.string())])
    found = rows([b'{"lines": [{}]}', b'{"lines": []}', b"{"], wanted=wanted, mode="PERMISSIVE", **JSON)
    assert found.column("lines").to_pylist() == [None, [], None]
    texts = found.column("_corrupt_record_error").to_pylist()
    assert ["NOT NULL" in (text or "") for text in texts] == [True, False, False]
    assert texts[1] is None
    assert texts[2]


@pytest.mark.parametrize(
    ("wanted", "given", "words"),
    [
        (DDL, {"format": "avro", "avro_schema": '{"type":"record","name":"R","fields":[]}'}, "no field 'id'"),
        (DDL, {}, "raw events have no column 'id'"),
        (DDL, {"format": "avro", "avro_schema": AVRO}, "'id' is bigint in .*, but int in the data"),
        (
            pa.schema([("l", LINE)]),
            {
                "format": "avro",
                "avro_schema": '{"type":"record","name":"R","fields":[{"name":"l","type":{"type":"record","name":"L",'
                '"fields":[{"name":"sku","type":"string"}]}}]}',
            },
            "any value may be null",
        ),
        (REQUIRED, {"format": "json", "mode": "PERMISSIVE"}, "'id' is NOT NULL"),
        (None, {"format": "json"}, r"\.schema"),
        (pa.schema([("offset", pa.string())]), {}, "'offset' is string in .*, but bigint"),
        (pa.schema([*DDL, ("Offset", pa.int64())]), {"format": "json", "columns": "offset"}, "'Offset' .* 'offset'"),
        (
            pa.schema([*DDL, ("_corrupt_record", pa.int64())]),
            {"format": "json", "mode": "PERMISSIVE"},
            "'_corrupt_record' is bigint in .*, but binary",
        ),
        (None, {"format": "string", "mode": "PERMISSIVE", "columnNameOfCorruptRecord": "value"}, "twice"),
    ],
)
def test_columns_that_cannot_be(wanted: pa.Schema | None, given: dict[str, str], words: str):
    with pytest.raises(ConfigError, match=words):
        rows([b""], wanted=wanted, **given)
