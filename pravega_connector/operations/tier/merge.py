"""Change events and keyed rows as changes of a table: one row for each key, the last change of a batch.

Rows of Debezium's envelope are changed by ``after``, or deleted by ``before``. Other rows delete their key if all other
columns are null, or if they have no other column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector.errors import ColumnTypeError, ConfigError, LakeTableError
from pravega_connector.rows.options.source import SourceOptions

#: Column that is True for the rows of deleted keys.
DELETED: Final = "deleted"
# Order of the events of a segment. Successors of a segment have greater ids.
_PLACE: Final = ("segment_id", "offset")
_UPSERTS: Final = ("c", "u", "r")


@dataclass(frozen=True, slots=True, kw_only=True)
class TierMerge:
    """Merge of changes into a Delta table: it has the last row of each key. Raises ConfigError without a key."""

    key: tuple[str, ...]
    """Columns that name a row."""
    order: str | None = None
    """Column that decides which change of a key is the last, such as ``position`` or ``ts`` of Debezium.

    A change that is before the row of the table is left out, so repeated changes do not go back. By default, the order
    is that of the stream, which has the changes of a key in order if it is the routing key.
    """
    keep_deleted: bool = False
    """If True, rows of deleted keys stay, with True in column ``deleted``. They keep repeated changes out."""

    def __post_init__(self) -> None:
        if not self.key:
            raise ConfigError("a merge needs the columns of the key")


class MergedRows:
    """Rows of a merge from the rows of events."""

    def __init__(self, merge: TierMerge, options: SourceOptions, table: str) -> None:
        self._merge, self._table = merge, table
        self._metadata = options.metadata_columns
        self._unwraps = options.unwrap is not None
        if options.format is None and not options.from_registry:
            raise ConfigError("raw events have no key to merge: set option 'format' or the registry")
        if options.mode == "PERMISSIVE":
            raise ConfigError("malformed events have no key to merge: set option 'mode' to FAILFAST or DROPMALFORMED")
        if missing := set(_PLACE) - set(options.metadata_columns):
            raise ConfigError(f"a merge needs the metadata column {min(missing)!r}: add it to option 'columns'")

    def events(self, table: pa.Schema | None) -> pa.Schema | None:
        """Return the columns that events need for the rows of a table, or None without a table."""
        if table is None:
            return None
        added = (DELETED,) if self._merge.keep_deleted else ()
        if not self._unwraps:
            return pa.schema([field for field in table if field.name not in added])
        order = [field for field in table if field.name == self._merge.order and field.name in ("ts", "position")]
        others = {*_PLACE, *added, *(field.name for field in order)}
        row = pa.struct([field for field in table if field.name not in others])
        return pa.schema([("op", pa.string()), ("before", row), ("after", row), *order])

    def of(self, rows: pa.Table) -> pa.Table:
        """Return the last change of each key, with column ``deleted``.

        Raises ConfigError for columns that the rows do not have, ColumnTypeError for nulls in them, LakeTableError.
        """
        changes = self._unwrapped(rows) if self._unwraps else self._keyed(rows)
        merge = self._merge
        order = () if merge.order is None else (merge.order,)
        for name in (*merge.key, *order):
            if name not in changes.schema.names:
                raise ConfigError(
                    f"{self._table}: there is no column {name!r} to merge by; columns: "
                    f"{', '.join(each for each in changes.schema.names if each != DELETED)}"
                )
            if changes.column(name).null_count:
                place = changes.filter(changes.column(name).is_null()).select(_PLACE).slice(0, 1).to_pylist()[0]
                raise ColumnTypeError(
                    f"{self._table}: column {name!r} is null in the event of segment {place['segment_id']} at offset "
                    f"{place['offset']}: a merge needs its value in each event"
                )
        by = [(name, "ascending") for name in (*order, *_PLACE)]
        changes = changes.take(pc.sort_indices(changes, sort_keys=by))
        numbered = changes.select(merge.key).append_column("row", pa.array(range(len(changes)), pa.int64()))
        last = numbered.group_by(list(merge.key)).aggregate([("row", "max")]).column("row_max")
        return changes.take(last.sort())

    def _keyed(self, rows: pa.Table) -> pa.Table:
        """Return rows whose decoded columns other than the key are all null as deletions."""
        others = {*self._merge.key, *self._metadata, self._merge.order}
        absent = pa.chunked_array([pa.repeat(True, len(rows))])
        for name in rows.schema.names:
            if name not in others:
                absent = pc.and_(absent, rows.column(name).is_null())
        return self._marked(rows, absent)

    def _unwrapped(self, rows: pa.Table) -> pa.Table:
        """Return the rows that change events have, and leave out messages."""
        op = rows.column("op")
        if pc.any(pc.equal(op, "t")).as_py():
            raise LakeTableError(
                f"{self._table}: a change event truncates the source table, which a merge does not repeat: leave "
                "'t' in Debezium's skipped.operations, or continue in a new table from a later cut"
            )
        rows = rows.filter(pc.is_in(op, pa.array([*_UPSERTS, "d"])))
        deleted = pc.equal(rows.column("op"), "d")
        sides = {name: rows.column(name).combine_chunks() for name in ("before", "after") if name in rows.schema.names}
        kind = next((side.type for side in sides.values() if pa.types.is_struct(side.type)), None)
        if kind is None:
            raise ConfigError(f"{self._table}: the change events have no columns in 'before' and 'after'")
        none = pa.nulls(len(rows), kind)
        before, after = (_combined(sides.get(name, none)) for name in ("before", "after"))
        names = [field.name for field in kind]
        columns = {}
        for name, old, new in zip(names, before.flatten(), after.flatten(), strict=True):
            gone = old if name in (*self._merge.key, self._merge.order) else pa.nulls(len(rows), old.type)
            columns[name] = pc.if_else(deleted, gone, new)
        order = () if self._merge.order is None or self._merge.order in columns else (self._merge.order,)
        for name in (*(each for each in order if each in rows.schema.names), *_PLACE):
            if name in columns:
                raise ConfigError(f"{self._table}: column {name!r} would exist twice, of the row and of the event")
            columns[name] = rows.column(name)
        return self._marked(pa.table(columns), deleted)

    def _marked(self, rows: pa.Table, deleted: pa.ChunkedArray) -> pa.Table:
        if DELETED in rows.schema.names:
            raise ConfigError(f"{self._table}: column {DELETED!r} has another meaning in a merge: rename it before")
        return rows.append_column(DELETED, deleted)


def _combined(side: pa.Array | pa.ChunkedArray) -> pa.StructArray:
    return side.combine_chunks() if isinstance(side, pa.ChunkedArray) else side
