"""Key-value tables: batch reads and upserts."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.tables import Table, Version
from pravega_connector.wire import StreamName, TableName

pytestmark = pytest.mark.each_spark
Read = Callable[..., DataFrame]
Upsert = Callable[..., None]
STOCK = "key STRING, item STRING, pieces INT, at BIGINT"


@pytest.fixture
def name(client: PravegaClient, stream_name: StreamName) -> TableName:
    """A table of three segments with primary keys of four bytes."""
    table = TableName(stream_name.scope, stream_name.stream)
    client.create_table(table, 4, partitions=3)
    return table


@pytest.fixture
def pairs(client: PravegaClient, stream_name: StreamName) -> TableName:
    """A table of two segments with primary keys of four and secondary keys of two bytes."""
    table = TableName(stream_name.scope, stream_name.stream + "-pairs")
    client.create_table(table, 4, 2, partitions=2)
    return table


@pytest.fixture
def stock(client: PravegaClient, name: TableName) -> Table[Any]:
    return client.table(name, key="string", value="json")


@pytest.fixture
def read(spark: SparkSession, config: PravegaConfig) -> Read:
    """``read(table, schema, **options)``: a batch read."""

    def read(table: object, schema: str | None = None, **options: object) -> DataFrame:
        reader = spark.read.format("pravega").options(controller=config.controller, table=str(table), **options)
        return (reader if schema is None else reader.schema(schema)).load()

    return read


@pytest.fixture
def upsert(config: PravegaConfig) -> Upsert:
    """``upsert(frame, table, **options)``: a batch write of JSON."""

    def upsert(frame: DataFrame, table: object, **options: object) -> None:
        given = {"controller": config.controller, "table": str(table), "format": "json", "mode": "upsert", **options}
        frame.write.format("pravega").options(**given).mode("append").save()

    return upsert


@pytest.fixture
def rows_of(spark: SparkSession) -> Callable[..., DataFrame]:
    """``rows_of([(…), …], partitions=1)``: a DataFrame of rows of stock, in this order."""

    def rows_of(rows: list[tuple[Any, ...]], partitions: int = 1) -> DataFrame:
        return spark.createDataFrame(spark.sparkContext.parallelize(rows, partitions), STOCK)

    return rows_of


def entries(table: Table[Any]) -> dict[Any, Any]:
    return {entry.key: entry.value for entry in table.entries()}


def entry(item: str | None, pieces: int | None, at: int) -> dict[str, Any]:
    return {"item": item, "pieces": pieces, "at": at}


# ---- read ------------------------------------------------------------------------------------------------------------


def test_reads_raw_entries_with_their_versions(read, client, name):
    table = client.table(name)
    versions = {b"%04d" % i: table.put(b"%04d" % i, bytes([i % 256]) * (i % 7)) for i in range(100)}
    frame = read(name)
    assert frame.dtypes == [("key", "binary"), ("value", "binary"), ("version", "string")]
    assert frame.rdd.getNumPartitions() == 3
    found = {bytes(row.key): (bytes(row.value), Version.parse(row.version)) for row in frame.collect()}
    assert found == {key: (bytes([int(key) % 256]) * (int(key) % 7), version) for key, version in versions.items()}


def test_reads_typed_columns(read, client, pairs):
    table = client.table(pairs, key="string", value="json")
    table.put(("anna", "a0"), {"pieces": 1, "tags": ["x"]})
    table.put(("anna", "b0"), {"pieces": 2})
    table.put(("bert", "a0"), {"pieces": 3, "tags": []})
    text = {"format": "json", "key_format": "string"}
    inferred = read(pairs, **text, infer_schema=True)
    assert inferred.columns == ["key", "secondary_key", "pieces", "tags", "version"]
    named = read(pairs, "who STRING, part STRING, pieces INT", **text, key_column="who", secondary_key_column="part")
    assert sorted(map(tuple, named.collect())) == [("anna", "a0", 1), ("anna", "b0", 2), ("bert", "a0", 3)]
    assert read(pairs, "pieces INT", **text).agg(f.sum("pieces")).first()[0] == 6


def test_reads_an_empty_table(read, name):
    assert read(name).collect() == []


def test_reads_more_entries_than_one_answer_has(read, client, pairs, upsert):
    frame = (
        read(pairs)
        .sparkSession.range(5000)
        .selectExpr("'many' AS key", "unhex(lpad(hex(id), 4, '0')) AS secondary_key", "repeat('x', 1000) AS value")
    )
    upsert(frame.repartition(2, "secondary_key"), pairs, format="string")
    assert read(pairs, format="string").where("length(value) = 1000").count() == 5000
    assert len(list(client.table(pairs, key="string").keys("many"))) == 5000


def test_a_malformed_value_names_its_key(read, client, name):
    table = client.table(name)
    table.put(b"good", b'{"pieces": 1}')
    table.put(b"evil", b"{")
    schema, text = "key STRING, pieces INT", {"format": "json", "key_format": "string"}
    with pytest.raises(
        PySparkException, match=rf"\[PRAVEGA-DESERIALIZATION\] the value of key b'evil' of table {name}"
    ):
        read(name, schema, **text).collect()
    assert [tuple(row) for row in read(name, schema, **text, mode="DROPMALFORMED").collect()] == [("good", 1)]
    kept = read(name, f"{schema}, _corrupt_record BINARY, _corrupt_record_error STRING", **text, mode="PERMISSIVE")
    (evil,) = kept.where("_corrupt_record IS NOT NULL").collect()
    assert (evil.key, evil.pieces, bytes(evil._corrupt_record)) == ("evil", None, b"{")
    assert "of key b'evil'" in evil._corrupt_record_error
    table.put(b"\xff\xff\xff\xff", b'{"pieces": 1}')
    with pytest.raises(PySparkException, match=r"PRAVEGA-DESERIALIZATION.*not UTF-8"):
        read(name, schema, **text, mode="DROPMALFORMED").collect()


def test_sql_reads_and_upserts(spark, config, stock):
    stock.put("milk", entry("milk", 1, 1))
    spark.sql(
        f"CREATE TABLE stock USING pravega OPTIONS (controller '{config.controller}', table '{stock.name}', "
        "format 'json', key_format 'string', infer_schema 'true')"
    )
    try:
        assert spark.table("stock").columns == ["key", "item", "pieces", "at"]
        spark.sql("INSERT INTO stock VALUES ('teas', 'tea', 5, 2), ('milk', 'milk', 2, 2)")
        spark.sql("INSERT INTO stock VALUES ('milk', NULL, NULL, NULL)")
        assert entries(stock) == {"teas": entry("tea", 5, 2)}
        assert spark.sql("SELECT pieces FROM stock WHERE key = 'teas'").first()[0] == 5
    finally:
        spark.sql("DROP TABLE stock")


# ---- upsert ----------------------------------------------------------------------------------------------------------


def test_an_upsert_sets_adds_and_removes(upsert, rows_of, stock, read):
    stock.put("milk", entry("milk", 1, 1))
    stock.put("eggs", entry("eggs", 6, 1))
    upsert(rows_of([("milk", "milk", 2, 2), ("teas", "tea", 3, 2), ("eggs", None, None, None)]), stock.name)
    assert entries(stock) == {"milk": entry("milk", 2, 2), "teas": entry("tea", 3, 2)}
    again = read(stock.name, STOCK, format="json", key_format="string")
    assert sorted(map(tuple, again.collect())) == [("milk", "milk", 2, 2), ("teas", "tea", 3, 2)]


def test_the_last_row_of_a_task_wins(upsert, rows_of, stock):
    upsert(rows_of([("milk", "milk", i, 7) for i in range(500)] + [("eggs", "x", 1, 1)]), stock.name)
    assert entries(stock) == {"milk": entry("milk", 499, 7), "eggs": entry("x", 1, 1)}


def test_one_key_in_two_tasks_is_an_error_without_an_order(upsert, rows_of, stock):
    rows = rows_of([("milk", "milk", 1, 1), ("eggs", "eggs", 1, 1), ("milk", "milk", 2, 2)], partitions=3)
    with pytest.raises(
        PySparkException, match=r"\[PRAVEGA-TABLE-KEY-ORDER\] several tasks of the write .*'order_column'"
    ):
        upsert(rows, stock.name)
    upsert(rows.repartition("key"), stock.name)
    upsert(rows, stock.name, order_column="at")
    assert entries(stock)["milk"] == entry("milk", 2, 2)


def test_the_greatest_row_by_an_order_wins_over_rows_and_entries(upsert, rows_of, stock):
    stock.put("milk", entry("milk", 100, 10))
    stock.put("eggs", entry("eggs", 100, 1))
    stock.put("salt", {"item": "salt"})  # without an order
    rows = [("milk", "milk", 9, 9), ("eggs", "eggs", 3, 3), ("eggs", "eggs", 5, 5), ("eggs", "eggs", 4, 4)]
    rows += [("teas", "tea", at, at) for at in range(50)] + [("salt", "salt", 1, 1)]
    frame = rows_of(rows, partitions=4)
    for _ in range(2):
        upsert(frame, stock.name, order_column="at")
        assert entries(stock) == {
            "milk": entry("milk", 100, 10),
            "eggs": entry("eggs", 5, 5),
            "teas": entry("tea", 49, 49),
            "salt": entry("salt", 1, 1),
        }
    # of equal ones, the same in any sequence: the greater value
    for pieces in ([1, 2], [2, 1]):
        for each in pieces:
            upsert(rows_of([("even", "x", each, 1)]), stock.name, order_column="at")
        assert entries(stock)["even"] == entry("x", 2, 1)
        stock.remove("even")
    # a removal has an order, too
    upsert(rows_of([("milk", None, None, 9), ("eggs", None, None, 6), ("none", None, None, 1)]), stock.name,
           order_column="at")  # fmt: skip
    assert sorted(entries(stock)) == ["milk", "salt", "teas"]


def test_a_row_with_a_version_is_written_only_at_this_version(upsert, rows_of, stock, read):
    stock.put("milk", entry("milk", 1, 1))
    stock.put("eggs", entry("eggs", 1, 1))
    found = read(stock.name, STOCK + ", version STRING", format="json", key_format="string").localCheckpoint()
    upsert(found.withColumn("pieces", f.expr("pieces + 1")), stock.name)
    assert entries(stock) == {"milk": entry("milk", 2, 1), "eggs": entry("eggs", 2, 1)}
    upsert(found.withColumn("pieces", f.expr("pieces + 1")), stock.name)  # as a retry, which finds its own values
    with pytest.raises(PySparkException, match=r"\[PRAVEGA-TABLE-VERSION\] the entry of key b'(milk|eggs)'"):
        upsert(found.withColumn("pieces", f.lit(9)), stock.name)
    added = rows_of([("teas", "tea", 1, 1)]).withColumn("version", f.lit(None).cast("string"))
    upsert(added, stock.name)
    with pytest.raises(PySparkException, match=r"\[PRAVEGA-TABLE-VERSION\] the entry of key b'teas'"):
        upsert(added.withColumn("pieces", f.lit(2)), stock.name)
    assert entries(stock)["teas"] == entry("tea", 1, 1)


def test_an_upsert_creates_its_table(upsert, rows_of, client, own_scope):
    made = {"allow_create_scope": True, "allow_create_table": True, "primary_key_length": 4, "table_partitions": 2}
    upsert(rows_of([("milk", "milk", 1, 1)]), f"{own_scope}-new/stock", **made)
    assert client.table_config(f"{own_scope}-new/stock").partitions == 2
    assert client.table(f"{own_scope}-new/stock", key="string", value="json").exists("milk")


def test_keys_of_two_parts_and_raw_values(spark, upsert, client, pairs):
    frame = spark.createDataFrame(
        [("anna", b"a0", "x", 1), ("anna", b"b0", None, 2)], "who STRING, part BINARY, value STRING, i INT"
    )
    upsert(frame.drop("i"), pairs, format="string", key_column="who", secondary_key_column="part")
    raw = frame.selectExpr("who", "part", "CAST(i AS STRING) AS value").coalesce(1)
    assert entries(client.table(pairs)) == {(b"anna", b"a0"): b"x"}
    spark.createDataFrame([("bert", "a0", b"\0")], "key STRING, secondary_key STRING, value BINARY").write.format(
        "pravega"
    ).options(controller=client.config.controller, table=str(pairs)).mode("append").save()
    assert client.table(pairs).get((b"bert", b"a0")).value == b"\0"
    assert raw.count() == 2


# ---- streaming -------------------------------------------------------------------------------------------------------


@pytest.fixture
def start(spark: SparkSession, config: PravegaConfig, checkpoint: str) -> Callable[..., Any]:
    """``start(stream, table, **options)``: a query that upserts the events of a stream, to its current end."""

    def start(stream: StreamName, table: TableName, **options: object) -> Any:
        access = {"controller": config.controller, "format": "json"}
        events = spark.readStream.format("pravega").options(**access, start_stream_cut="earliest").schema(STOCK)
        sink = events.load(str(stream)).writeStream.format("pravega").options(**access, table=str(table), **options)
        return sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()

    return start


@pytest.fixture
def changes(client: PravegaClient, stream_name: StreamName) -> Callable[..., StreamName]:
    """Write changes of stock to a stream."""

    def changes(*rows: tuple[Any, ...]) -> StreamName:
        client.create_stream(stream_name, 2)
        with client.writer(stream_name, "json") as writer:
            for key, *rest in rows:
                writer.write({"key": key, **dict(zip(("item", "pieces", "at"), rest, strict=True))}, routing_key=key)
        return stream_name

    return changes


def test_a_query_keeps_the_latest_value_of_each_key(start, changes, stock):
    rows = [(f"k{i % 10:03}", "x", i, i) for i in range(500)]
    stream = changes(*rows)
    start(stream, stock.name).awaitTermination()
    assert entries(stock) == {f"k{i:03}": entry("x", 490 + i, 490 + i) for i in range(10)}
    changes(("k003", "x", 1, 1000), ("k004", None, None, None))
    start(stream, stock.name).awaitTermination()
    expected = {f"k{i:03}": entry("x", 490 + i, 490 + i) for i in range(10) if i != 4} | {"k003": entry("x", 1, 1000)}
    assert entries(stock) == expected


def test_a_killed_batch_is_written_again(start, changes, stock, checkpoint):
    """The entries of a batch are in the table, and the commit log does not have it: the batch is repeated."""
    stream = changes(*[(f"k{i % 5:03}", "x", i, i) for i in range(100)])
    start(stream, stock.name).awaitTermination()
    expected = entries(stock)
    (commit,) = (Path(checkpoint) / "commits").glob("[0-9]*")
    for path in (commit, commit.with_name(f".{commit.name}.crc")):
        path.unlink()
    stock.remove("k001")
    start(stream, stock.name).awaitTermination()
    assert entries(stock) == expected


def test_a_task_whose_worker_is_killed_reads_and_upserts_again(read, upsert, stock, client, tmp_path):
    for number in range(300):
        stock.put(f"k{number:03}", entry("x", number, number))
    copy = TableName(stock.name.scope, f"{stock.name.table}-copy")
    client.create_table(copy, 4, partitions=3)
    killed = tmp_path / "killed"

    def kill_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            with contextlib.suppress(FileExistsError):
                killed.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)

    upsert(read(stock.name, STOCK, format="json", key_format="string").mapInArrow(kill_once, STOCK), copy)
    assert killed.exists()
    assert entries(client.table(copy, key="string", value="json")) == entries(stock)
    assert len(entries(stock)) == 300


def test_changes_of_an_aggregation_are_upserted_for_each_batch(spark, config, changes, stock, checkpoint, upsert):
    stream = changes(*[(f"k{i % 4:03}", "x", 1, i) for i in range(100)])
    events = spark.readStream.format("pravega").options(
        controller=config.controller, format="json", start_stream_cut="earliest", max_rows_per_trigger=40
    )
    counts = events.schema(STOCK).load(str(stream)).groupBy("key").agg(f.sum("pieces").alias("pieces"))
    query = (
        counts.writeStream.outputMode("update")
        .foreachBatch(lambda frame, _: upsert(frame, stock.name))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert entries(stock) == {f"k{i:03}": {"pieces": 25} for i in range(4)}


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_a_missing_table_is_an_error(read, upsert, rows_of):
    with pytest.raises(PySparkException, match=r"\[PRAVEGA-TABLE-NOT-FOUND\] table no/such does not exist"):
        read("no/such")
    with pytest.raises(PySparkException, match="PRAVEGA-TABLE-NOT-FOUND"):
        upsert(rows_of([("milk", "milk", 1, 1)]), "no/such")


def test_a_table_and_a_stream_are_an_error(read, upsert, rows_of, name):
    with pytest.raises(PySparkException, match=r"\[PRAVEGA-CONFIG\] a table and a stream are set: .* set only one"):
        read(name, stream="a/b")
    with pytest.raises(PySparkException, match=r"a table and a stream are set: .* 'path' is 'a/b'"):
        upsert(rows_of([]), name, path="a/b")


def test_a_row_that_cannot_be_written_is_named(upsert, rows_of, name):
    with pytest.raises(PySparkException, match=r"\[PRAVEGA-TABLE-LIMIT\] row 1 of column 'key' is b'milks', 5 bytes"):
        upsert(rows_of([("milk", "milk", 1, 1), ("milks", "milk", 1, 1)]), name)


def follow(frame: DataFrame) -> None:
    frame.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()


def test_what_tables_do_not_support(spark, config, name, rows_of):
    access = {"controller": config.controller, "table": str(name)}
    with pytest.raises(PySparkException, match=r"\[PRAVEGA-UNSUPPORTED-MODE\] a table supports only upserts"):
        rows_of([]).write.format("pravega").options(**access, format="json").mode("overwrite").save()
    with pytest.raises(PySparkException, match=r"has no changes to follow: read it with spark.read"):
        follow(spark.readStream.format("pravega").options(**access).load())
    with pytest.raises(PySparkException, match="mode=upsert writes a key-value table: set option 'table'"):
        rows_of([]).write.format("pravega").options(controller=config.controller, mode="upsert").mode("append").save(
            "a/b"
        )
    with pytest.raises(PySparkException, match="'key_column' is for key-value tables: set option 'table'"):
        spark.read.format("pravega").options(controller=config.controller, key_column="id").load("a/b")


@pytest.fixture
def jvm(jvm_session: SparkSession, config: PravegaConfig) -> Any:
    return jvm_session.read.format("pravega").options(controller=config.controller)


def test_the_jvm_reader_leaves_tables_to_python(jvm, stock, caplog):
    stock.put("milk", entry("milk", 1, 1))
    with caplog.at_level("INFO", "pravega_connector.spark.jvm"):
        (row,) = jvm.option("table", str(stock.name)).load().collect()
    assert bytes(row.key) == b"milk"
    assert "is a key-value table" in caplog.text
