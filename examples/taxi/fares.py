"""Copy the fares of taxi trips with a Spark query, which continues while the stream splits and merges.

python -m examples.taxi.fares --source taxi/trips --target taxi/numbered --checkpoint FOLDER

Each trip is written to the target exactly once, with its zone as the routing key. The trips of a zone stay in order.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from pyspark_pravega import configure

TRIP = "number BIGINT, zone INT, miles DOUBLE, fare DOUBLE"


def start(
    spark: SparkSession, controller: str, source: str, target: str, checkpoint: str, *, once: bool = False
) -> StreamingQuery:
    """Start the query. With ``once``, it ends when it has read all events that exist at its start."""
    trips = (
        spark.readStream.format("pravega")
        .option("controller", controller)
        .option("start_stream_cut", "earliest")
        .option("format", "json")
        .schema(TRIP)
        .load(source)
    )
    writer = (
        trips.select(F.col("zone").cast("string").alias("zone"), "number", "fare")
        .writeStream.format("pravega")
        .option("controller", controller)
        .option("path", target)
        .option("format", "json")
        .option("routing_key_field", "zone")
        .option("allow_create_stream", "true")
    )
    if once:
        writer = writer.trigger(availableNow=True)
    return writer.option("checkpointLocation", checkpoint).start()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Copy the fares of taxi trips, exactly once")
    parser.add_argument("--controller", default="tcp://localhost:9090")
    parser.add_argument("--source", required=True, help="scope/stream of the trips")
    parser.add_argument("--target", required=True, help="scope/stream of the fares")
    parser.add_argument("--checkpoint", required=True, help="folder from which the next run goes on")
    parser.add_argument("--once", action="store_true", help="end at the end of the stream")
    given = parser.parse_args(arguments)
    builder = SparkSession.builder.master("local[2]").appName("fares").config("spark.ui.enabled", "false")
    spark = configure(builder)
    start(spark, given.controller, given.source, given.target, given.checkpoint, once=given.once).awaitTermination()


if __name__ == "__main__":
    main()
