"""The client for asyncio: the calls of :class:`PravegaClient` as coroutines, around the very same client.

Each call runs the client's own function by :func:`event_loop.run`. What opens connections when it is made (writers,
readers, transactions) is opened when it is first used, entered by ``async with``, or awaited.

A cancellation loses nothing. It is raised where the call waits, and what the call had not done by then is not done: an
event was not taken, a position not moved. Two things go on in the background instead, because nobody could take them up
again: the closing of a writer or a transaction, and the step of an iterator, whose result the next one gets.
"""

from __future__ import annotations

import asyncio
import functools
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from itertools import islice
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from pravega_serde.routing import EventRouter

from ..config import PravegaConfig
from ..errors import ConfigError, ConnectorError
from ..wire import StreamCut, StreamName
from .arguments import Place, Stream, Streams
from .event_loop import run, run_to_the_end
from .event_writer import EventWriter
from .events import SupportsDeserialize, SupportsSerialize
from .following import StreamsReader, ValueReader
from .health import Counters
from .pravega_client import PravegaClient
from .slices import EventBatch
from .tail import TailReader
from .transactions import DEFAULT_LEASE, LeaseKeeper, OpenTransaction, Transaction, TransactionalWriter

__all__ = [
    "AsyncEventWriter",
    "AsyncEvents",
    "AsyncLeaseKeeper",
    "AsyncOpenTransaction",
    "AsyncPravegaClient",
    "AsyncTailReader",
    "AsyncTransaction",
    "AsyncTransactionalWriter",
    "AsyncValueReader",
    "WriterOptions",
]

C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# Values that an iterator takes at a time.
_STEP: Final = 1024
# Events that a writer takes before it lets others run, its own sending too.
_WRITES: Final = 256


class _Opened(Generic[C]):
    """An object of the client that is made when it is needed."""

    def __init__(self, client: AsyncPravegaClient | None, make: Callable[[], C]) -> None:
        self._client, self._make = client, make
        self._made: C | None = None
        self._making = asyncio.Lock()
        self._ending = set[asyncio.Future[Any]]() if client is None else client._ending

    async def _core(self) -> C:
        """The object."""
        if self._made is None:
            if self._client is not None:
                self._client._check_loop()
            async with self._making:
                if self._made is None:
                    self._made = await run(self._make)
        return self._made

    def _known(self) -> C:
        """The object, for what is known of it without waiting. Raises ConfigError before there is one."""
        if self._made is None:
            raise ConfigError(f"this {type(self).__name__} is not open yet: await it, or enter it by 'async with'")
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
            await run_to_the_end(self._ending, core.__exit__, kind, error, tb)


