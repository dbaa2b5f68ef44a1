"""One read over a table and the rest of its stream: rows up to the cut of the table, then the events after it.

A snapshot of the table has the cut in its metadata. So the two parts meet without a gap, and no event is in both, also
if commits follow during the read. The columns are those that the table has after a run until now.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.controller.targets import target_of
from pravega_connector.errors import ColumnTypeError, ConfigError, DataLossError, LakeTableError
from pravega_connector.operations.tier.columns import TierColumns, merged_columns, read_field
from pravega_connector.operations.tier.lake_table import LakeTable, TierPosition
from pravega_connector.operations.tier.run import connected, open_table, source_options
from pravega_connector.reader.slices import EventBatch, ReadRange, range_between, read_ranges
from pravega_connector.rows.columns import row_builder
from pravega_connector.rows.options import texts
from pravega_connector.rows.options.common import ConnectionOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.stream_cuts import compare_cuts
from pravega_serde.columnar.types import with_leaves

# Options for Spark's read of raw events.
_RAW: Final = {"min_partitions", *(field.name for field in dataclasses.fields(ConnectionOptions))}

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_table_and_tail(
    stream: str,
    table: str,
    *,
    schema: pa.Schema | None = None,
    storage: Mapping[str, str] | None = None,
    **options: Any,
) -> pa.RecordBatchReader:
    """Return the rows of a table that :func:`tier` writes, followed by the events that the table does not have yet.

    Each event up to the current tail is a row exactly once, also if a run commits during the read. The rows of the tail
    have the columns of the table. New fields of events are new columns, which are null in earlier rows. Pass the
    ``schema``, ``storage`` and options of the run. Without a table, all rows are of the stream. The rows are not
    sorted. Polars, DuckDB and pandas read the result, and its memory does not grow with the rows.

    Raises the errors of :func:`tier`, and LakeTableError if the stream was truncated during the read, after a commit of
    its events: then read again.
    """
    chosen = source_options(stream, options)
    with connected(chosen) as client:
        read = _Read(client, chosen, open_table(table, storage or {}), schema)
    return pa.RecordBatchReader.from_batches(read.schema, read.batches())


def spark_table_and_tail(
    spark: SparkSession,
    stream: str,
    table: str,
    *,
    schema: pa.Schema | None = None,
    storage: Mapping[str, str] | None = None,
    **options: Any,
) -> DataFrame:
    """Return :func:`read_table_and_tail` as a DataFrame, whose rows the executors read.

    The DataFrame has the Parquet files of the snapshot, so Spark needs no jar of Delta or Iceberg. They must stay until
    it is read: do not vacuum or truncate in between. For object stores, configure Hadoop's file system in Spark.
    """
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - other programs have no Spark

    chosen = source_options(stream, options)
    with connected(chosen) as client:
        opened = open_table(table, storage or {})
        read = _Read(client, chosen, opened, schema)
    arrow = pa.schema([pa.field(field.name, with_leaves(field.type, _of_spark)) for field in read.schema])
    columns = from_arrow_schema(arrow, prefer_timestamp_ntz=True)
    cuts = {"start_stream_cut": read.range.start.to_text(), "end_stream_cut": read.range.end.to_text()}
    # The source would decode fields of several types in another way.
    own = {name: value for name, value in texts(options).items() if name in _RAW}
    events = spark.read.format("pravega").options(**own, **cuts, columns="event,segment_id,offset").load(stream)
    tail = events.mapInArrow(_decoding(chosen, read, arrow), columns)
    files = [] if opened.schema() is None else opened.files()
    if not files:
        return tail
    parquet = spark.read.schema(columns)
    if opened.root is not None:
        parquet = parquet.option("basePath", _hadoop(opened.root))
    return parquet.parquet(*map(_hadoop, files)).select(*columns.names).union(tail)


def _of_spark(kind: pa.DataType) -> pa.DataType:
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


def _decoding(
    options: SourceOptions, read: _Read, schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a task that decodes raw events as a run does."""
    stream, name, own, decoder = options.stream_name(), read.name, read.columns.schema, read.columns.decoder

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        builder = row_builder(own, options, decoder)
        for batch in batches:
            segments = batch.column("segment_id").to_numpy()
            ends = [*(np.flatnonzero(np.diff(segments)) + 1).tolist(), len(segments)]
            for start, end in pairwise([0, *ends]) if len(segments) else ():
                part = batch.slice(start, end - start)
                offsets = part.column("offset").to_numpy()
                for rows in builder.build_all(EventBatch(stream, int(segments[start]), part.column("event"), offsets)):
                    yield _fitted(rows, schema, name)

    return decode


