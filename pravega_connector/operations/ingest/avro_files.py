"""Avro object container files: their records are read as the Avro serializer reads events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from pravega_connector.errors import BadRecordError, SourceUnreadableError
from pravega_connector.operations.ingest.file_kinds import ROWS_AT_ONCE, conform, good_rows, open_file
from pravega_connector.operations.ingest.replayable import Chunk, Rejected
from pravega_serde.avro import AvroSerializer
from pravega_serde.avro.container import Container, RecordBounds
from pravega_serde.avro.schema import Union, branches_of, load
from pravega_serde.errors import DeserializationError, SchemaError

#: Column of values that are not records.
_VALUE = "value"


@dataclass(frozen=True, kw_only=True)
class AvroFiles:
    """Avro object container files with any codec."""

    def columns(self, path: str, *, whole: bool) -> pa.Schema:
        """Return the columns of the Avro schema in the file."""
        with open_file(path) as file, _damaged(path):
            return _columns(_opened(file)[1])

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:
        """Yield the records of each block; blocks before ``offset`` are not decoded."""
        with open_file(path) as file, _damaged(path):
            container, serializer = _opened(file)
            kind, _ = load(container.schema)
            bounds = RecordBounds(kind)
            # The null of a union of several types is a struct without a member, as in a field.
            null = isinstance(kind, Union) and len(branches_of(kind)) > 1
            reader = _Reader(path, serializer, schema, null=null, reject=reject)
            first = 0
            for block in container.blocks():
                end = first + block.count
                if end > offset:
                    events = bounds.column(block, max(0, offset - first))
                    yield from reader.chunks(events, end - len(events), block.size)
                first = end


class _Reader:
    def __init__(self, path: str, serializer: AvroSerializer, schema: pa.Schema, *, null: bool, reject: bool) -> None:
        """With ``null``, a record may be null: all its columns are then null."""
        self._path, self._serializer, self._schema = path, serializer, schema
        self._null, self._reject = null, reject
        self._own = _columns(serializer)

    def chunks(self, events: pa.BinaryArray, first: int, size: int) -> Iterator[Chunk]:
        """Yield the records of a block; ``first`` is the number of its first record."""
        per_row = size / max(1, len(events))
        for start in range(0, len(events), ROWS_AT_ONCE):
            part = events.slice(start, ROWS_AT_ONCE)
            batch, bad = self._decoded(part, first + start)
            rows = conform(batch, self._schema, self._path)
            yield Chunk(rows, first + start, len(part), bad, int(per_row * len(part)))

    def _decoded(self, events: pa.BinaryArray, first: int) -> tuple[pa.RecordBatch, tuple[Rejected, ...]]:
        reasons: dict[int, str] = {}
        values = self._serializer.decode_column(
            events, on_error=lambda error: reasons.update({error.row or 0: _told(error)})
        )
        null = "the record is null" if pa.types.is_struct(values.type) and not self._null else None

        def refuse(row: int, reason: str) -> Rejected:
            if not self._reject:
                raise BadRecordError(f"{self._path}, record {first + row + 1}: {reason}")
            return Rejected(first + row, 0, reason, events[row].as_py().hex())

        values, bad = good_rows(values, reasons, null, refuse)
        if not pa.types.is_struct(values.type):
            return pa.RecordBatch.from_arrays([values], schema=self._own), bad
        return pa.RecordBatch.from_struct_array(values), bad


def _told(error: DeserializationError) -> str:
    return f"{error.reason} (field {error.field_path})" if error.field_path else error.reason


def _opened(file: object) -> tuple[Container, AvroSerializer]:
    container = Container(file)
    return container, AvroSerializer(container.schema)


def _columns(serializer: AvroSerializer) -> pa.Schema:
    kind = serializer.arrow_type
    return pa.schema(list(kind) if pa.types.is_struct(kind) else [pa.field(_VALUE, kind)])


@contextmanager
def _damaged(path: str) -> Iterator[None]:
    """Raise SourceUnreadableError for errors of the container or its schema in the block."""
    try:
        yield
    except SchemaError as error:
        raise SourceUnreadableError(f"{path} has an Avro schema that cannot be read: {error.message}") from error
    except DeserializationError as error:
        raise SourceUnreadableError(f"{path} is damaged or truncated: {error.reason}") from error
