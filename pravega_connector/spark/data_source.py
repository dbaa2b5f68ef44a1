"""``format("pravega")``: the class that Spark creates from the options of a read or a write.

Spark imports it in all its Python processes, the one that looks for data sources included. What each of them needs is
loaded when it calls: neither what reads where is only written, nor the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

import pyspark
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from pravega_connector.errors import UnsupportedModeError
from pravega_connector.spark import sink, source
from pravega_connector.spark.boundary import called_by_spark
from pravega_serde.errors import PravegaError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

# First Spark whose Python sources can limit a micro-batch and end where AvailableNow began.
_OLDEST_SPARK: Final = (4, 2)
# Options by which the servers know their user.
_CREDENTIALS: Final = frozenset({"username", "password", "token", "auth_method", "auth_token"})


@called_by_spark("__init__", "schema", "reader", "streamReader", "writer", "streamWriter")
class PravegaDataSource(DataSource):  # type: ignore[misc]
    """Reads and writes Pravega streams.

    ``spark.read.format("pravega").load("scope/stream")``; see the options of SourceOptions and SinkOptions.
    """

    #: Options of every read and write that does not give them, nor its table: those of the session.
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
        """Columns of a read without ``.schema(…)``. Raises StreamNotFoundError, ControllerUnavailableError."""
        import pyarrow as pa  # noqa: PLC0415 - as in each of these calls: see above

        from pravega_connector.spark.table_options import is_table, with_options  # noqa: PLC0415

        options = self._source_options(self.options)
        wanted = None
        if options.metadata != "Streams" and (options.infer_schema or not is_table(self.options)):
            # An error at load(), not when the first task is planned.
            streams = source.require_streams(options)
            if options.infer_schema:
                wanted = source.sampled_columns(options.client(), options, streams)
        if options.metadata is not None:
            columns = from_arrow_schema(pa.schema(source.metadata_columns(options)))
            return with_options(columns, self.options) if is_table(self.options) else columns
        ids = source.schema_ids(options)
        serializer = source.serializer_of(options, wanted, ids)
        fields = source.decoded_fields(options, serializer)
        if is_table(self.options):
            # Nullable: each query may read the table in another mode.
            columns = from_arrow_schema(pa.schema(fields))
            return with_options(source.with_schema_ids(columns, options, ids), self.options)
        fields = source.with_never_null(fields, options, serializer)
        return source.with_schema_ids(from_arrow_schema(pa.schema(fields)), options, ids)

    def reader(self, schema: StructType) -> source.PravegaBatchReader | source.MetadataReader:
        """Reader of a batch query."""
        from pravega_connector.spark.table_options import options_to_read  # noqa: PLC0415

        options = self._source_options(options_to_read(self.options, schema))
        if options.metadata is not None:
            return source.MetadataReader(options, to_arrow_schema(schema, timezone="UTC"))
        return source.batch_reader(*self._reader_arguments(schema))

    def streamReader(self, schema: StructType) -> source.PravegaStreamReader | source.BrokenStreamReader:  # noqa: N802
        """Reader of a streaming query."""
        try:
            return source.PravegaStreamReader(*self._reader_arguments(schema))
        except PravegaError as error:
            return source.BrokenStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> sink.PravegaBatchWriter:
        """Writer of a batch query. Raises ColumnTypeError, StreamNotFoundError before any task starts."""
        if overwrite:
            raise UnsupportedModeError("a stream can only be appended to: write with mode('append')")
        return sink.PravegaBatchWriter(*self._writer_arguments(schema, streaming=False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> sink.PravegaStreamWriter:  # noqa: ARG002, N802
        """Writer of a streaming query; in complete mode each micro-batch appends the whole result."""
        return sink.PravegaStreamWriter(*self._writer_arguments(schema, streaming=True))

    def _source_options(self, raw: Mapping[str, str]) -> source.SourceOptions:
        from pravega_connector.spark.options import known_names, parse_options  # noqa: PLC0415

        others = known_names(sink.SinkOptions)
        return parse_options(source.SourceOptions, self._with_defaults(raw), also_known=others)

    def _with_defaults(self, raw: Mapping[str, str]) -> dict[str, str]:
        """Options, and the defaults of what they do not give; credentials are one setting."""
        others = _CREDENTIALS if any(name.lower() in _CREDENTIALS for name in raw) else frozenset()
        return {name: value for name, value in self.defaults.items() if name not in others} | dict(raw)

    def _reader_arguments(self, schema: StructType) -> tuple[source.SourceOptions, pa.Schema, source.Decoder]:
        from pravega_connector.spark.table_options import options_to_read  # noqa: PLC0415

        options = self._source_options(options_to_read(self.options, schema))
        if options.metadata is not None:
            raise UnsupportedModeError(
                f"metadata={options.metadata} is for batch reads: write spark.read, or leave it out"
            )
        arrow = to_arrow_schema(schema, timezone="UTC")
        # An error for columns that cannot be decoded, before any task.
        return options, arrow, source.serializer_of(options, arrow, source.schema_ids_of(schema, options))

    def _writer_arguments(self, schema: StructType, *, streaming: bool) -> tuple[sink.SinkOptions, sink.EventEncoder]:
        from pravega_connector.spark.options import known_names, parse_options  # noqa: PLC0415
        from pravega_connector.spark.table_options import options_to_write  # noqa: PLC0415

        raw = self._with_defaults(options_to_write(self.options, schema))
        options = parse_options(sink.SinkOptions, raw, also_known=known_names(source.SourceOptions))
        options.mode(streaming=streaming)
        return options, sink.encoder_for(to_arrow_schema(schema, timezone="UTC"), options, streaming=streaming)
