"""The client for programs: write and read events of streams by name."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, Unpack, overload
from weakref import WeakSet

from pravega_connector import exactly_once, tables
from pravega_connector.client.reads import Reads
from pravega_connector.config import DEFAULT_FAILOVER_TIMEOUT, DEFAULT_TIMEOUT, PravegaConfig
from pravega_connector.core import arguments
from pravega_connector.core.arguments import NamedTable, Position, Stream, Streams
from pravega_connector.core.connection import ConnectionPool, Tls
from pravega_connector.core.events import MAX_EVENT_SIZE, RawEvents, SupportsSerialize
from pravega_connector.core.retry import ClusterHealth, Counters
from pravega_connector.errors import ConfigError, MalformedStreamCutError
from pravega_connector.metrics import attach_if_loaded
from pravega_connector.reader.positions import cuts_of
from pravega_connector.reader.watermarks import WatermarkLog
from pravega_connector.reader_groups.subscriber import Subscriber
from pravega_connector.single_segment.byte_stream import ByteReader, ByteWriter, RawByteReader, RawByteWriter
from pravega_connector.single_segment.revisioned import RevisionedStreamClient, SupportsBoth
from pravega_connector.single_segment.synchronizer import StateSynchronizer
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import StreamCut, StreamName
from pravega_connector.wire.names import group_of
from pravega_connector.writer.event_writer import EventWriter, WriterOptions
from pravega_connector.writer.transactions import DEFAULT_LEASE, Transaction, TransactionalWriter
from pravega_serde import after_fork

if TYPE_CHECKING:
    from pravega_connector.client.reader_group import ReaderGroup
    from pravega_connector.exactly_once import Decisions, StreamsTransaction
    from pravega_connector.tables import Table

T = TypeVar("T")
S = TypeVar("S")
I = TypeVar("I")  # noqa: E741 - a synchronizer's initial values and updates
U = TypeVar("U")

_WRITER_ARGUMENTS: Final = ("stream", "serializer", *WriterOptions.__annotations__)


@arguments.hinted
class PravegaClient(Reads):
    """Client of a Pravega cluster. Thread safe; it connects on first use.

    ``config`` is a PravegaConfig or a controller URI. ``settings`` are those of :meth:`PravegaConfig.resolve`, such as
    ``controller``, ``scope``, ``username``, ``password``. The environment provides missing settings.

    Until a server of the cluster has answered in this process, a call waits at most ``timeout`` seconds, so a wrong
    address fails soon. After that, the client retries: a call waits up to ``failover_timeout`` seconds for servers that
    fail, stall or move segments, and logs a warning after 10 s. With ``service=True``, ``failover_timeout`` applies
    from the first call. Use it for an unattended program that has reached the cluster before. A timeout that you pass
    to a call takes precedence over both.
    """

    def __init__(
        self,
        config: PravegaConfig | str | None = None,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        failover_timeout: float = DEFAULT_FAILOVER_TIMEOUT,
        service: bool = False,
        **settings: Any,
    ) -> None:
        arguments.seconds("timeout", timeout, optional=False)
        arguments.seconds("failover_timeout", failover_timeout, optional=False)
        config = _config(config, settings)
        attach_if_loaded()
        self.config = config
        self.health = ClusterHealth(timeout, failover_timeout, service=service)
        self.stores = SegmentStores(config, ConnectionPool(Tls.of(config), self.health), self.health)
        self._watermarks: dict[StreamName, WatermarkLog] = {}
        self._groups: WeakSet[ReaderGroup] = WeakSet()
        self._decisions: Decisions | None = None
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._watermarks, self._decisions = {}, None

    @property
    def counters(self) -> Counters:
        """Number of retries, reconnects, moved segments, refreshed tokens and outages."""
        return self.health.counters

    @property
    def trouble(self) -> str | None:
        """One line about the current outage if it has lasted 10 s or more, otherwise None."""
        return self.health.trouble

    # ---------------------------------------------------------------- places

    def truncate(self, stream: Stream | StreamCut, cut: StreamCut | str | None = None) -> None:
        """Delete all events before a cut.

        Call ``truncate(cut)``, or ``truncate(stream, "tail")`` with a position as in :meth:`read`. Raises
        MalformedStreamCutError for a cut after the tail. The controller would accept it, and readers would then lose
        all events that are written up to it.
        """
        if isinstance(stream, StreamCut) and cut is None:
            found = stream
        elif not isinstance(stream, StreamName | str) or cut is None:
            raise ConfigError(
                "truncate requires a StreamCut, or a stream and a position: truncate('scope/stream', 'tail')"
            )
        else:
            (found,) = cuts_of(self, [self.name(stream)], cut, "cut", default="head")
        infos = self.stores.segment_infos(found.stream, found.positions)
        for segment_id, offset in found.positions.items():
            if infos[segment_id].exists and offset > (end := infos[segment_id].write_offset):
                raise MalformedStreamCutError(
                    f"cannot truncate {found.stream} at offset {offset} of segment {segment_id}: it ends at {end}, "
                    "and events written before the cut would be lost; use a cut of the stream as it is now"
                )
        self.controller.truncate_stream(found)

    # ---------------------------------------------------------------- events

    @overload
    def writer(
        self,
        stream: Stream,
        serializer: Literal["bytes"] | type[bytes] | None = None,
        **options: Unpack[WriterOptions],
    ) -> EventWriter[bytes]: ...

    @overload
    def writer(
        self,
        stream: Stream,
        serializer: Literal["string"] | type[str],
        **options: Unpack[WriterOptions],
    ) -> EventWriter[str]: ...

    @overload
    def writer(
        self,
        stream: Stream,
        serializer: SupportsSerialize[T],
        **options: Unpack[WriterOptions],
    ) -> EventWriter[T]: ...

    @overload
    def writer(
        self,
        stream: Stream,
        serializer: str,
        **options: Unpack[WriterOptions],
    ) -> EventWriter[Any]: ...

    def writer(self, stream: Stream, serializer: Any = None, **options: Any) -> EventWriter[Any]:
        """Return a writer of events to a stream. Without a serializer, it accepts bytes.

        ``serializer`` is a serializer, the name of a format that needs no options, or ``str`` or ``bytes``. ``router``
        returns the routing keys. ``max_event_size`` and ``max_in_flight`` are in bytes. ``timeout`` is in seconds, by
        default the client's. ``writer_id`` is the name under which the writer notes event time. With
        ``automatically_note_time``, it notes the clock's time every 5 s, as Java's writer does. Raises
        StreamNotFoundError, StreamSealedError, ConfigError.
        """
        arguments.only("writer", options, _WRITER_ARGUMENTS)
        name, chosen = self.name(stream), arguments.serializer_of(serializer, "serialize")
        return EventWriter(self.stores, name, chosen or RawEvents(), **options)

    def write(
        self,
        stream: Stream,
        value: Any,
        serializer: SupportsSerialize[Any] | str | type | None = None,
        *,
        routing_key: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Write one event, which is durable on return.

        Each call creates a writer and waits for the server. For more than a few events, use a :meth:`writer`. Raises
        the errors of a writer.
        """
        with self.writer(stream, serializer, timeout=timeout) as writer:
            writer.write(value, routing_key)

    @overload
    def transactions(
        self,
        stream: Stream,
        serializer: Literal["bytes"] | type[bytes] | None = None,
        *,
        lease: float = DEFAULT_LEASE,
        **options: Unpack[WriterOptions],
    ) -> TransactionalWriter[bytes]: ...

    @overload
    def transactions(
        self,
        stream: Stream,
        serializer: Literal["string"] | type[str],
        *,
        lease: float = DEFAULT_LEASE,
        **options: Unpack[WriterOptions],
    ) -> TransactionalWriter[str]: ...

    @overload
    def transactions(
        self,
        stream: Stream,
        serializer: SupportsSerialize[T],
        *,
        lease: float = DEFAULT_LEASE,
        **options: Unpack[WriterOptions],
    ) -> TransactionalWriter[T]: ...

    @overload
    def transactions(
        self,
        stream: Stream,
        serializer: str,
        *,
        lease: float = DEFAULT_LEASE,
        **options: Unpack[WriterOptions],
    ) -> TransactionalWriter[Any]: ...

    def transactions(
        self, stream: Stream, serializer: Any = None, *, lease: float = DEFAULT_LEASE, **options: Any
    ) -> TransactionalWriter[Any]:
        """Return a writer that begins transactions on a stream. Without a serializer, they accept bytes.

        ``lease`` is the number of seconds that a transaction stays open without a ping. The other options are those of
        :meth:`writer`.
        """
        known = [name for name in _WRITER_ARGUMENTS if name != "automatically_note_time"]  # a commit notes a time
        arguments.only("transactions", options, (*known, "lease"))
        name, chosen = self.name(stream), arguments.serializer_of(serializer, "serialize")
        return TransactionalWriter(self.stores, name, chosen or RawEvents(), lease=lease, **options)

    def transaction(
        self,
        stream: Stream,
        transaction: uuid.UUID,
        *,
        lease: float = DEFAULT_LEASE,
        writer_id: str | None = None,
    ) -> Transaction:
        """Return a transaction of any process by its id, to commit, abort or ping it, or to check its status."""
        if not isinstance(transaction, uuid.UUID):
            raise ConfigError(f"a transaction id must be a uuid.UUID, not {transaction!r}")
        arguments.seconds("lease", lease)
        return Transaction(self.controller, self.name(stream), transaction, lease, writer_id)

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
    ) -> StreamsTransaction[Any]:
        """Begin a transaction over several streams: its events become visible in all of them, or in none.

        ``streams`` are the streams, or a mapping from each stream to its serializer. ``serializer`` is for all streams
        of a list. ``ledger`` is the stream that records the decisions; it is created if it does not exist. ``app_id``
        identifies the program: use it in one process at a time, and in each run of the program. The call finishes what
        an earlier process of the program has left. Then ``version`` is the number of the new transaction.

        ``lease`` is the number of seconds that the transaction stays open without a ping. ``timeout`` is in seconds,
        for each write. Raises ConfigError, TornBatchError, OutcomeUnknownError, and InvalidNameError for a stream that
        has no events, such as another ledger.
        """
        named = (
            streams
            if isinstance(streams, Mapping)
            else dict.fromkeys(arguments.stream_names(streams, self.config.scope), serializer)
        )
        if isinstance(streams, Mapping):
            arguments.stream_names(list(streams), self.config.scope)
            if serializer is not None:
                raise ConfigError("the streams are a mapping to serializers: leave out the argument 'serializer'")
        serializers = {self.name(stream): arguments.serializer_of(each, "serialize") for stream, each in named.items()}
        name = self.name(ledger)
        if name in serializers:
            raise ConfigError(f"stream {name} cannot be its own ledger: set ledger to the name of another stream")
        if not isinstance(app_id, str) or not app_id:
            raise ConfigError(f"argument 'app_id' must be a text that identifies the program, not {app_id!r}")
        arguments.seconds("lease", lease, optional=False)
        return exactly_once.StreamsTransaction(
            self._decided_by(),
            serializers,
            ledger=name,
            app_id=app_id,
            lease=lease,
            max_event_size=max_event_size,
            timeout=timeout,
            scope=self.config.scope,
        )

    def decided_cut(
        self, streams: Streams, *, ledger: Stream | None = None, timeout: float | None = None
    ) -> list[StreamCut]:
        """Return a stream cut for each stream, near the tail, so that no batch is on both sides of the cuts.

        A batch of Spark's sink, or a transaction over several streams, is decided at one moment and becomes visible
        stream by stream. Read to these cuts to see whole batches only: ``client.read(streams, end=cuts)``. ``ledger``
        is the stream with the decisions, for one stream by default ``<stream>-ledger``. Waits while a batch is
        partially visible. Raises DeadlineExceededError after ``timeout`` seconds, by default the client's, and
        StreamNotFoundError, ConfigError.
        """
        arguments.seconds("timeout", timeout)
        names = arguments.stream_names(streams, self.config.scope)
        if ledger is None and len(names) > 1:
            raise ConfigError("argument 'ledger' must name the stream with the decisions over several streams")
        name = exactly_once.ledger_name(names[0]) if ledger is None else self.name(ledger)
        exactly_once.require_ledger(self, name, *names)
        seconds = self.stores.timeout if timeout is None else timeout
        return exactly_once.decided_cuts(self.stores, self._decided_by().ledger(name), names, seconds)

    def _decided_by(self) -> Decisions:
        if self._decisions is None:
            self._decisions = exactly_once.Decisions(self.stores)
        return self._decisions

    # ---------------------------------------------------------------- streams of one segment

    @overload
    def revisioned(
        self, stream: Stream, serializer: Literal["bytes"] | type[bytes] | None = None
    ) -> RevisionedStreamClient[bytes]: ...

    @overload
    def revisioned(self, stream: Stream, serializer: Literal["string"] | type[str]) -> RevisionedStreamClient[str]: ...

    @overload
    def revisioned(self, stream: Stream, serializer: SupportsBoth[T]) -> RevisionedStreamClient[T]: ...

    @overload
    def revisioned(self, stream: Stream, serializer: str) -> RevisionedStreamClient[Any]: ...

    def revisioned(self, stream: Stream, serializer: Any = None) -> RevisionedStreamClient[Any]:
        """Return the entries of a stream with one segment, with their revisions. Without a serializer, they are bytes.

        Raises StreamNotFoundError, StreamSealedError, or ConfigError for a stream with several segments.
        """
        chosen = arguments.serializer_of(serializer, "serialize", "deserialize")
        return RevisionedStreamClient(self.stores, self.name(stream), chosen or RawEvents())

    def synchronizer(
        self,
        stream: Stream,
        *,
        create: Callable[[I], S],
        apply: Callable[[S, U], S],
        init_serializer: SupportsBoth[I] | str,
        update_serializer: SupportsBoth[U] | str,
    ) -> StateSynchronizer[S, I, U]:
        """Return a state that processes share through a stream with one segment; see StateSynchronizer."""
        both = ("serialize", "deserialize")
        return StateSynchronizer(
            self.stores,
            self.name(stream),
            create=create,
            apply=apply,
            init_serializer=arguments.serializer_of(init_serializer, *both),
            update_serializer=arguments.serializer_of(update_serializer, *both),
        )

    # ---------------------------------------------------------------- key-value tables

    @overload
    def table(
        self,
        table: NamedTable,
        *,
        key: SupportsBoth[Any] | str | type | None = None,
        value: Literal["bytes"] | type[bytes] | None = None,
        secondary: SupportsBoth[Any] | str | type | None = None,
    ) -> Table[bytes]: ...

    @overload
    def table(
        self,
        table: NamedTable,
        *,
        key: SupportsBoth[Any] | str | type | None = None,
        value: Literal["string"] | type[str],
        secondary: SupportsBoth[Any] | str | type | None = None,
    ) -> Table[str]: ...

    @overload
    def table(
        self,
        table: NamedTable,
        *,
        key: SupportsBoth[Any] | str | type | None = None,
        value: SupportsBoth[T],
        secondary: SupportsBoth[Any] | str | type | None = None,
    ) -> Table[T]: ...

    @overload
    def table(
        self,
        table: NamedTable,
        *,
        key: SupportsBoth[Any] | str | type | None = None,
        value: str,
        secondary: SupportsBoth[Any] | str | type | None = None,
    ) -> Table[Any]: ...

    def table(self, table: NamedTable, *, key: Any = None, value: Any = None, secondary: Any = None) -> Table[Any]:
        """Open a key-value table, which Java's clients can share.

        ``key`` and ``value`` are the serializers of keys and values, as for :meth:`writer`; without one, they are
        bytes. ``secondary`` is the serializer of secondary keys, by default that of ``key``. Raises TableNotFoundError.
        """
        both = ("serialize", "deserialize")
        keys = arguments.serializer_of(key, *both) or RawEvents()
        return tables.Table(
            self.stores,
            self.table_name(table),
            key=keys,
            secondary=arguments.serializer_of(secondary, *both) or keys,
            value=arguments.serializer_of(value, *both) or RawEvents(),
        )

    # ---------------------------------------------------------------- streams of bytes

    def byte_reader(self, stream: Stream, start: int | None = None, *, wait: float = 0.0) -> ByteReader:
        """Return a file object that reads the bytes of a stream, as Java's ``ByteStreamReader`` does.

        It is an ``io.BufferedReader`` with the methods ``head()``, ``tail()`` and ``available()``.
        It starts at an offset, by default at the stream's head. At the end of the data it waits up to ``wait`` seconds
        for more. Raises StreamNotFoundError, or ConfigError for a stream with several segments. Reading raises
        DataLossError for truncated bytes, and ConnectorErrors.
        """
        arguments.count("start", start)
        arguments.wait("wait", wait)
        return ByteReader(RawByteReader(self.stores, self.name(stream), start, wait))

    def byte_writer(self, stream: Stream) -> ByteWriter:
        """Return a file object that appends bytes to a stream, as Java's ``ByteStreamWriter`` does.

        It is an ``io.BufferedWriter`` with the methods ``head()``, ``tail()`` and ``drop_before(offset)``.
        All bytes are durable when ``flush`` or ``close`` returns. Raises StreamNotFoundError, StreamSealedError, or
        ConfigError for a stream with several segments. Writing raises OutcomeUnknownError, ConnectorErrors.
        """
        return ByteWriter(RawByteWriter(self.stores, self.name(stream)))

    def subscriber(self, stream: Stream, name: str) -> Subscriber:
        """Return a named reader whose published position lets the server truncate before it. It creates nothing yet."""
        return Subscriber(self.stores, self.name(stream), name)

    def reader_group(
        self,
        name: Stream,
        streams: Streams | None = None,
        *,
        start: Position | None = None,
        end: Position | None = None,
        retention: str = "none",
        checkpoint_interval: float | None = 30.0,
        refresh: float = 3.0,
        max_outstanding: int = 3,
    ) -> ReaderGroup:
        """Create or join a reader group, which Java's readers can join too.

        With ``streams``, the group is created, unless it exists with the same configuration. Without, it must exist.
        ``start`` and ``end`` are positions as in :meth:`read`. The default start is the head of each stream, and
        without an end the group reads indefinitely. ``checkpoint_interval`` and ``refresh`` are in seconds. Without
        checkpoints (None), no segment moves to another reader. ``retention`` is ``none``, ``manual``, or ``automatic``
        at each checkpoint. Raises ReaderGroupError for a group with another configuration, or a missing one.
        """
        from pravega_connector.client.reader_group import open_group  # noqa: PLC0415 - most clients have no group

        group = open_group(
            self,
            name,
            streams,
            start=start,
            end=end,
            retention=retention,
            checkpoint_interval=checkpoint_interval,
            refresh=refresh,
            max_outstanding=max_outstanding,
        )
        self._groups.add(group)
        return group

    def reader_groups(self, scope: str | None = None) -> Iterator[str]:
        """Yield the reader groups of a scope, by default the configured one, as ``scope/group``.

        The streams of their states identify them, because the controller has no call that lists them. Subscribers are
        groups too. Raises ScopeNotFoundError on the first step.
        """
        for stream in self.streams(scope, internal=True):
            if (group := group_of(stream)) is not None:
                yield f"{stream.scope}/{group}"

    def close(self) -> None:
        """Close all connections, also those of reader groups. Close writers and readers yourself."""
        for group in self._groups:
            group.close()
        if self._decisions is not None:
            self._decisions.close()
        self.stores.close()

    def __repr__(self) -> str:
        scope = f", scope {self.config.scope}" if self.config.scope else ""
        trouble = f", {self.trouble}" if self.trouble else ""
        return f"PravegaClient({self.config.controller}{scope}{trouble})"

    def __enter__(self) -> PravegaClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _config(config: Any, settings: dict[str, Any]) -> PravegaConfig:
    """Return the configuration for a client's first argument and settings. Raises ConfigError."""
    if isinstance(config, PravegaConfig):
        if settings:
            raise ConfigError(f"the setting {next(iter(settings))!r} belongs to the PravegaConfig: set it there")
        return config
    if config is not None and not isinstance(config, str):
        raise ConfigError(
            "a client requires a controller URI such as 'tcp://localhost:9090' or a PravegaConfig, not a "
            f"{type(config).__name__}"
        )
    if config is not None and "controller" in settings:
        raise ConfigError("the controller is set twice, by position and by name: set it once")
    return PravegaConfig.resolve(**({"controller": config} | settings))
