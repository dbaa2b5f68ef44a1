"""Event routers, which determine the routing key of an event.

The same router serves a client that writes one value at a time and a sink that writes record batches. Routers are
frozen and can be pickled. A router with a function can be pickled if the function can.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import as_column
from pravega_serde.columnar.types import is_family
from pravega_serde.errors import SchemaError, SerdeError, SerializationError
from pravega_serde.serializer_interface import Serializer


@runtime_checkable
class EventRouter(Protocol):
    """Router that returns routing keys. Events with the same key stay in order.

    None or a null means that any segment may receive the event.
    """

    if not TYPE_CHECKING:

        def __new__(cls, *_: Any, **__: Any) -> Any:
            """Create an object of a derived class. Raises SerdeError for the protocol itself."""
            if cls is EventRouter:
                raise SerdeError(
                    "EventRouter is the base class of all routers: use ByColumn('name'), ByField('a.b'), "
                    "ByFunction(function) or ByConstant('key')"
                )
            return super().__new__(cls)

    def key(self, value: Any) -> str | None:
        """Return the key of a single value."""

    def keys(self, batch: pa.RecordBatch) -> pa.StringArray | None:
        """Return the keys of a batch's rows for :func:`segment_keys`, or None if no row has one."""

    def check(self, schema: pa.Schema) -> None:
        """Raise :class:`SchemaError` if batches of this schema do not have such a key."""


@dataclass(frozen=True, slots=True)
class ByColumn:
    """Router by a column of the batch, or by an item or attribute of a single value.

    The column contains strings, integers or booleans. Integers and booleans are converted to text like Java's
    ``String.valueOf``.
    """

    name: str

    def key(self, value: Any) -> str | None:
        """Return the value's item or attribute with the column's name."""
        return _text(_member(value, self.name))

    def keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the column."""
        self.check(batch.schema)
        return _as_keys(batch.column(self.name))

    def check(self, schema: pa.Schema) -> None:
        """Raise :class:`SchemaError` unless the column occurs once and has a type that can be a key."""
        _check_type(_field(schema, self.name, self.name).type, self.name)


@dataclass(frozen=True, slots=True)
class ByField:
    """Router by a field inside the event, as a path with dots: ``order.customer``.

    Without a serializer, the path starts at the batch's columns, or at the value. With a serializer, the events are
    bytes in the column ``event_column`` (or the single value is bytes), and are decoded first.
    """

    path: str
    serializer: Serializer[Any] | None = None
    event_column: str = "event"

    def key(self, value: Any) -> str | None:
        """Return the field of a value, or of an event's value."""
        found = value if self.serializer is None else self.serializer.deserialize(value)
        for name in self.path.split("."):
            if found is None:
                return None
            found = _member(found, name)
        return _text(found)

    def keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the field of every row, or null if the field or a parent is null."""
        self.check(batch.schema)
        names = self.path.split(".")
        if self.serializer is None:
            found = batch.column(names.pop(0))
        else:
            found = self.serializer.decode_column(batch.column(self.event_column))
        return _as_keys(pc.struct_field(found, names) if names else found)

    def check(self, schema: pa.Schema) -> None:
        """Raise :class:`SchemaError` unless the path leads through structs to a type that can be a key."""
        if self.serializer is not None:
            _field(schema, self.event_column, self.event_column)
            inside: Any = self.serializer.arrow_type
        else:
            inside = schema
        for name in self.path.split("."):
            inside = _field(inside, name, self.path)
            inside = inside.type
        _check_type(inside, self.path)


@dataclass(frozen=True, slots=True)
class ByFunction:
    """Router by a function of the value, or of each row of a batch as a dict.

    The function runs in Python for each row.
    """

    function: Callable[[Any], str | None]

    def key(self, value: Any) -> str | None:
        """Return the function's key."""
        return _text(self.function(value))

    def keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the function's keys for the rows. Raises SerializationError for a row that Python cannot hold."""
        try:
            rows = batch.to_pylist()
        except (OverflowError, ValueError):
            raise _no_python_value(batch) from None
        return pa.array([self.key(row) for row in rows], pa.string())

    def check(self, schema: pa.Schema) -> None:
        """Accept any schema: a function does not declare its fields."""


@dataclass(frozen=True, slots=True)
class ByConstant:
    """Router with one key for all events. They stay in one order, in one segment at a time."""

    routing_key: str

    def key(self, value: Any) -> str | None:
        """Return the constant."""
        return self.routing_key

    def keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the constant for every row as a dictionary, so that it is hashed once."""
        indices = pa.repeat(pa.scalar(0, pa.int32()), len(batch))
        return pa.DictionaryArray.from_arrays(indices, pa.array([self.routing_key], pa.string()))

    def check(self, schema: pa.Schema) -> None:
        """Accept any schema."""


@dataclass(frozen=True, slots=True)
class Unrouted:
    """Router without keys. Events are spread evenly, in no particular order."""

    def key(self, value: Any) -> str | None:
        """Return None."""
        return None

    def keys(self, batch: pa.RecordBatch) -> None:
        """Return None, so that a batch may go to one segment as a whole, in few large appends."""

    def check(self, schema: pa.Schema) -> None:
        """Accept any schema."""


def _member(value: Any, name: str) -> Any:
    try:
        return value[name] if isinstance(value, Mapping) else getattr(value, name)
    except (KeyError, AttributeError):
        raise SerializationError(f"no routing key: a {type(value).__name__} has no field {name!r}") from None


def _no_python_value(batch: pa.RecordBatch) -> SerializationError:
    """Return the error of the first value without a Python counterpart, such as a timestamp of the year 10000."""
    for row in range(len(batch)):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column[row].as_py()
            except (OverflowError, ValueError) as error:
                reason = f"no routing key: Python does not support the value of type {column.type}: {error}"
                return SerializationError(reason, field_path=f"$.{name}", row=row)
    raise AssertionError("each value by itself has one")


def _text(key: object) -> str | None:
    if key is None or type(key) is str:
        return key
    if isinstance(key, enum.Enum):
        return key.name
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return str(key)
    raise SerializationError(f"a routing key must be a string, integer or boolean, not {type(key).__name__}")


def _field(container: Any, name: str, path: str) -> pa.Field:
    """Return a field of a schema or struct type, which must have it exactly once."""
    nested = isinstance(container, pa.Schema) or pa.types.is_struct(container)
    index = container.get_field_index(name) if nested else -1
    if index < 0:
        names = ", ".join(container.names) if isinstance(container, pa.Schema) else str(container)
        raise SchemaError(f"no routing key: {path!r} is not a single field of: {names}")
    return container.field(index)


def _check_type(kind: pa.DataType, path: str) -> None:
    inner = kind.value_type if is_family(kind, "dictionary") else kind
    if not is_family(inner, "text", "integer", "boolean", "null"):
        raise SchemaError(f"a routing key must be a string, integer or boolean, but {path!r} is {kind}")


def _as_keys(column: pa.Array) -> pa.StringArray:
    """Convert keys to strings. A dictionary of strings stays one, so that each value is hashed once."""
    if pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type):
        return column
    return as_column(column).cast(pa.string())
