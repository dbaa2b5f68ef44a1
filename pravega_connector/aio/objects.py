"""Readers, writers and transactions for asyncio, each around the plain client's object.

An object that opens connections opens them when it is first used, entered with ``async with``, or awaited. Its methods
run those of the plain object with :func:`event_loop.run`.

A cancellation loses nothing. It is raised where the call waits, and unfinished work is not done: an event was not
accepted, a position did not move. Two operations continue in the background, because no later call could resume them:
closing a writer or a transaction, and a step of an iterator, whose result the next step returns.
"""

from __future__ import annotations

import asyncio
import functools
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Iterator
from concurrent.futures import Future
from itertools import islice
from types import TracebackType
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar

from pravega_connector.aio.event_loop import run, run_to_the_end, to_the_end
from pravega_connector.core.connection import ProcessBound
from pravega_connector.errors import ConfigError, ConnectorError
from pravega_connector.reader.slices import EventBatch
from pravega_connector.reader.stream_reader import StreamsReader, ValueReader
from pravega_connector.reader.tail import TailReader
from pravega_connector.wire import StreamCut, StreamName
from pravega_connector.writer.event_writer import EventWriter
from pravega_connector.writer.transactions import LeaseKeeper, OpenTransaction, Transaction, TransactionalWriter
from pravega_serde import after_fork
from pravega_serde.errors import ForkedError

C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# Values that an iterator takes at a time.
_STEP: Final = 1024
# Events that a writer takes before it lets others run, its own sending too.
_WRITES: Final = 256


class Home:
    """Event loop of a client and its objects: the loop that first uses one of them."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = set[asyncio.Future[Any]]()
        self._forked = False
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._forked, self._loop = self._forked or self._loop is not None, None
        self._ending.clear()

    @property
    def ending(self) -> set[asyncio.Future[Any]]:
        """Cancelled closings, which continue. Raises ConfigError in another loop, unless the client's has ended."""
        if self._loop is None or not self._loop.is_closed():
            self._check_loop()
        return self._ending

    def check(self) -> None:
        """Raise ConfigError in another loop, ForkedError in a forked child."""
        if self._forked:
            raise ForkedError(
                "this client belongs to an event loop of the process that forked this one: create it after the fork, "
                "or start processes with 'spawn' or 'forkserver'"
            )
        self._check_loop()

    def _check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise ConfigError("this client belongs to another event loop: create a client in each event loop")


class Opened(ProcessBound, Generic[C]):
    """An object of the client that is created on first use."""

    def __init__(self, home: Home, make: Callable[[], C]) -> None:
        self._home, self._make = home, make
        self._made: C | None = None
        self._making = asyncio.Lock()
        after_fork.register(self)

    def _after_fork(self) -> None:
        if self._made is not None:
            self._made = after_fork.inherited(type(self).__name__)

    async def _core(self) -> C:
        """Return the object."""
        self._home.check()
        if self._made is None:
            async with self._making:
                if self._made is None:
                    self._made = await run(self._make)
        return self._made

    def _known(self) -> C:
        """Return the object for a property that needs no wait. Raises ConfigError before it exists."""
        if self._made is None:
            raise ConfigError(f"this {type(self).__name__} is not open yet: await it, or open it with 'async with'")
        return self._made

    async def _open(self) -> Self:
        await self._core()
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self._open().__await__()

    async def __aenter__(self) -> Self:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        core: Any = self._made
        if core is not None:
            await self._end(core.__exit__, kind, error, tb)

    async def _end(self, close: Callable[P, object], *arguments: P.args, **options: P.kwargs) -> None:
        """Close the object. A cancellation does not reach this: it continues in the background."""
        await run_to_the_end(self._home.ending, close, *arguments, **options)


