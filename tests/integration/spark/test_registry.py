"""Streams whose schemas are in a registry: typed columns without a word about the format, schemas that continue."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import struct

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError
from pravega_connector.spark.functions import from_pravega, to_pravega
from pravega_connector.spark.versions import arrow_schema
from pravega_connector.wire import StreamName
from pravega_serde import SchemaError
from pravega_serde.errors import RegistryNotFoundError
from pravega_serde.registry import Compatibility, GroupProperties, SchemaRegistryClient, SerializationFormat, serializer
from tests.integration.spark._cases import COUNT, Case
from tests.integration.spark._errors import one_line
from tests.integration.spark._registry_proxy import RegistryProxy

Read = Callable[..., DataFrame]
Write = Callable[..., None]
NEW = {"register_schema": "true", "create_group": "true"}


@pytest.fixture
def proxy(registry: str) -> Iterator[RegistryProxy]:
    """A way to the registry that counts, and can be shut."""
    proxy = RegistryProxy(registry)
    yield proxy
    proxy.close()


@pytest.fixture
def schemas(registry: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient(registry) as client:
        yield client


@pytest.fixture
def group(stream_name: StreamName, client: PravegaClient) -> str:
    """The group of a new stream: it has the stream's name."""
    client.create_stream(stream_name, 2)
    return stream_name.stream


@pytest.fixture
def read(spark: SparkSession, config: PravegaConfig, registry: str) -> Read:
    """``read(stream, schema, **options)``: a batch read."""

    def read(stream: StreamName, schema: str | None = None, **options: str) -> DataFrame:
        reader = spark.read.format("pravega").options(controller=config.controller, registry=registry)
        reader = reader.options(**options)
        return (reader if schema is None else reader.schema(schema)).load(str(stream))

    return read


@pytest.fixture
def write(config: PravegaConfig, registry: str) -> Write:
    """``write(frame, stream, **options)``: a batch write."""

    def write(frame: DataFrame, stream: StreamName, **options: str) -> None:
        writer = frame.write.format("pravega").options(controller=config.controller, registry=registry, **options)
        writer.mode("append").save(str(stream))

    return write


def rows_of(frame: DataFrame) -> list[Any]:
    return sorted(frame.collect(), key=lambda row: str(row.id))


def types_of(frame: DataFrame) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in frame.schema]


@pytest.mark.usefixtures("new_york")
@pytest.mark.parametrize("name", ["avro", "json", "protobuf"])
def test_rows_come_back_as_they_were(
    spark: SparkSession, client: PravegaClient, stream_name: StreamName, group: str, all_cases: dict[str, Case],
    read: Read, write: Write, name: str,
):  # fmt: skip
    original = spark.sql(all_cases[name].query)
    if name == "protobuf":
        # A derived message has no Timestamp: Java's generic reader takes no imports.
        original = original.selectExpr("* EXCEPT (at, lines)", "UNIX_MICROS(at) AS at", "lines.sku AS skus")
    write(original, stream_name, format=name, registry_type="test.Reading", **NEW)
    found = read(stream_name)
    assert types_of(found) == types_of(original)
    assert rows_of(found) == rows_of(original)
    copy = StreamName(stream_name.scope, "copy")
    client.create_stream(copy, 2)
    # The registered schema has just these columns: nothing is added, nothing needs to be said.
    write(found, copy, group=group)
    assert sorted(client.read(copy)) == sorted(client.read(stream_name))
    assert len(list(client.read(copy))) == COUNT
    assert found.select("id").count() == read(stream_name, "name STRING, id BIGINT").dropna(subset=["id"]).count()


def test_several_types_in_one_stream(spark, client, stream_name, group, read, write):
    orders = spark.sql("SELECT id, CONCAT('tea-', id) AS item FROM RANGE(10)")
    refunds = spark.sql("SELECT id, id * 1.5D AS amount FROM RANGE(4)")
    write(orders, stream_name, format="avro", registry_type="shop.Order", codec="gzip", register_codec="true", **NEW)
    write(refunds, stream_name, format="avro", registry_type="shop.Refund", **NEW)
    both = read(stream_name, columns="encoding_id")
    assert types_of(both) == [
        ("Order", "struct<id:bigint,item:string>"),
        ("Refund", "struct<id:bigint,amount:double>"),
        ("encoding_id", "int"),
    ]
    assert {(row.Order is None, row.Refund is None, row.encoding_id) for row in both.collect()} == {
        (False, True, 0),
        (True, False, 1),
    }
    assert rows_of(read(stream_name, registry_type="shop.Order")) == rows_of(orders)
    chosen = read(stream_name, "amount DOUBLE NOT NULL, id BIGINT", registry_type="shop.Refund")
    assert sorted((row.id, row.amount) for row in chosen.collect()) == [(i, i * 1.5) for i in range(4)]

    copy = StreamName(stream_name.scope, "copy")
    client.create_stream(copy)
    write(both.drop("encoding_id"), copy, group=group)
    assert read(copy, group=group).where("Order.item LIKE 'tea-_'").count() == 10
    assert read(copy, group=group, registry_type="shop.Refund").count() == 4
    for frame, words in ((orders, "several types"), (both, "several types")):
        with pytest.raises(PySparkException) as error:
            write(frame, copy, group=group)
        assert words in one_line(error, "PRAVEGA-CONFIG")


