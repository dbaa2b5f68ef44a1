"""Warm Spark application that writes a stream into a Delta table.

It runs with the Python and PySpark that have a jar of Delta.
"""

from __future__ import annotations

import sys
import tempfile
import time
from typing import Any

from pyspark import __version__ as spark_version
from pyspark.sql import SparkSession

from benchmarks.peers._serve import serve
from pyspark_pravega import configure


class Application:
    """Session with two cores, like the smallest executor."""

    def __init__(self, jars: str) -> None:
        builder = SparkSession.builder.master("local[2]")
        for name, value in {
            "spark.jars": jars,
            "spark.driver.memory": "3g",
            "spark.log.level": "ERROR",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.enabled": "false",
        }.items():
            builder = builder.config(name, value)
        self._spark = configure(builder)

    def batch(self, options: dict[str, str], table: str) -> dict[str, Any]:
        """Time a batch read of the whole stream into a new table."""
        start = time.perf_counter()
        self._spark.read.format("pravega").options(**options).load().write.format("delta").save(table)
        return {"seconds": time.perf_counter() - start}

    def stream(self, options: dict[str, str], table: str) -> dict[str, Any]:
        """Time a query of all present events into a new table, from its start to its end."""
        with tempfile.TemporaryDirectory(prefix="benchmark-") as checkpoint:
            start = time.perf_counter()
            source = self._spark.readStream.format("pravega").options(**options, start_stream_cut="earliest").load()
            writer = source.writeStream.format("delta").option("checkpointLocation", checkpoint)
            writer.trigger(availableNow=True).start(table).awaitTermination()
            return {"seconds": time.perf_counter() - start}


if __name__ == "__main__":
    application = Application(sys.argv[1])
    serve(f"Spark {spark_version}", {"batch": application.batch, "stream": application.stream})
