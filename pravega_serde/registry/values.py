"""Forms of the single values that a registry reader returns: natural and plain values, JSON text, or with schemas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from pravega_serde.errors import DeserializationError, SerializationError
from pravega_serde.format_table import serializer_for
from pravega_serde.registry.contract import SchemaInfo
from pravega_serde.registry.formats import part_of
from pravega_serde.serializer_interface import Serializer

#: Form of the values of a reader. They are the format's values, or mappings, lists and scalars, or JSON text, or
#: :class:`WithSchema`.
ValueForm = Literal["natural", "plain", "json", "with_schema"]

#: Returns the function that reads the payloads of a schema. Raises DeserializationError if the reader rejects them.
Convert = Callable[[SchemaInfo, Serializer[Any]], Callable[[bytes], Any]]

#: Handling of events whose type has no class.
Others = Literal["error", "generic"]


@dataclass(frozen=True, slots=True)
class WithSchema:
    """Value and the schema with which it was written, or with which it should be written."""

    value: Any
    schema: SchemaInfo


class ObjectPayloads(Protocol):
    """Serializer of payloads from and to objects of a class."""

    value_class: type | None
    """Class of the objects. None if they are plain values, such as a TypedDict."""

    def serialize(self, value: Any) -> bytes:
        """Return the payload of an object."""

    def deserialize(self, data: bytes) -> Any:
        """Return the object of a payload."""


#: Returns the serializer of objects for the payloads of a type. None if the type has no class.
Adapt = Callable[[str, Serializer[Any]], ObjectPayloads | None]


def natural(_: SchemaInfo, payloads: Serializer[Any]) -> Callable[[bytes], Any]:
    """Read payloads as their format does."""
    return payloads.deserialize


def plain(schema: SchemaInfo, payloads: Serializer[Any]) -> Callable[[bytes], Any]:
    """Read payloads as mappings, lists and scalars, with all digits of their numbers."""
    part = part_of(schema.format)
    return payloads.deserialize if part is None else part.plain_reader(payloads)


def json_text(schema: SchemaInfo, payloads: Serializer[Any]) -> Callable[[bytes], str]:
    """Read payloads as JSON text, with all digits of their numbers."""
    read, write = plain(schema, payloads), serializer_for("json").serialize

    def text(data: bytes) -> str:
        value = read(data)
        try:
            return write(value).decode()
        except SerializationError as error:
            raise DeserializationError(error.reason, field_path=error.field_path) from error

    return text


def objects(adapt: Adapt, others: Others) -> Convert:
    """Return the conversion of payloads to objects of the class of their type."""

    def convert(schema: SchemaInfo, payloads: Serializer[Any]) -> Callable[[bytes], Any]:
        adapted = adapt(schema.type, payloads)
        if adapted is not None:
            return adapted.deserialize
        if others == "generic":
            return lambda data: WithSchema(payloads.deserialize(data), schema)
        raise DeserializationError(
            f"the event is of the type {schema.type!r}, which has no class here: pass one for it, or others='generic'"
        )

    return convert


#: Conversion for each form. Values with schemas are natural values.
CONVERSIONS: Final[dict[ValueForm, Convert]] = {
    "natural": natural,
    "plain": plain,
    "json": json_text,
    "with_schema": natural,
}
