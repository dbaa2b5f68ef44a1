"""Interface of a format's registry part, and the type of events that it makes.

This module imports no format, so that every format can import it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pravega_serde.errors import SchemaError
from pravega_serde.registry.contract import SchemaInfo
from pravega_serde.serializer_interface import Serializer


@dataclass(frozen=True, slots=True)
class EventType:
    """One type of events."""

    info: SchemaInfo
    payloads: Serializer[Any]
    casts: bool = False
    """Whether columns are cast to the payloads' Arrow type to be written: the schema was derived from them."""

    def fitted(self, column: pa.Array) -> pa.Array:
        """Column as the payloads' serializer takes it; :class:`SchemaError` if its type does not fit."""
        if not self.casts or column.type == self.payloads.arrow_type:
            return column
        try:
            return column.cast(self.payloads.arrow_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaError(f"a column of type {column.type} is not what the schema was made of: {error}") from error


class RegistryFormat(ABC):
    """Registry part of a format. It has no state; every method that parses a schema may raise SchemaError.

    The schema's bytes are those that Java's serializers register, so that both sides get the same encoding id.
    """

    suffixes: tuple[str, ...] = ()
    """Ends of the names of files that hold a schema."""
    names_itself: bool = False
    """Whether a schema has the name of its type in it."""
    anonymous: bool = False
    """Whether readers may be just columns, without a name: they take events of every type of the format."""
    needs_header: bool = False
    """Whether events cannot be read without their encoding header."""
    compared_by_server: bool = False
    """Whether the server compares schemas by the group's policy; it lets those of all other formats in."""
    typed_readers_undo_codecs: bool = True
    """Whether Java's readers of a single type undo codecs; others skip the header and take the rest as it is."""

    def recognises(self, schema: object) -> bool:  # noqa: ARG002
        """Whether a schema identifies this format, so that the format need not be given."""
        return False

    @abstractmethod
    def event_type(self, schema: Any, name: str | None, *, all_files: bool = False) -> EventType:
        """Type of the events that a schema describes; ``name`` is the type's where the schema has none."""

    @abstractmethod
    def payloads(self, info: SchemaInfo) -> Serializer[Any]:
        """Serializer of a registered schema's payloads."""

    def print(self, info: SchemaInfo) -> bytes:
        """Bytes of a registered schema as Java's serializers write them: equal for schemas that mean the same."""
        return info.data

    def names(self, info: SchemaInfo) -> frozenset[str]:
        """Names of the types whose events a registered schema reads."""
        return frozenset({info.type})

    def type_of(self, value: object) -> str | None:  # noqa: ARG002
        """Name of a value's type, if values have one."""
        return None

    # Columns

    @abstractmethod
    def derive(self, columns: pa.Schema, name: str) -> Any:
        """Schema, called ``name``, that follows from columns; :meth:`event_type` takes it."""

    def derived(self, columns: pa.Schema, name: str, after: SchemaInfo | None = None) -> EventType:  # noqa: ARG002
        """Type of the events that columns become; ``after`` is the latest registered schema of that name."""
        return self.event_type(self.derive(columns, name), name)

    def reader_for(self, info: SchemaInfo, columns: pa.StructType) -> EventType:  # noqa: ARG002
        """Type to read events of a registered schema as some columns, as far as the format can."""
        return EventType(info, self.payloads(info))

    # Evolution

    @abstractmethod
    def faults(self, writer: SchemaInfo, reader: SchemaInfo, *, added: bool) -> Iterator[str]:
        """Reasons why a reader goes wrong on what a writer writes; ``added``: the writer's schema is the newer one."""

    @abstractmethod
    def resolve(self, writer: SchemaInfo, reader: EventType) -> tuple[Serializer[Any] | None, str]:
        """Serializer that reads payloads of one schema as another; None and a reason if they do not fit.

        Raises :class:`SchemaError` for an invalid schema of the writer: that is not the event's fault.
        """

    def widened(self, writer: SchemaInfo, reader: EventType) -> Serializer[Any] | None:  # noqa: ARG002
        """Serializer that reads columns with the writer's numbers where the reader's are narrower; None if none are."""
        return None


def schema_text(info: SchemaInfo) -> str:
    """Text of a registered schema; :class:`SchemaError` if it is not UTF-8."""
    try:
        return info.data.decode()
    except UnicodeDecodeError as error:
        raise SchemaError(f"the registered schema of {info.type!r} is not text: {error}") from error
