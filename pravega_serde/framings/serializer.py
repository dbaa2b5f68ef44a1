"""Serializer of events in a framing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import pyarrow as pa

from pravega_serde.columnar import PlainPath, as_binary, bisecting, decode_rows
from pravega_serde.errors import DeserializationError, SerdeError, SerializationError
from pravega_serde.framings.layouts import LAYOUTS, RefusedError
from pravega_serde.serializer_interface import InnerColumns, OnError, Serializer, SerializerCalls, report
from pravega_serde.suggestions import did_you_mean

T = TypeVar("T")

#: Attributes of some serializers that hold as well for framed events.
_SAME: Final = frozenset({"as_dict", "message_class", "read_schema"})


class Framed(SerializerCalls, InnerColumns, Generic[T]):
    """Serializer of events with a header, a length or compression around the bytes of ``serializer``.

    ``framing`` is ``aws-glue``, ``azure``, ``delimited``, ``grpc``, ``gzip`` or ``zlib``. A reader accepts any id in
    the header, and a compressed payload of ``aws-glue`` and ``grpc``. It reads all events with the schema of
    ``serializer``. To write ``aws-glue`` or ``azure``, pass ``id``: the UUID of the schema version, or the schema id as
    32 hex digits. These payloads are written uncompressed.

    Raises :class:`SerdeError` for an unknown framing or an invalid id.
    """

    def __init__(
        self,
        serializer: Serializer[T],
        framing: str,
        *,
        id: str | None = None,  # noqa: A002 - the name in the registries
    ) -> None:
        if framing not in LAYOUTS:
            raise SerdeError(
                f"unknown framing {framing!r}{did_you_mean(str(framing), LAYOUTS)}; known: {', '.join(LAYOUTS)}"
            )
        super().__init__(serializer)
        self._framing, self._id, self._layout = framing, id, LAYOUTS[framing]
        if id is not None and self._layout.header is None:
            raise SerdeError(f"the framing {framing!r} has no id: omit it")
        self._header = b"" if id is None or self._layout.header is None else self._layout.header(str(id))
        #: True if a write may wait for a registry.
        self.write_may_block: bool = getattr(serializer, "write_may_block", False)
        #: True if equal values have equal events.
        self.is_deterministic: bool = getattr(serializer, "is_deterministic", True)
        vars(self).update({name: getattr(serializer, name) for name in _SAME if hasattr(serializer, name)})

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._inner, self._framing, self._id)

    def __repr__(self) -> str:
        more = "" if self._id is None else f", id={self._id!r}"
        return f"Framed({self._inner!r}, {self._framing!r}{more})"

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of a decoded column, the one of the inner serializer."""
        return self._inner.arrow_type

    @property
    def never_null(self) -> frozenset[str]:
        """Columns without nulls."""
        found: frozenset[str] = getattr(self._inner, "never_null", frozenset())
        return found

    def serialize(self, value: T) -> bytes:
        """Return the event of a value. Raises :class:`SerializationError`, also if the id is missing."""
        self._check_id()
        return self._header + self._layout.frame(self._inner.serialize(value))

    def deserialize(self, data: bytes) -> T:
        """Return the value of an event. Raises :class:`DeserializationError` for any other event."""
        value: T = self._inner.deserialize(self._layout.open(bytes(data)))
        return value

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Raise :class:`SchemaError` if a column of this type can never be encoded."""
        self._inner.check_encodable(arrow_type)

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Return the events of a column, see :meth:`Serializer.encode_column`."""
        self._check_id()
        return self._layout.frame_column(self._header, self._inner.encode_column(column))

    def _check_id(self) -> None:
        if self._layout.header is not None and self._id is None:
            raise SerializationError(f"the framing {self._framing!r} requires an id to write: Framed(…, id=…)")

    def _decode(self, column: pa.Array, on_error: OnError | None, decode: Callable[..., pa.Array]) -> pa.Array:
        errors: list[DeserializationError] = []
        payloads = decode_rows(
            as_binary(column),
            plain=PlainPath(self._layout.open, pa.binary()),
            fast=bisecting(self._layout.open_column, refusals=(RefusedError, DeserializationError)),
            on_error=errors.append,
        )
        values = decode(payloads, on_error=errors.append)
        report((each for each in errors if (each.row or 0) < len(values)), on_error)
        return values


def _rebuild(serializer: Serializer[Any], framing: str, id: str | None) -> Framed[Any]:  # noqa: A002
    return Framed(serializer, framing, id=id)
