"""Rows of events for a table. Events of a format without a schema get the columns of the table, and new ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa

from pravega_connector.errors import ColumnTypeError
from pravega_connector.reader.rows import corrupt_names
from pravega_connector.reader.slices import EventBatch
from pravega_connector.rows.columns import Decoder, decoded_fields, row_builder, serializer_of
from pravega_connector.rows.inference import names_no_columns
from pravega_connector.rows.lossless import all_columns, decoder_of_all, is_plain_json
from pravega_connector.rows.options.source import SourceOptions
from pravega_serde.columnar.types import with_leaves
from pravega_serde.errors import DeserializationError

_OTHERWISE: Final = "pass the columns with schema=, or set a format with a schema"


class TierColumns:
    """Columns of the events of one run. Not thread safe."""

    def __init__(self, options: SourceOptions, given: pa.Schema | None, table: pa.Schema | None) -> None:
        """``given`` are the decoded columns, if set; ``table`` are those that the table has, if it exists."""
        self._options = options
        self._infers = given is None and names_no_columns(options)
        self._is_json = self._infers and is_plain_json(options)
        self._decoded = given
        if self._infers and table is not None:
            others = {*options.metadata_columns, *corrupt_names(options.column_name_of_corrupt_record)}
            self._decoded = pa.schema([read_field(field) for field in table if field.name not in others])
        if self._decoded is not None or not self._infers:
            self._use(decoder_of_all(options, self._decoded) if self._infers else serializer_of(options, given))

    def _use(self, decoder: Decoder) -> None:
        schema = pa.schema([field.with_nullable(True) for field in decoded_fields(self._options, decoder)])
        self._schema, self.decoder = schema, decoder
        self._builder = row_builder(schema, self._options, decoder)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the next rows, without new ones."""
        return self._schema

    def rows(self, batches: Sequence[EventBatch]) -> pa.Table:
        """Return the rows of events, with more columns than the rows before if the events have new fields.

        Raises DeserializationError, and ColumnTypeError for events without columns.
        """
        if self._is_json and self._decoded is not None and self._options.mode == "FAILFAST":
            with suppress(DeserializationError):  # perhaps of an event with a new field
                return self._built(batches)
        self.grow(batches)
        return self._built(batches)

    def _built(self, batches: Sequence[EventBatch]) -> pa.Table:
        return pa.Table.from_batches([rows for batch in batches for rows in self.build(batch)])

    def build(self, batch: EventBatch) -> Iterable[pa.RecordBatch]:
        """Return the rows of a batch in the columns that are known. Raises DeserializationError."""
        return self._builder.build_all(batch)

    def grow(self, batches: Iterable[EventBatch]) -> None:
        """Add the columns that events have, and the table lacks, if the format names none. Raises ColumnTypeError."""
        if not self._infers:
            return
        try:
            found = all_columns(batches, self._options, _OTHERWISE)
        except ColumnTypeError:
            if self._decoded is None or not self._is_json:
                raise
            return  # the events are malformed, or do not fit: the decoder of JSON finds each
        known = pa.schema([]) if self._decoded is None else self._decoded
        merged = merged_columns(known, found)
        if not len(merged):
            raise ColumnTypeError(f"there are no {self._options.format} events to infer columns from: {_OTHERWISE}")
        if self._decoded is None or merged != known:
            self._decoded = merged
            self._use(decoder_of_all(self._options, merged))


def read_field(field: pa.Field) -> pa.Field:
    """Return the field of a table in the types that decoders have."""

    def small(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return pa.string()
        return pa.binary() if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) else kind

    return pa.field(field.name, with_leaves(field.type, small))


def merged_columns(known: pa.Schema, found: pa.Schema) -> pa.Schema:
    """Return known columns in their types, with the columns and fields of structs that are new."""
    return pa.schema(list(_merged(pa.struct(list(known)), pa.struct(list(found)))))


def _merged(known: pa.DataType, found: pa.DataType) -> pa.DataType:
    """Return a known type with the fields of structs that are new; an empty struct is JSON text."""
    if pa.types.is_struct(known) and pa.types.is_struct(found):
        new = {field.name: field.type for field in found}
        fields = [pa.field(each.name, _merged(each.type, new.pop(each.name, each.type))) for each in known]
        return pa.struct([*fields, *(pa.field(name, _stored(kind)) for name, kind in new.items())])
    if pa.types.is_list(known) and pa.types.is_list(found):
        return pa.list_(pa.field(known.value_field.name, _merged(known.value_type, found.value_type)))
    return known


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return a type of the events in which tables have no empty struct."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _stored(each.type)) for each in kind]) if kind.num_fields else pa.string()
    return pa.list_(_stored(kind.value_type)) if pa.types.is_list(kind) else kind
