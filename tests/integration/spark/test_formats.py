"""Typed columns: Avro, JSON, text; written by plain programs and read by Spark, and the other way round."""

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, Row

from pravega_connector.wire import StreamName
from pravega_serde import serializer_for
from tests.integration.spark._cases import COUNT

Load = Callable[..., DataFrame]

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Reading",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": "string"},
            {"name": "score", "type": ["null", "double"], "default": None},
            {"name": "when", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {
                "name": "inner",
                "type": {"type": "record", "name": "Inner", "fields": [{"name": "ok", "type": "boolean"}]},
            },
        ],
    }
)


def reading(i: int) -> dict[str, object]:
    return {
        "id": i,
        "name": f"имя-{i}",
        "score": None if i % 3 == 0 else i / 7,
        "when": dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=i),
        "day": dt.date(2026, 1, 1) + dt.timedelta(days=i % 300),
        "price": Decimal(i).scaleb(-2),
        "tags": [str(i)] * (i % 3),
        "inner": {"ok": i % 2 == 0},
    }


def as_row(value: dict[str, object]) -> Row:
    naive = value["when"].replace(tzinfo=None)  # Spark's Row holds local times; the session is in UTC
    return Row(**(value | {"when": naive, "inner": Row(**value["inner"])}))


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch):
    """Spark turns timestamps into the process's local time when it collects them."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def test_avro_from_a_plain_program(load, client, stream_name):
    client.create_stream(stream_name, 2)
    serializer = serializer_for("avro", schema=SCHEMA)
    with client.writer(stream_name, serializer) as writer:
        for i in range(500):
            writer.write(reading(i), routing_key=str(i))
    frame = load(stream_name, format="avro", avro_schema=SCHEMA)
    assert [f.dataType.simpleString() for f in frame.schema] == [
        "bigint", "string", "double", "timestamp", "date", "decimal(10,2)", "array<string>", "struct<ok:boolean>",
    ]  # fmt: skip
    assert sorted(frame.collect(), key=lambda row: row.id) == [as_row(reading(i)) for i in range(500)]


def test_avro_to_a_plain_program(spark, load, config, client, stream_name):
    client.create_stream(stream_name, 2)
    copy = StreamName(stream_name.scope, "copy")
    client.create_stream(copy, 3)
    serializer = serializer_for("avro", schema=SCHEMA)
    with client.writer(stream_name, serializer) as writer:
        for i in range(300):
            writer.write(reading(i), routing_key=str(i))
    frame = load(stream_name, format="avro", avro_schema=SCHEMA)
    options = {"format": "avro", "avro_schema": SCHEMA, "routing_key_field": "name"}
    frame.write.format("pravega").option("controller", config.controller).options(**options).mode("append").save(
        str(copy)
    )
    assert sorted(client.read(copy, serializer), key=lambda v: v["id"]) == [reading(i) for i in range(300)]
    assert sorted(client.read(copy)) == sorted(client.read(stream_name)), "byte for byte what the plain program wrote"


@pytest.mark.parametrize("fmt", ["json", "cbor"])
def test_a_variant_is_the_json_value(spark, config, client, stream_name, fmt):
    client.create_stream(stream_name)
    text = '{"a":9007199254740993,"b":[1.25,null,"é"],"c":12345678901234567890123456789012345678}'
    query = f"""SELECT 1 k, parse_json('{text}') v, array(parse_json('[]'), NULL) many
        UNION ALL SELECT 2, NULL, NULL UNION ALL SELECT 3, parse_json('null'), array()"""
    writer = spark.sql(query).coalesce(1).write.format("pravega").option("controller", config.controller)
    writer.option("format", fmt).mode("append").save(str(stream_name))
    if fmt == "json":
        assert f'"v":{text},"many":[[],null]'.encode() in next(iter(client.read(stream_name)))
    value = json.loads(text, parse_float=float)
    assert sorted(client.read(stream_name, fmt), key=lambda event: event["k"]) == [
        {"k": 1, "v": value, "many": [[], None]},
        {"k": 2, "v": None, "many": None},
        {"k": 3, "v": None, "many": []},
    ]
    reader = spark.read.format("pravega").options(controller=config.controller, format=fmt)
    frame = reader.schema("k INT, v VARIANT, many ARRAY<VARIANT>").load(str(stream_name)).orderBy("k")
    assert [tuple(row) for row in frame.selectExpr("k", "to_json(v)", "to_json(get(many, 0))").collect()] == [
        (1, text, "[]"),
        (2, None, None),
        (3, None, None),
    ]
    assert frame.selectExpr("variant_get(v, '$.a', 'bigint') a").first().a == 9007199254740993


def test_metadata_next_to_decoded_columns(load, client, stream_name):
    client.create_stream(stream_name)
    with client.writer(stream_name, serializer_for("string")) as writer:
        for text in ("a", "bc", "ключ"):
            writer.write(text)
    frame = load(stream_name, format="string", columns="offset,event")
    assert frame.columns == ["value", "offset", "event"]
    rows = [(r.value, r.offset, bytes(r.event)) for r in frame.collect()]
    assert rows == [("a", 0, b"a"), ("bc", 9, b"bc"), ("ключ", 19, "ключ".encode())]


def test_json_both_ways(spark, config, client, stream_name):
    client.create_stream(stream_name, 2)
    ddl = "id BIGINT, name STRING, score DOUBLE, tags ARRAY<STRING>, inner STRUCT<ok: BOOLEAN>"
    values = [
        {k: v for k, v in reading(i).items() if k in ("id", "name", "score", "tags", "inner")} for i in range(200)
    ]
    with client.writer(stream_name, serializer_for("json")) as writer:
        for value in values:
            writer.write(value, routing_key=value["name"])
    reader = spark.read.format("pravega").option("controller", config.controller).option("format", "json")
    frame = reader.schema(ddl).load(str(stream_name))
    rows = sorted((row.asDict(recursive=True) for row in frame.collect()), key=lambda v: v["id"])
    assert rows == values
    writer = frame.write.format("pravega").option("controller", config.controller).option("format", "json")
    writer.mode("append").save(str(stream_name))
    events = sorted(client.read(stream_name))
    assert len(events) == 400
    assert events[::2] == events[1::2], "Spark wrote the same bytes as the plain program"


@pytest.mark.parametrize(
    ("fmt", "query", "events"),
    [
        ({"format": "string"}, "SELECT 'ключ' AS value", ["ключ".encode()]),
        ({"format": "bytes"}, "SELECT CAST('x' AS BINARY) AS value", [b"x"]),
        ({"format": "avro", "avro_schema": '"string"'}, "SELECT 'abc' AS value", [b"\x06abc"]),
        ({"format": "json"}, "SELECT 'abc' AS value", [b'{"value":"abc"}']),
        ({"format": "cbor"}, "SELECT 'abc' AS value", [b"\xa1\x65value\x63abc"]),
        ({"format": "string"}, "SELECT 'v' AS value, 'k' AS routing_key", [b"v"]),
        ({"format": "java"}, "SELECT 'v' AS value", [b"\xac\xed\x00\x05t\x00\x01v"]),
    ],
)
def test_one_column(spark, config, client, stream_name, fmt, query, events):
    client.create_stream(stream_name)
    writer = spark.sql(query).write.format("pravega").option("controller", config.controller).options(**fmt)
    writer.mode("append").save(str(stream_name))
    assert list(client.read(stream_name)) == events


def test_typed_sql(spark, config, client, stream_name, all_cases):
    """A table whose columns its options tell, and a view whose columns are named."""
    client.create_stream(stream_name)
    case = all_cases["java"]
    given = {"controller": config.controller, "stream": str(stream_name), "routing_key_field": "name"}
    options = ", ".join(f"{key} = '{value}'" for key, value in {**given, **case.options}.items())
    table = f"t_{stream_name.stream}"
    spark.sql(f"CREATE TABLE {table} USING pravega OPTIONS ({options})")
    try:
        # The query has the names and types of the table: what the table is comes through all the same.
        spark.sql(f"INSERT INTO {table} {case.query}")
        query = "SELECT COUNT(*), COUNT(name), SUM(price) FROM "
        assert spark.sql(query + table).first() == spark.sql(f"{query} ({case.query})").first()
    finally:
        spark.sql(f"DROP TABLE {table}")
    spark.sql(
        f"CREATE TEMPORARY VIEW v_{table} (name STRING, id BIGINT) USING pravega OPTIONS "
        f"(controller '{config.controller}', stream '{stream_name}', format 'java')"
    )
    assert spark.sql(f"SELECT SUM(id) FROM v_{table}").first()[0] == sum(range(COUNT))
    spark.sql(f"DROP VIEW v_{table}")
