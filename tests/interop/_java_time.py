"""Runs java/TimePeer.java: event time of the Java client."""

from __future__ import annotations

from collections.abc import Sequence

from pravega_connector.client import TimeWindow
from pravega_connector.wire import StreamCut, StreamName
from tests.interop._java_program import JavaProgram

__all__ = ["JavaTimePeer"]

Events = Sequence[tuple[str, str]]


class JavaTimePeer(JavaProgram):
    """The Java client against one controller. Context manager."""

    def __init__(self, controller: str) -> None:
        super().__init__("TimePeer", controller)

    def note(self, stream: StreamName, time: int, events: Events = (), writer: str = "java") -> None:
        """Write (key, event) pairs with a writer that stays open, and note a time."""
        self._ask("note", stream, writer=writer, events=events, time=time)

    def commit(self, stream: StreamName, time: int, events: Events = (), writer: str = "java-txn") -> None:
        """Write (key, event) pairs in a transaction that is committed with a time."""
        self._ask("commit", stream, writer=writer, events=events, time=time)

    def window(self, at: StreamCut, expected: TimeWindow) -> TimeWindow:
        """Result of ``getCurrentTimeWindow`` at a cut, as soon as it is the expected one, or after 20 s."""
        bounds = {"low": expected.low, "high": expected.high}
        return TimeWindow(*self._ask("window", at.stream, at=at.to_text(), **bounds))
