"""Counting in a key-value table, by versions: a step adds one to a counter and inserts a marker, in one update.

``counting CONTROLLER TABLE NAME NOTES HOST PORT`` is a process that counts with our client, until the folder of its
notes has a file ``stop``. Its requests to segment stores go to HOST and PORT.

The key of a marker has the primary key of the counter, the name of the process and the number of the attempt. Its value
is the number that the step has set. So the markers show which attempts have taken effect, and in which order.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pravega_connector.client import PravegaClient
from pravega_connector.errors import OutcomeUnknownError, TableVersionError
from pravega_connector.tables import Insert, Put, TableEntry, TableName, Version

Key = tuple[bytes, bytes]
Entry = TableEntry[bytes]

PRIMARY: Final = 4
SECONDARY: Final = 8
COUNTERS: Final = tuple(b"c%03d" % number for number in range(8))
STOP: Final = "stop"
_COUNTER: Final = b"counter."


class Note(NamedTuple):
    """A line of the file of a process."""

    kind: str
    """``ready``, ``try`` before an update, and its outcome: ``ack``, ``refused``, ``unknown`` or ``interrupted``."""
    marker: str = ""
    """Secondary key of the marker."""
    counter: str = ""
    number: int = 0
    version: str = ""
    """Version of the marker, with ``ack``."""


def notes_of(file: Path) -> list[Note]:
    """Parse the complete lines of a file."""
    text = file.read_text() if file.exists() else ""
    rows = [line.split("\t") for line in text[: text.rfind("\n") + 1].splitlines()]
    return [Note(kind, marker, counter, int(number), version) for kind, marker, counter, number, version in rows]


def key_of(counter: bytes) -> Key:
    """Return the key of a counter."""
    return counter, _COUNTER


class Counting:
    """Steps of one client: ``get`` returns an entry, and ``change`` makes a step, or returns None for a refusal.

    ``change(key, value, version, marker)`` returns the version of the marker, and may raise OutcomeUnknownError.
    """

    def __init__(
        self,
        name: str,
        file: Path,
        get: Callable[[Key], Entry | None],
        change: Callable[[Key, bytes, Version, Key], Version | None],
    ) -> None:
        self._name, self._get, self._change = name, get, change
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._stop = file.parent / STOP
        self._random = random.Random(name)
        self._attempt = 0

    def note(self, kind: str, marker: bytes = b"", counter: bytes = b"", number: int = 0, version: object = "") -> None:
        line = "\t".join((kind, marker.decode(), counter.decode(), str(number), str(version)))
        os.write(self._file, f"{line}\n".encode())

    def count(self) -> None:
        """Count until the file ``stop`` exists."""
        while not self._stop.exists():
            self._step()

    def _step(self) -> None:
        counter = self._random.choice(COUNTERS)
        entry = self._get(key_of(counter))
        assert entry is not None
        self._attempt += 1
        marker, number = f"{self._name:>02}{self._attempt:06}".encode(), int(entry.value) + 1
        self.note("try", marker, counter, number)
        try:
            version = self._change(key_of(counter), b"%d" % number, entry.version, (counter, marker))
        except OutcomeUnknownError:
            self.note("unknown", marker, counter, number)
        except KeyboardInterrupt:
            self.note("interrupted", marker, counter, number)
        else:
            self.note("refused" if version is None else "ack", marker, counter, number, version or "")


def main(arguments: Sequence[str]) -> None:
    controller, table_name, name, file, host, port = arguments
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background processes with SIGINT ignored
    with PravegaClient(controller, timeout=60.0) as client:
        client.controller.endpoint = lambda stream, segment_id, **_: (host, int(port))  # type: ignore[method-assign]
        table = client.table(TableName(*table_name.split("/")))

        def change(key: Key, value: bytes, version: Version, marker: Key) -> Version | None:
            try:
                return table.update([Put(key, value, version), Insert(marker, value)])[1]
            except TableVersionError:
                return None

        counting = Counting(name, Path(file), table.get, change)
        counting.note("ready")
        while True:
            try:
                return counting.count()
            except KeyboardInterrupt:  # outside an update
                counting.note("interrupted")


if __name__ == "__main__":
    main(sys.argv[1:])
