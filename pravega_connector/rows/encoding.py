"""Rows as events, routing keys and event times; columns that do not fit raise an error before a task starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector.errors import ColumnTypeError, ConfigError, NullEventError
from pravega_connector.rows.options import FormatOptions
from pravega_connector.rows.options.sink import TARGET_STREAM, SinkOptions
from pravega_connector.rows.pickled import Pickled
from pravega_connector.rows.registry_encoding import registry_encoding, registry_encoding_of_query
from pravega_serde import envelopes
from pravega_serde.columnar.types import is_family
from pravega_serde.errors import SchemaError
from pravega_serde.format_table import find_format
from pravega_serde.routing import ByColumn, ByConstant, ByField, EventRouter, Unrouted
from pravega_serde.serializer_interface import Serializer

_EVENT: Final = "event"
_ROUTING_KEY: Final = "routing_key"
_NANOS: Final = {"day": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_EARLIEST: Final = -(2**63)


@dataclass(frozen=True, slots=True)
class EventTime:
    """Column with the event times of rows. Can be pickled."""

    column: str
    delay_ms: int
    """Maximum delay of rows compared with the latest one, like the delay of Spark's ``withWatermark``."""

    def latest(self, batch: pa.RecordBatch) -> int | None:
        """Return the latest time in a batch, in milliseconds since 1970; None if all are null."""
        value = pc.max(batch.column(self.column))
        if not value.is_valid:
            return None
        if pa.types.is_integer(value.type):
            return int(value.as_py())
        unit = "day" if pa.types.is_date32(value.type) else getattr(value.type, "unit", "ms")
        # In Python's integers, because Arrow's casts refuse early and late times. Rounded down to whole milliseconds:
        # a later row must not be before the noted time.
        return int(value.value) * _NANOS[unit] // _NANOS["ms"]


