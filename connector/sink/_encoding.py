"""From rows to events and routing keys; what does not fit is said before a task starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from connector.errors import ColumnTypeError, ConfigError, NullEventError
from connector.exchange import Portable
from connector.sink._event_time import EventTime, event_time_of
from connector.sink._options import SinkOptions
from pravega_serde import SchemaError, Serializer
from pravega_serde.routing import ByColumn, ByConstant, ByField, EventRouter, Unrouted
from pravega_serde.serializer import FORMATS

__all__ = ["EventEncoder", "encoder_for"]

_EVENT: Final = "event"
_ROUTING_KEY: Final = "routing_key"


@dataclass(frozen=True, slots=True)
class EventEncoder:
    """Turns record batches into a column of events and a column of routing keys, or none. Can be pickled."""

    columns: tuple[str, ...]  # what becomes the event
    single: bool  # the one column is the whole event, not a record of it
    serializer: Portable[Serializer[Any]] | None  # None where the column holds events
    router: EventRouter
    event_time: EventTime | None = None

    def encode(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array | None]:
        """(events, routing keys or None), ready for a writer's ``write_column``.

        Raises SerializationError, NullEventError.
        """
        keys = self.router.keys(batch)
        events = batch.column(self.columns[0]) if self.single else batch.select(list(self.columns))
        if self.serializer is not None:
            events = self.serializer.get().encode_column(events)
        if events.null_count:
            row = pc.index(pc.is_null(events), value=True).as_py()
            raise NullEventError(
                f"row {row} of a batch has a null event, and Pravega has no null events: filter the rows or fill them"
            )
        return events, keys


def encoder_for(schema: pa.Schema, options: SinkOptions, *, streaming: bool = False) -> EventEncoder:
    """The encoder for a DataFrame's columns.

    Raises ColumnTypeError, ConfigError, RegistryErrors before anything is written.
    """
    event_time = event_time_of(schema, options)
    return replace(_encoder(schema, options, streaming=streaming), event_time=event_time)


def _encoder(schema: pa.Schema, options: SinkOptions, *, streaming: bool) -> EventEncoder:
    if options.from_registry:
        return _registry_encoder(schema, options, streaming=streaming)
    if options.format is None:
        return _raw_encoder(schema, options)
    router, key = _routing(schema, options)
    columns = _written(schema, options, key)
    kinds = [schema.field(name) for name in columns]
    serializer = options.serializer()
    # A Java sample is of a class, whose fields columns are, also where not all of them have a form in Arrow.
    single = len(columns) == 1 and not (options.says_record or _is_record(serializer))
    try:
        serializer.check_encodable(kinds[0].type if single else pa.struct(kinds))
    except SchemaError as error:
        takers = [each.name for each in FORMATS[options.format].options if each.record]
        hint = f"; option {takers[0]!r} takes such an event" if takers else ""
        raise ColumnTypeError(f"the columns cannot be written as {options.format}: {error.message}{hint}") from error
    return EventEncoder(columns, single, Portable(serializer), router)


def _registry_encoder(schema: pa.Schema, options: SinkOptions, *, streaming: bool) -> EventEncoder:
    from connector.sink._registry import (  # noqa: PLC0415 - a second that only a registry's streams need
        registry_encoding,
        registry_encoding_of_query,
    )

    router, key = _routing(schema, options)
    columns = _written(schema, options, key)
    # Without metadata, which may tell where columns come from.
    kinds = pa.schema([schema.field(name).remove_metadata() for name in columns])
    found = (registry_encoding_of_query if streaming else registry_encoding)(options, kinds)
    return EventEncoder(columns, found.single, Portable(found.serializer), router)


def _written(schema: pa.Schema, options: SinkOptions, key: str | None) -> tuple[str, ...]:
    """Columns that become the event: one that was named as the key, not one that is there only to be the key."""
    return tuple(name for name in schema.names if options.routing_key_field or name != key)


def _is_record(serializer: Serializer[Any]) -> bool:
    try:
        return bool(pa.types.is_struct(serializer.arrow_type))
    except SchemaError:  # a Java event can be anything, and then a column decides what it is
        return False


def _raw_encoder(schema: pa.Schema, options: SinkOptions) -> EventEncoder:
    names = schema.names
    if _EVENT not in names:
        raise ColumnTypeError(
            f"the DataFrame has no column 'event' (it has: {', '.join(names)}): name the bytes 'event', or set option "
            "'format' to have the columns serialized"
        )
    if not _is_event(schema.field(_EVENT).type):
        raise ColumnTypeError(f"column 'event' is {schema.field(_EVENT).type}, not binary or string: cast it")
    router, key = _routing(schema, options)
    if extra := [name for name in names if name not in (_EVENT, key, options.event_time_column)]:
        raise ColumnTypeError(
            f"columns {', '.join(extra)} would not be written: select only 'event' and 'routing_key', or set option "
            "'format'"
        )
    return EventEncoder((_EVENT,), True, None, router)


def _is_event(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_binary(kind) or t.is_large_binary(kind))


def _routing(schema: pa.Schema, options: SinkOptions) -> tuple[EventRouter, str | None]:
    """Where routing keys come from, and in which column: an option, else the column ``routing_key``, else nowhere."""
    if options.routing_key is not None:
        if options.routing_key_field is not None:
            raise ConfigError("options 'routing_key' and 'routing_key_field' both give the routing key: set only one")
        return ByConstant(options.routing_key), None
    path = options.routing_key_field or (_ROUTING_KEY if _ROUTING_KEY in schema.names else None)
    if path is None:
        return Unrouted(), None
    router: EventRouter = ByColumn(path) if path in schema.names else ByField(path)
    try:
        router.check(schema)
    except SchemaError as error:
        raise ColumnTypeError(error.message) from error
    return router, path if path in schema.names else path.partition(".")[0]
