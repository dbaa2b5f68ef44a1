"""Our own client: event by event, and in Arrow columns."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.peers._serve import Stopwatch, serve
from pravega_connector.client import PravegaClient

DISTINCT_EVENTS = 1024
BATCH_BYTES = 8 << 20


def _pool(size: int) -> list[bytes]:
    return [bytes([ord("a") + i % 26]) * size for i in range(DISTINCT_EVENTS)]


def write_rows(controller: str, scope: str, stream: str, events: int, size: int, keys: int) -> dict[str, Any]:
    """Write events one by one."""
    pool, names = _pool(size), [str(i) for i in range(keys)]
    with PravegaClient(controller) as client, client.writer(f"{scope}/{stream}") as writer:
        writer.write(pool[0], names[0])
        writer.flush()
        watch = Stopwatch()
        for i in range(1, events):
            writer.write(pool[i % DISTINCT_EVENTS], names[i % keys])
        writer.flush()
        return watch.answer(events, events * size)


def write_columns(controller: str, scope: str, stream: str, events: int, size: int, keys: int) -> dict[str, Any]:
    """Write the same events in columns, like a program that has them in record batches."""
    batches = list(_batches(events, size, keys))
    with PravegaClient(controller) as client, client.writer(f"{scope}/{stream}") as writer:
        writer.write(b"a" * size, "0")
        writer.flush()
        watch = Stopwatch()
        for payloads, names in batches:
            writer.write_column(payloads, names)
        writer.flush()
        return watch.answer(events, events * size)


def _batches(events: int, size: int, keys: int) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield all events but the first, which was used to connect."""
    pool = pa.array(_pool(size), pa.binary())
    names = pa.array([str(i) for i in range(keys)], pa.string())
    step = BATCH_BYTES // size
    for first in range(1, events, step):
        rows = np.arange(first, min(first + step, events))
        yield pool.take(pa.array(rows % DISTINCT_EVENTS)), names.take(pa.array(rows % keys))


def read_rows(controller: str, scope: str, stream: str, events: int) -> dict[str, Any]:
    """Read the whole stream event by event."""
    with PravegaClient(controller) as client:
        watch = Stopwatch()
        got = size = 0
        for event in client.read(f"{scope}/{stream}"):
            size += len(event)
            got += 1
        return _checked(watch.answer(got, size), events)


def read_columns(controller: str, scope: str, stream: str, events: int) -> dict[str, Any]:
    """Read the whole stream in columns."""
    with PravegaClient(controller) as client:
        watch = Stopwatch()
        got = size = 0
        for batch in client.read_columns(f"{scope}/{stream}"):
            size += pa.compute.sum(pa.compute.binary_length(batch.events)).as_py()
            got += len(batch.events)
        return _checked(watch.answer(got, size), events)


def _checked(answer: dict[str, Any], events: int) -> dict[str, Any]:
    if answer["events"] != events:
        raise AssertionError(f"{answer['events']} events were read, {events} were written")
    return answer


if __name__ == "__main__":
    serve(
        f"python {platform.python_version()}, pyarrow {pa.__version__}",
        {
            "write_rows": write_rows,
            "write_columns": write_columns,
            "read_rows": read_rows,
            "read_columns": read_columns,
        },
    )
