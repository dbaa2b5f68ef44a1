"""Operations that block in a thread, mapped to an asyncio event loop with greenlets.

:func:`run` is a coroutine around a function, which runs in a greenlet. When the function must wait, the greenlet
switches to the coroutine with an awaitable and receives the result. An exception of the awaitable, also a cancellation,
is raised in the function at that place. So one client serves both worlds. All greenlets of a loop run in its thread and
switch only when they wait.

(SQLAlchemy's asyncio extension uses the same technique.)
"""

from __future__ import annotations

import asyncio
import logging
import select
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final, ParamSpec, TypeVar, cast

from pravega_connector.controller.rpc import grpc
from pravega_connector.core import io
from pravega_serde import blocking
from pravega_serde.errors import MissingExtraError

try:
    from greenlet import getcurrent, greenlet
except ImportError:
    raise MissingExtraError("greenlet", "async", purpose="the client for asyncio") from None

_logger: Final = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")


class _Core(greenlet):  # type: ignore[misc]
    """A greenlet that runs the client's code for a coroutine."""

    def __init__(self, work: Callable[..., Any], driver: greenlet) -> None:
        super().__init__(work, driver)
        self.gr_context = driver.gr_context


async def run(function: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
    """Return the result of a function of the client that may wait.

    A cancellation is raised where the function waits.
    """
    core = _Core(function, getcurrent())
    result = core.switch(*arguments, **options)
    while not core.dead:
        try:
            value = await result
        except BaseException as error:  # noqa: BLE001 - whose it is says the function
            result = core.throw(error)
        else:
            result = core.switch(value)
    return cast("R", result)


async def run_to_the_end(
    going_on: set[asyncio.Future[Any]], function: Callable[P, R], *arguments: P.args, **options: P.kwargs
) -> R:
    """Return the result of a function that a cancellation does not reach: it continues in the background.

    Until it ends, it is in the set ``going_on``.
    """
    return await to_the_end(going_on, run(function, *arguments, **options))


async def to_the_end(going_on: set[asyncio.Future[Any]], coroutine: Coroutine[Any, Any, R]) -> R:
    """Return the result of a coroutine that a cancellation does not reach, as :func:`run_to_the_end`."""
    task = asyncio.ensure_future(coroutine)
    going_on.add(task)
    task.add_done_callback(going_on.discard)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_tell)
        raise


