"""Avro binary data with a given schema.

- ``schema`` parses schemas, and ``resolve`` plans the reading of a writer's schema as a reader's.
- ``values`` defines the values in Python and Arrow.
- ``rows`` and ``columns`` read with a plan.
- ``write_rows`` and ``write_columns`` write with a schema. Columns are first converted to the one form in ``storage``.
- ``serializer`` combines them.
- ``derive`` creates schemas from columns and classes, and ``registry`` is the part for schema registries.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_serde.avro.derive import avro_schema_of as avro_schema_of
    from pravega_serde.avro.schema import SchemaLike as SchemaLike
    from pravega_serde.avro.serializer import AvroSerializer as AvroSerializer
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "derive": "avro_schema_of",
            "schema": "SchemaLike",
            "serializer": "AvroSerializer",
        },
    )
