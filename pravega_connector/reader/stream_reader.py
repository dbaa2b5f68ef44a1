"""Readers that follow streams: several streams as one, and deserialized values instead of bytes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import Generic, Self, TypeVar

from pravega_connector import metrics
from pravega_connector.core import arguments
from pravega_connector.core.connection import ProcessBound, wait_ready
from pravega_connector.core.events import SupportsDeserialize
from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import ConfigError
from pravega_connector.reader.slices import EventBatch
from pravega_connector.reader.tail import TailReader
from pravega_connector.wire import StreamCut
from pravega_serde import after_fork
from pravega_serde.errors import DeserializationError

T = TypeVar("T")
V = TypeVar("V")


class StreamsReader(HintedNames, ProcessBound):
    """Reader that follows several streams, each from a cut, and does not end. Not thread safe.

    A batch is from one stream and keeps its order per routing key. The streams take turns. In all other respects it
    works like TailReader.
    """

    def __init__(self, readers: list[TailReader]) -> None:
        self._readers = readers
        self._turns = list(readers)

    @property
    def positions(self) -> list[StreamCut]:
        """Cut of each stream after the last returned event. Pass them as ``start`` of a later reader."""
        return [reader.position for reader in self._readers]

    def __repr__(self) -> str:
        return f"StreamsReader({', '.join(map(str, self.positions))})"

    @property
    def at_end(self) -> bool:
        """True if all streams were sealed and read to their ends."""
        return all(reader.at_end for reader in self._readers)

    @property
    def timeout(self) -> float:
        """Seconds that a call of the client may take."""
        return self._readers[0].timeout

    def poll(self, timeout: float) -> EventBatch | None:
        """Return the next events of a segment, or None after ``timeout`` seconds or when all streams have ended.

        Raises the errors of :meth:`TailReader.poll`, and can be polled again in the same cases.
        """
        arguments.wait("timeout", timeout)
        end = time.monotonic() + timeout
        while True:
            for reader in self._turns:
                batch = None
                try:
                    batch = reader.poll(0)
                    if batch is not None:
                        self._turns = [*(other for other in self._turns if other is not reader), reader]
                        return batch
                except BaseException:
                    if batch is not None:  # interrupted
                        reader.take_back()
                    raise
            left = end - time.monotonic()
            if left <= 0 or self.at_end:
                return None
            waits = [reader.waits() for reader in self._readers if not reader.at_end]
            sources = [source for own, _ in waits for source in own]
            wait_ready(sources, [], max(0.0, min(left, *(seconds for _, seconds in waits))))

    def require_open(self) -> None:
        """Raise ConfigError after :meth:`close`."""
        for reader in self._readers:
            reader.require_open()

    def __iter__(self) -> Iterator[EventBatch]:
        """Yield batches until all streams are sealed and read to their ends."""
        while not self.at_end:
            batch = self.poll(self.timeout)
            if batch is not None:
                yield batch

    def close(self) -> None:
        """Close the connections."""
        for reader in self._readers:
            reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class ValueReader(HintedNames, ProcessBound, Generic[T]):
    """Reader of the values of events as they arrive, from one or several streams. Not thread safe.

    If an event cannot be decoded, the reader raises a DeserializationError that names the position of the event. The
    next call continues after the event. Until then, :attr:`position` stays before it.
    """

    def __init__(self, reader: TailReader | StreamsReader, serializer: SupportsDeserialize[T]) -> None:
        self._reader = reader
        self._deserialize = serializer.deserialize
        self.take_may_block = bool(getattr(serializer, "read_may_block", False))
        self._batch: EventBatch | None = None
        self._events: list[bytes] | None = None  # events of the batch, converted on first use
        self._row = 0  # the next event to decode
        self._done = 0  # the first event that was not returned
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._batch = self._events = after_fork.inherited("ValueReader")  # the parent process returns these events

    def __repr__(self) -> str:
        return f"ValueReader({', '.join(map(str, self.positions))})"

    @property
    def position(self) -> StreamCut:
        """Cut after the last returned value. Raises ConfigError if there are several streams."""
        positions = self.positions
        if len(positions) != 1:
            raise ConfigError("this reader follows several streams: 'positions' has the cut of each")
        return positions[0]

    @property
    def positions(self) -> list[StreamCut]:
        """Cut of each stream after the last returned value."""
        cuts, batch = self._reader.positions, self._batch
        if batch is None or self._done == len(batch.offsets):
            return cuts
        inside = {batch.segment_id: int(batch.offsets[self._done])}
        return [
            StreamCut(cut.stream, {**cut.positions, **inside}) if cut.stream == batch.stream else cut for cut in cuts
        ]

    @property
    def timeout(self) -> float:
        """Seconds that a call of the client may take."""
        return self._reader.timeout

    @property
    def has_events(self) -> bool:
        """True if events were received and not returned yet."""
        return self._batch is not None and self._row < len(self._batch.offsets)

    @property
    def at_end(self) -> bool:
        """True if every stream was sealed and read to its end."""
        return not self.has_events and self._reader.at_end

    def poll(self, timeout: float) -> list[T]:
        """Return the next values, all of one segment, or an empty list after ``timeout`` seconds or at the end.

        Raises the errors of :meth:`TailReader.poll`, and DeserializationError.
        """
        arguments.wait("timeout", timeout)
        self._reader.require_open()
        if not self.fetch(timeout):
            return []
        values: list[T] = []
        row = self._row
        try:
            values.extend(map(self._deserialize, self._there()[row:]))  # values before an error stay in the list
        except DeserializationError as error:
            if not values:
                raise self._refused(error, row) from error
            # The next call raises the error: these values come first.
        return self._hand_out(values, row + len(values))

    def __iter__(self) -> Iterator[T]:
        """Yield values until every stream is sealed and read to its end."""
        while not self.at_end:
            if self.fetch(self._reader.timeout):
                while self.has_events:
                    yield self.take()

    def fetch(self, timeout: float) -> bool:
        """Return True if there is an event to decode. Wait at most ``timeout`` seconds for one."""
        if self.has_events:
            return True
        # One step: after an interrupt, the events are either still in the inner reader or stored here.
        self._batch, self._events, self._row, self._done = self._reader.poll(timeout), None, 0, 0
        return self._batch is not None

    def take(self) -> T:
        """Return the next value, which must exist. Raises DeserializationError."""
        row = self._row
        try:
            value = self._deserialize(self._there()[row])
        except DeserializationError as error:
            raise self._refused(error, row) from error
        return self._hand_out(value, row + 1)

    def _there(self) -> list[bytes]:
        if self._events is None:
            assert self._batch is not None
            self._events = self._batch.events.to_pylist()
        return self._events

    def _hand_out(self, what: V, row: int) -> V:
        """Return ``what`` and mark the events before ``row`` as returned. If interrupted, do neither."""
        before = self._row, self._done
        try:
            self._row = self._done = row
            return what
        except BaseException:
            self._row, self._done = before
            raise

    def _refused(self, error: DeserializationError, row: int) -> DeserializationError:
        """Return the error with the position of the event. The next call continues after the event."""
        batch = self._batch
        assert batch is not None
        located = batch.locate(error, row)
        metrics.BAD_RECORDS.add(1, "client", str(batch.stream))
        try:
            self._row = row + 1
            return located
        except BaseException:
            self._row = row
            raise

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
