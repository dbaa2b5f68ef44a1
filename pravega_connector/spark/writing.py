"""Writes to streams and key-value tables: from the options to the writers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pravega_connector.errors import ColumnTypeError, ConfigError, UnsupportedModeError
from pravega_connector.rows.encoding import EventEncoder, encoder_for
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.tables import TableSinkOptions
from pravega_connector.spark import tables
from pravega_connector.spark.arrow_columns import arrow_columns
from pravega_connector.spark.selection import names_table, stream_options, table_options
from pravega_connector.spark.sink.writers import PravegaBatchWriter, PravegaStreamWriter
from pravega_connector.spark.sql_tables import options_to_write

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class Writing:
    """A write with the given options; ``defaults`` are the options of the session."""

    given: Mapping[str, str]
    defaults: Mapping[str, str]

    def writer(self, schema: StructType, overwrite: bool) -> PravegaBatchWriter | tables.TableBatchWriter:
        """Return the writer of a batch query. Raises errors of options and columns before any task starts."""
        given = options_to_write(self.given, schema)
        if overwrite:
            reason = "a table supports only upserts" if names_table(given) else "a stream supports only appends"
            raise UnsupportedModeError(f"{reason}: write with mode('append')")
        if names_table(given):
            return tables.TableBatchWriter(*self._table(given, schema))
        return PravegaBatchWriter(*_in_python(*self.arguments(schema, streaming=False)))

    def stream_writer(self, schema: StructType) -> PravegaStreamWriter | tables.TableStreamWriter:
        """Return the writer of a streaming query. In complete mode, each micro-batch writes the whole result."""
        given = options_to_write(self.given, schema)
        if names_table(given):
            return tables.TableStreamWriter(*self._table(given, schema))
        return PravegaStreamWriter(*_in_python(*self.arguments(schema, streaming=True)))

    def arguments(self, schema: StructType, *, streaming: bool) -> tuple[SinkOptions, EventEncoder]:
        """Return the options and the encoder of a write to streams. Raises the errors of a write."""
        options = self._stream(options_to_write(self.given, schema))
        options.mode(streaming=streaming)
        if not schema.names:
            raise ColumnTypeError("the DataFrame has no columns, and Spark does not pass such rows: select a column")
        return options, encoder_for(arrow_columns(schema, options), options, streaming=streaming)

    def sink_options(self, schema: StructType) -> SinkOptions | None:
        """Return the options of a write to streams; None for a key-value table."""
        given = options_to_write(self.given, schema)
        return None if names_table(given) else self._stream(given)

    def _stream(self, given: Mapping[str, str]) -> SinkOptions:
        return stream_options(SinkOptions, given, self.defaults)

    def _table(self, given: Mapping[str, str], schema: StructType) -> tuple[TableSinkOptions, pa.Schema]:
        options = table_options(TableSinkOptions, given, self.defaults)
        return options, arrow_columns(schema, options)


def _in_python(options: SinkOptions, encoder: EventEncoder) -> tuple[SinkOptions, EventEncoder]:
    """Return the arguments. Raises ConfigError if the write must be in the JVM: Spark asks only for other writes."""
    if options.raw_writer == "jvm":
        raise ConfigError(
            "raw_writer=jvm: the JVM writer is not loaded in this session: call configure(spark) first, see its log "
            "line about the reason, or set 'raw_writer' to 'auto'"
        )
    return options, encoder
