"""Avro binary data with a given schema.

``schema`` reads schemas, ``resolve`` makes the plan of a writer's and a reader's, ``values`` says what values look
like. ``rows`` and ``columns`` read by a plan. ``write_rows`` writes by a schema, and so does ``write_columns``, from
the one form of columns that ``storage`` makes. ``serializer`` puts them together. ``derive`` makes schemas of columns,
``registry`` is what schema registries need.
"""

from pravega_serde.avro.derive import avro_schema_of
from pravega_serde.avro.schema import SchemaLike
from pravega_serde.avro.serializer import AvroSerializer

__all__ = ["AvroSerializer", "SchemaLike", "avro_schema_of"]
