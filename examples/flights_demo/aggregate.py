"""Spark job that reads flights as they arrive, and writes the sums of the delays to a second stream.

The sums are per airport and hour. Each micro-batch writes the present sums under the routing key origin|hour. Pravega
keeps the order of each key, so the last event of a key is its final sum.

python -m examples.flights_demo.aggregate --controller tcp://localhost:9090 --source demo/flights --target demo/delays

A line on standard input ends the job after it has processed all events written until then.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
from typing import Any

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from examples.flights_demo.flights import DELAY_SCHEMA, FLIGHT_SCHEMA
from pyspark_pravega import configure


def delays(flights: DataFrame) -> DataFrame:
    """Return the sums per airport and hour, with their routing key."""
    return (
        flights.groupBy("origin", F.col("time_hour").alias("hour"))
        .agg(
            F.count("*").alias("flights"),
            F.sum("dep_delay").alias("dep_delay"),
            F.sum("arr_delay").alias("arr_delay"),
        )
        .withColumn("routing_key", F.concat_ws("|", "origin", "hour"))
    )


def segments_of(offset: Any) -> int:
    """Return the number of segments in the query's position."""
    value = json.loads(offset) if isinstance(offset, str) else offset
    return sum(len(positions) for positions in value["streams"].values())


def report(progress: Any, told: set[int]) -> int:
    """Print the new micro-batches. Return the number of rows of all micro-batches."""
    for batch in progress:
        if batch["batchId"] not in told and batch["numInputRows"]:
            told.add(batch["batchId"])
            seconds = batch["durationMs"]["triggerExecution"] / 1000
            print(
                f"batch {batch['batchId']}: {batch['numInputRows']:,} flights in {seconds:.1f} s, "
                f"now in {segments_of(batch['sources'][0]['endOffset'])} segments",
                flush=True,
            )
    return sum(batch["numInputRows"] for batch in progress)


def main() -> None:
    parser = argparse.ArgumentParser(description="Sum delays per airport and hour")
    parser.add_argument("--controller", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    arguments = parser.parse_args()
    finish = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), finish.set()), daemon=True).start()
    spark = configure(
        SparkSession.builder.master("local[2]")
        .appName("flights")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
    )
    flights = (
        spark.readStream.format("pravega")
        .option("controller", arguments.controller)
        .option("start_stream_cut", "earliest")
        .option("format", "avro")
        .option("avro_schema", str(FLIGHT_SCHEMA))
        .load(arguments.source)
    )
    with tempfile.TemporaryDirectory(prefix="flights-checkpoint-") as checkpoint:
        query = (
            delays(flights)
            .writeStream.format("pravega")
            .option("controller", arguments.controller)
            .option("path", arguments.target)
            .option("format", "avro")
            .option("avro_schema", str(DELAY_SCHEMA))
            .option("checkpointLocation", checkpoint)
            .outputMode("complete")
            .start()
        )
        print("query started", flush=True)
        told: set[int] = set()
        while not finish.wait(0.5) and query.isActive:
            report(query.recentProgress, told)
        query.processAllAvailable()
        rows = report(query.recentProgress, told)
        query.stop()
        print(f"finished after {rows:,} flights", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
