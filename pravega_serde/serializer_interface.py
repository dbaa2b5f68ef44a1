"""Interface of all serializers: events by row and by Arrow column.

This module imports no format, so that every format can import it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from pravega_serde.errors import DeserializationError

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: Receives the error of each row that cannot be decoded; its ``row`` is the position in the column.
OnError = Callable[[DeserializationError], None]


class Deserializer(Protocol[T_co]):
    """Reader of events in one format, one by one or by column: the part of a :class:`Serializer` that reads.

    A program that only reads needs no other methods.
    """

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of a decoded column; see :attr:`Serializer.arrow_type`."""

    def deserialize(self, data: bytes) -> T_co:
        """Return the value of one event. Raises :class:`DeserializationError` for other bytes."""

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Return the values of a column of events; see :meth:`Serializer.decode_column`."""


class Serializer(Protocol[T]):
    """Writer and reader of events in one format, one by one or by column (a serde).

    A serializer is immutable, safe to share between threads, and can be pickled: Spark sends it to its workers. It
    prepares schemas and plans when it is created.

    Rows and columns have the same bytes. The values of a decoded column are those of the rows, in the Arrow types that
    Spark's data sources accept: ``string`` and ``binary`` rather than their large or view forms, ``timestamp[us]``,
    lists whose field is called ``element``, every field nullable.
    """

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of a decoded column, a struct for records. It is known before any event is read.

        Raises :class:`SchemaError` if the format or its schema has no columnar form.
        """

    def serialize(self, value: T) -> bytes:
        """Return the event of one value.

        Raises :class:`SerializationError` if the format does not support the value.
        """

    def deserialize(self, data: bytes) -> T:
        """Return the value of one event. Raises :class:`DeserializationError` for other bytes."""

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Raise :class:`SchemaError` if a column of this type can never be encoded. It needs no data: call it early."""

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Return the events of a whole column, in order. A null row stays null: it is no event.

        Raises :class:`SchemaError` for an unsupported column type, and :class:`SerializationError` with the row for an
        invalid value.
        """

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Return the values of a column of events. A null row stays null.

        Without ``on_error``, the first malformed row raises its :class:`DeserializationError`. With it, each malformed
        row becomes null and its error is passed on, in the order of the rows: ``on_error=errors.append`` collects them.
        """


def report(errors: Iterable[DeserializationError], on_error: OnError | None) -> None:
    """Pass the errors of a column on, in the order of their rows. Without ``on_error``, raise the first one."""
    for error in sorted(errors, key=lambda each: each.row or 0):
        if on_error is None:
            raise error
        on_error(error)


@runtime_checkable
class HasDicts(Protocol):
    """Serializer with value objects of its format, such as Protobuf's messages."""

    def as_dict(self, value: Any) -> Any:
        """Convert an object to mappings, lists and scalars."""


class SerializerCalls:
    """Calls of a serializer by other clients, such as confluent-kafka, aiokafka and kombu.

    They call a serializer as a function of a value, some with a context. None, a Kafka tombstone, stays None. The
    counterpart for reading is :attr:`deserializer`, because one function cannot tell a value of bytes from an event.
    """

    if TYPE_CHECKING:

        def serialize(self, value: Any) -> bytes:
            """Return the event of one value."""

        def deserialize(self, data: bytes) -> Any:
            """Return the value of one event."""

    def __call__(self, value: Any, ctx: object = None) -> bytes | None:
        """Return the event of a value, and None for None."""
        return None if value is None else self.serialize(value)

    @property
    def deserializer(self) -> DeserializerCalls:
        """Callable that returns the value of an event, ``deserializer(data, ctx=None)``, and None for None."""
        return _Reading(self)


class DeserializerCalls:
    """Calls of an object that only reads: it returns the value of an event, and None for None."""

    if TYPE_CHECKING:

        def deserialize(self, data: bytes) -> Any:
            """Return the value of one event."""

    def __call__(self, data: bytes | None, ctx: object = None) -> Any:
        """Return the value of an event, and None for None."""
        return None if data is None else self.deserialize(data)


class _Reading(DeserializerCalls):
    def __init__(self, serializer: SerializerCalls) -> None:
        self._serializer = serializer

    def deserialize(self, data: bytes) -> Any:
        return self._serializer.deserialize(data)


class InnerColumns(ABC):
    """Base class of serializers around an inner serializer, which decodes its part of the columns."""

    def __init__(self, inner: Serializer[Any]) -> None:
        self._inner = inner
        #: True if a read may wait for a registry.
        self.read_may_block: bool = getattr(inner, "read_may_block", False)

    @property
    def bytes_at_once(self) -> int:
        """Number of bytes of events that are best decoded together; 0 if it makes no difference."""
        return int(getattr(self._inner, "bytes_at_once", 0))

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.StructArray:
        """Return the columns of a column of events; see :meth:`Serializer.decode_column` for errors."""
        return self._decode(column, on_error, self._inner.decode_column)

    def decode_first(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.StructArray:
        """Return the columns of the first events, as many as the inner serializer decodes at once."""
        return self._decode(column, on_error, getattr(self._inner, "decode_first", self._inner.decode_column))

    @abstractmethod
    def _decode(self, column: pa.Array, on_error: OnError | None, decode: Callable[..., pa.Array]) -> pa.StructArray:
        """Return the columns of events, with ``decode`` for the events of the inner serializer."""
