"""JSON text, byte for byte as Jackson writes it.

:mod:`~pravega_serde.json.serializer` has the class of the format. :mod:`~pravega_serde.json.rows` reads events one at a
time and decides what is valid, :mod:`~pravega_serde.json.convert` makes their values those of Arrow types, and
:mod:`~pravega_serde.json.columns` reads whole columns by msgspec. :mod:`~pravega_serde.json.write_rows` writes single
values, numbers and escapes as Java has them, and :mod:`~pravega_serde.json.write_columns` columns, with the same bytes.
:mod:`~pravega_serde.json.schema` checks events by a JSON Schema; it is imported when a serializer is given one.
:mod:`~pravega_serde.json.derive` finds columns in schemas and events, and makes schemas of columns;
:mod:`~pravega_serde.json.registry` is what schema registries need.
"""

from pravega_serde.json.derive import arrow_type_of_json_schema, json_schema_of
from pravega_serde.json.serializer import JsonSerializer

__all__ = ["JsonSerializer", "arrow_type_of_json_schema", "json_schema_of"]
