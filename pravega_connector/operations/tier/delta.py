"""Delta tables. The position of a stream is in the metadata of a commit, and its number in a transaction identifier.

Delta refuses a commit with a transaction identifier (``txn``) that another commit has changed since the table was
loaded. So of two runs that write the same stream, the second one adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.exceptions import TableNotFoundError as NoDeltaTableError

from pravega_connector.errors import ColumnTypeError, LakeTableError
from pravega_connector.operations.tier.lake_table import (
    ConflictError,
    TierPosition,
    library_errors,
    not_plain,
    stream_of,
)
from pravega_connector.operations.tier.merge import DELETED, TierMerge

# Key of a commit's metadata.
_POSITION: Final = "pravega.tier"
# Commits in which a position is searched first: each is a file of the log.
_RECENT: Final = 20
# Commits after which the table is loaded again. Until then, deltalake keeps the log, and reads it for each commit.
_LOADED_FOR: Final = 50
# Features of readers that need nothing but the files.
_PLAIN: Final = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}


class DeltaLakeTable:
    """Delta table at a path or URI; ``storage`` has the options of its object store."""

    def __init__(self, uri: str, storage: Mapping[str, str]) -> None:
        self._uri, self._storage = uri, dict(storage) or None
        self._table: DeltaTable | None = None
        self._commits = 0  # since the table was loaded

    def __str__(self) -> str:
        return f"delta:{self._uri}"

    def schema(self) -> pa.Schema | None:
        """Return the columns of the loaded table, or None if it did not exist."""
        return None if self._table is None else pa.schema(self._table.schema().to_arrow())

    def create(self, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        """Create the table, unless another program has created it in the meantime."""
        with library_errors(self):
            DeltaTable.create(
                self._uri, schema, mode="ignore", partition_by=list(partition_by), storage_options=self._storage
            )

    def position(self, stream: str) -> TierPosition | None:
        """Load the table, and return the position of a stream. Raises LakeTableError if its commit is not kept."""
        table = self._load()
        if table is None:
            return None
        with library_errors(self):
            version = table.transaction_version(_app_id(stream))
        if version is None:
            return None
        for count in (_RECENT, None):
            for _, position in self._positions(stream, count):
                if position.version == version:  # the history may have later commits than the loaded table
                    return position
        raise LakeTableError(
            f"{self}: the log of the table has no longer the commit with position {version} of stream {stream}; "
            "write into a new table from the stream cut that you want"
        )

    def commit(self, rows: pa.Table, position: TierPosition) -> None:
        """Add the rows and the position in one commit."""
        table = self._loaded_for(position)
        known = pa.schema(table.schema().to_arrow())
        self._check(rows, known)
        with _committing(self):
            write_deltalake(
                table,
                rows,
                mode="append",
                schema_mode=None if known.remove_metadata() == rows.schema.remove_metadata() else "merge",
                commit_properties=_properties(position),
            )

    def merge(self, rows: pa.Table, position: TierPosition, merge: TierMerge) -> None:
        """Change the rows of keys and set the position in one commit."""
        table = self._loaded_for(position)
        known = pa.schema(table.schema().to_arrow())
        marker = [] if merge.keep_deleted else [DELETED]
        self._check(rows.drop_columns(marker), known)
        for field in known:
            if field.name not in rows.schema.names:
                rows = rows.append_column(field, pa.nulls(len(rows), field.type))
        before = table.version()
        # Keys without NaN or null are equal or not. Rows that another program has added may have no order.
        is_same = " AND ".join(f"s.{_quoted(name)} = t.{_quoted(name)}" for name in merge.key)
        is_last = "TRUE"
        if merge.order is not None:
            order = _quoted(merge.order)
            is_last = f"(t.{order} IS NULL OR s.{order} >= t.{order})"
        with _committing(self):
            changes = table.merge(
                rows,
                is_same,
                source_alias="s",
                target_alias="t",
                merge_schema=not set(rows.schema.names) - {*marker} <= set(known.names)
                or any(rows.schema.field(field.name).type != field.type for field in known),
                commit_properties=_properties(position),
            )
            if merge.keep_deleted:
                changes.when_matched_update_all(is_last).when_not_matched_insert_all()
            else:
                deleted = f"s.{_quoted(DELETED)}"
                changes.when_matched_delete(f"{deleted} AND {is_last}")
                changes.when_matched_update_all(f"NOT {deleted} AND {is_last}", except_cols=[DELETED])
                changes.when_not_matched_insert_all(f"NOT {deleted}", except_cols=[DELETED])
            changes.execute()
            if table.version() == before:  # a merge that changes no row is not committed
                write_deltalake(
                    table,
                    pa.schema(table.schema().to_arrow()).empty_table(),
                    mode="append",
                    commit_properties=_properties(position),
                )

    def _check(self, rows: pa.Table, known: pa.Schema) -> None:
        """Raise ColumnTypeError for values that the library would change to write them."""
        for field in rows.schema:
            at = known.get_field_index(field.name)
            if at >= 0 and (misfit := _misfit(known.field(at).type, field.type, field.name)) is not None:
                raise ColumnTypeError(
                    f"{self}: column {misfit} in the events, and the table would change its values: write into a new "
                    "table"
                )
        for name in self._loaded().metadata().partition_columns:
            column = rows.column(name) if name in rows.schema.names else pa.nulls(0)
            if pa.types.is_string(column.type) and pc.any(pc.equal(column, "")).as_py():
                raise ColumnTypeError(
                    f"{self}: partition column {name!r} has an empty text, which Delta stores as null: choose other "
                    "partition columns for a new table"
                )

    def positions(self, stream: str) -> Iterator[tuple[int, TierPosition]]:
        """Yield the commits in the log of the table, the newest first."""
        return self._positions(stream, None)

    def _positions(self, stream: str, count: int | None) -> Iterator[tuple[int, TierPosition]]:
        """Yield the commits of a stream among the last ``count`` ones of all programs."""
        table = self._loaded()
        with library_errors(self):
            history: list[dict[str, Any]] = table.history(count)
        for entry in history:
            if (text := entry.get(_POSITION)) is not None:
                position = TierPosition.from_text(text, str(self))
                if stream_of(position) == stream:
                    yield int(entry["timestamp"]), position

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the loaded table."""
        table = self._loaded()
        with library_errors(self):
            yield from table.to_pyarrow_dataset().to_batches()

    def files(self) -> list[str]:
        """Return the files of the loaded table."""
        table = self._loaded()
        if more := set(table.protocol().reader_features or ()) - _PLAIN:
            raise not_plain(self, f"table feature {min(more)}")
        # Tables of reader version 2 have it without a list of features.
        if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
            raise not_plain(self, "column mapping")
        return list(table.file_uris())

    @property
    def root(self) -> str | None:
        """Folder of the table."""
        return self._uri

    def _loaded_for(self, position: TierPosition) -> DeltaTable:
        """Return the table for a commit. Raises ConflictError if it has another position than the one before."""
        self._commits += 1
        if self._commits > _LOADED_FOR:
            table = self._load()
            with library_errors(self):
                found = None if table is None else table.transaction_version(_app_id(stream_of(position)))
                if (found or 0) != position.version - 1:
                    raise ConflictError
        return self._loaded()

    def _loaded(self) -> DeltaTable:
        assert self._table is not None, "load the position first"
        return self._table

    def _load(self) -> DeltaTable | None:
        self._commits = 0
        with library_errors(self):
            try:
                self._table = DeltaTable(self._uri, storage_options=self._storage)
            except NoDeltaTableError:
                self._table = None
        return self._table


