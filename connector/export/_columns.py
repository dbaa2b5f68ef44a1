"""Which columns an export has: those that the Spark source would give, or, for JSON, those that the events have."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any, Final

import pyarrow as pa
import pyarrow.json

from connector.client import EventBatch
from connector.errors import ColumnTypeError
from connector.source import Decoder, SourceOptions, decoded_fields, serializer_of
from pravega_serde import MissingExtraError

__all__ = ["EXPORTED", "avro_schema_of_rows", "columns_of"]

Events = Callable[[], Generator[EventBatch, None, None]]


def columns_of(options: SourceOptions, wanted: pa.Schema | None, events: Events) -> tuple[pa.Schema, Decoder]:
    """Schema of the rows, and what decodes them.

    ``wanted`` are the decoded columns, where they are given. JSON events do not say which they have: without ``wanted``
    and without a registry all events of the range are read once to find them.

    Raises ConfigError, SchemaError, RegistryErrors, ColumnTypeError for JSON events that have no columns in common.
    """
    if wanted is None and options.format == "json" and not options.from_registry:
        with closing(events()) as batches:
            wanted = _json_columns(batches)
    decoder = serializer_of(options, wanted)
    return pa.schema(decoded_fields(options, decoder)), decoder


def _json_columns(events: Iterator[EventBatch]) -> pa.Schema:
    """The fields of all events together; text stays text, also where it looks like a time."""
    found = pa.schema([])
    for batch in events:
        try:
            lines = b"\n".join(batch.events.drop_null().to_pylist())
            block = max(len(lines), 1)
            options = pyarrow.json.ReadOptions(use_threads=False, block_size=block)
            table = pyarrow.json.read_json(pa.BufferReader(lines), read_options=options)
            found = pa.unify_schemas([found, _as_text(table.schema)], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ColumnTypeError(
                f"the events of {batch.stream} do not have columns in common ({error}): name the columns (schema=), or "
                "leave 'format' out to export their bytes"
            ) from None
    if not len(found):
        raise ColumnTypeError("the range has no JSON events to take columns from: name the columns (schema=)")
    return found


def _as_text(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(_without_times(field.type)) for field in schema])


def _without_times(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_times(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_without_times(kind.value_type))
    return kind


#: What the record of single values is called, and one that is made up for columns without a schema.
EXPORTED: Final = "pravega.export.Event"


def avro_schema_of_rows(schema: pa.Schema, decoder: Decoder, *, nullable: bool) -> str | None:
    """The Avro schema of a file of rows: that of the events, with the other columns behind its fields.

    With ``nullable`` each field of the events may be null. None for events that have no Avro schema, or several.
    """
    serializer: Any = None if decoder is None else decoder.get()
    text: str | None = getattr(serializer, "read_schema", None)
    if text is None:
        return None
    definition = json.loads(text)
    is_record = isinstance(definition, dict) and definition["type"] in ("record", "error")
    own = [field.name for field in serializer.arrow_type] if is_record else schema.names[:1]
    others = [field for field in schema if field.name not in own]
    if is_record and not others and not nullable:
        return text
    if not is_record:
        space, _, name = EXPORTED.rpartition(".")
        fields = [{"name": schema.names[0], "type": definition}]
        definition = {"type": "record", "name": name, "namespace": space, "fields": fields}
    fields = [_optional(field) for field in definition["fields"]] if nullable else definition["fields"]
    return json.dumps({**definition, "fields": [*fields, *_made_up(others)]})


def _optional(field: dict[str, Any]) -> dict[str, Any]:
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    if "null" in kinds:
        return field
    # A default is of the first branch.
    return {**field, "type": [*kinds, "null"] if "default" in field else ["null", *kinds]}


def _made_up(columns: list[pa.Field]) -> list[dict[str, Any]]:
    if not columns:
        return []
    try:
        from pravega_serde.registry import avro_schema_of  # noqa: PLC0415 - half a second that only Avro files need
    except ModuleNotFoundError as error:
        raise MissingExtraError("httpx", "registry", purpose="writing Avro files") from error
    fields: list[dict[str, Any]] = json.loads(avro_schema_of(pa.schema(columns), EXPORTED))["fields"]
    return fields
