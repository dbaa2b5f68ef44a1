"""Source, sink and commands with the contract of a Confluent registry: rules, names of subjects, normalization."""

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError
from pravega_connector.operations.cli.root import command_line
from pravega_connector.rows.encoding import encoder_for
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.functions import from_pravega, to_pravega
from pravega_connector.wire import StreamName
from pravega_serde.errors import PravegaError, SchemaError, SerdeError
from pravega_serde.registry import RegistryConfig, serializer
from pravega_serde.registry.subjects import Subjects
from tests.integration.spark._key_service import NAME as KEY_SERVICE
from tests.unit.registry._rules import AVRO, VALUE, encrypting, register, rule, served_registry

Place = dict[str, str]

COLUMNS = pa.schema([("id", pa.int64()), ("card", pa.string()), ("tags", pa.list_(pa.string()))])
SCHEMA = "id BIGINT, card STRING, tags ARRAY<STRING>"


@pytest.fixture
def place(config: PravegaConfig, client: PravegaClient, stream_name: StreamName) -> Iterator[Place]:
    """Options of a new stream. The schema of its subject has a rule that encrypts fields."""
    client.create_stream(stream_name)
    with served_registry() as (registry, uri):
        register(registry, f"{stream_name.stream}-value", AVRO, encrypting("AES256_SIV"))
        yield {"controller": config.controller, "registry": f"confluent+{uri}", "path": str(stream_name)}


def read(options: Place) -> list[dict[str, Any]]:
    """Return the rows of a batch read. The reader is pickled, as for a worker."""
    source = PravegaDataSource(dict(options))
    reader = pickle.loads(pickle.dumps(source.reader(source.schema())))
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def encode(options: Place) -> list[bytes]:
    """Return the events of ``VALUE``. The encoder is pickled, as for a worker."""
    encoder = pickle.loads(pickle.dumps(encoder_for(COLUMNS, parse_options(SinkOptions, options), streaming=True)))
    return encoder.encode(pa.RecordBatch.from_pylist([VALUE], COLUMNS))[0].to_pylist()


def test_key_service_in_spark(spark: SparkSession, client, stream_name, place):
    options = {**place, "key_service": KEY_SERVICE}
    frame = spark.createDataFrame([tuple(VALUE.values())], SCHEMA)
    frame.write.format("pravega").mode("append").options(**options).save()
    (event,) = client.read(stream_name)
    assert b"4111" not in event
    found = spark.read.format("pravega").options(**options).load()
    assert [row.asDict() for row in found.collect()] == [VALUE]
    given = {"registry": place["registry"], "group": f"{stream_name.stream}-value", "key_service": KEY_SERVICE}
    events = frame.selectExpr("STRUCT(*) AS order").select(to_pravega("order", **given).alias("event"))
    assert [bytes(row.event) for row in events.collect()] == [event]
    found = events.select(from_pravega("event", **given).alias("order"))
    assert [row.order.asDict() for row in found.collect()] == [VALUE]


def test_without_a_key_service_no_ciphertext_is_read(client, place, stream_name, monkeypatch):
    monkeypatch.delenv("LOCAL_SECRET", raising=False)
    (event,) = encode({**place, "key_service": KEY_SERVICE})
    with client.writer(stream_name) as writer:
        writer.write(event, routing_key="one")
    assert read({**place, "key_service": KEY_SERVICE}) == [VALUE]
    with pytest.raises(PravegaError, match="LOCAL_SECRET"):
        read(place)


def test_key_service_in_commands(config, client, stream_name, place, tmp_path):
    (tmp_path / "lines").write_text(json.dumps(VALUE) + "\n")
    given = ["-o", f"registry={place['registry']}", "-o", f"key_service={KEY_SERVICE}"]

    def run(*arguments: object) -> str:
        environment = {"PRAVEGA_CONTROLLER_URI": config.controller}
        result = CliRunner().invoke(command_line, [*map(str, arguments), *given], env=environment)
        assert result.exit_code == 0, result.output
        return result.stdout

    run("write", stream_name, tmp_path / "lines")
    (event,) = client.read(stream_name)
    assert b"4111" not in event
    assert json.loads(run("read", stream_name)) == VALUE
    run("export", stream_name, tmp_path / "out.jsonl")
    assert json.loads((tmp_path / "out.jsonl").read_text()) == VALUE


