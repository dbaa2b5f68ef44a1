"""One warm Spark application that reads and writes with a connector named ``pravega``: ours, or the Scala one in a jar.

It runs under either side's Python and PySpark, so it imports nothing else.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from pyspark import __version__ as spark_version
from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import expr

from benchmarks.peers._serve import serve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_KEY_AND_EVENT = (
    "CAST(value % 64 AS STRING) AS routing_key",
    "CAST(rpad(CAST(value AS STRING), 100, 'y') AS BINARY) AS event",
)
_WARM_BATCHES = 5  # the first ones start processes and import


class Application:
    """A session with two cores, as on the smallest executor, and the runs that are timed in it."""

    def __init__(self, jar: str | None) -> None:
        builder = (
            SparkSession.builder.master("local[2]")
            .appName("benchmark")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "3g")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.log.level", "ERROR")
        )
        if jar is not None:
            builder = builder.config("spark.jars", jar)
        self.spark = builder.getOrCreate()

    def read(self, options: dict[str, str], events: int) -> dict[str, Any]:
        """Time a batch read of the whole stream into Spark's own empty sink."""
        start = time.perf_counter()
        self._stream(options).write.format("noop").mode("overwrite").save()
        return {"seconds": time.perf_counter() - start, "events": events}

    def check(self, options: dict[str, str]) -> dict[str, Any]:
        """Count what is in the stream; not timed."""
        row = self._stream(options).selectExpr("count(*) c", "sum(length(event)) b").first()
        assert row is not None
        return {"events": row["c"], "bytes": row["b"]}

    def write(self, options: dict[str, str], parquet: str, events: int) -> dict[str, Any]:
        """Time a batch write of a Parquet folder with the columns ``event`` and ``routing_key``."""
        frame = self.spark.read.parquet(parquet)
        start = time.perf_counter()
        frame.write.format("pravega").options(**options).mode("append").save()
        return {"seconds": time.perf_counter() - start, "events": events}

    def micro_batches(self, options: dict[str, str], rows: int, batches: int) -> dict[str, Any]:
        """Run a query of small batches into a stream; how long Spark says that each of the last ones took."""
        source = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
        frame = source.option("numPartitions", 2).load().selectExpr(*_KEY_AND_EVENT)
        with tempfile.TemporaryDirectory(prefix="benchmark-") as checkpoint:
            writer = frame.writeStream.format("pravega").options(**options, checkpointLocation=checkpoint)
            query = writer.start()
            try:
                while query.isActive and (query.lastProgress or {"batchId": -1})["batchId"] < _WARM_BATCHES + batches:
                    time.sleep(0.05)
            finally:
                query.stop()
            if error := query.exception():
                raise error
            found = [each for each in query.recentProgress if each["batchId"] >= _WARM_BATCHES][:batches]
        took = [each["durationMs"]["triggerExecution"] for each in found]
        return {"seconds": sum(took) / 1000, "events": rows * len(took), "batch_ms": took}

    def read_avro(self, options: dict[str, str], schema: str | None, events: int) -> dict[str, Any]:
        """Time a batch read of a registry's Avro events to typed columns."""
        start = time.perf_counter()
        self._typed(options, schema).write.format("noop").mode("overwrite").save()
        return {"seconds": time.perf_counter() - start, "events": events}

    def check_avro(self, options: dict[str, str], schema: str | None) -> dict[str, Any]:
        """Count the rows and add up a column; not timed."""
        row = self._typed(options, schema).selectExpr("count(at) c", "sum(id) s").first()
        assert row is not None
        return {"events": row["c"], "sum": row["s"]}

    def _typed(self, options: dict[str, str], schema: str | None) -> DataFrame:
        frame = self._stream(options)
        if schema is None:
            return frame
        # The header has five bytes; the schema cannot be found by it there.
        events = frame.select(from_avro(expr("substring(event, 6)"), schema).alias("value"))
        return events.select("value.*")

    def _stream(self, options: dict[str, str]) -> DataFrame:
        return self.spark.read.format("pravega").options(**options).load()


if __name__ == "__main__":
    # This interpreter and its PySpark: each side has its own, and workers would take the python3 of PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.pop("SPARK_HOME", None)
    application = Application(sys.argv[1] if len(sys.argv) > 1 else None)
    serve(
        f"spark {spark_version}",
        {
            "read": application.read,
            "check": application.check,
            "write": application.write,
            "micro_batches": application.micro_batches,
            "read_avro": application.read_avro,
            "check_avro": application.check_avro,
        },
    )
