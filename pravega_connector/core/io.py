"""Blocking operations of the client, for threads and for event loops.

The client consists of plain functions that wait where they must. In a thread, a wait blocks the thread. On behalf of a
coroutine (``event_loop``), the same wait passes control to the event loop and returns the result. A cancellation is
raised there, as an interrupt would be. Only :func:`seam` determines which of the two applies. Objects with a lock, a
condition or a background worker choose when they create it.

Locks that are never held across a wait are locks of ``threading`` in both cases.

One read, called in both ways::

    in a thread                                 in a coroutine
    -----------                                 --------------
    client.read(...)                            await client.read(...)
      tail asks:  Watch.wait(timeout)             a fiber runs the same functions
        seam() is None                              Watch.wait(timeout)
        poll(2) blocks the thread                     seam() is the loop's
        |                                             the fiber passes control to the loop, which runs other tasks
        ready: recv, decode                           ready: the fiber continues: recv, decode
"""

from __future__ import annotations

import contextlib
import math
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar

_LONGEST: Final = 86_400.0  # seconds of one wait; poll(2) counts milliseconds in an int
T = TypeVar("T")
V = TypeVar("V")


class Lock(Protocol):
    """Lock that may be held across a wait."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock, within ``timeout`` seconds unless negative. Return True if it was acquired."""
        ...

    def release(self) -> None:
        """Release the lock."""
        ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None, /
    ) -> None: ...


class Condition(Protocol):
    """Condition variable. Within its context, only its own :meth:`wait` may wait."""

    def wait(self, timeout: float | None = None) -> bool:
        """Return True when notified, or False after ``timeout`` seconds."""
        ...

    def notify_all(self) -> None:
        """Wake all waiters."""
        ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None, /
    ) -> None: ...


class Bell(Protocol):
    """Signal that wakes waiters when a condition has become true."""

    def wait(self, is_so: Callable[[], bool], timeout: float) -> None:
        """Return at once if ``is_so()`` is true, else with the next :meth:`ring` or after ``timeout`` seconds."""
        ...

    def ring(self) -> None:
        """Wake all waiters. Call it after the condition has become true."""
        ...


class Worker(Protocol):
    """Function that runs in the background."""

    def join(self) -> None:
        """Wait until the function has ended."""
        ...

    def is_alive(self) -> bool:
        """Return True until the function has ended."""
        ...


