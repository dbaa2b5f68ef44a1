"""Serializer from two plain functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pyarrow as pa

from pravega_serde.columnar import ColumnReader, ColumnSerializer, ColumnWriter, PlainPath, per_row
from pravega_serde.columnar.base import Write
from pravega_serde.columnar.building import fit_decimals
from pravega_serde.columnar.types import contains
from pravega_serde.errors import DeserializationError, SchemaError, SerdeError, SerializationError

T = TypeVar("T")


class FunctionSerializer(ColumnSerializer, Generic[T]):
    """Serializer from two functions: ``write`` turns a value into an event, ``read`` an event into a value.

    Example: ``FunctionSerializer(str.encode, bytes.decode)``. An exception in a function becomes a SerializationError
    or DeserializationError that names the function. Errors of this package pass unchanged. With ``arrow_type``, columns
    work too, row by row: ``read`` must then return values that Arrow accepts for that type, and ``write`` receives
    Arrow's values. The serializer can be pickled if its functions can.
    """

    def __init__(
        self, write: Callable[[T], bytes], read: Callable[[bytes], T], *, arrow_type: pa.DataType | None = None
    ) -> None:
        self._write, self._read, self._arrow_type = write, read, arrow_type

    def _arguments(self) -> dict[str, Any]:
        return {"write": self._write, "read": self._read, "arrow_type": self._arrow_type}

    def __repr__(self) -> str:
        return f"FunctionSerializer({_name(self._write)}, {_name(self._read)}, arrow_type={self._arrow_type})"

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of decoded columns. Raises :class:`SchemaError` if none was passed."""
        if self._arrow_type is None:
            raise SchemaError("the columns of functions are unknown; pass arrow_type to FunctionSerializer")
        return self._arrow_type

    def serialize(self, value: T) -> bytes:
        """Return the event that ``write`` creates from a value."""
        try:
            event = self._write(value)
        except SerdeError:
            raise
        except Exception as error:
            raise SerializationError(f"{_name(self._write)} failed: {type(error).__name__}: {error}") from error
        if not isinstance(event, bytes | bytearray | memoryview):
            raise SerializationError(f"{_name(self._write)} returned a {type(event).__name__}, not bytes")
        return bytes(event)

    def deserialize(self, data: bytes) -> T:
        """Return the value that ``read`` creates from an event."""
        try:
            return self._read(bytes(data))
        except SerdeError:
            raise
        except Exception as error:
            raise DeserializationError(f"{_name(self._read)} failed: {type(error).__name__}: {error}") from error

    def _make_reader(self) -> ColumnReader:
        kind, fit = self.arrow_type, fit_decimals(self.arrow_type)

        def read(event: bytes) -> Any:
            value = self.deserialize(event)
            try:
                return fit(value)
            except (TypeError, ValueError) as error:
                raise DeserializationError(f"{str(value)[:80]!r} does not fit {kind}: {error}") from error

        return ColumnReader(PlainPath(read if contains(kind, "decimal") else self.deserialize, kind), None)

    def _make_writer(self) -> ColumnWriter:
        kind = self.arrow_type

        def writer(given: pa.DataType) -> Write:
            try:
                pa.nulls(0, given).cast(kind)
            except pa.ArrowException as error:
                raise SchemaError(f"a column of type {given} cannot be converted to {kind}: {error}") from error
            return write

        def write(column: pa.Array) -> pa.BinaryArray:
            return per_row(column.cast(kind).to_pylist(), self.serialize)

        return ColumnWriter(writer)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or repr(function)
