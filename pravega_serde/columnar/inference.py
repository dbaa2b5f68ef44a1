"""Inference of columns from values that are read one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pravega_serde.errors import DeserializationError, SchemaError


class RowInference:
    """Inference of columns from events that are maps with texts for keys. Other events are left out."""

    def __init__(self, read: Callable[[bytes], Any]) -> None:
        """``read`` returns the value of an event, or raises DeserializationError."""
        self._read = read
        self._found = pa.schema([])

    def add(self, events: pa.BinaryArray) -> None:
        """Add the events of a column. Raises :class:`SchemaError` for events without types in common."""
        values = [value for event in events.drop_null().to_pylist() if isinstance(value := self._value(event), dict)]
        try:
            kind = pa.array(values).type
            fields = list(kind) if pa.types.is_struct(kind) else []
            self._found = pa.unify_schemas([self._found, pa.schema(fields)], promote_options="permissive")
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise SchemaError(str(error)) from error

    def schema(self) -> pa.Schema:
        """Return the columns of all events."""
        return self._found

    def _value(self, event: bytes) -> Any:
        try:
            return self._read(event)
        except DeserializationError:
            return None
