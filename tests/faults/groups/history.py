"""History of a group's state stream: all entries in order, with the times at which they were seen."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.reader_groups.protocol import (
    GroupState,
    Init,
    InitSerializer,
    StateSerializer,
    StateUpdate,
    apply,
    create,
)
from pravega_connector.single_segment.revisioned import RevisionedStreamClient
from pravega_connector.single_segment.synchronizer import _EntrySerializer
from pravega_connector.wire.names import group_stream

_LOOK_SECONDS: Final = 0.2
_SERIALIZER: Final = _EntrySerializer(InitSerializer(), StateSerializer())


class Entry(NamedTuple):
    """An initial value or a compaction, in a list of one, or updates."""

    ms: int
    init: list[Init | GroupState]
    updates: list[StateUpdate]


class _Bytes:
    def serialize(self, value: bytes, /) -> bytes:
        return value

    def deserialize(self, data: bytes, /) -> bytes:
        return data


def entries_of(file: Path) -> Iterator[Entry]:
    """Return the entries in the file of a history."""
    with file.open() as lines:
        for line in lines:
            kept = json.loads(line)
            entry = _SERIALIZER.deserialize(bytes.fromhex(kept["hex"]))
            yield Entry(kept["ms"], list(entry.init), list(entry.updates))


class History(threading.Thread):
    """Keeps each later entry of a group's state, which compactions truncate. Context manager."""

    def __init__(self, client: PravegaClient, name: StreamName, file: Path) -> None:
        super().__init__(name="history")
        self._log = RevisionedStreamClient(client.stores, group_stream(name.scope, name.stream), _Bytes())
        self._at = self._log.oldest_revision()
        self._file, self._end = file, threading.Event()
        self.state: GroupState | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with self._file.open("a") as kept:
                while not self._end.wait(_LOOK_SECONDS):
                    self._read(kept.write)
                self._read(kept.write)
        except Exception as error:
            self.error = error

    def _read(self, keep: Callable[[str], object]) -> None:
        for revision, data in self._log.read_from(self._at):
            keep(json.dumps({"ms": time.time_ns() // 1_000_000, "hex": data.hex()}) + "\n")
            self._at = revision
            entry = _SERIALIZER.deserialize(data)
            state = self.state
            for init in entry.init:
                state = create(init)
            for update in entry.updates:
                assert state is not None
                state = apply(state, update)
            self.state = state

    def __enter__(self) -> History:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._end.set()
        self.join()
        self._log.close()
