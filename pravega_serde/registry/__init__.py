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

if TYPE_CHECKING:
    from pravega_serde.registry.clients import AsyncSchemaRegistryClient as AsyncSchemaRegistryClient
    from pravega_serde.registry.clients import SchemaRegistryClient as SchemaRegistryClient
    from pravega_serde.registry.clients import shared_client as shared_client
    from pravega_serde.registry.codecs import CODEC_GZIP as CODEC_GZIP
    from pravega_serde.registry.codecs import CODEC_NONE as CODEC_NONE
    from pravega_serde.registry.codecs import CODEC_SNAPPY as CODEC_SNAPPY
    from pravega_serde.registry.codecs import MAX_DECOMPRESSED_BYTES as MAX_DECOMPRESSED_BYTES
    from pravega_serde.registry.codecs import Codec as Codec
    from pravega_serde.registry.contract import CodecType as CodecType
    from pravega_serde.registry.contract import Compatibility as Compatibility
    from pravega_serde.registry.contract import CompatibilityRule as CompatibilityRule
    from pravega_serde.registry.contract import EncodingInfo as EncodingInfo
    from pravega_serde.registry.contract import GroupHistoryRecord as GroupHistoryRecord
    from pravega_serde.registry.contract import GroupProperties as GroupProperties
    from pravega_serde.registry.contract import SchemaInfo as SchemaInfo
    from pravega_serde.registry.contract import SchemaWithVersion as SchemaWithVersion
    from pravega_serde.registry.contract import SerializationFormat as SerializationFormat
    from pravega_serde.registry.contract import VersionInfo as VersionInfo
    from pravega_serde.registry.encodings import column_names as column_names
    from pravega_serde.registry.evolution import check_compatibility as check_compatibility
    from pravega_serde.registry.evolution import column_schema as column_schema
    from pravega_serde.registry.formats import event_type as event_type
    from pravega_serde.registry.formats import part_of as part_of
    from pravega_serde.registry.formats import registry_format as registry_format
    from pravega_serde.registry.header import encoding_ids as encoding_ids
    from pravega_serde.registry.interface import EventType as EventType
    from pravega_serde.registry.interface import RegistryFormat as RegistryFormat
    from pravega_serde.registry.reading import RegistryDeserializer as RegistryDeserializer
    from pravega_serde.registry.reading import deserializer as deserializer
    from pravega_serde.registry.registry_config import RegistryConfig as RegistryConfig
    from pravega_serde.registry.settings import SerializerConfig as SerializerConfig
    from pravega_serde.registry.stores import latest_schema as latest_schema
    from pravega_serde.registry.values import WithSchema as WithSchema
    from pravega_serde.registry.writing import MultiTypeSerializer as MultiTypeSerializer
    from pravega_serde.registry.writing import RegistrySerializer as RegistrySerializer
    from pravega_serde.registry.writing import WithSchemaSerializer as WithSchemaSerializer
    from pravega_serde.registry.writing import multi_type_serializer as multi_type_serializer
    from pravega_serde.registry.writing import serializer as serializer
    from pravega_serde.registry.writing import with_schema_serializer as with_schema_serializer
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "clients": "AsyncSchemaRegistryClient SchemaRegistryClient shared_client",
            "codecs": "CODEC_GZIP CODEC_NONE CODEC_SNAPPY MAX_DECOMPRESSED_BYTES Codec",
            "contract": (
                "CodecType Compatibility CompatibilityRule EncodingInfo GroupHistoryRecord GroupProperties "
                "SchemaInfo SchemaWithVersion SerializationFormat VersionInfo"
            ),
            "encodings": "column_names",
            "evolution": "check_compatibility column_schema",
            "formats": "event_type part_of registry_format",
            "header": "encoding_ids",
            "interface": "EventType RegistryFormat",
            "reading": "RegistryDeserializer deserializer",
            "registry_config": "RegistryConfig",
            "settings": "SerializerConfig",
            "stores": "latest_schema",
            "values": "WithSchema",
            "writing": (
                "MultiTypeSerializer RegistrySerializer WithSchemaSerializer multi_type_serializer "
                "serializer with_schema_serializer"
            ),
        },
    )
