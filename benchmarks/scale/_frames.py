"""One question about a stream of many events, asked by Spark, DuckDB and polars. ``_frames WHO CONTROLLER STREAM``.

Each answers in a process of its own, which prints its rows, its time and the most memory that it has held.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.config import PravegaConfig
from pravega_serde.avro import AvroSerializer

__all__ = ["READERS", "Answer", "ask", "fill"]

_SCHEMA: Final = """{"type": "record", "name": "Order", "fields": [
    {"name": "customer", "type": "int"}, {"name": "cents", "type": "long"}, {"name": "note", "type": "string"}]}"""
_ROWS: Final = 250_000
_QUESTION: Final = "SELECT customer, count(*) AS orders, sum(cents) AS cents FROM columns GROUP BY customer"


@dataclass(frozen=True)
class Answer:
    """What a reader found, and what it took."""

    rows: list[list[int]]
    seconds: float
    peak_mib: float
    """Of all its processes together."""


def fill(client: PravegaClient, stream: StreamName, events: int) -> None:
    """Write so many orders of some 60 bytes, whose customers differ much in how many they have."""
    serializer, source = AvroSerializer(_SCHEMA), np.random.default_rng(7)
    client.create_stream(stream, 4)
    with client.writer(stream) as writer:
        for start in range(0, events, _ROWS):
            count = min(_ROWS, events - start)
            customers = np.minimum(source.zipf(1.3, count), 1000).astype(np.int32)
            notes = pa.array([f"order {n} of a stream of many events" for n in range(start, start + count)])
            cents = source.integers(100, 100_000, count)
            batch = pa.record_batch({"customer": customers, "cents": cents, "note": notes})
            keys = pa.array(customers).cast(pa.string())
            writer.write_column(serializer.encode_column(batch), routing_keys=keys)
            writer.flush()


def ask(who: str, config: PravegaConfig, stream: StreamName) -> Answer:
    """The answer of one reader, from a new process."""
    words = [sys.executable, "-m", __name__, who, config.controller, str(stream)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        peak = max(_watched(process))
        assert process.stdout is not None
        told = json.loads(process.stdout.read().splitlines()[-1])
    assert process.returncode == 0, f"{who} ended with {process.returncode}"
    return Answer(told["rows"], told["seconds"], peak)


def _watched(process: subprocess.Popen[str]) -> Iterator[float]:
    """Yield the memory, in MiB, of a process and those it has started, until it has ended."""
    yield 0.0
    while process.poll() is None:
        yield _tree_mib(process.pid)
        time.sleep(0.05)


def _tree_mib(leader: int) -> float:
    parents: dict[int, int] = {}
    pages: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat, open(f"/proc/{name}/statm") as memory:
                parents[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
                words = memory.read().split()
                # What is shared with others, libraries most of all, counts once for each: forked workers share much.
                pages[int(name)] = int(words[1]) - int(words[2])
        except OSError:  # it has ended
            continue
    family = {leader}
    while more := {pid for pid, parent in parents.items() if parent in family and pid not in family}:
        family |= more
    return sum(pages.get(pid, 0) for pid in family) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


# ---- the readers, each in its process --------------------------------------------------------------------------------


def _by_duckdb(config: PravegaConfig, stream: str) -> list[tuple[Any, ...]]:
    import duckdb

    with PravegaClient(config) as client:
        columns = client.read_columns(stream, AvroSerializer(_SCHEMA))  # noqa: F841 - the query names it
        return duckdb.sql(_QUESTION).fetchall()


def _by_polars(config: PravegaConfig, stream: str) -> list[tuple[Any, ...]]:
    import polars as pl

    with PravegaClient(config) as client:
        lazy = client.read_columns(stream, AvroSerializer(_SCHEMA)).scan_polars()
        found = lazy.group_by("customer").agg(pl.len().alias("orders"), pl.col("cents").sum())
        return found.collect(engine="streaming").rows()


def _by_spark(config: PravegaConfig, stream: str) -> list[tuple[Any, ...]]:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    reader = spark.read.format("pravega").options(controller=config.controller, format="avro", avro_schema=_SCHEMA)
    reader.load(stream).createOrReplaceTempView("columns")
    rows = [tuple(row) for row in spark.sql(_QUESTION).collect()]
    spark.stop()
    return rows


READERS: Final = {"duckdb": _by_duckdb, "polars": _by_polars, "spark": _by_spark}


def main(who: str, controller: str, stream: str) -> None:
    began = time.monotonic()
    rows = sorted([int(value) for value in row] for row in READERS[who](PravegaConfig(controller=controller), stream))
    print(json.dumps({"rows": rows, "seconds": time.monotonic() - began}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
