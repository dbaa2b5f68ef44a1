"""Column inference for events that do not name their columns (JSON, CBOR), from a sample of the events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import ColumnTypeError
from pravega_connector.reader.slices import EventBatch, batch_part
from pravega_connector.rows.options import FormatOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.wire import StreamName
from pravega_serde import envelopes
from pravega_serde.columnar.types import is_family, with_leaves
from pravega_serde.errors import SchemaError
from pravega_serde.format_table import find_format, inference_of
from pravega_serde.text import ByteArraySerializer

#: Maximum sampled events of each stream, and maximum bytes of them. Sampling takes the driver only a moment.
SAMPLE_EVENTS: Final = 1000
SAMPLE_BYTES: Final = 4 << 20
# Digits of a decimal number, as in Spark's DecimalType.SYSTEM_DEFAULT for Java decimals.
_DIGITS, _DIGITS_BEHIND = 38, 18


def sampled_columns(client: PravegaClient, options: SourceOptions, streams: Iterable[StreamName]) -> pa.Schema | None:
    """Return the columns of the first events in the streams, or None if the format or a registry names them.

    Raises ColumnTypeError for events that have no columns in common, and for streams without events;
    StreamNotFoundError.
    """
    if not names_no_columns(options):
        return None
    samples = (Sample(stream, batch.events) for stream in streams for batch in _sample(client, stream))
    return event_columns(samples, options, "set the columns, such as .schema('id BIGINT, …'), and omit infer_schema")


def _sample(client: PravegaClient, stream: StreamName) -> Iterator[EventBatch]:
    rows = size = 0
    with closing(iter(client.read_columns(stream))) as batches:
        for batch in batches:
            yield batch_part(batch, 0, SAMPLE_EVENTS - rows)
            rows, size = rows + len(batch.events), size + batch.events.nbytes
            if rows >= SAMPLE_EVENTS or size >= SAMPLE_BYTES:
                return


def names_no_columns(options: SourceOptions) -> bool:
    """Return True for events of a format without a schema: their columns are given or inferred."""
    return options.format is not None and not options.from_registry and bool(find_format(options.format).infer)


@dataclass(frozen=True, slots=True)
class Sample:
    """Events of one origin: a stream, a topic or a table, whose name is for errors."""

    origin: StreamName | str
    events: pa.BinaryArray


def event_columns(batches: Iterable[Sample], options: SourceOptions, otherwise: str) -> pa.Schema:
    """Return the columns of all events together, as the options read them; see :func:`columns_in` for errors."""
    assert options.format is not None
    batches = without_framing(batches, options)
    if options.envelope is not None:
        return _envelope_columns(batches, options.format, options.envelope, otherwise)
    if options.unwrap is not None:
        return _change_columns(batches, options.format, otherwise)
    return columns_in(batches, options.format, otherwise)


def without_framing(batches: Iterable[Sample], options: FormatOptions) -> Iterable[Sample]:
    """Return the events in the framing of the options; malformed events are left out."""
    if options.framing is None:
        return batches
    serializer = options.framed(ByteArraySerializer())

    def opened(batch: Sample) -> Sample:
        return Sample(batch.origin, serializer.decode_column(batch.events, on_error=lambda _: None).drop_null())

    return map(opened, batches)


def _envelope_columns(batches: Iterable[Sample], format_name: str, envelope: str, otherwise: str) -> pa.Schema:
    serializer = envelopes.Enveloped(ByteArraySerializer(), envelope)

    def data(batch: Sample) -> Sample:
        opened = serializer.decode_column(batch.events, on_error=lambda _: None)
        return Sample(batch.origin, opened.drop_null().field(envelopes.VALUE).drop_null())

    found = columns_in(map(data, batches), format_name, otherwise)
    return pa.schema(envelopes.enveloped_fields(pa.struct(list(found))))


def _change_columns(batches: Iterable[Sample], format_name: str, otherwise: str) -> pa.Schema:
    if format_name == "json":
        batches = (Sample(batch.origin, envelopes.debezium.json_envelopes(batch.events)) for batch in batches)
    try:
        return envelopes.debezium.change_schema(columns_in(batches, format_name, otherwise))
    except SchemaError as error:
        raise ColumnTypeError(f"{error.message}: {otherwise}") from error


def columns_in(batches: Iterable[Sample], format_name: str, otherwise: str) -> pa.Schema:
    """Return the columns of all events together; malformed events are left out.

    ``otherwise`` is the fix that the error suggests if there are none. Raises ColumnTypeError.
    """
    inference = inference_of(format_name)
    found = pa.schema([])
    for batch in batches:
        try:
            inference.add(batch.events)
            found = inference.schema()
        except SchemaError as error:
            raise ColumnTypeError(
                f"the events of {batch.origin} do not have columns in common ({error.message}): {otherwise}"
            ) from None
    if not len(found):
        raise ColumnTypeError(f"there are no {format_name} events to infer columns from: {otherwise}")
    return pa.schema([field.with_type(with_leaves(field.type, _known)) for field in found])


def _known(kind: pa.DataType) -> pa.DataType:
    """Return a type without others inside that later events fit, too.

    A column that was null in all events is text, as in Spark, and decimals get more digits.
    """
    if pa.types.is_null(kind):
        return pa.string()
    if is_family(kind, "decimal"):
        before = kind.precision - kind.scale
        return pa.decimal128(_DIGITS, max(min(_DIGITS_BEHIND, _DIGITS - before), kind.scale))
    return kind
