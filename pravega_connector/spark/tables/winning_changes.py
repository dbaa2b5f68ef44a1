"""Changes of a key-value table, and which one of a key wins: in a batch, and over the entry that the table has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector.errors import ColumnTypeError, ConfigError
from pravega_connector.rows.pickled import Pickled
from pravega_connector.wire import TableName
from pravega_serde.serializer_interface import Serializer

QUOTED: Final = 40  # bytes of a key that an error quotes
_Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of a table, one for each row."""

    keys: pa.BinaryArray
    """Primary and secondary key, one after the other."""
    values: pa.BinaryArray
    """New values; null to remove the entry."""
    orders: pa.Array | None = None
    """Order of the changes of a key, if the options name a column."""
    versions: pa.Int64Array | None = None
    """Versions that the entries must have, or NO_ENTRY, if the rows have them."""
    segments: pa.Int64Array | None = None
    """Segments of these versions; null where no entry must exist."""

    def take(self, rows: _Rows) -> Changes:
        """Return the changes of some rows, in their order."""
        place = pa.array(rows)
        columns = (self.keys, self.values, self.orders, self.versions, self.segments)
        return Changes(*(None if column is None else column.take(place) for column in columns))


@dataclass(frozen=True, slots=True)
class Order:
    """Order of the rows of a key, by a column of the value. Can be pickled.

    Both sides of a comparison are read from encoded values. So a value with less precision than its row cannot change
    the order.
    """

    column: str
    kind: pa.DataType
    serializer: Pickled[Serializer[Any]]

    def of(self, values: pa.BinaryArray) -> pa.Array:
        """Return the order of encoded values; null for a null. Raises DeserializationError."""
        serializer = self.serializer.get()
        place = serializer.arrow_type.get_field_index(self.column)
        return serializer.decode_column(values).flatten()[place]

    def of_rows(self, batch: pa.RecordBatch, values: pa.BinaryArray) -> pa.Array:
        """Return the order of rows; a row that removes its key has no value.

        Raises ColumnTypeError for a null, and for NaN, which is neither before nor after another number.
        """
        column = batch.column(self.column)
        if (row := pc.index(_is_nan(column), value=True).as_py()) >= 0:
            raise ColumnTypeError(f"row {row} of column {self.column!r} is NaN, which has no order: remove such rows")
        if column.null_count:
            row = pc.index(pc.is_null(column), value=True).as_py()
            raise ColumnTypeError(
                f"row {row} of column {self.column!r} is null: 'order_column' needs a value in each row"
            )
        written = self.of(values)
        if not values.null_count:
            return written
        try:
            return pc.coalesce(written, column.cast(self.kind, safe=False))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ColumnTypeError(f"column {self.column!r} cannot be compared as {self.kind}: {error}") from None


def latest(changes: Changes, table: TableName) -> Changes:
    """Return the change of each key that wins in a batch."""
    numbers = changes.keys.dictionary_encode()
    count = len(numbers.dictionary)
    if count == len(changes.keys):
        return changes
    if changes.versions is not None:
        row = int(np.flatnonzero(np.bincount(numbers.indices.to_numpy())[numbers.indices.to_numpy()] > 1)[0])
        raise ConfigError(
            f"row {row}: key {changes.keys[row].as_py()[:QUOTED]!r} of table {table} has several rows with "
            "versions: write one row for each key"
        )
    rows = np.arange(len(changes.keys))
    if changes.orders is not None:
        rows = rows_in_order(numbers.indices, changes)
    last = np.empty(count, np.int64)
    last[numbers.indices.to_numpy()[rows]] = rows  # the last one of several rows stays
    return changes.take(np.sort(last))


def rows_in_order(keys: pa.Array, changes: Changes) -> _Rows:
    """Return the rows by key, then by order; of equal ones by value, and a row that removes its key is last."""
    table = pa.table({"key": keys, "order": changes.orders, "value": changes.values})
    by = [("key", "ascending"), ("order", "ascending"), ("value", "ascending")]
    return np.asarray(pc.sort_indices(table, sort_keys=by).to_numpy(), np.int64)


def newer(order: Order, changes: Changes, found: pa.BinaryArray) -> npt.NDArray[np.bool_]:
    """Return for each change whether it wins over the value that the table has; null if there is none.

    A NaN in the table is before each number. Raises DeserializationError for a value that has no such column.
    """
    current = order.of(found)
    later = pc.or_kleene(pc.greater(changes.orders, current), _is_nan(current))
    later = pc.fill_null(later, fill_value=True)  # no entry, or no order in it
    equal = pc.fill_null(pc.equal(changes.orders, current), fill_value=False)
    larger = pc.fill_null(pc.greater(changes.values, found), fill_value=True)  # a removal wins
    wins = pc.or_(later, pc.and_(equal, larger))
    return np.asarray(wins.to_numpy(zero_copy_only=False), bool)


def _is_nan(column: pa.Array) -> pa.BooleanArray:
    """Return True for each NaN."""
    if not pa.types.is_floating(column.type):
        return pa.repeat(False, len(column))
    return pc.fill_null(pc.is_nan(column), fill_value=False)
