"""How applications make registry serializers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import pyarrow as pa

from pravega_serde.registry._config import RegistryConfig
from pravega_serde.registry._event_types import EventType, event_type, format_named, reader_type
from pravega_serde.registry._models import SerializationFormat
from pravega_serde.registry._reader import RegistryDeserializer
from pravega_serde.registry._settings import (
    Evolution,
    Leniency,
    ReaderSettings,
    WriterSettings,
    serializer_config,
)
from pravega_serde.registry._writer import MultiTypeSerializer, RegistrySerializer, WithSchemaSerializer, types_by_key

__all__ = ["deserializer", "multi_type_serializer", "serializer", "with_schema_serializer"]


def serializer(
    registry: str | RegistryConfig,
    *,
    group: str,
    schema: Any,
    format: str | SerializationFormat | None = None,  # noqa: A002 -- the option's name everywhere
    type: str | None = None,  # noqa: A002 -- the registry's word
    all_files: bool = False,
    **settings: Unpack[WriterSettings],
) -> RegistrySerializer:
    """A serializer that writes one schema: Java's ``avroSerializer``, ``protobufSerializer``, ``jsonSerializer``.

    ``schema`` is an Avro schema (JSON text, parsed, or a path), a JSON schema (likewise), a Protobuf message class,
    descriptor or descriptor set, bytes of a custom format, a SchemaInfo, or an Arrow schema that one is derived from.
    ``format`` is ``avro``, ``protobuf``, ``json`` or a custom one, where the schema does not tell it. ``type`` is the
    name in the registry of JSON, custom and derived schemas, and which message of a descriptor set is meant.
    ``all_files`` registers a message with all that it imports, which Java's own serializers do not.

    The settings are those of :class:`SerializerConfig`, and ``namespace``. Asks the registry before it returns; raises
    RegistryErrors, :class:`SchemaError`, and :class:`SerdeError` for settings that Java refuses.
    """
    config = serializer_config(registry, group, settings)
    made = event_type(schema, format=format, type=type, custom_formats=config.custom_formats, all_files=all_files)
    return RegistrySerializer(config, made)


def multi_type_serializer(
    registry: str | RegistryConfig,
    *,
    group: str,
    schemas: Mapping[Any, Any] | Sequence[Any],
    format: str | SerializationFormat | None = None,  # noqa: A002 -- the option's name everywhere
    type_of: Callable[[Any], Any] | None = None,
    **settings: Unpack[WriterSettings],
) -> MultiTypeSerializer:
    """A serializer that writes values of several types into one stream: Java's ``…MultiTypeSerializer``.

    ``schemas`` is a mapping from what tells the types apart to their schemas: ``type_of(value)``, or without it the
    value's Python class, the name of its type, or, of Protobuf messages, of their message type. A key that is text is
    the type's name in the registry where the schema has none. Otherwise as :func:`serializer`.
    """
    config = serializer_config(registry, group, settings)

    def make(schema: Any, name: str | None) -> EventType:
        # Avro schemas and message classes have names of their own, whatever tells their values apart here.
        own = isinstance(schema, type) or (format is not None and format_named(format) == SerializationFormat.AVRO)
        given = None if own and not isinstance(schema, pa.Schema) else name
        return event_type(schema, format=format, type=given, custom_formats=config.custom_formats)

    return MultiTypeSerializer(config, types_by_key(schemas, make), type_of)


def with_schema_serializer(
    registry: str | RegistryConfig, *, group: str, **settings: Unpack[WriterSettings]
) -> WithSchemaSerializer:
    """A serializer of values that bring their schema, of any format: Java's ``serializerWithSchema``."""
    return WithSchemaSerializer(serializer_config(registry, group, settings))


def deserializer(
    registry: str | RegistryConfig,
    *,
    group: str,
    schema: Any = None,
    schemas: Sequence[Any] = (),
    format: str | SerializationFormat | None = None,  # noqa: A002 -- the option's name everywhere
    type: str | Sequence[str] | None = None,  # noqa: A002 -- the registry's word
    evolution: Evolution = "resolve",
    unknown_ids: Leniency = "fail",
    check_readable: bool = True,
    **settings: Unpack[ReaderSettings],
) -> RegistryDeserializer:
    """A reader of anything in a group: every format, schema version, type and codec.

    ``schema``, or ``schemas`` for several types, is what to make of the events, given as for :func:`serializer`; an
    Arrow schema says which columns JSON events have. The registry is asked once whether the group's events can be read
    with it, as by Java's readers; without ``check_readable`` each event shows whether it can. Without a schema, values
    are as they were written, and columns those of the group's latest schemas: of its type, or a struct with a member
    per type. ``type`` chooses types; rows of others are null then.

    With ``evolution="corrupt"`` events of another version of the schema are bad records instead of being resolved. An
    encoding id that the registry does not know is a RegistryNotFoundError, because it says nothing about the event;
    with ``unknown_ids="corrupt"`` it makes a bad record, if the group is there.

    The settings are those of :class:`SerializerConfig`, and ``namespace``. Raises RegistryErrors, :class:`SchemaError`
    for schemas that do not fit, UnsupportedCodecError for a group with codecs that are not known here.
    """
    config = serializer_config(registry, group, settings)
    chosen = (type,) if isinstance(type, str) else tuple(type or ())
    given = [*schemas] if schema is None else [schema, *schemas]
    name = chosen[0] if len(chosen) == 1 else None
    readers = tuple(reader_type(each, format=format, type=name, custom_formats=config.custom_formats) for each in given)
    return RegistryDeserializer(
        config,
        readers=readers,
        types=chosen,
        unknown_is_corrupt=unknown_ids == "corrupt",
        same_schema=evolution == "corrupt",
        check_readable=check_readable,
    )
