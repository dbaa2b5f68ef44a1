"""Columns of a read of a key-value table: keys, the value, and the version of each entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector import metrics
from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.core.values import TableConfig
from pravega_connector.errors import ConfigError
from pravega_connector.reader.rows import (
    CORRUPT_TYPES,
    VALUE,
    Decoded,
    corrupt_names,
    decode,
    has_required,
    missing_values,
    value_fields,
)
from pravega_connector.rows.columns import check_type
from pravega_connector.rows.inference import SAMPLE_EVENTS, Sample, columns_in, without_framing
from pravega_connector.rows.options.tables import TableOptions, TableSourceOptions
from pravega_connector.rows.pickled import Pickled
from pravega_connector.spark.known_clusters import client_of, note_answer
from pravega_connector.tables.columns import EntryBlock, read_blocks
from pravega_connector.tables.requests import SegmentRequests
from pravega_connector.wire import TableName
from pravega_serde.columnar import number_column
from pravega_serde.columnar.bad_rows import relocated
from pravega_serde.errors import DeserializationError
from pravega_serde.format_table import find_format
from pravega_serde.serializer_interface import Serializer

#: Serializer of the values; None where they stay raw.
ValueDecoder = Pickled[Serializer[Any]] | None
_Column = Callable[[EntryBlock, Decoded], pa.Array]
_KEY_TYPES: Final = {"bytes": pa.binary(), "string": pa.string()}
_VERSION: Final = pa.string()
_QUOTED: Final = 40  # bytes of a key that an error quotes


def table_columns(options: TableSourceOptions, *, with_version: bool = True) -> pa.Schema:
    """Return the columns of a read without ``.schema(…)``: keys, value, version, and malformed values.

    Raises TableNotFoundError, ControllerUnavailableError, ConfigError, SchemaError, ColumnTypeError.
    """
    client, name = client_of(options), options.table_name()
    config = client.controller.table_config(name)
    note_answer(client.config)
    wanted = None
    if options.infer_schema and options.format is not None and find_format(options.format).infer:
        wanted = _sampled(client, name, config, options)
    decoder = value_decoder(options, config, wanted)
    value = [pa.field(VALUE, pa.binary(), nullable=False)] if decoder is None else _value_columns(options, decoder)
    keys = [pa.field(each, _KEY_TYPES[options.key_format], nullable=False) for each in options.key_columns(config)]
    fields = [*keys, *value]
    if with_version:
        fields.append(pa.field(options.version_column, _VERSION, nullable=False))
    if decoder is not None and options.mode == "PERMISSIVE":
        fields += map(pa.field, corrupt_names(options.column_name_of_corrupt_record), CORRUPT_TYPES)
    names = [field.name for field in fields]
    for each in names:
        if names.count(each) > 1:
            raise ConfigError(
                f"column {each!r} would exist twice, in the value and next to it: set 'key_column', "
                "'secondary_key_column', 'version_column' or 'column_name_of_corrupt_record' to another name"
            )
    return pa.schema(fields)


def _value_columns(options: TableSourceOptions, decoder: Pickled[Serializer[Any]]) -> list[pa.Field]:
    """Return the columns of the value, NOT NULL if no entry can be null there."""
    serializer = decoder.get()
    sure: frozenset[str] = (
        frozenset() if options.mode == "PERMISSIVE" else getattr(serializer, "never_null", frozenset())
    )
    return [field.with_nullable(field.name not in sure) for field in value_fields(serializer.arrow_type)]


def value_decoder(options: TableSourceOptions, config: TableConfig, wanted: pa.Schema | None) -> ValueDecoder:
    """Return the serializer of the values; None for raw values. ``wanted`` has the columns of ``.schema(…)``.

    Raises ConfigError, SchemaError.
    """
    if options.format is None:
        return None
    if wanted is None:
        return Pickled(options.column_serializer())
    others = {
        *options.key_columns(config),
        options.version_column,
        *corrupt_names(options.column_name_of_corrupt_record),
    }
    return Pickled(column_serializer(options, [field for field in wanted if field.name not in others]))


def column_serializer(options: TableOptions, columns: list[pa.Field]) -> Serializer[Any]:
    """Return the serializer that reads values as these columns. Raises ConfigError, SchemaError."""
    return options.column_serializer(columns[0].type if options.is_single(columns) else pa.struct(columns))


def _sampled(client: PravegaClient, name: TableName, config: TableConfig, options: TableSourceOptions) -> pa.Schema:
    """Return the columns of the first values of the table. Raises ColumnTypeError."""
    assert options.format is not None
    requests = SegmentRequests(client.stores, name)
    blocks = (
        block.values
        for each in client.controller.table_segments(name)
        for block in islice(read_blocks(requests, each.id, config, SAMPLE_EVENTS), 1)
    )
    otherwise = "set the columns, such as .schema('key STRING, id BIGINT, …'), and omit infer_schema"
    samples = without_framing((Sample(f"table {name}", values) for values in blocks), options)
    return columns_in(samples, options.format, otherwise)


class TableRows:
    """Builder of the rows of one table; compiled once per task."""

    def __init__(
        self,
        name: TableName,
        config: TableConfig,
        schema: pa.Schema,
        options: TableSourceOptions,
        serializer: Serializer[Any] | None,
    ) -> None:
        """Compile the columns of ``schema``. Raises ConfigError for columns that the table does not have."""
        self._name, self._config, self._schema, self._options = name, config, schema, options
        self._serializer, self._mode = serializer, options.mode
        self._segment_id = 0
        self._columns: list[_Column] = []
        self._required: list[tuple[pa.Field, _Column]] = []
        for field in schema:
            kind, column, is_value = self._column(field)
            check_type(kind, field)
            self._columns.append(column)
            if is_value and has_required(field):
                self._required.append((field, column))

    def build(self, block: EntryBlock, segment_id: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a block. Raises DeserializationError with the key in mode FAILFAST."""
        self._segment_id = segment_id
        rest: EntryBlock | None = block
        while rest is not None and len(rest.keys):
            part, found = self._decode(rest)
            count = len(part.keys)
            rest = None if count == len(rest.keys) else rest.slice(count)
            if found.errors and self._mode == "DROPMALFORMED":
                mask = number_column(~found.bad())
                part, found = part.filter(mask), Decoded(found.values.filter(mask), [])
            columns = [column(part, found) for column in self._columns]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _decode(self, block: EntryBlock) -> tuple[EntryBlock, Decoded]:
        """Return the first entries of a block, as many as can be decoded together, and their values."""
        if self._serializer is None:
            return block, Decoded(block.values, [])
        found = decode(
            self._serializer,
            block.values,
            self._mode,
            lambda error: self._located(block, error),
            (lambda found: self._missing(block, found)) if self._required else None,
        )
        return block.slice(0, len(found.values)), found

    def _located(self, block: EntryBlock, error: DeserializationError) -> DeserializationError:
        """Count a malformed value, and return its error with its key."""
        metrics.BAD_RECORDS.add(1, "source", str(self._name))
        key = block.keys[error.row or 0].as_py()
        located = DeserializationError(
            f"the value of key {key[:_QUOTED]!r} of table {self._name}: {error.reason}", field_path=error.field_path
        )
        if self._mode != "FAILFAST":
            located.row = error.row
        return located

    def _missing(self, block: EntryBlock, found: Decoded) -> list[DeserializationError]:
        """Return the errors of nulls in NOT NULL columns."""
        part = block.slice(0, len(found.values))
        return [error for field, column in self._required for error in missing_values(column(part, found), field)]

    def _column(self, field: pa.Field) -> tuple[pa.DataType, _Column, bool]:
        """Return the type of a column, the function that builds it, and True if it is of the value."""
        name, options = field.name, self._options
        length = self._config.primary_key
        if name == options.key_column:
            return *self._key(field, 0, length), False
        if name == options.secondary_key_column and self._config.secondary_key:
            return *self._key(field, length, length + self._config.secondary_key), False
        if name == options.version_column:
            return _VERSION, lambda block, _: self._versions(block), False
        record, reason = corrupt_names(options.column_name_of_corrupt_record)
        if self._serializer is not None and name == record:
            return CORRUPT_TYPES[0], lambda block, found: found.records(block.values), False
        if self._serializer is not None and name == reason:
            return (
                CORRUPT_TYPES[1],
                lambda _, found: found.reasons(lambda error: str(relocated(error, row=None))),
                False,
            )
        return *self._value(field), True

    def _key(self, field: pa.Field, start: int, stop: int) -> tuple[pa.DataType, _Column]:
        """Return the column of a part of the keys: text or bytes, as the schema declares it."""
        name = field.name
        kind = field.type if field.type in _KEY_TYPES.values() else _KEY_TYPES[self._options.key_format]

        def column(block: EntryBlock, _: Decoded) -> pa.Array:
            part = pc.binary_slice(block.keys.cast(pa.binary()), start, stop)
            try:
                return part.cast(kind)
            except pa.ArrowInvalid:
                raise DeserializationError(
                    f"column {name!r}: a key of table {self._name} is not UTF-8 text: set key_format=bytes, or declare "
                    "the column as BINARY"
                ) from None

        return kind, column

    def _versions(self, block: EntryBlock) -> pa.Array:
        """Return the versions as Java's text."""
        prefix = pa.scalar(str(self._segment_id), pa.string())
        return pc.binary_join_element_wise(prefix, block.versions.cast(pa.string()), pa.scalar(":", pa.string()))

    def _value(self, field: pa.Field) -> tuple[pa.DataType, _Column]:
        if self._serializer is None:
            if field.name != VALUE:
                raise ConfigError(
                    f"raw values have no column {field.name!r}: omit .schema(…), or set option 'format' to decode them"
                )
            return pa.binary(), lambda block, _: block.values
        kind = self._serializer.arrow_type
        if not pa.types.is_struct(kind):
            return kind, lambda _, found: found.values
        place = kind.get_field_index(field.name)
        if place < 0:
            known = ", ".join(each.name for each in kind)
            raise ConfigError(f"the values have no field {field.name!r}; they have: {known}")
        # flatten() and not field(): a null record is null in each of its columns.
        return kind.field(place).type, lambda _, found: _cast(found.values.flatten()[place], field)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    return column if column.type == field.type else column.cast(field.type)
