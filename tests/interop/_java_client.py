"""Runs java/ClientPeer.java: less common calls of the Java client."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from pravega_connector.wire import StreamName
from tests.interop._java_program import JavaProgram

__all__ = ["JavaClientPeer"]


class JavaClientPeer(JavaProgram):
    """The Java client against one controller. Context manager."""

    def __init__(self, controller: str) -> None:
        super().__init__("ClientPeer", controller)

    def create(self, stream: StreamName, tags: Iterable[str]) -> bool:
        """Create a stream of one segment. Return False if it exists."""
        return bool(self._ask("create", stream, tags=list(tags)))

    def tagged(self, scope: str, tag: str) -> set[str]:
        """Names of the streams of a scope that have a tag."""
        return set(self._ask("tagged", StreamName(scope, "any"), tag=tag))

    def fill(self, stream: StreamName) -> bool:
        """Create a scope with a stream, a reader group with retention, and a key-value table."""
        return bool(self._ask("fill", stream))

    def scope_exists(self, scope: str) -> bool:
        """Return True if the scope exists."""
        return bool(self._ask("exists", StreamName(scope, "any")))

    def completed(self, streams: Iterable[StreamName]) -> list[int]:
        """Commit a transaction to each stream of a scope, and return the lengths of ``listCompletedTransactions``."""
        listed = list(streams)
        return list(self._ask("completed", listed[0], streams=[each.stream for each in listed]))

    def point(self, stream: StreamName, count: int) -> list[tuple[str, bytes, str]]:
        """Text, bytes and event of the pointers that a reader of Java returns."""
        return [(text, bytes.fromhex(data), event) for text, data, event in self._ask("point", stream, count=count)]

    def write_all(self, stream: StreamName, key: str, sequences: Iterable[list[str]]) -> None:
        """Write sequences of events with ``writeEvents``."""
        self._ask("write_all", stream, key=key, sequences=list(sequences))

    def join(self, stream: StreamName, transaction: uuid.UUID, events: Iterable[tuple[str, str]]) -> None:
        """Write pairs of routing key and event to an open transaction."""
        self._ask("join", stream, id=str(transaction), events=list(events))

    def fetch(self, stream: StreamName, pointers: Iterable[bytes]) -> list[str | None]:
        """Events at pointers in Java's bytes; None for a missing event."""
        return list(self._ask("fetch", stream, pointers=[pointer.hex() for pointer in pointers]))

    def tags(self, stream: StreamName) -> set[str]:
        """Tags of a stream."""
        return set(self._ask("tags", stream))
