"""The client for programs: streams by name, events in and out."""

from __future__ import annotations

import io
import ssl
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, Unpack, overload
from weakref import WeakSet

from pravega_connector.client.administration import Administration
from pravega_connector.config import PravegaConfig
from pravega_connector.core import arguments
from pravega_connector.core.arguments import Place, ReadOptions, Stream, Streams
from pravega_connector.core.connection import ConnectionPool, Tls
from pravega_connector.core.events import RawEvents, SupportsDeserialize, SupportsSerialize
from pravega_connector.core.retry import DEFAULT_FAILOVER_TIMEOUT, DEFAULT_TIMEOUT, ClusterHealth, Counters
from pravega_connector.errors import ConfigError, MalformedStreamCutError
from pravega_connector.metrics import attach_if_loaded
from pravega_connector.reader.event_columns import EventColumns
from pravega_connector.reader.positions import cuts_of
from pravega_connector.reader.slices import (
    EventBatch,
    SegmentSlice,
    decoded_values,
    read_slices,
    slices_between,
    whole_stream,
)
from pravega_connector.reader.stream_reader import StreamsReader, ValueReader
from pravega_connector.reader.tail import TailReader
from pravega_connector.reader.watermarks import TimeWindow, WatermarkLog, cut_at
from pravega_connector.reader_groups.subscriber import Subscriber
from pravega_connector.single_segment.byte_stream import ByteReader, ByteWriter, RawByteReader, RawByteWriter
from pravega_connector.single_segment.revisioned import RevisionedStreamClient, SupportsBoth
from pravega_connector.single_segment.synchronizer import StateSynchronizer
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.stores.segments import tail_cut
from pravega_connector.wire import StreamCut, StreamName, Watermark
from pravega_connector.writer.event_writer import EventWriter, WriterOptions
from pravega_connector.writer.transactions import DEFAULT_LEASE, Transaction, TransactionalWriter
from pravega_serde import after_fork
from pravega_serde.serializer_interface import OnError, Serializer

if TYPE_CHECKING:
    from pravega_connector.client.reader_group import ReaderGroup

T = TypeVar("T")
S = TypeVar("S")
I = TypeVar("I")  # noqa: E741 - a synchronizer's initial values and updates
U = TypeVar("U")

_WRITER_ARGUMENTS: Final = ("stream", "serializer", *WriterOptions.__annotations__)


