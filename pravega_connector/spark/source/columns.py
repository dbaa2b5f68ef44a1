"""Columns of the source: metadata, what a format decodes, and event times, from events to Spark's record batches.

Watermarks come some seconds after the events that they are about, so a batch that is read again would find more of
them. Therefore the offset of a batch of a stream query says how far the watermarks went when it was planned, and its
columns ``event_time_low`` and ``event_time_high`` are made from those and no others.

The schemas of a registry that a query has are fixed when Spark asks for the columns. Spark makes readers later, in
other processes, when the registry may have newer ones; so the schemas' ids travel in the metadata of the first column,
in SQL tables, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector import metrics
from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import ConfigError, StreamNotFoundError
from pravega_connector.reader.event_columns import METADATA
from pravega_connector.reader.slices import EventBatch, SegmentSlice
from pravega_connector.reader.watermarks import SegmentTimes
from pravega_connector.spark.options.source import EVENT_TIME_COLUMNS, METADATA_COLUMNS, SourceOptions
from pravega_connector.spark.pickling import Portable
from pravega_connector.spark.source.bad_records import CORRUPT_TYPES, Decoded, corrupt_names, decode
from pravega_connector.spark.source.streams import of_each
from pravega_connector.wire import StreamName, Watermark
from pravega_serde.columnar import (
    list_items,
    map_entries,
    nothing,
    number_column,
    numbers_of,
    repeated_text,
    valid_rows,
)
from pravega_serde.errors import DeserializationError
from pravega_serde.serializer_interface import Serializer
from pravega_serde.text import UTF8StringSerializer

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

#: Serializer of the events; None where they stay raw.
Decoder = Portable[Serializer[Any]] | None

# Name of the column of a format that has no fields.
VALUE: Final = "value"
# Type of the columns of event times.
_EVENT_TIME: Final = pa.timestamp("us", "UTC")
#: Event times of a slice of which nothing is known.
NO_TIMES: Final = SegmentTimes(*[np.empty(0, np.int64)] * 3)
# Milliseconds that fit into it. Writers may count what they like; what is no such time is null.
_MOST: Final = (2**63 - 1) // 1000
# Key of a column's metadata.
_IDS: Final = "pravega.registry"

_METADATA_TYPES: Final = {
    **METADATA,
    "encoding_id": pa.int32(),
    "event_time_low": _EVENT_TIME,
    "event_time_high": _EVENT_TIME,
}


def serializer_of(options: SourceOptions, wanted: pa.Schema | None, ids: Sequence[int] | None = None) -> Decoder:
    """The serializer that the options ask for; None for raw events.

    ``wanted`` is the schema of the rows that the user gave with ``.schema(…)``, ``ids`` those of the schemas of a
    registry that the query has. Raises ConfigError, SchemaError, RegistryErrors.
    """
    if options.from_registry:
        from pravega_connector.spark.source.registry_schemas import registry_reader  # noqa: PLC0415 - a second that only its streams need

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


# Of each value the row that it belongs to.
Rows = npt.NDArray[np.int64]
#: Makes a column of a batch and of its decoded events; raw events count as decoded to themselves.
Column = Callable[[EventBatch, Decoded], pa.Array]
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
        """``on_bad`` receives a batch's errors before its rows are handed on, unless the mode is FAILFAST.

        ``times`` are those of the slice that the batches are of.
        """
        self._schema = schema
        self._on_bad, self._times = on_bad, times
        self._serializer = None if serializer is None else serializer.get()
        self.bytes_at_once: int = getattr(self._serializer, "bytes_at_once", 0)
        """Bytes of events that a batch has best, where so many are there; 0 for any number."""
        self._mode = options.decode_mode
        # A registry's types that were not chosen have no rows; the reader makes them null.
        self._leave_out_nulls = options.registry_type is not None
        self._constants: dict[str | int, pa.Array] = {}
        self._metadata = frozenset(options.metadata_columns)
        self._corrupt = corrupt_names(options.column_name_of_corrupt_record)
        self._columns: list[Column] = [self._column(field) for field in schema]
        self._required = [
            (field, column)
            for field, column in zip(schema, self._columns, strict=True)
            if field.name not in {*self._metadata, *self._corrupt} and has_required(field)
        ]

    def build_all(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a batch, in parts where its events decode into too much at once; see :meth:`build`."""
        rest: EventBatch | None = batch
        while rest is not None:
            rows, rest = self._build(rest)
            yield rows

    def build(self, batch: EventBatch) -> pa.RecordBatch:
        """The rows of a batch. Raises DeserializationError with the event's coordinates in mode FAILFAST."""
        parts = list(self.build_all(batch))
        return parts[0] if len(parts) == 1 else pa.concat_batches(parts)

    def _build(self, batch: EventBatch) -> tuple[pa.RecordBatch, EventBatch | None]:
        """The rows of a batch's first events, and the events that are left."""
        batch, found, rest = self._decode(batch)
        columns = [column(batch, found) for column in self._columns]
        built = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        if self._leave_out_nulls and found.values.null_count:
            built = built.filter(number_column(valid_rows(found.values) | found.bad()))
        return built, rest

    def _decode(self, batch: EventBatch) -> tuple[EventBatch, Decoded, EventBatch | None]:
        """The decoded events, their batch (in mode DROPMALFORMED one without bad events), and the events left over."""
        if self._serializer is None:
            return batch, Decoded(batch.events, []), None
        found = decode(
            self._serializer,
            batch.events,
            self._mode,
            lambda error: _noted(batch, error),
            (lambda found: self._missing(batch, found)) if self._required else None,
        )
        rest, count = None, len(found.values)
        if count < len(batch.events):
            rest = replace(batch, events=batch.events[count:], offsets=batch.offsets[count:])
            batch = replace(batch, events=batch.events[:count], offsets=batch.offsets[:count])
        if found.errors and self._on_bad is not None:
            self._on_bad(batch, found.errors)
        if not found.errors or self._mode != "DROPMALFORMED":
            return batch, found, rest
        keep = ~found.bad()
        mask = number_column(keep)
        kept = EventBatch(batch.stream, batch.segment_id, batch.events.filter(mask), batch.offsets[keep])
        return kept, Decoded(found.values.filter(mask), []), rest

    def _missing(self, batch: EventBatch, found: Decoded) -> list[DeserializationError]:
        """Errors of nulls where ``.schema(…)`` allows none."""
        missing = [error for field, column in self._required for error in missing_values(column(batch, found), field)]
        if not self._leave_out_nulls:
            return missing
        return [error for error in missing if error.row is not None and found.values[error.row].is_valid]

    def _column(self, field: pa.Field) -> Column:
        if field.name in self._metadata:
            _check_fit(_METADATA_TYPES[field.name], field)
            return self._metadata_column(field.name)
        if self._serializer is not None and field.name in self._corrupt:
            return _record_column(field) if field.name == self._corrupt[0] else _reason_column(field)
        return self._decoded_column(field)

    def _metadata_column(self, name: str) -> Column:
        columns: dict[str, Column] = {
            "event": lambda batch, _: batch.events,
            "scope": lambda batch, _: self._constant(batch.stream.scope, len(batch.events)),
            "stream": lambda batch, _: self._constant(batch.stream.stream, len(batch.events)),
            "segment_id": lambda batch, _: self._constant(batch.segment_id, len(batch.events)),
            "offset": lambda batch, _: number_column(batch.offsets),
            "encoding_id": lambda batch, _: _encoding_ids(batch.events),
            "event_time_low": lambda batch, _: timestamps(self._times.low(batch.offsets)),
            "event_time_high": lambda batch, _: timestamps(self._times.high(batch.offsets)),
        }
        return columns[name]

    def _constant(self, value: str | int, length: int) -> pa.Array:
        """A column of one value; the longest so far is kept, as batches of one slice have the same."""
        held = self._constants.get(value)
        if held is None or len(held) < length:
            made = repeated_text(value, length) if isinstance(value, str) else number_column(np.full(length, value))
            held = self._constants[value] = made
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
            return lambda _, found: _fit(found.values, field)
        place = kind.get_field_index(field.name)
        if place < 0:
            raise ConfigError(f"the events have no field {field.name!r}; they have: {', '.join(f.name for f in kind)}")
        _check_fit(kind.field(place).type, field)
        # flatten() and not field(): a null record is null in each of its columns.
        return lambda _, found: _fit(found.values.flatten()[place], field)


