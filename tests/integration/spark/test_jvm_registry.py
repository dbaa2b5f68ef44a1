"""Events of schema registries inside the JVM: the rows, errors and modes of Python, for each version of a schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.spark.jvm import decoding
from pravega_connector.spark.jvm.decoding import NewerDecoders
from pravega_connector.wire import StreamName
from pravega_serde.avro import avro_schema_of
from pravega_serde.json import json_schema_of
from pravega_serde.protobuf import protobuf_schema_of
from pravega_serde.registry import (
    Compatibility,
    GroupProperties,
    SerializationFormat,
    serializer,
)
from tests.integration.spark._jvm import is_read_by_the_jvm

FORMATS = {"avro": avro_schema_of, "json": json_schema_of, "protobuf": protobuf_schema_of}
REGISTRIES = ["pravega", "confluent", "apicurio"]
_ID, _NOTE, _CUPS, _TAGS = (
    pa.field("id", pa.int64()),
    pa.field("note", pa.string()),
    pa.field("cups", pa.int32()),
    pa.field("tags", pa.list_(pa.string())),
)
VERSIONS = [pa.schema([_ID, _NOTE]), pa.schema([_ID, _NOTE, _CUPS]), pa.schema([_ID, _NOTE, _CUPS, _TAGS])]
COUNT = 50
QUERIES = ["*", "tags, note", "count(*)"]
ANY = GroupProperties(SerializationFormat.ANY, Compatibility.ALLOW_ANY, allow_multiple_types=True)
Write = Callable[..., list[bytes]]
Read = Callable[..., DataFrame]


@pytest.fixture(params=REGISTRIES)
def uri(request: pytest.FixtureRequest) -> str:
    """Address of one of the registries."""
    if request.param == "pravega":
        return str(request.getfixturevalue("registry"))
    path = request.getfixturevalue("confluent" if request.param == "confluent" else "apicurio")
    return f"{request.param}+{path}"


@pytest.fixture
def group(stream_name: StreamName, client: PravegaClient, uri: str) -> str:
    """The group of a new stream."""
    client.create_stream(stream_name)
    return f"{stream_name.scope}-{stream_name.stream}"


@pytest.fixture
def write(client: PravegaClient, stream_name: StreamName, uri: str, group: str) -> Write:
    """``write(format, columns, **settings)`` writes rows of one version of a schema, and returns the events."""

    def write(form: str, columns: pa.Schema, **settings: Any) -> list[bytes]:
        type_name = None if form == "avro" else "shop.Order"
        schema = FORMATS[form](columns, "shop.Order")
        made = serializer(
            uri,
            group=group,
            schema=schema,
            format=form,
            type=type_name,
            register_schema=True,
            create_group=ANY if "+" not in uri else True,
            **settings,
        )
        rows = [{name: value for name, value in _row(n).items() if name in columns.names} for n in range(COUNT)]
        values = rows if form != "protobuf" else [{k: v for k, v in row.items() if v is not None} for row in rows]
        events = [bytes(made.serialize(each)) for each in values]
        append(client, stream_name, events)
        return events

    return write


def _row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "note": None if number % 3 else "ü€😀" * (number % 7),
        "cups": -number,
        "tags": [f"t{i}" for i in range(number % 4)],
    }


@pytest.fixture
def write_other(client: PravegaClient, stream_name: StreamName, uri: str, group: str) -> Callable[[], None]:
    """``write_other()`` writes an event of another type."""

    def write() -> None:
        schema = avro_schema_of(pa.schema([_ID]), "shop.Refund")
        made = serializer(uri, group=group, schema=schema, format="avro", register_schema=True)
        append(client, stream_name, [bytes(made.serialize({"id": 1}))])

    return write


def append(client: PravegaClient, stream: StreamName, events: list[bytes]) -> None:
    with client.writer(stream) as writer:
        for event in events:
            writer.write(event, routing_key="one")


@pytest.fixture
def read(jvm_session: SparkSession, config: PravegaConfig, stream_name: StreamName, uri: str, group: str) -> Read:
    """``read(reader, schema, **options)`` reads the stream with one of the readers."""

    def read(reader: str, schema: str | None = None, **options: str) -> DataFrame:
        source = jvm_session.read.format("pravega").options(controller=config.controller, raw_reader=reader)
        source = source.options(registry=uri, group=group, columns="offset", **options)
        return (source if schema is None else source.schema(schema)).load(str(stream_name))

    return read


@pytest.fixture
def only_java(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """``only_java()``: from then on, a batch that Python must decode raises an error."""
    return lambda: monkeypatch.setattr(decoding, "packed", lambda _: "")


def selected(frame: DataFrame, columns: str = "*") -> list[str]:
    return sorted(str(row) for row in frame.selectExpr(*columns.split(", ")).collect())


def error_line(frame: DataFrame) -> str:
    with pytest.raises(PySparkException) as raised:
        frame.collect()
    return next(line for line in str(raised.value).splitlines() if "[PRAVEGA-" in line).partition("[PRAVEGA-")[2]


@pytest.mark.parametrize("form", FORMATS)
def test_versions_of_a_schema_are_decoded_by_java_alone(read, write, only_java, form):
    for columns in VERSIONS:
        write(form, columns)
    if form == "avro":  # another order of the fields
        write(form, pa.schema(list(reversed(VERSIONS[-1]))))
    expected = [selected(read("python"), columns) for columns in QUERIES]
    narrow = "offset BIGINT, cups INT, id BIGINT"
    expected_narrow = selected(read("python", narrow))
    assert not is_read_by_the_jvm(read("python"))
    only_java()
    frame = read("jvm")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert f"decoded by the JVM: {form}" in plan
    assert frame.schema == read("python").schema
    for columns, rows in zip(QUERIES, expected, strict=True):
        assert selected(frame, columns) == rows, columns
    assert selected(read("jvm", narrow)) == expected_narrow
    assert frame.count() == COUNT * (3 + (form == "avro"))


@pytest.mark.parametrize(
    ("uri", "form"),
    [("pravega", "avro"), ("pravega", "json"), ("confluent", "protobuf"), ("apicurio", "avro")],
    indirect=["uri"],
)
def test_malformed_events_in_each_mode(read, write, client, stream_name, form, uri):
    events = write(form, VERSIONS[0])
    header = 6 if form == "protobuf" and uri.startswith("confluent") else 5
    bad = {"avro": b"\x01", "json": b'{"id": "seven"}', "protobuf": b"\x08"}[form]
    append(client, stream_name, [events[0][:header] + bad, b"", b"no header"])
    write(form, VERSIONS[1])
    for mode in ("PERMISSIVE", "DROPMALFORMED"):
        jvm, python = (read(reader, mode=mode) for reader in ("jvm", "python"))
        assert is_read_by_the_jvm(jvm)
        for columns in ("*", "id", "count(*)"):
            assert selected(jvm, columns) == selected(python, columns), columns
        assert jvm.count() == 2 * COUNT + 3 * (mode == "PERMISSIVE")
    errors = [error_line(read(reader)) for reader in ("jvm", "python")]
    assert errors[0] == errors[1]
    assert "segment 0, offset" in errors[0]


@pytest.mark.parametrize("uri", REGISTRIES[:2], indirect=True)
def test_an_id_that_the_registry_does_not_have(read, write, client, stream_name):
    event = write("avro", VERSIONS[0])[0]
    append(client, stream_name, [event[:1] + (99_999).to_bytes(4, "big") + event[5:]])
    errors = [error_line(read(reader)) for reader in ("jvm", "python")]
    assert errors[0] == errors[1]
    assert errors[0].startswith("REGISTRY-NOT-FOUND]")
    options = {"unknown_encoding_ids": "corrupt", "mode": "PERMISSIVE"}
    jvm, python = (read(reader, **options) for reader in ("jvm", "python"))
    assert is_read_by_the_jvm(jvm)
    assert selected(jvm) == selected(python)
    assert jvm.where("_corrupt_record IS NOT NULL").count() == 1


@pytest.mark.parametrize("uri", REGISTRIES[:2], indirect=True)
def test_a_version_that_is_registered_after_the_query_was_planned(
    jvm_session, config, stream_name, read, write, uri, group, tmp_path
):
    write("avro", VERSIONS[0])
    source = jvm_session.readStream.format("pravega").options(controller=config.controller, raw_reader="jvm")
    source = source.options(registry=uri, group=group, columns="offset", start_stream_cut="earliest")
    found: list[Any] = []
    writer = source.load(str(stream_name)).writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    try:
        query.processAllAvailable()
        assert len(found) == COUNT
        write("avro", VERSIONS[1])
        query.processAllAvailable()
        assert "decoded by the JVM: avro" in query.lastProgress["sources"][0]["description"]
    finally:
        query.stop()
    assert sorted(map(str, found)) == selected(read("python", "id BIGINT, note STRING, offset BIGINT"))
    assert len(found) == 2 * COUNT


@pytest.mark.parametrize("uri", REGISTRIES[:2], indirect=True)
def test_a_running_query_gets_the_decoders_of_a_new_version(
    jvm_session, config, stream_name, read, write, uri, group, tmp_path, only_java, monkeypatch
):
    taken: list[Any] = []
    take = NewerDecoders.take
    monkeypatch.setattr(NewerDecoders, "take", lambda decoders: taken.append(take(decoders)) or taken[-1])
    monkeypatch.setattr(decoding, "REFRESH_SECONDS", 0)
    write("avro", VERSIONS[0])
    source = jvm_session.readStream.format("pravega").options(controller=config.controller, raw_reader="jvm")
    source = source.options(registry=uri, group=group, columns="offset", start_stream_cut="earliest")
    found: list[Any] = []
    writer = source.load(str(stream_name)).writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    try:
        query.processAllAvailable()
        only_java()  # plans that the query gets from now on
        for written in range(2, 100):
            write("avro", VERSIONS[1])
            query.processAllAvailable()
            assert len(found) == written * COUNT
            if any(plan is not None and len(plan["decoders"]) == 2 for plan in taken[:-1]):
                return  # Java has decoded the last batch
        raise AssertionError(f"the query has the decoders of one version only: {taken}")
    finally:
        query.stop()
        rows = sorted(map(str, found))
        assert rows == selected(read("python", "id BIGINT, note STRING, offset BIGINT"))


@pytest.mark.parametrize("uri", ["pravega"], indirect=True)
class TestEncodings:
    """Groups of Pravega's registry, whose events may be compressed."""

    def test_compressed_events_between_others(self, read, write, only_java):
        write("avro", VERSIONS[0], codec="gzip", register_codec=True)
        write("avro", VERSIONS[1])
        jvm, python = read("jvm"), read("python")
        assert is_read_by_the_jvm(jvm)
        assert selected(jvm) == selected(python)
        assert jvm.count() == 2 * COUNT
        only_java()
        with pytest.raises(PySparkException):
            read("jvm").collect()

    def test_a_group_whose_events_are_compressed_is_read_by_python(self, read, write, caplog):
        caplog.set_level("INFO", "pravega_connector.spark.jvm")
        write("avro", VERSIONS[0])
        write("avro", VERSIONS[0], codec="gzip", register_codec=True)
        frame = read("auto")
        assert not is_read_by_the_jvm(frame)
        assert "codec 'application/x-gzip' of the latest encoding in the registry's group" in caplog.messages[-1]
        assert frame.count() == 2 * COUNT

    def test_a_number_that_became_wider_is_read_by_python(self, read, write):
        write("avro", pa.schema([_CUPS, _ID]))
        narrow = read("python").schema
        write("avro", pa.schema([pa.field("cups", pa.int64()), _ID]))
        frame = read("auto", narrow)
        assert not is_read_by_the_jvm(frame)
        assert frame.where("cups = -7").count() == 2

    def test_events_of_another_type_have_no_rows(self, read, write, write_other):
        write("avro", VERSIONS[0])
        chosen = read("auto", registry_type="shop.Order")
        assert is_read_by_the_jvm(chosen)
        write_other()
        assert chosen.count() == COUNT

    def test_a_group_of_several_types_is_read_by_python(self, read, write, write_other):
        write("avro", VERSIONS[0])
        write_other()
        both, chosen = read("auto"), read("auto", registry_type="shop.Order")
        assert not is_read_by_the_jvm(both)
        assert not is_read_by_the_jvm(chosen)
        assert (both.count(), chosen.count()) == (COUNT + 1, COUNT)