class PravegaClient(Administration):
    """Connection to a Pravega cluster; thread safe, cheap to make: nothing is opened before it is needed.

    ``config`` is a PravegaConfig or a controller URI, and ``settings`` are those of :meth:`PravegaConfig.resolve`, such
    as ``controller``, ``scope``, ``username``, ``password``: what is not given is looked for in the environment.

    Until a server of the cluster has answered in this process, a call may take ``timeout`` seconds: a wrong address is
    an error within it. From then on the client goes on by itself, and a call waits up to ``failover_timeout`` seconds
    for servers that fail, freeze, or hand segments over; it logs a warning after 10 s. ``service`` goes on from the
    start: for what runs unattended and has reached the cluster before.
    A timeout that is given to a call rules over both.
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
        self.stores = SegmentStores(config, ConnectionPool(_tls(config), self.health), self.health)
        self._watermarks: dict[StreamName, WatermarkLog] = {}
        self._groups: WeakSet[ReaderGroup] = WeakSet()
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._watermarks = {}

    @property
    def counters(self) -> Counters:
        """Counts of retries, reconnects, moved segments, refreshed tokens, outages."""
        return self.health.counters

    @property
    def trouble(self) -> str | None:
        """One line about an outage that goes on now, of 10 s or more; None when all is well."""
        return self.health.trouble

    # ---------------------------------------------------------------- places

    def head(self, stream: Stream) -> StreamCut:
        """Cut before the first event that the stream still holds."""
        return self.controller.head_cut(self.name(stream))

    def tail(self, stream: Stream) -> StreamCut:
        """Cut after the last event at this moment."""
        return tail_cut(self.stores, self.name(stream))

    def truncate(self, stream: Stream | StreamCut, cut: StreamCut | str | None = None) -> None:
        """Drop all events before a cut: ``truncate(cut)``, or a place as in :meth:`read`: ``truncate(stream, "tail")``.

        Raises MalformedStreamCutError for a cut that lies beyond the tail: the controller takes such a cut, and then
        everything that is written up to it is lost to readers.
        """
        if isinstance(stream, StreamCut) and cut is None:
            found = stream
        elif not isinstance(stream, StreamName | str) or cut is None:
            raise ConfigError("truncate takes a StreamCut, or a stream and a place: truncate('scope/stream', 'tail')")
        else:
            (found,) = cuts_of(self, [self.name(stream)], cut, "cut", default="head")
        infos = self.stores.segment_infos(found.stream, found.positions)
        for segment_id, offset in found.positions.items():
            if infos[segment_id].exists and offset > (end := infos[segment_id].write_offset):
                raise MalformedStreamCutError(
                    f"cannot truncate {found.stream} at offset {offset} of segment {segment_id}: it ends at {end}, "
                    "and what is written up to the cut would be lost"
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
        """A writer of events to a stream; without a serializer it takes bytes.

        ``serializer`` is one, or the name of a format that needs no options, or ``str`` or ``bytes``. ``router`` gives
        the routing keys, ``max_event_size`` and ``max_in_flight`` are counts of bytes, ``timeout`` is in seconds, by
        default what the client allows; ``writer_id`` is the name under which it notes event time. Raises
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

        Each call makes a writer of its own and waits for the server: use a :meth:`writer` for more than a few events.
        Raises what the writer does.
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
        """A writer that begins transactions on a stream; without a serializer they take bytes.

        ``lease`` is how many seconds a transaction stays open without a ping; the other options are those of
        :meth:`writer`.
        """
        arguments.only("transactions", options, (*_WRITER_ARGUMENTS, "lease"))
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
        """A transaction by its id, which any process may have begun: to commit, abort or ping it, or ask about it."""
        if not isinstance(transaction, uuid.UUID):
            raise ConfigError(f"a transaction is known by its id, a uuid.UUID, not by {transaction!r}")
        arguments.seconds("lease", lease)
        return Transaction(self.controller, self.name(stream), transaction, lease, writer_id)

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
        """The entries of a stream of one segment, with their revisions; without a serializer they are bytes.

        Raises StreamNotFoundError, StreamSealedError, ConfigError for a stream of several segments.
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
        """A state that several processes share through a stream of one segment; see StateSynchronizer."""
        both = ("serialize", "deserialize")
        return StateSynchronizer(
            self.stores,
            self.name(stream),
            create=create,
            apply=apply,
            init_serializer=arguments.serializer_of(init_serializer, *both),
            update_serializer=arguments.serializer_of(update_serializer, *both),
        )

    # ---------------------------------------------------------------- streams of bytes

    def byte_reader(self, stream: Stream, start: int | None = None, *, wait: float = 0.0) -> io.BufferedReader:
        """The bytes of a stream that is not made of events, as a file: what Java's ``ByteStreamReader`` reads.

        It begins at an offset, or at the stream's head. At the end of what is written it waits up to ``wait`` seconds
        for more. Raises StreamNotFoundError, ConfigError for a stream of several segments; reading raises
        DataLossError for what was truncated, ConnectorErrors.
        """
        arguments.count("start", start)
        arguments.wait("wait", wait)
        return ByteReader(RawByteReader(self.stores, self.name(stream), start, wait))

    def byte_writer(self, stream: Stream) -> io.BufferedWriter:
        """A stream of bytes as a file that is appended to, as by Java's ``ByteStreamWriter``.

        ``flush`` and ``close`` return when everything is durable. Raises StreamNotFoundError, StreamSealedError,
        ConfigError for a stream of several segments; writing raises OutcomeUnknownError, ConnectorErrors.
        """
        return ByteWriter(RawByteWriter(self.stores, self.name(stream)))

    # ---------------------------------------------------------------- reading

    def read_columns(
        self,
        stream: Streams,
        serializer: Serializer[Any] | str | type[str] | type[bytes] | None = None,
        *,
        start: Place | None = None,
        end: Place | None = None,
        metadata: Sequence[str] | None = None,
        on_error: OnError | None = None,
    ) -> EventColumns:
        """The events between two places as Arrow columns, for pyarrow, pandas, polars, DuckDB; see EventColumns.

        The streams and places are those of :meth:`read`. Iterated, it gives the undecoded events, segment by segment,
        predecessors first. Raises StreamNotFoundError, DataLossError, MalformedStreamCutError.
        """
        chosen = arguments.serializer_of(serializer, "decode_column")
        arguments.error_handler(on_error)
        names = arguments.stream_names(stream, self.config.scope)
        found = self._ranges(names, start, end)
        ranges = [(first, last) for first, last, _ in found]
        slices = [piece for _, _, pieces in found for piece in pieces]
        return EventColumns(self.stores, ranges, slices, chosen, metadata=metadata, on_error=on_error)

    def _ranges(
        self, names: list[StreamName], start: Place | None, end: Place | None
    ) -> list[tuple[StreamCut, StreamCut, list[SegmentSlice]]]:
        """Return the start, the end and the slices of each stream."""
        if start is None and end is None:
            return [whole_stream(self.stores, name) for name in names]
        starts = cuts_of(self, names, start, "start", default="head")
        ends = cuts_of(self, names, end, "end", default="tail")
        return [(*cuts, slices_between(self.stores, *cuts)) for cuts in zip(starts, ends, strict=True)]

    @overload
    def read(
        self,
        stream: Streams,
        serializer: Literal["bytes"] | type[bytes] | None = None,
        **options: Unpack[ReadOptions],
    ) -> Iterator[bytes]: ...

    @overload
    def read(
        self,
        stream: Streams,
        serializer: Literal["string"] | type[str],
        **options: Unpack[ReadOptions],
    ) -> Iterator[str]: ...

    @overload
    def read(
        self,
        stream: Streams,
        serializer: SupportsDeserialize[T],
        **options: Unpack[ReadOptions],
    ) -> Iterator[T]: ...

    @overload
    def read(
        self,
        stream: Streams,
        serializer: str,
        **options: Unpack[ReadOptions],
    ) -> Iterator[Any]: ...

    def read(
        self,
        stream: Streams,
        serializer: Any = None,
        *,
        start: Place | None = None,
        end: Place | None = None,
        limit: int | None = None,
    ) -> Iterator[Any]:
        """Yield the events between two places one by one; without a serializer as bytes.

        ``stream`` is one, or several in a list, which are read one after the other. ``start`` and ``end`` are stream
        cuts or their text, ``earliest`` or ``head``, ``latest`` or ``tail``, or ``timestamp:2026-11-21T10:00:00Z``
        (:meth:`cut_at`); in several streams also a list with a cut for each. By default everything from the head to the
        present tail; of that ``limit`` events at most. Order holds for each routing key of a stream. Raises
        StreamNotFoundError, DataLossError, DeserializationError, MalformedStreamCutError, ConfigError.
        """
        chosen = arguments.serializer_of(serializer, "deserialize")
        arguments.count("limit", limit)
        found = self._ranges(arguments.stream_names(stream, self.config.scope), start, end)
        slices = [piece for _, _, pieces in found for piece in pieces]
        return self._values(read_slices(self.stores, slices), None if chosen is None else chosen.deserialize, limit)

    @overload
    def follow(  # type: ignore[overload-overlap]  # a str is one stream, though iterable
        self, stream: Stream, serializer: None = None, *, start: Place | None = None
    ) -> TailReader: ...

    @overload
    def follow(
        self, stream: Iterable[Stream], serializer: None = None, *, start: Place | None = None
    ) -> StreamsReader: ...

    @overload
    def follow(
        self, stream: Streams, serializer: Literal["bytes"] | type[bytes], *, start: Place | None = None
    ) -> ValueReader[bytes]: ...

    @overload
    def follow(
        self, stream: Streams, serializer: Literal["string"] | type[str], *, start: Place | None = None
    ) -> ValueReader[str]: ...

    @overload
    def follow(
        self, stream: Streams, serializer: SupportsDeserialize[T], *, start: Place | None = None
    ) -> ValueReader[T]: ...

    @overload
    def follow(self, stream: Streams, serializer: str, *, start: Place | None = None) -> ValueReader[Any]: ...

    def follow(
        self, stream: Streams, serializer: Any = None, *, start: Place | None = None
    ) -> TailReader | StreamsReader | ValueReader[Any]:
        """A reader that goes on as events arrive, from a place as in :meth:`read`, or from the present tail.

        Without a serializer it gives batches of Arrow columns, with one the values of the events.
        """
        chosen = arguments.serializer_of(serializer, "deserialize")
        names = arguments.stream_names(stream, self.config.scope)
        readers = [TailReader(self.stores, cut) for cut in cuts_of(self, names, start, "start", default="tail")]
        reader = readers[0] if arguments.is_one_stream(stream) else StreamsReader(readers)
        return reader if chosen is None else ValueReader(reader, chosen)

    # ---------------------------------------------------------------- event time

    def watermarks(self, stream: Stream) -> list[Watermark]:
        """The watermarks of a stream, oldest first: what its writers have noted about event time, put together.

        A stream has none until one of its writers notes a time, and then one every 10 s (the server's
        ``controller.watermarking.frequency.seconds``) as long as the times go on. Raises StreamNotFoundError.
        """
        return self.watermark_log(stream).read()

    def time_window(self, position: StreamCut) -> TimeWindow:
        """The event times around a position, by the watermarks of this moment, as Java's readers tell them."""
        arguments.instance("position", position, StreamCut, "client.head(stream), reader.position")
        log = self.watermark_log(position.stream)
        return log.window(position, log.read())

    def cut_at(self, stream: Stream, millis: int, *, end: bool = False) -> StreamCut:
        """The cut for an event time in milliseconds, by the stream's watermarks.

        Before it lies no event of this time or later, so that reading from it misses none; with ``end``, behind it
        lies none of an earlier time, so that reading up to it misses none of those. As near to the time as the
        watermarks tell, which are seconds apart, and as true as the times are that the writers note. A start before
        all watermarks, or in what was truncated, is the head. Raises TimeUnknownError for a stream without watermarks,
        and for an end that no watermark has reached; StreamNotFoundError.
        """
        arguments.count("millis", millis, -(2**63))
        return cut_at(self.stores, self.watermark_log(stream), millis, end=end)

    def watermark_log(self, stream: Stream) -> WatermarkLog:
        """Watermarks of a stream, as far as this client has read them."""
        return self._watermarks.setdefault(name := self.name(stream), WatermarkLog(self.stores, name))

    def subscriber(self, stream: Stream, name: str) -> Subscriber:
        """A named reader whose published position lets the server truncate behind it; nothing is made yet."""
        return Subscriber(self.stores, self.name(stream), name)

    def reader_group(
        self,
        name: Stream,
        streams: Streams | None = None,
        *,
        start: Place | None = None,
        end: Place | None = None,
        retention: str = "none",
        checkpoint_interval: float | None = 30.0,
        refresh: float = 3.0,
        max_outstanding: int = 3,
    ) -> ReaderGroup:
        """A reader group, which Java's readers can be in as well: made if it is not there, or joined.

        With ``streams`` it is made, unless there is one with the same configuration; without, it must be there.
        ``start`` and ``end`` are places as in :meth:`read`: without a start it begins at the heads of the streams,
        without an end it goes on for ever. ``checkpoint_interval`` and ``refresh`` are seconds; without checkpoints
        (None) no segment changes its reader. ``retention``: ``none``, ``manual``, or ``automatic`` at each checkpoint.
        Raises ReaderGroupError for a group of another configuration, and for one that is not there.
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

        They are found by the streams of their states: no call of the controller lists them. Subscribers are groups as
        well. Raises ScopeNotFoundError at the first one.
        """
        from pravega_connector.reader_group_protocol import group_of  # noqa: PLC0415 - most clients have no group

        for stream in self.streams(scope, internal=True):
            if (group := group_of(stream)) is not None:
                yield f"{stream.scope}/{group}"

    @staticmethod
    def _values(
        batches: Generator[EventBatch, None, None], deserialize: Callable[[bytes], Any] | None, limit: int | None
    ) -> Iterator[Any]:
        with closing(batches):  # a stored error would keep the connection as well
            left = limit
            for batch in batches if limit != 0 else ():
                values = batch.values() if deserialize is None else decoded_values(batch, deserialize)
                if left is not None and left <= len(batch.events):
                    yield from islice(values, left)
                    return
                yield from values
                left = None if left is None else left - len(batch.events)

    def close(self) -> None:
        """Close all connections, those of reader groups as well. Writers and readers have an end of their own."""
        for group in self._groups:
            group.close()
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
    """The configuration of a client's first argument and its settings by name. Raises ConfigError."""
    if isinstance(config, PravegaConfig):
        if settings:
            raise ConfigError(f"the setting {next(iter(settings))!r} belongs into the PravegaConfig: give it there")
        return config
    if config is not None and not isinstance(config, str):
        raise ConfigError(
            f"a client is made of a controller URI like 'tcp://localhost:9090' or a PravegaConfig, not of this "
            f"{type(config).__name__}"
        )
    if config is not None and "controller" in settings:
        raise ConfigError("the controller is given twice, by position and by name")
    return PravegaConfig.resolve(**({"controller": config} | settings))


def _tls(config: PravegaConfig) -> Tls | None:
    if not config.uses_tls:
        return None
    try:
        context = ssl.create_default_context(cafile=config.tls_ca_file)
    except OSError as error:  # ssl.SSLError, for what is no certificate, is one too
        raise config.unreadable_ca(error) from None
    context.check_hostname = config.tls_validate_hostname
    return Tls(context, config.tls_server_name)
