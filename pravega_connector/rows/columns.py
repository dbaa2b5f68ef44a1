"""Columns of the source: their schema, their builder, and the event times and registry schemas of a query.

Watermarks arrive some seconds after their events, so a batch that is read again would find more of them. Therefore the
offset of a batch records how far the watermarks reached when the batch was planned. The columns ``event_time_low`` and
``event_time_high`` use only those watermarks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.core.io import of_each
from pravega_connector.errors import ConfigError, StreamNotFoundError
from pravega_connector.reader.key_filter import WantedKey
from pravega_connector.reader.rows import NO_TIMES, OnBad, RowBuilder, corrupt_names, row_fields, value_fields
from pravega_connector.reader.slices import SegmentSlice, Select
from pravega_connector.reader.watermarks import SegmentTimes
from pravega_connector.rows.options.source import EVENT_TIME_COLUMNS, METADATA_COLUMNS, SourceOptions
from pravega_connector.rows.pickled import Pickled
from pravega_connector.rows.registry_decoding import latest_ids, registry_reader
from pravega_connector.wire import StreamName, Watermark
from pravega_serde import envelopes
from pravega_serde.errors import SchemaError
from pravega_serde.routing import ByColumn, ByField
from pravega_serde.serializer_interface import Serializer
from pravega_serde.text import ByteArraySerializer

#: Serializer of the events; None where they stay raw.
Decoder = Pickled[Serializer[Any]] | None


def serializer_of(options: SourceOptions, wanted: pa.Schema | None, ids: Sequence[int] | None = None) -> Decoder:
    """Return the serializer for the options; None for raw events.

    ``wanted`` is the schema of the rows that the user set with ``.schema(…)``. ``ids`` are the registry schemas of the
    query. Raises ConfigError, SchemaError, RegistryErrors.
    """
    columns = None if wanted is None else _decoded_ones(options, wanted)
    if options.envelope is not None:
        return Pickled(options.framed(_enveloped(options, columns, ids)))
    if options.unwrap is not None:
        return Pickled(_changes(options, columns, ids))
    if options.from_registry:
        return Pickled(_registry_reader(options, columns, ids))
    if options.format is None:
        return None
    if columns is None:
        return Pickled(options.column_serializer())
    # Fields of Java objects come by a sample, or by their names.
    single = options.says_single and len(columns) == 1
    return Pickled(options.column_serializer(columns[0].type if single else pa.struct(columns)))


def _enveloped(options: SourceOptions, columns: list[pa.Field] | None, ids: Sequence[int] | None) -> Serializer[Any]:
    """Return the serializer of events in envelopes; the data is not decoded if no column has it."""
    assert options.envelope is not None
    value = None if columns is None else next((field.type for field in columns if field.name == envelopes.VALUE), None)
    if columns is not None and value is None:
        return envelopes.Enveloped(ByteArraySerializer(), options.envelope)
    if options.from_registry:
        fields = list(value) if value is not None and pa.types.is_struct(value) else None
        return envelopes.Enveloped(_registry_reader(options, fields, ids), options.envelope)
    return envelopes.Enveloped(options.column_serializer(value), options.envelope)


def _changes(options: SourceOptions, columns: list[pa.Field] | None, ids: Sequence[int] | None) -> Serializer[Any]:
    """Return the deserializer of change events; the columns define what is read of a format that names no columns."""
    kinds = {field.name: field.type for field in columns or ()}
    wanted = (
        None if columns is None else envelopes.change_type(kinds.get("before"), kinds.get("after"), kinds.get("source"))
    )
    inner = _registry_reader(options, None, ids) if options.from_registry else options.column_serializer(wanted)
    return envelopes.ChangeDeserializer(inner, columns=None if columns is None else pa.struct(columns))


def _registry_reader(
    options: SourceOptions, columns: list[pa.Field] | None, ids: Sequence[int] | None
) -> Serializer[Any]:
    kind = None if columns is None else pa.struct(columns)
    return options.complete(registry_reader(options, None if ids is not None else kind, ids), kind)


def _decoded_ones(options: SourceOptions, wanted: pa.Schema) -> list[pa.Field]:
    others = {*options.metadata_columns, *corrupt_names(options.column_name_of_corrupt_record)}
    missing = {name.lower(): name for name in others.difference(wanted.names)}
    for field in wanted:
        if (name := missing.get(field.name.lower())) is not None:
            raise ConfigError(
                f"column {field.name!r} of the schema must be named {name!r}: the case of letters matters for a column "
                "that is not in the events"
            )
    return [field for field in wanted if field.name not in others]


def decoded_fields(options: SourceOptions, serializer: Decoder) -> list[pa.Field]:
    """Return the fields of the rows: decoded ones, then metadata, then malformed records in mode PERMISSIVE."""
    keeps = serializer is not None and options.mode == "PERMISSIVE"
    return row_fields(
        None if serializer is None else serializer.get(),
        options.metadata_columns,
        corrupt_names(options.column_name_of_corrupt_record) if keeps else (),
        fix="omit it from 'columns', or set 'column_name_of_corrupt_record' if it is the column of malformed records",
    )


def row_builder(
    schema: pa.Schema,
    options: SourceOptions,
    serializer: Decoder,
    on_bad: OnBad | None = None,
    times: SegmentTimes = NO_TIMES,
) -> RowBuilder:
    """Return the builder of the rows that the options ask for; ``schema`` has the columns and their types.

    ``on_bad`` receives a batch's errors before its rows are handed on, unless the mode is FAILFAST. ``times`` are the
    event times of the slice. Raises ConfigError for columns that cannot be built.
    """
    return RowBuilder(
        schema,
        None if serializer is None else serializer.get(),
        metadata=options.metadata_columns,
        corrupt=corrupt_names(options.column_name_of_corrupt_record),
        mode=options.decode_mode,
        not_null=True,
        # The reader of a registry decodes events of types that were not chosen as null.
        skip_nulls=options.registry_type is not None,
        on_bad=on_bad,
        times=times,
        check_type=check_type,
        component="source",
    )


def key_filter(options: SourceOptions, serializer: Decoder) -> Select | None:
    """Return the filter of events by their routing keys, or None without one.

    Raises ConfigError if the decoded columns have no such field.
    """
    if options.routing_key is None or options.routing_key_field is None or serializer is None:
        return None
    path, decoder = options.routing_key_field, serializer.get()
    is_column = path in {field.name for field in value_fields(decoder.arrow_type)}
    try:
        return WantedKey(options.routing_key, ByColumn(path) if is_column else ByField(path)).by_column(decoder)
    except SchemaError as error:
        raise ConfigError(
            f"option 'routing_key_field' does not name a decoded column or a field in one: {error.message}"
        ) from error


def check_type(kind: pa.DataType, field: pa.Field) -> None:
    """Raise ConfigError unless the field has Spark's type for this type: no other cast is sure to succeed."""
    if kind == field.type:
        return
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415 - exports work without Spark

    # Before 4.2, the default of the second argument is False.
    own, given = (from_arrow_type(each, prefer_timestamp_ntz=True) for each in (kind, field.type))
    if own != given:
        raise ConfigError(
            f"column {field.name!r} is {given.simpleString()} in .schema(…), but "
            f"{own.simpleString()} in the data, where any value may be null: omit .schema(…), and cast the column "
            "afterwards"
        )


