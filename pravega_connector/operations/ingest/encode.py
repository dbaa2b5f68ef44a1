"""Encoding of records as events: the columns of an ingestion, and the serializer and router in its options."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from pravega_connector.errors import BadRecordError, EventError, InvalidNameError
from pravega_connector.operations.ingest.replayable import Chunk, RecordSource
from pravega_connector.operations.ingest.targets import Rows, TargetColumn
from pravega_connector.rows.encoding import EventEncoder, encoder_for
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.wire import StreamName
from pravega_serde.errors import SerializationError
from pravega_serde.registry import registry_format

_EVENT: Final = "event"
#: Metadata of columns that are fields of records, even if the only one is called ``event``.
OF_FIELDS: Final = {b"pravega.columns": b"fields"}
_NOT_IN_NAMES: Final = re.compile(r"^(?=[0-9])|[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class Encoding:
    """Serializer and router of the events, and their description."""

    encoder: EventEncoder
    by_source: bool
    """True if the key of an event is the name of its source, so that the events of a source stay in order."""
    format: str
    schema_text: str | None
    """The schema that was derived for the events, if any."""
    target: TargetColumn | None = None
    """Column with the stream of each record."""

    @property
    def key(self) -> str:
        """Description of the routing key."""
        return "the file" if self.by_source else type(self.encoder.router).__name__.removeprefix("By").lower()

    def by_stream(self, parts: Sequence[tuple[str, Chunk]], default: StreamName) -> list[Rows]:
        """Return the events of chunks, each with its source, by stream. Raises BadRecordError."""
        try:
            batch = _joined(parts)
            events, keys = self.encoder.encode(batch)
            keys = _sources(parts) if self.by_source else keys
            if self.target is None:
                return [Rows(default, events, keys)]
            return list(self.target.split(batch.column(self.target.name), events, keys))
        except (SerializationError, EventError, InvalidNameError) as error:
            if len(parts) > 1:  # find the chunk with the error
                for part in parts:
                    self.by_stream([part], default)
            ((id_, chunk), *_) = parts
            bad = BadRecordError(
                f"one of records {chunk.first} to {chunk.first + chunk.records - 1} of {id_} cannot be written: {error}"
            )
            bad.source_id = id_
            raise bad from error


def _joined(parts: Sequence[tuple[str, Chunk]]) -> pa.RecordBatch:
    if len(parts) == 1:
        return parts[0][1].batch
    return pa.Table.from_batches([chunk.batch for _, chunk in parts]).combine_chunks().to_batches()[0]


def _sources(parts: Sequence[tuple[str, Chunk]]) -> pa.DictionaryArray:
    """Return the source of each row as a dictionary array, so that each source is hashed once."""
    rows = np.repeat(np.arange(len(parts), dtype=np.int32), [chunk.batch.num_rows for _, chunk in parts])
    return pa.DictionaryArray.from_arrays(pa.array(rows), pa.array([id_ for id_, _ in parts], pa.string()))


def encoding_for(
    schema: pa.Schema, options: SinkOptions, *, ordered: bool = True, values: pa.Schema | None = None
) -> Encoding:
    """Return the encoding of records with these columns.

    Without a format, a single column ``event`` without the metadata ``OF_FIELDS`` is the event itself, and other
    columns become JSON. If a format needs a
    schema (Avro), and there is neither a schema nor a registry, the schema is derived from ``values``, by default all
    columns. Without a key, ``ordered`` uses the source of an event as its key. Raises ColumnTypeError, ConfigError,
    RegistryErrors.
    """
    made = None
    lines = schema.names == [_EVENT] and (schema.metadata or {}).items().isdisjoint(OF_FIELDS.items())
    if options.format is None and not options.from_registry and not lines:
        options = replace(options, format="json")
    if options.format is not None and (missing := options.derivable()) is not None and not options.from_registry:
        name = options.registry_type or _NOT_IN_NAMES.sub("_", options.stream_name().stream)
        made = registry_format(options.format).derive(schema if values is None else values, name)
        options = replace(options, **{missing: made})
    keyed = options.routing_key is not None or options.routing_key_field is not None or "routing_key" in schema.names
    return Encoding(encoder_for(schema, options), ordered and not keyed, options.format or "raw", made)


class Columns:
    """Columns of an ingestion: the recorded ones, from any run, or those of the source until some are recorded."""

    def __init__(self, source: RecordSource, make_encoding: Callable[[pa.Schema], Encoding]) -> None:
        self._source, self._make_encoding = source, make_encoding
        self._current: tuple[str, Encoding] | None = None
        self._fixed: str | None = None

    def fix(self, recorded: str | None) -> None:
        """Let the source use the recorded columns, if there are any."""
        if recorded not in (None, self._fixed):
            self._source.fix(recorded_schema(recorded))
            self._fixed = recorded

    def agree(self, recorded: str | None) -> tuple[str | None, Encoding]:
        """Return the columns and their encoding; the columns are None if they are already recorded.

        Raises SourceError, ColumnTypeError, ConfigError, RegistryErrors.
        """
        if self._current is None or recorded not in (None, self._current[0]):
            self.fix(recorded)
            schema = self._source.schema
            self._current = base64.b64encode(schema.serialize()).decode(), self._make_encoding(schema)
        text, encoding = self._current
        return None if text == recorded else text, encoding


def recorded_schema(text: str) -> pa.Schema:
    """Return the columns that a state has."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