A, B = {"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": "none"}
C = {"name": "c", "type": "string", "default": "-"}
VERSIONS = [
    {"type": "record", "name": "Evo", "namespace": "shop", "fields": fields}
    for fields in ([A, C], [A, C, B], [A | {"type": "long"}, B])
]


def value(i: int) -> dict[str, Any]:
    """Event i is of version i // 100 + 1; half of the third version's need its long."""
    big = 10_000_000_000 if i >= 200 and i % 2 else 3
    return {"a": i * big, "b": f"b{i}", "c": f"c{i}"}


@pytest.fixture
def write_version(
    client: PravegaClient, stream_name: StreamName, group: str, registry: str, schemas: SchemaRegistryClient
) -> Callable[[int], None]:
    """``write_version(n)``: a hundred events of version n + 1, as an application writes them."""
    schemas.add_group(group, GroupProperties(SerializationFormat.AVRO, Compatibility.BACKWARD, True))

    def write_version(version: int) -> None:
        made = serializer(registry, group=group, schema=VERSIONS[version], format="avro", register_schema=True)
        names = [field["name"] for field in VERSIONS[version]["fields"]]
        with client.writer(stream_name, made) as writer:
            for i in range(version * 100, version * 100 + 100):
                writer.write({name: value(i)[name] for name in names}, routing_key=str(i))

    return write_version


@pytest.fixture
def start(
    spark: SparkSession, config: PravegaConfig, registry: str, stream_name: StreamName, tmp_path: Any
) -> Iterator[Callable[..., Any]]:
    """``start(rows, schema=None, **options)``: a query that appends its rows to a list."""
    queries = []

    def start(rows: list[Any], schema: str | None = None, name: str = "query", **options: str) -> Any:
        given = {"controller": config.controller, "registry": registry, "start_stream_cut": "earliest"} | options
        reader = spark.readStream.format("pravega").options(**given)
        frame = (reader if schema is None else reader.schema(schema)).load(str(stream_name))
        writer = frame.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        queries.append(writer.option("checkpointLocation", str(tmp_path / name)).start())
        return queries[-1]

    yield start
    for query in queries:
        query.stop()


