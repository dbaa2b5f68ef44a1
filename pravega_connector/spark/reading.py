"""Reads of streams and key-value tables: from the options to the columns and the readers.

The registry schemas of a query are fixed when Spark requests the columns. Spark creates readers later, in other
processes, when the registry may have newer schemas. So the metadata of the first column has the ids of the schemas,
also in SQL tables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from pravega_connector.errors import ConfigError, UnsupportedModeError
from pravega_connector.rows import columns
from pravega_connector.rows.columns import Decoder
from pravega_connector.rows.inference import sampled_columns
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.rows.options.tables import TableSourceOptions
from pravega_connector.spark import tables
from pravega_connector.spark.arrow_columns import arrow_columns
from pravega_connector.spark.known_clusters import client_of
from pravega_connector.spark.selection import names_table, stream_options, table_in, table_options
from pravega_connector.spark.source.metadata import MetadataReader, metadata_columns
from pravega_connector.spark.source.readers import (
    BrokenStreamReader,
    PravegaBatchReader,
    PravegaStreamReader,
    batch_reader,
)
from pravega_connector.spark.source.streams import require_streams
from pravega_connector.spark.sql_tables import (
    explains_alterations,
    is_table,
    options_to_read,
    own_options,
    with_options,
)
from pravega_connector.spark.versions import spark_schema
from pravega_serde.errors import PravegaError

#: Key of a column's metadata.
_IDS: Final = "pravega.registry"


@dataclass(frozen=True, slots=True)
class Reading:
    """A read with the given options; ``defaults`` are the options of the session."""

    given: Mapping[str, str]
    defaults: Mapping[str, str]

    def schema(self) -> StructType:
        """Return the columns of a read without ``.schema(…)``. Raise what load() raises."""
        given = own_options(self.given)
        if names_table(given):
            return self._table_schema(given)
        options = stream_options(SourceOptions, given, self.defaults)
        wanted = None
        if options.metadata != "Streams" and (options.infer_schema or not is_table(given)):
            # Raise at load(), not when the first task is planned.
            streams = require_streams(options)
            if options.infer_schema:
                wanted = sampled_columns(client_of(options), options, streams)
        if options.metadata is not None:
            struct = spark_schema(pa.schema(metadata_columns(options)))
            return with_options(struct, given) if is_table(given) else struct
        ids = columns.schema_ids(options)
        serializer = columns.serializer_of(options, wanted, ids)
        fields = columns.decoded_fields(options, serializer)
        if is_table(given):
            # Nullable: each query may read the table in a different mode.
            struct = spark_schema(pa.schema(fields))
            return with_options(with_schema_ids(struct, options, ids), given)
        fields = columns.with_never_null(fields, options, serializer)
        return with_schema_ids(spark_schema(pa.schema(fields)), options, ids)

    def _table_schema(self, given: Mapping[str, str]) -> StructType:
        options = table_options(TableSourceOptions, given, self.defaults)
        if not is_table(given):
            return spark_schema(tables.table_columns(options))
        # INSERT sets all columns: with a version it would be a write on a condition.
        fields = tables.table_columns(options, with_version="version_column" in given)
        return with_options(spark_schema(pa.schema([field.with_nullable(True) for field in fields])), given)

    def reader(self, schema: StructType) -> PravegaBatchReader | MetadataReader | tables.TableReader:
        """Return the reader of a batch query."""
        with explains_alterations(schema):
            if self.table_of(schema) is not None:
                given = options_to_read(self.given, schema)
                table = table_options(TableSourceOptions, given, self.defaults)
                return tables.TableReader(table, arrow_columns(schema, table))
            options = self.source_options(schema)
            if options.metadata is not None:
                _check_reader(options)
                return MetadataReader(options, arrow_columns(schema))
            reader = batch_reader(*self.arguments(schema))
            _check_reader(options)  # last: the JVM leaves reads with other errors to Python
            return reader

    def stream_reader(self, schema: StructType) -> PravegaStreamReader | BrokenStreamReader:
        """Return the reader of a streaming query."""
        try:
            if (table := self.table_of(schema)) is not None:
                raise UnsupportedModeError(
                    f"table {table} has no changes to follow: read it with spark.read, or write the changes to a "
                    "stream, too"
                )
            arguments = self.arguments(schema)
            _check_reader(arguments[0])
            with explains_alterations(schema):
                return PravegaStreamReader(*arguments)
        except PravegaError as error:
            return BrokenStreamReader(error)

    def table_of(self, schema: StructType) -> str | None:
        """Return the key-value table that a read with these columns names; None if it reads streams."""
        return table_in(options_to_read(self.given, schema))

    def source_options(self, schema: StructType) -> SourceOptions:
        """Return the options of a read of streams with these columns; a SQL table has options in them."""
        return stream_options(SourceOptions, options_to_read(self.given, schema), self.defaults)

    def arguments(self, schema: StructType) -> tuple[SourceOptions, pa.Schema, Decoder]:
        """Return the options, the Arrow schema and the serializer of a reader. Raises the errors of a read."""
        options = self.source_options(schema)
        if options.metadata is not None:
            raise UnsupportedModeError(f"metadata={options.metadata} is for batch reads: use spark.read, or omit it")
        arrow = arrow_columns(schema, options)
        # Raise for columns that cannot be decoded before any task starts.
        return options, arrow, columns.serializer_of(options, arrow, schema_ids_of(schema, options))


def _check_reader(options: SourceOptions) -> None:
    """Raise ConfigError for a read that must be in the JVM: Spark asks this process only for other reads."""
    if options.raw_reader == "jvm":
        raise ConfigError(
            "raw_reader=jvm: the JVM reader is not loaded in this session: call configure(spark) first, see its log "
            "line about the reason, or set 'raw_reader' to 'auto'"
        )


# ---- schemas of a registry -------------------------------------------------------------------------------------------


def with_schema_ids(schema: StructType, options: SourceOptions, ids: Sequence[int] | None) -> StructType:
    """Return the schema with the ids in its metadata."""
    if ids is None:
        return schema
    first = schema[0]
    metadata = {**first.metadata, _IDS: json.dumps({**_group(options), "ids": list(ids)}, sort_keys=True)}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *schema.fields[1:]])


def schema_ids_of(schema: StructType, options: SourceOptions) -> tuple[int, ...] | None:
    """The ids that a schema carries; None if it carries none, or the ids of another group."""
    if not options.from_registry:
        return None
    for field in schema:
        carried = json.loads(field.metadata.get(_IDS, "{}"))
        if carried and {key: value for key, value in carried.items() if key != "ids"} == _group(options):
            return tuple(carried["ids"])
    return None


def _group(options: SourceOptions) -> dict[str, str | None]:
    return {"group": options.registry_group(), "namespace": options.namespace, "type": options.registry_type}
