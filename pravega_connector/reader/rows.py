"""Rows of events: record batches of decoded fields, of metadata, and of malformed records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector import metrics
from pravega_connector.errors import ConfigError
from pravega_connector.reader.slices import EventBatch, batch_part
from pravega_connector.reader.watermarks import SegmentTimes
from pravega_serde.columnar import (
    list_items,
    map_entries,
    nothing,
    number_column,
    numbers_of,
    repeated_text,
    select,
    valid_rows,
)
from pravega_serde.errors import DeserializationError
from pravega_serde.registry.header import PRAVEGA, Framing, encoding_ids
from pravega_serde.serializer_interface import Deserializer
from pravega_serde.text import UTF8StringSerializer

#: Name of the column of events that are not records.
VALUE: Final = "value"
# Type of the columns of event times.
_EVENT_TIME: Final = pa.timestamp("us", "UTC")
# Milliseconds that fit into it. Writers may note any number; one that does not fit is null.
_MOST: Final = (2**63 - 1) // 1000
#: Columns of an event's place and time; the first five are those of the Scala connector for Spark.
METADATA: Final[dict[str, pa.DataType]] = {
    "event": pa.binary(),
    "scope": pa.string(),
    "stream": pa.string(),
    "segment_id": pa.int64(),
    "offset": pa.int64(),
    "encoding_id": pa.int32(),
    "event_time_low": _EVENT_TIME,
    "event_time_high": _EVENT_TIME,
}
#: Types of the two columns of malformed records: the record, and the text of its error.
CORRUPT_TYPES: Final = (pa.binary(), pa.string())
#: Event times of a slice without watermarks.
NO_TIMES: Final = SegmentTimes(*[np.empty(0, np.int64)] * 3)

# Row of each value.
_Rows = npt.NDArray[np.int64]
_Locate = Callable[[DeserializationError], DeserializationError]
#: Receives the malformed events of a batch, and returns when they are stored.
OnBad = Callable[[EventBatch, Sequence[DeserializationError]], object]


def corrupt_names(record: str) -> tuple[str, str]:
    """Return the names of the two columns, derived from the name of the first."""
    return record, f"{record}_error"


def has_field_error(name: str) -> ConfigError:
    """Return the error for events with a field that has the name of a column of malformed records."""
    return ConfigError(
        f"the events have a field {name!r}, which is also a column of malformed records: set "
        "'column_name_of_corrupt_record' to another name"
    )


def value_fields(kind: pa.DataType) -> list[pa.Field]:
    """Return the columns of decoded events of a type: the fields of records, or ``value``."""
    return list(kind) if pa.types.is_struct(kind) else [pa.field(VALUE, kind)]


def row_fields(
    serializer: Deserializer[Any] | None, metadata: Sequence[str], corrupt: Sequence[str] = (), *, fix: str
) -> list[pa.Field]:
    """Return the fields of rows: decoded fields, then metadata, then malformed records.

    Raises ConfigError, with ``fix`` in its text, for two columns of one name.
    """
    places = [pa.field(name, METADATA[name]) for name in metadata]
    decoded = [] if serializer is None else value_fields(serializer.arrow_type)
    fields = [*decoded, *places, *map(pa.field, corrupt, CORRUPT_TYPES)]
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"column {name!r} would exist twice, decoded and as metadata: {fix}")
    return fields


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded column. Malformed rows are null in ``values`` and have one error each."""

    values: pa.Array
    errors: list[DeserializationError]

    def bad(self) -> npt.NDArray[np.bool_]:
        """Return the mask of the rows that could not be decoded."""
        bad = np.zeros(len(self.values), bool)
        bad[[error.row for error in self.errors if error.row is not None]] = True
        return bad

    def records(self, events: pa.BinaryArray) -> pa.BinaryArray:
        """Return the events of the malformed rows; all other rows are null."""
        if not self.errors:
            return pa.nulls(len(events), CORRUPT_TYPES[0])
        return pc.if_else(number_column(self.bad()), events, nothing(CORRUPT_TYPES[0]))

    def reasons(self, tell: Callable[[DeserializationError], str] = str) -> pa.StringArray:
        """Return the texts of the errors; rows without an error are null."""
        if not self.errors:
            return pa.nulls(len(self.values), CORRUPT_TYPES[1])
        texts: list[str | None] = [None] * len(self.values)
        for error in self.errors:
            if error.row is not None:
                texts[error.row] = tell(error)
        return pa.array(texts, CORRUPT_TYPES[1])


def decode(
    serializer: Deserializer[Any],
    events: pa.BinaryArray,
    mode: str,
    locate: _Locate,
    check: Callable[[Decoded], list[DeserializationError]] | None = None,
) -> Decoded:
    """Decode a column. In FAILFAST the first malformed row raises its error. ``locate`` adds the position of the event.

    ``check`` returns errors for rows that could be decoded. If the serializer cannot decode all events together, the
    values are those of the first events only.
    """
    read = getattr(serializer, "decode_first", serializer.decode_column)
    errors: list[DeserializationError] = []
    if mode == "FAILFAST":
        try:
            values = read(events)
        except DeserializationError as error:
            raise locate(error) from error.__cause__
    else:
        values = read(events, on_error=lambda error: errors.append(locate(error)))
    found = Decoded(values, errors)
    return found if check is None else _checked(found, check(found), mode, locate)