class _Read:
    """Snapshot of a table, and the events after it."""

    def __init__(
        self, client: PravegaClient, options: SourceOptions, table: LakeTable, schema: pa.Schema | None
    ) -> None:
        self._options, self._table, self.name = options, table, str(table)
        self._stream = options.stream_name()
        self._position, self.range = self._pinned(client)
        known = table.schema()
        self.columns = TierColumns(options, schema, known)
        if known is None or self.range.slices:
            with closing(read_ranges(client.stores, [self.range])) as batches:
                self.columns.grow(batches)
        columns = self.columns.schema
        if known is not None:
            columns = merged_columns(pa.schema(map(read_field, known)), columns)
        self.schema = pa.schema([field.with_nullable(True) for field in columns])

    def _pinned(self, client: PravegaClient) -> tuple[TierPosition | None, ReadRange]:
        """Load the table, and return its position and the events after it, which the stream still has."""
        stream = self._stream
        target = target_of(client.controller, stream)
        position = self._table.position(str(stream))
        while True:
            if position is not None and position.merged:
                raise ConfigError(
                    f"{self.name} has merged rows of stream {stream}, to which events cannot be added: read the table "
                    "alone, or write all events into another table"
                )
            if position is not None and position.stream != target:
                raise ConfigError(
                    f"stream {stream} was deleted and created again since the last commit of {self.name}: run tier "
                    "with start='earliest' to add the events of the new one"
                )
            start = client.head(stream) if position is None else position.stream_cut()
            found = range_between(client.stores, start, client.tail(stream))
            if position is not None:
                kept = compare_cuts(client.head(stream), start, client).relation
                if kept in ("before", "equal"):
                    return position, found
            # A run that has committed since the table was loaded may have truncated events before the head.
            before, position = position, self._table.position(str(stream))
            if position is None:
                return None, found
            if position == before:
                raise DataLossError(
                    f"{self.name} has the events of stream {stream} up to {start}, and events after it were "
                    "truncated: no program has them"
                )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        if self._table.schema() is not None:
            for rows in self._table.batches():
                yield _fitted(rows, self.schema, self.name)
        try:
            # A reader that no program reads has no client to close.
            with connected(self._options) as client, closing(read_ranges(client.stores, [self.range])) as batches:
                for batch in batches:
                    for rows in self.columns.build(batch):
                        yield _fitted(rows, self.schema, self.name)
        except DataLossError as error:
            if self._table.position(str(self._stream)) == self._position:
                raise
            raise LakeTableError(
                f"{self.name}: stream {self._stream} was truncated during the read, and the table has its events by "
                "now: read again"
            ) from error


def _fitted(rows: pa.RecordBatch, schema: pa.Schema, table: str) -> pa.RecordBatch:
    """Return rows in the columns of a schema. Raises ColumnTypeError for a value that does not fit."""
    names = set(rows.schema.names)
    columns = []
    for field in schema:
        if field.name not in names:
            columns.append(pa.nulls(rows.num_rows, field.type))
            continue
        try:
            columns.append(rows.column(field.name).cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ColumnTypeError(
                f"{table}: column {field.name!r} is {field.type} in the table, and does not hold the events: "
                f"{' '.join(str(error).split())[:200]}"
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _hadoop(uri: str) -> str:
    """Return a URI with the name that Hadoop has for S3."""
    return f"s3a://{uri.removeprefix('s3://')}" if uri.startswith("s3://") else uri
