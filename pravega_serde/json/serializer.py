"""The JSON serializer: rows, columns, and the check of both by a JSON Schema."""

from __future__ import annotations

import importlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pravega_serde.columnar import Attempt, FastPath, PlainPath, as_column, decode_rows
from pravega_serde.errors import DeserializationError, MissingExtraError, SchemaError, SerializationError
from pravega_serde.json.columns import column_reader
from pravega_serde.json.rows import TypedReader, parse
from pravega_serde.json.write_columns import Render, renderer, write_column
from pravega_serde.json.write_rows import to_json
from pravega_serde.serializer import OnError

if TYPE_CHECKING:
    from pravega_serde.json.schema import JsonSchema, SchemaLike

__all__ = ["JsonSerializer"]


class JsonSerializer:
    """JSON text in UTF-8, as Jackson's ``ObjectMapper`` writes and reads it by default.

    Rows need no schema: ``deserialize`` gives the values of Python's ``json``. Columns are decoded into ``arrow_type``
    (a type, or a schema for its columns): fields that an event lacks are null, those that the type lacks are ignored.

    Columns hold booleans, integers, floats, strings, binary (Base64), decimals, dates and timestamps (ISO 8601; a whole
    number is milliseconds since 1970, as Jackson writes a ``java.util.Date``), lists, maps with string keys, structs.

    With ``schema``, a JSON Schema as text, parsed JSON or the path of a file, every event is checked on reading and on
    writing, by row and by column: see :mod:`pravega_serde.json.schema` for drafts, references and limits. That is done
    event by event, some 30,000 small ones a second. Needs the ``json-schema`` extra.

    Raises :class:`SchemaError` for an invalid schema and for an Arrow type that JSON is not read as.
    """

    def __init__(self, *, arrow_type: pa.DataType | pa.Schema | None = None, schema: SchemaLike | None = None) -> None:
        self._arrow_type = pa.struct(list(arrow_type)) if isinstance(arrow_type, pa.Schema) else arrow_type
        self._schema = None if schema is None else _json_schema(schema)
        self._paths = None if self._arrow_type is None else _paths(self._arrow_type, self._schema)
        self._renderers: dict[pa.DataType, Render] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._arrow_type, self.schema)

    def __repr__(self) -> str:
        schema = "" if self.schema is None else f", schema={self.schema}"
        return f"JsonSerializer(arrow_type={self._arrow_type}{schema})"

    @property
    def schema(self) -> str | None:
        """Compact text of the JSON Schema that events are checked by; None without one."""
        return None if self._schema is None else self._schema.text

    @cached_property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of decoded columns. Raises :class:`SchemaError` if none was given."""
        if self._arrow_type is None:
            raise SchemaError("JSON does not say which columns it has; give the json format an arrow_type")
        return self._arrow_type

    def serialize(self, value: Any) -> bytes:
        """Text of a value, by the table in :mod:`pravega_serde.json.write_rows`."""
        text = to_json(value)
        if self._schema is not None:
            _check_written(self._schema, text)
        return text

    def deserialize(self, data: bytes) -> Any:
        """Value of an event."""
        value = parse(data)
        if self._schema is not None:
            self._schema.check(value)
        return value

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Raise :class:`SchemaError` for a column type that has no form in JSON."""
        if arrow_type not in self._renderers:
            self._renderers[arrow_type] = renderer(arrow_type)

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Texts of a column's values: an object for each row of a struct or batch."""
        column = as_column(column)
        self.check_encodable(column.type)
        events = write_column(column, self._renderers[column.type])
        if self._schema is not None:
            for row, event in enumerate(events.to_pylist()):
                if event is not None:
                    _check_written(self._schema, event, f"row {row}: ")
        return events

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Values of a column of events, in :attr:`arrow_type`."""
        kind = self.arrow_type
        assert self._paths is not None, kind
        plain, fast = self._paths
        return decode_rows(column, plain=plain, fast=fast, on_error=on_error)


def _paths(kind: pa.DataType, schema: JsonSchema | None) -> tuple[PlainPath, FastPath | None]:
    """Both ways to read columns of a type."""
    read, fast = TypedReader(kind), column_reader(kind)
    if schema is None:
        return PlainPath(read, kind), fast

    def read_valid(event: bytes) -> Any:
        schema.check(parse(event))
        return read(event)

    return PlainPath(read_valid, kind), fast and _checked(fast, schema)


def _checked(fast: FastPath, schema: JsonSchema) -> FastPath:
    """The fast path, with the events that the schema refuses among its suspects."""

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


def _check_written(schema: JsonSchema, text: bytes, where: str = "") -> None:
    try:
        schema.check(parse(text))
    except DeserializationError as error:
        raise SerializationError(f"{where}{error.message}") from error


def _json_schema(schema: SchemaLike) -> JsonSchema:
    # Imported here: jsonschema takes longer to import than everything else that JSON needs.
    try:
        module = importlib.import_module("pravega_serde.json.schema")
    except ModuleNotFoundError as error:
        raise MissingExtraError("jsonschema", "json-schema", purpose="JSON Schema validation") from error
    made: JsonSchema = module.JsonSchema(schema)
    return made


def _rebuild(arrow_type: pa.DataType | None, schema: str | None) -> JsonSerializer:
    return JsonSerializer(arrow_type=arrow_type, schema=schema)