def _checked(found: Decoded, more: list[DeserializationError], mode: str, locate: _Locate) -> Decoded:
    """Return the column with the additional errors; the rows with these errors become null."""
    bad = found.bad()
    first = {error.row: error for error in reversed(more) if error.row is not None and not bad[error.row]}
    if not first:
        return found
    if mode == "FAILFAST":
        raise locate(first[min(first)])
    rows = np.arange(len(found.values))
    values = select(found.values, rows, valid=~np.isin(rows, list(first)))
    return Decoded(values, [*found.errors, *map(locate, first.values())])


# Builds a column from a batch and its decoded events; raw events are their own values.
_Column = Callable[[EventBatch, Decoded], pa.Array]


class RowBuilder:
    """Builder of record batches of one schema; compiled once per read."""

    def __init__(
        self,
        schema: pa.Schema,
        serializer: Deserializer[Any] | None = None,
        *,
        metadata: Sequence[str] = (),
        corrupt: Sequence[str] = (),
        mode: str = "FAILFAST",
        not_null: bool = False,
        skip_nulls: bool = False,
        on_bad: OnBad | None = None,
        times: SegmentTimes = NO_TIMES,
        check_type: Callable[[pa.DataType, pa.Field], object] | None = None,
        component: str = "client",
    ) -> None:
        """Compile the columns: ``metadata`` and ``corrupt`` name those that are not decoded fields.

        ``mode`` is Spark's mode for malformed records. Unless it is FAILFAST, ``on_bad`` receives their errors before
        the rows are handed on. With ``not_null`` a null in a NOT NULL column is such a record. With ``skip_nulls``
        events that decode to null have no rows. ``times`` are the event times along the slice. ``check_type`` may
        refuse the type of a column of the schema. Raises ConfigError for columns that the events do not have.
        """
        self._schema, self._serializer = schema, serializer
        self._mode, self._skip_nulls, self._on_bad, self._times = mode, skip_nulls, on_bad, times
        self._component = component
        self.bytes_at_once: int = getattr(serializer, "bytes_at_once", 0)
        """Best size of a batch's events in bytes; 0 for any size."""
        self._constants: dict[str | int, pa.Array] = {}
        self._columns: list[_Column] = []
        self._required: list[tuple[pa.Field, _Column]] = []
        for field in schema:
            kind, column = self._column(field, metadata, () if serializer is None else corrupt)
            if check_type is not None:
                check_type(kind, field)
            self._columns.append(column)
            if not_null and field.name not in {*metadata, *corrupt} and has_required(field):
                if mode == "PERMISSIVE" and not field.nullable:
                    raise ConfigError(
                        f"column {field.name!r} is NOT NULL, and mode PERMISSIVE returns nulls for malformed records: "
                        "omit NOT NULL from .schema(…)"
                    )
                self._required.append((field, column))

    def build_all(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a batch, in parts if the serializer decodes only some of its events at once.

        Raises DeserializationError with the event's coordinates in mode FAILFAST.
        """
        rest: EventBatch | None = batch
        while rest is not None:
            rows, rest = self._build(rest)
            yield rows

    def _build(self, batch: EventBatch) -> tuple[pa.RecordBatch, EventBatch | None]:
        """Return the rows of the first events of a batch, and the remaining events."""
        batch, found, rest = self._decode(batch)
        columns = [column(batch, found) for column in self._columns]
        built = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        if self._skip_nulls and found.values.null_count:
            built = built.filter(number_column(valid_rows(found.values) | found.bad()))
        return built, rest

    def _decode(self, batch: EventBatch) -> tuple[EventBatch, Decoded, EventBatch | None]:
        """Return the batch, in mode DROPMALFORMED without malformed events, its decoded events, and the rest."""
        if self._serializer is None:
            return batch, Decoded(batch.events, []), None
        found = decode(
            self._serializer,
            batch.events,
            self._mode,
            lambda error: self._located(batch, error),
            (lambda found: self._missing(batch, found)) if self._required else None,
        )
        rest, count = None, len(found.values)
        if count < len(batch.events):
            batch, rest = batch_part(batch, 0, count), batch_part(batch, count)
        if found.errors and self._on_bad is not None:
            self._on_bad(batch, found.errors)
        if not found.errors or self._mode != "DROPMALFORMED":
            return batch, found, rest
        keep = ~found.bad()
        mask = number_column(keep)
        kept = replace(batch, events=batch.events.filter(mask), offsets=batch.offsets[keep])
        return kept, Decoded(found.values.filter(mask), []), rest

    def _located(self, batch: EventBatch, error: DeserializationError) -> DeserializationError:
        """Count a malformed event, and return its error with the coordinates of the event."""
        metrics.BAD_RECORDS.add(1, self._component, str(batch.stream))
        return batch.locate(error, error.row or 0)

    def _missing(self, batch: EventBatch, found: Decoded) -> list[DeserializationError]:
        """Return the errors of nulls in NOT NULL columns."""
        missing = [error for field, column in self._required for error in missing_values(column(batch, found), field)]
        if not self._skip_nulls:
            return missing
        return [error for error in missing if error.row is not None and found.values[error.row].is_valid]

    def _column(self, field: pa.Field, metadata: Sequence[str], corrupt: Sequence[str]) -> tuple[pa.DataType, _Column]:
        """Return the type of a column, and the function that builds it."""
        name = field.name
        if name in metadata:
            return METADATA[name], self._metadata_column(name)
        if name in corrupt:
            assert self._serializer is not None
            if any(each.name == name for each in value_fields(self._serializer.arrow_type)):
                raise has_field_error(name)
            return _record_column(field) if name == corrupt[0] else (CORRUPT_TYPES[1], lambda _, found: found.reasons())
        return self._decoded_column(field)

    def _metadata_column(self, name: str) -> _Column:
        columns: dict[str, _Column] = {
            "event": lambda batch, _: batch.events,
            "scope": lambda batch, _: self._constant(batch.stream.scope, len(batch.events)),
            "stream": lambda batch, _: self._constant(batch.stream.stream, len(batch.events)),
            "segment_id": lambda batch, _: self._constant(batch.segment_id, len(batch.events)),
            "offset": lambda batch, _: number_column(batch.offsets),
            "encoding_id": lambda batch, _: encoding_ids(batch.events, self._framings()),
            "event_time_low": lambda batch, _: timestamps(self._times.low(batch.offsets)),
            "event_time_high": lambda batch, _: timestamps(self._times.high(batch.offsets)),
        }
        return columns[name]

    def _framings(self) -> Sequence[Framing]:
        """Return the headers of the registries that the serializer reads from."""
        framings: Sequence[Framing] = getattr(self._serializer, "framings", (PRAVEGA,))
        return framings

    def _constant(self, value: str | int, length: int) -> pa.Array:
        """Return a column of one value. The longest one is kept, because all batches of a slice have the value."""
        held = self._constants.get(value)
        if held is None or len(held) < length:
            made = repeated_text(value, length) if isinstance(value, str) else number_column(np.full(length, value))
            held = self._constants[value] = made
        return held.slice(0, length)

    def _decoded_column(self, field: pa.Field) -> tuple[pa.DataType, _Column]:
        if self._serializer is None:
            raise ConfigError(
                f"raw events have no column {field.name!r}: omit .schema(…), or set option 'format' to decode them"
            )
        kind = self._serializer.arrow_type
        if not pa.types.is_struct(kind):
            return kind, lambda _, found: _cast(found.values, field)
        place = kind.get_field_index(field.name)
        if place < 0:
            raise ConfigError(f"the events have no field {field.name!r}; they have: {', '.join(f.name for f in kind)}")
        # flatten() and not field(): a null record is null in each of its columns.
        return kind.field(place).type, lambda _, found: _cast(found.values.flatten()[place], field)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    return column if column.type == field.type else column.cast(field.type)


def _record_column(field: pa.Field) -> tuple[pa.DataType, _Column]:
    if pa.types.is_string(field.type):
        # As Spark's own readers declare it; bytes that are not text become replacement characters.
        text = UTF8StringSerializer()
        return field.type, lambda batch, found: text.decode_column(found.records(batch.events))
    return CORRUPT_TYPES[0], lambda batch, found: found.records(batch.events)


def timestamps(millis: pa.Int64Array) -> pa.TimestampArray:
    """Return milliseconds since 1970 as a column of timestamps."""
    numbers = numbers_of(millis)
    fits = number_column((numbers >= -_MOST) & (numbers <= _MOST))
    return pc.if_else(fits, millis, nothing(millis.type)).cast(pa.timestamp("ms", "UTC")).cast(_EVENT_TIME)


# ---- NOT NULL --------------------------------------------------------------------------------------------------------


def has_required(field: pa.Field) -> bool:
    """Return True if the column, or a value within it, is NOT NULL."""
    kind = field.type
    inner = [kind.field(i) for i in range(kind.num_fields)]
    if pa.types.is_map(kind):
        inner = [kind.item_field]  # the entries themselves, and their keys, are never null
    return not field.nullable or any(map(has_required, inner))


def missing_values(column: pa.Array, field: pa.Field) -> list[DeserializationError]:
    """Return the errors of nulls that the schema forbids: one for each row and field."""
    if not column.null_count and not pa.types.is_nested(field.type):
        return []
    return [
        DeserializationError("it is null, but .schema(…) declares it NOT NULL", field_path=path, row=row)
        for rows, path in _nulls(column, field, np.arange(len(column)), f"$.{field.name}")
        for row in dict.fromkeys(rows.tolist())
    ]


def _nulls(column: pa.Array, field: pa.Field, rows: _Rows, path: str) -> Iterator[tuple[_Rows, str]]:
    """Yield the rows and the path of forbidden nulls; ``rows`` has the row of each value."""
    if column.null_count:
        valid = valid_rows(column)
        if not field.nullable:
            yield rows[~valid], path
        # Values within a null are not missing.
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