def as_coroutine(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Return a method of the client as a coroutine function."""

    @functools.wraps(method)
    async def call(self: Any, /, *arguments: P.args, **options: P.kwargs) -> R:
        return await run(method, await self._core(), *arguments, **options)

    return call


# ---------------------------------------------------------------- reading


class AsyncEvents(AsyncIterator[T_co]):
    """Values of an iterator of the client. Use it from one task at a time.

    A cancelled step continues, and the next step returns its values, so ``asyncio.wait_for`` around a step loses none.
    If you stop early, call ``await events.aclose()`` to close the connection. Otherwise it closes when the object is
    garbage collected.
    """

    def __init__(self, home: Home, begin: Callable[[], Iterator[T_co]], at_once: int = _STEP) -> None:
        self._home, self._begin, self._at_once = home, begin, at_once
        self._iterator: Iterator[T_co] | None = None
        self._values: deque[T_co] = deque()
        self._step: asyncio.Task[None] | None = None
        self._error: Exception | None = None
        self._ended = False
        after_fork.register(self)

    def _after_fork(self) -> None:
        if self._iterator is not None or self._step is not None:
            self._iterator, self._step, self._values = None, None, after_fork.inherited("iterator")

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T_co:
        while not self._values:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            if self._ended:
                raise StopAsyncIteration
            if self._step is None:
                self._home.check()
                self._step = asyncio.get_running_loop().create_task(run(self._take))
            step = self._step
            await asyncio.wait({step})
            if self._step is step:  # else another task has taken its result, or has ended the iteration
                self._step = None
                step.result()
        return self._values.popleft()

    def _take(self) -> None:
        """Return some values, and the exception that ended them."""
        try:
            if self._iterator is None:
                self._iterator = self._begin()
            for value in islice(self._iterator, self._at_once):
                self._values.append(value)
            self._ended = not self._values
        except Exception as error:  # noqa: BLE001 - it is raised when the values before it were handed out
            self._error, self._ended = error, True

    async def aclose(self) -> None:
        """Stop the iteration and close the connection."""
        self._ended = True
        await to_the_end(self._home.ending, self._close())

    async def _close(self) -> None:
        step, self._step = self._step, None
        iterator: Any = self._iterator
        self._iterator = None
        if step is not None:
            step.cancel()
            await asyncio.wait({step})
        self._values = deque()
        self._error = None
        if iterator is not None:
            iterator.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()


Reader = TypeVar("Reader", bound=TailReader | StreamsReader | ValueReader[Any])


class _AsyncReader(Opened[Reader]):
    """A reader of events as they arrive. Use it from one task at a time.

    A cancelled poll leaves the position before the events that it did not return.
    """

    _polled = False

    async def _poll(self, poll: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        if self._polled:
            raise ConfigError("this reader is polled by another task already: use one reader for each task")
        self._polled = True
        try:
            return await run(poll, *arguments, **options)
        finally:
            self._polled = False

    @property
    def position(self) -> StreamCut:
        """Stream cut after the last returned event. Raises ConfigError for several streams."""
        reader = self._known()
        if isinstance(reader, StreamsReader):
            raise ConfigError("this reader follows several streams: 'positions' has the cut of each")
        return reader.position

    @property
    def positions(self) -> list[StreamCut]:
        """Stream cut of each stream after the last returned event."""
        return self._known().positions

    @property
    def at_end(self) -> bool:
        """True if all streams are sealed and read to their ends."""
        return self._known().at_end

    def __aiter__(self) -> Self:
        return self

    async def close(self) -> None:
        """Close the connections."""
        if self._made is not None:
            await self._end(self._made.close)


class AsyncTailReader(_AsyncReader[TailReader | StreamsReader]):
    """Reader of one or several streams without an end; see TailReader."""

    async def poll(self, timeout: float) -> EventBatch | None:
        """Return the next events of one segment, or None after ``timeout`` seconds without events; see TailReader."""
        return await self._poll((await self._core()).poll, timeout)

    async def __anext__(self) -> EventBatch:
        reader = await self._core()
        while not reader.at_end:
            batch = await self._poll(reader.poll, reader.timeout)
            if batch is not None:
                return batch
        raise StopAsyncIteration


class AsyncValueReader(_AsyncReader[ValueReader[T]]):
    """Reader of the events' values as they arrive; see ValueReader."""

    async def poll(self, timeout: float) -> list[T]:
        """Return the next values of one segment, or none after ``timeout`` seconds without events; see ValueReader."""
        return await self._poll((await self._core()).poll, timeout)

    async def __anext__(self) -> T:
        reader = await self._core()
        while not reader.at_end:
            if reader.has_events or await self._poll(reader.fetch, reader.timeout):
                return await self._poll(reader.take) if reader.take_may_block else reader.take()
        raise StopAsyncIteration


# ---------------------------------------------------------------- writing


def _acknowledgement(future: Future[None]) -> asyncio.Future[None]:
    """Return the future for the event loop. A program need not await it, because ``flush`` raises its error, too."""
    wrapped = asyncio.wrap_future(future)
    wrapped.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return wrapped


class AsyncEventWriter(Opened[EventWriter[T]]):
    """Writer of events to one stream. Any number of tasks may use it; it has one background task. See EventWriter.

    A cancelled ``write`` has not accepted its event. A cancelled ``flush`` leaves the events in flight. A cancelled
    ``close``, or end of the block, continues in the background, and closing the client waits for it. A column over 16
    MiB is written in pieces, so a cancellation may leave a part of it written.
    """

    _taken = 0

    async def write(self, value: T, routing_key: str | None = None, *, key: object = None) -> None:
        """Write one event. Waits only while too many bytes are not yet durable. See EventWriter.write."""
        writer = self._made or await self._core()
        self._taken += 1
        if not self._taken % _WRITES:
            await asyncio.sleep(0)
        if writer.is_free:  # so that it does not wait
            writer.write(value, routing_key, key=key)
        else:
            await run(writer.write, value, routing_key, key=key)

    async def write_all(self, values: Iterable[T], routing_key: str | None = None) -> asyncio.Future[None]:
        """Write events of one routing key in one step, and return their acknowledgement. See EventWriter.write_all.

        The returned future is done when the events are durable: ``await (await writer.write_all(values, "key"))``.
        """
        return _acknowledgement(await run((await self._core()).write_all, values, routing_key))

    async def write_with_ack(self, value: T, routing_key: str | None = None) -> asyncio.Future[None]:
        """Write one event, and return a future that is done when it is durable. See EventWriter.write_with_ack."""
        return _acknowledgement(await run((await self._core()).write_with_ack, value, routing_key))

    write_batch = as_coroutine(EventWriter.write_batch)
    write_column = as_coroutine(EventWriter.write_column)
    write_frames = as_coroutine(EventWriter.write_frames)
    flush = as_coroutine(EventWriter.flush)
    note_time = as_coroutine(EventWriter.note_time)

    async def close(self, timeout: float | None = None) -> None:
        """Flush within ``timeout`` seconds, and end the background task."""
        if self._made is not None:
            await self._end(self._made.close, timeout)

    async def abandon(self) -> None:
        """End the background task without a flush. Events that are not yet durable may be lost."""
        if self._made is not None:
            await self._end(self._made.abandon)


# ---------------------------------------------------------------- transactions


class AsyncTransaction(Opened[Transaction]):
    """A transaction known by its id; see Transaction. A cancelled commit may have taken effect: check the status."""

    @property
    def id(self) -> uuid.UUID:
        """Id with which any process may commit or abort the transaction."""
        return self._known().id

    @property
    def stream(self) -> StreamName:
        """Stream of the transaction."""
        return self._known().stream

    status = as_coroutine(Transaction.status)
    ping = as_coroutine(Transaction.ping)
    commit = as_coroutine(Transaction.commit)
    abort = as_coroutine(Transaction.abort)


class AsyncOpenTransaction(AsyncTransaction, Generic[T]):
    """A transaction that accepts events. As a context manager it commits at the end, or aborts on an error.

    You can repeat a cancelled ``commit`` or ``detach``. A cancelled end of the block continues in the background. See
    OpenTransaction.
    """

    _taken = 0

    async def write(self, value: T, routing_key: str | None = None, *, key: object = None) -> None:
        """Write one event. Waits only while too many bytes are not yet durable. See OpenTransaction.write."""
        transaction: Any = self._made or await self._core()
        self._taken += 1
        if not self._taken % _WRITES:
            await asyncio.sleep(0)
        if transaction.is_free:
            transaction.write(value, routing_key, key=key)
        else:
            await run(transaction.write, value, routing_key, key=key)

    write_batch = as_coroutine(OpenTransaction.write_batch)
    write_column = as_coroutine(OpenTransaction.write_column)
    write_frames = as_coroutine(OpenTransaction.write_frames)
    flush = as_coroutine(OpenTransaction.flush)
    detach = as_coroutine(OpenTransaction.detach)
    commit = as_coroutine(OpenTransaction.commit)
    abort = as_coroutine(OpenTransaction.abort)


class AsyncTransactionalWriter(Opened[TransactionalWriter[T]]):
    """Factory of transactions on one stream; see TransactionalWriter."""

    def begin(self) -> AsyncOpenTransaction[T]:
        """Return a new transaction, which begins when it is awaited, entered with ``async with``, or first used."""
        return AsyncOpenTransaction(self._home, lambda: self._writer().begin())

    def join(self, transaction: uuid.UUID) -> AsyncOpenTransaction[T]:
        """Return an open transaction that any process has begun; see TransactionalWriter.join."""
        return AsyncOpenTransaction(self._home, lambda: self._writer().join(transaction))

    def _writer(self) -> TransactionalWriter[T]:
        if self._made is None:
            self._made = self._make()
        return self._made

    close = as_coroutine(TransactionalWriter.close)


class AsyncLeaseKeeper(Opened[LeaseKeeper]):
    """Keeps transactions open with pings, in one background task. See LeaseKeeper."""

    def __init__(self, interval: float | None = None) -> None:
        """``interval`` is the number of seconds between two pings; the default depends on the transaction's lease."""
        super().__init__(Home(), lambda: LeaseKeeper(interval))

    async def add(self, transaction: AsyncTransaction) -> None:
        """Keep a transaction open for its lease with pings, the first at once. See LeaseKeeper.add."""
        await run((await self._core()).add, await transaction._core())

    async def discard(self, transaction: AsyncTransaction) -> None:
        """Stop the pings of a transaction and drop its failure."""
        await run((await self._core()).discard, await transaction._core())

    @property
    def failures(self) -> dict[uuid.UUID, ConnectorError]:
        """Transactions that could not be kept open, with their errors."""
        return {} if self._made is None else self._made.failures

    def check(self) -> None:
        """Raise the first failure, if any."""
        if self._made is not None:
            self._made.check()

    async def close(self) -> None:
        """Stop all pings. The transactions stay open until their leases expire."""
        if self._made is not None:
            await self._end(self._made.close)
