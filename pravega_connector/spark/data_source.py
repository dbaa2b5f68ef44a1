"""``format("pravega")``: the class that Spark creates from the options of a read or a write.

Spark imports this module in all its Python processes, also in the process that discovers data sources. So each method
imports its own dependencies: a write does not load the source, and a read does not load the sink.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

import pyspark
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from pravega_connector.errors import ConfigError, UnsupportedModeError
from pravega_connector.spark.boundary import called_by_spark
from pravega_serde.errors import PravegaError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from pravega_connector.spark.options.sink import SinkOptions
    from pravega_connector.spark.options.source import SourceOptions
    from pravega_connector.spark.sink.encoding import EventEncoder
    from pravega_connector.spark.sink.writers import PravegaBatchWriter, PravegaStreamWriter
    from pravega_connector.spark.source.columns import Decoder
    from pravega_connector.spark.source.metadata import MetadataReader
    from pravega_connector.spark.source.readers import BrokenStreamReader, PravegaBatchReader, PravegaStreamReader

# First Spark version whose Python sources can limit a micro-batch and support AvailableNow.
_OLDEST_SPARK: Final = (4, 2)
# Options with the credentials of the user.
_CREDENTIALS: Final = frozenset({"username", "password", "token", "auth_method", "auth_token"})


@called_by_spark("__init__", "schema", "reader", "streamReader", "writer", "streamWriter")
class PravegaDataSource(DataSource):  # type: ignore[misc]
    """Data source that reads and writes Pravega streams.

    ``spark.read.format("pravega").load("scope/stream")``; see SourceOptions and SinkOptions for the options.
    """

    #: Options of the session: they apply to every read and write, unless it or its table sets them.
    defaults: ClassVar[Mapping[str, str]] = {}

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
        """Return the columns of a read without ``.schema(…)``.

        Raises StreamNotFoundError, ControllerUnavailableError.
        """
        import pyarrow as pa  # noqa: PLC0415 - each method imports its own dependencies

        from pravega_connector.spark.options.sql_tables import is_table, with_options  # noqa: PLC0415
        from pravega_connector.spark.source import columns  # noqa: PLC0415

        options = self._source_options(self.options)
        wanted = None
        if options.metadata != "Streams" and (options.infer_schema or not is_table(self.options)):
            from pravega_connector.spark.source.streams import require_streams  # noqa: PLC0415

            # Raise at load(), not when the first task is planned.
            streams = require_streams(options)
            if options.infer_schema:
                from pravega_connector.spark.source.inference import sampled_columns  # noqa: PLC0415

                wanted = sampled_columns(options.client(), options, streams)
        if options.metadata is not None:
            from pravega_connector.spark.source.metadata import metadata_columns  # noqa: PLC0415

            struct = from_arrow_schema(pa.schema(metadata_columns(options)))
            return with_options(struct, self.options) if is_table(self.options) else struct
        ids = columns.schema_ids(options)
        serializer = columns.serializer_of(options, wanted, ids)
        fields = columns.decoded_fields(options, serializer)
        if is_table(self.options):
            # Nullable: each query may read the table in a different mode.
            struct = from_arrow_schema(pa.schema(fields))
            return with_options(columns.with_schema_ids(struct, options, ids), self.options)
        fields = columns.with_never_null(fields, options, serializer)
        return columns.with_schema_ids(from_arrow_schema(pa.schema(fields)), options, ids)

    def reader(self, schema: StructType) -> PravegaBatchReader | MetadataReader:
        """Return the reader of a batch query."""
        options = self.source_options(schema)
        _check_reader(options)
        if options.metadata is not None:
            from pravega_connector.spark.source.metadata import MetadataReader  # noqa: PLC0415

            return MetadataReader(options, to_arrow_schema(schema, timezone="UTC"))
        from pravega_connector.spark.source.readers import batch_reader  # noqa: PLC0415

        return batch_reader(*self.reader_arguments(schema))

    def streamReader(self, schema: StructType) -> PravegaStreamReader | BrokenStreamReader:  # noqa: N802
        """Return the reader of a streaming query."""
        from pravega_connector.spark.source.readers import BrokenStreamReader, PravegaStreamReader  # noqa: PLC0415

        try:
            arguments = self.reader_arguments(schema)
            _check_reader(arguments[0])
            return PravegaStreamReader(*arguments)
        except PravegaError as error:
            return BrokenStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> PravegaBatchWriter:
        """Return the writer of a batch query. Raises ColumnTypeError, StreamNotFoundError before any task starts."""
        if overwrite:
            raise UnsupportedModeError("a stream supports only appends: write with mode('append')")
        from pravega_connector.spark.sink.writers import PravegaBatchWriter  # noqa: PLC0415

        return PravegaBatchWriter(*self._writer_arguments(schema, streaming=False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> PravegaStreamWriter:  # noqa: ARG002, N802
        """Return the writer of a streaming query. In complete mode, each micro-batch appends the whole result."""
        from pravega_connector.spark.sink.writers import PravegaStreamWriter  # noqa: PLC0415

        return PravegaStreamWriter(*self._writer_arguments(schema, streaming=True))

    def _source_options(self, raw: Mapping[str, str]) -> SourceOptions:
        from pravega_connector.spark.options import known_names, parse_options  # noqa: PLC0415
        from pravega_connector.spark.options.sink import SinkOptions  # noqa: PLC0415
        from pravega_connector.spark.options.source import SourceOptions  # noqa: PLC0415

        others = known_names(SinkOptions)
        return parse_options(SourceOptions, self._with_defaults(raw), also_known=others)

    def _with_defaults(self, raw: Mapping[str, str]) -> dict[str, str]:
        """Return the options, with defaults for the missing ones; the credentials count as one setting."""
        others = _CREDENTIALS if any(name.lower() in _CREDENTIALS for name in raw) else frozenset()
        return {name: value for name, value in self.defaults.items() if name not in others} | dict(raw)

    def source_options(self, schema: StructType) -> SourceOptions:
        """Return the options of a read with these columns; a table has options in them."""
        from pravega_connector.spark.options.sql_tables import options_to_read  # noqa: PLC0415

        return self._source_options(options_to_read(self.options, schema))

    def reader_arguments(self, schema: StructType) -> tuple[SourceOptions, pa.Schema, Decoder]:
        """Return the options, the Arrow schema and the serializer of a reader. Raises the errors of a read."""
        options = self.source_options(schema)
        if options.metadata is not None:
            raise UnsupportedModeError(f"metadata={options.metadata} is for batch reads: use spark.read, or omit it")
        from pravega_connector.spark.source.columns import schema_ids_of, serializer_of  # noqa: PLC0415

        arrow = to_arrow_schema(schema, timezone="UTC")
        # Raise for columns that cannot be decoded before any task starts.
        return options, arrow, serializer_of(options, arrow, schema_ids_of(schema, options))

    def _writer_arguments(self, schema: StructType, *, streaming: bool) -> tuple[SinkOptions, EventEncoder]:
        from pravega_connector.spark.options import known_names, parse_options  # noqa: PLC0415
        from pravega_connector.spark.options.sink import SinkOptions  # noqa: PLC0415
        from pravega_connector.spark.options.source import SourceOptions  # noqa: PLC0415
        from pravega_connector.spark.options.sql_tables import options_to_write  # noqa: PLC0415
        from pravega_connector.spark.sink.encoding import encoder_for  # noqa: PLC0415

        raw = self._with_defaults(options_to_write(self.options, schema))
        options = parse_options(SinkOptions, raw, also_known=known_names(SourceOptions))
        options.mode(streaming=streaming)
        return options, encoder_for(to_arrow_schema(schema, timezone="UTC"), options, streaming=streaming)


def _check_reader(options: SourceOptions) -> None:
    """Raise ConfigError for a read that must be in the JVM: Spark asks this process only for other reads."""
    if options.raw_reader == "jvm":
        raise ConfigError(
            "raw_reader=jvm: the JVM reader is not loaded in this session: call configure(spark, jvm_reader=True) "
            "first, see its log line about the reason, or set 'raw_reader' to 'auto'"
        )
