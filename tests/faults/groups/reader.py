"""A Python application that reads in a reader group; ReaderLoop.java has the same commands and notes.

``reader CONTROLLER``
"""

from __future__ import annotations

import queue
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import IO, Final

from pravega_connector.client import PravegaClient
from pravega_connector.reader_groups.protocol import encode_position
from pravega_connector.reader_groups.reader import GroupReader

_POSITION_SECONDS: Final = 0.25
_READ_SECONDS: Final = 0.2


def main(controller: str) -> None:
    commands: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    with PravegaClient(controller, timeout=60.0) as client:
        while words := commands.get().split():
            if words[0] != "join":  # it has left already
                continue
            _, scope, group, reader_id, file = words
            with Path(file).open("ab", buffering=0) as notes:
                try:
                    with (
                        client.reader_group(f"{scope}/{group}") as joined,
                        joined.reader(reader_id, "string") as reader,
                    ):
                        _read(reader, commands, notes)
                    _note(notes, "left")
                except Exception as error:
                    _note(notes, "out", type(error).__name__)
                    traceback.print_exc()


def _listen(commands: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        commands.put(line)
    commands.put("")


def _read(reader: GroupReader[str], commands: queue.SimpleQueue[str], notes: IO[bytes]) -> None:
    _note(notes, "joined")
    after, due = False, 0.0
    while commands.empty():
        read = reader.poll(_READ_SECONDS)
        now = time.time_ns() // 1_000_000
        lines = [
            f"checkpoint\t{now}\t{one.checkpoint}\n"
            if one.is_checkpoint
            else f"event\t{now}\t{one.segment}\t{one.offset}\t{one.value}\n"
            for one in read
        ]
        if after or time.monotonic() >= due:
            lines.append(f"position\t{now}\t{encode_position(reader.position).hex()}\n")
            due = time.monotonic() + _POSITION_SECONDS
        if lines:
            notes.write("".join(lines).encode())
        after = any(one.is_checkpoint for one in read)


def _note(notes: IO[bytes], kind: str, more: str = "") -> None:
    notes.write(f"{kind}\t{time.time_ns() // 1_000_000}\t{more}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1])
