"""The JSON serializer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from pravega_serde.columnar import FastPath, PlainPath, as_column, chained, decode_rows
from pravega_serde.errors import SchemaError
from pravega_serde.json._read_columns import column_reader
from pravega_serde.json._read_rows import TypedReader, parse
from pravega_serde.json._shapes import shape_reader
from pravega_serde.json._write_columns import Render, renderer, write_column
from pravega_serde.json._write_rows import to_json
from pravega_serde.serializer import OnError

__all__ = ["JsonSerializer"]


class JsonSerializer:
    """JSON text in UTF-8, as Jackson's ``ObjectMapper`` writes and reads it by default.

    Rows need no schema: ``deserialize`` gives what Python's own ``json`` gives. Columns are decoded into ``arrow_type``
    (a type, or a schema for its columns): fields that an event lacks are null, those that the type lacks are ignored.

    Columns hold booleans, integers, floats, strings, binary (Base64), decimals, dates and timestamps (ISO 8601; a whole
    number is milliseconds since 1970, as Jackson writes a ``java.util.Date``), lists, maps with string keys, structs.
    """

    def __init__(self, *, arrow_type: pa.DataType | pa.Schema | None = None) -> None:
        self._arrow_type = pa.struct(list(arrow_type)) if isinstance(arrow_type, pa.Schema) else arrow_type
        self._columns = None if self._arrow_type is None else _columns(self._arrow_type)
        self._renderers: dict[pa.DataType, Render] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._arrow_type,)

    def __repr__(self) -> str:
        return f"JsonSerializer(arrow_type={self._arrow_type})"

    @cached_property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of decoded columns; :class:`SchemaError` if none was given."""
        if self._arrow_type is None:
            raise SchemaError("JSON does not say which columns it has; give the json format an arrow_type")
        return self._arrow_type

    def serialize(self, value: Any) -> bytes:
        """The text of a value: see :mod:`pravega_serde.json._write_rows` for what becomes of which type."""
        return to_json(value)

    def deserialize(self, data: bytes) -> Any:
        """The value of an event."""
        return parse(data)

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Whether JSON has a form for each column."""
        if arrow_type not in self._renderers:
            self._renderers[arrow_type] = renderer(arrow_type)

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Text of a column: an object for each row of a struct or batch."""
        column = as_column(column)
        self.check_encodable(column.type)
        return write_column(column, self._renderers[column.type])

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Values of a column of events, in :attr:`arrow_type`."""
        kind = self.arrow_type
        assert self._columns is not None, kind
        return decode_rows(column, plain=self._columns.plain, fast=self._columns.fast, on_error=on_error)


@dataclass(frozen=True, slots=True)
class _Columns:
    plain: PlainPath
    fast: FastPath | None


def _columns(kind: pa.DataType) -> _Columns:
    plain = PlainPath(TypedReader(kind), kind)
    by_shape, by_event = shape_reader(kind), column_reader(kind)
    fast = chained(by_shape, by_event) if by_shape and by_event else by_shape or by_event
    return _Columns(plain, fast)


def _rebuild(arrow_type: pa.DataType | None) -> JsonSerializer:
    return JsonSerializer(arrow_type=arrow_type)
