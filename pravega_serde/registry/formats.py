"""Registry parts of the formats, and the types of events that follow from them.

Each format that registries have (avro, json, protobuf) has a :class:`RegistryFormat` in its own package, which the
table of formats names; nothing else in this package knows a format. An :class:`EventType` is a schema as the registry
holds it, with the serializer of its payloads: :func:`event_type` makes it of anything that describes one.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pravega_serde.errors import SchemaError, SerdeError, UnsupportedFormatError
from pravega_serde.registry.contract import SchemaInfo, SerializationFormat
from pravega_serde.serializer import FORMATS, Serializer, imported, registry_formats

__all__ = [
    "CustomFormats",
    "EventType",
    "RegistryFormat",
    "event_type",
    "format_named",
    "part_of",
    "payload_serializer",
    "reader_type",
    "registry_format",
    "schema_text",
]

#: Full type name of a custom format -> maker of the serializer of a schema's payloads.
CustomFormats = Mapping[str, Callable[[SchemaInfo], Serializer[Any]]]


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


@functools.cache
def registry_format(name: str) -> RegistryFormat:
    """Registry part of a format by the format's name (``avro``). Raises :class:`UnsupportedFormatError`."""
    known = registry_formats()
    if name not in known:
        raise UnsupportedFormatError(
            f"unknown registry format {name!r}; known: {', '.join(known)}, or SerializationFormat.custom(name)"
        )
    part: RegistryFormat = imported(FORMATS[name].registry)()
    return part


def part_of(format: SerializationFormat) -> RegistryFormat | None:  # noqa: A002 -- the option's name everywhere
    """Registry part of a registered format; None for custom ones and for groups of any format."""
    name = _names().get(format.name)
    return None if name is None else registry_format(name)


@functools.cache
def _names() -> dict[str, str]:
    """Names of formats by their names in the registry."""
    return {FORMATS[name].registry_name: name for name in registry_formats()}


def format_named(name: str | SerializationFormat) -> SerializationFormat:
    """Format by its name: avro, protobuf, json. Raises :class:`UnsupportedFormatError`."""
    if isinstance(name, SerializationFormat):
        return name
    found = name.strip().lower()
    registry_format(found)
    return SerializationFormat(FORMATS[found].registry_name, FORMATS[found].registry_name)


def event_type(
    schema: Any,
    *,
    format: str | SerializationFormat | None = None,  # noqa: A002 -- the option's name everywhere
    type: str | None = None,  # noqa: A002 -- the registry's word
    custom_formats: CustomFormats | None = None,
    all_files: bool = False,
) -> EventType:
    """Type of the events that a schema describes.

    ``schema`` is an Avro schema, a JSON schema (text, parsed, or a path), a Protobuf message class, descriptor or
    descriptor set, an Arrow schema to derive one from, or a SchemaInfo. ``format`` may be left out where the schema
    tells it. ``type`` is the type's name in the registry, which JSON and Arrow schemas do not have. ``all_files`` keeps
    all files of a descriptor set. Raises :class:`SchemaError` for an invalid schema, and for one that lacks a name.
    """
    if isinstance(schema, EventType):
        return schema
    if isinstance(schema, SchemaInfo):
        return EventType(schema, payload_serializer(schema, custom_formats or {}))
    wanted = _format_of(schema, format)
    part = part_of(wanted)
    if isinstance(schema, pa.Schema | pa.StructType):
        return _derived(part, wanted, pa.schema(list(schema)), type)
    if part is None:
        return _custom(schema, wanted, type, custom_formats or {})
    return part.event_type(schema, type, all_files=all_files)


def reader_type(
    schema: Any,
    *,
    format: str | SerializationFormat | None,  # noqa: A002 -- the option's name everywhere
    type: str | None,  # noqa: A002 -- the registry's word
    custom_formats: CustomFormats,
) -> EventType:
    """As :func:`event_type`, for a reader: of an anonymous format it needs no name, and may be just some columns."""
    part = None if format is None else part_of(format_named(format))
    if part is None or not part.anonymous or isinstance(schema, EventType | SchemaInfo):
        return event_type(schema, format=format, type=type, custom_formats=custom_formats)
    made = event_type(schema, format=format, type=type or "")
    columns = isinstance(schema, pa.Schema | pa.StructType)
    return part.reader_for(made.info, pa.struct(list(schema))) if columns else made


def _format_of(schema: Any, format: str | SerializationFormat | None) -> SerializationFormat:  # noqa: A002
    # Text, bytes, paths and parsed JSON are of several formats; asking imports all of them.
    if not isinstance(schema, str | bytes | Path | Mapping | Sequence | pa.Schema | pa.StructType):
        for name in registry_formats():
            if registry_format(name).recognises(schema):
                return format_named(name)
    if format is None:
        *others, last = registry_formats()
        raise SerdeError(f"the schema does not tell its format; give format: {', '.join(others)} or {last}")
    return format_named(format)


def _custom(schema: Any, wanted: SerializationFormat, name: str | None, custom_formats: CustomFormats) -> EventType:
    data = schema.encode() if isinstance(schema, str) else bytes(schema or b"")
    info = SchemaInfo(wanted.full_type_name if name is None else name, wanted, data)
    return EventType(info, payload_serializer(info, custom_formats))


def _derived(
    part: RegistryFormat | None, wanted: SerializationFormat, columns: pa.Schema, name: str | None
) -> EventType:
    if name is None:
        raise SchemaError("columns have no name to register their schema under; give type")
    if part is None:
        raise UnsupportedFormatError(
            f"no schema of the format {wanted.full_type_name!r} follows from columns; give one"
        )
    return part.derived(columns, name)


def payload_serializer(info: SchemaInfo, custom_formats: CustomFormats) -> Serializer[Any]:
    """Serializer of a registered schema's payloads; :class:`SchemaError` if the schema cannot be used."""
    part = part_of(info.format)
    if part is not None:
        return part.payloads(info)
    make = custom_formats.get(info.format.full_type_name)
    if make is None:
        raise UnsupportedFormatError(
            f"the type {info.type!r} is of the custom format {info.format.full_type_name!r}; "
            "give its serializer in custom_formats"
        )
    return make(info)


def schema_text(info: SchemaInfo) -> str:
    """Text of a registered schema; :class:`SchemaError` if it is not UTF-8."""
    try:
        return info.data.decode()
    except UnicodeDecodeError as error:
        raise SchemaError(f"the registered schema of {info.type!r} is not text: {error}") from error