class Seam(Protocol):
    """Operations that block in a thread, mapped to an asyncio event loop."""

    def wait_ready(self, masks: Mapping[int, int], timeout: float) -> None:
        """Return when a descriptor may be ready, or after ``timeout`` seconds.

        Other tasks can run in any case.
        """
        ...

    def forget(self, descriptor: int) -> None:
        """End a wait for a descriptor that is about to be closed. Its number may be reused soon."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after ``seconds``."""
        ...

    def blocking(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``, which blocks the thread that runs it."""
        ...

    def outcome(self, future: Future[T], timeout: float) -> T:
        """Return the result of a thread's work. Raises TimeoutError after ``timeout`` seconds.

        After a timeout, the work continues and its result is dropped.
        """
        ...

    def lock(self) -> Lock:
        """Return a new lock."""
        ...

    def rlock(self) -> Lock:
        """Return a new lock that its holder may acquire again."""
        ...

    def condition(self) -> Condition:
        """Return a new condition."""
        ...

    def bell(self) -> Bell:
        """Return a new bell."""
        ...

    def start(self, work: Callable[[], object], name: str) -> Worker:
        """Run ``work`` in the background."""
        ...

    def grpc_channels(self) -> Any:
        """Return an object with gRPC's ``insecure_channel`` and ``secure_channel``."""
        ...


_look_up: Callable[[], Seam | None] | None = None


def install(look_up: Callable[[], Seam | None]) -> None:
    """Set the function that :func:`seam` calls."""
    global _look_up  # noqa: PLW0603 - one switch for the process: without an event loop, nothing is looked up
    _look_up = look_up


def seam() -> Seam | None:
    """Return the seam of the event loop for which the present code runs; None in a plain thread."""
    return None if _look_up is None else _look_up()


class Watch:
    """Watched descriptors, each with a mask of ``select.POLLIN`` and ``select.POLLOUT``.

    It does not use select(), which fails in processes with more than 1,024 open files.
    """

    __slots__ = ("_masks", "_poll")

    def __init__(self, masks: Mapping[int, int]) -> None:
        self._masks = masks
        self._poll = select.poll()
        for descriptor, mask in masks.items():
            self._poll.register(descriptor, mask)

    def wait(self, timeout: float) -> dict[int, int]:
        """Return the ready descriptors and their events as soon as there is one; none after ``timeout`` seconds."""
        loop = seam()
        if loop is None:
            return dict(self._poll.poll(math.ceil(min(timeout, _LONGEST) * 1000)))
        ready = self.now()
        loop.wait_ready({} if ready else self._masks, 0.0 if ready else timeout)
        return ready or self.now()

    def now(self) -> dict[int, int]:
        """Return the descriptors that are ready now, and their events."""
        return dict(self._poll.poll(0))


def close(sock: socket.socket) -> None:
    """Close a socket for which an event loop may be waiting."""
    loop = seam()
    if loop is not None and sock.fileno() >= 0:
        loop.forget(sock.fileno())
    with contextlib.suppress(OSError):
        sock.close()


def sleep(seconds: float) -> None:
    """Return after ``seconds``."""
    loop = seam()
    if loop is None:
        time.sleep(seconds)
    else:
        loop.sleep(seconds)


def blocking(work: Callable[[], T]) -> T:
    """Return the result of ``work``, which does not know event loops and waits by itself."""
    loop = seam()
    return work() if loop is None else loop.blocking(work)


def outcome(future: Future[T], timeout: float) -> T:
    """Return the result of a thread's work. Raises TimeoutError after ``timeout`` seconds.

    After a timeout, the work continues and its result is dropped.
    """
    loop = seam()
    return future.result(timeout) if loop is None else loop.outcome(future, timeout)


def lock() -> Lock:
    """Return a new lock that may be held across a wait."""
    loop = seam()
    return threading.Lock() if loop is None else loop.lock()


def rlock() -> Lock:
    """Return a new lock that may be held across a wait, and that its holder may acquire again."""
    loop = seam()
    return threading.RLock() if loop is None else loop.rlock()


def condition() -> Condition:
    """Return a new condition."""
    loop = seam()
    return threading.Condition() if loop is None else loop.condition()


class _ThreadBell:
    """Bell for threads. It has no lock, so an interrupt at any line of a wait leaves no lock held."""

    def __init__(self) -> None:
        self._waiters: deque[threading.Lock] = deque()

    def wait(self, is_so: Callable[[], bool], timeout: float) -> None:
        waiter = threading.Lock()
        waiter.acquire()
        self._waiters.append(waiter)
        if not is_so() and not waiter.acquire(timeout=min(timeout, threading.TIMEOUT_MAX)):
            with contextlib.suppress(ValueError):  # it is ringing now
                self._waiters.remove(waiter)

    def ring(self) -> None:
        try:
            while True:
                self._waiters.popleft().release()
        except IndexError:
            pass


def bell() -> Bell:
    """Return a new bell."""
    loop = seam()
    return _ThreadBell() if loop is None else loop.bell()


def start(work: Callable[[], object], name: str) -> Worker:
    """Run ``work`` in the background: in a daemon thread, or in a task."""
    loop = seam()
    if loop is not None:
        return loop.start(work, name)
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def in_background(step: Callable[[], T], name: str) -> Future[T]:
    """Run ``step`` in a daemon thread, which never delays the end of the process. See :func:`outcome`."""
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()  # so that a waiter that gives up does not cancel it

    def run() -> None:
        try:
            outcome.set_result(step())
        except BaseException as error:  # noqa: BLE001 - raised by the future's result()
            outcome.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return outcome


def side_by_side(call: Callable[[V], T], values: Iterable[V], most: int) -> list[T]:
    """Return the results of ``call`` for each value, in their order, with at most ``most`` calls at once.

    Raises the error that sequential calls would have raised: the error of the first value that fails. After an error,
    no further call begins. The error is raised when the calls in flight have ended; each call has its own deadline.
    """
    left = deque(enumerate(values))
    if len(left) < 2:
        return [call(value) for _, value in left]
    results: dict[int, T] = {}
    errors: dict[int, BaseException] = {}

    def work() -> None:
        while True:
            try:
                place, value = left.popleft()  # in order: when a call fails, all earlier ones have begun
            except IndexError:
                return
            try:
                results[place] = call(value)
            except BaseException as error:  # noqa: BLE001 - raised where the results are waited for
                errors[place] = error
                left.clear()

    workers = [start(work, f"pravega-call-{number}") for number in range(min(most, len(left)))]
    try:
        for worker in workers:
            worker.join()
    finally:
        left.clear()  # values are left only after an interrupt
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in sorted(results)]


#: Streams to query in parallel: the number of connections that a client keeps to a segment store.
_STREAMS_AT_ONCE: Final = 8


def of_each(ask: Callable[[V], T], streams: Iterable[V]) -> list[T]:
    """Return the answers for streams, in their order. Some calls run in parallel; see ``side_by_side`` for errors."""
    return side_by_side(ask, streams, _STREAMS_AT_ONCE)


def grpc_channels(blocking: Any) -> Any:
    """Return ``blocking``, which is gRPC, or its counterpart for the event loop."""
    loop = seam()
    return blocking if loop is None else loop.grpc_channels()
