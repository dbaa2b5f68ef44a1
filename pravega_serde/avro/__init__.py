"""Avro binary data with a given schema."""

from pravega_serde.avro._schema import SchemaLike
from pravega_serde.avro._serializer import AvroSerializer

__all__ = ["AvroSerializer", "SchemaLike"]
