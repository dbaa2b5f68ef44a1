"""``format("pravega")``: the class that Spark creates from the options of a read or a write.

Options of tables
-----------------
Options of SQL tables travel in the schema, because Spark drops them.

``CREATE TABLE t USING pravega OPTIONS (…)`` hands its options to the instance that gives the schema, but the instances
that read and write get none (Spark 4.2 and 4.3: ``PythonDataSourceV2.getTable`` keeps only the schema). The schema
itself is stored with the table and comes back each time, so the options travel in the metadata of its columns.

Whose options a writer finds there is not certain. Spark fits a query to a table's columns, metadata included, unless
names and types are the same already; then it hands over the query's own columns, and with them the options of the table
that the query *reads*. So columns of text are VARCHAR in the table, of a length that differs from table to table and
that no text reaches: no query has that very type, and Spark always fits. What has been fitted has lost the mark by
which Spark knows a VARCHAR; what still has it comes from elsewhere, and its options are not used. Nor are those of a
table without any text, where nothing tells. The options are then given with the write: ``INSERT INTO t WITH (…) …``.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import fields
from typing import ClassVar, Final

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType, VarcharType

from pravega_serde import PravegaError

from .errors import ConfigError, UnsupportedModeError
from .options import CommonOptions, known_names, parse_options
from .sink import EventEncoder, PravegaBatchWriter, PravegaStreamWriter, SinkOptions, encoder_for
from .source import (
    BrokenStreamReader,
    Decoder,
    MetadataReader,
    PravegaBatchReader,
    PravegaStreamReader,
    SourceOptions,
    batch_reader,
    decoded_fields,
    metadata_columns,
    require_streams,
    sampled_columns,
    schema_ids,
    schema_ids_of,
    serializer_of,
    with_never_null,
    with_schema_ids,
)
from .spark_calls import in_one_line

__all__ = ["PravegaDataSource"]

# First Spark whose Python sources can limit a micro-batch and end where AvailableNow began.
_OLDEST_SPARK: Final = (4, 2)
_SOURCE_NAMES: Final = known_names(SourceOptions)
_SINK_NAMES: Final = known_names(SinkOptions)
# Options by which the servers know their user.
_CREDENTIALS: Final = frozenset({"username", "password", "token", "auth_method", "auth_token"})


@in_one_line("__init__", "schema", "reader", "streamReader", "writer", "streamWriter")
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
        options = self._source_options(self.options)
        wanted = None
        if options.metadata != "Streams" and (options.infer_schema or not is_table(self.options)):
            # An error at load(), not when the first task is planned.
            streams = require_streams(options)
            if options.infer_schema:
                wanted = sampled_columns(options.client(), options, streams)
        if options.metadata is not None:
            columns = from_arrow_schema(pa.schema(metadata_columns(options)))
            return with_options(columns, self.options) if is_table(self.options) else columns
        ids = schema_ids(options)
        serializer = serializer_of(options, wanted, ids)
        fields = decoded_fields(options, serializer)
        if is_table(self.options):
            # Nullable: each query may read the table in another mode.
            return with_options(with_schema_ids(from_arrow_schema(pa.schema(fields)), options, ids), self.options)
        fields = with_never_null(fields, options, serializer)
        return with_schema_ids(from_arrow_schema(pa.schema(fields)), options, ids)

    def reader(self, schema: StructType) -> PravegaBatchReader | MetadataReader:
        """Reader of a batch query."""
        options = self._source_options(options_to_read(self.options, schema))
        if options.metadata is not None:
            return MetadataReader(options, to_arrow_schema(schema, timezone="UTC"))
        return batch_reader(*self._reader_arguments(schema))

    def streamReader(self, schema: StructType) -> PravegaStreamReader | BrokenStreamReader:  # noqa: N802
        """Reader of a streaming query."""
        try:
            return PravegaStreamReader(*self._reader_arguments(schema))
        except PravegaError as error:
            return BrokenStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> PravegaBatchWriter:
        """Writer of a batch query. Raises ColumnTypeError, StreamNotFoundError before any task starts."""
        if overwrite:
            raise UnsupportedModeError("a stream can only be appended to: write with mode('append')")
        return PravegaBatchWriter(*self._writer_arguments(schema, streaming=False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> PravegaStreamWriter:  # noqa: ARG002, N802
        """Writer of a streaming query; in complete mode each micro-batch appends the whole result."""
        return PravegaStreamWriter(*self._writer_arguments(schema, streaming=True))

    def _source_options(self, raw: Mapping[str, str]) -> SourceOptions:
        return parse_options(SourceOptions, self._with_defaults(raw), also_known=_SINK_NAMES)

    def _with_defaults(self, raw: Mapping[str, str]) -> dict[str, str]:
        """Options, and the defaults of what they do not give; credentials are one setting."""
        others = _CREDENTIALS if any(name.lower() in _CREDENTIALS for name in raw) else frozenset()
        return {name: value for name, value in self.defaults.items() if name not in others} | dict(raw)

    def _reader_arguments(self, schema: StructType) -> tuple[SourceOptions, pa.Schema, Decoder]:
        options = self._source_options(options_to_read(self.options, schema))
        if options.metadata is not None:
            raise UnsupportedModeError(
                f"metadata={options.metadata} is for batch reads: write spark.read, or leave it out"
            )
        arrow = to_arrow_schema(schema, timezone="UTC")
        # An error for columns that cannot be decoded, before any task.
        return options, arrow, serializer_of(options, arrow, schema_ids_of(schema, options))

    def _writer_arguments(self, schema: StructType, *, streaming: bool) -> tuple[SinkOptions, EventEncoder]:
        raw = options_to_write(self.options, schema)
        options = parse_options(SinkOptions, self._with_defaults(raw), also_known=_SOURCE_NAMES)
        options.mode(streaming=streaming)
        return options, encoder_for(to_arrow_schema(schema, timezone="UTC"), options, streaming=streaming)


# ---- options of tables ----

_KEY: Final = "pravega.options"
# Schemas are shown and logged: secrets stay out of them and come from the environment of the processes.
_SECRET: Final = frozenset(
    {"username", "registry_username", "auth_method"}
    | {f.name for f in fields(CommonOptions) if f.metadata.get("secret")}
)
_SPARKS_OWN: Final = frozenset({"provider", "owner", "path"})
# Spark's own options of a write; one with only these was given none.
_OF_QUERIES: Final = frozenset({"checkpointlocation", "queryname"})
# Metadata by which Spark marks a column of strings as VARCHAR (CharVarcharUtils.scala).
_VARCHAR: Final = "__CHAR_VARCHAR_TYPE_STRING"
# Lengths of VARCHAR: longer than any event, and within Spark's int.
_SHORTEST: Final = 1_000_000_000


def is_table(options: Mapping[str, str]) -> bool:
    """Whether the options are those of a table: Spark adds the provider to these."""
    return "provider" in options


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Put the options into the metadata of the columns."""
    kept = {k: v for k, v in options.items() if k not in _SECRET | _SPARKS_OWN and not k.startswith("option.")}
    carried = json.dumps(kept, sort_keys=True)
    text = VarcharType(_SHORTEST + zlib.crc32(carried.encode()) % _SHORTEST)
    return StructType(
        [
            StructField(
                f.name,
                text if isinstance(f.dataType, StringType) else f.dataType,
                f.nullable,
                {**f.metadata, _KEY: carried},
            )
            for f in schema
        ]
    )


