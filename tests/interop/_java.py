"""Runs java/JavaPeer.java: an ordinary application of the Java client, in one JVM, each request with a deadline."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pravega_connector.wire import StreamCut, StreamName
from tests.interop._files import ReadEvent, dump_events, load_read
from tests.interop._java_program import JavaProgram

__all__ = ["JavaCut", "JavaPeer"]


@dataclass(frozen=True, slots=True)
class JavaCut:
    """A stream cut as Java sees it: what it holds, and the two forms in which Java writes it."""

    stream: StreamName
    positions: dict[int, int]
    text: str
    data: bytes


class JavaPeer(JavaProgram):
    """The Java client against one controller. ``folder`` takes the events in flight. Context manager."""

    def __init__(self, controller: str, folder: Path, *, env: Mapping[str, str] | None = None) -> None:
        super().__init__("JavaPeer", controller, env=env)
        self._folder = folder

    def write(self, stream: StreamName, events: Iterable[tuple[str | None, bytes]], serializer: str = "bytes") -> None:
        """Write (routing key, payload) pairs with EventStreamWriter; serializer is ``bytes`` or ``utf8``."""
        file = self._file()
        dump_events(file, events)
        self._ask("write", stream, file=str(file), serializer=serializer)

    def read(self, stream: StreamName, start: StreamCut | None = None, end: StreamCut | None = None) -> list[ReadEvent]:
        """Every event between two cuts, through BatchClientFactory."""
        first, last = (cut.to_text() if cut is not None else "UNBOUNDED" for cut in (start, end))
        file = self._file()
        self._ask("read", stream, file=str(file), start=first, end=last)
        return load_read(file)

    def read_group(self, stream: StreamName, count: int) -> list[ReadEvent]:
        """`count` events in the order in which a reader group gives them; fewer if it falls silent."""
        file = self._file()
        self._ask("group", stream, file=str(file), count=count)
        return load_read(file)

    def cuts(self, stream: StreamName) -> tuple[JavaCut, JavaCut]:
        """The head's cut and the tail's."""
        head, tail = map(_cut, self._ask("cuts", stream))
        return head, tail

    def parse(self, *, text: Sequence[str] = (), data: Sequence[bytes] = ()) -> list[JavaCut]:
        """Java's results for stream cuts in text and in bytes."""
        return [_cut(cut) for cut in self._answer("parse", text=text, bytes=[value.hex() for value in data])]

    def _file(self) -> Path:
        return self._folder / uuid.uuid4().hex


def _cut(cut: Mapping[str, Any]) -> JavaCut:
    positions = {int(segment): offset for segment, offset in cut["positions"].items()}
    return JavaCut(StreamName.parse(cut["stream"]), positions, cut["text"], bytes.fromhex(cut["bytes"]))
