"""Columns of serializers whose events contain the events of another serializer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pravega_serde.serializer_interface import OnError, Serializer


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