def _noted(batch: EventBatch, error: DeserializationError) -> DeserializationError:
    """Count a bad event; its error with its place."""
    metrics.BAD_RECORDS.add(1, "source", str(batch.stream))
    return batch.locate(error, error.row or 0)


def _check_fit(kind: pa.DataType, field: pa.Field) -> None:
    """Raise ConfigError unless the field is of Spark's type for this one: no other cast is sure to succeed."""
    if kind == field.type:
        return
    from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type  # noqa: PLC0415 - exports work without Spark

    own = from_arrow_type(kind)
    if to_arrow_type(own, timezone="UTC") != field.type:
        raise ConfigError(
            f"column {field.name!r} is {from_arrow_type(field.type).simpleString()} in .schema(…), but "
            f"{own.simpleString()} in what is read, where anything may be null: leave .schema(…) out, and cast the "
            "column afterwards"
        )


def _fit(column: pa.Array, field: pa.Field) -> pa.Array:
    return column if column.type == field.type else column.cast(field.type)


def _encoding_ids(events: pa.BinaryArray) -> pa.Int32Array:
    from pravega_serde.registry import encoding_ids  # noqa: PLC0415 - a second that only a registry's streams need

    return encoding_ids(events)


def _record_column(field: pa.Field) -> Column:
    if pa.types.is_string(field.type):
        # As Spark's own readers declare it; what is no text gets replacement characters.
        text = UTF8StringSerializer()
        return lambda batch, found: text.decode_column(found.records(batch.events))
    _check_fit(CORRUPT_TYPES[0], field)
    return lambda batch, found: found.records(batch.events)


