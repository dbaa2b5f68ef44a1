"""Spark application: copies a stream to another one in one batch, with the connector that Spark finds.

``application.py SPEC.json``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def slowed(frame: DataFrame, seconds: float) -> DataFrame:
    """Let the second of two tasks take `seconds` longer than the first."""
    slept = []

    def wait(event: str, partition: int) -> str:
        if partition == 1 and not slept:
            slept.append(True)
            time.sleep(seconds)
        return event

    return frame.withColumn("event", F.udf(wait)(F.col("event"), F.spark_partition_id()))


def main(file: str) -> int:
    spec: dict[str, Any] = json.loads(Path(file).read_text())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in spec["conf"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    scope, _, source = spec["source"].partition("/")
    target = spec["target"].partition("/")[2]
    server = {"controller": spec["controller"], "scope": scope}
    read = spark.readStream.format("pravega").options(**server, stream=source, start_stream_cut="earliest")
    text = "CAST(event AS STRING)"
    rows = read.load().selectExpr(f"{text} AS event", f"{text} AS routing_key").repartition(2)
    if spec["slow_s"]:
        rows = slowed(rows, spec["slow_s"])
    writer = rows.writeStream.format("pravega").trigger(availableNow=True)
    writer = writer.options(**server, stream=target, checkpointLocation=spec["checkpoint"], **spec["options"])
    try:
        writer.start().awaitTermination()
    except Exception as error:
        print(f"FAILED {str(error)[:300]!r}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
