"""Reader of a key-value table in a batch query: a task for each segment of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pravega_connector.core.values import TableConfig
from pravega_connector.rows.options.tables import TableSourceOptions
from pravega_connector.spark.boundary import called_by_spark
from pravega_connector.spark.known_clusters import client_of, note_answer
from pravega_connector.spark.pickling import Exchanged
from pravega_connector.spark.tables.columns import TableRows, value_decoder
from pravega_connector.spark.versions import DataSourceReader, InputPartition
from pravega_connector.tables.columns import read_blocks
from pravega_connector.tables.requests import SegmentRequests


@dataclass(frozen=True)
class TablePartition(Exchanged, InputPartition):  # type: ignore[misc]
    """Segment of a table, which one task reads."""

    segment_id: int


@called_by_spark("partitions", "read")
class TableReader(Exchanged, DataSourceReader):  # type: ignore[misc]
    """Reader of the entries of a table. An entry that changes during the read may have its old or its new value."""

    def __init__(self, options: TableSourceOptions, schema: pa.Schema) -> None:
        """Set up the reader; ``schema`` has the columns of the rows.

        Raises TableNotFoundError, and ConfigError for columns that the table does not have.
        """
        self.options, self.schema = options, schema
        self.config: TableConfig = client_of(options).controller.table_config(options.table_name())
        self.decoder = value_decoder(options, self.config, schema)
        self._rows()  # raise for columns that cannot be built before any task starts

    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for each segment. Raises TableNotFoundError, ControllerUnavailableError."""
        client = client_of(self.options)
        segments = client.controller.table_segments(self.options.table_name())
        note_answer(client.config)
        return [TablePartition(each.id) for each in segments]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a segment, in the order of their keys' bytes."""
        assert isinstance(partition, TablePartition)
        client = client_of(self.options, service=True)
        rows = self._rows()
        requests = SegmentRequests(client.stores, self.options.table_name())
        for block in read_blocks(requests, partition.segment_id, self.config):
            yield from rows.build(block, partition.segment_id)

    def _rows(self) -> TableRows:
        serializer = None if self.decoder is None else self.decoder.get()
        return TableRows(self.options.table_name(), self.config, self.schema, self.options, serializer)
