"""An exactly-once query that copies a stream to another one until standard input ends. ``query SPEC.json``.

A query that fails is noted and started again on its checkpoint, as an operator would.
"""

from __future__ import annotations

import json
import os
import select
import sys
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from pravega_connector.spark.jvm.session import use_jvm_reader
from tests.faults.cluster.timeline import Notes
from tests.faults.sink.application import session

_SETTINGS: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.streaming.minBatchesToRetain": "10",
}


def start(spark: SparkSession, query: dict[str, Any], spec: dict[str, Any]) -> StreamingQuery:
    # The environment has the controller and the credentials.
    events = spark.readStream.format("pravega").options(start_stream_cut="earliest", columns="event")
    events = events.option("raw_reader", spec["raw_reader"])
    key = "substring_index(CAST(event AS STRING), '|', 1)"
    rows = events.load(query["source"]).selectExpr("event", f"{key} AS routing_key")
    writer = rows.writeStream.format("pravega").options(**spec["sink"]).queryName(query["name"])
    writer = writer.option("checkpointLocation", query["checkpoint"])
    return writer.trigger(processingTime=spec.get("trigger", "2 seconds")).start(query["target"])


class Watched:
    """One query, kept running; its batches and its errors are noted."""

    def __init__(self, spark: SparkSession, query: dict[str, Any], spec: dict[str, Any], notes: Notes) -> None:
        self._start = lambda: start(spark, query, spec)
        self._name, self._notes = query["name"], notes
        self._running: StreamingQuery | None = None
        self._last = -1

    def look(self) -> None:
        """Note new batches, and start the query again if it has failed."""
        try:
            if self._running is None:
                self._running = self._start()
            elif (error := self._running.exception()) is not None:
                self._running = None
                raise error
            elif (progress := self._running.lastProgress) is not None and progress["batchId"] != self._last:
                self._last = progress["batchId"]
                if progress["numInputRows"]:
                    self._notes.add(self._name, "done", batch=self._last, rows=progress["numInputRows"])
        except Exception as error:
            self._notes.error(self._name, _message(error))

    def stop(self) -> None:
        if self._running is not None:
            self._running.stop()


def _message(error: Exception) -> str:
    """Return the line of Spark's error that a user needs; the rest goes to the log."""
    print(error, flush=True)
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("\tat ")]
    named = [line for line in lines if "[PRAVEGA-" in line] or [line for line in lines if "Caused by" in line]
    return (named or lines or [repr(error)])[-1]


def main(file: str) -> None:
    spec = json.loads(Path(file).read_text())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session({"master": "local[2]", "folder": spec["folder"], "conf": _SETTINGS})
    if spec["raw_reader"] == "jvm" and not use_jvm_reader(spark):
        raise RuntimeError("the JVM reader is not possible here: see the log")
    notes = Notes(Path(spec["notes"]))
    # In one thread: Spark finds sources in the thread that has created the session.
    queries = [Watched(spark, query, spec, notes) for query in spec["queries"]]
    while not select.select([sys.stdin], [], [], 0.2)[0]:
        for query in queries:
            query.look()
    for query in queries:
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
