"""Runs java/StatePeer.java: transactions, revisioned streams and state synchronizers of the Java client."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

from benchmarks._drive import Peer
from connector.client import Revision
from connector.local._jars import PRAVEGA_JARS, ensure_jars
from connector.local._java import find_java
from connector.wire import StreamName

__all__ = ["JavaStatePeer"]

_SOURCES: Final = Path(__file__).parent / "java"
_SECONDS: Final = 120.0


class JavaStatePeer:
    """The Java client against one controller. Context manager."""

    def __init__(self, controller: str) -> None:
        java = find_java()
        jars = ensure_jars(PRAVEGA_JARS, java)
        logback = f"-Dlogback.configurationFile={_SOURCES / 'logback.xml'}"
        # A source file as the program: Java compiles it at the start.
        command = [str(java.path), "-Xmx512m", logback, "-cp", f"{jars}/*", str(_SOURCES / "StatePeer.java")]
        self._peer = Peer("StatePeer", command)
        self._controller = controller

    # ---- transactions

    def begin(self, stream: StreamName, events: Sequence[tuple[str, str]]) -> uuid.UUID:
        """A transaction that holds these (key, event) pairs, and stays open."""
        return uuid.UUID(self._ask("begin", stream, events=events))

    def finish(self, do: str, stream: StreamName, transaction: uuid.UUID) -> str:
        """``commit``, ``abort`` or ``status`` by the id alone; the status afterwards, as Java calls it."""
        return str(self._ask(do, stream, id=str(transaction)))

    # ---- revisioned streams

    def revisions(self, stream: StreamName) -> list[Revision | None]:
        """The oldest and the latest revision, and the mark."""
        return [_revision(text) for text in self._ask("revisions", stream)]

    def entries(self, stream: StreamName, start: Revision) -> list[tuple[Revision, str]]:
        """The entries after a revision."""
        return [(Revision.parse(text), entry) for text, entry in self._ask("entries", stream, **{"from": str(start)})]

    def append(self, stream: StreamName, entry: str) -> None:
        """Write an entry unconditionally."""
        self._ask("append", stream, entry=entry)

    def append_at(self, stream: StreamName, revision: Revision, entry: str) -> Revision | None:
        """Write an entry if this is the latest revision."""
        return _revision(self._ask("appendAt", stream, revision=str(revision), entry=entry))

    def set_mark(self, stream: StreamName, expected: Revision | None, mark: Revision | None) -> bool:
        """Compare and set the mark."""
        return bool(self._ask("setMark", stream, expected=_text(expected), mark=_text(mark)))

    def truncate(self, stream: StreamName, revision: Revision) -> None:
        """Truncate to a revision."""
        self._ask("truncate", stream, revision=str(revision))

    # ---- synchronizers

    def words(self, do: str, stream: StreamName, **request: Any) -> list[str]:
        """``initialize`` (word), ``update`` or ``updateAnyway`` (words), ``compact``, ``state``: the words after it."""
        return list(self._ask(do, stream, **request))

    def close(self) -> None:
        """End the JVM."""
        self._peer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _ask(self, do: str, stream: StreamName, **request: Any) -> Any:
        request |= {"controller": self._controller, "scope": stream.scope, "stream": stream.stream}
        return self._peer.ask(do, timeout=_SECONDS, **request)["value"]


def _revision(text: str | None) -> Revision | None:
    return None if text is None else Revision.parse(text)


def _text(revision: Revision | None) -> str | None:
    return None if revision is None else str(revision)
