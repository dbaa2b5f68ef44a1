"""Columns of a serializer that has none."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pravega_serde.columnar import ColumnSerializer
from pravega_serde.columnar.base import columns_type
from pravega_serde.errors import DeserializationError, SchemaError, SerdeError, SerializationError


class ByRow(ColumnSerializer):
    """Serializer with columns from an object with ``serialize`` or ``deserialize`` or both, one call for each row.

    Columns are read as ``arrow_type``. They are written with the Python values of the column.
    """

    def __init__(self, serializer: Any, *, arrow_type: pa.DataType | pa.Schema | None = None) -> None:
        self._serializer = serializer
        self._arrow_type = None if arrow_type is None else columns_type(arrow_type)

    def _arguments(self) -> dict[str, Any]:
        return {"serializer": self._serializer, "arrow_type": self._arrow_type}

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of decoded columns. Raises :class:`SchemaError` if none was passed."""
        if self._arrow_type is None:
            own: pa.DataType | None = getattr(self._serializer, "arrow_type", None)
            if own is not None:
                return own
            raise SchemaError(f"{self._name} does not define its columns: pass arrow_type, such as a pyarrow.Schema")
        return self._arrow_type

    @property
    def _name(self) -> str:
        return type(self._serializer).__name__

    def serialize(self, value: Any) -> bytes:
        """Return the event of a value. Raises :class:`SerializationError`, also for an object that only reads."""
        write = getattr(self._serializer, "serialize", None)
        if write is None:
            raise SerializationError(f"{self._name} only reads events: it has no method serialize")
        try:
            event: bytes = write(value)
        except SerdeError:
            raise
        except Exception as error:
            raise SerializationError(f"{self._name} failed: {type(error).__name__}: {error}") from error
        if not isinstance(event, bytes):
            raise SerializationError(f"{self._name} returned a {type(event).__name__}: return bytes")
        return event

    def deserialize(self, data: bytes) -> Any:
        """Return the value of an event. Raises :class:`DeserializationError`, also for an object that only writes."""
        read = getattr(self._serializer, "deserialize", None)
        if read is None:
            raise DeserializationError(f"{self._name} only writes events: it has no method deserialize")
        try:
            return read(data)
        except SerdeError:
            raise
        except Exception as error:
            raise DeserializationError(f"{self._name} failed: {type(error).__name__}: {error}") from error