@pytest.mark.parametrize(("strategy", "subject"), [("record", "shop.Item"), ("topic_record", "orders-shop.Item")])
def test_subject_strategy(client, stream_name, place, strategy, subject):
    options = {**place, "group": "orders", "registry_type": "shop.Item", "subject_strategy": strategy}
    (event,) = encode({**options, "format": "avro", "register_schema": "true"})
    assert subject in Subjects(RegistryConfig(uri=place["registry"])).names()
    assert encode(options) == [event]  # with the registered schema
    with client.writer(stream_name) as writer:
        writer.write(event, routing_key="one")
    assert read(options) == [VALUE]
    with pytest.raises(SchemaError, match="have one type each"):
        read({**place, "subject_strategy": strategy})


def test_normalize(place):
    types = ('"id":{"type":"integer"}', '"card":{"type":"string"}', '"tags":{"type":"array","items":{"type":"string"}}')
    one = f'{{"title":"Order","type":"object","properties":{{{",".join(types)}}}}}'
    other = f'{{"properties":{{{",".join(reversed(types))}}},"type":"object","title":"Order"}}'
    for normalize, versions in (("true", 1), ("false", 2)):
        options = {**place, "group": normalize, "format": "json", "register_schema": "true", "normalize": normalize}
        for schema in (one, other):
            encode({**options, "json_schema": schema})
        assert len(Subjects(RegistryConfig(uri=place["registry"])).versions(normalize)) == versions


def test_a_version_by_its_metadata(spark: SparkSession, client, stream_name, config):
    old, new = (
        {"type": "record", "name": "Cup", "fields": [{"name": name, "type": "string"}]} for name in ("tea", "drink")
    )
    up = rule("JSONATA", mode="UPGRADE", expr="{'drink': tea}")
    down = rule("JSONATA", mode="DOWNGRADE", expr="{'tea': drink & '?'}")
    client.create_stream(stream_name)
    with served_registry() as (registry, uri):
        registry.answer("PUT", "/config", {}, b'{"compatibility": "NONE"}')
        place = {
            "controller": config.controller,
            "registry": f"confluent+{uri}",
            "path": str(stream_name),
            "group": "s",
        }
        for schema, value, more in (
            (old, {"tea": "green"}, {}),
            (new, {"drink": "milk"}, {"ruleSet": {"migrationRules": [up, down]}}),
        ):
            major = {"metadata": {"properties": {"major": "1" if schema is old else "2"}}}
            body = {"schema": json.dumps(schema), **major, **more}
            assert registry.answer("POST", "/subjects/s/versions", {}, json.dumps(body).encode())[0] == 200
            event = serializer(place["registry"], group="s", schema=schema, format="avro").serialize(value)
            client.write(stream_name, event, routing_key="one")

        def found(version: str) -> list[str]:
            frame = spark.read.format("pravega").options(**place, schema_version=version).load()
            return [row[0] for row in frame.collect()]

        assert found("major=1") == ["green", "milk?"]
        assert found("major=2") == found("latest") == ["green", "milk"]
        with pytest.raises(PravegaError, match="no version of subject 's' has major=3"):
            read({**place, "schema_version": "major=3"})
        with pytest.raises(ConfigError, match="omit it, or omit the schema"):
            read({**place, "schema_version": "latest", "format": "avro", "avro_schema": json.dumps(old)})
    for kind in ("", "apicurio+"):
        with pytest.raises(ConfigError, match="only schemas of a Confluent registry have metadata"):
            read({**place, "registry": f"{kind}http://localhost:1", "schema_version": "major=1"})


@pytest.mark.parametrize("wrong", ["", "newest", "major", "=2", "major=1,major=2", "major=1,"])
def test_versions_that_cannot_be(wrong):
    with pytest.raises(ConfigError, match=r"'schema_version' must be latest, or different properties|is empty"):
        parse_options(SourceOptions, {"path": "s/t", "registry": "mock://groups", "schema_version": wrong})


@pytest.mark.parametrize("given", [{"key_service": "a:b"}, {"subject_strategy": "record"}, {"normalize": "true"}])
def test_options_of_a_contract_require_a_registry(given):
    with pytest.raises(ConfigError, match=f"option '{next(iter(given))}' requires a schema registry"):
        parse_options(SinkOptions, {"path": "s/t", "format": "avro", **given})


@pytest.mark.parametrize("given", [{"subject_strategy": "record"}, {"normalize": "true"}])
def test_groups_of_pravegas_registry_have_no_subjects(given):
    options = {
        "path": "s/t",
        "registry": "mock://groups",
        "format": "avro",
        "register_schema": "true",
        "create_group": "true",
    }
    with pytest.raises(SerdeError, match="groups instead of subjects"):
        encoder_for(COLUMNS, parse_options(SinkOptions, options | given))
