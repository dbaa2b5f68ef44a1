"""Interface of a format's registry part, and the event types that it creates.

This module imports no format, so that every format can import it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from pravega_serde.errors import SchemaError
from pravega_serde.registry.contract import SchemaInfo
from pravega_serde.registry.message_prefix import MessagePlace
from pravega_serde.serializer_interface import Serializer


@dataclass(frozen=True, slots=True)
class EventType:
    """Type of events: a registered schema and the serializer of its payloads."""

    info: SchemaInfo
    payloads: Serializer[Any]
    text: SchemaText | None = None
    """Text to register in a Confluent-compatible registry, if it refers to other schemas."""
    casts: bool = False
    """True if columns are cast to the payloads' Arrow type before writing, because the schema was derived from them."""
    registered: int = 0
    """Id of the registered schema that this type was read from. 0 for a schema that was passed."""

    def fitted(self, column: pa.Array) -> pa.Array:
        """Convert a column for the payloads' serializer. Raises :class:`SchemaError` if its type does not fit."""
        if not self.casts or column.type == self.payloads.arrow_type:
            return column
        try:
            return column.cast(self.payloads.arrow_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaError(f"a column of type {column.type} does not match the schema: {error}") from error


@dataclass(frozen=True, slots=True, eq=False)
class SchemaText:
    """Schema in a Confluent-compatible registry: text, and the schemas that it refers to by name.

    Schemas that refer to the same schema share the object. Use :meth:`all_references`: a graph has more paths than
    schemas.
    """

    text: str
    references: Mapping[str, SchemaText] = field(default_factory=dict, repr=False)

    def all_references(self) -> dict[str, SchemaText]:
        """Return all schemas that this one refers to, by name, each once and after those that it refers to.

        The first schema of a name counts, as in Confluent's serializers.
        """
        found: dict[str, SchemaText] = {}

        def visit(schema: SchemaText) -> None:
            for name, each in schema.references.items():
                if name not in found:
                    visit(each)
                    found.setdefault(name, each)

        visit(self)
        return found


@dataclass(frozen=True, slots=True)
class RuledField:
    """Field of a schema, or the items or values of one, as rules see it."""

    full_name: str
    name: str
    type: str
    """Confluent's name of the type: ``STRING``, ``BYTES``, ``LONG`` and so on."""
    tags: frozenset[str]


#: Returns the change of a field's values, or None if they stay. The second argument is the value that has the field.
ChangeOf = Callable[[RuledField], Callable[[Any, Any], Any] | None]


class UnfitValueError(Exception):
    """Value that the schema or a change does not describe, so it is not known which of its fields change."""

    def __init__(self, reason: str, field_path: str) -> None:
        super().__init__(reason)
        self.reason, self.field_path = reason, field_path


class RuledValues(Protocol):
    """Values of a schema's payloads as rules see them."""

    def read(self, payload: bytes) -> Any:
        """Return the value of a payload. Raises :class:`DeserializationError`."""

    def write(self, value: Any) -> bytes:
        """Return the payload of a value. Raises :class:`SerializationError`."""

    def plain(self, value: Any) -> Any:
        """Return a value as mappings, lists and scalars."""

    def changed(self, change_of: ChangeOf, *, decrypts: bool = False) -> Callable[[Any], Any]:
        """Return a function that changes fields inside a value, and returns the value.

        With ``decrypts``, the fields are encrypted before, and may not be valid for the schema. A change then raises
        :class:`UnfitValueError` for a value that is not encrypted, and :class:`DecryptionError` for others.
        """

    def exported(self, value: Any) -> Any:
        """Return a value as rules between versions see it."""

    def imported(self, value: Any) -> bytes:
        """Return the payload of a value that rules between versions return. Raises :class:`SerializationError`."""


class RegistryFormat(ABC):
    """Registry part of a format. It has no state. Methods that parse a schema may raise SchemaError.

    The schema's bytes are those that Java's serializers register, so that both get the same encoding id.
    """

    suffixes: tuple[str, ...] = ()
    """Suffixes of the names of schema files."""
    names_itself: bool = False
    """True if a schema contains the name of its type."""
    anonymous: bool = False
    """True if readers may consist of columns without a name. They read events of every type of the format."""
    needs_header: bool = False
    """True if events need their encoding header to be read."""
    has_numbers: bool = False
    """True if events have the numbers of fields, which a derived schema keeps from the latest schema of its type."""
    compared_by_server: bool = False
    """True if the server compares schemas with the group's policy. It accepts all schemas of other formats."""
    typed_readers_undo_codecs: bool = True
    """True if Java's readers of a single type decode codecs. Others skip the header and use the rest unchanged."""

    def recognises(self, schema: object) -> bool:
        """Return True if a schema identifies this format, so that ``format`` may be left out."""
        return False

    @abstractmethod
    def event_type(self, schema: Any, name: str | None, *, all_files: bool = False) -> EventType:
        """Return the type of the events that a schema describes. ``name`` applies if the schema has no name."""

    @abstractmethod
    def payloads(self, info: SchemaInfo) -> Serializer[Any]:
        """Return the serializer of a registered schema's payloads."""

    def plain_reader(self, payloads: Serializer[Any]) -> Callable[[bytes], Any]:
        """Return a reader of payloads as mappings, lists and scalars, with all digits of their numbers."""
        return payloads.deserialize

    def print(self, info: SchemaInfo) -> bytes:
        """Return the bytes of a registered schema as Java's serializers write them.

        Schemas with equal meaning have equal bytes.
        """
        return info.data

    def names(self, info: SchemaInfo) -> frozenset[str]:
        """Return the names of the types that a registered schema reads."""
        return frozenset({info.type})

    def type_of(self, value: object) -> str | None:
        """Return the name of a value's type, if its values have types."""
        return None

    # Confluent-compatible registries

    def is_parsed(self, text: str) -> bool:
        """Return False if the registry should return the schema of this text in another form."""
        return True

    @abstractmethod
    def from_text(self, schema: SchemaText) -> SchemaInfo:
        """Return the schema of a text as its writer's reader needs it. Raises :class:`SchemaError`."""

    def to_text(self, info: SchemaInfo, *, source: bool = False) -> SchemaText:
        """Return the text to register for a schema. With ``source``, it is one that people write, if there are two."""
        return SchemaText(schema_text(info))

    def referring(self, schema: Any, references: Any) -> SchemaText:
        """Return the text of a schema with the schemas to which it refers. Raises :class:`SchemaError`."""
        raise SchemaError("only Avro and JSON schemas have references; a Protobuf file has its imports")

    def is_same(self, first: SchemaInfo, second: SchemaInfo) -> bool:
        """Return True if two schemas that :meth:`from_text` returned have the same meaning."""
        return first.data == second.data

    def writes_alike(self, first: SchemaInfo, second: SchemaInfo) -> bool:
        """Return True if payloads of one schema are payloads of the other, byte for byte."""
        return True

    def selected(self, info: SchemaInfo, place: MessagePlace) -> SchemaInfo:
        """Return a schema as one of its message types. Raises :class:`SchemaError` if it does not have the type."""
        return info

    def indexes(self, info: SchemaInfo) -> tuple[int, ...]:
        """Return the place of the schema's message type in its file."""
        return ()

    @abstractmethod
    def ruled_values(self, info: SchemaInfo, tags_of: Callable[[str], frozenset[str]]) -> RuledValues:
        """Return the values of a registered schema for its rules. ``tags_of`` has further tags by a full name."""

    # Columns

    @abstractmethod
    def derive(self, columns: pa.Schema, name: str) -> Any:
        """Derive a schema named ``name`` from columns, in a form that :meth:`event_type` accepts."""

    def derived(self, columns: pa.Schema, name: str, after: SchemaInfo | None = None) -> EventType:
        """Return the event type of columns.

        ``after`` is the latest registered schema of that name.
        """
        return self.event_type(self.derive(columns, name), name)

    def reader_for(self, info: SchemaInfo, columns: pa.StructType) -> EventType:
        """Return a type that reads events of a registered schema as some columns.

        The format converts them as far as it can.
        """
        return EventType(info, self.payloads(info))

    # Evolution

    @abstractmethod
    def faults(self, writer: SchemaInfo, reader: SchemaInfo, *, added: bool) -> Iterator[str]:
        """Return reasons why a reader fails on a writer's events or changes their values.

        ``added`` is true if the writer's schema is the newer one.
        """

    def is_union(self, info: SchemaInfo) -> bool:
        """Return True if a schema is a union of types, which has no name."""
        return False

    @abstractmethod
    def resolve(self, writer: SchemaInfo, reader: EventType) -> tuple[Serializer[Any] | None, str]:
        """Return a serializer that reads payloads of one schema as another, or None and a reason.

        Raises :class:`SchemaError` if the writer's schema is invalid, because then the event is not malformed.
        """

    def widened(self, writer: SchemaInfo, reader: EventType) -> Serializer[Any] | None:
        """Return a serializer that reads columns with the writer's numbers where they are wider.

        Return None if no number of the reader is narrower.
        """
        return None


def schema_text(info: SchemaInfo) -> str:
    """Return the JSON text of a registered schema. Raises :class:`SchemaError` for other text.

    Serializers take other text for the path of a file, which a registry must not name.
    """
    try:
        text = info.data.decode()
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the registered schema of {info.type!r} is not JSON text: {error}") from error
    return text
