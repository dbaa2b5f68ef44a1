"""Delta tables. The position of a stream is in the metadata of a commit, and its number in a transaction identifier.

Delta refuses a commit with a transaction identifier (``txn``) that another commit has changed since the table was
loaded. So of two runs that write the same stream, the second one adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.exceptions import TableNotFoundError as NoDeltaTableError

from pravega_connector.errors import LakeTableError
from pravega_connector.operations.tier.lake_table import ConflictError, TierPosition, stream_of

# Key of a commit's metadata.
_POSITION: Final = "pravega.tier"


class DeltaLakeTable:
    """Delta table at a path or URI; ``storage`` has the options of its object store."""

    def __init__(self, uri: str, storage: Mapping[str, str]) -> None:
        self._uri, self._storage = uri, dict(storage) or None
        self._table: DeltaTable | None = None

    def __str__(self) -> str:
        return f"delta:{self._uri}"

    def schema(self) -> pa.Schema | None:
        """Return the columns, or None if the table does not exist."""
        table = self._load()
        return None if table is None else pa.schema(table.schema().to_arrow())

    def create(self, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        """Create the table, unless another program has created it in the meantime."""
        with self._errors():
            DeltaTable.create(
                self._uri, schema, mode="ignore", partition_by=list(partition_by), storage_options=self._storage
            )

    def position(self, stream: str) -> TierPosition | None:
        """Load the table, and return the position of a stream. Raises LakeTableError if its commit is not kept."""
        table = self._load()
        if table is None:
            return None
        with self._errors():
            version = table.transaction_version(_app_id(stream))
        if version is None:
            return None
        newest = next(self.positions(stream), None)
        if newest is None or newest[1].version != version:
            raise LakeTableError(
                f"{self}: the log of the table has no longer the commit with position {version} of stream {stream}; "
                "write into a new table from the stream cut that you want"
            )
        return newest[1]

    def commit(self, rows: pa.Table, position: TierPosition) -> None:
        """Add the rows and the position in one commit."""
        table = self._table
        assert table is not None, "load the position first"
        app_id = _app_id(stream_of(position))
        known = set(pa.schema(table.schema().to_arrow()).names)
        with self._errors():
            try:
                write_deltalake(
                    table,
                    rows,
                    mode="append",
                    schema_mode=None if known == set(rows.schema.names) else "merge",
                    commit_properties=CommitProperties(
                        custom_metadata={_POSITION: position.to_text()},
                        app_transactions=[Transaction(app_id, position.version)],
                    ),
                )
            except CommitFailedError as error:
                raise ConflictError from error

    def positions(self, stream: str) -> Iterator[tuple[int, TierPosition]]:
        """Yield the commits in the log of the table, the newest first."""
        assert self._table is not None, "load the position first"
        with self._errors():
            history: list[dict[str, Any]] = self._table.history()
        for entry in history:
            if (text := entry.get(_POSITION)) is not None:
                position = TierPosition.from_text(text, str(self))
                if stream_of(position) == stream:
                    yield int(entry["timestamp"]), position

    def _load(self) -> DeltaTable | None:
        with self._errors():
            try:
                self._table = DeltaTable(self._uri, storage_options=self._storage)
            except NoDeltaTableError:
                self._table = None
        return self._table

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise the errors of the library in one line."""
        try:
            yield
        except (DeltaError, OSError, ValueError, pa.ArrowException) as error:
            raise LakeTableError(f"{self}: {' '.join(str(error).split())[:300]}") from error


def _app_id(stream: str) -> str:
    return f"pravega:{stream}"
