"""Metadata of streams as rows: the Scala connector's ``metadata=StreamInfo`` and ``metadata=Streams``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import ConfigError
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.boundary import called_by_spark
from pravega_connector.spark.known_clusters import client_of
from pravega_connector.spark.pickling import Exchanged
from pravega_connector.spark.versions import DataSourceReader, InputPartition

# The Scala connector's columns, in its order.
_COLUMNS: Final = {
    "StreamInfo": ("head_stream_cut", "tail_stream_cut"),
    "Streams": ("scope_name", "stream_name"),
}


def metadata_columns(options: SourceOptions) -> list[pa.Field]:
    """Return the columns of a read with option ``metadata``; all of them are text."""
    assert options.metadata is not None
    return [pa.field(name, pa.string(), nullable=False) for name in _COLUMNS[options.metadata]]


@dataclass(frozen=True)
class RowsPartition(Exchanged, InputPartition):  # type: ignore[misc]
    """Rows that the driver has found."""

    rows: tuple[tuple[str, str], ...]


@called_by_spark("partitions")
class MetadataReader(Exchanged, DataSourceReader):  # type: ignore[misc]
    """Reader of the stream cuts of a stream, or of the stream names of a scope, at the time of planning."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        """Set up the reader; ``schema`` is the schema of the rows. Raises ConfigError if the option has another one."""
        names = [field.name for field in metadata_columns(options)]
        if schema.names != names or any(field.type != pa.string() for field in schema):
            raise ConfigError(
                f"metadata={options.metadata} has the columns {', '.join(names)}, all STRING: omit .schema(…)"
            )
        _ = options.config  # raise for invalid settings here, before Spark pickles the reader
        self.options, self.schema = options, schema

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition with all rows.

        Raises StreamNotFoundError, ScopeNotFoundError, ControllerUnavailableError.
        """
        return [RowsPartition(tuple(_rows(client_of(self.options), self.options)))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        assert isinstance(partition, RowsPartition)
        columns = list(zip(*partition.rows, strict=True)) or [()] * len(self.schema)
        yield pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=self.schema)


def _rows(client: PravegaClient, options: SourceOptions) -> Iterator[tuple[str, str]]:
    if options.metadata == "StreamInfo":
        stream = client.require_stream(options.stream_name())
        yield client.head(stream).to_text(), client.tail(stream).to_text()
        return
    for scope in options.scopes_to_list():
        for name in client.controller.list_streams(scope):
            yield name.scope, name.stream