def _call(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """A method of the client as a coroutine."""

    @functools.wraps(method)
    async def call(self: Any, /, *arguments: P.args, **options: P.kwargs) -> R:
        return await run(method, await self._core(), *arguments, **options)

    return call


# ---------------------------------------------------------------- reading


class AsyncEvents(AsyncIterator[T_co]):
    """What an iterator of the client yields. One task at a time.

    A cancelled step goes on, and the next one gets its values: so ``asyncio.wait_for`` around one loses none. Leaving
    it early closes its connection, at the latest when it is collected as garbage: ``await events.aclose()``.
    """

    def __init__(self, client: AsyncPravegaClient, begin: Callable[[], Iterator[T_co]], at_once: int = _STEP) -> None:
        self._client, self._begin, self._at_once = client, begin, at_once
        self._iterator: Iterator[T_co] | None = None
        self._values: deque[T_co] = deque()
        self._step: asyncio.Task[None] | None = None
        self._error: Exception | None = None
        self._ended = False

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
                self._client._check_loop()
                self._step = asyncio.get_running_loop().create_task(run(self._take))
            await asyncio.wait({self._step})
            step, self._step = self._step, None
            step.result()
        return self._values.popleft()

    def _take(self) -> None:
        """Take some values, and what ends them."""
        try:
            if self._iterator is None:
                self._iterator = self._begin()
            for value in islice(self._iterator, self._at_once):
                self._values.append(value)
            self._ended = not self._values
        except Exception as error:  # noqa: BLE001 - it is raised when the values before it were handed out
            self._error, self._ended = error, True

    async def aclose(self) -> None:
        """Take nothing more, and close the connection."""
        step, self._step, self._ended = self._step, None, True
        if step is not None:
            step.cancel()
            await asyncio.wait({step})
        self._values.clear()
        self._error = None
        iterator: Any = self._iterator
        if iterator is not None:
            iterator.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()


Reader = TypeVar("Reader", bound=TailReader | StreamsReader | ValueReader[Any])


class _AsyncReader(_Opened[Reader]):
    """Goes on as events arrive. One task at a time.

    A cancelled poll leaves the position before the events that were not handed out.
    """

    _polled = False

    async def _poll(self, poll: Callable[..., R], timeout: float) -> R:
        if self._polled:
            raise ConfigError("this reader is polled by another task already: use one reader for each task")
        self._polled = True
        try:
            return await run(poll, timeout)
        finally:
            self._polled = False

    @property
    def position(self) -> StreamCut:
        """Cut after the last event that was handed out. Raises ConfigError if there are several streams."""
        reader = self._known()
        if isinstance(reader, StreamsReader):
            raise ConfigError("this reader follows several streams: 'positions' has the cut of each")
        return reader.position

    @property
    def positions(self) -> list[StreamCut]:
        """Cut of each stream after the last event that was handed out."""
        return self._known().positions

    @property
    def at_end(self) -> bool:
        """Whether every stream was sealed and read to its end."""
        return self._known().at_end

    def __aiter__(self) -> Self:
        return self

    async def close(self) -> None:
        """Close the connections."""
        if self._made is not None:
            await run(self._made.close)


class AsyncTailReader(_AsyncReader[TailReader | StreamsReader]):
    """Reads one stream or several on and does not end; see TailReader."""

    async def poll(self, timeout: float) -> EventBatch | None:
        """The next events of one segment, or None if none arrived within ``timeout`` seconds; as TailReader."""
        return await self._poll((await self._core()).poll, timeout)

    async def __anext__(self) -> EventBatch:
        reader = await self._core()
        while not reader.at_end:
            batch = await self._poll(reader.poll, reader.timeout)
            if batch is not None:
                return batch
        raise StopAsyncIteration


class AsyncValueReader(_AsyncReader[ValueReader[T]]):
    """Reads the values of events as they arrive; see ValueReader."""

    async def poll(self, timeout: float) -> list[T]:
        """The next values, all of one segment; none if none arrived within ``timeout`` seconds; as ValueReader."""
        return await self._poll((await self._core()).poll, timeout)

    async def __anext__(self) -> T:
        reader = await self._core()
        while not reader.at_end:
            if reader.has_events or await self._poll(reader.fetch, reader.timeout):
                return reader.take()
        raise StopAsyncIteration


# ---------------------------------------------------------------- writing


class AsyncEventWriter(_Opened[EventWriter[T]]):
    """Writes events to one stream; any number of tasks may use it, one background task. See EventWriter.

    A cancelled ``write`` has not taken its event; a cancelled ``flush`` leaves the events on their way; a cancelled
    ``close``, or end of the block, goes on in the background, and the client's own end waits for it. A column of over
    16 MiB, which is written in pieces, may be taken in part when it is cancelled.
    """

    _taken = 0

    async def write(self, value: T, routing_key: str | None = None, *, key: object = None) -> None:
        """Write one event; waits only while too many bytes are not yet durable. See EventWriter.write."""
        writer = self._made or await self._core()
        self._taken += 1
        if not self._taken % _WRITES:
            await asyncio.sleep(0)
        if writer.is_free:  # so that it does not wait
            writer.write(value, routing_key, key=key)
        else:
            await run(writer.write, value, routing_key, key=key)

    write_batch = _call(EventWriter.write_batch)
    write_column = _call(EventWriter.write_column)
    flush = _call(EventWriter.flush)
    note_time = _call(EventWriter.note_time)

    async def close(self, timeout: float | None = None) -> None:
        """Flush within ``timeout`` seconds, and end the background task."""
        if self._made is not None:
            await run_to_the_end(self._ending, self._made.close, timeout)

    async def abandon(self) -> None:
        """End the background task without a flush; events that are not durable yet may be lost."""
        if self._made is not None:
            await run(self._made.abandon)


# ---------------------------------------------------------------- transactions


class AsyncTransaction(_Opened[Transaction]):
    """A transaction known by its id; see Transaction. A cancelled commit may have been done: ask for the status."""

    @property
    def id(self) -> uuid.UUID:
        """Id by which any process may commit or abort it."""
        return self._known().id

    @property
    def stream(self) -> StreamName:
        """The stream that it is on."""
        return self._known().stream

    status = _call(Transaction.status)
    ping = _call(Transaction.ping)
    commit = _call(Transaction.commit)
    abort = _call(Transaction.abort)


class AsyncOpenTransaction(AsyncTransaction, Generic[T]):
    """A transaction that takes events; as a context it commits at the end, or aborts on an error. See OpenTransaction.

    A cancelled ``commit`` can be repeated, and so can ``detach``. The end of the block, once begun, goes on in the
    background when it is cancelled.
    """

    _taken = 0

    async def write(self, value: T, routing_key: str | None = None, *, key: object = None) -> None:
        """Write one event; waits only while too many bytes are not yet durable. See OpenTransaction.write."""
        transaction: Any = self._made or await self._core()
        self._taken += 1
        if not self._taken % _WRITES:
            await asyncio.sleep(0)
        if transaction.is_free:
            transaction.write(value, routing_key, key=key)
        else:
            await run(transaction.write, value, routing_key, key=key)

    write_batch = _call(OpenTransaction.write_batch)
    write_column = _call(OpenTransaction.write_column)
    flush = _call(OpenTransaction.flush)
    detach = _call(OpenTransaction.detach)
    commit = _call(OpenTransaction.commit)
    abort = _call(OpenTransaction.abort)


class AsyncTransactionalWriter(_Opened[TransactionalWriter[T]]):
    """Begins transactions on one stream; see TransactionalWriter."""

    def begin(self) -> AsyncOpenTransaction[T]:
        """A new transaction, which begins when it is awaited, entered by ``async with``, or first used."""
        return AsyncOpenTransaction(self._client, lambda: self._writer().begin())

    def _writer(self) -> TransactionalWriter[T]:
        if self._made is None:
            self._made = self._make()
        return self._made

    close = _call(TransactionalWriter.close)


class AsyncLeaseKeeper(_Opened[LeaseKeeper]):
    """Pings transactions until they are given back; one background task while it has any. See LeaseKeeper."""

    def __init__(self, interval: float | None = None) -> None:
        """``interval`` is the seconds between two pings of a transaction; by default it follows from its lease."""
        super().__init__(None, lambda: LeaseKeeper(interval))

    async def add(self, transaction: AsyncTransaction) -> None:
        """Keep a transaction open by pings of its own lease; the first one comes at once. See LeaseKeeper.add."""
        await run((await self._core()).add, await transaction._core())

    async def discard(self, transaction: AsyncTransaction) -> None:
        """Ping a transaction no more; forget its failure, if it had one."""
        await run((await self._core()).discard, await transaction._core())

    @property
    def failures(self) -> dict[uuid.UUID, ConnectorError]:
        """The transactions that could be kept open no longer, and why."""
        return {} if self._made is None else self._made.failures

    def check(self) -> None:
        """Raise the first failure, if there is one."""
        if self._made is not None:
            self._made.check()

    async def close(self) -> None:
        """Ping nothing more. The transactions stay open until their leases end."""
        if self._made is not None:
            await run(self._made.close)


# ---------------------------------------------------------------- the client


class WriterOptions(TypedDict, total=False):
    """Options of :meth:`PravegaClient.writer`."""

    router: EventRouter | None
    max_event_size: int
    max_in_flight: int
    timeout: float | None
    writer_id: str | None


class AsyncPravegaClient:
    """Connection to a Pravega cluster for coroutines of one event loop; the arguments are those of PravegaClient.

    Its calls have the names and arguments of PravegaClient's, and raise the same errors. What it has no call for,
    :meth:`run` does.
    """

    def __init__(self, config: PravegaConfig | str | None = None, **settings: Any) -> None:
        self._client = PravegaClient(config, **settings)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = set[asyncio.Future[Any]]()  # closings that were cancelled, and go on

    def _check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise ConfigError("this client belongs to another event loop: make one in each")

    if not TYPE_CHECKING:  # a type checker would take any name for known

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_"):
                getattr(self._client, name)  # which may say what is meant
                name = f"{name}: write await client.run(lambda plain: plain.{name}…), where plain is a PravegaClient"
            raise AttributeError(f"AsyncPravegaClient has no {name}")

    async def _core(self) -> PravegaClient:
        self._check_loop()
        return self._client

    async def run(self, function: Callable[Concatenate[PravegaClient, P], R], *args: P.args, **options: P.kwargs) -> R:
        """The result of ``function(client, …)``, where ``client`` is the plain client; what waits in it blocks nothing.

        For what has no call here: ``await client.run(lambda plain: plain.controller.scale_stream(…))``. What it makes
        (a synchronizer, say) is used by this method only.
        """
        return await run(function, await self._core(), *args, **options)

    @property
    def config(self) -> PravegaConfig:
        """Where the cluster is, and how it is reached."""
        return self._client.config

    @property
    def counters(self) -> Counters:
        """Counts of retries, reconnects, moved segments, refreshed tokens, outages."""
        return self._client.counters

    @property
    def trouble(self) -> str | None:
        """One line about an outage that goes on now, of 10 s or more; None when all is well."""
        return self._client.trouble

    def name(self, stream: Stream) -> StreamName:
        """The full name of a stream."""
        return self._client.name(stream)

    # ---------------------------------------------------------------- scopes, streams, places

    scopes = _call(PravegaClient.scopes)
    scope_exists = _call(PravegaClient.scope_exists)
    create_scope = _call(PravegaClient.create_scope)
    delete_scope = _call(PravegaClient.delete_scope)
    stream_exists = _call(PravegaClient.stream_exists)
    require_stream = _call(PravegaClient.require_stream)
    create_stream = _call(PravegaClient.create_stream)
    update_stream = _call(PravegaClient.update_stream)
    scale_stream = _call(PravegaClient.scale_stream)
    seal_stream = _call(PravegaClient.seal_stream)
    delete_stream = _call(PravegaClient.delete_stream)
    describe = _call(PravegaClient.describe)
    head = _call(PravegaClient.head)
    tail = _call(PravegaClient.tail)
    truncate = _call(PravegaClient.truncate)
    cut_at = _call(PravegaClient.cut_at)
    watermarks = _call(PravegaClient.watermarks)
    time_window = _call(PravegaClient.time_window)
    write = _call(PravegaClient.write)

    def streams(self, scope: str | None = None, *, internal: bool = False) -> AsyncEvents[StreamName]:
        """The streams of a scope, or of all; see PravegaClient.streams."""
        return AsyncEvents(self, lambda: self._client.streams(scope, internal=internal))

    # ---------------------------------------------------------------- events

    @overload
    def writer(
        self,
        stream: Stream,
        serializer: Literal["bytes"] | type[bytes] | None = None,
        **options: Unpack[WriterOptions],
    ) -> AsyncEventWriter[bytes]: ...

    @overload
    def writer(
        self, stream: Stream, serializer: Literal["string"] | type[str], **options: Unpack[WriterOptions]
    ) -> AsyncEventWriter[str]: ...

    @overload
    def writer(
        self, stream: Stream, serializer: SupportsSerialize[T], **options: Unpack[WriterOptions]
    ) -> AsyncEventWriter[T]: ...

    @overload
    def writer(self, stream: Stream, serializer: str, **options: Unpack[WriterOptions]) -> AsyncEventWriter[Any]: ...

    def writer(self, stream: Stream, serializer: Any = None, **options: Any) -> AsyncEventWriter[Any]:
        """A writer of events to a stream; see PravegaClient.writer. It opens when it is entered, awaited, or used."""
        return AsyncEventWriter(self, lambda: self._client.writer(stream, serializer, **options))

    @overload
    def transactions(
        self,
        stream: Stream,
        serializer: Literal["bytes"] | type[bytes] | None = None,
        *,
        lease: float = DEFAULT_LEASE,
        **options: Unpack[WriterOptions],
    ) -> AsyncTransactionalWriter[bytes]: ...

    @overload
    def transactions(
        self,
        stream: Stream,
        serializer: Literal["string"] | type[str],
        *,
        lease: float = DEFAULT_LEASE,
        **options: Unpack[WriterOptions],
    ) -> AsyncTransactionalWriter[str]: ...

    @overload
    def transactions(
        self,
        stream: Stream,
        serializer: SupportsSerialize[T],
        *,
        lease: float = DEFAULT_LEASE,
        **options: Unpack[WriterOptions],
    ) -> AsyncTransactionalWriter[T]: ...

    @overload
    def transactions(
        self, stream: Stream, serializer: str, *, lease: float = DEFAULT_LEASE, **options: Unpack[WriterOptions]
    ) -> AsyncTransactionalWriter[Any]: ...

    def transactions(
        self, stream: Stream, serializer: Any = None, *, lease: float = DEFAULT_LEASE, **options: Any
    ) -> AsyncTransactionalWriter[Any]:
        """A writer that begins transactions on a stream; see PravegaClient.transactions."""
        return AsyncTransactionalWriter(
            self, lambda: self._client.transactions(stream, serializer, lease=lease, **options)
        )

    def transaction(
        self, stream: Stream, transaction: uuid.UUID, *, lease: float = DEFAULT_LEASE, writer_id: str | None = None
    ) -> AsyncTransaction:
        """A transaction by its id, which any process may have begun; see PravegaClient.transaction."""
        known = self._client.transaction(stream, transaction, lease=lease, writer_id=writer_id)
        found = AsyncTransaction(self, lambda: known)
        found._made = known
        return found

    def read_columns(
        self, stream: Streams, *, start: Place | None = None, end: Place | None = None
    ) -> AsyncEvents[EventBatch]:
        """The events between two places as Arrow columns; see PravegaClient.read_columns."""
        return AsyncEvents(self, lambda: iter(self._client.read_columns(stream, start=start, end=end)), at_once=1)

    @overload
    def read(
        self,
        stream: Streams,
        serializer: Literal["bytes"] | type[bytes] | None = None,
        *,
        start: Place | None = None,
        end: Place | None = None,
        limit: int | None = None,
    ) -> AsyncEvents[bytes]: ...

    @overload
    def read(
        self,
        stream: Streams,
        serializer: Literal["string"] | type[str],
        *,
        start: Place | None = None,
        end: Place | None = None,
        limit: int | None = None,
    ) -> AsyncEvents[str]: ...

    @overload
    def read(
        self,
        stream: Streams,
        serializer: SupportsDeserialize[T],
        *,
        start: Place | None = None,
        end: Place | None = None,
        limit: int | None = None,
    ) -> AsyncEvents[T]: ...

    @overload
    def read(
        self,
        stream: Streams,
        serializer: str,
        *,
        start: Place | None = None,
        end: Place | None = None,
        limit: int | None = None,
    ) -> AsyncEvents[Any]: ...

    def read(self, stream: Streams, serializer: Any = None, **places: Any) -> AsyncEvents[Any]:
        """The events between two places one by one; see PravegaClient.read. Nothing is asked before the first step."""
        return AsyncEvents(self, lambda: self._client.read(stream, serializer, **places))

    @overload
    def follow(self, stream: Streams, serializer: None = None, *, start: Place | None = None) -> AsyncTailReader: ...

    @overload
    def follow(
        self, stream: Streams, serializer: Literal["bytes"] | type[bytes], *, start: Place | None = None
    ) -> AsyncValueReader[bytes]: ...

    @overload
    def follow(
        self, stream: Streams, serializer: Literal["string"] | type[str], *, start: Place | None = None
    ) -> AsyncValueReader[str]: ...

    @overload
    def follow(
        self, stream: Streams, serializer: SupportsDeserialize[T], *, start: Place | None = None
    ) -> AsyncValueReader[T]: ...

    @overload
    def follow(self, stream: Streams, serializer: str, *, start: Place | None = None) -> AsyncValueReader[Any]: ...

    def follow(
        self, stream: Streams, serializer: Any = None, *, start: Place | None = None
    ) -> AsyncTailReader | AsyncValueReader[Any]:
        """A reader that goes on as events arrive; see PravegaClient.follow. It opens when entered, awaited, or used."""
        kind: Any = AsyncTailReader if serializer is None else AsyncValueReader
        return kind(self, lambda: self._client.follow(stream, serializer, start=start))  # type: ignore[no-any-return]

    # ---------------------------------------------------------------- the end

    async def close(self) -> None:
        """Wait for closings that go on in the background, and close all connections."""
        try:
            if self._ending:
                await asyncio.wait(self._ending)
        finally:
            self._client.close()

    async def __aenter__(self) -> Self:
        self._check_loop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()
