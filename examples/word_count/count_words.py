"""Count the words of a stream of lines over windows of 10 seconds, by the time in each line.

python -m examples.word_count.count_words --controller tcp://localhost:9090 --source demo/lines

The query prints the counts of the windows that each micro-batch has changed. With --target demo/counts, it writes each
window to that stream exactly once, after the watermark has passed the window. An event is {"start": …, "end": …,
"word": …, "count": …}, and its routing key is the word.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from pyspark_pravega import configure

LINES = "at TIMESTAMP, line STRING"
WINDOW = "10 seconds"


def word_counts(lines: DataFrame, lateness: str) -> DataFrame:
    """Return the number of occurrences of each word in each window. Later lines are dropped."""
    words = F.explode(F.split(F.lower("line"), r"[^\p{L}\p{N}']+")).alias("word")
    return (
        lines.withWatermark("at", lateness)
        .select("at", words)
        .where("word <> ''")
        .groupBy(F.window("at", WINDOW), "word")
        .count()
        .select("window.start", "window.end", "word", "count")
    )


def show(counts: DataFrame, batch: int) -> None:
    """Print the windows that a micro-batch has changed, limited to one screen."""
    print(f"batch {batch}", flush=True)
    counts.orderBy("start", F.desc("count"), "word").show(20, truncate=False)


def start(
    spark: SparkSession, controller: str, source: str, target: str | None, checkpoint: str, *, lateness: str, once: bool
) -> StreamingQuery:
    """Start the query. With ``once``, it ends when it has read all events that exist at its start."""
    lines = (
        spark.readStream.format("pravega")
        .option("controller", controller)
        .option("start_stream_cut", "earliest")
        .option("format", "json")
        .schema(LINES)
        .load(source)
    )
    counts = word_counts(lines, lateness)
    if target is None:
        writer: DataStreamWriter = counts.writeStream.outputMode("update").foreachBatch(show)
    else:
        writer = (
            counts.writeStream.format("pravega")
            .option("controller", controller)
            .option("path", target)
            .option("format", "json")
            .option("routing_key_field", "word")
            .option("allow_create_stream", "true")
            .outputMode("append")
        )
    if once:
        writer = writer.trigger(availableNow=True)
    return writer.option("checkpointLocation", checkpoint).start()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Count words over windows of 10 seconds")
    parser.add_argument("--controller", required=True)
    parser.add_argument("--source", required=True, help="scope/stream of the lines")
    parser.add_argument("--target", help="scope/stream for the counts; without it they are shown")
    parser.add_argument("--checkpoint", help="folder from which the next run goes on; needed with --target")
    parser.add_argument("--lateness", default="5 seconds", help="how long to wait for lines that come late")
    parser.add_argument("--once", action="store_true", help="end at the end of the stream")
    given = parser.parse_args(arguments)
    if given.target and not given.checkpoint:
        parser.error("--target needs --checkpoint: without it the next run would count everything again")
    spark = configure(
        SparkSession.builder.master("local[2]")
        .appName("word count")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "ERROR")
    )
    with tempfile.TemporaryDirectory(prefix="words-checkpoint-") as fresh:
        place = given.checkpoint or fresh
        query = start(
            spark, given.controller, given.source, given.target, place, lateness=given.lateness, once=given.once
        )
        query.awaitTermination()


if __name__ == "__main__":
    main()
