"""The client for programs: streams by name, events in and out."""

from __future__ import annotations

import io
import ssl
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from types import TracebackType
from typing import Any, TypeVar, overload

from pravega_serde import OnError, Serializer
from pravega_serde.routing import EventRouter

from ..config import PravegaConfig
from ..errors import ConfigError, MalformedStreamCutError, StreamNotFoundError
from ..wire import StreamCut, StreamName, Watermark
from .byte_stream import BUFFER_SIZE, RawByteReader, RawByteWriter
from .connection import ConnectionPool, Tls
from .controller import ControllerClient
from .controller_values import RetentionPolicy, ScalingPolicy
from .event_columns import EventColumns
from .event_writer import MAX_IN_FLIGHT, EventWriter
from .events import MAX_EVENT_SIZE, RawEvents, SupportsSerialize
from .health import DEFAULT_FAILOVER_TIMEOUT, DEFAULT_TIMEOUT, ClusterHealth, Counters
from .lineage import tail_cut
from .revisioned import RevisionedStreamClient, SupportsBoth
from .slices import EventBatch, slices_between
from .stores import SegmentStores
from .subscriber import Subscriber
from .synchronizer import StateSynchronizer
from .tail import TailReader
from .transactions import DEFAULT_LEASE, Transaction, TransactionalWriter
from .watermarks import TimeWindow, WatermarkLog, cut_at

__all__ = ["PravegaClient"]

T = TypeVar("T")
S = TypeVar("S")
I = TypeVar("I")  # noqa: E741 - a synchronizer's initial values and updates
U = TypeVar("U")