@pytest.mark.parametrize("uri", ["pravega"], indirect=True)
def test_ids_that_cannot_be_listed(read, write, uri, group, monkeypatch, caplog):
    caplog.set_level("INFO", "pravega_connector.spark.jvm")
    for columns in VERSIONS:
        write("avro", columns)
    monkeypatch.setattr("pravega_connector.spark.jvm.registry_steps._MOST_IDS", 2)
    frame = read("auto")
    assert not is_read_by_the_jvm(frame)
    assert f"a registry whose ids are not listed: the group {group!r} has more than 2 ids" in caplog.messages[-1]
    assert frame.count() == 3 * COUNT


@pytest.mark.parametrize("uri", ["apicurio"], indirect=True)
def test_global_ids_of_apicurio(read, write, client, stream_name, uri, group, only_java):
    from pravega_serde.registry import confluent_calls as calls
    from pravega_serde.registry.confluent_store import ApicurioStore
    from pravega_serde.registry.settings import serializer_config

    events = write("avro", VERSIONS[0])
    write("avro", VERSIONS[1])
    store = ApicurioStore(serializer_config(uri, group, {}))
    ids = {content: total for total, content in store._connection.run(calls.artifact_ids(group))}
    header = ids[int.from_bytes(events[0][1:5], "big")].to_bytes(8, "big")
    append(client, stream_name, [b"\0" + header + event[5:] for event in events])
    expected = selected(read("python"))
    only_java()
    assert selected(read("jvm")) == expected
    assert len(expected) == 3 * COUNT
