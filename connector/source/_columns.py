"""From events to the record batches that Spark takes: metadata columns, and decoded columns of a format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

from connector.client import EventBatch, SegmentTimes
from connector.errors import ConfigError
from connector.exchange import Portable
from connector.source._bad_records import CORRUPT_TYPES, Decoded, corrupt_names, decode
from connector.source._event_time import EVENT_TIME, NO_TIMES, timestamps
from connector.source._options import SourceOptions
from connector.source._required import has_required, missing_values
from pravega_serde import DeserializationError, Serializer
from pravega_serde.text import UTF8StringSerializer

__all__ = ["VALUE", "Decoder", "RowBuilder", "batches", "decoded_fields", "serializer_of"]

#: What decodes the events; None where they stay raw.
Decoder = Portable[Serializer[Any]] | None

# What a format that has no fields is called as a column.
VALUE: Final = "value"

_METADATA_TYPES: Final = {
    "event": pa.binary(),
    "scope": pa.string(),
    "stream": pa.string(),
    "segment_id": pa.int64(),
    "offset": pa.int64(),
    "encoding_id": pa.int32(),
    "event_time_low": EVENT_TIME,
    "event_time_high": EVENT_TIME,
}


def serializer_of(options: SourceOptions, wanted: pa.Schema | None, ids: Sequence[int] | None = None) -> Decoder:
    """The serializer that the options ask for; None for raw events.

    ``wanted`` is the schema of the rows that the user gave with ``.schema(…)``, ``ids`` those of the schemas of a
    registry that the query has. Raises ConfigError, SchemaError, RegistryErrors.
    """
    if options.from_registry:
        from connector.source._registry import registry_reader  # noqa: PLC0415 - a second that only its streams need

        named = None if wanted is None or ids is not None else pa.struct(_decoded_ones(options, wanted))
        return Portable(registry_reader(options, named, ids))
    if options.format is None:
        return None
    if wanted is None:
        return Portable(options.column_serializer())
    columns = _decoded_ones(options, wanted)
    # Fields of Java objects come by a sample, or by their names.
    single = options.says_single and len(columns) == 1
    return Portable(options.column_serializer(columns[0].type if single else pa.struct(columns)))


def _decoded_ones(options: SourceOptions, wanted: pa.Schema) -> list[pa.Field]:
    others = {*options.metadata_columns, *corrupt_names(options.column_name_of_corrupt_record)}
    return [field for field in wanted if field.name not in others]


def decoded_fields(options: SourceOptions, serializer: Decoder) -> list[pa.Field]:
    """Fields of the source's rows: decoded ones, then metadata, then bad records where they are kept."""
    fields: list[pa.Field] = []
    if serializer is not None:
        kind = serializer.get().arrow_type
        fields = list(kind) if pa.types.is_struct(kind) else [pa.field(VALUE, kind)]
    fields += [pa.field(name, _METADATA_TYPES[name]) for name in options.metadata_columns]
    if serializer is not None and options.mode == "PERMISSIVE":
        fields += map(pa.field, corrupt_names(options.column_name_of_corrupt_record), CORRUPT_TYPES)
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"column {name!r} would come twice, decoded and as metadata: leave it out of 'columns', or set "
                "'column_name_of_corrupt_record' if it is the bad record's"
            )
    return fields


@dataclass(frozen=True, slots=True)
class _Rows:
    """One batch on its way: the events, and what was decoded of them, if anything was."""

    batch: EventBatch
    decoded: Decoded | None


Column = Callable[[_Rows], pa.Array]
#: Takes the bad events of a batch: it returns when they are safe elsewhere.
OnBad = Callable[[EventBatch, Sequence[DeserializationError]], object]


