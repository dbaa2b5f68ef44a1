"""Protobuf messages of a generated class, a descriptor, or a descriptor set.

- ``schema`` finds the message class, and ``plan`` compiles its type and its columns.
- ``wire`` has the numbers and tags of events.
- ``rows`` and ``columns`` read, ``write_rows`` and ``write_columns`` write.
- ``values`` converts single values, and ``storage`` converts columns into one form.
- ``serializer`` combines these modules.
- ``derive`` derives schemas from columns and classes, and ``registry`` is the part for schema registries.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_serde.protobuf.derive import protobuf_schema_of as protobuf_schema_of
    from pravega_serde.protobuf.schema import ProtobufSchema as ProtobufSchema
    from pravega_serde.protobuf.serializer import ProtobufSerializer as ProtobufSerializer
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "derive": "protobuf_schema_of",
            "schema": "ProtobufSchema",
            "serializer": "ProtobufSerializer",
        },
    )
