"""JSON lines: each line is read as the JSON serializer reads an event, and loses nothing."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from pravega_connector.errors import SourceUnreadableError
from pravega_connector.operations.ingest.file_kinds import good_rows, open_text
from pravega_connector.operations.ingest.lines import Lines, from_offset, lines_of, rejected
from pravega_connector.operations.ingest.replayable import Chunk, Rejected
from pravega_serde.errors import DeserializationError, SchemaError
from pravega_serde.json.exact import ExactReader, Inference

if TYPE_CHECKING:
    from pravega_serde.columnar.found import Found


@dataclass(frozen=True, kw_only=True)
class JsonLines:
    """One JSON object in each line."""

    encoding: str = "utf-8"
    _first: list[tuple[Lines, pa.RecordBatch]] = field(default_factory=list, init=False, repr=False, compare=False)
    """The first block whose columns were inferred, until records are read."""

    def columns(self, path: str, *, whole: bool) -> Found:
        """Return the types of the first mebibyte, or of the whole file. Malformed lines are left out."""
        inference = Inference()
        with open_text(path, self.encoding) as file:
            blocks = _blocks(file, path)
            for block in blocks if whole else islice(blocks, 1):
                try:
                    inference.add(block.column().slice(0, _BEGINNING))
                    schema = inference.found.schema()
                    batch = None
                    if all(map(_is_quick, schema)):
                        batch = _parsed(block, schema, ExactReader(pa.struct(list(schema))))
                    if batch is None:
                        inference.add(block.column().slice(_BEGINNING))
                    elif not self._first:
                        self._first.append((block, batch))
                except SchemaError as error:
                    raise SourceUnreadableError(f"{path}: {error.message}") from error
        return inference.found

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:
        """Yield objects. A missing field is null; a field without a column makes the record malformed."""
        reader = ExactReader(pa.struct(list(schema)))
        quick = all(map(_is_quick, schema))
        with open_text(path, self.encoding) as file:
            for lines, first in from_offset(_blocks(file, path), offset):
                batch = self._kept(lines, schema)
                if batch is None and quick:
                    batch = _parsed(lines, schema, reader)
                if batch is None:
                    yield _chunk(path, reader, lines, first, reject=reject)
                else:
                    yield Chunk(batch, first, len(lines), bytes=len(lines.joined()))

    def _kept(self, lines: Lines, schema: pa.Schema) -> pa.RecordBatch | None:
        """Return the rows of lines if inference has parsed them into the same columns."""
        if self._first:
            first, batch = self._first.pop()
            if lines.is_like(first) and batch.schema.equals(schema):
                return batch.cast(schema)
        return None


def _blocks(file: object, path: str) -> Iterator[Lines]:
    blocks = (block.without_blanks() for block in lines_of(file, path, returns=True, escapes=True))
    return (block for block in blocks if len(block))


def _is_quick(entry: pa.Field) -> bool:
    """Return True for a type that pyarrow reads from JSON with the same values as :class:`ExactReader`."""
    kind = entry.type
    if pa.types.is_struct(kind) or pa.types.is_list(kind):
        return all(_is_quick(kind.field(at)) for at in range(kind.num_fields))
    return kind in (pa.int64(), pa.float64(), pa.string(), pa.bool_())


#: Records whose types the others of a block usually have.
_BEGINNING: Final = 64


def _parsed(lines: Lines, schema: pa.Schema, reader: ExactReader) -> pa.RecordBatch | None:
    """Return the rows of lines, read by pyarrow's faster parser; None if a line may be malformed or lose something."""
    # pyarrow ends the process at a null in the place of the first object.
    if not _are_objects(lines):
        return None
    data = lines.joined()
    parse = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    try:
        table = json.read_json(
            pa.BufferReader(data), json.ReadOptions(use_threads=False, block_size=len(data) + 1), parse
        )
        if not lines.data.isascii():
            table.validate(full=True)
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(lines):
        return None
    (batch,) = table.combine_chunks().to_batches()
    if all(column.null_count for column in batch.columns) and _has_null_row(batch):
        return None  # perhaps the line is null
    if len(reader.lossy(batch.to_struct_array(), lines.column())):
        return None
    return batch


def _are_objects(lines: Lines) -> bool:
    """Return True if each line begins and ends as an object; an object may otherwise have several lines."""
    data = np.frombuffer(lines.data, np.uint8)
    last = data[lines.ends - 1]
    last = np.where(last == _RETURN, data[lines.ends - 2], last)
    return bool((data[lines.starts] == _OPEN).all() and (last == _CLOSE).all())


_OPEN, _CLOSE, _RETURN = b"{}\r"


def _has_null_row(batch: pa.RecordBatch) -> bool:
    there = [column.is_valid() for column in batch.columns]
    return not there or not pc.all(functools.reduce(pc.or_, there)).as_py()


def _chunk(path: str, reader: ExactReader, lines: Lines, first: int, *, reject: bool) -> Chunk:
    reasons: dict[int, str] = {}
    values = reader.read(lines.column(), lambda error: reasons.update({error.row or 0: _told(error)}))

    def refuse(row: int, reason: str) -> Rejected:
        return rejected(path, lines, row, first, reason, reject=reject)

    values, bad = good_rows(values, reasons, "null where an object is expected", refuse)
    return Chunk(pa.RecordBatch.from_struct_array(values), first, len(lines), bad, len(lines.joined()))


def _told(error: DeserializationError) -> str:
    """Return the reason of an error, with the field and a fix."""
    reason = error.reason.removeprefix("invalid value: ")
    if "UTF-8" in reason:
        return f"{reason}; set the encoding of the file (--encoding)"
    if reason.endswith("has no column"):
        return f"{reason}: find fields that come late with --infer-all"
    column = (error.field_path or "").removeprefix("$.").partition(".")[0].partition("[")[0]
    if column in ("", "$"):
        return reason
    return f"{reason} (field {error.field_path}); set the type of the column (--type {column}=string)"
