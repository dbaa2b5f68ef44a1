"""Rows for the Spark source that does nothing: the first batches that our source reads from a stream."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import StructType

from benchmarks.peers.nothing import BATCHES, FED, SCHEMA
from pravega_connector.spark.data_source import PravegaDataSource

__all__ = ["feed", "prepare", "unfeed"]

_MOST_BATCHES: Final = 16


def prepare(folder: Path, options: Mapping[str, str], schema: Mapping[str, Any], rows: int) -> dict[str, str]:
    """Return the options of ``format("nothing")`` for rows that our source reads with these options.

    The number of tasks is the same. ``schema`` is that of our source's DataFrame, as Spark's JSON. The batches are
    written to the folder, which must be new.
    """
    reader = PravegaDataSource(dict(options)).reader(StructType.fromJson(dict(schema)))
    partitions = reader.partitions()
    batches = itertools.islice(reader.read(partitions[0]), _MOST_BATCHES)
    first = next(batches)
    folder.mkdir()
    (folder / SCHEMA).write_text(json.dumps(schema))
    with pa.OSFile(str(folder / BATCHES), "wb") as file, pa.ipc.new_file(file, first.schema) as writer:
        for batch in itertools.chain((first,), batches):
            writer.write_batch(batch)
    feed(folder)
    return {"folder": str(folder), "tasks": str(len(partitions)), "rows": str(rows)}


def feed(folder: Path) -> None:
    """Let a streaming query read the rows once more."""
    with (folder / FED).open("ab") as fed:
        fed.write(b".")


def unfeed(folder: Path) -> None:
    """Let the next streaming query read no rows at first."""
    (folder / FED).write_bytes(b"")
