"""The CBOR serializer: rows and columns."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, Self

import pyarrow as pa

from pravega_serde.columnar import ColumnReader, ColumnSerializer, ColumnWriter, PlainPath
from pravega_serde.columnar.bad_rows import per_row
from pravega_serde.columnar.base import Write, columns_type, no_columns
from pravega_serde.errors import MissingExtraError


class CborSerializer(ColumnSerializer):
    """Serializer with one CBOR data item (RFC 8949) for each event.

    It reads the events that Jackson's ``CBORMapper`` writes, and the reverse.

    Rows need no schema: see :mod:`pravega_serde.cbor.rows` for the values. Columns are decoded into ``arrow_type`` (a
    type, or a schema for its columns). Fields that an event lacks are null; fields that the type lacks are ignored.

    Columns hold booleans, integers, floats, strings, binary, decimals, dates, timestamps, lists, structs, and maps.
    Keys of maps are strings, binary or integers. Times of day are written as text. Columns are read and written row by
    row: cbor2 takes most of the time.

    With ``deterministic``, equal values have equal bytes: see :mod:`pravega_serde.cbor.write_rows`.

    These events are refused:

    - events nested more than 400 deep
    - dense events from half a mebibyte on, with more than one tag for four bytes
    - maps with a duplicate key
    - bytes after the value
    - the tags of references

    Raises :class:`SchemaError` for an unsupported Arrow type. Requires the ``cbor`` extra.
    """

    #: Content type of the events in an envelope.
    content_type = "application/cbor"

    def __init__(self, *, arrow_type: pa.DataType | pa.Schema | None = None, deterministic: bool = False) -> None:
        self._arrow_type = None if arrow_type is None else columns_type(arrow_type)
        self._deterministic = deterministic
        self._read_row = _module("rows").parse
        self._write_row = _module("write_rows").to_cbor
        if arrow_type is not None:
            _ = self.column_reader  # an unsupported type raises here, not at the first event

    def _arguments(self) -> dict[str, Any]:
        given: dict[str, Any] = {"arrow_type": self._arrow_type}
        return given | {"deterministic": True} if self._deterministic else given

    @property
    def has_columns(self) -> bool:
        """True if the type of columns is known."""
        return self._arrow_type is not None

    def with_columns(self, arrow_type: pa.DataType | pa.Schema) -> Self:
        """Return the serializer with the type of columns."""
        return type(self)(**{**self._arguments(), "arrow_type": arrow_type})

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of decoded columns. Raises :class:`SchemaError` if none was given."""
        if self._arrow_type is None:
            raise no_columns("cbor")
        return self._arrow_type

    def serialize(self, value: Any) -> bytes:
        """Return the event of a value, using the table in :mod:`pravega_serde.cbor.write_rows`."""
        event: bytes = self._write_row(value, deterministic=self._deterministic)
        return event

    def deserialize(self, data: bytes) -> Any:
        """Return the value of an event, using the table in :mod:`pravega_serde.cbor.rows`."""
        return self._read_row(data)

    def _make_reader(self) -> ColumnReader:
        kind = self.arrow_type
        return ColumnReader(PlainPath(_module("rows").TypedReader(kind), kind), None)

    def _make_writer(self) -> ColumnWriter:
        def prepare(kind: pa.DataType) -> Write:
            values = _module("write_columns").row_values(kind)
            return lambda column: per_row(values(column), self.serialize)

        return ColumnWriter(prepare)


def _module(name: str) -> ModuleType:
    """Import a module of the format; all of them need cbor2."""
    try:
        return importlib.import_module(f"pravega_serde.cbor.{name}")
    except ModuleNotFoundError as error:
        raise MissingExtraError("cbor2", "cbor", purpose="the CBOR format") from error
