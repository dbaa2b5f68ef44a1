"""Client of the Pravega schema registry, and serializers that are compatible with Java's registry serializers.

The serializers also read and write events of Confluent-compatible registries and of Apicurio.

Modules of the client:
- ``contract`` defines the registry's values, and ``answers`` parses them from JSON.
- ``calls`` defines the operations. The ``clients`` send them with ``http`` to the address in a ``registry_config``.
- ``lookups`` cache the answers.

Modules of the serializers:
- ``formats`` finds the registry part of a format, which is in the format's package (``pravega_serde.avro.registry``).
- ``settings``, ``codecs`` and the event ``header`` are shared by ``writing`` and ``reading``.
- ``values`` has the forms of single values.
- ``stores`` has the interface of a registry: ``pravega_store``, and ``confluent_store`` with ``confluent_calls`` and
  the ``message_prefix`` of Protobuf events.
- ``encodings`` reads the events of each encoding id. ``known_ids`` has all of them at a time.
- ``evolution`` checks which schemas may follow which.
"""

from typing import TYPE_CHECKING

from pravega_serde.public_names import unknown_names
from pravega_serde.registry.clients import AsyncSchemaRegistryClient, SchemaRegistryClient, shared_client
from pravega_serde.registry.codecs import CODEC_GZIP, CODEC_NONE, CODEC_SNAPPY, MAX_DECOMPRESSED_BYTES, Codec
from pravega_serde.registry.contract import (
    CodecType,
    Compatibility,
    CompatibilityRule,
    EncodingInfo,
    GroupHistoryRecord,
    GroupProperties,
    SchemaInfo,
    SchemaWithVersion,
    SerializationFormat,
    VersionInfo,
)
from pravega_serde.registry.encodings import column_names
from pravega_serde.registry.evolution import check_compatibility, column_schema
from pravega_serde.registry.formats import event_type, part_of, registry_format
from pravega_serde.registry.header import encoding_ids
from pravega_serde.registry.interface import EventType, RegistryFormat
from pravega_serde.registry.reading import RegistryDeserializer, deserializer
from pravega_serde.registry.registry_config import RegistryConfig
from pravega_serde.registry.settings import SerializerConfig
from pravega_serde.registry.stores import latest_schema
from pravega_serde.registry.values import WithSchema
from pravega_serde.registry.writing import (
    MultiTypeSerializer,
    RegistrySerializer,
    WithSchemaSerializer,
    multi_type_serializer,
    serializer,
    with_schema_serializer,
)

__all__ = [
    "CODEC_GZIP",
    "CODEC_NONE",
    "CODEC_SNAPPY",
    "MAX_DECOMPRESSED_BYTES",
    "AsyncSchemaRegistryClient",
    "Codec",
    "CodecType",
    "Compatibility",
    "CompatibilityRule",
    "EncodingInfo",
    "EventType",
    "GroupHistoryRecord",
    "GroupProperties",
    "MultiTypeSerializer",
    "RegistryConfig",
    "RegistryDeserializer",
    "RegistryFormat",
    "RegistrySerializer",
    "SchemaInfo",
    "SchemaRegistryClient",
    "SchemaWithVersion",
    "SerializationFormat",
    "SerializerConfig",
    "VersionInfo",
    "WithSchema",
    "WithSchemaSerializer",
    "check_compatibility",
    "column_names",
    "column_schema",
    "deserializer",
    "encoding_ids",
    "event_type",
    "latest_schema",
    "multi_type_serializer",
    "part_of",
    "registry_format",
    "serializer",
    "shared_client",
    "with_schema_serializer",
]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__ = unknown_names(__name__)
