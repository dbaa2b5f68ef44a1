"""Which columns an export has: those that the Spark source would give, or, for JSON, those that the events have."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing

import pyarrow as pa
import pyarrow.json

from connector.client import EventBatch
from connector.errors import ColumnTypeError
from connector.source import Decoder, SourceOptions, decoded_fields, serializer_of

__all__ = ["columns_of"]

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