# ---- NOT NULL --------------------------------------------------------------------------------------------------------


def with_never_null(fields: Sequence[pa.Field], options: SourceOptions, serializer: Decoder) -> list[pa.Field]:
    """Return the fields of the rows, NOT NULL if no event can be null there.

    Spark checks each value of a nullable column for null twice. With six columns of Avro, that takes a third of the
    JVM's time. An event's bytes and its position are never null. If malformed events have no rows, the serializer's
    own never-null fields are added.
    """
    sure = set(METADATA_COLUMNS) & set(options.metadata_columns)
    if serializer is not None and options.decode_mode != "PERMISSIVE":
        sure |= getattr(serializer.get(), "never_null", frozenset())
    return [field.with_nullable(field.name not in sure) for field in fields]


# ---- event time: bounds from the watermarks of the streams -----------------------------------------------------------


def wants_event_time(options: SourceOptions) -> bool:
    """Return True if the rows have a column of event time."""
    return not set(EVENT_TIME_COLUMNS).isdisjoint(options.metadata_columns)


def marks_end(client: PravegaClient, streams: Iterable[StreamName]) -> dict[StreamName, int]:
    """End of the watermarks of each stream at this moment."""

    def end(stream: StreamName) -> int | None:
        with suppress(StreamNotFoundError):  # it was deleted just now, which is missed when it is read
            return client.watermark_log(stream).end()
        return None

    asked = list(streams)
    return {stream: at for stream, at in zip(asked, of_each(end, asked), strict=True) if at is not None}


def times_along(
    client: PravegaClient, slices: Sequence[SegmentSlice], ends: Mapping[StreamName, int] | None = None
) -> Iterator[SegmentTimes]:
    """Yield the event times of each slice, by watermarks up to the given ends, by default by all of this moment.

    A stream that is not among the ends has none: its offset is of a query that did not ask for the columns then.
    """

    def watermarks(stream: StreamName) -> Sequence[Watermark]:
        log = client.watermark_log(stream)
        return log.read() if ends is None else log.read_until(ends.get(stream, 0))

    streams = list(dict.fromkeys(piece.stream for piece in slices))
    known = dict(zip(streams, of_each(watermarks, streams), strict=True))
    for piece in slices:
        yield client.watermark_log(piece.stream).along(piece, known[piece.stream])


# ---- schemas of a registry -------------------------------------------------------------------------------------------


def schema_ids(options: SourceOptions) -> tuple[int, ...] | None:
    """Ids of the latest schemas that the options choose; None without a registry, or where a schema is given.

    Raises RegistryErrors, SchemaError if there are none, ConfigError.
    """
    if not options.from_registry:
        return None
    return latest_ids(options)
