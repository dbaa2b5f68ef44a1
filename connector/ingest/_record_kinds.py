"""Files that say themselves which columns they have: Parquet, Avro."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from connector.errors import BadRecordError, ConfigError, SourceUnreadableError
from connector.ingest._opening import open_file, reading
from connector.ingest._parsing import conform, reason_of
from connector.ingest._source import Chunk

__all__ = ["AvroFiles", "ParquetFiles"]

_ROWS: Final = 16384


@dataclass(frozen=True, kw_only=True)
class ParquetFiles:
    """Parquet files; a row group's records are read a part at a time."""

    sampled: bool = False

    def columns(self, path: str, *, whole: bool) -> pa.Schema:  # noqa: ARG002 - the file says it
        """Those of the file."""
        with reading(path), self._open(path) as file:
            return file.schema_arrow.remove_metadata()

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:  # noqa: ARG002
        """Rows; whole row groups before ``offset`` are not read."""
        with reading(path), self._open(path) as file:
            first, group, groups = 0, 0, file.metadata.num_row_groups
            while group < groups and first + file.metadata.row_group(group).num_rows <= offset:
                first += file.metadata.row_group(group).num_rows
                group += 1
            size = sum(file.metadata.row_group(each).total_byte_size for each in range(groups))
            per_row = size / max(1, file.metadata.num_rows)
            for batch in file.iter_batches(_ROWS, row_groups=range(group, groups), use_threads=False):
                end = first + batch.num_rows
                if end > offset:
                    rows = conform(batch.slice(max(0, offset - first)), schema, path)
                    yield Chunk(rows, max(first, offset), rows.num_rows, bytes=int(per_row * rows.num_rows))
                first = end

    @staticmethod
    def _open(path: str) -> Any:
        from pyarrow import parquet  # noqa: PLC0415 - of all kinds this one alone needs it

        return parquet.ParquetFile(path, memory_map=False, pre_buffer=False, buffer_size=1 << 20)


@dataclass(frozen=True, kw_only=True)
class AvroFiles:
    """Avro object container files, of any codec."""

    sampled: bool = False

    def columns(self, path: str, *, whole: bool) -> pa.Schema:  # noqa: ARG002 - the file says it
        """Those of the schema in the file."""
        with open_file(path) as file:
            return self._columns(self._blocks(file, path), path)

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:  # noqa: ARG002
        """The records of each block; blocks before ``offset`` are not decoded."""
        with open_file(path) as file:
            blocks = self._blocks(file, path)
            own = self._columns(blocks, path)
            first = 0
            for block in _damaged(blocks, path):
                end = first + block.num_records
                if end > offset:
                    records = list(_damaged(block, path))[max(0, offset - first) :]
                    batch = conform(_from_records(records, own, path), schema, path)
                    yield Chunk(batch, max(first, offset), len(records), bytes=block.size)
                first = end

    @staticmethod
    def _blocks(file: Any, path: str) -> Any:
        try:
            import fastavro  # noqa: PLC0415 - an optional dependency
        except ImportError:
            raise ConfigError("reading Avro files needs fastavro: pip install 'pravega-serde[ingest]'") from None
        try:
            return fastavro.block_reader(file)
        except (ValueError, EOFError, StopIteration) as error:
            raise SourceUnreadableError(f"{path} is no Avro file, or is cut off: {error}") from error

    @staticmethod
    def _columns(blocks: Any, path: str) -> pa.Schema:
        from pravega_serde.avro import AvroSerializer  # noqa: PLC0415 - of all kinds this one alone needs it

        kind = AvroSerializer(blocks.writer_schema).arrow_type
        if not pa.types.is_struct(kind):
            raise SourceUnreadableError(f"{path} holds {kind}, not records")
        return pa.schema(list(kind))


def _damaged(values: Any, path: str) -> Iterator[Any]:
    """What an Avro reader gives; whatever it raises means that the file is damaged."""
    try:
        yield from values
    except (ValueError, EOFError, IndexError, KeyError, TypeError, OverflowError) as error:
        raise SourceUnreadableError(f"{path} is damaged or cut off: {type(error).__name__}: {error}") from error


def _from_records(records: list[Any], schema: pa.Schema, path: str) -> pa.RecordBatch:
    try:
        return pa.RecordBatch.from_pylist(records, schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise BadRecordError(f"{path} has a record that does not fit its columns: {reason_of(error)}") from error
