"""``format("pravega")``: the class that Spark creates from the options of a read or a write.

Spark imports this module in all its Python processes, also in the process that discovers data sources. So each method
imports its own dependencies: a write does not load the source, and a read does not load the sink.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pravega_connector.errors import ConfigError, UnsupportedModeError
from pravega_connector.spark.boundary import called_by_spark
from pravega_connector.spark.versions import DataSource, spark_schema
from pravega_serde.errors import PravegaError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from pravega_connector.rows.columns import Decoder
    from pravega_connector.rows.encoding import EventEncoder
    from pravega_connector.rows.options import FormatOptions
    from pravega_connector.rows.options.sink import SinkOptions
    from pravega_connector.rows.options.source import SourceOptions
    from pravega_connector.rows.options.tables import TableSinkOptions, TableSourceOptions
    from pravega_connector.spark.sink.writers import PravegaBatchWriter, PravegaStreamWriter
    from pravega_connector.spark.source.metadata import MetadataReader
    from pravega_connector.spark.source.readers import BrokenStreamReader, PravegaBatchReader, PravegaStreamReader
    from pravega_connector.spark.tables.reader import TableReader
    from pravega_connector.spark.tables.writer import TableBatchWriter, TableStreamWriter


@called_by_spark("schema", "reader", "streamReader", "writer", "streamWriter")
class PravegaDataSource(DataSource):  # type: ignore[misc]
    """Data source that reads and writes Pravega streams and key-value tables.

    ``spark.read.format("pravega").load("scope/stream")``; see SourceOptions and SinkOptions for the options. For a
    table, see TableSourceOptions and TableSinkOptions.
    """

    #: Options of the session: they apply to every read and write, unless it or its table sets them.
    defaults: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return "pravega"

    def schema(self) -> StructType:
        """Return the columns of a read without ``.schema(…)``.

        Raises StreamNotFoundError, TableNotFoundError, ControllerUnavailableError.
        """
        import pyarrow as pa  # noqa: PLC0415 - each method imports its own dependencies

        from pravega_connector.spark.selection import names_table  # noqa: PLC0415
        from pravega_connector.spark.sql_tables import is_table, own_options, with_options  # noqa: PLC0415

        given = own_options(self.options)
        if names_table(given):
            from pravega_connector.spark.tables.columns import table_columns  # noqa: PLC0415

            options_of_table = self._table_source_options(given)
            if not is_table(given):
                return spark_schema(table_columns(options_of_table))
            # INSERT sets all columns: with a version it would be a write on a condition.
            fields = table_columns(options_of_table, with_version="version_column" in given)
            struct = spark_schema(pa.schema([field.with_nullable(True) for field in fields]))
            return with_options(struct, given)
        from pravega_connector.rows import columns  # noqa: PLC0415

        options = self._source_options(given)
        wanted = None
        if options.metadata != "Streams" and (options.infer_schema or not is_table(given)):
            from pravega_connector.spark.source.streams import require_streams  # noqa: PLC0415

            # Raise at load(), not when the first task is planned.
            streams = require_streams(options)
            if options.infer_schema:
                from pravega_connector.rows.inference import sampled_columns  # noqa: PLC0415
                from pravega_connector.spark.known_clusters import client_of  # noqa: PLC0415

                wanted = sampled_columns(client_of(options), options, streams)
        if options.metadata is not None:
            from pravega_connector.spark.source.metadata import metadata_columns  # noqa: PLC0415

            struct = spark_schema(pa.schema(metadata_columns(options)))
            return with_options(struct, given) if is_table(given) else struct
        ids = columns.schema_ids(options)
        serializer = columns.serializer_of(options, wanted, ids)
        fields = columns.decoded_fields(options, serializer)
        if is_table(given):
            # Nullable: each query may read the table in a different mode.
            struct = spark_schema(pa.schema(fields))
            return with_options(columns.with_schema_ids(struct, options, ids), given)
        fields = columns.with_never_null(fields, options, serializer)
        return columns.with_schema_ids(spark_schema(pa.schema(fields)), options, ids)

    def reader(self, schema: StructType) -> PravegaBatchReader | MetadataReader | TableReader:
        """Return the reader of a batch query."""
        from pravega_connector.spark.sql_tables import explains_alterations  # noqa: PLC0415

        with explains_alterations(schema):
            if self.table_of(schema) is not None:
                from pravega_connector.spark.tables.reader import TableReader  # noqa: PLC0415

                options = self._table_source_options(self._options_to_read(schema))
                return TableReader(options, _arrow_columns(schema, options))
            return self._event_reader(schema)

    def _event_reader(self, schema: StructType) -> PravegaBatchReader | MetadataReader:
        options = self.source_options(schema)
        _check_reader(options)
        if options.metadata is not None:
            from pravega_connector.spark.source.metadata import MetadataReader  # noqa: PLC0415

            return MetadataReader(options, _arrow_columns(schema))
        from pravega_connector.spark.source.readers import batch_reader  # noqa: PLC0415

        return batch_reader(*self.reader_arguments(schema))

    def streamReader(self, schema: StructType) -> PravegaStreamReader | BrokenStreamReader:  # noqa: N802
        """Return the reader of a streaming query."""
        from pravega_connector.spark.source.readers import BrokenStreamReader, PravegaStreamReader  # noqa: PLC0415
        from pravega_connector.spark.sql_tables import explains_alterations  # noqa: PLC0415

        try:
            if (table := self.table_of(schema)) is not None:
                raise UnsupportedModeError(
                    f"table {table} has no changes to follow: read it with spark.read, or write the changes to a "
                    "stream, too"
                )
            arguments = self.reader_arguments(schema)
            _check_reader(arguments[0])
            with explains_alterations(schema):
                return PravegaStreamReader(*arguments)
        except PravegaError as error:
            return BrokenStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> PravegaBatchWriter | TableBatchWriter:
        """Return the writer of a batch query.

        Raises ColumnTypeError, StreamNotFoundError, TableNotFoundError before any task starts.
        """
        from pravega_connector.spark.selection import names_table  # noqa: PLC0415

        raw = self._options_to_write(schema)
        if overwrite:
            reason = "a table supports only upserts" if names_table(raw) else "a stream supports only appends"
            raise UnsupportedModeError(f"{reason}: write with mode('append')")
        if names_table(raw):
            from pravega_connector.spark.tables.writer import TableBatchWriter  # noqa: PLC0415

            return TableBatchWriter(*self._table_writer_arguments(raw, schema))
        from pravega_connector.spark.sink.writers import PravegaBatchWriter  # noqa: PLC0415

        return PravegaBatchWriter(*self._writer_arguments(raw, schema, streaming=False))

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002
    ) -> PravegaStreamWriter | TableStreamWriter:
        """Return the writer of a streaming query. In complete mode, each micro-batch writes the whole result."""
        from pravega_connector.spark.selection import names_table  # noqa: PLC0415

        raw = self._options_to_write(schema)
        if names_table(raw):
            from pravega_connector.spark.tables.writer import TableStreamWriter  # noqa: PLC0415

            return TableStreamWriter(*self._table_writer_arguments(raw, schema))
        from pravega_connector.spark.sink.writers import PravegaStreamWriter  # noqa: PLC0415

        return PravegaStreamWriter(*self._writer_arguments(raw, schema, streaming=True))

    def _source_options(self, raw: Mapping[str, str]) -> SourceOptions:
        from pravega_connector.rows.options.source import SourceOptions  # noqa: PLC0415
        from pravega_connector.spark.selection import stream_options  # noqa: PLC0415

        return stream_options(SourceOptions, raw, self.defaults)

    def _table_source_options(self, raw: Mapping[str, str]) -> TableSourceOptions:
        from pravega_connector.rows.options.tables import TableSourceOptions  # noqa: PLC0415
        from pravega_connector.spark.selection import table_options  # noqa: PLC0415

        return table_options(TableSourceOptions, raw, self.defaults)

    def _options_to_read(self, schema: StructType) -> dict[str, str]:
        from pravega_connector.spark.sql_tables import options_to_read  # noqa: PLC0415

        return options_to_read(self.options, schema)

    def _options_to_write(self, schema: StructType) -> dict[str, str]:
        from pravega_connector.spark.sql_tables import options_to_write  # noqa: PLC0415

        return options_to_write(self.options, schema)

    def table_of(self, schema: StructType) -> str | None:
        """Return the key-value table that a read with these columns names; None if it reads streams."""
        from pravega_connector.spark.selection import table_in  # noqa: PLC0415

        return table_in(self._options_to_read(schema))

    def source_options(self, schema: StructType) -> SourceOptions:
        """Return the options of a read of streams with these columns; a SQL table has options in them."""
        return self._source_options(self._options_to_read(schema))

    def reader_arguments(self, schema: StructType) -> tuple[SourceOptions, pa.Schema, Decoder]:
        """Return the options, the Arrow schema and the serializer of a reader. Raises the errors of a read."""
        options = self.source_options(schema)
        if options.metadata is not None:
            raise UnsupportedModeError(f"metadata={options.metadata} is for batch reads: use spark.read, or omit it")
        from pravega_connector.rows.columns import schema_ids_of, serializer_of  # noqa: PLC0415

        arrow = _arrow_columns(schema, options)
        # Raise for columns that cannot be decoded before any task starts.
        return options, arrow, serializer_of(options, arrow, schema_ids_of(schema, options))

    def _writer_arguments(
        self, raw: Mapping[str, str], schema: StructType, *, streaming: bool
    ) -> tuple[SinkOptions, EventEncoder]:
        from pravega_connector.rows.encoding import encoder_for  # noqa: PLC0415
        from pravega_connector.rows.options.sink import SinkOptions  # noqa: PLC0415
        from pravega_connector.spark.selection import stream_options  # noqa: PLC0415

        options = stream_options(SinkOptions, raw, self.defaults)
        options.mode(streaming=streaming)
        return options, encoder_for(_arrow_columns(schema, options), options, streaming=streaming)

    def _table_writer_arguments(self, raw: Mapping[str, str], schema: StructType) -> tuple[TableSinkOptions, pa.Schema]:
        from pravega_connector.rows.options.tables import TableSinkOptions  # noqa: PLC0415
        from pravega_connector.spark.selection import table_options  # noqa: PLC0415

        options = table_options(TableSinkOptions, raw, self.defaults)
        return options, _arrow_columns(schema, options)


def _arrow_columns(schema: StructType, options: FormatOptions | None = None) -> pa.Schema:
    from pravega_connector.spark.arrow_columns import arrow_columns  # noqa: PLC0415

    return arrow_columns(schema, options)


def _check_reader(options: SourceOptions) -> None:
    """Raise ConfigError for a read that must be in the JVM: Spark asks this process only for other reads."""
    if options.raw_reader == "jvm":
        raise ConfigError(
            "raw_reader=jvm: the JVM reader is not loaded in this session: call configure(spark, jvm_reader=True) "
            "first, see its log line about the reason, or set 'raw_reader' to 'auto'"
        )
