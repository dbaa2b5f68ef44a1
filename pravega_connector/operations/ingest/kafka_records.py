"""Records of a Kafka partition as columns: values, routing keys, and on request key, time and headers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from pravega_connector.errors import BadRecordError, ColumnTypeError, ConfigError
from pravega_connector.operations.ingest.encode import OF_FIELDS, Encoding, encoding_for
from pravega_connector.operations.ingest.replayable import Chunk, Rejected
from pravega_connector.rows.columns import Decoder, serializer_of
from pravega_connector.rows.encoding import encoder_for
from pravega_connector.rows.inference import Sample, event_columns
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_serde.errors import DeserializationError
from pravega_serde.format_table import find_format

_EVENT: Final = "event"
_VALUE: Final = "value"
_ROUTING_KEY: Final = "routing_key"
_CONTEXT: Final = (
    pa.field("key", pa.string()),
    pa.field("time", pa.timestamp("us", "UTC")),
    pa.field("headers", pa.map_(pa.string(), pa.string())),
)
_NOT_IN_NAMES: Final = re.compile("[^a-z0-9]")
# Attributes of CloudEvents that a header of a record cannot set, and attributes that the record itself sets.
_TAKEN: Final = frozenset({"data", "database64", "id", "partitionkey", "source", "specversion", "time", "type"})
_BYTES: Final = "bytes"


class RecordColumns:
    """Columns of the records of a topic.

    ``input`` are the options of the Spark source that decode the values; None leaves them bytes.
    """

    def __init__(self, topic: str, input_: SourceOptions | None, sink: SinkOptions, *, ordered: bool) -> None:
        """Raise ConfigError if the options contradict each other."""
        self._topic, self._input, self._sink = topic, input_, sink
        self._enveloped = sink.envelope is not None
        if input_ is None and (sink.from_registry or sink.format not in (None, _BYTES)):
            raise ConfigError(
                "the values of the records stay bytes: to write them in another format, set their own with --input, "
                "such as --input json"
            )
        chosen = sink.routing_key is not None or sink.routing_key_field is not None
        self._routed = ordered and not chosen
        self._decoder: Decoder = None
        self._values: list[pa.Field] = []

    @property
    def must_sample(self) -> bool:
        """True if the columns of the values are found in the values."""
        options = self._input
        return options is not None and not options.from_registry and bool(find_format(options.format or _BYTES).infer)

    def find(self, values: Sequence[bytes], recorded: pa.Schema | None) -> pa.Schema:
        """Return the columns. Values without a schema are sampled, or have the columns that a run has recorded.

        Raises ColumnTypeError, ConfigError, RegistryErrors.
        """
        wanted = None if recorded is None else self._recorded(recorded)
        if self._input is not None:
            if wanted is None and self.must_sample:
                sample = Sample(f"topic {self._topic}", pa.array(values, pa.binary()))
                wanted = event_columns([sample], self._input, "write records first")
            self._decoder = serializer_of(self._input, wanted if self.must_sample else None)
            assert self._decoder is not None
            kind = self._decoder.get().arrow_type
        else:
            kind = pa.binary()
        return self._schema(kind)

    def _recorded(self, schema: pa.Schema) -> pa.Schema | None:
        if self._enveloped and _VALUE in schema.names and pa.types.is_struct(schema.field(_VALUE).type):
            return pa.schema(list(schema.field(_VALUE).type))
        fields = [field for field in schema if field.name != _ROUTING_KEY]
        return None if self._enveloped or [field.name for field in fields] == [_EVENT] else pa.schema(fields)

    def _schema(self, kind: pa.DataType) -> pa.Schema:
        if self._enveloped:
            fields = [pa.field(_VALUE, kind), *_CONTEXT]
        elif self._input is None:
            fields = [pa.field(_EVENT, kind)]
        else:
            fields = list(kind) if pa.types.is_struct(kind) else [pa.field(_VALUE, kind)]
        if self._routed:
            if any(field.name == _ROUTING_KEY for field in fields):
                raise ColumnTypeError(
                    f"the values have a field {_ROUTING_KEY!r}: set --key to a column with the routing key"
                )
            fields.append(pa.field(_ROUTING_KEY, pa.string()))
        return pa.schema(fields)

    def encoding(self, schema: pa.Schema) -> Encoding:
        """Return the encoding of the columns. Raises ColumnTypeError, ConfigError, RegistryErrors."""
        options = self._sink
        if options.envelope is not None:
            source, type_ = options.cloudevents_source, options.cloudevents_type
            options = replace(
                options,
                cloudevents_source=f"kafka:{self._topic}" if source is None else source,
                cloudevents_type=self._topic if type_ is None else type_,
            )
        if self._input is None or (options.envelope is not None and options.format == _BYTES):
            is_plain = options.envelope is None and options.framing is None
            plain = replace(options, format=None) if is_plain else options
            return Encoding(encoder_for(schema, plain), False, "raw", None)
        if options.envelope is None:
            values = pa.schema([each for each in schema if each.name != _ROUTING_KEY])
        else:
            kind = schema.field(_VALUE).type
            values = pa.schema(list(kind) if pa.types.is_struct(kind) else [schema.field(_VALUE)])
        return encoding_for(schema.with_metadata(OF_FIELDS), options, ordered=False, values=values)

    def chunk(self, name: str, schema: pa.Schema, messages: Sequence[Any], *, reject: bool) -> Chunk:
        """Return the records of a partition. ``name`` is the routing key of records without a key.

        With ``reject``, malformed values are returned as rejected. Otherwise they raise BadRecordError.
        """
        data = [message.value() for message in messages]
        values, rejected = self._decoded(name, data, messages, reject=reject)
        if rejected:
            bad = {each.record for each in rejected}
            kept = [number for number, message in enumerate(messages) if message.offset() not in bad]
            values, messages = values.take(pa.array(kept, pa.int64())), [messages[number] for number in kept]
        columns: dict[str, Any] = {_ROUTING_KEY: None}
        if self._enveloped:
            columns = {_VALUE: values} | self._context(name, messages)
        elif self._input is not None and pa.types.is_struct(values.type):
            columns = dict(zip((field.name for field in values.type), values.flatten(), strict=True))
        else:
            columns = {_VALUE: values, _EVENT: values}
        if self._routed:
            columns[_ROUTING_KEY] = pa.array([_text(message.key(), name) for message in messages], pa.string())
        batch = pa.RecordBatch.from_arrays([columns[field.name] for field in schema], schema=schema)
        first, last = (messages or [None])[0], (messages or [None])[-1]
        span = 0 if first is None or last is None else last.offset() - first.offset() + 1
        size = sum(len(value) for value in data if value is not None)
        return Chunk(batch, 0 if first is None else first.offset(), span, tuple(rejected), size)

    def _decoded(
        self, name: str, data: Sequence[bytes | None], messages: Sequence[Any], *, reject: bool
    ) -> tuple[pa.Array, list[Rejected]]:
        if self._decoder is None:
            # An event is never null: a record without a value is an empty event, or an envelope without data.
            plain = data if self._enveloped else [b"" if value is None else value for value in data]
            return pa.array(plain, pa.binary()), []
        errors: list[DeserializationError] = []
        values = self._decoder.get().decode_column(pa.array(data, pa.binary()), on_error=errors.append)
        bad = [(int(error.row or 0), error.message) for error in errors]
        if not self._enveloped:
            bad += [(row, "the record has no value") for row, value in enumerate(data) if value is None]
        rejected = [Rejected(messages[row].offset(), 0, reason, _text(data[row], "")) for row, reason in sorted(bad)]
        if rejected and not reject:
            first = rejected[0]
            error = BadRecordError(
                f"the value at offset {first.record} of {name} is malformed: {first.reason}; correct --input, or set "
                "--dead-letters FOLDER"
            )
            error.source_id = f"kafka:{name}"
            raise error
        return values, rejected

    def _context(self, name: str, messages: Sequence[Any]) -> dict[str, pa.Array]:
        key, time, headers = _CONTEXT
        keys = [None if (found := message.key()) is None else _text(found, "") for message in messages]
        times = [1000 * millis if kind else None for kind, millis in (message.timestamp() for message in messages)]
        texts = [_headers(f"{name}-{message.offset()}", message.headers() or ()) for message in messages]
        return {
            key.name: pa.array(keys, key.type),
            time.name: pa.array(times, pa.int64()).cast(time.type),
            headers.name: pa.array([list(each.items()) for each in texts], headers.type),
        }


def _text(data: bytes | None, absent: str) -> str:
    """Return bytes as text. Bytes that are not UTF-8 are escaped, so equal bytes are equal texts."""
    return absent if data is None else data.decode("utf-8", "backslashreplace")


def _headers(id_: str, headers: Iterable[tuple[str, bytes | None]]) -> dict[str, str]:
    """Return the attributes of a record: its headers. If a name is repeated, the last one counts.

    Headers of the Kafka binding of CloudEvents, ``ce_…`` and ``content-type``, are the attributes that they name.
    """
    found = {"id": id_}
    for name, value in headers:
        if value is None:
            continue
        lowered = name.lower()
        if lowered.startswith("ce_") and lowered[3:] in ("id", "source", "type"):
            attribute = lowered[3:]
        elif lowered == "content-type":
            attribute = "datacontenttype"
        else:
            attribute = _NOT_IN_NAMES.sub("", lowered.removeprefix("ce_"))
            if attribute in _TAKEN or not attribute:
                attribute = f"kafka{attribute}"
        found[attribute] = _text(value, "")
    return found
