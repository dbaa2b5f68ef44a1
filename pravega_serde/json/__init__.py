"""JSON text, byte for byte as Jackson writes it.

- :mod:`~pravega_serde.json.serializer` has the class of the format.
- :mod:`~pravega_serde.json.rows` reads events one at a time and decides which are valid.
- :mod:`~pravega_serde.json.convert` converts their values to those of Arrow types.
- :mod:`~pravega_serde.json.columns` reads whole columns with msgspec.
- :mod:`~pravega_serde.json.write_rows` writes single values, with numbers and escapes as in Java.
- :mod:`~pravega_serde.json.write_columns` writes columns, with the same bytes.
- :mod:`~pravega_serde.json.schema` validates events with a JSON Schema. It is imported when a serializer has one.
- :mod:`~pravega_serde.json.derive` finds columns in schemas and events, and derives schemas from columns.
- :mod:`~pravega_serde.json.registry` is the part for schema registries.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_serde.json.derive import arrow_type_of_json_schema as arrow_type_of_json_schema
    from pravega_serde.json.derive import json_schema_of as json_schema_of
    from pravega_serde.json.serializer import JsonSerializer as JsonSerializer
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "derive": "arrow_type_of_json_schema json_schema_of",
            "serializer": "JsonSerializer",
        },
    )
