"""``format("pravega")``: the class that Spark makes from the options of a read or a write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from connector import _table_options as table
from connector.errors import UnsupportedModeError
from connector.options import known_names, parse_options
from connector.sink import EventEncoder, PravegaBatchWriter, PravegaStreamWriter, SinkOptions, encoder_for
from connector.source import (
    Decoder,
    PravegaBatchReader,
    PravegaStreamReader,
    SourceOptions,
    batch_reader,
    decoded_fields,
    require_streams,
    schema_ids,
    schema_ids_of,
    serializer_of,
    with_never_null,
    with_schema_ids,
)

__all__ = ["PravegaDataSource"]

# The first Spark whose Python sources can limit a micro-batch and end where AvailableNow began.
_OLDEST_SPARK: Final = (4, 2)
_SOURCE_NAMES: Final = known_names(SourceOptions)
_SINK_NAMES: Final = known_names(SinkOptions)


def _source_options(raw: Mapping[str, str]) -> SourceOptions:
    return parse_options(SourceOptions, raw, also_known=_SINK_NAMES)


class PravegaDataSource(DataSource):  # type: ignore[misc]
    """Reads and writes Pravega streams.

    ``spark.read.format("pravega").load("scope/stream")``; see the options of SourceOptions and SinkOptions.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < _OLDEST_SPARK:
            raise UnsupportedModeError(
                f"Spark {pyspark.__version__} is too old: this connector needs Spark "
                f"{'.'.join(map(str, _OLDEST_SPARK))} or later"
            )

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return "pravega"

    def schema(self) -> StructType:
        """Columns of a read without ``.schema(…)``. Raises StreamNotFoundError, ControllerUnavailableError."""
        options = _source_options(self.options)
        if not table.is_table(self.options):
            # Said at load(), not when the first task is planned.
            require_streams(options)
        ids = schema_ids(options)
        serializer = serializer_of(options, None, ids)
        fields = decoded_fields(options, serializer)
        if table.is_table(self.options):
            # Nullable: a table's mode may be another in each query.
            return table.with_options(with_schema_ids(from_arrow_schema(pa.schema(fields)), options, ids), self.options)
        fields = with_never_null(fields, options, serializer)
        return with_schema_ids(from_arrow_schema(pa.schema(fields)), options, ids)

    def reader(self, schema: StructType) -> PravegaBatchReader:
        """Reader of a batch query."""
        return batch_reader(*self._reader_arguments(schema))

    def streamReader(self, schema: StructType) -> PravegaStreamReader:  # noqa: N802
        """Reader of a streaming query."""
        return PravegaStreamReader(*self._reader_arguments(schema))

    def writer(self, schema: StructType, overwrite: bool) -> PravegaBatchWriter:
        """Writer of a batch query. Raises ColumnTypeError, StreamNotFoundError before any task starts."""
        if overwrite:
            raise UnsupportedModeError("a stream can only be appended to: write with mode('append')")
        return PravegaBatchWriter(*self._writer_arguments(schema, streaming=False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> PravegaStreamWriter:  # noqa: ARG002, N802
        """Writer of a streaming query; in complete mode each micro-batch appends the whole result."""
        return PravegaStreamWriter(*self._writer_arguments(schema, streaming=True))

    def _reader_arguments(self, schema: StructType) -> tuple[SourceOptions, pa.Schema, Decoder]:
        options = _source_options(table.options_to_read(self.options, schema))
        arrow = to_arrow_schema(schema, timezone="UTC")
        # What cannot be decoded so is said here, before any task.
        return options, arrow, serializer_of(options, arrow, schema_ids_of(schema, options))

    def _writer_arguments(self, schema: StructType, *, streaming: bool) -> tuple[SinkOptions, EventEncoder]:
        options = parse_options(SinkOptions, table.options_to_write(self.options, schema), also_known=_SOURCE_NAMES)
        options.mode(streaming=streaming)
        return options, encoder_for(to_arrow_schema(schema, timezone="UTC"), options, streaming=streaming)