class LatestTime:
    """Latest event time of the rows of a task; None without a column, and for rows without times."""

    def __init__(self, event_time: EventTime | None) -> None:
        self._event_time = event_time
        self._latest: int | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Include rows in the latest time."""
        latest = None if self._event_time is None else self._event_time.latest(batch)
        if latest is not None and (self._latest is None or latest > self._latest):
            self._latest = latest

    @property
    def millis(self) -> int | None:
        """Time to note: the latest one minus the delay."""
        if self._latest is None or self._event_time is None:
            return None
        return max(self._latest - self._event_time.delay_ms, _EARLIEST)


@dataclass(frozen=True, slots=True)
class EventEncoder:
    """Encoder of record batches to a column of events and an optional column of routing keys. Can be pickled."""

    columns: tuple[str, ...]  # columns that become the event
    single: bool  # True: the only column is the whole event, not a field of a record
    serializer: Pickled[Serializer[Any]] | None  # None if the column contains events
    router: EventRouter
    event_time: EventTime | None = None
    target: str | None = None  # column that names the stream of each row

    def encode(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array | None]:
        """Return (events, routing keys or None), ready for a writer's ``write_column``.

        Raises SerializationError, NullEventError.
        """
        keys = self.router.keys(batch)
        events = batch.column(self.columns[0]) if self.single else batch.select(list(self.columns))
        if self.serializer is not None:
            events = self.serializer.get().encode_column(events)
        if events.null_count:
            row = pc.index(pc.is_null(events), value=True).as_py()
            raise NullEventError.at_row(row)
        return events, keys


def encoder_for(schema: pa.Schema, options: SinkOptions, *, streaming: bool = False) -> EventEncoder:
    """Return the encoder for the columns of a DataFrame.

    Raises ColumnTypeError, ConfigError, RegistryErrors before anything is written.
    """
    if not options.encryption_deterministic and options.mode(streaming=streaming) == "exactly_once":
        raise ConfigError(
            "encryption_deterministic=false does not work with exactly_once, which requires equal bytes of a repeated "
            "batch: omit it, or set writer_mode=at_least_once"
        )
    event_time, target = _event_time(schema, options), _target(schema, options)
    if target is not None:
        _check_target(schema, options, streaming=streaming)
    rows = schema if target is None else schema.remove(schema.get_field_index(target))
    encoder = _encoder(rows, options, streaming=streaming)
    if encoder.serializer is not None and not getattr(encoder.serializer.get(), "is_deterministic", True):
        _check_repeats(options, streaming=streaming)
    return replace(encoder, event_time=event_time, target=target)


def _check_repeats(options: SinkOptions, *, streaming: bool) -> None:
    """Raise ConfigError for a mode that requires equal events of equal rows."""
    if options.mode(streaming=streaming) == "exactly_once":
        raise ConfigError(
            "the schema's rules encrypt fields with random nonces or keys that expire, or use the time or random "
            "numbers, which does not work with exactly_once: use AES256_SIV without encrypt.dek.expiry.days and "
            "expressions without now, or set writer_mode=at_least_once"
        )


def _target(schema: pa.Schema, options: SinkOptions) -> str | None:
    """Return the column that names streams if the options name no stream."""
    named = options.stream is not None or options.path is not None
    return TARGET_STREAM if TARGET_STREAM in schema.names and not named else None


def require_text(schema: pa.Schema, target: str) -> None:
    """Check the type of the column that names streams. Raises ColumnTypeError."""
    kind = schema.field(target).type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise ColumnTypeError(f"column {target!r} is {kind}, not a string: cast it")


def require_group(target: str, options: SinkOptions) -> None:
    """Check that the schema of several streams has a group. Raises ConfigError."""
    if options.from_registry and options.group is None:
        raise ConfigError(
            f"column {target!r} names the streams: with a schema registry, set option 'group' for the schema"
        )


def _check_target(schema: pa.Schema, options: SinkOptions, *, streaming: bool) -> None:
    require_text(schema, TARGET_STREAM)
    if options.mode(streaming=streaming) == "exactly_once" and options.ledger is None:
        raise ConfigError(
            f"exactly_once with column {TARGET_STREAM!r} requires option 'ledger': the stream that records the batches "
            "of all streams, as scope/stream. Set it, or writer_mode=at_least_once"
        )
    require_group(TARGET_STREAM, options)


def _encoder(schema: pa.Schema, options: SinkOptions, *, streaming: bool) -> EventEncoder:
    if options.envelope is not None:
        return _enveloped_encoder(schema, options, options.envelope, streaming=streaming)
    if options.from_registry:
        return _registry_encoder(schema, options, streaming=streaming)
    if options.format is None:
        return _raw_encoder(schema, options)
    router, key = _routing(schema, options)
    columns = _written(schema, options, key)
    single, serializer = value_encoding([schema.field(name) for name in columns], options)
    return EventEncoder(columns, single, serializer, router)


def value_encoding(columns: Sequence[pa.Field], options: FormatOptions) -> tuple[bool, Pickled[Serializer[Any]]]:
    """Return True if the only column is the whole value, not a field of a record; and the serializer of ``format``.

    Raises ColumnTypeError if the columns cannot be written, ConfigError, SchemaError.
    """
    serializer = options.serializer()
    # Columns are the fields of the class of a Java sample, even if Arrow has no type for some fields.
    single = len(columns) == 1 and not (options.says_record or _is_record(serializer))
    try:
        serializer.check_encodable(columns[0].type if single else pa.struct(list(columns)))
    except SchemaError as error:
        assert options.format is not None
        takers = [each.name for each in find_format(options.format).options if each.record]
        hint = f"; option {takers[0]!r} accepts such an event" if takers else ""
        raise ColumnTypeError(f"the columns cannot be written as {options.format}: {error.message}{hint}") from error
    return single, Pickled(serializer)


def _registry_encoder(schema: pa.Schema, options: SinkOptions, *, streaming: bool) -> EventEncoder:
    router, key = _routing(schema, options)
    columns = _written(schema, options, key)
    single, serializer = _registry_encoding([schema.field(name) for name in columns], options, streaming=streaming)
    return EventEncoder(columns, single, Pickled(serializer), router)


def _registry_encoding(
    columns: Sequence[pa.Field], options: SinkOptions, *, streaming: bool
) -> tuple[bool, Serializer[Any]]:
    """Return True if the only column is the whole value, and the serializer with a schema of the registry."""
    # Without metadata, which may depend on the origin of the columns.
    kinds = pa.schema([column.remove_metadata() for column in columns])
    found = (registry_encoding_of_query if streaming else registry_encoding)(options, kinds)
    return found.single, options.complete(found.serializer)


def _enveloped_encoder(schema: pa.Schema, options: SinkOptions, envelope: str, *, streaming: bool) -> EventEncoder:
    router, key = _routing(schema, options)
    columns = _written(schema, options, key)
    if envelopes.VALUE not in columns:
        raise ColumnTypeError(
            f"the DataFrame has no column 'value' for the data of the envelopes (it has: {', '.join(schema.names)}): "
            "put the fields into a struct, such as struct('id', 'item').alias('value')"
        )
    if "headers" not in columns:
        for name in ("cloudevents_source", "cloudevents_type"):
            if getattr(options, name) is None:
                raise ConfigError(f"option 'envelope' requires option {name!r}, or a column 'headers'")
    value = schema.field(envelopes.VALUE)
    if options.from_registry:
        fields = list(value.type) if pa.types.is_struct(value.type) else [value]
        inner = _registry_encoding(fields, options, streaming=streaming)[1]
    else:
        inner = options.serializer()
    enveloped = envelopes.Enveloped(inner, envelope, source=options.cloudevents_source, type=options.cloudevents_type)
    serializer = options.framed(enveloped)
    try:
        serializer.check_encodable(pa.struct([schema.field(name) for name in columns]))
    except SchemaError as error:
        raise ColumnTypeError(f"the columns cannot be written as {envelope}: {error.message}") from error
    return EventEncoder(columns, False, Pickled(serializer), router)


def _written(schema: pa.Schema, options: SinkOptions, key: str | None) -> tuple[str, ...]:
    """Return the columns that become the event: all except a column ``routing_key`` that no option names."""
    dropped = _ROUTING_KEY if key == _ROUTING_KEY and options.routing_key_field is None else None
    return tuple(name for name in schema.names if name != dropped)


def _is_record(serializer: Serializer[Any]) -> bool:
    try:
        return bool(pa.types.is_struct(serializer.arrow_type))
    except SchemaError:  # a Java event can have any type; the column then decides
        return False


def _raw_encoder(schema: pa.Schema, options: SinkOptions) -> EventEncoder:
    names = schema.names
    if _EVENT not in names:
        raise ColumnTypeError(
            f"the DataFrame has no column 'event' (it has: {', '.join(names)}): name the column of bytes 'event', or "
            "set option 'format' to serialize the columns"
        )
    if not is_bytes(schema.field(_EVENT).type):
        raise ColumnTypeError(f"column 'event' is {schema.field(_EVENT).type}, not binary or string: cast it")
    router, key = _routing(schema, options)
    if extra := [name for name in names if name not in (_EVENT, key, options.event_time_column)]:
        raise ColumnTypeError(
            f"columns {', '.join(extra)} would not be written: select only 'event' and 'routing_key', or set option "
            "'format' (for INSERT, in the options of the SQL table)"
        )
    return EventEncoder((_EVENT,), True, None, router)


def is_bytes(kind: pa.DataType) -> bool:
    """Return True for a column of bytes or text."""
    t = pa.types
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_binary(kind) or t.is_large_binary(kind))


def _routing(schema: pa.Schema, options: SinkOptions) -> tuple[EventRouter, str | None]:
    """Return the router and its column.

    It is the column of an option, otherwise ``routing_key``, otherwise the ``key`` of envelopes, otherwise none.
    """
    if options.routing_key is not None:
        if options.routing_key_field is not None:
            raise ConfigError("options 'routing_key' and 'routing_key_field' both set the routing key: set only one")
        return ByConstant(options.routing_key), None
    defaults = [_ROUTING_KEY, *(["key"] if options.envelope is not None else [])]
    path = options.routing_key_field or next((name for name in defaults if name in schema.names), None)
    if path is None:
        _check_case(schema)
        return Unrouted(), None
    router: EventRouter = ByColumn(path) if path in schema.names else ByField(path)
    try:
        router.check(schema)
    except SchemaError as error:
        raise ColumnTypeError(error.message) from error
    return router, path if path in schema.names else path.partition(".")[0]


def _check_case(schema: pa.Schema) -> None:
    """Raise ColumnTypeError for a column that would be ``routing_key`` in Spark's own comparison of names."""
    for name in schema.names:
        if name.lower() == _ROUTING_KEY:
            raise ColumnTypeError(
                f"column {name!r} has the name of the column 'routing_key' in another case, and would not be the "
                f"routing key: rename it, or set option 'routing_key_field' to {name!r}"
            )


def _event_time(schema: pa.Schema, options: SinkOptions) -> EventTime | None:
    """Return the event time column that the options name. Raises ColumnTypeError."""
    name = options.event_time_column
    if name is None:
        return None
    if name not in schema.names:
        raise ColumnTypeError(
            f"the DataFrame has no column {name!r} for 'event_time_column' (it has: {', '.join(schema.names)})"
        )
    kind = schema.field(name).type
    if not (is_family(kind, "timestamp", "date") or pa.types.is_int64(kind)):
        raise ColumnTypeError(
            f"column {name!r} is {kind}, not a time: 'event_time_column' accepts TIMESTAMP, TIMESTAMP_NTZ, DATE, and "
            "BIGINT (milliseconds since 1970)"
        )
    return EventTime(name, options.event_time_delay_ms)
