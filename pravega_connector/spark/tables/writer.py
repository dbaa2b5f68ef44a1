"""Writers of a key-value table that Spark calls: of batch queries and of streaming queries."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.core.values import TableConfig
from pravega_connector.errors import ScopeNotFoundError, TableKeyOrderError
from pravega_connector.rows.options.tables import TableSinkOptions
from pravega_connector.spark.boundary import called_by_spark
from pravega_connector.spark.commit_messages import Messages, check_tasks_ran
from pravega_connector.spark.known_clusters import client_of, note_answer
from pravega_connector.spark.pickling import Exchanged
from pravega_connector.spark.tables.changes import change_encoder
from pravega_connector.spark.tables.upsert import Upsert
from pravega_connector.spark.tables.winning_changes import Changes
from pravega_connector.spark.versions import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pravega_connector.tables.columns import KeySegments, key_hashes, key_rows
from pravega_connector.tables.requests import SegmentRequests

#: Most keys of a task that are compared with the keys of other tasks: 8 MB of hashes.
MAX_COMPARED: Final = 1_000_000

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class TaskUpserted(Exchanged, WriterCommitMessage):  # type: ignore[misc]
    """Message of one task: hashes of the keys that it has changed, and of those that it has removed."""

    changed: bytes
    removed: bytes


class _Hashes:
    """Hashes of keys, each once, as 8 bytes."""

    def __init__(self, length: int) -> None:
        self._length, self._count = length, 0
        self._found: list[npt.NDArray[np.uint64]] = [np.empty(0, np.uint64)]

    def add(self, keys: pa.BinaryArray) -> None:
        """Include keys, while there are less than ``MAX_COMPARED``."""
        if not self.is_full:
            self._found.append(key_hashes(key_rows(keys, self._length)))
            self._count += len(keys)

    @property
    def is_full(self) -> bool:
        """True if some keys may not be included."""
        return self._count >= MAX_COMPARED

    def to_bytes(self) -> bytes:
        """Return the hashes."""
        return np.unique(np.concatenate(self._found)).tobytes()


@called_by_spark("write")
class _TableWriter(Exchanged):
    """Base class of both writers: rows in, durable entries out."""

    def __init__(self, options: TableSinkOptions, schema: pa.Schema, *, streaming: bool) -> None:
        self.options = options
        client = client_of(options)
        self.config = _prepared(client, options)
        self.segments = tuple(client.controller.table_segments(options.table_name()))
        self.encoder = change_encoder(schema, options, self.config, streaming=streaming)
        note_answer(client.config)  # for the process that plans the next batch

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Set and remove the entries of the rows of one task; on return they are durable."""
        client = client_of(self.options, service=True)
        requests = SegmentRequests(client.stores, self.options.table_name())
        context = TaskContext.get()
        repeated = context is not None and context.attemptNumber() > 0
        upsert = Upsert(requests, KeySegments(self.segments), self.encoder, repeated=repeated)
        length = self.config.primary_key + self.config.secondary_key
        changed, removed = _Hashes(length), _Hashes(length)
        for batch in iterator:
            changes = self.encoder.encode(batch)
            upsert.apply(changes)
            changed.add(changes.keys)
            removed.add(_removed(changes))
        if changed.is_full and self.encoder.version is None:
            _log.warning(
                "a task has written more than %d keys of table %s: the others are not compared with the keys of other "
                "tasks",
                MAX_COMPARED,
                self.options.table_name(),
            )
        return TaskUpserted(changed.to_bytes(), removed.to_bytes())

    def _commit(self, messages: Messages, batch: str) -> None:
        """Check that no key was changed by several tasks in an unknown order. The entries are already durable.

        With an order, tasks may change a key in any sequence, unless one of them removes it. Raises TableKeyOrderError.
        """
        check_tasks_ran(messages)
        told = [message for message in messages if isinstance(message, TaskUpserted)]
        hashes = np.concatenate([np.empty(0, np.uint64), *(np.frombuffer(each.changed, np.uint64) for each in told)])
        found, counts = np.unique(hashes, return_counts=True)
        several = found[counts > 1]
        if self.encoder.version is not None:
            return  # each row had its own condition
        if self.encoder.order is not None:
            removed = [np.empty(0, np.uint64), *(np.frombuffer(each.removed, np.uint64) for each in told)]
            several = np.intersect1d(several, np.concatenate(removed))
        if not len(several):
            return
        what = (
            f"several tasks of {batch} have changed the same keys of table {self.options.table_name()} "
            f"({len(several)} keys)"
        )
        parted = f"repartition the rows by {self.encoder.keys[0]!r} before the write, and write them again"
        if self.encoder.order is not None:
            raise TableKeyOrderError(
                f"{what} and one of them has removed them, so whether they exist is undefined: {parted}"
            )
        raise TableKeyOrderError(f"{what}, and any of their rows may have won: set option 'order_column', or {parted}")


def _removed(changes: Changes) -> pa.BinaryArray:
    return changes.keys.filter(changes.values.is_null())


@called_by_spark("commit", "abort")
class TableBatchWriter(_TableWriter, DataSourceArrowWriter):  # type: ignore[misc]
    """Writer that sets the entries of a table to the rows of a DataFrame."""

    def __init__(self, options: TableSinkOptions, schema: pa.Schema) -> None:
        super().__init__(options, schema, streaming=False)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Check the keys of all tasks. The entries are already durable. Raises TableKeyOrderError."""
        self._commit(messages, "the write")

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing: entries that were written before the failure stay."""


@called_by_spark("commit", "abort")
class TableStreamWriter(_TableWriter, DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Writer that sets the entries of a table to the rows of each micro-batch."""

    def __init__(self, options: TableSinkOptions, schema: pa.Schema) -> None:
        super().__init__(options, schema, streaming=True)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Check the keys of all tasks. The entries are already durable. Raises TableKeyOrderError."""
        self._commit(messages, f"micro-batch {batchId}")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: the next attempt sets the same entries again."""


def _prepared(client: PravegaClient, options: TableSinkOptions) -> TableConfig:
    """Return the configuration of the table, and create it if the options allow it.

    Raises ScopeNotFoundError, TableNotFoundError.
    """
    controller, name = client.controller, options.table_name()
    if options.allow_create_scope:
        controller.create_scope(name.scope)
    elif options.allow_create_table and not controller.scope_exists(name.scope):
        raise ScopeNotFoundError(f"scope {name.scope!r} does not exist; create it, or set allow_create_scope")
    if options.allow_create_table:
        controller.create_table(name, options.new_table())
    return controller.table_config(name)