class PravegaClient:
    """Connection to a Pravega cluster; thread safe, cheap to make: nothing is opened before it is needed.

    ``config`` is a PravegaConfig or a controller URI. Until a server of the cluster has answered in this process, a
    call may take ``timeout`` seconds: a wrong address is an error within it. From then on the client goes on by itself,
    and a call waits up to ``failover_timeout`` seconds for servers that fail, freeze, or hand segments over; it logs a
    warning after 10 s. ``service`` goes on from the start: for what runs unattended and has reached the cluster before.
    A timeout that is given to a call rules over both.
    """

    def __init__(
        self,
        config: PravegaConfig | str | None = None,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        failover_timeout: float = DEFAULT_FAILOVER_TIMEOUT,
        service: bool = False,
    ) -> None:
        if not isinstance(config, PravegaConfig):
            config = PravegaConfig.resolve(controller=config)
        self.config = config
        self.health = ClusterHealth(timeout, failover_timeout, service=service)
        self.controller = ControllerClient(config, health=self.health)
        self.stores = SegmentStores(self.controller, ConnectionPool(_tls(config), self.health), self.health)
        self._watermarks: dict[StreamName, WatermarkLog] = {}

    @property
    def counters(self) -> Counters:
        """Counts of retries, reconnects, moved segments, refreshed tokens, outages."""
        return self.health.counters

    @property
    def trouble(self) -> str | None:
        """One line about an outage that goes on now, of 10 s or more; None when all is well."""
        return self.health.trouble

    # ---------------------------------------------------------------- streams

    def name(self, stream: StreamName | str) -> StreamName:
        """The full name of a stream: ``scope/stream``, or ``stream`` in the configured scope."""
        if isinstance(stream, StreamName):
            return stream
        if "/" not in stream and self.config.scope:
            return StreamName(self.config.scope, stream)
        return StreamName.parse(stream)

    def create_stream(
        self,
        stream: StreamName | str,
        scaling: ScalingPolicy | int = 1,
        retention: RetentionPolicy | None = None,
    ) -> bool:
        """Create a stream, and its scope if need be; False if the stream was there already.

        ``scaling`` is a policy or a fixed number of segments.
        """
        name = self.name(stream)
        policy = ScalingPolicy.fixed(scaling) if isinstance(scaling, int) else scaling
        self.controller.create_scope(name.scope)
        return self.controller.create_stream(name, policy, retention)

    def head(self, stream: StreamName | str) -> StreamCut:
        """Cut before the first event that the stream still holds."""
        return self.controller.head_cut(self.name(stream))

    def tail(self, stream: StreamName | str) -> StreamCut:
        """Cut after the last event at this moment."""
        return tail_cut(self.stores, self.name(stream))

    def truncate(self, cut: StreamCut) -> None:
        """Drop all events before a cut. Raises MalformedStreamCutError for a cut that lies beyond the tail.

        The controller takes such a cut, and then everything that is written up to it is lost to readers.
        """
        infos = self.stores.segment_infos(cut.stream, cut.positions)
        for segment_id, offset in cut.positions.items():
            if infos[segment_id].exists and offset > (end := infos[segment_id].write_offset):
                raise MalformedStreamCutError(
                    f"cannot truncate {cut.stream} at offset {offset} of segment {segment_id}: it ends at {end}, "
                    "and what is written up to the cut would be lost"
                )
        self.controller.truncate_stream(cut)

    # ---------------------------------------------------------------- events

    @overload
    def writer(
        self,
        stream: StreamName | str,
        serializer: None = None,
        *,
        router: EventRouter | None = None,
        max_event_size: int = MAX_EVENT_SIZE,
        max_in_flight: int = MAX_IN_FLIGHT,
        timeout: float | None = None,
        writer_id: str | None = None,
    ) -> EventWriter[bytes]: ...

    @overload
    def writer(
        self,
        stream: StreamName | str,
        serializer: SupportsSerialize[T],
        *,
        router: EventRouter | None = None,
        max_event_size: int = MAX_EVENT_SIZE,
        max_in_flight: int = MAX_IN_FLIGHT,
        timeout: float | None = None,
        writer_id: str | None = None,
    ) -> EventWriter[T]: ...

    def writer(
        self,
        stream: StreamName | str,
        serializer: SupportsSerialize[Any] | None = None,
        *,
        timeout: float | None = None,
        **options: Any,
    ) -> EventWriter[Any]:
        """A writer of events to a stream; without a serializer it takes bytes.

        ``router`` gives the routing keys, ``max_event_size`` and ``max_in_flight`` are counts of bytes, ``timeout`` is
        in seconds, by default what the client allows; ``writer_id`` is the name under which it notes event time.
        Raises StreamNotFoundError, StreamSealedError.
        """
        return EventWriter(self.stores, self.name(stream), serializer or RawEvents(), timeout=timeout, **options)

    def transactions(
        self,
        stream: StreamName | str,
        serializer: SupportsSerialize[T] | None = None,
        *,
        lease: float = DEFAULT_LEASE,
        max_event_size: int = MAX_EVENT_SIZE,
        timeout: float | None = None,
        writer_id: str | None = None,
        **options: Any,
    ) -> TransactionalWriter[T]:
        """A writer that begins transactions on a stream; without a serializer they take bytes.

        ``lease`` is how many seconds a transaction stays open without a ping; the other options are those of
        :meth:`writer`.
        """
        return TransactionalWriter(
            self.stores,
            self.name(stream),
            serializer or RawEvents(),  # type: ignore[arg-type]
            lease=lease,
            max_event_size=max_event_size,
            timeout=timeout,
            writer_id=writer_id,
            **options,
        )

    def transaction(
        self,
        stream: StreamName | str,
        transaction: uuid.UUID,
        *,
        lease: float = DEFAULT_LEASE,
        writer_id: str | None = None,
    ) -> Transaction:
        """A transaction by its id, which any process may have begun: to commit, abort or ping it, or ask about it."""
        return Transaction(self.controller, self.name(stream), transaction, lease, writer_id)

    # ---------------------------------------------------------------- streams of one segment

    def revisioned(
        self, stream: StreamName | str, serializer: SupportsBoth[T] | None = None
    ) -> RevisionedStreamClient[T]:
        """The entries of a stream of one segment, with their revisions; without a serializer they are bytes.

        Raises StreamNotFoundError, StreamSealedError, ConfigError for a stream of several segments.
        """
        return RevisionedStreamClient(self.stores, self.name(stream), serializer or RawEvents())  # type: ignore[arg-type]

    def synchronizer(
        self,
        stream: StreamName | str,
        *,
        create: Callable[[I], S],
        apply: Callable[[S, U], S],
        init_serializer: SupportsBoth[I],
        update_serializer: SupportsBoth[U],
    ) -> StateSynchronizer[S, I, U]:
        """A state that several processes share through a stream of one segment; see StateSynchronizer."""
        return StateSynchronizer(
            self.stores,
            self.name(stream),
            create=create,
            apply=apply,
            init_serializer=init_serializer,
            update_serializer=update_serializer,
        )

    # ---------------------------------------------------------------- streams of bytes

    def byte_reader(
        self, stream: StreamName | str, start: int | None = None, *, wait: float = 0.0
    ) -> io.BufferedReader:
        """The bytes of a stream that is not made of events, as a file: what Java's ``ByteStreamReader`` reads.

        It begins at an offset, or at the stream's head. At the end of what is written it waits up to ``wait`` seconds
        for more. Raises StreamNotFoundError, ConfigError for a stream of several segments; reading raises
        DataLossError for what was truncated, ConnectorErrors.
        """
        return io.BufferedReader(RawByteReader(self.stores, self.name(stream), start, wait), BUFFER_SIZE)

    def byte_writer(self, stream: StreamName | str) -> io.BufferedWriter:
        """A stream of bytes as a file that is appended to, as by Java's ``ByteStreamWriter``.

        ``flush`` and ``close`` return when everything is durable. Raises StreamNotFoundError, StreamSealedError,
        ConfigError for a stream of several segments; writing raises OutcomeUnknownError, ConnectorErrors.
        """
        return io.BufferedWriter(RawByteWriter(self.stores, self.name(stream)), BUFFER_SIZE)

    # ---------------------------------------------------------------- reading

    def read_columns(
        self,
        stream: StreamName | str,
        serializer: Serializer[Any] | None = None,
        *,
        start: StreamCut | None = None,
        end: StreamCut | None = None,
        metadata: Sequence[str] | None = None,
        on_error: OnError | None = None,
    ) -> EventColumns:
        """The events between two cuts as Arrow columns, for pyarrow, pandas, polars, DuckDB; see EventColumns.

        None means the head and the present tail. Iterated, it gives the undecoded events, segment by segment,
        predecessors first. Raises StreamNotFoundError, DataLossError, MalformedStreamCutError.
        """
        name = self.name(stream)
        start = self._own_cut(name, start) or self.head(name)
        end = self._own_cut(name, end) or self.tail(name)
        slices = slices_between(self.stores, start, end)
        return EventColumns(self.stores, [(start, end)], slices, serializer, metadata=metadata, on_error=on_error)

    def read(
        self,
        stream: StreamName | str,
        serializer: Any = None,
        *,
        start: StreamCut | None = None,
        end: StreamCut | None = None,
    ) -> Iterator[Any]:
        """Yield the events between two cuts one by one; without a serializer as bytes.

        Order holds for each routing key. Raises StreamNotFoundError, DataLossError, DeserializationError.
        """
        return self._values(iter(self.read_columns(stream, start=start, end=end)), serializer)

    def follow(self, stream: StreamName | str, start: StreamCut | None = None) -> TailReader:
        """A reader that goes on as events arrive, from a cut or from the present tail."""
        name = self.name(stream)
        return TailReader(self.stores, self._own_cut(name, start) or self.tail(name))

    # ---------------------------------------------------------------- event time

    def watermarks(self, stream: StreamName | str) -> list[Watermark]:
        """The watermarks of a stream, oldest first: what its writers have noted about event time, put together.

        A stream has none until one of its writers notes a time, and then one every 10 s (the server's
        ``controller.watermarking.frequency.seconds``) as long as the times go on. Raises StreamNotFoundError.
        """
        return self.watermark_log(stream).read()

    def time_window(self, position: StreamCut) -> TimeWindow:
        """The event times around a position, by the watermarks of this moment, as Java's readers tell them."""
        log = self.watermark_log(position.stream)
        return log.window(position, log.read())

    def cut_at(self, stream: StreamName | str, millis: int, *, end: bool = False) -> StreamCut:
        """The cut for an event time in milliseconds, by the stream's watermarks.

        Before it lies no event of this time or later, so that reading from it misses none; with ``end``, behind it
        lies none of an earlier time, so that reading up to it misses none of those. As near to the time as the
        watermarks tell, which are seconds apart, and as true as the times are that the writers note. A start before
        all watermarks, or in what was truncated, is the head. Raises TimeUnknownError for a stream without watermarks,
        and for an end that no watermark has reached; StreamNotFoundError.
        """
        return cut_at(self.stores, self.watermark_log(stream), millis, end=end)

    def watermark_log(self, stream: StreamName | str) -> WatermarkLog:
        """Watermarks of a stream, as far as this client has read them."""
        return self._watermarks.setdefault(name := self.name(stream), WatermarkLog(self.stores, name))

    def subscriber(self, stream: StreamName | str, name: str) -> Subscriber:
        """A named reader whose published position lets the server truncate behind it; nothing is made yet."""
        return Subscriber(self.stores, self.name(stream), name)

    @staticmethod
    def _values(batches: Generator[EventBatch, None, None], serializer: Any) -> Iterator[Any]:
        with closing(batches):  # a stored error would keep the connection as well
            for batch in batches:
                yield from batch.values(serializer)

    @staticmethod
    def _own_cut(name: StreamName, cut: StreamCut | None) -> StreamCut | None:
        if cut is not None and cut.stream != name:
            raise MalformedStreamCutError(f"the stream cut is of stream {cut.stream}, not of {name}")
        return cut

    def require_stream(self, stream: StreamName | str) -> StreamName:
        """The full name of a stream that exists. Raises StreamNotFoundError."""
        name = self.name(stream)
        if not self.controller.stream_exists(name):
            raise StreamNotFoundError.of(name)
        return name

    def close(self) -> None:
        """Close all connections."""
        self.stores.pool.close()
        self.controller.close()

    def __repr__(self) -> str:
        scope = f", scope {self.config.scope}" if self.config.scope else ""
        trouble = f", {self.trouble}" if self.trouble else ""
        return f"PravegaClient({self.config.controller}{scope}{trouble})"

    def __enter__(self) -> PravegaClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _tls(config: PravegaConfig) -> Tls | None:
    if not config.uses_tls:
        return None
    try:
        context = ssl.create_default_context(cafile=config.tls_ca_file)
    except OSError as error:  # ssl.SSLError, for what is no certificate, is one too
        raise ConfigError(
            f"the CA certificates cannot be read from {config.tls_ca_file}: {error.strerror or error}; "
            "check pravega.tls.ca.file"
        ) from None
    context.check_hostname = config.tls_validate_hostname
    return Tls(context, config.tls_server_name)
