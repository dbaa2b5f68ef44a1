"""Streaming queries of the JVM reader with a sink in ``foreachBatch``: also Spark 3.5 has both."""

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame

from pravega_connector.spark.dataframes import write
from pravega_connector.spark.functions import from_pravega
from pravega_connector.spark.versions import VERSION
from pravega_connector.wire import StreamName

pytestmark = pytest.mark.each_spark
Events = list[tuple[str, bytes]]


def test_a_stream_is_copied_once_through_a_failure_and_a_scaling(
    jvm_session, client, config, stream, events, checkpoint
):
    target = StreamName(stream.scope, stream.stream + "-copy")
    client.create_stream(target, 2)
    limits: dict[str, Any] = {"start_stream_cut": "earliest", "max_rows_per_trigger": 700}
    batches: list[int] = []

    def run(*, fails_in: int | None = None) -> None:
        def save(batch: DataFrame, number: int) -> None:
            batches.append(number)
            once = {"writer_mode": "exactly_once", "txn_app_id": "copy", "txn_version": number}
            write(batch.selectExpr("event"), str(target), controller=config.controller, **once)
            if number == fails_in:
                raise ValueError("after the commit")

        source = jvm_session.readStream.format("pravega").options(controller=config.controller, **limits)
        query = source.load(str(stream)).writeStream.foreachBatch(save).option("checkpointLocation", checkpoint)
        query.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(Exception, match="after the commit"):
        run(fails_in=1)
    run()
    assert batches[:3] == [0, 1, 1], "the batch is repeated"
    assert len(set(batches)) >= 3, "the batches are limited"
    client.scale_stream(stream, 5)
    client.write(stream, b"later", routing_key="k")
    run()
    assert Counter(bytes(event) for event in client.read(target)) == Counter(
        [*(event for _, event in events), b"later"]
    )


def test_events_of_a_query_are_decoded_by_the_function(jvm_session, client, config, stream_name, checkpoint):
    client.create_stream(stream_name, 2)
    with client.writer(stream_name, "json") as writer:
        for number in range(50):
            writer.write({"id": number}, routing_key=str(number))
    source = jvm_session.readStream.format("pravega").options(controller=config.controller, columns="event")
    events = source.option("start_stream_cut", "earliest").load(str(stream_name))
    found: list[int] = []
    query = events.select(from_pravega("event", "json", "id BIGINT").alias("row")).writeStream.foreachBatch(
        lambda batch, _: found.extend(row.row.id for row in batch.collect())
    )
    query.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    assert sorted(found) == list(range(50))


def test_events_of_a_query_are_decoded_in_the_jvm(jvm_session, client, config, stream_name, checkpoint):
    client.create_stream(stream_name, 2)
    with client.writer(stream_name, "json") as writer:
        for number in range(50):
            writer.write({"id": number}, routing_key=str(number))
    source = jvm_session.readStream.format("pravega").options(controller=config.controller, raw_reader="jvm")
    rows = source.options(format="json", start_stream_cut="earliest").schema("id BIGINT").load(str(stream_name))
    found: list[int] = []
    query = rows.writeStream.foreachBatch(lambda batch, _: found.extend(row.id for row in batch.collect()))
    query.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    assert sorted(found) == list(range(50))


@pytest.mark.skipif(VERSION >= (4, 0), reason="later versions have data sources in Python")
def test_other_reads_of_spark_3_5_name_the_page(jvm_session, config, stream):
    reader = jvm_session.read.format("pravega").options(controller=config.controller)
    with pytest.raises(Exception, match=r"\[PRAVEGA-UNSUPPORTED-MODE\] Spark 3.5 .*docs/spark/spark-3.5.md"):
        reader.options(format="java", java_type="java.lang.Long").load(str(stream)).collect()
    assert jvm_session.read.format("pravega").options(controller=config.controller).load(str(stream)).count() == 2002
