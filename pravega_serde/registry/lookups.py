"""Cache of the registry's answers, with one request per key: concurrent callers wait for the same answer."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from pravega_serde import after_fork
from pravega_serde.blocking import blocking
from pravega_serde.errors import RegistryNotFoundError, SchemaError

T = TypeVar("T")

# Seconds for which a missing encoding id or an invalid schema is cached: thousands of events may have the same id.
MISSING_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class _Kept:
    """Cached answer, valid until a time of ``time.monotonic()``: a value, or the error for a missing or invalid one."""

    value: Any
    error: RegistryNotFoundError | SchemaError | None
    until: float

    @classmethod
    def found(cls, value: Any, seconds: float) -> _Kept:
        return cls(value, None, time.monotonic() + seconds)

    @classmethod
    def missing(cls, error: BaseException, seconds: float) -> _Kept | None:
        """Return a cached RegistryNotFoundError or SchemaError. Others may be transient: return None for them."""
        if not isinstance(error, RegistryNotFoundError | SchemaError):
            return None
        return cls(None, error, time.monotonic() + seconds)

    def get(self) -> Any:
        if self.error is not None:
            # All callers get the same error, without the traceback and context of another caller.
            raise self.error.with_traceback(None)
        return self.value


class _Answers:
    """Cached answers. The least recently used ones are dropped first. Not thread safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()

    def find(self, key: Hashable) -> _Kept | None:
        kept = self._kept.get(key)
        if kept is None or kept.until <= time.monotonic():
            return None
        self._kept.move_to_end(key)
        return kept

    def keep(self, key: Hashable, kept: _Kept | None) -> None:
        if kept is not None:
            self._kept[key] = kept
            self._kept.move_to_end(key)
            if len(self._kept) > self._limit:
                self._kept.popitem(last=False)

    def forget(self, key: Hashable) -> None:
        self._kept.pop(key, None)


class Lookups:
    """Lookups for threads. ``limit`` bounds the number of cached answers."""

    def __init__(self, limit: int) -> None:
        self._answers = _Answers(limit)
        self._after_fork()
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._flights: dict[Hashable, Future[Any]] = {}  # the parent's threads do not answer here
        self._lock = threading.Lock()

    def get(self, key: Hashable, load: Callable[[], T], *, seconds: float, missing: float = 0) -> T:
        """Return the cached answer for ``key``. If there is none, call ``load`` and cache its result for ``seconds``.

        Raises the errors of ``load`` in every thread that waited for it. A RegistryNotFoundError, and a SchemaError for
        an invalid answer, is cached for ``missing`` seconds.
        """
        while True:
            with self._lock:
                kept = self._answers.find(key)
                flight = self._flights.get(key)
                mine = kept is None and flight is None
                if mine:
                    flight = self._flights[key] = Future()
            if kept is not None:
                known: T = kept.get()
                return known
            assert flight is not None
            if mine:
                return self._load(key, flight, load, seconds, missing)
            blocking(partial(_await_end, flight))
            try:
                answer: T = flight.result()
            except CancelledError:
                # The caller that sent the request was interrupted.
                continue
            return answer

    def forget(self, key: Hashable) -> None:
        """Discard an answer. The next :meth:`get` sends a new request, even if one is in flight."""
        with self._lock:
            self._answers.forget(key)
            self._flights.pop(key, None)

    def _load(self, key: Hashable, flight: Future[Any], load: Callable[[], T], seconds: float, missing: float) -> T:
        try:
            value = load()
        except Exception as error:
            self._land(key, flight, _Kept.missing(error, missing))
            flight.set_exception(error)
            raise
        except BaseException:
            self._land(key, flight, None)
            flight.cancel()
            raise
        self._land(key, flight, _Kept.found(value, seconds))
        flight.set_result(value)
        return value

    def _land(self, key: Hashable, flight: Future[Any], kept: _Kept | None) -> None:
        with self._lock:
            # If it was forgotten in the meantime, later callers do not get it.
            if self._flights.get(key) is flight:
                del self._flights[key]
                self._answers.keep(key, kept)


def _await_end(flight: Future[Any]) -> None:
    """Wait, and raise nothing.

    Otherwise asyncio would pass the cancellation of a shared lookup to the tasks that wait for it.
    """
    with contextlib.suppress(CancelledError):
        flight.exception()


class AsyncLookups:
    """Lookups for the tasks of one event loop; otherwise as :class:`Lookups`."""

    def __init__(self, limit: int) -> None:
        self._answers = _Answers(limit)
        self._after_fork()
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._flights: dict[Hashable, asyncio.Task[Any]] = {}

    async def get(self, key: Hashable, load: Callable[[], Awaitable[T]], *, seconds: float, missing: float = 0) -> T:
        """As :meth:`Lookups.get`. A lookup continues if a waiting task is cancelled."""
        kept = self._answers.find(key)
        if kept is not None:
            known: T = kept.get()
            return known
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = asyncio.ensure_future(self._load(key, load, seconds, missing))
            flight.add_done_callback(_take_error)
        value: T = await asyncio.shield(flight)
        return value

    def forget(self, key: Hashable) -> None:
        """As :meth:`Lookups.forget`."""
        self._answers.forget(key)
        self._flights.pop(key, None)

    async def _load(self, key: Hashable, load: Callable[[], Awaitable[T]], seconds: float, missing: float) -> T:
        try:
            value = await load()
        except BaseException as error:
            self._land(key, _Kept.missing(error, missing))
            raise
        self._land(key, _Kept.found(value, seconds))
        return value

    def _land(self, key: Hashable, kept: _Kept | None) -> None:
        if self._flights.get(key) is asyncio.current_task():
            del self._flights[key]
            self._answers.keep(key, kept)


def _take_error(flight: asyncio.Task[Any]) -> None:
    # All waiting tasks may have been cancelled; asyncio would report an error that was never retrieved.
    if not flight.cancelled():
        flight.exception()
