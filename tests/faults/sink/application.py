"""The Spark application under test: copies a stream to another one, exactly once. ``application.py SPEC.json``.

Its exit code is 0 if the query succeeded, and 1 if it failed; the error is in ``answer``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from pravega_connector.spark.functions import from_pravega
from pravega_connector.spark.jvm.session import use_jvm_reader

# The number of an event, without the transaction id that the fault module appends.
NUMBER = "substring_index(CAST(event AS STRING), '|', 1)"


def session(spec: dict[str, Any]) -> SparkSession:
    builder = SparkSession.builder.master(spec["master"])
    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.driver.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": spec["folder"] + "/warehouse",
        # Several batches for each task, so that something can happen between them.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
        # Short-lived: compiling well does not pay.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    for name, value in (settings | spec.get("conf", {})).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def frame(spark: SparkSession, spec: dict[str, Any]) -> DataFrame:
    options = {"controller": spec["controller"], "start_stream_cut": "earliest", "columns": "event"}
    options["max_rows_per_trigger"] = str(spec["rows_per_batch"])
    options["min_partitions"] = "3"  # the few rows of a batch would share a task, and faults are for one of several
    options |= spec.get("client_options", {})
    events = spark.readStream.format("pravega").options(**options).load(spec["source"])
    if spec.get("reads_target"):
        events = decrypted(events, spec)
    # Leading zeros keep the number, and make an event that no replay repeats.
    zeros = "repeat('0', CAST(rand() * 1000 AS INT))" if spec.get("random") else "''"
    columns = [
        f"{zeros} || {NUMBER} AS event",
        f"CAST(CAST({NUMBER} AS INT) % {spec['keys']} AS STRING) AS routing_key",
    ]
    if targets := spec.get("targets"):
        names = ", ".join(f"'{target}'" for target in targets)
        columns.append(f"element_at(array({names}), CAST({NUMBER} AS INT) % {len(targets)} + 1) AS target_stream")
    if spec.get("encryption"):
        columns.append("'plain' AS kind")  # several columns are a record
    events = events.selectExpr(*columns)
    if spec.get("pause_ms") or spec["raw_writer"] == "jvm":
        # A task must last long enough to be killed in the middle.
        events = events.where(f"reflect('java.lang.Thread', 'sleep', {spec.get('pause_ms', 5)}L) <> 'awake'")
    return events.repartition(spec["repartition"], "routing_key") if spec.get("repartition") else events


def decrypted(events: DataFrame, spec: dict[str, Any]) -> DataFrame:
    """Return the numbers in events that an earlier query wrote."""
    if not (options := spec["encryption"]):
        return events
    given = {name: value for name, value in options.items() if name != "format"}
    event = f"CAST({NUMBER} AS BINARY)"
    return events.select(from_pravega(expr(event), options["format"], "event STRING", **given)["event"].alias("event"))


def start(spark: SparkSession, spec: dict[str, Any]) -> Any:
    lease = round(spec["lease"] * 1000)
    options = {"controller": spec["controller"], "transaction_timeout_ms": str(lease)}
    options["commit_timeout_ms"] = str(lease * 9 // 10)
    options |= spec.get("client_options", {}) | spec.get("encryption", {}) | spec.get("sink_options", {})
    if not spec.get("encryption") and not spec.get("targets"):
        options["raw_writer"] = spec["raw_writer"]
    writer = frame(spark, spec).writeStream.option("checkpointLocation", spec["checkpoint"]).trigger(availableNow=True)
    if spec.get("targets"):
        return writer.format("pravega").options(**options).start()
    if not spec.get("foreach_batch"):
        return writer.format("pravega").options(**options).start(spec["target"])

    def write(batch: DataFrame, number: int) -> None:
        ids = {"txn_app_id": "copy", "txn_version": str(number)}
        batch.write.format("pravega").mode("append").options(**options, **ids).save(spec["target"])

    return writer.foreachBatch(write).start()


def copy(spark: SparkSession, spec: dict[str, Any]) -> None:
    """Run the queries until they end; with ``repeated``, run them again until they have no rows.

    Spark 4.0 and 4.1 read one batch in each run.
    """
    has_rows = True
    while has_rows:
        queries = [start(spark, spec | other) for other in spec.get("queries", [{}])]
        for query in queries:
            query.awaitTermination()
        progress = [query.lastProgress for query in queries]
        has_rows = bool(spec.get("repeated")) and any(each and each["numInputRows"] for each in progress)


def _module_file(_: int) -> str:
    import pravega_connector

    return str(pravega_connector.__file__)


def module_files(spark: SparkSession) -> list[str]:
    """Return the files of this project that the executors have loaded."""
    return sorted(set(spark.sparkContext.parallelize(range(4), 4).map(_module_file).collect()))


def main(file: str) -> int:
    spec = json.loads(Path(file).read_text())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = session(spec)
    answer: dict[str, Any] = {"error": "", "spark": spark.version}
    try:
        by_jvm = "jvm" in (spec.get("client_options", {}).get("raw_reader"), spec["raw_writer"])
        if by_jvm and not use_jvm_reader(spark):
            raise RuntimeError("the JVM reader is not possible here")
        copy(spark, spec)
        if spec.get("tell_modules"):
            answer["modules"] = module_files(spark)
    except Exception as error:
        answer["error"] = str(error)
    Path(spec["answer"]).write_text(json.dumps(answer))
    spark.stop()
    return 1 if answer["error"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
