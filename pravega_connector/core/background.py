"""Work that may block, done in the background for a loop that must not block.

A reader or a writer communicates with many servers at once. A lookup, a connect or a handshake with a frozen server
takes seconds, and the loop must serve the other servers in that time. So each such errand runs in a worker (a daemon
thread, or a task of an event loop), and the loop processes the result when it arrives. An errand does not touch the
state of the loop, so neither side needs a lock of the other.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from pravega_connector.core import io
from pravega_serde import after_fork

Key = tuple[str, Any]  # kind of errand, and its subject
# Per kind: a stream may have thousands of segments to look up. A dead host occupies four workers: those that connect.
_MOST_WORKERS: Final = 16


class Errands:
    """Errands of one loop, at most one at a time for each key, with a limit of workers for each kind."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._under_way: set[Key] = set()
        self._waiting: defaultdict[str, deque[tuple[Key, Callable[[], Any]]]] = defaultdict(deque)
        self._workers: defaultdict[str, int] = defaultdict(int)
        self._results: list[tuple[Key, Any]] = []
        self._closed = False
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._lock = after_fork.inherited(self._name)
        self._read.close()
        self._write.close()

    def fileno(self) -> int:
        """Return the file descriptor that becomes readable with each result, and with :meth:`wake`."""
        return self._read.fileno()

    def is_under_way(self, key: Key) -> bool:
        """Return True if an errand was begun and its result was not taken yet."""
        return key in self._under_way

    def begin(self, key: Key, work: Callable[[], Any]) -> None:
        """Run ``work`` as soon as a worker is free, unless an errand of the key is under way."""
        if key in self._under_way:
            return
        self._under_way.add(key)
        kind = key[0]
        with self._lock:
            self._waiting[kind].append((key, work))
            if self._workers[kind] >= _MOST_WORKERS:
                return
            self._workers[kind] += 1
        io.start(partial(self._run, kind), f"{self._name} errand")

    def take(self) -> list[tuple[Key, Any]]:
        """Return the (key, result) pairs of the errands that have ended. An exception is a result too."""
        with contextlib.suppress(OSError):
            while self._read.recv(4096):
                pass
        with self._lock:
            results, self._results = self._results, []
        for key, _ in results:
            self._under_way.discard(key)
        return results

    def wake(self) -> None:
        """Make :meth:`fileno` readable."""
        with contextlib.suppress(OSError):  # the pipe is full, so the loop wakes anyway; or it is closed
            self._write.send(b"\0")

    def close(self) -> None:
        """Accept no more results: close connections that errands still return. Does not wait for errands."""
        with self._lock:
            self._closed = True
            results, self._results = self._results, []
            self._waiting.clear()
        for _, result in results:
            _dispose(result)
        io.close(self._read)
        io.close(self._write)

    def _run(self, kind: str) -> None:
        while (errand := self._next(kind)) is not None:
            key, work = errand
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - raised or handled in the loop
                result = error
            self._deliver(key, result)

    def _next(self, kind: str) -> tuple[Key, Callable[[], Any]] | None:
        with self._lock:
            if self._waiting[kind] and not self._closed:
                return self._waiting[kind].popleft()
            self._workers[kind] -= 1
            return None

    def _deliver(self, key: Key, result: Any) -> None:
        with self._lock:
            if not self._closed:
                self._results.append((key, result))
                self.wake()
                return
        _dispose(result)


def _dispose(result: Any) -> None:
    close = getattr(result, "close", None)
    if close is not None:
        close()
