"""One object per key and process: clients, ledgers, leases, and results of earlier checks.

Spark's workers run many tasks and create readers and writers for each batch, so the process keeps objects that are
expensive to create. A key contains all settings that distinguish two objects. The process id need not be one of them.

A forked process starts without objects. It keeps its parent's objects unused: closing them would close connections that
the parent still uses.
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
    """Slot of one object, empty until the object is created."""

    __slots__ = ("lock", "values")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.values: list[V] = []


class PerProcess(Generic[K, V]):
    """Objects of this process by key. Thread safe; use it as a module's global."""

    def __init__(self, close: Callable[[V], object] | None = None) -> None:
        """``close`` closes an object when the process ends, and in :meth:`clear`."""
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
        """Return the object of a key. The first caller creates it, and concurrent callers with the same key wait.

        An error of ``make`` is raised, and the next caller creates the object.
        """
        with self._lock:
            place = self._places.setdefault(key, _Place())
        with place.lock:
            if not place.values:
                place.values.append(make())
            return place.values[0]

    def clear(self) -> None:
        """Close and drop all objects: at the end of the process, and in tests."""
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