def _reason_column(field: pa.Field) -> Column:
    _check_fit(CORRUPT_TYPES[1], field)
    return lambda _, found: found.reasons()


# ---- NOT NULL --------------------------------------------------------------------------------------------------------


def with_never_null(fields: Sequence[pa.Field], options: SourceOptions, serializer: Decoder) -> list[pa.Field]:
    """The fields of a read's rows, NOT NULL where no event leaves them null.

    Spark looks for nulls in every value of a nullable column, twice on its way into a query: with six columns of Avro
    that takes a third of the JVM's time. Never null are an event's bytes and its place; and where bad events have no
    rows, what the serializer has in every value.
    """
    sure = set(METADATA_COLUMNS) & set(options.metadata_columns)
    if serializer is not None and options.decode_mode != "PERMISSIVE":
        sure |= getattr(serializer.get(), "never_null", frozenset())
    return [field.with_nullable(field.name not in sure) for field in fields]


def has_required(field: pa.Field) -> bool:
    """Whether the column, or a value within it, is NOT NULL."""
    kind = field.type
    inner = [kind.field(i) for i in range(kind.num_fields)]
    if pa.types.is_map(kind):
        inner = [kind.item_field]  # the entries themselves, and their keys, are never null
    return not field.nullable or any(map(has_required, inner))


def missing_values(column: pa.Array, field: pa.Field) -> list[DeserializationError]:
    """Errors of the rows that have a null where there may be none: one for each row and place."""
    if not column.null_count and not pa.types.is_nested(field.type):
        return []
    return [
        DeserializationError("it is null, and .schema(…) says NOT NULL", field_path=path, row=row)
        for rows, path in _nulls(column, field, np.arange(len(column)), f"$.{field.name}")
        for row in dict.fromkeys(rows.tolist())
    ]


