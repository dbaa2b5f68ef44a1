"""One object per key and process: clients, ledgers, leases, and what a process has looked at already.

Spark's workers live on from task to task and make readers and writers anew for each batch, so what is costly to make
is kept by the process. Keys are what tells two objects apart; the process need not be part of them.

A forked process starts with none. It leaves its parent's objects alone: these are kept unused, because to end them
would end connections that the parent still talks on.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from pravega_serde import after_fork

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Place(Generic[V]):
    """Place of one object, empty until it is made."""

    __slots__ = ("lock", "values")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.values: list[V] = []


class PerProcess(Generic[K, V]):
    """Objects of this process by key. Thread safe; meant to be a module's global."""

    def __init__(self, close: Callable[[V], object] | None = None) -> None:
        """``close`` ends an object: when the process ends, and on :meth:`clear`."""
        self._close = close
        self._inherited: list[object] = []
        self._start()
        after_fork.register(self)
        if close is not None:
            atexit.register(self.clear)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[K, _Place[V]] = {}

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The object of a key, made by the first who asks; who asks meanwhile waits, for this key only.

        An error of ``make`` is raised, and the next who asks makes the object.
        """
        with self._lock:
            place = self._places.setdefault(key, _Place())
        with place.lock:
            if not place.values:
                place.values.append(make())
            return place.values[0]

    def clear(self) -> None:
        """Close and forget all objects, as if the process were new: at its end, and in tests."""
        with self._lock:
            places, self._places = self._places, {}
        for place in places.values():
            for value in place.values:
                if self._close is not None:
                    self._close(value)

    def _after_fork(self) -> None:
        # New locks as well: another thread of the parent may have held them.
        self._inherited.append(self._places)
        self._start()
