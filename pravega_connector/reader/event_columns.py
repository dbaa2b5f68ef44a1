"""Events between stream cuts as Arrow columns, for libraries that read Arrow: pyarrow, pandas, polars, DuckDB."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from pravega_connector.core import arguments
from pravega_connector.errors import ConfigError
from pravega_connector.notebook import table
from pravega_connector.reader.rows import METADATA, RowBuilder, row_fields
from pravega_connector.reader.slices import EventBatch, ReadRange, Select, joined, read_ranges
from pravega_connector.reader.splits import RecordBatches, end_of, position_in, ranges_after, split_ranges
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import StreamCut
from pravega_serde.errors import DeserializationError, MissingExtraError
from pravega_serde.serializer_interface import Deserializer, OnError

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

# Columns of the Scala connector for Spark.
_METADATA: Final = tuple(METADATA)[:5]
_SHOWN: Final = 10


class EventColumns:
    """Events between two cuts of one or several streams, as Arrow columns.

    The range is fixed when the object is created. Each use reads the range again. The object holds about 1 MiB of
    events at a time (8 MiB of Avro or Protobuf with lists or maps), unless the consumer keeps them. Every library that
    reads Arrow's C stream reads this object without a copy: ``pyarrow.table(columns)``, ``polars.DataFrame(columns)``,
    ``duckdb.sql("SELECT … FROM columns")``. An iteration yields :class:`EventBatch` objects: undecoded events with
    their positions.

    Without a serializer, the columns are ``event``, ``scope``, ``stream``, ``segment_id`` and ``offset``, as in the
    Scala connector. With a serializer, they are the fields of its records, or ``value`` if each event is a single
    value. ``metadata`` adds any of those five columns after them. Rows are in the order of each segment, predecessors
    before successors.

    Reading raises DataLossError, DeserializationError with the position of the event, and ConnectorErrors. With
    ``on_error``, a malformed event has nulls, and ``on_error`` receives its error.
    """

    def __init__(
        self,
        stores: SegmentStores,
        ranges: Sequence[ReadRange],
        serializer: Deserializer[Any] | None = None,
        *,
        metadata: Sequence[str] | None = None,
        on_error: OnError | None = None,
        select: Select | None = None,
    ) -> None:
        self._stores, self._ranges = stores, tuple(ranges)
        self._serializer, self._on_error, self._select = serializer, on_error, select
        self._metadata = tuple((_METADATA if serializer is None else ()) if metadata is None else metadata)
        for name in self._metadata:
            if name not in _METADATA:
                raise ConfigError(f"unknown metadata column {name!r}: {', '.join(_METADATA)}")
        self.schema: Final = pa.schema(row_fields(serializer, self._metadata, fix="omit it from metadata"))
        """Names and types of the columns."""

    @property
    def ranges(self) -> tuple[tuple[StreamCut, StreamCut], ...]:
        """Start and end cut of each stream."""
        return tuple((each.start, each.end) for each in self._ranges)

    @property
    def size(self) -> int:
        """Bytes of the range in the segments that are read."""
        return sum(piece.end - piece.start for each in self._ranges for piece in each.slices)

    # ---------------------------------------------------------------- batches

    def __iter__(self) -> Generator[EventBatch, None, None]:
        """Yield the undecoded events, batch by batch."""
        return read_ranges(self._stores, self._ranges, self._select)

    def record_batches(self, start: str | None = None) -> RecordBatches:
        """Return an iterator over the rows, batch by batch, from the first row or the position ``start``.

        The iterator has a ``position`` after the rows that it has returned. Store it with your results, and pass it as
        ``start`` to resume, also in another process. Raises ConfigError for a position that is not in the range.
        """
        ranges = self._ranges if start is None else ranges_after(self._ranges, start)
        return RecordBatches(self._rows(ranges, join=True), start, end_of(ranges) or start)

    def _rows(self, ranges: Sequence[ReadRange], *, join: bool) -> Generator[tuple[pa.RecordBatch, str], None, None]:
        """Yield the rows of ranges, with the position after them."""
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
        with closing(read_ranges(self._stores, ranges, self._select)) as batches:
            for batch in joined(batches, rows.bytes_at_once if join else 0):
                done = 0
                for built in rows.build_all(batch):
                    done += built.num_rows  # each event has a row
                    yield built, position_in(batch, done)

    # ---------------------------------------------------------------- parallel reads

    def splits(self, count: int) -> list[EventColumns]:
        """Return at most ``count`` parts of the range, of similar size, to read in parallel.

        Each part is an object of this class. It is independent and can be pickled, with the settings and credentials of
        the client; in another process it connects on first use. The parts are in the order of the range: the rows of
        one part after the other are those of the range.

        With enough segments, the parts have whole segments. Otherwise segments are divided between events: then this
        call reads the range up to the last division, of large events only their headers. ``on_error`` is called in the
        process that reads. Raises ConfigError, DataLossError.
        """
        arguments.count("count", count, 1)
        return [self._part(ranges) for ranges in split_ranges(self._stores, self._ranges, count)]

    def _part(self, ranges: Sequence[ReadRange]) -> EventColumns:
        part = copy.copy(self)
        part._ranges = tuple(ranges)
        return part

    # ---------------------------------------------------------------- Arrow and its readers

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows, batch by batch. Each call starts at the first row."""
        return pa.RecordBatchReader.from_batches(self.schema, self.record_batches())

    def __arrow_c_schema__(self) -> object:
        """Arrow's C schema of the columns."""
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return Arrow's C stream of the rows. Each call starts at the first row."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """Return all rows, in memory."""
        return self.reader().read_all()

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return all rows, in memory. ``options`` are arguments of ``pyarrow.Table.to_pandas``."""
        return cast("pd.DataFrame", self.to_arrow().to_pandas(**options))

    def to_polars(self) -> pl.DataFrame:
        """Return all rows, in memory."""
        return cast("pl.DataFrame", _imported("polars").DataFrame(self))

    def scan_polars(self) -> pl.LazyFrame:
        """Return a lazy frame, which reads the range when you collect it.

        With ``engine="streaming"``, it uses constant memory. It builds only the columns that the query uses. Reading
        ends when the query has enough rows.
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
        size: int | None,
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
        """Return a DuckDB relation over the range. Each query reads the range again, in constant memory.

        The default ``connection`` is DuckDB's own.
        """
        return (connection or _imported("duckdb")).from_arrow(self)

    def head(self, rows: int = _SHOWN) -> pa.Table:
        """Return the first rows. Nothing beyond them is read."""
        found: list[pa.RecordBatch] = []
        with closing(self._rows(self._ranges, join=False)) as batches:
            for batch, _ in batches:
                found.append(batch.slice(0, rows))
                rows -= found[-1].num_rows
                if not rows:
                    break
        return pa.Table.from_batches(found, self.schema)

    # ---------------------------------------------------------------- what a notebook shows

    def __repr__(self) -> str:
        streams = ", ".join(str(each.start.stream) for each in self._ranges)
        fields = ", ".join(f"{field.name}: {field.type}" for field in self.schema)
        return f"EventColumns({streams}, {self.size:,} bytes, [{fields}])"

    def _repr_html_(self) -> str:
        streams = ", ".join(str(each.start.stream) for each in self._ranges)
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
