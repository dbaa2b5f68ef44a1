"""The Avro schema to read registered events with, as the columns that somebody wants."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pravega_serde.avro import AvroSerializer
from pravega_serde.registry._avro_text import avro_text
from pravega_serde.registry._derive_avro import avro_schema_of
from pravega_serde.registry._event_types import schema_text
from pravega_serde.registry._models import SchemaInfo

__all__ = ["avro_reader_for"]


def avro_reader_for(schema: SchemaInfo, columns: pa.StructType) -> SchemaInfo:
    """A schema that reads events of a registered type, of all its versions, as some columns.

    It is the registered one, where that has all of them. Otherwise each column that it lacks, or has in another type,
    gets the schema that follows from the column: schema resolution promotes what is there and fills what is not with
    null. Raises :class:`SchemaError` for a column that has no form in Avro.
    """
    text = schema_text(schema)
    known = AvroSerializer(text).arrow_type
    if not pa.types.is_struct(known):
        return schema
    has = {field.name: field.type for field in known}
    if all(has.get(column.name) == column.type for column in columns):
        return schema
    record = json.loads(avro_text(text))
    own = _by_name(record)
    derived = _by_name(json.loads(avro_schema_of(pa.schema(list(columns)), schema.type)))
    fields = [(own if has.get(each.name) == each.type else derived)[each.name] for each in columns]
    # Aliases of a record count for events that were written under another name.
    return replace(schema, data=avro_text({**record, "fields": fields}).encode())


def _by_name(record: dict[str, Any]) -> dict[str, Any]:
    return {field["name"]: field for field in record["fields"]}
