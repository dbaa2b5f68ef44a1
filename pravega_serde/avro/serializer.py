"""Avro serializer: rows and columns of one plan."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from pravega_serde.avro.columns import fast_path
from pravega_serde.avro.resolve import RecordNode, arrow_type, may_be_null, resolve
from pravega_serde.avro.rows import RowReader
from pravega_serde.avro.schema import SchemaLike, Type, load, text_fault
from pravega_serde.avro.write_columns import AvroColumnWriter
from pravega_serde.avro.write_rows import RowWriter
from pravega_serde.columnar import ColumnReader, ColumnSerializer, PlainPath, bytes_at_once

#: Number of rows of a flat record below which reading and writing by row are faster.
_FEW: Final = 32


class AvroSerializer(ColumnSerializer):
    """Serializer of Avro binary data: one datum is one event, without header, container or fingerprint.

    ``schema`` is the writer's: JSON text, parsed JSON, or the path of a file. With ``reader_schema``, events are
    converted to that schema with Avro's schema resolution. Values are always written with ``schema``.

    ``pravega_serde.avro.values`` documents the values in Python and in Arrow. Zeros after a datum are ignored, because
    some Java writers pad. Any other bytes there are an error, because the event was most likely written with another
    schema. (Java ignores them all.)

    Raises :class:`SchemaError` for an invalid schema, and for a reader's schema that does not fit the writer's.
    """

    #: Content type of the events in an envelope.
    content_type = "application/avro"

    def __init__(self, schema: SchemaLike, *, reader_schema: SchemaLike | None = None) -> None:
        self._writer, self._text = load(schema)
        self.reader: Type = self._writer
        self._reader_text: str | None = None
        if reader_schema is not None:
            self.reader, self._reader_text = load(reader_schema)
        #: Steps over the bytes of an event, which rows and columns follow.
        self.plan = resolve(self._writer, self.reader)
        self._read = RowReader(self.plan)
        self._write = RowWriter(self._writer)

    def _arguments(self) -> dict[str, str | None]:
        return {"schema": self._text, "reader_schema": self._reader_text}

    @property
    def read_schema(self) -> str:
        """JSON text of the schema of the values that are read: the reader's, else the writer's."""
        return self._text if self._reader_text is None else self._reader_text

    @cached_property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of decoded columns. Raises :class:`SchemaError` for a schema that contains itself."""
        return arrow_type(resolve(self.reader))

    @cached_property
    def never_null(self) -> frozenset[str]:
        """Fields of a record that are never null in decoded values."""
        node = resolve(self.reader)
        if not isinstance(node, RecordNode):
            return frozenset()
        return frozenset(step.name for step in node.steps if not may_be_null(step.node))

    @cached_property
    def bytes_at_once(self) -> int:
        """Bytes of events that are best decoded together. 0 if that makes no difference."""
        return bytes_at_once(self.arrow_type)

    def text_fault(self, path: Sequence[str]) -> str | None:
        """Return the reason why a field of either schema cannot hold every text or all bytes."""
        return text_fault(self._writer, path) or text_fault(self.reader, path)

    def serialize(self, value: Any) -> bytes:
        """Return the event of a natural value."""
        return self._write(value)

    def deserialize(self, data: bytes) -> Any:
        """Return the natural value of an event."""
        return self._read(data if isinstance(data, bytes) else bytes(data))

    def _make_reader(self) -> ColumnReader:
        kind = self.arrow_type
        plain = PlainPath(RowReader(self.plan, arrow=True), kind)
        return ColumnReader(plain, fast_path(self.plan, kind), few=_FEW)

    def _make_writer(self) -> AvroColumnWriter:
        arrow_type(resolve(self._writer))  # raises SchemaError for a schema that contains itself
        return AvroColumnWriter(self._writer, self._text, few=_FEW)
