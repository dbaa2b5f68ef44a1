"""Server under test, which is replaced before it has used too much disk space."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Self

from benchmarks._cpu import cpu_seconds
from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from pravega_connector.wire import StreamName

__all__ = ["SCOPE", "Server"]

SCOPE: Final = "bench"
HEAP_MB: Final = 4096
CACHE_MB: Final = 1500
# Its log and its long-term storage are in a temporary folder. Deleted streams stay there for a while.
MOST_WRITTEN: Final = 3_000_000_000
_FRAMING: Final = 8  # bytes before each event
_SETTLE_SECONDS: Final = 10.0
_SETTLE_STEP: Final = 0.5
_IDLE_PART: Final = 0.2  # of one core


class Server:
    """Pravega with a limit of written bytes, as a context manager."""

    def __init__(self, note: Callable[[str], None] = lambda _: None) -> None:
        self._note = note
        self._pravega: LocalPravega | None = None
        self._written = 0
        self._streams = 0
        self._life = 0

    @property
    def uri(self) -> str:
        """Address of the controller, which changes with each replacement."""
        assert self._pravega is not None
        return self._pravega.controller_uri

    @property
    def life(self) -> int:
        """Number of the present server. The streams of earlier servers were deleted."""
        return self._life

    def stream(self, events: int, size: int, *, segments: int = 3) -> StreamName:
        """Create a stream for this number of events.

        If they would not fit, the server is replaced first.
        """
        self.make_room(events * (size + _FRAMING))
        self._streams += 1
        stream = StreamName(SCOPE, f"s{self._streams}")
        with PravegaClient(self.uri) as client:
            client.create_stream(stream, segments)
        return stream

    def drop(self, stream: StreamName) -> None:
        """Delete a stream, so that the server has less work."""
        with PravegaClient(self.uri) as client:
            client.controller.seal_stream(stream)
            client.controller.delete_stream(stream)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the server until now."""
        assert self._pravega is not None
        return cpu_seconds(self._pravega.pid)

    def settle(self) -> None:
        """Wait until the server has completed the work that the last run left.

        It moves events to storage and collects garbage.
        """
        end = time.monotonic() + _SETTLE_SECONDS
        before = self.cpu_seconds()
        while time.monotonic() < end:
            time.sleep(_SETTLE_STEP)
            now = self.cpu_seconds()
            if now - before < _IDLE_PART * _SETTLE_STEP:
                return
            before = now

    def make_room(self, needed: int) -> None:
        """Replace the server if this number of bytes would not fit."""
        if self._pravega is None or self._written + needed > MOST_WRITTEN:
            self.close()
            self._note("starting a fresh server")
            self._pravega = LocalPravega(heap_mb=HEAP_MB, cache_mb=CACHE_MB)
            self._pravega.start()
            self._written = 0
            self._life += 1
        self._written += needed

    def close(self) -> None:
        """End the server."""
        if self._pravega is not None:
            self._pravega.close()
            self._pravega = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
