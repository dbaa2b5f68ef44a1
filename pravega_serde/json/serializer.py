"""JSON serializer: rows, columns, and validation of both with a JSON Schema."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from pravega_serde.columnar import Attempt, ColumnReader, ColumnSerializer, ColumnWriter, FastPath, PlainPath, per_row
from pravega_serde.columnar.base import Write, columns_type, no_columns
from pravega_serde.errors import DeserializationError, MissingExtraError, SerializationError
from pravega_serde.json.columns import column_reader
from pravega_serde.json.rows import TypedReader, parse
from pravega_serde.json.write_columns import column_writer
from pravega_serde.json.write_rows import to_json

if TYPE_CHECKING:
    from pravega_serde.json.schema import JsonSchema, SchemaLike

#: Events of flat objects below which reading by row is faster.
_FEW_TO_READ: Final = 8


class JsonSerializer(ColumnSerializer):
    """Serializer of JSON text in UTF-8, as Jackson's ``ObjectMapper`` writes and reads it by default.

    Rows need no schema: ``deserialize`` returns the values of Python's ``json``. Columns are decoded into
    ``arrow_type`` (a type, or a schema for its columns). Fields that an event lacks are null; fields that the type
    lacks are ignored.

    Columns hold booleans, integers, floats, strings, binary (Base64), decimals, dates and timestamps (ISO 8601), lists,
    maps with string keys, and structs. For a timestamp, a whole number is milliseconds since 1970, as Jackson writes a
    ``java.util.Date``.

    With ``schema``, every event is validated when it is read or written, by row and by column. ``schema`` is a JSON
    Schema as text, parsed JSON or the path of a file. See :mod:`pravega_serde.json.schema` for drafts, references and
    limits. Validation runs event by event, for some 30,000 small events a second. It requires the ``json-schema``
    extra.

    Raises :class:`SchemaError` for an invalid schema and for an unsupported Arrow type.
    """

    #: Content type of the events in an envelope.
    content_type = "application/json"

    def __init__(self, *, arrow_type: pa.DataType | pa.Schema | None = None, schema: SchemaLike | None = None) -> None:
        self._arrow_type = None if arrow_type is None else columns_type(arrow_type)
        self._schema = None if schema is None else json_schema(schema)
        if arrow_type is not None:
            _ = self.column_reader  # an unsupported type raises here, not at the first event

    def _arguments(self) -> dict[str, Any]:
        return {"arrow_type": self._arrow_type, "schema": self.schema}

    @property
    def schema(self) -> str | None:
        """Compact text of the JSON Schema that validates events; None without one."""
        return None if self._schema is None else self._schema.text

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
            raise no_columns("json")
        return self._arrow_type

    def text_fault(self, path: Sequence[str]) -> str | None:
        """Return the reason why the JSON Schema does not allow every text in a field."""
        return None if self._schema is None else self._schema.text_fault(path)

    def serialize(self, value: Any) -> bytes:
        """Return the text of a value, using the table in :mod:`pravega_serde.json.write_rows`."""
        text = to_json(value)
        return text if self._schema is None else _checked_text(text, self._schema)

    def deserialize(self, data: bytes) -> Any:
        """Return the value of an event."""
        value = parse(data)
        if self._schema is not None:
            self._schema.check(value)
        return value

    def _make_reader(self) -> ColumnReader:
        kind, schema = self.arrow_type, self._schema
        read, fast = TypedReader(kind), column_reader(kind)
        if schema is None:
            return ColumnReader(PlainPath(read, kind), fast, few=_FEW_TO_READ)

        def read_valid(event: bytes) -> Any:
            schema.check(parse(event))
            return read(event)

        return ColumnReader(PlainPath(read_valid, kind), fast and _checked_path(fast, schema), few=_FEW_TO_READ)

    def _make_writer(self) -> ColumnWriter:
        schema = self._schema
        if schema is None:
            return ColumnWriter(column_writer)

        def checked_writer(kind: pa.DataType) -> Write:
            write = column_writer(kind)
            return lambda column: per_row(write(column).to_pylist(), lambda text: _checked_text(text, schema))

        return ColumnWriter(checked_writer)


def _checked_path(fast: FastPath, schema: JsonSchema) -> FastPath:
    """Return the fast path, with the events that the schema refuses among its suspects."""

    def attempt(column: pa.BinaryArray) -> Attempt:
        tried = fast(column)
        known = set(tried.suspects.tolist())
        wrong = [
            row for row, event in enumerate(column.to_pylist()) if row not in known and not _is_valid(event, schema)
        ]
        return Attempt(tried.values, np.union1d(tried.suspects, np.array(wrong, np.int64)))

    return attempt


def _is_valid(event: bytes, schema: JsonSchema) -> bool:
    try:
        schema.check(parse(event))
    except DeserializationError:
        return False
    return True


def _checked_text(text: bytes, schema: JsonSchema) -> bytes:
    """Return the text. Raise :class:`SerializationError` if the schema refuses its value."""
    try:
        schema.check(parse(text))
    except DeserializationError as error:
        raise SerializationError(error.reason, field_path=error.field_path) from error
    return text


def json_schema(schema: SchemaLike) -> JsonSchema:
    """Return a checked schema. Raises :class:`MissingExtraError` without ``jsonschema``."""
    # Imported here: jsonschema takes longer to import than everything else that JSON needs.
    try:
        module = importlib.import_module("pravega_serde.json.schema")
    except ModuleNotFoundError as error:
        raise MissingExtraError("jsonschema", "json-schema", purpose="JSON Schema validation") from error
    made: JsonSchema = module.JsonSchema(schema)
    return made
