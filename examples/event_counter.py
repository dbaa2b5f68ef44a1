"""Count the events of a stream of Java strings by their text, with a Spark query.

python -m examples.event_counter --stream demo/words --checkpoint FOLDER

The query prints the counts that each micro-batch has changed. Java writes such events with ``JavaSerializer<String>``.
The counts are the query's state in the checkpoint. If you kill the query, restart it with the same folder, and it
continues to count.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.sql import DataFrame, SparkSession

from pyspark_pravega import configure


def show(counts: DataFrame, batch: int) -> None:
    """Print the counts that a micro-batch has changed. A batch repeated after a crash prints them again."""
    for row in counts.orderBy("value").collect():
        print(f"batch {batch}: {row['value']} {row['count']}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Count the events of a stream by their text")
    parser.add_argument("--controller", default="tcp://localhost:9090")
    parser.add_argument("--stream", required=True, help="scope/stream of Java strings")
    parser.add_argument("--checkpoint", required=True, help="folder with the counts, from which the next run goes on")
    parser.add_argument("--once", action="store_true", help="end at the end of the stream")
    given = parser.parse_args(arguments)
    spark = configure(
        SparkSession.builder.master("local[2]")
        .appName("event counter")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "ERROR")
    )
    events = (
        spark.readStream.format("pravega")
        .option("controller", given.controller)
        .option("start_stream_cut", "earliest")
        .option("format", "java")
        .option("java_type", "java.lang.String")
        .load(given.stream)
    )
    writer = events.groupBy("value").count().writeStream.outputMode("update").foreachBatch(show)
    if given.once:
        writer = writer.trigger(availableNow=True)
    writer.option("checkpointLocation", given.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
