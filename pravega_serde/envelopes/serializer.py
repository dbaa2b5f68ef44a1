"""Serializer of events in envelopes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa

from pravega_serde.columnar import (
    MalformedError,
    PlainPath,
    as_binary,
    as_column,
    bisecting,
    decode_rows,
    expand,
    is_text,
    map_entries,
    select,
    text_column,
    valid_rows,
    written,
)
from pravega_serde.columnar.arrays import repeated_text
from pravega_serde.columnar.bad_rows import UNFIT, in_utc
from pravega_serde.columnar.types import is_family
from pravega_serde.envelopes.attributes import ATTRIBUTES, attribute, joined, without
from pravega_serde.envelopes.cloudevents import (
    CONTENT_TYPE,
    KEY,
    MOMENT,
    TIME,
    EventFormat,
    check_names,
    check_required,
    check_required_column,
    content_id,
    content_ids,
    texts_of,
    times_of,
)
from pravega_serde.envelopes.envelope import Envelope
from pravega_serde.errors import DeserializationError, SchemaError, SerdeError, SerializationError
from pravega_serde.format_table import ENVELOPES, imported
from pravega_serde.serializer_interface import InnerColumns, OnError, Serializer, SerializerCalls, report
from pravega_serde.suggestions import did_you_mean

T = TypeVar("T")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

#: Content type of data whose serializer does not name one.
_ANY_CONTENT: Final = "application/octet-stream"

_CONTEXT: Final = (pa.field("key", pa.string()), pa.field("time", MOMENT), pa.field("headers", ATTRIBUTES))
#: Value of an event in an envelope.
VALUE: Final = "value"
_OPENED: Final = pa.struct([*_CONTEXT, pa.field("data", pa.binary())])


def enveloped_fields(value: pa.DataType) -> list[pa.Field]:
    """Return the columns of events in envelopes, whose values are of a type."""
    return [*_CONTEXT, pa.field(VALUE, value)]


class Enveloped(SerializerCalls, InnerColumns, Generic[T]):
    """Serializer of events in envelopes: CloudEvents 1.0 with a key, a time and headers.

    Values are :class:`Envelope` objects. ``serializer`` writes and reads the data of the events. ``envelope`` is
    ``cloudevents`` (JSON), ``cloudevents+avro`` or ``cloudevents+protobuf``. To write, an event needs a source and a
    type: the headers ``source`` and ``type``, or the defaults ``source`` and ``type`` here. Without the header ``id``,
    the id is a hash of the event, so equal events have equal ids.

    Columns are a struct of ``key``, ``time``, ``headers`` and ``value``. To write, all but ``value`` may be absent.

    Raises :class:`SerdeError` for an unknown envelope.
    """

    def __init__(
        self,
        serializer: Serializer[T],
        envelope: str = "cloudevents",
        *,
        source: str | None = None,
        type: str | None = None,
    ) -> None:
        if envelope not in ENVELOPES:
            raise SerdeError(
                f"unknown envelope {envelope!r}{did_you_mean(str(envelope), ENVELOPES)}; known: {', '.join(ENVELOPES)}"
            )
        super().__init__(serializer)
        self._envelope, self._source, self._type = envelope, source, type
        self._format = _format(envelope)
        #: True if a write may wait for a registry.
        self.write_may_block: bool = getattr(serializer, "write_may_block", False)
        #: True if equal values have equal events.
        self.is_deterministic: bool = getattr(serializer, "is_deterministic", True)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._inner, self._envelope, self._source, self._type)

    def __repr__(self) -> str:
        named = {"source": self._source, "type": self._type}
        more = "".join(f", {name}={value!r}" for name, value in named.items() if value is not None)
        return f"Enveloped({self._inner!r}, {self._envelope!r}{more})"

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of decoded columns: a struct of ``key``, ``time``, ``headers`` and ``value``."""
        return pa.struct(enveloped_fields(self._inner.arrow_type))

    @property
    def never_null(self) -> frozenset[str]:
        """Columns without nulls."""
        return frozenset({"headers"})

    # ---- rows ----

    def serialize(self, value: Envelope[T]) -> bytes:
        """Return the event of an :class:`Envelope`.

        Raises :class:`SerializationError` for any other value, for invalid headers and if source or type is missing.
        """
        if not isinstance(value, Envelope):
            raise SerializationError(f"expected an Envelope, such as Envelope(value, key='k'), not {value!r:.80}")
        data = None if value.value is None else self._inner.serialize(value.value)
        try:
            attributes = self._attributes(value, has_data=data is not None)
            check_required({"id": "absent", **attributes})
            if "id" not in attributes:
                attributes = {"id": content_id(attributes, data), **attributes}
            return self._format.write(attributes, data)
        except MalformedError as error:
            raise error.in_value("a CloudEvent") from error

    def _attributes(self, value: Envelope[T], *, has_data: bool) -> dict[str, str]:
        check_names(value.headers)
        for name, text in (*value.headers.items(), ("key", value.key or "")):
            if not isinstance(text, str):
                raise MalformedError(f"{name!r} must be text, not {type(text).__name__}")
        made = {name: text for name, text in self._defaults(has_data=has_data) if name not in value.headers}
        made |= value.headers
        if value.time is not None:
            if not isinstance(value.time, datetime) or value.time.tzinfo is None:
                raise MalformedError(f"the time must be a datetime with a time zone, not {value.time!r}")
            made[TIME] = f"{in_utc(value.time).isoformat(timespec='microseconds')}Z"
        if value.key is not None:
            made[KEY] = value.key
        return made

    def _defaults(self, *, has_data: bool = True) -> list[tuple[str, str]]:
        content_type = getattr(self._inner, "content_type", _ANY_CONTENT) if has_data else None
        pairs = (("source", self._source), ("type", self._type), (CONTENT_TYPE, content_type))
        return [(name, text) for name, text in pairs if text is not None]

    def deserialize(self, data: bytes) -> Envelope[T]:
        """Return the :class:`Envelope` of an event. Raises :class:`DeserializationError` for any other event."""
        opened = self._open(data)
        value = None
        if opened["data"] is not None:
            try:
                value = self._inner.deserialize(opened["data"])
            except DeserializationError as error:
                raise _in_data(error) from error
        try:
            time = None if opened["time"] is None else _EPOCH + opened["time"] * _MICROSECOND
        except OverflowError as error:
            raise DeserializationError("the time is beyond the years 1 to 9999", field_path="$.time") from error
        return Envelope(value, opened["key"], time, dict(opened["headers"]))

    def _open(self, event: bytes) -> dict[str, Any]:
        try:
            attributes, data = self._format.read(event)
            time = None
            if TIME in attributes:
                try:
                    time = times_of(text_column([attributes[TIME]])).cast(pa.int64())[0].as_py()
                except pa.ArrowInvalid:
                    raise MalformedError(f"{attributes[TIME]!r:.40} is not a time of RFC 3339").within(
                        ".time"
                    ) from None
        except MalformedError as error:
            raise error.in_event("CloudEvent") from error
        headers = [(name, text) for name, text in attributes.items() if name not in (KEY, TIME)]
        return {"key": attributes.get(KEY), "time": time, "headers": headers, "data": data}

    # ---- columns ----

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Raise :class:`SchemaError` unless a column is a struct of ``value`` and any of the other columns."""
        if not pa.types.is_struct(arrow_type) or arrow_type.get_field_index(VALUE) < 0:
            raise SchemaError(
                f"an envelope is written from columns 'value', 'key', 'time' and 'headers', not from {arrow_type}"
            )
        for field in arrow_type:
            if field.name == VALUE:
                self._inner.check_encodable(field.type)
            elif field.name not in _CHECKS:
                raise SchemaError(
                    f"an envelope has no column {field.name!r}: put it into 'value', or as text into 'headers'"
                )
            elif not (pa.types.is_null(field.type) or _CHECKS[field.name](field.type)):
                wanted = _OPENED.field(field.name).type
                raise SchemaError(f"column {field.name!r} of an envelope is {field.type}, not {wanted}: cast it")

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Return the events of a column of structs, or of a batch. A null row stays null.

        Raises :class:`SchemaError` for other columns, :class:`SerializationError` with the row for invalid values.
        """
        column = as_column(column)
        self.check_encodable(column.type)
        there = column.drop_null() if column.null_count else column
        events = written(there, self._write)
        return expand(events, valid_rows(column)) if column.null_count else events

    def _write(self, column: pa.StructArray) -> pa.BinaryArray:
        columns = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
        data = self._inner.encode_column(columns[VALUE])
        attributes = self._attribute_column(columns, data)
        ids = attribute(attributes, "id")
        if ids.null_count:
            missing = ~valid_rows(ids)
            attributes = joined([("id", content_ids(attributes, data, missing)), attributes])
        check_required_column(attributes)
        return self._format.write_column(attributes, data)

    def _attribute_column(self, columns: Mapping[str, pa.Array], data: pa.BinaryArray) -> pa.MapArray:
        count = len(data)
        key, time, headers = (
            columns[field.name].cast(field.type) if field.name in columns else pa.nulls(count, field.type)
            for field in _CONTEXT
        )
        _, names, texts = map_entries(headers)
        check_names(names.unique().to_pylist())
        if texts.null_count:
            raise MalformedError("a header is null")
        defaults = []
        for name, text in self._defaults():
            wanted = ~valid_rows(attribute(headers, name))
            if name == CONTENT_TYPE:
                wanted &= valid_rows(data)
            defaults.append((name, expand(repeated_text(text, int(wanted.sum())), wanted)))
        return joined([*defaults, headers, (TIME, texts_of(time)), (KEY, key)])

    def _decode(self, column: pa.Array, on_error: OnError | None, decode: Callable[..., pa.Array]) -> pa.StructArray:
        errors: list[DeserializationError] = []
        opened = decode_rows(
            as_binary(column),
            plain=PlainPath(self._open, _OPENED),
            fast=bisecting(self._open_column, refusals=_REFUSALS),
            on_error=errors.append,
        )
        *context, data = opened.flatten()
        values = decode(data, on_error=lambda error: errors.append(_in_data(error)))
        errors = [error for error in errors if (error.row or 0) < len(values)]
        report(errors, on_error)
        made = pa.StructArray.from_arrays(
            [*(each.slice(0, len(values)) for each in context), values], fields=list(self.arrow_type)
        )
        valid = valid_rows(opened)[: len(values)]
        valid[[error.row for error in errors if error.row is not None]] = False
        return made if valid.all() else select(made, np.arange(len(values)), valid=valid)

    def _open_column(self, events: pa.BinaryArray) -> pa.StructArray:
        attributes, data = self._format.read_column(events)
        check_required_column(attributes)
        key, time = attribute(attributes, KEY), times_of(attribute(attributes, TIME))
        return pa.StructArray.from_arrays([key, time, without(attributes, [KEY, TIME]), data], fields=list(_OPENED))


#: Raised for columns that the rows decide.
_REFUSALS: Final = (*UNFIT, DeserializationError, SerializationError, MalformedError, RecursionError)


_CHECKS: Final[Mapping[str, Callable[[pa.DataType], bool]]] = {
    "key": is_text,
    "time": lambda kind: is_family(kind, "timestamp") and kind.tz is not None,
    "headers": lambda kind: pa.types.is_map(kind) and is_text(kind.key_type) and is_text(kind.item_type),
}


@functools.cache
def _format(envelope: str) -> EventFormat:
    made: EventFormat = imported(ENVELOPES[envelope])()
    return made


def _in_data(error: DeserializationError) -> DeserializationError:
    """Return the error of the data, with its path in the event."""
    path = f"$.data{(error.field_path or '$')[1:]}"
    return type(error)(error.reason, field_path=path, row=error.row, encoding_id=error.encoding_id)


def _rebuild(serializer: Serializer[Any], envelope: str, source: str | None, kind: str | None) -> Enveloped[Any]:
    return Enveloped(serializer, envelope, source=source, type=kind)
