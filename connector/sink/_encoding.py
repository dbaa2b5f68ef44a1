"""From rows to events and routing keys; what does not fit is said before a task starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from connector.errors import ColumnTypeError, NullEventError
from connector.sink._options import SinkOptions
from pravega_serde import SchemaError, Serializer

__all__ = ["EventEncoder", "encoder_for"]

_EVENT: Final = "event"
_ROUTING_KEY: Final = "routing_key"


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_event(kind: pa.DataType) -> bool:
    return _is_text(kind) or bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


@dataclass(frozen=True, slots=True)
class EventEncoder:
    """Turns record batches into a column of events and a column of routing keys, or none."""

    event: str | None  # the column of raw events; None where rows are serialized
    key: str | None
    fields: tuple[str, ...]  # columns of the serialized record
    serializer: Serializer[Any] | None
    single: bool = False  # the one column is the whole event, not a record of it

    def encode(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array | None]:
        """(events, routing keys or None). Raises SerializationError, NullEventError."""
        keys = None if self.key is None else batch.column(self.key)
        if self.event is not None:
            events = batch.column(self.event)
        else:
            assert self.serializer is not None
            rows = batch.column(self.fields[0]) if self.single else batch.select(list(self.fields))
            events = self.serializer.encode_column(rows)
        if events.null_count:
            row = pc.index(pc.is_null(events), value=True).as_py()
            raise NullEventError(
                f"row {row} of a batch has a null event, and Pravega has no null events: filter the rows or fill them"
            )
        return events, keys


def encoder_for(schema: pa.Schema, options: SinkOptions) -> EventEncoder:
    """The encoder for a DataFrame's columns. Raises ColumnTypeError, ConfigError before anything is written."""
    if options.format is None:
        return _raw_encoder(schema, options)
    serializer = options.serializer()
    key = options.routing_key_field or (_ROUTING_KEY if _ROUTING_KEY in schema.names else None)
    if key is not None:
        _check_key(schema, key)
    # A column that was named as the key belongs to the event; one that is there only to be the key does not.
    fields = tuple(name for name in schema.names if options.routing_key_field or name != _ROUTING_KEY)
    kinds = [schema.field(name) for name in fields]
    # JSON writes objects; the other formats may be of single values, and then take a single column.
    single = len(fields) == 1 and options.format.lower() != "json" and not pa.types.is_struct(serializer.arrow_type)
    try:
        serializer.check_encodable(kinds[0].type if single else pa.struct(kinds))
    except SchemaError as error:
        raise ColumnTypeError(f"the columns cannot be written as {options.format}: {error.message}") from error
    return EventEncoder(None, key, fields, serializer, single)


def _raw_encoder(schema: pa.Schema, options: SinkOptions) -> EventEncoder:
    names = schema.names
    if _EVENT not in names:
        raise ColumnTypeError(
            f"the DataFrame has no column 'event' (it has: {', '.join(names)}): name the bytes 'event', or set option "
            "'format' to have the columns serialized"
        )
    if not _is_event(schema.field(_EVENT).type):
        raise ColumnTypeError(f"column 'event' is {schema.field(_EVENT).type}, not binary or string: cast it")
    key = options.routing_key_field or (_ROUTING_KEY if _ROUTING_KEY in names else None)
    if key is not None:
        _check_key(schema, key)
    if extra := [name for name in names if name not in (_EVENT, key)]:
        raise ColumnTypeError(
            f"columns {', '.join(extra)} would not be written: select only 'event' and 'routing_key', or set option "
            "'format'"
        )
    return EventEncoder(_EVENT, key, (), None)


def _check_key(schema: pa.Schema, key: str) -> None:
    if key not in schema.names:
        raise ColumnTypeError(f"there is no column {key!r} for the routing key; there are: {', '.join(schema.names)}")
    if not _is_text(schema.field(key).type):
        raise ColumnTypeError(f"the routing key {key!r} is {schema.field(key).type}, not string: cast it")