def _nulls(column: pa.Array, field: pa.Field, rows: Rows, path: str) -> Iterator[tuple[Rows, str]]:
    """Rows, and the place in them, of nulls that may not be; ``rows`` says which row each value belongs to."""
    if column.null_count:
        valid = valid_rows(column)
        if not field.nullable:
            yield rows[~valid], path
        # What is in a null is not missing.
        column, rows = column.drop_null(), rows[valid]
    kind = field.type
    if pa.types.is_struct(kind):
        for child, values in zip(kind, column.flatten(), strict=True):
            yield from _nulls(values, child, rows, f"{path}.{child.name}")
    elif pa.types.is_list(kind):
        lengths, values = list_items(column)
        yield from _nulls(values, kind.value_field, np.repeat(rows, lengths), f"{path}[]")
    elif pa.types.is_map(kind):
        lengths, _, values = map_entries(column)
        yield from _nulls(values, kind.item_field, np.repeat(rows, lengths), f"{path}[]")


# ---- event time: what the streams' watermarks say about each event ---------------------------------------------------


def wants_event_time(options: SourceOptions) -> bool:
    """Whether the rows have one of the columns."""
    return not set(EVENT_TIME_COLUMNS).isdisjoint(options.metadata_columns)


def marks_end(client: PravegaClient, streams: Iterable[StreamName]) -> dict[StreamName, int]:
    """End of the watermarks of each stream at this moment."""

    def end(stream: StreamName) -> int | None:
        with suppress(StreamNotFoundError):  # it was deleted just now, which is missed when it is read
            return client.watermark_log(stream).end()
        return None

    asked = list(streams)
    return {stream: at for stream, at in zip(asked, of_each(end, asked), strict=True) if at is not None}


def times_along(
    client: PravegaClient, slices: Sequence[SegmentSlice], ends: Mapping[StreamName, int] | None = None
) -> Iterator[SegmentTimes]:
    """Yield the event times of each slice, by watermarks up to the given ends, by default by all of this moment.

    A stream that is not among the ends has none: its offset is of a query that did not ask for the columns then.
    """

    def watermarks(stream: StreamName) -> Sequence[Watermark]:
        log = client.watermark_log(stream)
        return log.read() if ends is None else log.read_until(ends.get(stream, 0))

    streams = list(dict.fromkeys(piece.stream for piece in slices))
    known = dict(zip(streams, of_each(watermarks, streams), strict=True))
    for piece in slices:
        yield client.watermark_log(piece.stream).along(piece, known[piece.stream])


def timestamps(millis: pa.Int64Array) -> pa.TimestampArray:
    """Milliseconds since 1970 as a column."""
    numbers = numbers_of(millis)
    fits = number_column((numbers >= -_MOST) & (numbers <= _MOST))
    return pc.if_else(fits, millis, nothing(millis.type)).cast(pa.timestamp("ms", "UTC")).cast(_EVENT_TIME)


# ---- schemas of a registry -------------------------------------------------------------------------------------------


def schema_ids(options: SourceOptions) -> tuple[int, ...] | None:
    """Ids of the latest schemas that the options choose; None without a registry, or where a schema is given.

    Raises RegistryErrors, SchemaError if there are none, ConfigError.
    """
    if not options.from_registry:
        return None
    from pravega_connector.spark.source.registry_schemas import latest_ids  # noqa: PLC0415 - a second that only its streams need

    return latest_ids(options)


def with_schema_ids(schema: StructType, options: SourceOptions, ids: Sequence[int] | None) -> StructType:
    """The schema with the ids in it."""
    if ids is None:
        return schema
    from pyspark.sql.types import StructField, StructType  # noqa: PLC0415 - exports work without Spark

    first = schema[0]
    metadata = {**first.metadata, _IDS: json.dumps({**_group(options), "ids": list(ids)}, sort_keys=True)}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *schema.fields[1:]])


def schema_ids_of(schema: StructType, options: SourceOptions) -> tuple[int, ...] | None:
    """The ids that a schema carries; None if it carries none, or those of another group."""
    if not options.from_registry:
        return None
    for field in schema:
        carried = json.loads(field.metadata.get(_IDS, "{}"))
        if carried and {key: value for key, value in carried.items() if key != "ids"} == _group(options):
            return tuple(carried["ids"])
    return None


def _group(options: SourceOptions) -> dict[str, str | None]:
    return {"group": options.registry_group(), "namespace": options.namespace, "type": options.registry_type}
