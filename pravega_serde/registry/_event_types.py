"""A type of events: its schema as the registry holds it, and the serializer of its payloads.

The schema's bytes are those that Java's serializers register, so that both sides get the same encoding id: Avro as
``Schema.toString()`` prints it; of a Protobuf message the descriptor of its own file alone, as in
``ProtobufSchema.of(Class)``; a JSON schema as it was given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message

from pravega_serde.avro import AvroSerializer
from pravega_serde.errors import SchemaError, SerdeError, UnsupportedFormatError
from pravega_serde.json import JsonSerializer
from pravega_serde.protobuf import ProtobufSerializer
from pravega_serde.protobuf.schema import load
from pravega_serde.registry._avro_text import avro_name, avro_text
from pravega_serde.registry._derive_avro import avro_schema_of
from pravega_serde.registry._derive_protobuf import protobuf_schema_of
from pravega_serde.registry._descriptor_sets import schema_data
from pravega_serde.registry._json_schema import arrow_type_of_json_schema, json_schema_of
from pravega_serde.registry._models import SchemaInfo, SerializationFormat
from pravega_serde.serializer import Serializer

__all__ = [
    "CustomFormats",
    "EventType",
    "event_type",
    "format_named",
    "payload_serializer",
    "reader_type",
    "schema_text",
]

#: For each custom format's full type name what makes the serializer of a schema's payloads.
CustomFormats = Mapping[str, Callable[[SchemaInfo], Serializer[Any]]]

_FORMATS: Final = {
    "avro": SerializationFormat.AVRO,
    "json": SerializationFormat.JSON,
    "protobuf": SerializationFormat.PROTOBUF,
}


@dataclass(frozen=True, slots=True)
class EventType:
    """One type of events."""

    info: SchemaInfo
    payloads: Serializer[Any]
    casts: bool = False
    """Whether columns are cast to the payloads' Arrow type to be written: the schema was derived from them."""

    def fitted(self, column: pa.Array) -> pa.Array:
        """A column as the payloads' serializer takes it; :class:`SchemaError` if its type does not fit."""
        if not self.casts or column.type == self.payloads.arrow_type:
            return column
        try:
            return column.cast(self.payloads.arrow_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaError(f"a column of type {column.type} is not what the schema was made of: {error}") from error


def format_named(name: str | SerializationFormat) -> SerializationFormat:
    """A format by its name: avro, protobuf, json. Raises :class:`UnsupportedFormatError`."""
    if isinstance(name, SerializationFormat):
        return name
    found = _FORMATS.get(name.strip().lower())
    if found is None:
        raise UnsupportedFormatError(
            f"unknown registry format {name!r}; known: avro, json, protobuf, or SerializationFormat.custom(name)"
        )
    return found


def event_type(
    schema: Any,
    *,
    format: str | SerializationFormat | None = None,  # noqa: A002 -- the option's name everywhere
    type: str | None = None,  # noqa: A002 -- the registry's word
    custom_formats: CustomFormats | None = None,
    all_files: bool = False,
) -> EventType:
    """The type of events that a schema describes.

    ``schema`` is an Avro schema, a JSON schema (text, parsed, or a path), a Protobuf message class, descriptor or
    descriptor set, an Arrow schema to derive one from, or a SchemaInfo. ``format`` may be left out where the schema
    tells it. ``type`` is the type's name in the registry, which JSON and Arrow schemas do not have. ``all_files`` keeps
    all files of a descriptor set. Raises :class:`SchemaError` for what is no schema, or lacks a name.
    """
    if isinstance(schema, EventType):
        return schema
    if isinstance(schema, SchemaInfo):
        return EventType(schema, payload_serializer(schema, custom_formats or {}))
    wanted = _format_of(schema, format)
    if isinstance(schema, pa.Schema | pa.StructType):
        return _derived(pa.schema(list(schema)), wanted, type)
    if wanted == SerializationFormat.PROTOBUF:
        return _protobuf(schema, type, all_files=all_files)
    if wanted.name == "Custom":
        return _custom(schema, wanted, type, custom_formats or {})
    return _BUILDERS[wanted](schema, type)


def reader_type(
    schema: Any,
    *,
    format: str | SerializationFormat | None,  # noqa: A002 -- the option's name everywhere
    type: str | None,  # noqa: A002 -- the registry's word
    custom_formats: CustomFormats,
) -> EventType:
    """As :func:`event_type`, for a reader: of JSON it needs no name, and may be just the columns that are wanted."""
    is_json = format is not None and format_named(format) == SerializationFormat.JSON
    if not is_json or isinstance(schema, EventType | SchemaInfo):
        return event_type(schema, format=format, type=type, custom_formats=custom_formats)
    made = event_type(schema, format=format, type=type or "")
    columns = isinstance(schema, pa.Schema | pa.StructType)
    return EventType(made.info, JsonSerializer(arrow_type=schema)) if columns else made


def _format_of(schema: Any, format: str | SerializationFormat | None) -> SerializationFormat:  # noqa: A002
    if isinstance(schema, Descriptor | FileDescriptorSet) or (isinstance(schema, type) and issubclass(schema, Message)):
        return SerializationFormat.PROTOBUF
    if format is None:
        raise SerdeError("the schema does not tell its format; give format: avro, json or protobuf")
    return format_named(format)


def _custom(schema: Any, wanted: SerializationFormat, name: str | None, custom_formats: CustomFormats) -> EventType:
    data = schema.encode() if isinstance(schema, str) else bytes(schema or b"")
    info = SchemaInfo(wanted.full_type_name if name is None else name, wanted, data)
    return EventType(info, payload_serializer(info, custom_formats))


def payload_serializer(info: SchemaInfo, custom_formats: CustomFormats) -> Serializer[Any]:
    """The serializer of a registered schema's payloads; :class:`SchemaError` if the schema cannot be used."""
    if info.format == SerializationFormat.AVRO:
        return AvroSerializer(schema_text(info))
    if info.format == SerializationFormat.PROTOBUF:
        return _message_serializer(info)
    if info.format == SerializationFormat.JSON:
        return _json_serializer(schema_text(info))
    make = custom_formats.get(info.format.full_type_name)
    if make is None:
        raise UnsupportedFormatError(
            f"the type {info.type!r} is of the custom format {info.format.full_type_name!r}; "
            "give its serializer in custom_formats"
        )
    return make(info)


def _message_serializer(info: SchemaInfo) -> ProtobufSerializer:
    try:
        return ProtobufSerializer(info.data, message_type=info.type)
    except SchemaError as error:
        raise SchemaError(
            f"the registered schema of {info.type!r} is not enough: {error.message}. Java registers a message without "
            "the files that it imports: give its class, or a whole descriptor set, as schema"
        ) from error


def schema_text(info: SchemaInfo) -> str:
    """The text of a registered Avro or JSON schema; :class:`SchemaError` if it is none."""
    try:
        return info.data.decode()
    except UnicodeDecodeError as error:
        raise SchemaError(f"the registered schema of {info.type!r} is not text: {error}") from error


def _json_serializer(text: str) -> JsonSerializer:
    """With columns where the schema names them; rows need none."""
    try:
        return JsonSerializer(arrow_type=arrow_type_of_json_schema(text))
    except SchemaError:
        return JsonSerializer()


def _avro(schema: Any, name: str | None) -> EventType:
    info = SchemaInfo(avro_name(schema), SerializationFormat.AVRO, avro_text(schema).encode())
    if name not in (None, info.type):
        raise SchemaError(f"an Avro schema is registered under its own name, {info.type!r}, not {name!r}")
    return EventType(info, AvroSerializer(schema))


def _protobuf(schema: Any, name: str | None, *, all_files: bool) -> EventType:
    descriptor = load(schema, name).DESCRIPTOR
    data = schema_data(descriptor, all_files=all_files)
    info = SchemaInfo(descriptor.full_name, SerializationFormat.PROTOBUF, data)
    return EventType(info, ProtobufSerializer(schema, message_type=name))


def _json(schema: Any, name: str | None) -> EventType:
    text = _json_text(schema)
    payloads = _json_serializer(text)
    title = json.loads(text).get("title") if name is None else name
    if not isinstance(title, str):
        raise SchemaError("a JSON schema is registered under a name; give type, Java's is that of the class")
    return EventType(SchemaInfo(title, SerializationFormat.JSON, text.encode()), payloads)


def _json_text(schema: Any) -> str:
    try:
        if isinstance(schema, Path):
            schema = schema.read_text(encoding="utf-8")
        if isinstance(schema, Mapping):
            return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        if isinstance(schema, str) and isinstance(json.loads(schema), dict):
            return schema
    except (OSError, TypeError, ValueError) as error:
        raise SchemaError(f"not a JSON schema: {error}") from error
    raise SchemaError(f"a JSON schema is an object as text, parsed, or in a file, not {type(schema).__name__}")


_BUILDERS: Final[Mapping[SerializationFormat, Callable[[Any, str | None], EventType]]] = {
    SerializationFormat.AVRO: _avro,
    SerializationFormat.JSON: _json,
}


def _derived(schema: pa.Schema, wanted: SerializationFormat, name: str | None) -> EventType:
    """The type that follows from columns."""
    if name is None:
        raise SchemaError("columns have no name to register their schema under; give type")
    if wanted == SerializationFormat.AVRO:
        return _avro(json.loads(avro_schema_of(schema, name)), name)
    if wanted == SerializationFormat.JSON:
        return _json(json_schema_of(schema, name), name)
    if wanted != SerializationFormat.PROTOBUF:
        raise UnsupportedFormatError(
            f"no schema of the format {wanted.full_type_name!r} follows from columns; give one"
        )
    made = _protobuf(protobuf_schema_of(schema, name), name, all_files=False)
    return EventType(made.info, made.payloads, casts=True)
