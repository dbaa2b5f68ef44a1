"""Encrypted fields in Spark: batch, exactly-once with replays, column functions and SQL, and faults."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.spark.functions import from_pravega, to_pravega
from pravega_connector.spark.sql_functions import register_functions
from pravega_connector.wire import StreamName
from pravega_serde import DataKeys, Encrypted, LocalKeys, serializer_for
from tests.integration.spark.test_streaming import forget_batch

Load = Callable[..., DataFrame]

COLUMNS = "id BIGINT, name STRING, card STRUCT<number: STRING, code: BINARY>"
FIELDS = "name,card.number,card.code"
QUERY = (
    "id",
    "CONCAT('name ', id) AS name",
    "NAMED_STRUCT('number', CONCAT('4000 ', id), 'code', CAST(CAST(id AS STRING) AS BINARY)) AS card",
)


def row(number: int) -> Row:
    return Row(id=number, name=f"name {number}", card=Row(number=f"4000 {number}", code=str(number).encode()))


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    """Options of encryption, with keys in files."""
    LocalKeys.generate("main").save(tmp_path / "local.json")
    DataKeys.create(str(tmp_path / "local.json"), "main").save(tmp_path / "keys.json")
    return {
        "encrypted_fields": FIELDS,
        "encryption_keys": str(tmp_path / "keys.json"),
        "encryption_key_service": str(tmp_path / "local.json"),
    }


@pytest.fixture
def written(
    spark: SparkSession, config: PravegaConfig, client: PravegaClient, stream_name: StreamName, keys: dict[str, str]
) -> StreamName:
    """A stream of 100 rows with encrypted fields."""
    client.create_stream(stream_name, 2)
    frame = spark.range(100, numPartitions=2).selectExpr(*QUERY)
    options = {"controller": config.controller, "format": "json", "routing_key_field": "name"}
    frame.write.format("pravega").mode("append").options(**options, **keys).save(str(stream_name))
    return stream_name


def test_rows_come_back_and_the_client_reads_them(load, client, written, keys, spark):
    for event in client.read(written):
        assert b"name " not in event
        assert base64.b64decode(json.loads(event)["card"]["number"]).startswith(b"\x01\x00\x00\x00\x01")
    frame = read(spark, client, written, **keys)
    assert sorted(frame.collect()) == [row(number) for number in range(100)]
    pruned = read(spark, client, written, "id BIGINT", **keys)
    assert sorted(each.id for each in pruned.collect()) == [*range(100)]
    own = DataKeys.load(keys["encryption_keys"], keys["encryption_key_service"])
    serializer = Encrypted(serializer_for("json"), ["name", "card.number"], own, stream=str(written))
    found = sorted((each["id"], each["name"]) for each in client.read(written, serializer))
    assert found == [(number, f"name {number}") for number in range(100)]


def read(
    spark: SparkSession, client: PravegaClient, stream: StreamName, columns: str = COLUMNS, **options: str
) -> DataFrame:
    reader = spark.read.format("pravega").schema(columns)
    return reader.options(controller=client.config.controller, format="json", **options).load(str(stream))


def test_another_stream_and_missing_keys(spark, client, written, keys, tmp_path):
    with pytest.raises(PySparkException, match=r"\[PRAVEGA-DECRYPTION\] .*another stream.*offset \d+.*field \$\.name"):
        read(spark, client, written, **keys, encryption_stream="other/stream").collect()
    only_second = json.loads(DataKeys.load(keys["encryption_keys"], keys["encryption_key_service"]).rotated().text)
    newer = keys | {"encryption_keys": json.dumps({"keys": only_second["keys"][1:]})}
    with pytest.raises(PySparkException, match=r"\[PRAVEGA-MISSING-KEY\] data key 1 is not in the set"):
        read(spark, client, written, **newer).collect()
    nulls = read(spark, client, written, **newer, encryption_missing_key="null").collect()
    assert sorted(nulls) == [Row(id=number, name=None, card=Row(number=None, code=None)) for number in range(100)]
    corrupt = COLUMNS + ", _corrupt_record_error STRING"
    rows = read(spark, client, written, corrupt, mode="PERMISSIVE", **newer).collect()
    assert {each._corrupt_record_error.partition("]")[0] for each in rows} == {"[PRAVEGA-MISSING-KEY"}


def test_a_replayed_batch_has_equal_bytes(spark, config, client, written, keys, checkpoint, eventually):
    """The sink would refuse a replayed batch with other bytes."""
    target = StreamName(written.scope, "target")
    client.create_stream(target, 2)
    options = {"controller": config.controller, "format": "json", **keys}

    def copy() -> list[int]:
        rows = spark.readStream.format("pravega").schema(COLUMNS).options(**options, max_rows_per_trigger="40")
        frame = rows.option("start_stream_cut", "earliest").load(str(written))
        writer = frame.writeStream.format("pravega").options(**options, routing_key_field="card.number")
        query = writer.trigger(availableNow=True).start(str(target), checkpointLocation=checkpoint)
        query.awaitTermination()
        return [progress.batchId for progress in query.recentProgress if progress.numInputRows]

    batches = copy()
    assert len(batches) >= 2
    eventually(lambda: len(list(client.read(target))) == 100)
    forget_batch(checkpoint, batches[-1])
    assert copy() == batches[-1:], "the last batch was replayed"
    assert sorted(read(spark, client, target, **keys).collect()) == [row(number) for number in range(100)]
    assert not {*client.read(target)} & {*client.read(written)}, "values are bound to their stream"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encrypted_fields": "card.nubmer"}, r"no field 'card\.nubmer' to encrypt.*did you mean.*number"),
        ({"encrypted_fields": "id"}, "only strings and bytes can be encrypted"),
        (
            {"encryption_deterministic": "false", "txn_app_id": "a", "txn_version": "1"},
            "encryption_deterministic=false does not work with exactly_once",
        ),
        ({"encryption_keys": "/no/such/file"}, "invalid option 'encryption_keys': the file '/no/such/file'"),
    ],
)
def test_what_cannot_be_written_is_refused_before_it_starts(spark, config, client, stream_name, keys, options, words):
    client.create_stream(stream_name)
    frame = spark.range(1).selectExpr(*QUERY)
    given = {"controller": config.controller, "format": "json", **keys, **options}
    with pytest.raises(PySparkException, match=words):
        frame.write.format("pravega").mode("append").options(**given).save(str(stream_name))


def test_column_functions_and_sql(spark, keys):
    options = {**keys, "encryption_stream": "shop/orders"}
    frame = spark.range(50).selectExpr(*QUERY).selectExpr("STRUCT(*) AS before")
    events = frame.select("before", to_pravega("before", "json", **options).alias("event"))
    rows = events.select("before", from_pravega("event", "json", COLUMNS, **options).alias("after")).collect()
    assert [each.before for each in rows] == [each.after for each in rows]
    register_functions(spark)
    events.createOrReplaceTempView("encrypted_events")
    text = ", ".join(f"{name} => '{value}'" for name, value in options.items())
    found = spark.sql(f"SELECT before, from_pravega(event, 'json', '{COLUMNS}', {text}) AS after FROM encrypted_events")
    assert [each.before for each in found.collect()] == [each.after for each in found.collect()]
