"""Protobuf messages of a generated class, a descriptor, or a descriptor set."""

from pravega_serde.protobuf._schema import ProtobufSchema
from pravega_serde.protobuf._serializer import ProtobufSerializer

__all__ = ["ProtobufSchema", "ProtobufSerializer"]
