"""Registry parts of the formats by name, and the event types of any schema.

Each format of the registry (avro, json, protobuf) has a :class:`RegistryFormat` in its package, named in the table of
formats. No other module of this package depends on a format. An :class:`EventType` is a schema in its registered form,
with the serializer of its payloads. :func:`event_type` creates one from any description of a schema.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pravega_serde.errors import SchemaError, SerdeError, UnsupportedFormatError
from pravega_serde.format_table import FORMATS, imported, registry_formats, serializer_for
from pravega_serde.registry.contract import SchemaInfo, SerializationFormat
from pravega_serde.registry.interface import EventType, RegistryFormat
from pravega_serde.serializer_interface import Serializer

#: Full type name of a custom format -> factory of the serializer of a schema's payloads, or the name of a format that
#: needs no schema, such as ``package.module:name``. The registry's own names are never imported.
CustomFormats = Mapping[str, Callable[[SchemaInfo], Serializer[Any]] | str]


@functools.cache
def registry_format(name: str) -> RegistryFormat:
    """Return the registry part of a format by its name (``avro``). Raises :class:`UnsupportedFormatError`."""
    known = registry_formats()
    if name not in known:
        raise UnsupportedFormatError(
            f"unknown registry format {name!r}; known: {', '.join(known)}, or SerializationFormat.custom(name)"
        )
    part: RegistryFormat = imported(FORMATS[name].registry)()
    return part


def part_of(format: SerializationFormat) -> RegistryFormat | None:
    """Return the registry part of a registered format, or None for custom formats and groups of any format."""
    name = _names().get(format.name)
    return None if name is None else registry_format(name)


@functools.cache
def _names() -> dict[str, str]:
    """Return the names of the formats by their names in the registry."""
    return {FORMATS[name].registry_name: name for name in registry_formats()}


def format_named(name: str | SerializationFormat) -> SerializationFormat:
    """Return a format by its name: avro, protobuf, json. Raises :class:`UnsupportedFormatError`."""
    if isinstance(name, SerializationFormat):
        return name
    found = name.strip().lower()
    registry_format(found)
    return SerializationFormat(FORMATS[found].registry_name, FORMATS[found].registry_name)


def event_type(
    schema: Any,
    *,
    format: str | SerializationFormat | None = None,
    type: str | None = None,
    custom_formats: CustomFormats | None = None,
    all_files: bool = False,
    after: Callable[[str], SchemaInfo | None] | None = None,
) -> EventType:
    """Return the type of the events that a schema describes.

    ``schema`` is an Avro schema, a JSON schema (text, parsed, or a path), a Protobuf message class, descriptor or
    descriptor set, an Arrow schema to derive one from, or a SchemaInfo. ``format`` may be left out if the schema
    identifies it. ``type`` is the type's name in the registry, which JSON and Arrow schemas do not have. ``all_files``
    keeps all files of a descriptor set. ``after`` returns the latest schema of a type, whose numbers a derived schema
    keeps. Raises :class:`SchemaError` for an invalid schema, and for one that lacks a
    name.
    """
    if isinstance(schema, EventType):
        return schema
    if isinstance(schema, SchemaInfo):
        return EventType(schema, payload_serializer(schema, custom_formats or {}))
    wanted = _format_of(schema, format)
    part = part_of(wanted)
    if isinstance(schema, pa.Schema | pa.StructType):
        return _derived(part, wanted, pa.schema(list(schema)), type, after)
    if part is None:
        data = schema.encode() if isinstance(schema, str) else bytes(schema or b"")
        info = SchemaInfo(wanted.full_type_name if type is None else type, wanted, data)
        return event_type(info, custom_formats=custom_formats)
    return part.event_type(schema, type, all_files=all_files)


def reader_type(
    schema: Any,
    *,
    format: str | SerializationFormat | None,
    type: str | None,
    custom_formats: CustomFormats,
    after: Callable[[str], SchemaInfo | None],
) -> EventType:
    """Return a reader's type of the events that a schema describes, like :func:`event_type`.

    For a format without type names, it needs no name and may consist of some columns.
    """
    part = None if format is None else part_of(format_named(format))
    if part is None or not part.anonymous or isinstance(schema, EventType | SchemaInfo):
        return event_type(schema, format=format, type=type, custom_formats=custom_formats, after=after)
    made = event_type(schema, format=format, type=type or "")
    columns = isinstance(schema, pa.Schema | pa.StructType)
    return part.reader_for(made.info, pa.struct(list(schema))) if columns else made


def _format_of(schema: Any, format: str | SerializationFormat | None) -> SerializationFormat:
    # Text, bytes, paths and parsed JSON occur in several formats; the check imports all of them.
    if not isinstance(schema, str | bytes | Path | Mapping | Sequence | pa.Schema | pa.StructType):
        for name in registry_formats():
            if registry_format(name).recognises(schema):
                return format_named(name)
    if format is None:
        *others, last = registry_formats()
        raise SerdeError(f"the schema does not define its format; set format: {', '.join(others)} or {last}")
    return format_named(format)


def _derived(
    part: RegistryFormat | None,
    wanted: SerializationFormat,
    columns: pa.Schema,
    name: str | None,
    after: Callable[[str], SchemaInfo | None] | None,
) -> EventType:
    if name is None:
        raise SchemaError("columns have no name to register their schema under; set type")
    if part is None:
        raise UnsupportedFormatError(
            f"columns do not define a schema of the format {wanted.full_type_name!r}; pass a schema"
        )
    latest = after(name) if part.has_numbers and after is not None else None
    return part.derived(columns, name, latest if latest is not None and latest.format == wanted else None)


def payload_serializer(info: SchemaInfo, custom_formats: CustomFormats) -> Serializer[Any]:
    """Return the serializer of a registered schema's payloads. Raises :class:`SchemaError` if it is unusable."""
    part = part_of(info.format)
    if part is not None:
        return part.payloads(info)
    make = custom_formats.get(info.format.full_type_name)
    if make is None:
        raise UnsupportedFormatError(
            f"the type {info.type!r} is of the custom format {info.format.full_type_name!r}; pass its serializer in "
            "custom_formats"
        )
    return serializer_for(make) if isinstance(make, str) else make(info)
