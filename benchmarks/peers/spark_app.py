"""Warm Spark application that reads and writes with one connector: ours (its format, or its functions), or others.

The others are the Scala connector in a jar, and one that does nothing. The application runs with the Python and PySpark
of each side, so it imports nothing else, except for ``format("nothing")`` and our functions.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import __version__ as spark_version
from pyspark.sql import Column, SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, expr, from_json
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from benchmarks.peers._serve import serve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

_KEY_AND_EVENT = (
    "CAST(value % 64 AS STRING) AS routing_key",
    "CAST(rpad(CAST(value AS STRING), 100, 'y') AS BINARY) AS event",
)
_WARM_BATCHES = 5  # the first ones start processes and import modules


class Application:
    """Session with two cores, like the smallest executor, and its timed runs."""

    def __init__(self, connector: str, memory: str, jars: str | None, configure: bool) -> None:
        self._connector = connector
        builder = (
            SparkSession.builder.master("local[2]")
            .appName("benchmark")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.memory", memory)
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.log.level", "ERROR")
            .config("spark.sql.session.timeZone", "UTC")
        )
        if jars is not None:
            builder = builder.config("spark.jars", jars)
        if connector == "nothing":
            from benchmarks.peers.nothing import NothingDataSource  # some sides' PySpark lacks what it imports

            # As configure sets them.
            builder = builder.config("spark.python.unix.domain.socket.enabled", "true")
            builder = builder.config("spark.sql.execution.pandas.udf.buffer.size", str(1 << 20))
            self.spark = builder.getOrCreate()
            self.spark.dataSource.register(NothingDataSource)
        elif configure:
            from pyspark_pravega.session import configure as configured  # as above

            self.spark = configured(builder)
        else:
            self.spark = builder.getOrCreate()
        self._query: StreamingQuery | None = None
        self._checkpoint: tempfile.TemporaryDirectory[str] | None = None
        self._jars: tempfile.TemporaryDirectory[str] | None = None

    # ---- reads -------------------------------------------------------------------------------------------------------

    def read(
        self,
        options: dict[str, str],
        events: int,
        decode: dict[str, Any] | None = None,
        columns: str | None = None,
        only: list[str] | None = None,
        count: bool = False,
    ) -> dict[str, Any]:
        """Time a batch read of the whole stream, or of these columns, to Spark's empty sink, or its ``count()``."""
        start = time.perf_counter()
        frame = self._frame(options, decode, columns)
        if only is not None:
            frame = frame.select(*only)
        if count:
            events = frame.count()
        else:
            frame.write.format("noop").mode("overwrite").save()
        return {"seconds": time.perf_counter() - start, "events": events}

    def available_now(self, options: dict[str, str], events: int) -> dict[str, Any]:
        """Time a query of all present events, from its start to its end, to Spark's empty sink."""
        with tempfile.TemporaryDirectory(prefix="benchmark-") as checkpoint:
            source = self.spark.readStream.format(self._connector).options(**options, start_stream_cut="earliest")
            start = time.perf_counter()
            writer = source.load().writeStream.format("noop").option("checkpointLocation", checkpoint)
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            seconds = time.perf_counter() - start
            found = sum(each["numInputRows"] for each in query.recentProgress)
        if found != events:
            raise AssertionError(f"the query had {found} rows of {events}")
        return {"seconds": seconds, "events": events}

    def schema(self, options: dict[str, str], columns: str | None = None) -> dict[str, Any]:
        """Return the columns of a read, as Spark's JSON. Not timed."""
        return {"schema": self._frame(options, columns=columns).schema.jsonValue()}

    def check(self, options: dict[str, str]) -> dict[str, Any]:
        """Count the events in the stream. Not timed."""
        row = self._frame(options).selectExpr("count(*) c", "sum(length(event)) b").first()
        assert row is not None
        return {"events": row["c"], "bytes": row["b"]}

    def checksum(
        self,
        options: dict[str, str],
        decode: dict[str, Any] | None = None,
        columns: str | None = None,
        only: list[str] | None = None,
        absent_is_default: bool = False,
    ) -> dict[str, Any]:
        """Return the number of rows, and the sum of a hash of all values of each row. Not timed.

        The sum does not depend on the order of the rows.
        """
        frame = self._frame(options, decode, columns)
        return _checksum(frame if only is None else frame.select(*only), absent_is_default)

    def checksum_of_parquet(self, parquet: str) -> dict[str, Any]:
        """Return the same for the events in a Parquet folder."""
        return _checksum(self.spark.read.parquet(parquet).select("event"), absent_is_default=False)

    def _frame(
        self, options: dict[str, str], decode: dict[str, Any] | None = None, columns: str | None = None
    ) -> DataFrame:
        if self._connector == "functions":
            from pyspark_pravega import read  # some sides' Python lacks it

            return read(self.spark, **_with_path(options))
        reader = self.spark.read.format(self._connector).options(**options)
        frame = (reader if columns is None or decode is not None else reader.schema(columns)).load()
        if decode is None:
            return frame
        values = frame.select(self._decoded(**decode).alias("value"))
        return values.select("value.*") if isinstance(values.schema["value"].dataType, StructType) else values

    def _decoded(
        self, how: str, schema: str = "", message: str = "", descriptor: str = "", function: str = "", header: int = 0
    ) -> Column:
        """Return the column ``event``, decoded with Spark's own functions.

        Java objects are decoded with the functions of ObjectColumns.
        """
        event = expr(f"substring(event, {header + 1})") if header else col("event")
        if how == "avro":
            return from_avro(event, schema)
        if how == "json":
            return from_json(event.cast("string"), schema)
        if how == "protobuf":
            # PySpark's function passes the descriptor's bytes, which spark-protobuf 3.4 does not accept.
            functions = self.spark._jvm.org.apache.spark.sql.protobuf.functions
            return Column(functions.from_protobuf(event._jc, message, descriptor))
        name = function.replace("$", "_")
        self.spark.udf.registerJavaFunction(name, function, _type_of(schema))
        return expr(f"{name}(event)")

    # ---- writes ------------------------------------------------------------------------------------------------------

    def write(
        self, options: dict[str, str], parquet: str, events: int, stream: bool = False, targets: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Time a write of a Parquet folder with the columns ``event`` and ``routing_key``.

        The write is a batch or a query. A batch may write to several streams.
        """
        frame = _with_targets(self.spark.read.parquet(parquet), targets)
        if self._connector == "functions":
            from pyspark_pravega import write  # some sides' Python lacks it

            start = time.perf_counter()
            write(frame, **_with_path(options))
            return {"seconds": time.perf_counter() - start, "events": events}
        if not stream:
            start = time.perf_counter()
            frame.write.format(self._connector).options(**options).mode("append").save()
            return {"seconds": time.perf_counter() - start, "events": events}
        with tempfile.TemporaryDirectory(prefix="benchmark-") as checkpoint:
            start = time.perf_counter()
            source = self.spark.readStream.schema(frame.schema).parquet(parquet)
            writer = source.writeStream.format(self._connector).options(**options, checkpointLocation=checkpoint)
            writer.trigger(availableNow=True).start().awaitTermination()
            return {"seconds": time.perf_counter() - start, "events": events}

    def micro_batches(
        self, options: dict[str, str], rows: int, batches: int, targets: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Run a query of small batches to streams. Return Spark's reported time of each of the last ones."""
        source = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
        frame = _with_targets(source.option("numPartitions", 2).load().selectExpr(*_KEY_AND_EVENT), targets)
        with tempfile.TemporaryDirectory(prefix="benchmark-") as checkpoint:
            writer = frame.writeStream.format(self._connector).options(**options, checkpointLocation=checkpoint)
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

    # ---- a query from stream to stream -------------------------------------------------------------------------------

    def start_query(self, source: dict[str, str], sink: dict[str, str]) -> dict[str, Any]:
        """Start a query that copies each event of one stream to another when it arrives."""
        self._checkpoint = tempfile.TemporaryDirectory(prefix="benchmark-")
        frame = self.spark.readStream.format(self._connector).options(**source, start_stream_cut="earliest").load()
        copied = frame.selectExpr("event", "CAST(event AS STRING) AS routing_key")
        writer = copied.writeStream.format(self._connector).options(**sink, checkpointLocation=self._checkpoint.name)
        self._query = writer.start()
        return {}

    def drain_query(self) -> dict[str, Any]:
        """Wait until the query has written all events of its source."""
        assert self._query is not None
        self._query.processAllAvailable()
        return {}

    def stop_query(self, skip: int) -> dict[str, Any]:
        """End the query. Return Spark's reported time of each batch with rows, without the first ones."""
        found = [each for each in self._end_query().recentProgress if each["numInputRows"]]
        took = [each["durationMs"]["triggerExecution"] for each in found[skip:]]
        return {"rows": sum(each["numInputRows"] for each in found), "batch_ms": took}

    # ---- a query to a Java sink, row by row --------------------------------------------------------------------------

    def start_rows(self, options: dict[str, str], trigger: dict[str, str], file: str, event: str) -> dict[str, Any]:
        """Start a query to a sink that writes ``event`` and its time of arrival, in nanoseconds, to a file at once."""
        from tests.integration.spark._real_time import load_sink  # some sides' PySpark lacks what it imports

        self._checkpoint = tempfile.TemporaryDirectory(prefix="benchmark-")
        if self._jars is None:
            self._jars = tempfile.TemporaryDirectory(prefix="benchmark-")
            load_sink(self.spark, Path(self._jars.name))
        Path(file).touch()
        frame = self.spark.readStream.format(self._connector).options(**options, start_stream_cut="earliest").load()
        arrived = "java_method('java.lang.System', 'nanoTime') AS arrived"
        writer = frame.selectExpr(f"CAST({event} AS STRING) AS event", arrived).writeStream.outputMode("update")
        writer = writer.option("checkpointLocation", self._checkpoint.name).trigger(**trigger)
        writer._jwrite = writer._jwrite.foreach(self.spark.sparkContext._jvm.pravegaserde.tests.RowsInFile(file))
        self._query = writer.start()
        return {}

    def stop_rows(self) -> dict[str, Any]:
        """End the query."""
        self._end_query()
        return {}

    def _end_query(self) -> StreamingQuery:
        """Stop the query, delete its checkpoint, and return it."""
        assert self._query is not None
        assert self._checkpoint is not None
        query = self._query
        query.stop()
        self._checkpoint.cleanup()
        self._query = self._checkpoint = None
        return query


def _with_path(options: dict[str, str]) -> dict[str, str]:
    """Return options for our functions, which have the stream and its scope as one argument."""
    return {name: value for name, value in options.items() if name != "scope"} | {
        "stream": f"{options['scope']}/{options['stream']}"
    }


def _with_targets(frame: DataFrame, targets: Sequence[str]) -> DataFrame:
    """Return the rows with the stream of each, by its routing key."""
    if not targets:
        return frame
    names = ", ".join(f"'{target}'" for target in targets)
    return frame.selectExpr(
        "*", f"element_at(array({names}), pmod(hash(routing_key), {len(targets)}) + 1) AS target_stream"
    )


def _type_of(schema: str) -> DataType:
    from pyspark.sql.types import _parse_datatype_string  # needs the session

    return _parse_datatype_string(schema)


def _checksum(frame: DataFrame, absent_is_default: bool) -> dict[str, Any]:
    values = [_same(field.dataType, f"`{field.name}`", absent_is_default, 0) for field in frame.schema.fields]
    # Sorted names, because connectors may return columns in different orders.
    ordered = [value for _, value in sorted(zip(frame.columns, values, strict=True))]
    row = frame.selectExpr(f"CAST(xxhash64({', '.join(ordered)}) AS DECIMAL(20, 0)) AS hash").selectExpr(
        "count(*) AS rows", "CAST(sum(hash) AS STRING) AS hash"
    )
    found = row.first()
    assert found is not None
    return {"rows": found["rows"], "hash": found["hash"]}


def _same(kind: DataType, name: str, absent_is_default: bool, depth: int) -> str:
    """Return SQL for a value that does not depend on the widths of a connector's types.

    Null counts as a value.
    """
    if isinstance(kind, StructType):
        parts = [
            f"'{each.name}', {_same(each.dataType, f'{name}.`{each.name}`', absent_is_default, depth)}"
            for each in sorted(kind.fields, key=lambda each: each.name)
        ]
        return f"named_struct('null', {name} IS NULL, 'value', named_struct({', '.join(parts)}))"
    if isinstance(kind, (ArrayType, MapType)):
        item = f"x{depth}"
        if isinstance(kind, MapType):
            name = f"array_sort(map_entries({name}))"
            entry = StructType().add("key", kind.keyType).add("value", kind.valueType)
            inner = _same(entry, item, absent_is_default, depth + 1)
        else:
            inner = _same(kind.elementType, item, absent_is_default, depth + 1)
        value, default = f"transform({name}, {item} -> {inner})", "array()"
    elif isinstance(kind, IntegralType):
        value, default = f"CAST({name} AS BIGINT)", "0L"
    elif isinstance(kind, TimestampType) or kind.typeName() == "timestamp_ntz":
        value, default = f"unix_micros(CAST({name} AS TIMESTAMP))", "0L"
    elif isinstance(kind, (FloatType, DoubleType)):
        value, default = f"CAST({name} AS DOUBLE)", "0D"
    elif isinstance(kind, StringType):
        value, default = name, "''"
    else:
        value, default = name, "false" if kind.typeName() == "boolean" else "X''"
    if absent_is_default:
        return f"coalesce({value}, {default})"
    return f"named_struct('null', {name} IS NULL, 'value', {value})"


if __name__ == "__main__":
    # This interpreter and its PySpark, because each side has its own. Workers would use the python3 of PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.pop("SPARK_HOME", None)
    parser = argparse.ArgumentParser()
    parser.add_argument("connector", choices=["pravega", "functions", "nothing"], help="its format, or read and write")
    parser.add_argument("--memory", required=True, help="heap of its JVM")
    parser.add_argument("--jars")
    parser.add_argument("--configure", action="store_true", help="start the session with pyspark_pravega.configure")
    application = Application(**vars(parser.parse_args()))
    names = (
        "read",
        "available_now",
        "schema",
        "check",
        "checksum",
        "checksum_of_parquet",
        "write",
        "micro_batches",
        "start_query",
        "drain_query",
        "stop_query",
        "start_rows",
        "stop_rows",
    )
    serve(f"spark {spark_version}", {name: getattr(application, name) for name in names})
