"""One of our readers in a group, which several of these processes share, and a reader without a group."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pyarrow as pa

from benchmarks.peers._serve import serve
from pravega_connector.client import EventBatch, PravegaClient
from pravega_connector.reader_groups.reader import GroupReader

_SILENCE: Final = 3.0
_joined: dict[str, tuple[GroupReader[bytes], ExitStack]] = {}


def join(controller: str, scope: str, group: str, reader: str) -> dict[str, Any]:
    """Join a group. No segment is acquired yet."""
    with ExitStack() as stack:
        client = stack.enter_context(PravegaClient(controller))
        there = stack.enter_context(client.reader_group(f"{scope}/{group}"))
        _joined[group] = stack.enter_context(there.reader(reader)), stack.pop_all()
    return {}


def read_rows(group: str) -> dict[str, Any]:
    """Read event by event until no more arrive."""
    reader, _ = _joined[group]
    return _counted([event.value or b"" for event in read if not event.is_checkpoint] for read in _polled(reader))


def _polled(reader: GroupReader[bytes]) -> Iterator[Any]:
    while True:
        yield reader.poll(0.1)


def read_columns(group: str) -> dict[str, Any]:
    """Read in columns until no more events arrive."""
    reader, _ = _joined[group]
    return _counted(_blocks(reader))


def _blocks(reader: GroupReader[bytes]) -> Iterator[pa.Array]:
    while True:
        read = reader.poll_columns(0.1)
        yield read.events if isinstance(read, EventBatch) else []


def follow(controller: str, scope: str, stream: str) -> dict[str, Any]:
    """Read a stream in columns, without a group, until no more events arrive."""
    with PravegaClient(controller) as client, client.follow(f"{scope}/{stream}", start="head") as reader:
        batches = (reader.poll(0.1) for _ in iter(int, 1))
        return _counted([] if batch is None else batch.events for batch in batches)


def _counted(blocks: Iterator[Any]) -> dict[str, Any]:
    """Count the events, and return times of the wall clock, which all processes share."""
    begin = last = time.time()
    began = cpu = time.process_time()
    events = size = 0
    for block in blocks:
        now = time.time()
        if len(block):
            events += len(block)
            lengths = pa.compute.sum(pa.compute.binary_length(block)).as_py() if isinstance(block, pa.Array) else None
            size += sum(map(len, block)) if lengths is None else lengths
            last, cpu = now, time.process_time()
        elif now - last > _SILENCE:
            break
    return {"begin": begin, "end": last, "cpu": cpu - began, "events": events, "bytes": size}


def leave(group: str) -> dict[str, Any]:
    """Leave a group."""
    _joined.pop(group)[1].close()
    return {}


if __name__ == "__main__":
    handlers = {"join": join, "read_rows": read_rows, "read_columns": read_columns, "follow": follow, "leave": leave}
    serve(f"python {platform.python_version()}", handlers)
