"""``format("nothing")``: a source of prepared rows, and a sink that drops rows.

Their rate is that of Spark itself, which limits every source and sink in Python. Every task of Spark imports this
module, so it imports only PySpark and Arrow.
"""

from __future__ import annotations

import gc
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

__all__ = ["BATCHES", "FED", "SCHEMA", "NothingDataSource"]

# Files in the folder of a source.
#: Spark's schema as JSON.
SCHEMA: Final = "schema.json"
#: Record batches as an Arrow file, which tasks return repeatedly.
BATCHES: Final = "batches.arrow"
#: One byte for each time that a query must get the rows.
FED: Final = "fed"

# Like our source in Spark's workers: the garbage collection after each task skips loaded objects.
if getattr(sys.modules["__main__"].__spec__, "name", None) == "pyspark.daemon":
    gc.collect()
    gc.freeze()

# Cache of this process, which Spark uses for many tasks.
_loaded: Final[dict[str, list[pa.RecordBatch]]] = {}


class NothingDataSource(DataSource):  # type: ignore[misc]
    """Source and sink with these options.

    Options of the source: ``folder``, and the ``rows`` and ``tasks`` of a read. Option of the sink: the ``rows`` of
    each commit.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "nothing"

    def schema(self) -> StructType:
        """Return the columns of the prepared rows."""
        return StructType.fromJson(json.loads(Path(self.options["folder"], SCHEMA).read_text()))

    def reader(self, schema: StructType) -> _BatchReader:
        """Return the reader of a batch query."""
        return _BatchReader(self.options)

    def streamReader(self, schema: StructType) -> _StreamReader:
        """Return the reader of a streaming query."""
        return _StreamReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> _BatchWriter:
        """Return the writer of a batch query."""
        return _BatchWriter(int(self.options["rows"]))

    def streamWriter(self, schema: StructType, overwrite: bool) -> _StreamWriter:
        """Return the writer of a streaming query."""
        return _StreamWriter(int(self.options["rows"]))


@dataclass(frozen=True)
class _Part(InputPartition):  # type: ignore[misc]
    """Rows of one task."""

    rows: int


class _Reader:
    def __init__(self, options: Mapping[str, str]) -> None:
        self.folder, self.rows, self.tasks = options["folder"], int(options["rows"]), int(options["tasks"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the prepared batches. After the last one, continue with the first."""
        if not isinstance(partition, _Part):
            return  # without partitions, Spark calls this once with None
        left = partition.rows
        for batch in itertools.cycle(_batches(self.folder)):
            yield batch.slice(0, left)
            left -= batch.num_rows
            if left <= 0:
                return

    def parts(self, rows: int) -> Sequence[InputPartition]:
        """Return a partition for each task, of almost equal size."""
        ends = [task * rows // self.tasks for task in range(self.tasks + 1)]
        return [_Part(end - start) for start, end in itertools.pairwise(ends) if end > start]


class _BatchReader(_Reader, DataSourceReader):  # type: ignore[misc]
    def partitions(self) -> Sequence[InputPartition]:
        return self.parts(self.rows)


class _StreamReader(_Reader, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    _end: int | None = None

    def initialOffset(self) -> dict[str, Any]:
        return {FED: 0}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        return {FED: self._fed() if self._end is None else self._end}

    def prepareForTriggerAvailableNow(self) -> None:
        self._end = self._fed()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self.parts(self.rows * (end[FED] - start[FED]))

    def _fed(self) -> int:
        return Path(self.folder, FED).stat().st_size


def _batches(folder: str) -> list[pa.RecordBatch]:
    if folder not in _loaded:
        reader = pa.ipc.open_file(pa.memory_map(str(Path(folder, BATCHES))))
        _loaded[folder] = [reader.get_batch(number) for number in range(reader.num_record_batches)]
    return _loaded[folder]


@dataclass(frozen=True)
class _Taken(WriterCommitMessage):  # type: ignore[misc]
    rows: int


class _Writer:
    """Writer that drops rows. ``rows`` is the required number of rows in each commit."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _Taken(sum(batch.num_rows for batch in iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int = 0) -> None:
        taken = sum(message.rows for message in messages if isinstance(message, _Taken))
        if taken != self.rows:
            raise ValueError(f"the sink got {taken} rows of {self.rows}")

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int = 0) -> None:
        """Do nothing."""


class _BatchWriter(_Writer, DataSourceArrowWriter):  # type: ignore[misc]
    pass


class _StreamWriter(_Writer, DataSourceStreamArrowWriter):  # type: ignore[misc]
    pass
