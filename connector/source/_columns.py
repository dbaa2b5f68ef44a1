"""From events to the record batches that Spark takes: metadata columns, and decoded columns of a format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connector.client import EventBatch
from connector.errors import ConfigError
from connector.source._options import SourceOptions
from pravega_serde import DeserializationError, Serializer

__all__ = ["CORRUPT_RECORD", "RowBuilder", "decoded_fields", "serializer_of"]

CORRUPT_RECORD: Final = "_corrupt_record"
# What a format that has no fields is called as a column.
VALUE: Final = "value"

_METADATA_TYPES: Final = {
    "event": pa.binary(),
    "scope": pa.string(),
    "stream": pa.string(),
    "segment_id": pa.int64(),
    "offset": pa.int64(),
}
# Formats whose columns the user must name, because neither the events nor a schema option do.
_NEEDS_SCHEMA: Final = frozenset({"json"})


def serializer_of(options: SourceOptions, wanted: pa.Schema | None) -> Serializer[Any] | None:
    """The serializer that the options ask for; None for raw events. Raises SchemaError, UnsupportedFormatError.

    ``wanted`` is the schema that the user gave with ``.schema(…)``, which JSON needs.
    """
    if options.format is None:
        return None
    if options.format.lower() in _NEEDS_SCHEMA:
        if wanted is None:
            raise ConfigError(f"format {options.format!r} needs the columns: .schema('name STRING, …') before load()")
        return options.serializer(arrow_type=pa.struct(_value_fields(wanted, options)))
    return options.serializer()


def _value_fields(wanted: pa.Schema, options: SourceOptions) -> list[pa.Field]:
    return [field for field in wanted if field.name not in options.metadata_columns and field.name != CORRUPT_RECORD]


def decoded_fields(options: SourceOptions, serializer: Serializer[Any] | None) -> list[pa.Field]:
    """Fields of the source's rows: decoded ones, then metadata, then the corrupt record where it is kept."""
    fields: list[pa.Field] = []
    if serializer is not None:
        kind = serializer.arrow_type
        fields = list(kind) if pa.types.is_struct(kind) else [pa.field(VALUE, kind)]
    fields += [pa.field(name, _METADATA_TYPES[name]) for name in options.metadata_columns]
    if serializer is not None and options.mode == "PERMISSIVE":
        fields.append(pa.field(CORRUPT_RECORD, pa.binary()))
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"column {name!r} would come twice, decoded and as metadata: leave it out of 'columns'")
    return fields


Column = Callable[["_Rows"], pa.Array]


@dataclass(slots=True)
class _Rows:
    """One batch on its way: the events, what was decoded, and which of them could not be."""

    batch: EventBatch
    decoded: Any  # an Arrow array; None for raw events
    errors: list[DeserializationError]


class RowBuilder:
    """Makes record batches of one schema; compiled once per task.

    ``schema`` is Spark's own Arrow schema of the rows: its first batch must equal it.
    """

    def __init__(self, schema: pa.Schema, options: SourceOptions, serializer: Serializer[Any] | None) -> None:
        self._schema = schema
        self._serializer = serializer
        self._mode = options.mode
        self._constants: dict[str, pa.Array] = {}
        metadata = set(options.metadata_columns)
        self._columns: list[Column] = [
            self._metadata(field.name) if field.name in metadata else self._decoded(field) for field in schema
        ]

    def build(self, batch: EventBatch) -> pa.RecordBatch:
        """The rows of a batch. Raises DeserializationError with the event's coordinates in mode FAILFAST."""
        rows = self._decode(batch)
        return pa.RecordBatch.from_arrays([column(rows) for column in self._columns], schema=self._schema)

    def _decode(self, batch: EventBatch) -> _Rows:
        if self._serializer is None:
            return _Rows(batch, None, [])
        errors: list[DeserializationError] = []
        if self._mode == "FAILFAST":
            try:
                decoded = self._serializer.decode_column(batch.events)
            except DeserializationError as error:
                raise batch.locate(error, error.row or 0) from error
        else:
            decoded = self._serializer.decode_column(batch.events, on_error=errors.append)
        rows = _Rows(batch, decoded, errors)
        return _without_bad(rows) if errors and self._mode == "DROPMALFORMED" else rows

    def _metadata(self, name: str) -> Column:
        if name == "event":
            return lambda rows: rows.batch.events
        if name == "offset":
            return lambda rows: pa.array(rows.batch.offsets)
        if name == "segment_id":
            return lambda rows: pa.array(np.full(len(rows.batch.events), rows.batch.segment_id))
        if name == "scope":
            return lambda rows: self._constant(rows.batch.stream.scope, len(rows.batch.events))
        return lambda rows: self._constant(rows.batch.stream.stream, len(rows.batch.events))

    def _constant(self, value: str, length: int) -> pa.Array:
        held = self._constants.get(value)
        if held is None or len(held) < length:
            held = self._constants[value] = pa.repeat(value, length)
        return held.slice(0, length)

    def _decoded(self, field: pa.Field) -> Column:
        if field.name == CORRUPT_RECORD:
            return _corrupt_records
        assert self._serializer is not None
        kind = self._serializer.arrow_type
        if not pa.types.is_struct(kind):
            return lambda rows: _fit(rows.decoded, field)
        place = kind.get_field_index(field.name)
        if place < 0:
            raise ConfigError(f"the events have no field {field.name!r}; they have: {', '.join(f.name for f in kind)}")
        # flatten() and not field(): a null record is null in each of its columns.
        return lambda rows: _fit(rows.decoded.flatten()[place], field)


def _fit(column: pa.Array, field: pa.Field) -> pa.Array:
    return column if column.type == field.type else column.cast(field.type)


def _without_bad(rows: _Rows) -> _Rows:
    keep = np.ones(len(rows.batch.events), bool)
    keep[[error.row for error in rows.errors if error.row is not None]] = False
    mask = pa.array(keep)
    batch = EventBatch(
        rows.batch.stream, rows.batch.segment_id, rows.batch.events.filter(mask), rows.batch.offsets[keep]
    )
    return _Rows(batch, rows.decoded.filter(mask), [])


def _corrupt_records(rows: _Rows) -> pa.Array:
    if not rows.errors:
        return pa.nulls(len(rows.batch.events), pa.binary())
    bad = np.zeros(len(rows.batch.events), bool)
    bad[[error.row for error in rows.errors if error.row is not None]] = True
    return pc.if_else(pa.array(bad), rows.batch.events, pa.scalar(None, pa.binary()))


def batches(builder: RowBuilder, events: Iterator[EventBatch]) -> Iterator[pa.RecordBatch]:
    """Record batches of events, one for one; those without rows are left out."""
    for batch in events:
        rows = builder.build(batch)
        if rows.num_rows:
            yield rows
