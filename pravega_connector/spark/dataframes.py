"""Reads and writes without Spark's data sources: :func:`read` and :func:`write`, for Spark 3.5 and later.

Spark 3.5 has no data sources in Python. So the driver's program plans a read, and commits a write, in place of Spark.
The tasks are those of ``format("pravega")``, inside ``mapInArrow``. So the options, rows and guarantees are the same.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql.types import StructType

from pravega_connector.errors import ConfigError, ConnectorError, UnsupportedModeError
from pravega_connector.rows.options import texts
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.session import source_of
from pravega_connector.spark.versions import parsed_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MESSAGES: Final = pa.schema([pa.field("partition", pa.int32()), pa.field("message", pa.binary())])
_DDL: Final = "partition INT, message BINARY"


def read(
    spark: SparkSession, stream: str | None = None, *, schema: StructType | str | None = None, **options: Any
) -> DataFrame:
    """Return the events of a stream (``scope/stream``) as a DataFrame.

    The options and columns are those of ``spark.read.format("pravega")``, and ``schema`` is that of ``.schema(…)``.
    With option ``table`` it reads a key-value table. Options that are not set come from ``configure``. Without that
    call, the connection comes from the session (``spark.pravega.controller.uri`` and others, as
    :meth:`PravegaConfig.from_spark_conf` reads them).

    The driver plans the read in this call: each use of the DataFrame returns the events between the same two stream
    cuts. Spark does not pass filters to the read.

    Raises StreamNotFoundError, ControllerUnavailableError, and the errors of options and columns.
    """
    source = _source(spark, stream, options)
    columns = source.schema() if schema is None else _columns(schema)
    reader = source.reader(columns)
    tasks = tuple(reader.partitions())

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from reader.read(tasks[number])

    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(rows, columns)


def write(frame: DataFrame, stream: str | None = None, **options: Any) -> None:
    """Append the rows of a DataFrame to a stream (``scope/stream``); return when they are durable.

    The options, columns and guarantees are those of ``frame.write.format("pravega")``. With option ``table`` it writes
    a key-value table. Options that are not set come from the session, as for :func:`read`.

    With ``writer_mode="exactly_once"``, ``txn_app_id`` and ``txn_version``, the rows of a version become visible
    together, and once: a repeated call with the same rows writes nothing. In ``foreachBatch``, pass the number of the
    batch as ``txn_version`` and the name of the query as ``txn_app_id``.

    Raises StreamNotFoundError, ControllerUnavailableError, ExactlyOnceError, OutcomeUnknownError, and the errors of
    options and columns.
    """
    if frame.isStreaming:
        raise UnsupportedModeError(
            "write accepts only DataFrames of batches: call it in foreachBatch of writeStream for each micro-batch"
        )
    writer = _source(frame.sparkSession, stream, options).writer(frame.schema, overwrite=False)

    finished = _finished(frame.sparkSession)

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        message = pickle.dumps(writer.write(iter(batches)))
        if finished is not None:
            finished.add([message])
        context = TaskContext.get()
        assert context is not None
        columns = [[context.partitionId()], [message]]
        yield pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, _MESSAGES, strict=True)], schema=_MESSAGES)

    try:
        # A task that Spark repeats, or starts a second time, has only one result.
        results = frame.mapInArrow(task, _DDL).collect()
        writer.commit(_messages(row.message for row in sorted(results, key=lambda row: int(row.partition))))
    except BaseException:
        with suppress(ConnectorError):  # the rows of open transactions disappear when their lease expires
            writer.abort(_messages([] if finished is None else finished.value))
        raise
    finally:
        if finished is not None:
            finished.value = []  # PySpark keeps every accumulator


class _Lists(AccumulatorParam[list[bytes]]):  # type: ignore[misc]
    """Lists of messages, which an accumulator joins."""

    def zero(self, value: list[bytes]) -> list[bytes]:
        """Return an empty list."""
        return []

    def addInPlace(self, value1: list[bytes], value2: list[bytes]) -> list[bytes]:
        """Return a list with another one at its end."""
        value1 += value2
        return value1


def _finished(spark: SparkSession) -> Accumulator[list[bytes]] | None:
    """Return the messages of the tasks that have finished, for a write that fails; None with Spark Connect."""
    return spark.sparkContext.accumulator([], _Lists()) if hasattr(spark, "_jsparkSession") else None


def _messages(pickled: Iterable[bytes]) -> list[Any]:
    return [pickle.loads(each) for each in pickled]  # noqa: S301 - of the tasks of this program


def _source(spark: SparkSession, stream: str | None, options: Mapping[str, Any]) -> PravegaDataSource:
    """Return the data source with these options, and with the defaults of the session."""
    given = texts(options)
    if stream is not None:
        if "path" in given:
            raise ConfigError(f"two streams are set: {stream!r}, and option 'path' {given['path']!r}")
        given["path"] = stream
    return source_of(spark)(given)


def _columns(schema: StructType | str) -> StructType:
    """Return the columns of option ``schema``. Raises ConfigError for the type of a single value."""
    columns = parsed_type(schema) if isinstance(schema, str) else schema
    if not isinstance(columns, StructType):
        raise ConfigError(f"schema is {columns.simpleString()}, not a list of columns: write 'name STRING, id BIGINT'")
    return columns
