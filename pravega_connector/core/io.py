"""How the client waits: every place at which it blocks, for threads and for event loops.

The client is written as plain functions that wait where they must. Where they run in a thread, a wait blocks it. Where
they run on behalf of a coroutine (``event_loop``), the same wait hands control to the event loop, and comes back with
what was waited for; a cancellation is raised there, as an interrupt would be. Which of the two holds is looked up in
:func:`seam` alone. Objects that have a lock, a condition or a background worker choose when they make it.

Locks that are never held across a wait stay those of ``threading`` in either case.
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
    """A lock that may be held across a wait."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it; whether that was done, within ``timeout`` seconds unless they are negative."""
        ...

    def release(self) -> None:
        """Give it back."""
        ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None, /
    ) -> None: ...


class PlainLock(Lock, Protocol):
    """A lock that is taken once."""

    def locked(self) -> bool:
        """Whether somebody holds it."""
        ...


class Condition(Protocol):
    """News that others wait for. Within its context nothing but its own :meth:`wait` waits."""

    def wait(self, timeout: float | None = None) -> bool:
        """Return when notified, or after ``timeout`` seconds; whether it was notified."""
        ...

    def notify_all(self) -> None:
        """Wake all that wait."""
        ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None, /
    ) -> None: ...


class Bell(Protocol):
    """Wakes those that wait until something is so."""

    def wait(self, is_so: Callable[[], bool], timeout: float) -> None:
        """Return at once if something is so, else with the next :meth:`ring`, or after ``timeout`` seconds."""
        ...

    def ring(self) -> None:
        """Wake all that wait; after something has become so."""
        ...


class Worker(Protocol):
    """A function that runs in the background."""

    def join(self) -> None:
        """Wait until it has ended."""
        ...

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        ...


class Seam(Protocol):
    """What an event loop has in place of what blocks."""

    def wait_ready(self, masks: Mapping[int, int], timeout: float) -> None:
        """Return when one of the descriptors may be ready, or after ``timeout`` seconds; let others run in any case."""
        ...

    def forget(self, descriptor: int) -> None:
        """End a wait for a descriptor that is about to be closed; its number may come again soon."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        ...

    def blocking(self, work: Callable[[], T]) -> T:
        """The result of ``work``, which blocks the thread in which it runs."""
        ...

    def outcome(self, future: Future[T], timeout: float) -> T:
        """Return the result of a thread's work. Raises TimeoutError after ``timeout`` seconds, and leaves it behind."""
        ...

    def lock(self) -> PlainLock:
        """A lock; one of these for each purpose."""
        ...

    def rlock(self) -> Lock:
        """A lock that who holds it may take again."""
        ...

    def condition(self) -> Condition:
        """A condition."""
        ...

    def bell(self) -> Bell:
        """A bell."""
        ...

    def start(self, work: Callable[[], object], name: str) -> Worker:
        """Run ``work`` in the background."""
        ...

    def grpc_channels(self) -> Any:
        """What has gRPC's ``insecure_channel`` and ``secure_channel``."""
        ...


_look_up: Callable[[], Seam | None] | None = None


def install(look_up: Callable[[], Seam | None]) -> None:
    """Have :func:`seam` ask ``look_up``."""
    global _look_up  # noqa: PLW0603 - one switch for the process: without an event loop, nothing is looked up
    _look_up = look_up


def seam() -> Seam | None:
    """The seam of the event loop on whose behalf the present code runs; None in a plain thread."""
    return None if _look_up is None else _look_up()


class Watch:
    """Descriptors that are watched, each for a mask of ``select.POLLIN`` and ``select.POLLOUT``.

    Not select(), which fails in processes with more than 1,024 open files.
    """

    __slots__ = ("_masks", "_poll")

    def __init__(self, masks: Mapping[int, int]) -> None:
        self._masks = masks
        self._poll = select.poll()
        for descriptor, mask in masks.items():
            self._poll.register(descriptor, mask)

    def wait(self, timeout: float) -> dict[int, int]:
        """The descriptors that are ready, and for what, as soon as there is one; none after ``timeout`` seconds."""
        loop = seam()
        if loop is None:
            return dict(self._poll.poll(math.ceil(min(timeout, _LONGEST) * 1000)))
        ready = self.now()
        loop.wait_ready({} if ready else self._masks, 0.0 if ready else timeout)
        return ready or self.now()

    def now(self) -> dict[int, int]:
        """The descriptors that are ready now."""
        return dict(self._poll.poll(0))


def close(sock: socket.socket) -> None:
    """Close a socket for which an event loop may be waiting."""
    loop = seam()
    if loop is not None and sock.fileno() >= 0:
        loop.forget(sock.fileno())
    with contextlib.suppress(OSError):
        sock.close()


def sleep(seconds: float) -> None:
    """Return after so many seconds."""
    loop = seam()
    if loop is None:
        time.sleep(seconds)
    else:
        loop.sleep(seconds)


def blocking(work: Callable[[], T]) -> T:
    """The result of ``work``, which knows nothing of event loops and waits by itself."""
    loop = seam()
    return work() if loop is None else loop.blocking(work)


def outcome(future: Future[T], timeout: float) -> T:
    """Return the result of a thread's work. Raises TimeoutError after ``timeout`` seconds, and leaves it behind."""
    loop = seam()
    return future.result(timeout) if loop is None else loop.outcome(future, timeout)


def lock() -> PlainLock:
    """A lock that may be held across a wait."""
    loop = seam()
    return threading.Lock() if loop is None else loop.lock()


def rlock() -> Lock:
    """A lock that may be held across a wait, and that who holds it may take again."""
    loop = seam()
    return threading.RLock() if loop is None else loop.rlock()


def condition() -> Condition:
    """A condition."""
    loop = seam()
    return threading.Condition() if loop is None else loop.condition()


class _ThreadBell:
    """Bell for threads. It has no lock, so an interrupt at any line of a wait leaves nothing held."""

    def __init__(self) -> None:
        self._waiters: deque[threading.Lock] = deque()

    def wait(self, is_so: Callable[[], bool], timeout: float) -> None:
        waiter = threading.Lock()
        waiter.acquire()
        self._waiters.append(waiter)
        if not is_so() and not waiter.acquire(timeout=min(timeout, threading.TIMEOUT_MAX)):
            with contextlib.suppress(ValueError):  # it rings just now
                self._waiters.remove(waiter)

    def ring(self) -> None:
        try:
            while True:
                self._waiters.popleft().release()
        except IndexError:
            pass


def bell() -> Bell:
    """A bell."""
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
    """Run a step in a daemon thread, which never delays the end of the process. See :func:`outcome`."""
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
    """The results of a call for each value, in the order of the values; at most so many calls are under way at once.

    Raises the error that one call after the other would have met: that of the first value, in their order, which has
    one. None is begun after an error, and those under way have ended when it is raised: each has its own deadline.
    """
    left = deque(enumerate(values))
    if len(left) < 2:
        return [call(value) for _, value in left]
    results: dict[int, T] = {}
    errors: dict[int, BaseException] = {}

    def work() -> None:
        while True:
            try:
                place, value = left.popleft()  # in order: when one fails, all before it have begun
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
        left.clear()  # an interrupt, if there are any left
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in sorted(results)]


def grpc_channels(blocking: Any) -> Any:
    """What makes channels: ``blocking``, which is gRPC, or its counterpart for the event loop."""
    loop = seam()
    return blocking if loop is None else loop.grpc_channels()
