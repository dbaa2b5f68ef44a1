"""Spark reads and upserts key-value tables that Java's client shares."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from pravega_connector.tables import Version
from pravega_connector.wire import StreamName, TableName
from tests.interop._java_tables import JavaTablePeer

COUNT = 600
SCHEMA = "key STRING, secondary_key STRING, n INT"


@pytest.fixture(scope="module")
def java(pravega: LocalPravega) -> Iterator[JavaTablePeer]:
    with JavaTablePeer(pravega.config.controller) as java:
        yield java


@pytest.mark.long
def test_spark_and_java_share_a_table(
    spark: SparkSession, java: JavaTablePeer, client: PravegaClient, pravega: LocalPravega, stream_name: StreamName
) -> None:
    """Each reads what the other has written, in all segments and with its versions."""
    client.create_scope(stream_name.scope)
    table = TableName(stream_name.scope, stream_name.stream)
    assert java.create(table, 5, 8, 2)
    options = {"controller": pravega.config.controller, "table": str(table), "format": "json"}
    by_java = {(b"java%04d" % n, b"%02d" % (n % 100)): b'{"n": %d}' % n for n in range(20)}
    versions = {key: java.put(table, [(key, value)]) for key, value in by_java.items()}
    found = spark.read.format("pravega").options(**options).schema(f"{SCHEMA}, version STRING").load()
    assert found.rdd.getNumPartitions() == 5
    rows = {(row.key.encode(), row.secondary_key.encode()): row for row in found.collect()}
    assert {key: row.n for key, row in rows.items()} == {key: int(key[0][4:]) for key in by_java}
    assert {key: [Version.parse(row.version)] for key, row in rows.items()} == versions

    written = spark.range(COUNT).selectExpr(
        "format_string('spark%03d', id) AS key",
        "format_string('%02d', id % 100) AS secondary_key",
        "CAST(id AS INT) AS n",
    )
    for more in ({}, {"order_column": "n"}):
        written.write.format("pravega").options(**options, **more).mode("append").save()
    expected = {(b"spark%03d" % n, b"%02d" % (n % 100)): b'{"n":%d}' % n for n in range(COUNT)}
    assert {entry.key: entry.value for entry in java.entries(table, b"spark000")} == expected
    some = [(b"spark007", b"07"), (b"spark599", b"99")]
    assert [entry and entry.value for entry in java.get(table, some)] == [b'{"n":7}', b'{"n":599}']

    # Java changes an entry that Spark has read: a write at its version is refused.
    conflict = found.where("key = 'spark007'").localCheckpoint()
    assert java.put(table, [((b"spark007", b"07"), b'{"n": 8}')])
    with pytest.raises(PySparkException, match=r"\[PRAVEGA-TABLE-VERSION\] the entry of key b'spark00707'"):
        conflict.write.format("pravega").options(**options).mode("append").save()
    removed = written.where("n <> 7").selectExpr("key", "secondary_key", "CAST(NULL AS INT) AS n")
    removed.write.format("pravega").options(**options).mode("append").save()
    assert [entry.value for entry in java.entries(table, b"spark000")] == [b'{"n": 8}']
