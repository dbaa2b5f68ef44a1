"""Serializers that agree with Pravega's Java ones, by row and by Arrow column."""

from pravega_serde.errors import (
    DeserializationError,
    LimitExceededError,
    MissingExtraError,
    PravegaError,
    SchemaError,
    SerdeError,
    SerializationError,
    UnsupportedFormatError,
)
from pravega_serde.serializer import OnError, Serializer, formats, serializer_for

__all__ = [
    "DeserializationError",
    "LimitExceededError",
    "MissingExtraError",
    "OnError",
    "PravegaError",
    "SchemaError",
    "SerdeError",
    "SerializationError",
    "Serializer",
    "UnsupportedFormatError",
    "formats",
    "serializer_for",
]
