"""Count the events of a stream by a field, in parallel: with processes, Ray or Daft.

python -m examples.parallel_reads --stream shop/orders --field item --engine ray

Each part of the stream is read where its task runs. The events are JSON. To install Ray or Daft, run
``pip install ray`` or ``pip install daft``.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor

import pyarrow as pa

from pravega_connector import EventColumns, PravegaClient
from pravega_serde import serializer_for


def count(part: EventColumns) -> pa.Table:
    """Count the events of one part by the field."""
    (field,) = part.schema.names
    return part.to_arrow().group_by(field).aggregate([(field, "count")])


def with_processes(parts: Sequence[EventColumns]) -> list[pa.Table]:
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as processes:
        return list(processes.map(count, parts))


def with_ray(parts: Sequence[EventColumns]) -> list[pa.Table]:
    import ray

    with_retries = ray.remote(count)  # Ray pickles the parts, and repeats a task whose machine fails
    found: list[pa.Table] = ray.get([with_retries.remote(part) for part in parts])
    return found


def with_daft(parts: Sequence[EventColumns]) -> list[pa.Table]:
    import daft
    from daft.io.source import DataSource, DataSourceTask
    from daft.recordbatch import RecordBatch

    schema = daft.Schema.from_pyarrow_schema(parts[0].schema)

    class Part(DataSourceTask):  # type: ignore[misc]
        def __init__(self, columns: EventColumns) -> None:
            self.columns = columns

        @property
        def schema(self) -> daft.Schema:
            return schema

        async def read(self) -> AsyncIterator[RecordBatch]:
            for batch in self.columns.record_batches():
                yield RecordBatch.from_arrow_record_batches([batch], self.columns.schema)

    class Stream(DataSource):  # type: ignore[misc]
        name = "pravega"

        @property
        def schema(self) -> daft.Schema:
            return schema

        async def get_tasks(self, _: object) -> AsyncIterator[Part]:
            for part in parts:
                yield Part(part)

    (field,) = parts[0].schema.names
    counts = Stream().read().groupby(field).agg(daft.col(field).count().alias(f"{field}_count"))
    return [counts.to_arrow()]


ENGINES: dict[str, Callable[[Sequence[EventColumns]], list[pa.Table]]] = {
    "processes": with_processes,
    "ray": with_ray,
    "daft": with_daft,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Count the events of a stream by a field, in parallel")
    parser.add_argument("--controller", default="tcp://localhost:9090")
    parser.add_argument("--stream", required=True, help="scope/stream of JSON events")
    parser.add_argument("--field", required=True, help="field of text")
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--engine", choices=ENGINES, default="processes")
    given = parser.parse_args(arguments)
    rows = serializer_for("json", arrow_type=pa.schema([(given.field, pa.string())]))
    with PravegaClient(given.controller) as client:
        parts = client.read_columns(given.stream, rows).splits(given.parts)
        counts = pa.concat_tables(ENGINES[given.engine](parts))
    total = counts.group_by(given.field).aggregate([(f"{given.field}_count", "sum")]).sort_by(given.field)
    for value, number in zip(*total.to_pydict().values(), strict=True):
        print(f"{value}: {number}")


if __name__ == "__main__":
    main()