def _tell(task: asyncio.Future[Any]) -> None:
    """Log the error of a call whose caller was cancelled."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _logger.warning("a call that kept running after its cancellation failed: %s", error)


def _wait(awaitable: Awaitable[R]) -> R:
    """Return the result of an awaitable from within a core."""
    core = getcurrent()
    assert isinstance(core, _Core)
    assert core.parent is not None
    return cast("R", core.parent.switch(awaitable))


class _Turn:
    """An awaitable that lets each other ready task run once."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class _Lock:
    """A lock between cores; waiting cores acquire it in order."""

    def __init__(self) -> None:
        self._held = False
        self._waiters: deque[asyncio.Future[None]] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not self._held:
            self._held = True
            return True
        if not blocking:
            return False
        loop = asyncio.get_running_loop()
        granted = loop.create_future()
        timer = loop.call_later(timeout, granted.cancel) if timeout >= 0 else None
        self._waiters.append(granted)
        try:
            _wait(asyncio.wait({granted}))
        except BaseException:
            if not granted.cancel() and not granted.cancelled():
                self.release()  # it was handed over just now
            raise
        finally:
            if timer is not None:
                timer.cancel()
        return not granted.cancelled()

    def release(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._held = False

    def __enter__(self) -> bool:
        if self._held:
            return self.acquire()
        self._held = True
        return True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._waiters:
            self.release()
        else:
            self._held = False


class _RLock:
    """A lock that its owner may acquire again."""

    def __init__(self) -> None:
        self._lock = _Lock()
        self._owner: greenlet | None = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._owner is not getcurrent():
            if not self._lock.acquire(blocking, timeout):
                return False
            self._owner = getcurrent()
        self._count += 1
        return True

    def release(self) -> None:
        self._count -= 1
        if not self._count:
            self._owner = None
            self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.release()


class _Condition:
    """A condition variable for cores. Nothing else runs inside its context until it waits, so it needs no lock."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def wait(self, timeout: float | None = None) -> bool:
        loop = asyncio.get_running_loop()
        notified = loop.create_future()
        timer = None if timeout is None else loop.call_later(timeout, _settle, notified)
        self._waiters.add(notified)
        try:
            _wait(notified)
            return notified not in self._waiters
        finally:
            self._waiters.discard(notified)
            if timer is not None:
                timer.cancel()

    def notify_all(self) -> None:
        waiters, self._waiters = self._waiters, set()
        for notified in waiters:
            _settle(notified)

    def __enter__(self) -> bool:
        return True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        pass


class _Bell:
    """A wake-up signal for cores: nothing else runs between the check and the wait."""

    def __init__(self) -> None:
        self._news = _Condition()

    def wait(self, is_so: Callable[[], bool], timeout: float) -> None:
        if not is_so():
            self._news.wait(timeout)

    def ring(self) -> None:
        self._news.notify_all()


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class _Worker:
    """A task that runs a function."""

    def __init__(self, work: Callable[[], object], name: str) -> None:
        self._task = asyncio.get_running_loop().create_task(run(work), name=name)

    def join(self) -> None:
        """Wait until the task has ended. A cancellation is raised after that."""
        cancelled: asyncio.CancelledError | None = None
        while not self._task.done():
            try:
                _wait(asyncio.wait({self._task}))
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def is_alive(self) -> bool:
        return not self._task.done()


class _ClosedError(grpc.RpcError):  # type: ignore[misc]
    """A call ended because its channel was closed."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.CANCELLED

    def details(self) -> str:
        return "the channel was closed"


class _Channel:
    """A gRPC channel whose calls wait in the event loop."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._calls = set[Any]()

    def unary_unary(self, path: str, **options: Any) -> Callable[..., Any]:
        """Return a callable for a method, as gRPC's own."""
        stub = self._channel.unary_unary(path, **options)

        def call(request: Any, **details: Any) -> Any:
            if self._channel is None:
                raise _ClosedError
            under_way = stub(request, **details)
            self._calls.add(under_way)
            try:
                return _wait(under_way)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if under_way in self._calls or (task is not None and task.cancelling()):
                    raise
                raise _ClosedError from None  # by close(), not by who waits
            finally:
                self._calls.discard(under_way)

        return call

    def close(self) -> None:
        """End the calls in progress. gRPC closes the channel after its last use."""
        calls, self._calls, self._channel = self._calls, set(), None
        for under_way in calls:
            under_way.cancel()


class _Channels:
    """Factory of channels, with the interface of the module grpc."""

    @staticmethod
    def insecure_channel(target: str, options: Any) -> _Channel:
        return _Channel(grpc.aio.insecure_channel(target, options=options))

    @staticmethod
    def secure_channel(target: str, credentials: Any, options: Any) -> _Channel:
        return _Channel(grpc.aio.secure_channel(target, credentials, options=options))


# The wait for each descriptor, of all loops: a number is one socket's until it is closed.
_waits: Final[dict[int, asyncio.Future[None]]] = {}


def _end_wait(descriptor: int) -> asyncio.Future[None]:
    ready = _waits.pop(descriptor)
    ready.get_loop().remove_reader(descriptor)
    ready.get_loop().remove_writer(descriptor)
    return ready


class _Seam:
    """The blocking operations of the running event loop."""

    lock = staticmethod(_Lock)
    rlock = staticmethod(_RLock)
    condition = staticmethod(_Condition)
    bell = staticmethod(_Bell)
    start = staticmethod(_Worker)
    grpc_channels = staticmethod(_Channels)

    @staticmethod
    def wait_ready(masks: Mapping[int, int], timeout: float) -> None:
        if timeout <= 0:
            _wait(_Turn())
            return
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        timer = loop.call_later(timeout, _settle, ready)
        for descriptor, mask in masks.items():
            _waits[descriptor] = ready
            if mask & select.POLLIN:
                loop.add_reader(descriptor, _settle, ready)
            if mask & select.POLLOUT:
                loop.add_writer(descriptor, _settle, ready)
        try:
            _wait(ready)
        finally:
            timer.cancel()
            for descriptor in masks:
                if _waits.get(descriptor) is ready:  # else the number is another socket's by now
                    _end_wait(descriptor)

    @staticmethod
    def forget(descriptor: int) -> None:
        if descriptor in _waits:
            _settle(_end_wait(descriptor))

    @staticmethod
    def sleep(seconds: float) -> None:
        _wait(asyncio.sleep(seconds))

    @staticmethod
    def blocking(work: Callable[[], R]) -> R:
        return _wait(asyncio.to_thread(work))

    @staticmethod
    def outcome(future: Future[R], timeout: float) -> R:
        return _wait(asyncio.wait_for(asyncio.wrap_future(future), timeout))


_SEAM: Final = _Seam()


def _look_up() -> io.Seam | None:
    return _SEAM if isinstance(getcurrent(), _Core) else None


io.install(_look_up)
blocking.install(io.blocking)
