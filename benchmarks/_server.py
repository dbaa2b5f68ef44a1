"""The server under test, with room, and replaced before it has taken too much of the disk."""

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
# Its log and its long-term storage lie in a temporary folder, deleted streams for a while too.
MOST_WRITTEN: Final = 3_000_000_000
_FRAMING: Final = 8  # bytes in front of each event
_SETTLE_SECONDS: Final = 10.0
_SETTLE_STEP: Final = 0.5
_IDLE_PART: Final = 0.2  # of one core


class Server:
    """A Pravega with a budget of bytes. Context manager."""

    def __init__(self, note: Callable[[str], None] = lambda _: None) -> None:
        self._note = note
        self._pravega: LocalPravega | None = None
        self._written = 0
        self._streams = 0
        self._life = 0

    @property
    def uri(self) -> str:
        """The controller's; another one after each replacement."""
        assert self._pravega is not None
        return self._pravega.controller_uri

    @property
    def life(self) -> int:
        """Number of the server that is there: streams of an earlier one are gone."""
        return self._life

    def stream(self, events: int, size: int, *, segments: int = 3) -> StreamName:
        """A new stream that is going to take these events. The server is replaced first if they would not fit."""
        self._make_room(events * (size + _FRAMING))
        self._streams += 1
        stream = StreamName(SCOPE, f"s{self._streams}")
        with PravegaClient(self.uri) as client:
            client.create_stream(stream, segments)
        return stream

    def drop(self, stream: StreamName) -> None:
        """Delete a stream, so that the server has less to look after."""
        with PravegaClient(self.uri) as client:
            client.controller.seal_stream(stream)
            client.controller.delete_stream(stream)

    def cpu_seconds(self) -> float:
        """CPU time that the server has taken so far."""
        assert self._pravega is not None
        return cpu_seconds(self._pravega.pid)

    def settle(self) -> None:
        """Wait until the server has done what the last run left it: moving events to storage, collecting garbage."""
        end = time.monotonic() + _SETTLE_SECONDS
        before = self.cpu_seconds()
        while time.monotonic() < end:
            time.sleep(_SETTLE_STEP)
            now = self.cpu_seconds()
            if now - before < _IDLE_PART * _SETTLE_STEP:
                return
            before = now

    def _make_room(self, needed: int) -> None:
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
