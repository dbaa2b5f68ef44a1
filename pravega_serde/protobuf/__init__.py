"""Protobuf messages of a generated class, a descriptor, or a descriptor set.

``schema`` finds the message class, ``plan`` compiles its type and says what its columns are; ``wire`` has the numbers
and tags of events. ``rows`` and ``columns`` read, ``write_rows`` and ``write_columns`` write, with the single values of
``values`` and the one form of columns that ``storage`` makes. ``serializer`` puts them together. ``derive`` makes
schemas of columns, ``registry`` is what schema registries need.
"""

from pravega_serde.protobuf.derive import protobuf_schema_of
from pravega_serde.protobuf.schema import ProtobufSchema
from pravega_serde.protobuf.serializer import ProtobufSerializer

__all__ = ["ProtobufSchema", "ProtobufSerializer", "protobuf_schema_of"]
