"""An exactly-once query that copies a stream to another one until standard input ends. ``_query SPEC.json``.

A query that fails is noted and started again on its checkpoint, as an operator would.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from tests.faults.cluster._notes import Notes

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.streaming.minBatchesToRetain": "10",
}


def start(spark: SparkSession, query: dict[str, Any], spec: dict[str, Any]) -> StreamingQuery:
    # The controller and the credentials are those of the environment.
    events = spark.readStream.format("pravega").options(start_stream_cut="earliest", columns="event")
    key = "substring_index(CAST(event AS STRING), '|', 1)"
    rows = events.load(query["source"]).selectExpr("event", f"{key} AS routing_key")
    writer = rows.writeStream.format("pravega").options(**spec["sink"]).queryName(query["name"])
    writer = writer.option("checkpointLocation", query["checkpoint"])
    return writer.trigger(processingTime=spec.get("trigger", "500 milliseconds")).start(query["target"])


def run(spark: SparkSession, query: dict[str, Any], spec: dict[str, Any], stop: threading.Event, notes: Notes) -> None:
    """Keep one query running, and note its batches and its errors."""
    name = query["name"]
    while not stop.is_set():
        try:
            _watch(start(spark, query, spec), name, stop, notes)
        except Exception as error:  # noqa: BLE001 - what the query says to its user
            notes.error(name, _message(error))
            stop.wait(1.0)


def _watch(running: StreamingQuery, name: str, stop: threading.Event, notes: Notes) -> None:
    last = -1
    while not stop.is_set() and running.isActive:
        progress = running.lastProgress
        if progress is not None and progress["numInputRows"] and progress["batchId"] != last:
            last = progress["batchId"]
            notes.add(name, "done", batch=last, rows=progress["numInputRows"])
        time.sleep(0.1)
    if (error := running.exception()) is not None:
        raise error
    running.stop()


def _message(error: Exception) -> str:
    """The line that a user looks for in what Spark says."""
    lines = [line for line in str(error).splitlines() if "[PRAVEGA-" in line]
    return (lines or str(error).splitlines() or [repr(error)])[0]


def main(file: str) -> None:
    spec = json.loads(Path(file).read_text())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", spec["folder"] + "/warehouse")
    for setting in _SETTINGS.items():
        builder = builder.config(*setting)
    spark, stop, notes = builder.getOrCreate(), threading.Event(), Notes(Path(spec["notes"]))
    threads = [threading.Thread(target=run, args=(spark, query, spec, stop, notes)) for query in spec["queries"]]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join(60.0)
    os._exit(any(thread.is_alive() for thread in threads))


if __name__ == "__main__":
    main(sys.argv[1])
