"""Official Rust client with its Python binding (PyPI: ``pravega``)."""

from __future__ import annotations

import asyncio
import uuid
from importlib.metadata import version
from typing import Any

import pravega_client

from benchmarks.peers._serve import Stopwatch, serve

# By default, the binding waits for each event. This was the fastest of 0, 100, 1,000, 10,000 and 100,000 in flight.
IN_FLIGHT = 10_000
DISTINCT_EVENTS = 1024


def write(controller: str, scope: str, stream: str, events: int, size: int, keys: int) -> dict[str, Any]:
    """Write events one by one, with the number in flight that is fastest for the binding."""
    manager = pravega_client.StreamManager(controller)  # kept, because the runtime of its writers ends with it
    writer = manager.create_writer(scope, stream, IN_FLIGHT)
    pool = [bytes([ord("a") + i % 26]) * size for i in range(DISTINCT_EVENTS)]
    names = [str(i) for i in range(keys)]
    writer.write_event_bytes(pool[0], names[0])
    writer.flush()
    watch = Stopwatch()
    for i in range(1, events):
        writer.write_event_bytes(pool[i % DISTINCT_EVENTS], names[i % keys])
    writer.flush()
    return watch.answer(events, events * size)


def read(controller: str, scope: str, stream: str, events: int) -> dict[str, Any]:
    """Read through a reader group with one reader."""
    return asyncio.run(_read(controller, scope, stream, events))


async def _read(controller: str, scope: str, stream: str, events: int) -> dict[str, Any]:
    manager = pravega_client.StreamManager(controller)
    reader = manager.create_reader_group(f"rust{uuid.uuid4().hex}", scope, stream).create_reader("reader")
    watch = Stopwatch()
    got = size = 0
    while got < events:
        part = await reader.get_segment_slice_async()
        for event in part:
            size += len(event.data())
            got += 1
        reader.release_segment(part)
    return watch.answer(got, size)


if __name__ == "__main__":
    serve(f"rust binding {version('pravega')}", {"write": write, "read": read})
