"""Inferred columns that hold every value of the events, for programs that must not lose one: exports and tables."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pravega_connector.errors import ColumnTypeError
from pravega_connector.reader.rows import corrupt_names, has_field_error
from pravega_connector.reader.slices import EventBatch
from pravega_connector.rows.columns import Decoder, serializer_of
from pravega_connector.rows.inference import Sample, event_columns
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.rows.pickled import Pickled
from pravega_serde.columnar.found import text_for_nulls
from pravega_serde.errors import SchemaError
from pravega_serde.json import JsonSerializer
from pravega_serde.json.exact import ExactJsonSerializer, Inference


def is_plain_json(options: SourceOptions) -> bool:
    """Return True for JSON events without an envelope and without a schema."""
    if options.format != "json" or options.from_registry or options.envelope or options.unwrap:
        return False
    serializer = options.serializer()
    return isinstance(serializer, JsonSerializer) and serializer.schema is None


def all_columns(batches: Iterable[EventBatch], options: SourceOptions, otherwise: str) -> pa.Schema:
    """Return columns that hold all values of the events, for :func:`decoder_of_all`; for JSON perhaps none.

    Raises ColumnTypeError for events that have no columns in common, with ``otherwise`` as the fix. Raises ConfigError
    for a field with the name of a column of malformed records, which would have no values of the events.
    """
    found = _all_columns(batches, options, otherwise)
    for name in corrupt_names(options.column_name_of_corrupt_record):
        if name in found.names:
            raise has_field_error(name)
    return found


def _all_columns(batches: Iterable[EventBatch], options: SourceOptions, otherwise: str) -> pa.Schema:
    if not is_plain_json(options):
        return event_columns((Sample(batch.stream, batch.events) for batch in batches), options, otherwise)
    inference = Inference(mixed=True)
    try:
        for batch in batches:
            inference.add(batch.events)
        return text_for_nulls(inference.schema())
    except SchemaError as error:
        raise ColumnTypeError(f"{error.message}: {otherwise}") from error


def decoder_of_all(options: SourceOptions, columns: pa.Schema) -> Decoder:
    """Return the decoder of events into inferred columns. In JSON, what the columns would lose is malformed."""
    if is_plain_json(options):
        return Pickled(ExactJsonSerializer(arrow_type=columns))
    return serializer_of(options, columns)
