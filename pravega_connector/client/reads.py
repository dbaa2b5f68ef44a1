"""Reads between two positions, by pointer and as events arrive; positions and event time. Part of PravegaClient."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from pravega_connector import reader
from pravega_connector.client.administration import Administration
from pravega_connector.core import arguments
from pravega_connector.core.arguments import FollowOptions, IfExists, Position, ReadOptions, Stream, Streams
from pravega_connector.core.events import SupportsDeserialize
from pravega_connector.reader.key_filter import WantedKey
from pravega_connector.reader.positions import cuts_of
from pravega_connector.reader.slices import (
    EventBatch,
    ReadRange,
    decoded_values,
    range_between,
    read_ranges,
    whole_stream,
)
from pravega_connector.reader.stream_reader import StreamsReader, ValueReader
from pravega_connector.reader.tail import TailReader
from pravega_connector.reader.watermarks import TimeWindow, WatermarkLog, cut_at
from pravega_connector.stores.segments import tail_cut
from pravega_connector.wire import EventPointer, StreamCut, StreamName, Watermark
from pravega_serde.serializer_interface import Deserializer, OnError

if TYPE_CHECKING:
    from pravega_connector.reader import EventColumns
    from pravega_serde.routing import EventRouter

T = TypeVar("T")


@arguments.hinted
class Reads(Administration):
    """Reads of streams; base class of :class:`PravegaClient`."""

    _watermarks: dict[StreamName, WatermarkLog]

    # ---------------------------------------------------------------- positions

    def head(self, stream: Stream) -> StreamCut:
        """Return the stream cut before the first event that the stream still has."""
        return self.controller.head_cut(self.name(stream))

    def tail(self, stream: Stream) -> StreamCut:
        """Return the stream cut after the last event at this moment."""
        return tail_cut(self.stores, self.name(stream))

    # ---------------------------------------------------------------- events

    def read_columns(
        self,
        stream: Streams,
        serializer: Deserializer[Any] | str | type[str] | type[bytes] | None = None,
        *,
        start: Position | None = None,
        end: Position | None = None,
        metadata: Sequence[str] | None = None,
        on_error: OnError | None = None,
        key: str | None = None,
        router: EventRouter | None = None,
        keep_other_keys: bool = False,
    ) -> EventColumns:
        """Return the events between two positions as Arrow columns; see EventColumns.

        pyarrow, pandas, polars and DuckDB read them without a copy. Streams, positions and ``key`` are those of
        :meth:`read`; the router gets columns. An iteration yields undecoded events, segment by segment, predecessors
        first. Raises StreamNotFoundError, DataLossError, MalformedStreamCutError, and SchemaError if the columns have
        no routing key.
        """
        chosen = arguments.serializer_of(serializer, "decode_column")
        arguments.error_handler(on_error)
        wanted = _wanted_key(key, router, keep_other_keys)
        names = arguments.stream_names(stream, self.config.scope)
        select = None if wanted is None else wanted.by_column(chosen)
        found = self._ranges(names, start, end, wanted)
        return reader.EventColumns(self.stores, found, chosen, metadata=metadata, on_error=on_error, select=select)

    def _ranges(
        self, names: list[StreamName], start: Position | None, end: Position | None, key: WantedKey | None
    ) -> list[ReadRange]:
        """Return the range to read of each stream, with a key only its segments."""
        if start is None and end is None and key is None:
            return [whole_stream(self.stores, name) for name in names]
        starts = cuts_of(self, names, start, "start", default="head")
        ends = cuts_of(self, names, end, "end", default="tail")
        return [
            range_between(self.stores, *cuts, None if key is None else key.lineage(self.stores, cuts[0].stream))
            for cuts in zip(starts, ends, strict=True)
        ]

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
        start: Position | None = None,
        end: Position | None = None,
        limit: int | None = None,
        key: str | None = None,
        router: EventRouter | None = None,
        keep_other_keys: bool = False,
    ) -> Iterator[Any]:
        """Yield the events between two positions one by one. Without a serializer, they are bytes.

        ``stream`` is a stream, or a list of streams, which are read one after the other. ``start`` and ``end`` are
        stream cuts or their text, ``earliest`` or ``head``, ``latest`` or ``tail``, or
        ``timestamp:2026-11-21T10:00:00Z`` (:meth:`cut_at`). For several streams, they can also be a list with a cut per
        stream. The default is from the head to the current tail. ``limit`` is the largest number of events. Order holds
        per routing key of a stream.

        With ``key``, only the segments that own this routing key are read, through every scaling. ``router`` returns
        the routing key of a value, as it did for the writer, and events with other keys are left out. With
        ``keep_other_keys``, all events of these segments are returned.

        Raises StreamNotFoundError, DataLossError, DeserializationError, MalformedStreamCutError, ConfigError, and
        RoutingKeyError if the router does not return the keys that the writer used.
        """
        chosen = arguments.serializer_of(serializer, "deserialize")
        deserialize = None if chosen is None else chosen.deserialize
        arguments.count("limit", limit)
        wanted = _wanted_key(key, router, keep_other_keys)
        select = None if wanted is None else wanted.by_value(deserialize)
        found = self._ranges(arguments.stream_names(stream, self.config.scope), start, end, wanted)
        return self._values(read_ranges(self.stores, found, select), deserialize, limit)

    @overload
    def fetch(self, pointer: EventPointer, serializer: Literal["bytes"] | type[bytes] | None = None) -> bytes: ...

    @overload
    def fetch(self, pointer: EventPointer, serializer: Literal["string"] | type[str]) -> str: ...

    @overload
    def fetch(self, pointer: EventPointer, serializer: SupportsDeserialize[T]) -> T: ...

    @overload
    def fetch(self, pointer: EventPointer, serializer: str) -> Any: ...

    def fetch(self, pointer: EventPointer, serializer: Any = None) -> Any:
        """Return the event at a pointer, as Java's ``EventStreamReader.fetchEvent``. Without a serializer, it is bytes.

        Raises DataLossError if the event was truncated or deleted, InvalidPointerError if no event begins there,
        DeserializationError.
        """
        return self.fetch_all([pointer], serializer)[0]

    @overload
    def fetch_all(
        self,
        pointers: Iterable[EventPointer],
        serializer: Literal["bytes"] | type[bytes] | None = None,
        *,
        if_missing: Literal["error"] = "error",
    ) -> list[bytes]: ...

    @overload
    def fetch_all(
        self,
        pointers: Iterable[EventPointer],
        serializer: Literal["string"] | type[str],
        *,
        if_missing: Literal["error"] = "error",
    ) -> list[str]: ...

    @overload
    def fetch_all(
        self,
        pointers: Iterable[EventPointer],
        serializer: SupportsDeserialize[T],
        *,
        if_missing: Literal["error"] = "error",
    ) -> list[T]: ...

    @overload
    def fetch_all(
        self,
        pointers: Iterable[EventPointer],
        serializer: SupportsDeserialize[Any] | str | type | None = None,
        *,
        if_missing: IfExists = "error",
    ) -> list[Any]: ...

    def fetch_all(
        self, pointers: Iterable[EventPointer], serializer: Any = None, *, if_missing: IfExists = "error"
    ) -> list[Any]:
        """Return the events at pointers into any streams, in the order of the pointers.

        Events that are near each other in a segment are read together. With ``if_missing="ignore"``, the result has
        None for each event that was truncated or deleted. Raises the errors of :meth:`fetch`.
        """
        chosen = arguments.serializer_of(serializer, "deserialize")
        skip = not arguments.is_error("if_missing", if_missing)
        return reader.fetch_events(
            self.stores, pointers, None if chosen is None else chosen.deserialize, skip_lost=skip
        )

    @overload
    def follow(  # type: ignore[overload-overlap]  # a str is one stream, though iterable
        self, stream: Stream, serializer: None = None, **options: Unpack[FollowOptions]
    ) -> TailReader: ...

    @overload
    def follow(
        self, stream: Iterable[Stream], serializer: None = None, **options: Unpack[FollowOptions]
    ) -> StreamsReader: ...

    @overload
    def follow(
        self, stream: Streams, serializer: Literal["bytes"] | type[bytes], **options: Unpack[FollowOptions]
    ) -> ValueReader[bytes]: ...

    @overload
    def follow(
        self, stream: Streams, serializer: Literal["string"] | type[str], **options: Unpack[FollowOptions]
    ) -> ValueReader[str]: ...

    @overload
    def follow(
        self, stream: Streams, serializer: SupportsDeserialize[T], **options: Unpack[FollowOptions]
    ) -> ValueReader[T]: ...

    @overload
    def follow(self, stream: Streams, serializer: str, **options: Unpack[FollowOptions]) -> ValueReader[Any]: ...

    def follow(
        self,
        stream: Streams,
        serializer: Any = None,
        *,
        start: Position | None = None,
        key: str | None = None,
        router: EventRouter | None = None,
        keep_other_keys: bool = False,
    ) -> TailReader | StreamsReader | ValueReader[Any]:
        """Return a reader of events as they arrive, from a position as in :meth:`read`, by default the current tail.

        Without a serializer it returns batches of Arrow columns, with a serializer the events' values. ``key`` is as in
        :meth:`read`. Without a serializer, the router gets the column ``event``. The positions of such a reader are
        for readers of the same key: events of other keys may be before them.
        """
        chosen = arguments.serializer_of(serializer, "deserialize")
        wanted = _wanted_key(key, router, keep_other_keys)
        names = arguments.stream_names(stream, self.config.scope)
        cuts = cuts_of(self, names, start, "start", default="tail")
        if wanted is None:
            readers = [TailReader(self.stores, cut) for cut in cuts]
        else:
            select = wanted.by_column(None) if chosen is None else wanted.by_value(chosen.deserialize)
            readers = [TailReader(self.stores, cut, wanted.lineage(self.stores, cut.stream), select) for cut in cuts]
        reader = readers[0] if arguments.is_one_stream(stream) else StreamsReader(readers)
        return reader if chosen is None else ValueReader(reader, chosen)

    # ---------------------------------------------------------------- event time

    def watermarks(self, stream: Stream) -> list[Watermark]:
        """Return the watermarks of a stream, oldest first: the event times that all its writers have passed.

        The first watermark follows when a writer has noted a time. While writers note times, another one follows every
        10 s (the server's ``controller.watermarking.frequency.seconds``). Raises StreamNotFoundError.
        """
        return self.watermark_log(stream).read()

    def time_window(self, position: StreamCut) -> TimeWindow:
        """Return the event times around a position by the current watermarks, as Java's readers do."""
        arguments.instance("position", position, StreamCut, "client.head(stream), reader.position", optional=False)
        log = self.watermark_log(position.stream)
        return log.window(position, log.read())

    def cut_at(self, stream: Stream, millis: int, *, end: bool = False) -> StreamCut:
        """Return the stream cut for an event time in milliseconds, by the stream's watermarks.

        All events of this time or later are after the cut, so a read from it misses none. With ``end=True``, all events
        of an earlier time are before the cut, so a read up to it misses none. Watermarks are seconds apart, so other
        events may be included. The result is as accurate as the times that the writers note. For a start before all
        watermarks, or in the truncated part, the result is the head. Raises StreamNotFoundError, or TimeUnknownError
        for a stream without watermarks and for an end that no watermark has reached.
        """
        arguments.millis("millis", millis)
        return cut_at(self.stores, self.watermark_log(stream), millis, end=end)

    def watermark_log(self, stream: Stream) -> WatermarkLog:
        """Return the watermarks of a stream, as far as this client has read them."""
        return self._watermarks.setdefault(name := self.name(stream), WatermarkLog(self.stores, name))

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


def _wanted_key(key: str | None, router: EventRouter | None, keep_other_keys: bool) -> WantedKey | None:
    if key is None and router is None and not keep_other_keys:
        return None
    return WantedKey.of(key, router, keep_other_keys)
