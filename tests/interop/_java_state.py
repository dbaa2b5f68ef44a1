"""Runs java/StatePeer.java: transactions, revisioned streams and state synchronizers of the Java client."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from pravega_connector.client import Revision
from pravega_connector.wire import StreamName
from tests.interop._java_program import JavaProgram

__all__ = ["JavaStatePeer"]


class JavaStatePeer(JavaProgram):
    """The Java client against one controller. Context manager."""

    def __init__(self, controller: str) -> None:
        super().__init__("StatePeer", controller)

    # ---- transactions

    def begin(self, stream: StreamName, events: Sequence[tuple[str, str]]) -> uuid.UUID:
        """A transaction that holds these (key, event) pairs, and stays open."""
        return uuid.UUID(self._ask("begin", stream, events=events))

    def finish(self, do: str, stream: StreamName, transaction: uuid.UUID) -> str:
        """``commit``, ``abort`` or ``status`` by the id only; the status afterwards, as Java calls it."""
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


def _revision(text: str | None) -> Revision | None:
    return None if text is None else Revision.parse(text)


def _text(revision: Revision | None) -> str | None:
    return None if revision is None else str(revision)