class RowBuilder:
    """Makes record batches of one schema; compiled once per task.

    ``schema`` is Spark's own Arrow schema of the rows: its first batch must equal it.
    """

    def __init__(
        self,
        schema: pa.Schema,
        options: SourceOptions,
        serializer: Decoder,
        on_bad: OnBad | None = None,
        times: SegmentTimes = NO_TIMES,
    ) -> None:
        """``on_bad`` is told a batch's errors before its rows are handed on, unless the mode is FAILFAST.

        ``times`` are those of the slice that the batches are of.
        """
        self._schema = schema
        self._on_bad, self._times = on_bad, times
        self._serializer = None if serializer is None else serializer.get()
        self._mode = options.decode_mode
        # A registry's types that were not chosen have no rows; the reader makes them null.
        self._leave_out_nulls = options.registry_type is not None
        self._constants: dict[str, pa.Array] = {}
        self._metadata = frozenset(options.metadata_columns)
        self._corrupt = corrupt_names(options.column_name_of_corrupt_record)
        self._columns: list[Column] = [self._column(field) for field in schema]
        self._required = [
            (field, column)
            for field, column in zip(schema, self._columns, strict=True)
            if field.name not in {*self._metadata, *self._corrupt} and has_required(field)
        ]

    def build(self, batch: EventBatch) -> pa.RecordBatch:
        """The rows of a batch. Raises DeserializationError with the event's coordinates in mode FAILFAST."""
        rows = self._decode(batch)
        built = pa.RecordBatch.from_arrays([column(rows) for column in self._columns], schema=self._schema)
        if self._leave_out_nulls and _decoded(rows).values.null_count:
            values = _decoded(rows).values.is_valid().to_numpy(zero_copy_only=False)
            return built.filter(pa.array(values | _decoded(rows).bad()))
        return built

    def _decode(self, batch: EventBatch) -> _Rows:
        if self._serializer is None:
            return _Rows(batch, None)
        found = decode(
            self._serializer,
            batch.events,
            self._mode,
            lambda error: batch.locate(error, error.row or 0),
            (lambda found: self._missing(_Rows(batch, found))) if self._required else None,
        )
        if found.errors and self._on_bad is not None:
            self._on_bad(batch, found.errors)
        return _without_bad(batch, found) if found.errors and self._mode == "DROPMALFORMED" else _Rows(batch, found)

    def _missing(self, rows: _Rows) -> list[DeserializationError]:
        """What is null and may not be."""
        missing = [error for field, column in self._required for error in missing_values(column(rows), field)]
        if not self._leave_out_nulls:
            return missing
        values = _decoded(rows).values
        return [error for error in missing if error.row is not None and values[error.row].is_valid]

    def _column(self, field: pa.Field) -> Column:
        if field.name in self._metadata:
            _check_fit(_METADATA_TYPES[field.name], field)
            return self._metadata_column(field.name)
        if self._serializer is not None and field.name in self._corrupt:
            return _record_column(field) if field.name == self._corrupt[0] else _reason_column(field)
        return self._decoded_column(field)

    def _metadata_column(self, name: str) -> Column:
        columns: dict[str, Column] = {
            "event": lambda rows: rows.batch.events,
            "scope": lambda rows: self._constant(rows.batch.stream.scope, len(rows.batch.events)),
            "stream": lambda rows: self._constant(rows.batch.stream.stream, len(rows.batch.events)),
            "segment_id": lambda rows: pa.array(np.full(len(rows.batch.events), rows.batch.segment_id)),
            "offset": lambda rows: pa.array(rows.batch.offsets),
            "encoding_id": lambda rows: _encoding_ids(rows.batch.events),
            "event_time_low": lambda rows: timestamps(self._times.low(rows.batch.offsets)),
            "event_time_high": lambda rows: timestamps(self._times.high(rows.batch.offsets)),
        }
        return columns[name]

    def _constant(self, value: str, length: int) -> pa.Array:
        held = self._constants.get(value)
        if held is None or len(held) < length:
            held = self._constants[value] = pa.repeat(value, length)
        return held.slice(0, length)

    def _decoded_column(self, field: pa.Field) -> Column:
        if self._serializer is None:
            raise ConfigError(
                f"raw events have no column {field.name!r}: leave .schema(…) out, or set option 'format' to decode them"
            )
        if self._mode == "PERMISSIVE" and not field.nullable:
            raise ConfigError(
                f"column {field.name!r} is NOT NULL, and mode PERMISSIVE gives nulls for bad records: leave NOT NULL "
                "out of .schema(…)"
            )
        kind = self._serializer.arrow_type
        if not pa.types.is_struct(kind):
            _check_fit(kind, field)
            return lambda rows: _fit(_decoded(rows).values, field)
        place = kind.get_field_index(field.name)
        if place < 0:
            raise ConfigError(f"the events have no field {field.name!r}; they have: {', '.join(f.name for f in kind)}")
        _check_fit(kind.field(place).type, field)
        # flatten() and not field(): a null record is null in each of its columns.
        return lambda rows: _fit(_decoded(rows).values.flatten()[place], field)


def _decoded(rows: _Rows) -> Decoded:
    assert rows.decoded is not None
    return rows.decoded


def _check_fit(kind: pa.DataType, field: pa.Field) -> None:
    """Raise ConfigError unless the field is of Spark's type for this one: no other cast is sure to succeed."""
    own = from_arrow_type(kind)
    if kind != field.type and to_arrow_type(own, timezone="UTC") != field.type:
        raise ConfigError(
            f"column {field.name!r} is {from_arrow_type(field.type).simpleString()} in .schema(…), but "
            f"{own.simpleString()} in what is read, where anything may be null: leave .schema(…) out, and cast the "
            "column afterwards"
        )


def _fit(column: pa.Array, field: pa.Field) -> pa.Array:
    return column if column.type == field.type else column.cast(field.type)


def _without_bad(batch: EventBatch, found: Decoded) -> _Rows:
    keep = ~found.bad()
    mask = pa.array(keep)
    events = found.events.filter(mask)
    kept = EventBatch(batch.stream, batch.segment_id, events, batch.offsets[keep])
    return _Rows(kept, Decoded(events, found.values.filter(mask), []))


def _encoding_ids(events: pa.BinaryArray) -> pa.Int32Array:
    from pravega_serde.registry import encoding_ids  # noqa: PLC0415 - a second that only a registry's streams need

    return encoding_ids(events)


def _record_column(field: pa.Field) -> Column:
    if pa.types.is_string(field.type):
        # As Spark's own readers declare it; what is no text gets replacement characters.
        text = UTF8StringSerializer()
        return lambda rows: text.decode_column(_decoded(rows).records())
    _check_fit(CORRUPT_TYPES[0], field)
    return lambda rows: _decoded(rows).records()


def _reason_column(field: pa.Field) -> Column:
    _check_fit(CORRUPT_TYPES[1], field)
    return lambda rows: _decoded(rows).reasons()


def batches(builder: RowBuilder, events: Iterator[EventBatch]) -> Iterator[pa.RecordBatch]:
    """Record batches of events, one for one; those without rows are left out."""
    for batch in events:
        rows = builder.build(batch)
        if rows.num_rows:
            yield rows
