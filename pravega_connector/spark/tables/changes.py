"""Rows as changes of a key-value table: the key, the new value or none, and what decides about the change.

``winning_changes`` has the changes, and which one of a key wins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector.core.values import TableConfig
from pravega_connector.errors import ColumnTypeError, ConfigError, TableLimitError
from pravega_connector.reader.rows import VALUE
from pravega_connector.rows.encoding import is_bytes, value_encoding
from pravega_connector.rows.options.tables import TableSinkOptions
from pravega_connector.rows.pickled import Pickled
from pravega_connector.spark.tables.winning_changes import QUOTED, Changes, Order, latest
from pravega_connector.tables.requests import MAX_VALUE
from pravega_connector.wire import NO_ENTRY, TableName
from pravega_serde.serializer_interface import Serializer

_VERSION: Final = r"^(?P<segment>[0-9]{1,18}):(?P<number>[0-9]{1,18})$"


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
        return latest(changes, self.table)

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
            told = "null" if key is None else f"{key[:QUOTED]!r}, {len(key)} bytes"
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
                f"row {row}: the value of key {keys[row].as_py()[:QUOTED]!r} of table {self.table} has "
                f"{sizes[row].as_py():,} bytes; the limit is {MAX_VALUE:,}"
            )


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
            f"row {row} of column {name!r} is {column[row].as_py()[:QUOTED]!r}, not a version such as '0:27': read it "
            "from the table, or set 'version_column' to another name if it is a column of the value"
        )
    segments, numbers = (part.cast(pa.int64()) for part in parts.flatten())
    return segments, pc.fill_null(numbers, NO_ENTRY)