def options_to_read(options: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Effective options of a read: those of the table's schema, overridden by those given.

    A read that names its stream may have the schema of a table: then only the given options count.

    Raises ConfigError if there are neither: the table was created with a list of columns.
    """
    carried = None if _names_stream(options) else next((f.metadata[_KEY] for f in schema if _KEY in f.metadata), None)
    given = {k: v for k, v in options.items() if carried is None or k != "path"}
    if carried is None and not given:
        raise ConfigError(
            "the options of this table are lost: Spark keeps them only for tables that are created without a list of "
            "columns; leave the columns out of CREATE TABLE, or use CREATE TEMPORARY VIEW"
        )
    return {**json.loads(carried or "{}"), **given}


def options_to_write(options: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Effective options of a write: those in the schema if it is certainly the target's, overridden by those given.

    Raises ConfigError if there are neither.
    """
    names_stream = "stream" in options or "path" in options
    if not names_stream and _is_fitted(schema):
        return options_to_read(options, schema)
    if not options.keys() - _OF_QUERIES and not names_stream:
        raise ConfigError(
            "the write names no stream, such as start('scope/stream') or save('scope/stream'); if it is to a table, "
            "the options of this table are lost: Spark does not tell the writer which table is meant in CREATE TABLE … "
            "AS SELECT (create the table first, then INSERT), in a streaming query's toTable, if the query reads the "
            "table that it writes to, if that has no column of text, or was created with a list of columns; give them "
            "with the write (INSERT INTO t WITH (controller = '…', stream = '…', …) …, or options of writeStream)"
        )
    return dict(options)


def _names_stream(options: Mapping[str, str]) -> bool:
    """Whether a read names its stream. A table's path is that of its files in Spark's catalog."""
    path = options.get("path", "")
    return "stream" in options or (path != "" and ":" not in path and not path.startswith("/"))


def _is_fitted(schema: StructType) -> bool:
    """Whether Spark has fitted the columns to a table's."""
    one = len({f.metadata.get(_KEY) for f in schema}) == 1
    has_text = any(isinstance(f.dataType, StringType) and _KEY in f.metadata for f in schema)
    return one and has_text and not any(_VARCHAR in f.metadata for f in schema)
