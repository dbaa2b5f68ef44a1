"""What a writer takes: values and their serializer, bytes, columns of bytes, routing keys."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import pyarrow as pa

from connector.errors import ColumnTypeError, ConfigError
from pravega_serde.errors import SerializationError

__all__ = ["RawEvents", "SupportsSerialize", "as_binary", "as_bytes", "check_key"]

T_contra = TypeVar("T_contra", contravariant=True)


class SupportsSerialize(Protocol[T_contra]):
    """What a writer needs of a serializer."""

    def serialize(self, value: T_contra, /) -> bytes:
        """Bytes of one event."""
        ...


class RawEvents:
    """Events as they are: single ones, or the column ``event`` of a batch."""

    def serialize(self, value: bytes, /) -> bytes:
        """The event."""
        return value

    def deserialize(self, data: bytes, /) -> bytes:
        """The event."""
        return data

    def encode_column(self, column: pa.RecordBatch) -> pa.Array:
        """The events of a batch. Raises ColumnTypeError."""
        if column.schema.get_field_index("event") < 0:
            raise ColumnTypeError(
                f"the batch has no column 'event' (it has: {', '.join(column.schema.names)}): name the bytes 'event', "
                "or give the writer a serializer"
            )
        return column.column("event")


def as_bytes(event: Any) -> bytes:
    """What a serializer made, as bytes. Raises SerializationError if it is none."""
    if not isinstance(event, bytes | bytearray | memoryview):
        raise SerializationError(f"the serializer made a {type(event).__name__} of an event; it must return bytes")
    return bytes(event)


def check_key(routing_key: str) -> None:
    """Raise ConfigError for a routing key that is no text."""
    if not isinstance(routing_key, str):
        raise ConfigError(f"a routing key must be a str, not {type(routing_key).__name__}")
    try:
        _ = routing_key.isascii() or routing_key.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"the routing key {routing_key!a} holds half of a surrogate pair: it is no text") from None


def as_binary(column: pa.Array) -> pa.Array:
    """The column in a type whose lengths Arrow can tell."""
    t = pa.types
    if t.is_binary(column.type) or t.is_string(column.type) or t.is_large_binary(column.type):
        return column
    try:
        return column.cast(pa.large_binary())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ColumnTypeError(f"a column of {column.type} holds no events: cast it to binary or string") from None