@pytest.mark.long  # tests/unit/registry has the evolution, test_sql below a version that comes later
def test_schemas_continue_while_queries_run(group, write_version, start, read, stream_name):
    write_version(0)
    wide: list[Any] = []
    first: list[Any] = []
    strict: list[Any] = []
    queries = [
        # Columns that were chosen with an eye to what comes: nothing stops, and nothing is bad.
        start(wide, "a BIGINT, b STRING, c STRING", "wide"),
        # Events of the first version: what it can hold is resolved to it.
        start(first, None, "first", mode="PERMISSIVE"),
        start(strict, None, "strict", mode="PERMISSIVE", schema_evolution="corrupt", columns="encoding_id"),
    ]
    for version in range(3):
        if version:
            write_version(version)
        for query in queries:
            query.processAllAvailable()
    expected = [value(i) for i in range(300)]
    assert sorted((row.a, row.b, row.c) for row in wide) == sorted(
        (v["a"], None if i < 100 else v["b"], "-" if i >= 200 else v["c"]) for i, v in enumerate(expected)
    )
    good = [row for row in first if row._corrupt_record is None]
    assert sorted((row.a, row.c) for row in good) == sorted(
        (v["a"], "-" if i >= 200 else v["c"]) for i, v in enumerate(expected) if v["a"] < 2**31
    )
    bad = [row for row in first if row._corrupt_record is not None]
    assert len(bad) == 50
    assert all("int64 -> int32" in row._corrupt_record_error and "field $.a" in row._corrupt_record_error
               for row in bad)  # fmt: skip
    assert sorted((row.encoding_id, row._corrupt_record is None) for row in strict) == sorted(
        (i // 100, i < 100) for i in range(300)
    )
    assert [query.exception() for query in queries] == [None] * 3

    # From now on, reads have the latest columns, or the columns of the schema option.
    for options in ({}, {"format": "avro", "avro_reader_schema": json.dumps(VERSIONS[2])}):
        latest = read(stream_name, **options)
        assert types_of(latest) == [("a", "bigint"), ("b", "string")]
        assert sorted((row.a, row.b) for row in latest.collect()) == sorted(
            (v["a"], "none" if i < 100 else v["b"]) for i, v in enumerate(expected)
        )


def test_a_registry_that_is_down_makes_no_bad_records(group, write_version, start, proxy):
    rows: list[Any] = []
    options = {"mode": "PERMISSIVE", "registry": proxy.uri, "timeout_ms": "1500"}
    write_version(0)
    query = start(rows, **options)
    query.processAllAvailable()
    proxy.close()
    before = sum(proxy.calls.values())
    write_version(1)
    with pytest.raises(PySparkException) as error:
        query.processAllAvailable()
    line = one_line(error, "PRAVEGA-REGISTRY-UNAVAILABLE")
    assert proxy.uri in line
    assert len(rows) == 100
    proxy.open()
    assert sum(proxy.calls.values()) == before
    restarted = start(rows, **options)
    restarted.processAllAvailable()
    assert sorted(row.c for row in rows) == sorted(value(i)["c"] for i in range(200))
    assert [row for row in rows if row._corrupt_record is not None] == []


def test_a_process_asks_once_for_each_encoding_id(config, stream_name, write_version, proxy):
    import pickle

    from pravega_connector.spark.data_source import PravegaDataSource

    for version in range(3):
        write_version(version)
    options = {"controller": config.controller, "registry": proxy.uri, "path": str(stream_name), "min_partitions": "2"}
    source = PravegaDataSource(options)
    schema = source.schema()
    reader = source.reader(schema)
    partitions = reader.partitions()
    assert len(partitions) >= 2
    planned = sum(proxy.calls.values())
    assert planned <= 10
    for _ in range(5):
        task = pickle.loads(pickle.dumps(reader))
        read = [batch for part in partitions for batch in task.read(part)]
        assert sum(batch.num_rows for batch in read) == 300
        assert read[0].schema == arrow_schema(schema)
    assert sum(proxy.calls.values()) - planned == 3
    assert [proxy.count(f"/encodings/{i}") for i in range(3)] == [1, 1, 1]


def test_a_streaming_copy_is_written_once_and_asks_once(
    spark: SparkSession, config: PravegaConfig, client: PravegaClient, stream_name: StreamName, group: str,
    read: Read, write: Write, proxy: RegistryProxy, checkpoint: str,
):  # fmt: skip
    write(spark.sql("SELECT id, CONCAT('n', id) AS name FROM RANGE(0, 600, 1, 1)"), stream_name, format="json", **NEW)
    copy = StreamName(stream_name.scope, "copy")
    client.create_stream(copy, 2)
    place = {"controller": config.controller, "registry": proxy.uri, "group": group}
    reader = spark.readStream.format("pravega").options(**place, start_stream_cut="earliest")
    frame = reader.option("max_rows_per_trigger", "150").load(str(stream_name))
    writer = frame.writeStream.format("pravega").options(**place, path=str(copy), routing_key_field="name")
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    assert len([progress for progress in query.recentProgress if progress.numInputRows]) == 4
    assert sorted(client.read(copy)) == sorted(client.read(stream_name))
    # Once for each planning process, of Spark's two to four, and not for each of the four batches, each planned
    # twice.
    assert 1 <= proxy.count("PUT") <= 4
    assert rows_of(read(copy, group=group)) == rows_of(read(stream_name))


def test_sql(
    spark: SparkSession, config: PravegaConfig, registry: str, stream_name: StreamName, group: str,
    write_version: Callable[[int], None],
):  # fmt: skip
    write_version(0)
    options = f"controller '{config.controller}', registry '{registry}', stream '{stream_name}'"
    table = f"t_{group}"
    spark.sql(f"CREATE TABLE {table} USING pravega OPTIONS ({options})")
    try:
        spark.sql(f"INSERT INTO {table} VALUES (-1, 'sql'), (-2, 'sql')")
        # A table keeps its columns; later versions are resolved to them.
        write_version(1)
        found = spark.sql(f"SELECT SUM(a), COUNT(c), COUNT(*) FROM {table}").first()
        assert tuple(found) == (sum(3 * i for i in range(200)) - 3, 202, 202)
        assert spark.sql(f"SELECT a FROM {table} WHERE c = 'sql' ORDER BY a").collect() == [(-2,), (-1,)]
    finally:
        spark.sql(f"DROP TABLE {table}")


def test_errors_are_said_before_a_task(spark, stream_name, group, read, write, schemas):
    frame = spark.sql("SELECT 1L AS id")

    def refused(code: str, run: Callable[[], object]) -> str:
        with pytest.raises(PySparkException) as error:
            run()
        return one_line(error, code)

    assert group in refused("PRAVEGA-REGISTRY-NOT-FOUND", lambda: read(stream_name))
    for formats, hint in (
        ({"format": "avro"}, "register_schema=true"),
        ({}, "register_schema=true, and with option 'format'"),
    ):
        line = refused("PRAVEGA-REGISTRY-NOT-FOUND", lambda given=formats: write(frame, stream_name, **given))
        assert f"write with create_group=true and {hint}" in line
    schemas.add_group(group, GroupProperties(SerializationFormat.AVRO, Compatibility.FULL, True))
    assert "no schema yet" in refused("PRAVEGA-SCHEMA", lambda: read(stream_name))
    assert "register_schema" in refused("PRAVEGA-CONFIG", lambda: write(frame, stream_name, format="avro"))
    write(frame, stream_name, format="avro", **NEW)
    assert "is Avro: omit" in refused("PRAVEGA-CONFIG", lambda: read(stream_name, format="json"))
    assert group in refused("PRAVEGA-SCHEMA", lambda: read(stream_name, registry_type="x.Y"))
    other = spark.sql("SELECT 'x' AS id")
    assert "register_schema" in refused("PRAVEGA-COLUMN-TYPE", lambda: write(other, stream_name))
    # The registry refuses schemas that the group's policy forbids.
    refused("PRAVEGA-REGISTRY-CONFLICT", lambda: write(other, stream_name, register_schema="true"))
    assert [row.id for row in read(stream_name).collect()] == [1]


def test_columns_that_can_never_be_read_are_said_before_the_first_event(spark, stream_name, group, read, write):
    nested = "SELECT id, NAMED_STRUCT('x', CAST(id AS INT), 'y', 'a') AS point FROM RANGE(5)"
    write(spark.sql(nested), stream_name, format="avro", registry_type="shop.Place", **NEW)
    # Records inside go by their fields: some of them, wider, with new ones between.
    found = read(stream_name, "id INT, point STRUCT<later: STRING, y: STRING, x: BIGINT>")
    assert [(row.id, *row.point) for row in rows_of(found)] == [(i, None, "a", i) for i in range(5)]
    for schema, place in (("id STRING", "$.id"), ("point STRUCT<x: BOOLEAN>", "$.point"), ("id ARRAY<INT>", "$.id")):
        with pytest.raises(PySparkException) as error:
            read(stream_name, schema).collect()
        line = one_line(error, "PRAVEGA-SCHEMA")
        assert "the columns do not fit the registered schema of 'shop.Place'" in line
        assert place in line


@pytest.mark.parametrize("name", ["avro", "json", "protobuf"])
def test_column_functions_with_a_registry(spark, registry, scope, schemas, name):
    place = {"registry": registry, "group": scope}
    order = struct("id", "item")
    frame = spark.sql("SELECT id, CONCAT('tea-', id) AS item FROM RANGE(20)")
    made = to_pravega(order, name, "id BIGINT, item STRING", registry_type="shop.Order", create_group=True,
                      register_schema="true", **place)  # fmt: skip
    events = frame.select(made.alias("event"))
    assert {bytes(row.event[:5]) for row in events.collect()} == {b"\x01\x00\x00\x00\x00"}
    # Nothing needs to be said of what is registered.
    again = frame.select(to_pravega(order, **place).alias("event"))
    assert sorted(again.collect()) == sorted(events.collect())
    found = events.select(from_pravega("event", **place).alias("order")).select("order.*")
    assert rows_of(found) == rows_of(frame)
    chosen = from_pravega("event", schema="id BIGINT, later STRING" if name == "avro" else "id BIGINT", **place)
    assert sorted(row.order.id for row in events.select(chosen.alias("order")).collect()) == list(range(20))
    bad = spark.sql("SELECT CAST('?' AS BINARY) AS event").select(from_pravega("event", mode="PERMISSIVE", **place))
    (row,) = bad.first()
    assert row._corrupt_record == b"?"
    assert "PRAVEGA-DESERIALIZATION" in row._corrupt_record_error


def test_column_functions_say_what_is_missing(registry, scope):
    for make in (from_pravega, to_pravega):
        with pytest.raises(ConfigError, match="'group' is missing"):
            make("event", registry=registry)
        with pytest.raises(ConfigError, match="option 'format' or 'registry' is missing"):
            make("event")
        with pytest.raises(ConfigError, match="unknown option 'start_stream_cut'"):
            make("event", registry=registry, group=scope, start_stream_cut="earliest")
        with pytest.raises(RegistryNotFoundError, match=scope):
            make("event", registry=registry, group=scope)
    with pytest.raises(SchemaError, match="does not have this schema to write with"):
        to_pravega("event", "avro", registry=registry, group=scope, create_group=True)
