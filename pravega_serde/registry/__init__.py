"""The Pravega schema registry: its client, and serializers whose events Java's registry serializers read and write."""

from pravega_serde.registry._groups import Compatibility, CompatibilityRule, GroupHistoryRecord, GroupProperties
from pravega_serde.registry._models import (
    CodecType,
    EncodingInfo,
    SchemaInfo,
    SchemaWithVersion,
    SerializationFormat,
    VersionInfo,
)

__all__ = [
    "CodecType",
    "Compatibility",
    "CompatibilityRule",
    "EncodingInfo",
    "GroupHistoryRecord",
    "GroupProperties",
    "SchemaInfo",
    "SchemaWithVersion",
    "SerializationFormat",
    "VersionInfo",
]
