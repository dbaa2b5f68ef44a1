"""Every format: typed rows into a stream, out of it, and into another one; bad records in all three modes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.config import PravegaConfig
from pravega_connector.wire import StreamName
from tests.integration.spark._cases import AVRO, COUNT, Case

pytestmark = pytest.mark.usefixtures("new_york")

NAMES = [
    "avro",
    "json",
    "cbor",
    "protobuf",
    "java",
    "java with fewer fields",
    "java of strings",
    "java of longs",
    "string",
    "bytes",
]


@pytest.fixture
def read(spark: SparkSession, config: PravegaConfig) -> Callable[..., DataFrame]:
    """``read(case, stream, **options)``: the typed rows of a stream."""

    def read(case: Case, stream: StreamName, **options: str) -> DataFrame:
        reader = spark.read.format("pravega").option("controller", config.controller).options(**case.options, **options)
        return (reader if case.schema is None else reader.schema(case.schema)).load(str(stream))

    return read


@pytest.fixture
def write(config: PravegaConfig) -> Callable[..., None]:
    """``write(frame, case, stream)``: rows into a stream."""

    def write(frame: DataFrame, case: Case, stream: StreamName) -> None:
        writer = frame.write.format("pravega").option("controller", config.controller).options(**case.options)
        writer.mode("append").save(str(stream))

    return write


def rows_of(frame: DataFrame) -> list[Any]:
    return sorted(frame.collect(), key=lambda row: str(row.id if "id" in frame.columns else row.value))


@pytest.mark.parametrize("name", NAMES)
def test_rows_come_back_as_they_were(spark, client, stream_name, all_cases, read, write, name):
    case = all_cases[name]
    copy = StreamName(stream_name.scope, "copy")
    client.create_stream(stream_name, 2)
    client.create_stream(copy, 2)
    original = spark.sql(case.query)
    write(original, case, stream_name)
    found = read(case, stream_name)
    assert [(f.name, f.dataType.simpleString()) for f in found.schema] == [
        (f.name, f.dataType.simpleString()) for f in original.schema
    ]
    # Only Avro says in its schema what is never null.
    maybe = {field["name"] for field in AVRO["fields"] if "null" in field["type"]}
    assert {field.name for field in found.schema if field.nullable} == (maybe if name == "avro" else {*found.columns})
    assert rows_of(found) == rows_of(original)
    write(found, case, copy)
    assert sorted(client.read(copy)) == sorted(client.read(stream_name))
    assert len(list(client.read(copy))) == COUNT


@pytest.mark.parametrize("name", ["avro", "json", "cbor", "protobuf", "java", "java of longs"])
def test_bad_records(spark, client, stream_name, all_cases, read, write, name):
    case = all_cases[name]
    client.create_stream(stream_name)
    write(spark.sql(case.query).coalesce(1), case, stream_name)
    offset = client.tail(stream_name).positions[0]
    bad = [case.bad] if case.bad_field is None else [case.bad, case.bad_field[0]]
    with client.writer(stream_name) as writer:
        for event in bad:
            writer.write(event)
    with pytest.raises(PySparkException) as error:
        read(case, stream_name).collect()
    line = next(line for line in reversed(str(error.value).splitlines()) if "[PRAVEGA-DESERIALIZATION]" in line)
    assert f"(at stream {stream_name}, segment 0, offset {offset}" in line

    assert read(case, stream_name, mode="DROPMALFORMED").count() == COUNT

    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "broken"}
    if case.schema is not None:
        case = replace(case, schema=f"{case.schema}, broken BINARY, broken_error STRING")
    rows = read(case, stream_name, **options).collect()
    assert [row for row in rows[:COUNT] if row.broken is not None or row.broken_error is not None] == []
    assert [bytes(row.broken) for row in rows[COUNT:]] == bad
    assert all(row[0] is None for row in rows[COUNT:])
    assert f"offset {offset}" in rows[COUNT].broken_error
    if case.bad_field is not None:
        assert f"offset {offset + 8 + len(case.bad)}, field {case.bad_field[1]})" in rows[-1].broken_error
