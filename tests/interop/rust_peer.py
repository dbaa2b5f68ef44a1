"""Application on the official Rust client: its own program, because that client can hang.

``write CONTROLLER SCOPE STREAM FILE`` or ``read CONTROLLER SCOPE STREAM FILE COUNT [GROUP]``; the files are as in
_files.py.
"""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pravega_client
from _files import ReadEvent, dump_read, load_events

_IN_FLIGHT = 1000


def write(manager: Any, scope: str, stream: str, file: str) -> None:
    """Write every event of a file, and wait until all are durable."""
    writer = manager.create_writer(scope, stream, _IN_FLIGHT)
    for key, payload in load_events(Path(file)):
        writer.write_event_bytes(payload, key)
    writer.flush()


async def read(manager: Any, scope: str, stream: str, file: str, count: str, group: str = "") -> None:
    """Read `count` events from the head of the stream, in the order of arrival."""
    reader = manager.create_reader_group(group or f"rust{uuid.uuid4().hex}", scope, stream).create_reader("reader")
    events = [ReadEvent(-1, -1, payload) async for payload in _payloads(reader, int(count))]
    dump_read(Path(file), events)


async def _payloads(reader: Any, count: int) -> AsyncIterator[bytes]:
    while count > 0:
        part = await reader.get_segment_slice_async()
        for event in part:
            yield bytes(event.data())
            count -= 1
        reader.release_segment(part)


def main(command: str, controller: str, *rest: str) -> None:
    """Run one command."""
    manager = pravega_client.StreamManager(controller)
    if command == "write":
        write(manager, *rest)
    else:
        asyncio.run(read(manager, *rest))


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)  # the binding's threads may come to the interpreter's end, and end the process with an error
