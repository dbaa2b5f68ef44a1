"""Rows as changes of a key-value table: the key, the new value or none, and what decides about the change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector.core.values import TableConfig
from pravega_connector.errors import ColumnTypeError, ConfigError, TableLimitError
from pravega_connector.reader.rows import VALUE
from pravega_connector.rows.encoding import is_bytes, value_encoding
from pravega_connector.rows.options.tables import TableSinkOptions
from pravega_connector.rows.pickled import Pickled
from pravega_connector.tables.requests import MAX_VALUE
from pravega_connector.wire import NO_ENTRY, TableName
from pravega_serde.serializer_interface import Serializer

_QUOTED: Final = 40  # bytes of a key that an error quotes
_VERSION: Final = r"^(?P<segment>[0-9]{1,18}):(?P<number>[0-9]{1,18})$"
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


@dataclass(frozen=True, slots=True)
class ChangeEncoder:
    """Encoder of record batches as changes. Can be pickled."""

    table: TableName
    config: TableConfig
    keys: tuple[str, ...]
    """Columns of the keys."""
    columns: tuple[str, ...]
    """Columns of the value."""
    single: bool
    """True if the only column is the whole value, not a field of a record."""
    serializer: Pickled[Serializer[Any]] | None
    """Serializer of the value; None if the column contains it."""
    order: Order | None = None
    version: str | None = None
    """Column with the versions that the entries must have."""

    def encode(self, batch: pa.RecordBatch) -> Changes:
        """Return the changes of a batch, one for each key.

        Raises TableLimitError for keys and values of other lengths, ColumnTypeError for nulls, ConfigError for invalid
        versions and for a key that has several rows with versions, SerializationError.
        """
        keys, values = self._keys(batch), self._values(batch)
        self._check_sizes(keys, values)
        changes = Changes(keys, values)
        if self.order is not None:
            changes = replace(changes, orders=self.order.of_rows(batch, values))
        if self.version is not None:
            segments, versions = _versions(batch.column(self.version), self.version)
            changes = replace(changes, versions=versions, segments=segments)
        return self._latest(changes)

    def _keys(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        lengths = (self.config.primary_key, self.config.secondary_key)
        parts = [self._key(batch, name, length) for name, length in zip(self.keys, lengths, strict=False)]
        return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, pa.scalar(b""))

    def _key(self, batch: pa.RecordBatch, name: str, length: int) -> pa.BinaryArray:
        """Return a column of keys as bytes."""
        column = batch.column(name).cast(pa.binary())
        right = pc.fill_null(pc.equal(pc.binary_length(column), length), fill_value=False)
        row = pc.index(right, value=False).as_py()
        if row >= 0:
            key = column[row].as_py()
            told = "null" if key is None else f"{key[:_QUOTED]!r}, {len(key)} bytes"
            raise TableLimitError(
                f"row {row} of column {name!r} is {told}: a key in this column of table {self.table} must have "
                f"{length} bytes"
            )
        return column

    def _values(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        """Return the encoded values; null for rows that remove their keys."""
        given = [name for name in self.columns if self.order is None or name != self.order.column]
        absent = [pc.is_null(batch.column(name)) for name in given]
        removed = absent[0] if absent else pa.repeat(False, len(batch))
        for each in absent[1:]:
            removed = pc.and_(removed, each)
        kept = pc.invert(removed)
        rows = batch if not removed.true_count else batch.filter(kept)
        values = rows.column(self.columns[0]) if self.single else rows.select(list(self.columns))
        encoded = values.cast(pa.binary()) if self.serializer is None else self.serializer.get().encode_column(values)
        return encoded if rows is batch else pc.replace_with_mask(pa.nulls(len(batch), pa.binary()), kept, encoded)

    def _check_sizes(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> None:
        """Raise TableLimitError for a value that is too large."""
        sizes = pc.fill_null(pc.binary_length(values), 0)
        row = pc.index(pc.greater(sizes, MAX_VALUE), value=True).as_py()
        if row >= 0:
            raise TableLimitError(
                f"row {row}: the value of key {keys[row].as_py()[:_QUOTED]!r} of table {self.table} has "
                f"{sizes[row].as_py():,} bytes; the limit is {MAX_VALUE:,}"
            )

    def _latest(self, changes: Changes) -> Changes:
        """Return the change of each key that wins in a batch."""
        numbers = changes.keys.dictionary_encode()
        count = len(numbers.dictionary)
        if count == len(changes.keys):
            return changes
        if changes.versions is not None:
            row = int(np.flatnonzero(np.bincount(numbers.indices.to_numpy())[numbers.indices.to_numpy()] > 1)[0])
            raise ConfigError(
                f"row {row}: key {changes.keys[row].as_py()[:_QUOTED]!r} of table {self.table} has several rows with "
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


def change_encoder(
    schema: pa.Schema, options: TableSinkOptions, config: TableConfig, *, streaming: bool
) -> ChangeEncoder:
    """Return the encoder for the columns of a DataFrame.

    Raises ColumnTypeError, ConfigError, SchemaError before anything is written.
    """
    name, keys = options.table_name(), options.key_columns(config)
    for each, option_name in zip(keys, ("key_column", "secondary_key_column"), strict=False):
        if each not in schema.names:
            raise ColumnTypeError(
                f"the DataFrame has no column {each!r} with the keys of table {name} (it has: "
                f"{', '.join(schema.names)}): set option {option_name!r}"
            )
        if not is_bytes(schema.field(each).type):
            raise ColumnTypeError(f"column {each!r} is {schema.field(each).type}, not binary or string: cast it")
    if not config.secondary_key and options.secondary_key_column in schema.names:
        raise ColumnTypeError(
            f"table {name} has no secondary keys: drop column {options.secondary_key_column!r}, or set "
            "'secondary_key_column' to another name if it is a column of the value"
        )
    version = _version_column(schema, options, streaming=streaming)
    columns = tuple(each for each in schema.names if each not in (*keys, version))
    if not columns:
        raise ColumnTypeError("the DataFrame has no column of the value: add one. To remove keys, add one that is null")
    if options.format is None:
        _check_raw(schema, columns)
        return ChangeEncoder(name, config, keys, columns, True, None, version=version)
    single, serializer = value_encoding([schema.field(each) for each in columns], options)
    order = _order(schema, columns, options, single=single)
    return ChangeEncoder(name, config, keys, columns, single, serializer, order, version)


def _version_column(schema: pa.Schema, options: TableSinkOptions, *, streaming: bool) -> str | None:
    """Return the column of versions if the DataFrame has it. Raises ConfigError, ColumnTypeError."""
    name = options.version_column
    if name not in schema.names:
        return None
    hint = f"drop column {name!r}, or set 'version_column' to another name if it is a column of the value"
    if streaming:
        raise ConfigError(f"a streaming query writes without conditions on versions: {hint}")
    if options.order_column is not None:
        raise ConfigError(f"'order_column' and the versions in column {name!r} both decide about a row: {hint}")
    if not pa.types.is_string(schema.field(name).type):
        raise ColumnTypeError(f"column {name!r} is {schema.field(name).type}, not versions such as '0:27': {hint}")
    return name


def _check_raw(schema: pa.Schema, columns: tuple[str, ...]) -> None:
    if columns != (VALUE,):
        raise ColumnTypeError(
            f"the columns of the value are {', '.join(columns)}: name the only one 'value', or set option 'format' to "
            "serialize them"
        )
    if not is_bytes(schema.field(VALUE).type):
        raise ColumnTypeError(f"column 'value' is {schema.field(VALUE).type}, not binary or string: cast it")


def _order(schema: pa.Schema, columns: tuple[str, ...], options: TableSinkOptions, *, single: bool) -> Order | None:
    name = options.order_column
    if name is None:
        return None
    if name not in columns:
        raise ColumnTypeError(f"the value has no column {name!r} for 'order_column' (it has: {', '.join(columns)})")
    if single:
        raise ColumnTypeError(f"column {name!r} is the whole value: 'order_column' needs a value with fields")
    serializer = options.column_serializer(pa.struct([schema.field(name)]))
    kind = serializer.arrow_type
    found = kind.field(kind.get_field_index(name)).type if kind.get_field_index(name) >= 0 else None
    if found is None or pa.types.is_nested(found):
        raise ColumnTypeError(f"column {name!r} cannot be compared: 'order_column' needs a number, a time or a text")
    return Order(name, found, Pickled(serializer))


def _versions(column: pa.StringArray, name: str) -> tuple[pa.Int64Array, pa.Int64Array]:
    """Return the segments and the numbers of versions; NO_ENTRY for a null. Raises ConfigError."""
    parts = pc.extract_regex(column, _VERSION)
    wrong = pc.and_(pc.is_null(parts), pc.is_valid(column))
    row = pc.index(wrong, value=True).as_py()
    if row >= 0:
        raise ConfigError(
            f"row {row} of column {name!r} is {column[row].as_py()[:_QUOTED]!r}, not a version such as '0:27': read it "
            "from the table, or set 'version_column' to another name if it is a column of the value"
        )
    segments, numbers = (part.cast(pa.int64()) for part in parts.flatten())
    return segments, pc.fill_null(numbers, NO_ENTRY)


def _is_nan(column: pa.Array) -> pa.BooleanArray:
    """Return True for each NaN."""
    if not pa.types.is_floating(column.type):
        return pa.repeat(False, len(column))
    return pc.fill_null(pc.is_nan(column), fill_value=False)


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
