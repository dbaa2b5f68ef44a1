"""The Pravega schema registry: its client, and serializers whose events Java's registry serializers read and write."""

from pravega_serde.registry._avro_columns import avro_reader_for
from pravega_serde.registry._client import AsyncSchemaRegistryClient, SchemaRegistryClient
from pravega_serde.registry._codecs import CODEC_GZIP, CODEC_NONE, CODEC_SNAPPY, MAX_DECOMPRESSED_BYTES, Codec
from pravega_serde.registry._column_schema import column_schema
from pravega_serde.registry._columns import column_names
from pravega_serde.registry._config import RegistryConfig
from pravega_serde.registry._derive_avro import avro_schema_of
from pravega_serde.registry._derive_protobuf import protobuf_schema_of
from pravega_serde.registry._event_types import EventType, event_type
from pravega_serde.registry._evolution import check_compatibility
from pravega_serde.registry._groups import Compatibility, CompatibilityRule, GroupHistoryRecord, GroupProperties
from pravega_serde.registry._header import encoding_ids
from pravega_serde.registry._json_schema import arrow_type_of_json_schema, json_schema_of
from pravega_serde.registry._make import deserializer, multi_type_serializer, serializer, with_schema_serializer
from pravega_serde.registry._models import (
    CodecType,
    EncodingInfo,
    SchemaInfo,
    SchemaWithVersion,
    SerializationFormat,
    VersionInfo,
)
from pravega_serde.registry._reader import RegistryDeserializer, WithSchema
from pravega_serde.registry._settings import SerializerConfig
from pravega_serde.registry._shared import shared_client
from pravega_serde.registry._writer import MultiTypeSerializer, RegistrySerializer, WithSchemaSerializer

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
    "RegistrySerializer",
    "SchemaInfo",
    "SchemaRegistryClient",
    "SchemaWithVersion",
    "SerializationFormat",
    "SerializerConfig",
    "VersionInfo",
    "WithSchema",
    "WithSchemaSerializer",
    "arrow_type_of_json_schema",
    "avro_reader_for",
    "avro_schema_of",
    "check_compatibility",
    "column_names",
    "column_schema",
    "deserializer",
    "encoding_ids",
    "event_type",
    "json_schema_of",
    "multi_type_serializer",
    "protobuf_schema_of",
    "serializer",
    "shared_client",
    "with_schema_serializer",
]
