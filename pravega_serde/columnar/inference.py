"""Inference of columns from values that are read one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime
from typing import Any, Final

import pyarrow as pa

from pravega_serde.errors import DeserializationError, SchemaError

_INT64: Final = 1 << 63
# Bits of an integer that an error still shows.
_SHOWN_BITS: Final = 256


class RowInference:
    """Inference of columns from events that are maps with texts for keys. Other events are left out."""

    def __init__(self, read: Callable[[bytes], Any]) -> None:
        """``read`` returns the value of an event, or raises DeserializationError."""
        self._read = read
        self._found = pa.schema([])

    def add(self, events: pa.BinaryArray) -> None:
        """Add the events of a column. Raises :class:`SchemaError` for events without types in common."""
        values = [value for event in events.drop_null().to_pylist() if isinstance(value := self._value(event), dict)]
        _check_times(values, "$")
        try:
            kind = pa.array(values).type
            fields = list(kind) if pa.types.is_struct(kind) else []
            self._found = pa.unify_schemas([self._found, pa.schema(fields)], promote_options="permissive")
        except (pa.ArrowException, TypeError, OverflowError) as error:
            path, cause = _mismatch(values, "$", error)
            raise SchemaError(f"{path} has {cause}") from error

    def schema(self) -> pa.Schema:
        """Return the columns of all events."""
        return self._found

    def _value(self, event: bytes) -> Any:
        try:
            return self._read(event)
        except DeserializationError:
            return None


def _check_times(values: Iterable[Any], path: str) -> None:
    """Raise SchemaError for dates among times, or for times with and without a zone: Arrow would change them."""
    parts: dict[str, list[Any]] = {}
    kinds = set[str]()
    for value in values:
        if isinstance(value, datetime):
            kinds.add("times without a zone" if value.tzinfo is None else "times with a zone")
        elif isinstance(value, date):
            kinds.add("dates")
        elif isinstance(value, dict):
            for name, part in value.items():
                parts.setdefault(f"{path}.{name}", []).append(part)
        elif isinstance(value, list | tuple):
            parts.setdefault(f"{path}[]", []).extend(value)
    if len(kinds) > 1:
        raise SchemaError(f"{path} has {' and '.join(sorted(kinds))}: set the type of the column")
    for inner, part in parts.items():
        _check_times(part, inner)


def _mismatch(values: list[Any], path: str, error: Exception) -> tuple[str, str]:
    """Return the place of the values without a type, and the cause."""
    there = [value for value in values if value is not None]
    parts: dict[str, list[Any]] = {}
    if all(isinstance(value, dict) for value in there):
        for value in there:
            for name, inner in value.items():
                parts.setdefault(f"{path}.{name}", []).append(inner)
    elif all(isinstance(value, list) for value in there):
        parts[f"{path}[]"] = [item for value in there for item in value]
    for step, part in parts.items():
        try:
            pa.array(part)
        except (pa.ArrowException, TypeError, OverflowError) as inside:
            return _mismatch(part, step, inside)
    for value in there:
        if isinstance(value, int) and not -_INT64 <= value < _INT64:
            return path, _large(value)
    return path, f"values without a common type: {error}"


def _large(value: int) -> str:
    shown = str(value) if value.bit_length() < _SHOWN_BITS else f"of {value.bit_length()} bits"
    return f"the integer {shown}, which int64 cannot hold; pass decimal(38, 0) as its type"
