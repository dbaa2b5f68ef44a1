"""The Pravega schema registry: its client, and serializers whose events Java's registry serializers read and write."""

from pravega_serde.registry._client import AsyncSchemaRegistryClient, SchemaRegistryClient
from pravega_serde.registry._config import RegistryConfig
from pravega_serde.registry._groups import Compatibility, CompatibilityRule, GroupHistoryRecord, GroupProperties
from pravega_serde.registry._models import (
    CodecType,
    EncodingInfo,
    SchemaInfo,
    SchemaWithVersion,
    SerializationFormat,
    VersionInfo,
)
from pravega_serde.registry._shared import shared_client

__all__ = [
    "AsyncSchemaRegistryClient",
    "CodecType",
    "Compatibility",
    "CompatibilityRule",
    "EncodingInfo",
    "GroupHistoryRecord",
    "GroupProperties",
    "RegistryConfig",
    "SchemaInfo",
    "SchemaRegistryClient",
    "SchemaWithVersion",
    "SerializationFormat",
    "VersionInfo",
    "shared_client",
]
