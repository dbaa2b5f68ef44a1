"""Typed columns inside the JVM: the rows, errors and modes of Python, and only the columns that a query uses."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.wire import StreamName
from pravega_serde import serializer_for
from tests.integration.spark._jvm import is_read_by_the_jvm

COUNT = 300
BAD = b"\x01"
ITEM = {
    "type": "record",
    "name": "Item",
    "fields": [{"name": "sku", "type": "string"}, {"name": "price", "type": ["null", "double"]}],
}
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"]},
            {"name": "items", "type": {"type": "array", "items": ITEM}},
            {"name": "counts", "type": {"type": "map", "values": "int"}},
            {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)  # fmt: skip
OPTIONS = {"format": "avro", "avro_schema": AVRO}
COLUMNS = (
    "id BIGINT, note STRING, items ARRAY<STRUCT<sku: STRING, price: DOUBLE>>, counts MAP<STRING, INT>, "
    "total DECIMAL(20, 2), at TIMESTAMP"
)
# Options of a format, its malformed event, and the columns that its events do not name.
FORMATS: dict[str, tuple[dict[str, str], bytes, str | None]] = {
    "avro": (OPTIONS, BAD, None),
    "json": ({"format": "json"}, b'{"id": "seven"}', COLUMNS),
    "protobuf": ({"format": "protobuf", "protobuf_message": "test.Order"}, b"\x08", None),
}
PROTO = """
syntax = "proto3";
package test;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Item { string sku = 1; optional double price = 2; }
message Order {
  int64 id = 1;
  optional string note = 2;
  repeated Item items = 3;
  map<string, int32> counts = 4;
  google.protobuf.Int64Value total = 5;
  google.protobuf.Timestamp at = 6;
}
"""
QUERIES = ["*", "id", "items.price", "counts, note", "total, at, offset", "count(*)", "sum(size(items)), max(note)"]


def order(number: int) -> dict[str, Any]:
    items = [{"sku": f"s{i}", "price": None if i % 2 else i / 3} for i in range(number % 4)]
    return {
        "id": number,
        "note": None if number % 3 else "ü€😀" * (number % 7),
        "items": items,
        "counts": {f"k{i}": -i for i in range(number % 3)},
        "total": Decimal(number) / 4 - 10**15,
        "at": 1_700_000_000_000 + number,
    }


@pytest.fixture
def form() -> str:
    """The format of the events; a test may have others."""
    return "avro"


@pytest.fixture
def descriptor(tmp_path: Path) -> str:
    """The path of the compiled form of ``PROTO``."""
    (tmp_path / "order.proto").write_text(PROTO)
    made = tmp_path / "order.pb"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{tmp_path}", "--include_imports"]
    subprocess.run([*command, f"--descriptor_set_out={made}", "order.proto"], check=True, cwd=tmp_path)
    return str(made)


@pytest.fixture
def orders(client: PravegaClient, stream_name: StreamName, form: str, request: pytest.FixtureRequest) -> StreamName:
    """A stream of orders."""
    client.create_stream(stream_name)
    given: dict[str, Any] = {"schema": AVRO} if form == "avro" else {}
    values = [order(number) for number in range(COUNT)]
    if form == "protobuf":
        given = {"schema": request.getfixturevalue("descriptor"), "message_type": "test.Order"}
        times = [datetime.fromtimestamp(value["at"] / 1000, UTC) for value in values]
        values = [value | {"total": int(value["total"]), "at": at} for value, at in zip(values, times, strict=True)]
    with client.writer(stream_name, serializer_for(form, **given)) as writer:
        for value in values:
            writer.write(value)
    return stream_name


@pytest.fixture
def malformed(client: PravegaClient, orders: StreamName, form: str) -> StreamName:
    """The orders, and a malformed event."""
    with client.writer(orders) as writer:
        writer.write(FORMATS[form][1])
    return orders


@pytest.fixture
def read(
    jvm_session: SparkSession, config: PravegaConfig, form: str, request: pytest.FixtureRequest
) -> Callable[..., DataFrame]:
    """``read(stream, reader, **options)`` reads orders with one of the readers."""
    given, _, columns = FORMATS[form]
    if form == "protobuf":
        given = given | {"protobuf_descriptor": request.getfixturevalue("descriptor")}

    def read(stream: StreamName, reader: str, **options: str) -> DataFrame:
        source = jvm_session.read.format("pravega").options(controller=config.controller, raw_reader=reader)
        if columns is not None:
            more = [f"{name} BIGINT" for name in ("offset",) if name == options.get("columns")]
            more += ["_corrupt_record BINARY"] if options.get("mode") == "PERMISSIVE" else []
            source = source.schema(", ".join([columns, *more]))
        return source.options(**given, **options).load(str(stream))

    return read


def selected(frame: DataFrame, columns: str) -> list[str]:
    return sorted(str(row) for row in frame.selectExpr(*columns.split(", ")).collect())


def error_line(frame: DataFrame) -> str:
    with pytest.raises(PySparkException) as raised:
        frame.collect()
    return next(line for line in str(raised.value).splitlines() if "[PRAVEGA-" in line).partition("[PRAVEGA-")[2]


@pytest.mark.parametrize("form", FORMATS)
def test_rows_are_equal(read, orders, form):
    options = {"columns": "offset"}
    jvm, python = read(orders, "jvm", **options), read(orders, "python", **options)
    assert is_read_by_the_jvm(jvm)
    assert not is_read_by_the_jvm(python)
    assert jvm.schema == python.schema
    for columns in QUERIES:
        assert selected(jvm, columns) == selected(python, columns), columns
    assert jvm.where("note IS NOT NULL").count() == COUNT // 3, form


def test_the_plan_names_the_decoder_and_only_the_fields_that_are_used(read, orders):
    plan = read(orders, "auto").select("items.price", "id")._jdf.queryExecution().executedPlan().toString()
    assert f"read by the JVM: {orders}, decoded by the JVM: avro" in plan
    assert "ReadSchema: struct<id:bigint,items:array<struct<price:double>>>" in plan


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_malformed_events_in_each_mode(read, malformed, mode, form):
    jvm, python = (read(malformed, reader, mode=mode, columns="offset") for reader in ("jvm", "python"))
    assert is_read_by_the_jvm(jvm)
    for columns in ("*", "at", "items.price", "count(*)"):
        assert selected(jvm, columns) == selected(python, columns), (form, columns)
    assert jvm.count() == COUNT + (mode == "PERMISSIVE")


def test_corrupt_records_have_the_event_and_its_error(read, malformed):
    rows = [
        read(malformed, reader, mode="PERMISSIVE").where("_corrupt_record IS NOT NULL").collect()
        for reader in ("jvm", "python")
    ]
    assert rows[0] == rows[1]
    (row,) = rows[0]
    assert row["_corrupt_record"] == BAD
    assert "the event ends too early" in row["_corrupt_record_error"]


@pytest.mark.parametrize("columns", [["*"], ["total"], []], ids=str)
def test_a_malformed_event_fails_any_query_with_the_same_error(read, malformed, columns):
    jvm, python = (error_line(read(malformed, reader).select(*columns)) for reader in ("jvm", "python"))
    assert jvm == python
    assert "segment 0, offset" in jvm


def test_a_streaming_query_decodes_in_the_jvm(jvm_session, config, malformed, read, tmp_path):
    source = jvm_session.readStream.format("pravega").options(controller=config.controller, raw_reader="jvm")
    frame = source.options(**OPTIONS, mode="DROPMALFORMED", start_stream_cut="earliest").load(str(malformed))
    found: list[Any] = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    query.awaitTermination()
    assert "decoded by the JVM: avro" in query.lastProgress["sources"][0]["description"]
    expected = read(malformed, "python", mode="DROPMALFORMED").collect()
    assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.fixture
def read_texts(
    jvm_session: SparkSession, client: PravegaClient, config: PravegaConfig, stream_name: StreamName
) -> Callable[..., DataFrame]:
    """``read_texts(reader, **options)`` reads a stream that each test fills."""
    client.create_stream(stream_name)
    reads = jvm_session.read.format("pravega").options(controller=config.controller)
    return lambda reader, **options: reads.options(raw_reader=reader, **options).load(str(stream_name))


@pytest.mark.parametrize(
    ("options", "form"),
    [
        ({"format": "string"}, "string"),
        ({"format": "bytes"}, "string"),
        ({"format": "java", "java_type": "java.lang.String"}, "java"),
    ],
    ids=str,
)
def test_events_of_one_text(read_texts, client, stream_name, options, form):
    for texts in (["", "ascii, longer than eight", "ü€\0", "😀 and more"], ["x" * 70_000]):
        with client.writer(stream_name, form) as writer:
            for text in texts:
                writer.write(text)
        jvm, python = (read_texts(reader, **options) for reader in ("jvm", "python"))
        assert is_read_by_the_jvm(jvm)
        assert jvm.schema == python.schema
        for columns in ("value", "length(value)", "count(*)"):
            assert selected(jvm, columns) == selected(python, columns)
    assert jvm.count() == 5


def test_half_a_character_of_java_is_malformed_for_both_readers(read_texts, client, stream_name):
    with client.writer(stream_name, "java") as writer:
        writer.write("\ud83d")
    jvm, python = (
        error_line(read_texts(each, format="java", java_type="java.lang.String")) for each in ("jvm", "python")
    )
    assert jvm == python
    assert "does not fit into string" in jvm


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"envelope": "cloudevents"}, "option 'envelope'"),
        ({"routing_key": "k", "routing_key_field": "note"}, "option 'routing_key_field'"),
    ],
)
def test_an_option_with_which_python_decodes(read, orders, options, reason, caplog):
    caplog.set_level("INFO", "pravega_connector.spark.jvm")
    assert not is_read_by_the_jvm(read(orders, "auto", **options))
    assert f"events are read by Python, not inside the JVM: {orders} is read with {reason}" in caplog.messages
    with pytest.raises(PySparkException, match="raw_reader=jvm: the JVM reader cannot read with"):
        read(orders, "jvm", **options).collect()


def test_a_read_that_no_reader_accepts_has_the_error_of_python(jvm_session, config, orders):
    source = jvm_session.read.format("pravega").options(controller=config.controller, raw_reader="jvm", **OPTIONS)
    with pytest.raises(PySparkException, match="the events have no field 'price'"):
        source.schema("price DOUBLE").load(str(orders)).collect()


def test_columns_that_differ_by_case_are_read_by_python(jvm_session, config, client, stream_name):
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        writer.write('{"id": 1, "ID": 1099511627777, "ı": 0.1}'.encode())
    source = jvm_session.read.format("pravega").options(controller=config.controller, format="json")
    for columns, row in (("id INT, ID BIGINT", (1, 1099511627777)), ("`ı` DOUBLE, ID BIGINT", (0.1, 1099511627777))):
        frame = source.schema(columns).load(str(stream_name))
        assert [tuple(each) for each in frame.collect()] == [row]
        assert is_read_by_the_jvm(frame) is ("ı" in columns)
    frame = source.schema("`ı` DOUBLE, i DOUBLE").load(str(stream_name))
    assert [tuple(each) for each in frame.collect()] == [(0.1, None)]


def test_not_null_columns_of_a_schema_are_read_by_python(jvm_session, config, orders, caplog):
    caplog.set_level("INFO", "pravega_connector.spark.jvm")
    source = jvm_session.read.format("pravega").options(controller=config.controller, **OPTIONS)
    assert not is_read_by_the_jvm(source.schema("note STRING NOT NULL").load(str(orders)))
    assert caplog.messages[-1].endswith("is read with column 'note', which is NOT NULL in .schema(…)")
    assert is_read_by_the_jvm(source.schema("id BIGINT NOT NULL").load(str(orders)))
