"""Avro binary data with a given schema.

- ``schema`` parses schemas, and ``resolve`` plans the reading of a writer's schema as a reader's.
- ``values`` defines the values in Python and Arrow.
- ``rows`` and ``columns`` read with a plan.
- ``write_rows`` and ``write_columns`` write with a schema. Columns are first converted to the one form in ``storage``.
- ``serializer`` combines them.
- ``derive`` creates schemas from columns and classes, and ``registry`` is the part for schema registries.
"""

from typing import TYPE_CHECKING

from pravega_serde.avro.derive import avro_schema_of
from pravega_serde.avro.schema import SchemaLike
from pravega_serde.avro.serializer import AvroSerializer
from pravega_serde.public_names import unknown_names

__all__ = ["AvroSerializer", "SchemaLike", "avro_schema_of"]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__ = unknown_names(__name__)