def _misfit(known: pa.DataType, found: pa.DataType, path: str) -> str | None:
    """Return the path and types of a value of the events that the table's type does not hold, or None."""
    if pa.types.is_struct(known) and pa.types.is_struct(found):
        fields = ((known.field(each.name).type, each) for each in found if known.get_field_index(each.name) >= 0)
        parts = (_misfit(kind, each.type, f"{path}.{each.name}") for kind, each in fields)
        return next((part for part in parts if part is not None), None)
    if pa.types.is_list(known) and pa.types.is_list(found):
        return _misfit(known.value_type, found.value_type, f"{path}.element")
    if pa.types.is_map(known) and pa.types.is_map(found):
        keys = _misfit(known.key_type, found.key_type, f"{path}.key")
        return keys or _misfit(known.item_type, found.item_type, f"{path}.value")
    widens = any(
        is_kind(known) and is_kind(found) and known.bit_width >= found.bit_width
        for is_kind in (pa.types.is_signed_integer, pa.types.is_floating)
    )
    is_bytes = pa.types.is_binary(known) and (pa.types.is_binary(found) or pa.types.is_fixed_size_binary(found))
    return None if known == found or widens or is_bytes else f"{path!r} is {known} in the table and {found}"


@contextmanager
def _committing(table: DeltaLakeTable) -> Iterator[None]:
    """Raise ConflictError for a commit that another one has made impossible."""
    with library_errors(table):
        try:
            yield
        except CommitFailedError as error:
            raise ConflictError from error


def _properties(position: TierPosition) -> CommitProperties:
    return CommitProperties(
        custom_metadata={_POSITION: position.to_text()},
        app_transactions=[Transaction(_app_id(stream_of(position)), position.version)],
    )


def _quoted(name: str) -> str:
    """Return the name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _app_id(stream: str) -> str:
    return f"pravega:{stream}"
