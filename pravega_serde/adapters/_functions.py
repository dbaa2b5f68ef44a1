"""A serializer made of two plain functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pyarrow as pa

from pravega_serde.columnar import PlainPath, as_column, bisecting, decode_rows, per_row
from pravega_serde.errors import DeserializationError, SchemaError, SerdeError, SerializationError
from pravega_serde.serializer import OnError

__all__ = ["FunctionSerializer"]

T = TypeVar("T")


class FunctionSerializer(Generic[T]):
    """Events as ``write`` makes them and ``read`` takes them.

    ``FunctionSerializer(pickle.dumps, pickle.loads)``. Whatever a function raises becomes a SerializationError or
    DeserializationError that names the function; errors of this package pass as they are. With ``arrow_type`` columns
    work too, row by row: ``read`` must then give what Arrow takes for that type, and ``write`` gets what Arrow gives.

    It can be pickled if its functions can.
    """

    def __init__(
        self, write: Callable[[T], bytes], read: Callable[[bytes], T], *, arrow_type: pa.DataType | None = None
    ) -> None:
        self._write, self._read, self._arrow_type = write, read, arrow_type

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._write, self._read, self._arrow_type)

    def __repr__(self) -> str:
        return f"FunctionSerializer({_name(self._write)}, {_name(self._read)}, arrow_type={self._arrow_type})"

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of decoded columns; :class:`SchemaError` if none was given."""
        if self._arrow_type is None:
            raise SchemaError("functions do not say which columns they make; give FunctionSerializer an arrow_type")
        return self._arrow_type

    def serialize(self, value: T) -> bytes:
        """What ``write`` makes of the value."""
        try:
            event = self._write(value)
        except SerdeError:
            raise
        except Exception as error:
            raise SerializationError(f"{_name(self._write)} failed: {type(error).__name__}: {error}") from error
        if not isinstance(event, bytes | bytearray | memoryview):
            raise SerializationError(f"{_name(self._write)} made a {type(event).__name__}, not bytes")
        return bytes(event)

    def deserialize(self, data: bytes) -> T:
        """What ``read`` makes of the event."""
        try:
            return self._read(bytes(data))
        except SerdeError:
            raise
        except Exception as error:
            raise DeserializationError(f"{_name(self._read)} failed: {type(error).__name__}: {error}") from error

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Whether the column can be cast to :attr:`arrow_type`."""
        try:
            pa.nulls(0, arrow_type).cast(self.arrow_type)
        except pa.ArrowException as error:
            raise SchemaError(f"a column of type {arrow_type} does not become {self.arrow_type}: {error}") from error

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """``write`` of each row."""
        column = as_column(column)
        self.check_encodable(column.type)
        try:
            values = column.cast(self.arrow_type).to_pylist()
        except pa.ArrowException as error:
            raise SerializationError(f"the column does not become {self.arrow_type}: {error}") from error
        return per_row(values, self.serialize)

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """``read`` of each row, as :attr:`arrow_type`."""
        kind = self.arrow_type

        def whole(events: pa.BinaryArray) -> pa.Array:
            return pa.array([self.deserialize(event) for event in events.to_pylist()], kind)

        fast = bisecting(whole, refusals=(DeserializationError, *_UNFIT))
        return decode_rows(column, plain=PlainPath(self._checked, kind), fast=fast, on_error=on_error)

    def _checked(self, data: bytes) -> Any:
        """A value that Arrow takes, or the row's error."""
        value = self.deserialize(data)
        try:
            pa.scalar(value, self.arrow_type)
        except _UNFIT as error:
            name = _name(self._read)
            raise DeserializationError(f"what {name} made does not fit {self.arrow_type}: {error}") from error
        return value


#: What Arrow raises for a value that does not fit its type.
_UNFIT = (pa.ArrowException, ArithmeticError, TypeError, ValueError)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


def _rebuild(write: Any, read: Any, arrow_type: pa.DataType | None) -> FunctionSerializer[Any]:
    return FunctionSerializer(write, read, arrow_type=arrow_type)
