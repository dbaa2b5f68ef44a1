"""Events between stream cuts as Arrow columns, for whatever reads Arrow: pyarrow, pandas, polars, DuckDB."""

from __future__ import annotations

import importlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from pravega_connector.errors import ConfigError
from pravega_connector.notebook import table
from pravega_connector.reader.rows import METADATA, RowBuilder, row_fields
from pravega_connector.reader.slices import EventBatch, SegmentSlice, joined, read_slices
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import StreamCut
from pravega_serde.errors import DeserializationError, MissingExtraError
from pravega_serde.serializer_interface import OnError, Serializer

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

# Columns of the Scala connector for Spark.
_METADATA: Final = tuple(METADATA)[:5]
_SHOWN: Final = 10


class EventColumns:
    """The events between two cuts of each of some streams, as columns: a range that is read anew each time.

    The range is fixed when it is made. Nothing is read before it is asked for, and no more than a mebibyte or so, or
    eight of Avro or Protobuf with lists or maps, is held at a time, unless the consumer keeps it. Anything that takes
    Arrow's C stream takes this object without a copy: ``pyarrow.table(columns)``, ``polars.DataFrame(columns)``,
    ``duckdb.sql("SELECT … FROM columns")``. Iterated, it gives :class:`EventBatch`, the undecoded events with their
    places.

    Without a serializer the columns are those of the Scala connector: event, scope, stream, segment_id, offset. With
    one they are the fields of its records, or ``value`` where an event is a single value; ``metadata`` names those of
    the first five that come behind. Rows are in the order of each segment, predecessors before successors.

    Reading raises DataLossError, DeserializationError with the event's place, ConnectorErrors; with ``on_error`` a bad
    event has nulls and its error is handed over.
    """

    def __init__(
        self,
        stores: SegmentStores,
        ranges: Sequence[tuple[StreamCut, StreamCut]],
        slices: Sequence[SegmentSlice],
        serializer: Serializer[Any] | None = None,
        *,
        metadata: Sequence[str] | None = None,
        on_error: OnError | None = None,
    ) -> None:
        self._stores, self._ranges, self._slices = stores, tuple(ranges), tuple(slices)
        self._serializer, self._on_error = serializer, on_error
        self._metadata = tuple((_METADATA if serializer is None else ()) if metadata is None else metadata)
        for name in self._metadata:
            if name not in _METADATA:
                raise ConfigError(f"unknown metadata column {name!r}: {', '.join(_METADATA)}")
        self.schema: Final = pa.schema(row_fields(serializer, self._metadata, fix="leave it out of metadata"))
        """Names and types of the columns."""

    @property
    def ranges(self) -> tuple[tuple[StreamCut, StreamCut], ...]:
        """Of each stream the cuts between which the events lie."""
        return self._ranges

    @property
    def size(self) -> int:
        """Bytes of the range in the segments."""
        return sum(piece.end - piece.start for piece in self._slices)

    # ---------------------------------------------------------------- batches

    def __iter__(self) -> Generator[EventBatch, None, None]:
        """Yield the undecoded events, batch by batch."""
        return read_slices(self._stores, list(self._slices))

    def record_batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows, batch by batch. Closing the generator closes its connection."""
        return self._record_batches(join=True)

    def _record_batches(self, *, join: bool) -> Generator[pa.RecordBatch, None, None]:
        on_error = self._on_error

        def on_bad(_: EventBatch, errors: Sequence[DeserializationError]) -> None:
            assert on_error is not None
            for error in errors:
                on_error(error)

        rows = RowBuilder(
            self.schema,
            self._serializer,
            metadata=self._metadata,
            mode="FAILFAST" if on_error is None else "PERMISSIVE",
            on_bad=on_bad,
        )
        with closing(iter(self)) as batches:
            for batch in joined(batches, rows.bytes_at_once if join else 0):
                yield from rows.build_all(batch)

    # ---------------------------------------------------------------- Arrow and its readers

    def reader(self) -> pa.RecordBatchReader:
        """Reader of the rows, batch by batch; each call begins anew."""
        return pa.RecordBatchReader.from_batches(self.schema, self.record_batches())

    def __arrow_c_schema__(self) -> object:
        """Arrow's C schema of the columns."""
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's C stream of the rows; each call begins anew."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """All rows, in memory."""
        return self.reader().read_all()

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """All rows, in memory; ``options`` are those of ``pyarrow.Table.to_pandas``."""
        return cast("pd.DataFrame", self.to_arrow().to_pandas(**options))

    def to_polars(self) -> pl.DataFrame:
        """All rows, in memory."""
        return cast("pl.DataFrame", _imported("polars").DataFrame(self))

    def scan_polars(self) -> pl.LazyFrame:
        """A lazy frame, which reads the range when it is collected: with ``engine="streaming"`` in constant memory.

        Columns that a query does not use are not made, and reading ends when the query has rows enough.
        """
        polars = _imported("polars")
        schema = polars.Schema(polars.from_arrow(self.schema.empty_table()).schema)
        register = importlib.import_module("polars.io.plugins").register_io_source
        return cast("pl.LazyFrame", register(self._scan, schema=schema))

    def _scan(
        self,
        wanted: list[str] | None,
        predicate: pl.Expr | None,
        most: int | None,
        size: int | None,  # noqa: ARG002 - advice
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows that polars asks for."""
        polars = importlib.import_module("polars")
        with closing(self.record_batches()) as batches:
            for batch in batches:
                frame = polars.from_arrow(batch if wanted is None else batch.select(wanted))
                if most is not None:
                    frame = frame.head(most)
                    most -= len(frame)
                yield frame if predicate is None else frame.filter(predicate)
                if most == 0:
                    return

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """A DuckDB relation over the range, which each query reads anew in constant memory.

        ``connection`` is DuckDB's default one unless given.
        """
        return (connection or _imported("duckdb")).from_arrow(self)

    def head(self, rows: int = _SHOWN) -> pa.Table:
        """The first rows; no more is read than they need."""
        found: list[pa.RecordBatch] = []
        with closing(self._record_batches(join=False)) as batches:
            for batch in batches:
                found.append(batch.slice(0, rows))
                rows -= found[-1].num_rows
                if not rows:
                    break
        return pa.Table.from_batches(found, self.schema)

    # ---------------------------------------------------------------- what a notebook shows

    def __repr__(self) -> str:
        streams = ", ".join(str(start.stream) for start, _ in self._ranges)
        fields = ", ".join(f"{field.name}: {field.type}" for field in self.schema)
        return f"EventColumns({streams}, {self.size:,} bytes, [{fields}])"

    def _repr_html_(self) -> str:
        streams = ", ".join(str(start.stream) for start, _ in self._ranges)
        return table(
            f"events of {streams}: {self.size:,} bytes",
            ["column", "type"],
            [(field.name, field.type) for field in self.schema],
            len(self.schema),
        )


def _imported(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingExtraError(package, "frames", purpose=f"a frame of {package}") from None
