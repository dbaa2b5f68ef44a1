"""Events in the framings of other systems: source, sink, functions, SQL, commands and ingestion."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import Row, SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.operations.cli.root import command_line
from pravega_connector.spark.functions import from_pravega, to_pravega
from pravega_connector.spark.sql_functions import register_functions
from pravega_connector.wire import StreamName
from pravega_serde import ByteArraySerializer, Enveloped, Framed, JsonSerializer
from pravega_serde.framings.layouts import LAYOUTS

IDS = {"aws-glue": "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63", "azure": "0a1b2c3d4e5f60718293a4b5c6d7e8f9"}
ROWS = [Row(id=number, item=f"item {number}") for number in range(3)]


def framing(name: str) -> dict[str, str]:
    """Return the options to write a framing."""
    return {"framing": name} | ({"framing_id": IDS[name]} if name in IDS else {})


@pytest.fixture
def stream(client: PravegaClient, stream_name: StreamName) -> StreamName:
    client.create_stream(stream_name)
    return stream_name


@pytest.mark.parametrize("name", LAYOUTS)
def test_rows_come_back_and_the_client_reads_them(
    spark: SparkSession, config: PravegaConfig, client: PravegaClient, stream: StreamName, name: str
):
    options = {"controller": config.controller, "format": "json", "framing": name}
    frame = spark.createDataFrame(ROWS).coalesce(1)
    written = frame.write.format("pravega").mode("append").options(**options | framing(name), routing_key="one")
    written.save(str(stream))
    expected = [row.asDict() for row in ROWS]
    assert list(client.read(stream, Framed(JsonSerializer(), name))) == expected
    found = spark.read.format("pravega").options(**options, infer_schema="true").load(str(stream))
    assert sorted(found.collect()) == ROWS


def test_a_framing_is_around_an_envelope(spark, config, client, stream):
    options = {"controller": config.controller, "format": "json", "framing": "gzip", "envelope": "cloudevents"}
    frame = spark.createDataFrame(ROWS).selectExpr("CAST(id AS STRING) AS key", "STRUCT(id, item) AS value")
    more = {"cloudevents_source": "/shop", "cloudevents_type": "item"}
    frame.write.format("pravega").mode("append").options(**options, **more).save(str(stream))
    serializer = Framed(Enveloped(JsonSerializer(), "cloudevents"), "gzip")
    assert sorted(event.value["id"] for event in client.read(stream, serializer)) == [0, 1, 2]
    found = spark.read.format("pravega").options(**options, infer_schema="true").load(str(stream))
    assert sorted(row.value for row in found.collect()) == ROWS


def test_raw_events_stay_raw_inside(spark, config, client, stream):
    options = {"controller": config.controller, "format": "bytes", "framing": "zlib"}
    frame = spark.sql("SELECT CAST('one' AS BINARY) AS event")
    frame.write.format("pravega").mode("append").options(**options).save(str(stream))
    assert list(client.read(stream, Framed(ByteArraySerializer(), "zlib"))) == [b"one"]
    found = spark.read.format("pravega").options(**options).load(str(stream))
    assert [row.value for row in found.collect()] == [b"one"]


@pytest.mark.parametrize("name", ["aws-glue", "grpc", "zlib"])
def test_functions(spark, name):
    event = to_pravega("fields", "json", **framing(name))
    events = spark.createDataFrame(ROWS).selectExpr("STRUCT(*) AS fields").select(event.alias("event"))
    assert [Framed(JsonSerializer(), name).deserialize(bytes(row.event))["id"] for row in events.collect()] == [0, 1, 2]
    found = events.select(from_pravega("event", "json", "id BIGINT, item STRING", framing=name).alias("row"))
    assert [row.row for row in found.collect()] == ROWS
    register_functions(spark)
    events.createOrReplaceTempView("framed")
    query = f"SELECT from_pravega(event, 'json', schema => 'id BIGINT', framing => '{name}').id AS id FROM framed"
    assert [row.id for row in spark.sql(query).collect()] == [0, 1, 2]


@pytest.mark.parametrize("name", ["azure", "delimited"])
def test_commands(config, client, stream, tmp_path: Path, name):
    lines, environment = tmp_path / "lines", {"PRAVEGA_CONTROLLER_URI": config.controller}
    lines.write_text('{"id":0}\n{"id":1}\n')
    given = [part for option in framing(name).items() for part in ("-o", "=".join(option))]

    def run(*arguments: object) -> str:
        result = CliRunner().invoke(command_line, list(map(str, arguments)), env=environment)
        assert result.exit_code == 0, result.output
        return result.stdout

    run("write", stream, lines, "--format", "json", "--routing-key", "one", *given)
    assert list(client.read(stream, Framed(JsonSerializer(), name))) == [{"id": 0}, {"id": 1}]
    assert run("read", stream, "--format", "json", "-o", f"framing={name}") == '{"id":0}\n{"id":1}\n'
    run("export", stream, tmp_path / "out.jsonl", "--format", "json", "-o", f"framing={name}")
    assert [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [0, 1]


def test_ingestion(config, client, stream, tmp_path: Path):
    (tmp_path / "rows.csv").write_text("id,item\n0,tea\n1,milk\n")
    given = [part for option in framing("aws-glue").items() for part in ("--option", "=".join(option))]
    arguments = ["ingest", tmp_path, stream, "--controller", config.controller, "--format", "json", *given]
    result = CliRunner().invoke(command_line, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    events = client.read(stream, Framed(JsonSerializer(), "aws-glue"))
    assert list(events) == [{"id": 0, "item": "tea"}, {"id": 1, "item": "milk"}]
