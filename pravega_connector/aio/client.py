"""The client for asyncio: the calls of :class:`PravegaClient` as coroutines, around one plain client.

Each call runs the plain client's function with :func:`event_loop.run`. ``objects`` has the readers, writers and
transactions, and describes cancellation.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    overload,
)

from pravega_connector.aio.byte_streams import AsyncByteReader, AsyncByteWriter
from pravega_connector.aio.event_loop import run
from pravega_connector.aio.objects import (
    AsyncEvents,
    AsyncEventWriter,
    AsyncTailReader,
    AsyncTransaction,
    AsyncTransactionalWriter,
    AsyncValueReader,
    Home,
    as_coroutine,
)
from pravega_connector.aio.reader_groups import AsyncReaderGroup
from pravega_connector.aio.streams_transaction import AsyncStreamsTransaction
from pravega_connector.aio.tables import AsyncTable
from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.core.arguments import (
    FollowOptions,
    KeyOptions,
    NamedTable,
    Position,
    ReadOptions,
    Stream,
    Streams,
)
from pravega_connector.core.connection import ProcessBound
from pravega_connector.core.events import MAX_EVENT_SIZE, SupportsDeserialize, SupportsSerialize
from pravega_connector.core.retry import Counters
from pravega_connector.reader.slices import EventBatch
from pravega_connector.wire import StreamName, TableName
from pravega_connector.writer.event_writer import WriterOptions
from pravega_connector.writer.transactions import DEFAULT_LEASE

__all__ = ["AsyncPravegaClient"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class AsyncPravegaClient(ProcessBound):
    """Client of a Pravega cluster for the coroutines of one event loop; the arguments are those of PravegaClient.

    Its calls have the names and arguments of PravegaClient's and raise the same errors. For other calls, use
    :meth:`run`.
    """

    def __init__(self, config: PravegaConfig | str | None = None, **settings: Any) -> None:
        self._client = PravegaClient(config, **settings)
        self._home = Home()

    if not TYPE_CHECKING:  # a type checker would take any name for known

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_"):
                getattr(self._client, name)  # which may say what is meant
                name = f"{name}: write await client.run(lambda plain: plain.{name}…), where plain is a PravegaClient"
            raise AttributeError(f"AsyncPravegaClient has no {name}")

    async def _core(self) -> PravegaClient:
        self._home.check()
        return self._client

    async def run(self, function: Callable[Concatenate[PravegaClient, P], R], *args: P.args, **options: P.kwargs) -> R:
        """Return the result of ``function(client, …)``, where ``client`` is the plain client.

        Its waits do not block the loop. Use it for calls that this class does not have: ``await client.run(lambda
        plain: plain.controller.scale_stream(…))``. Use the objects that it returns, such as a synchronizer, only with
        this method.
        """
        return await run(function, await self._core(), *args, **options)

    @property
    def config(self) -> PravegaConfig:
        """Address and settings of the cluster."""
        return self._client.config

    @property
    def counters(self) -> Counters:
        """Number of retries, reconnects, moved segments, refreshed tokens and outages."""
        return self._client.counters

    @property
    def trouble(self) -> str | None:
        """One line about the current outage if it has lasted 10 s or more, otherwise None."""
        return self._client.trouble

    def name(self, stream: Stream) -> StreamName:
        """Return the full name of a stream."""
        return self._client.name(stream)

    # ---------------------------------------------------------------- scopes, streams, places

    scopes = as_coroutine(PravegaClient.scopes)
    scope_exists = as_coroutine(PravegaClient.scope_exists)
    create_scope = as_coroutine(PravegaClient.create_scope)
    delete_scope = as_coroutine(PravegaClient.delete_scope)
    stream_exists = as_coroutine(PravegaClient.stream_exists)
    require_stream = as_coroutine(PravegaClient.require_stream)
    create_stream = as_coroutine(PravegaClient.create_stream)
    update_stream = as_coroutine(PravegaClient.update_stream)
    scale_stream = as_coroutine(PravegaClient.scale_stream)
    seal_stream = as_coroutine(PravegaClient.seal_stream)
    delete_stream = as_coroutine(PravegaClient.delete_stream)
    describe = as_coroutine(PravegaClient.describe)
    head = as_coroutine(PravegaClient.head)
    tail = as_coroutine(PravegaClient.tail)
    truncate = as_coroutine(PravegaClient.truncate)
    decided_cut = as_coroutine(PravegaClient.decided_cut)
    cut_at = as_coroutine(PravegaClient.cut_at)
    watermarks = as_coroutine(PravegaClient.watermarks)
    time_window = as_coroutine(PravegaClient.time_window)
    write = as_coroutine(PravegaClient.write)
    fetch = as_coroutine(PravegaClient.fetch)
    fetch_all = as_coroutine(PravegaClient.fetch_all)
    create_table = as_coroutine(PravegaClient.create_table)
    delete_table = as_coroutine(PravegaClient.delete_table)
    table_exists = as_coroutine(PravegaClient.table_exists)
    table_config = as_coroutine(PravegaClient.table_config)

    def streams(
        self, scope: str | None = None, *, tag: str | None = None, internal: bool = False
    ) -> AsyncEvents[StreamName]:
        """Yield the streams of a scope, by default the configured one; see PravegaClient.streams."""
        return AsyncEvents(self._home, lambda: self._client.streams(scope, tag=tag, internal=internal))

    def tables(self, scope: str | None = None) -> AsyncEvents[TableName]:
        """Yield the key-value tables of a scope, by default the configured one; see PravegaClient.tables."""
        return AsyncEvents(self._home, lambda: self._client.tables(scope))

    def table(self, table: NamedTable, **serializers: Any) -> AsyncTable[Any]:
        """Return a key-value table; see PravegaClient.table. It opens when entered, awaited or used."""
        return AsyncTable(self._home, lambda: self._client.table(table, **serializers))

    def byte_reader(self, stream: Stream, start: int | None = None, *, wait: float = 0.0) -> AsyncByteReader:
        """Return a reader of the bytes of a stream; see PravegaClient.byte_reader. It opens when entered or used."""
        return AsyncByteReader(self._home, lambda: self._client.byte_reader(stream, start, wait=wait))

    def byte_writer(self, stream: Stream) -> AsyncByteWriter:
        """Return a writer of bytes to a stream; see PravegaClient.byte_writer. It opens when entered or used."""
        return AsyncByteWriter(self._home, lambda: self._client.byte_writer(stream))

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
        """Return a writer of events to a stream; see PravegaClient.writer. It opens when entered, awaited or used."""
        return AsyncEventWriter(self._home, lambda: self._client.writer(stream, serializer, **options))

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
        """Return a writer that begins transactions on a stream; see PravegaClient.transactions."""
        return AsyncTransactionalWriter(
            self._home, lambda: self._client.transactions(stream, serializer, lease=lease, **options)
        )

    def transaction(
        self, stream: Stream, transaction: uuid.UUID, *, lease: float = DEFAULT_LEASE, writer_id: str | None = None
    ) -> AsyncTransaction:
        """Return a transaction of any process by its id; see PravegaClient.transaction."""
        known = self._client.transaction(stream, transaction, lease=lease, writer_id=writer_id)
        found = AsyncTransaction(self._home, lambda: known)
        found._made = known
        return found

    def transaction_over(
        self,
        streams: Iterable[Stream] | Mapping[Stream, SupportsSerialize[Any] | str | type | None],
        serializer: SupportsSerialize[Any] | str | type | None = None,
        *,
        ledger: Stream,
        app_id: str,
        lease: float = DEFAULT_LEASE,
        max_event_size: int = MAX_EVENT_SIZE,
        timeout: float | None = None,
    ) -> AsyncStreamsTransaction:
        """Return a transaction over several streams; see PravegaClient.transaction_over.

        It begins when it is awaited, entered with ``async with``, or first used.
        """
        return AsyncStreamsTransaction(
            self._home,
            lambda: self._client.transaction_over(
                streams,
                serializer,
                ledger=ledger,
                app_id=app_id,
                lease=lease,
                max_event_size=max_event_size,
                timeout=timeout,
            ),
        )

    def read_columns(
        self,
        stream: Streams,
        *,
        start: Position | None = None,
        end: Position | None = None,
        **by_key: Unpack[KeyOptions],
    ) -> AsyncEvents[EventBatch]:
        """Return the events between two positions as Arrow columns; see PravegaClient.read_columns."""
        return AsyncEvents(
            self._home, lambda: iter(self._client.read_columns(stream, start=start, end=end, **by_key)), at_once=1
        )

    @overload
    def read(
        self,
        stream: Streams,
        serializer: Literal["bytes"] | type[bytes] | None = None,
        **options: Unpack[ReadOptions],
    ) -> AsyncEvents[bytes]: ...

    @overload
    def read(
        self,
        stream: Streams,
        serializer: Literal["string"] | type[str],
        **options: Unpack[ReadOptions],
    ) -> AsyncEvents[str]: ...

    @overload
    def read(
        self,
        stream: Streams,
        serializer: SupportsDeserialize[T],
        **options: Unpack[ReadOptions],
    ) -> AsyncEvents[T]: ...

    @overload
    def read(
        self,
        stream: Streams,
        serializer: str,
        **options: Unpack[ReadOptions],
    ) -> AsyncEvents[Any]: ...

    def read(self, stream: Streams, serializer: Any = None, **places: Any) -> AsyncEvents[Any]:
        """Yield the events between two positions one by one; see PravegaClient.read.

        It requests nothing before the first step.
        """
        return AsyncEvents(self._home, lambda: self._client.read(stream, serializer, **places))

    @overload
    def follow(self, stream: Streams, serializer: None = None, **options: Unpack[FollowOptions]) -> AsyncTailReader: ...

    @overload
    def follow(
        self, stream: Streams, serializer: Literal["bytes"] | type[bytes], **options: Unpack[FollowOptions]
    ) -> AsyncValueReader[bytes]: ...

    @overload
    def follow(
        self, stream: Streams, serializer: Literal["string"] | type[str], **options: Unpack[FollowOptions]
    ) -> AsyncValueReader[str]: ...

    @overload
    def follow(
        self, stream: Streams, serializer: SupportsDeserialize[T], **options: Unpack[FollowOptions]
    ) -> AsyncValueReader[T]: ...

    @overload
    def follow(self, stream: Streams, serializer: str, **options: Unpack[FollowOptions]) -> AsyncValueReader[Any]: ...

    def follow(
        self, stream: Streams, serializer: Any = None, **options: Any
    ) -> AsyncTailReader | AsyncValueReader[Any]:
        """Return a reader of events as they arrive; see PravegaClient.follow.

        It opens when entered, awaited or used.
        """
        kind: Any = AsyncTailReader if serializer is None else AsyncValueReader
        return kind(self._home, lambda: self._client.follow(stream, serializer, **options))  # type: ignore[no-any-return]

    # ---------------------------------------------------------------- reader groups

    def reader_group(self, name: Stream, streams: Streams | None = None, **settings: Any) -> AsyncReaderGroup:
        """Return a reader group; see PravegaClient.reader_group.

        It is created or joined when entered, awaited or used.
        """
        return AsyncReaderGroup(self._home, lambda: self._client.reader_group(name, streams, **settings))

    def reader_groups(self, scope: str | None = None) -> AsyncEvents[str]:
        """Yield the reader groups of a scope; see PravegaClient.reader_groups."""
        return AsyncEvents(self._home, lambda: self._client.reader_groups(scope))

    # ---------------------------------------------------------------- the end

    async def close(self) -> None:
        """Wait for objects that close in the background, and close all connections."""
        ending = self._home.ending
        try:
            if ending:
                await asyncio.wait(ending)
        finally:
            self._client.close()

    async def __aenter__(self) -> Self:
        self._home.check()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()
