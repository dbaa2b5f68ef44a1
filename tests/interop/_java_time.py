"""Runs java/TimePeer.java: event time of the Java client."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

from benchmarks._drive import Peer
from connector.client import TimeWindow
from connector.local._jars import PRAVEGA_JARS, ensure_jars
from connector.local._java import find_java
from connector.wire import StreamCut, StreamName

__all__ = ["JavaTimePeer"]

_SOURCES: Final = Path(__file__).parent / "java"
_SECONDS: Final = 120.0

Events = Sequence[tuple[str, str]]


class JavaTimePeer:
    """The Java client against one controller. Context manager."""

    def __init__(self, controller: str) -> None:
        java = find_java()
        jars = ensure_jars(PRAVEGA_JARS, java)
        logback = f"-Dlogback.configurationFile={_SOURCES / 'logback.xml'}"
        # A source file as the program: Java compiles it at the start.
        command = [str(java.path), "-Xmx512m", logback, "-cp", f"{jars}/*", str(_SOURCES / "TimePeer.java")]
        self._peer = Peer("TimePeer", command)
        self._controller = controller

    def note(self, stream: StreamName, time: int, events: Events = (), writer: str = "java") -> None:
        """Write (key, event) pairs with a writer that stays open, and note a time."""
        self._ask("note", stream, writer=writer, events=events, time=time)

    def commit(self, stream: StreamName, time: int, events: Events = (), writer: str = "java-txn") -> None:
        """Write (key, event) pairs in a transaction that is committed with a time."""
        self._ask("commit", stream, writer=writer, events=events, time=time)

    def window(self, at: StreamCut, expected: TimeWindow) -> TimeWindow:
        """What ``getCurrentTimeWindow`` says at a cut, as soon as it says what is expected, or after 20 s."""
        bounds = {"low": expected.low, "high": expected.high}
        return TimeWindow(*self._ask("window", at.stream, at=at.to_text(), **bounds))

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
