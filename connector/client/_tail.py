"""Following the tail of a stream: events as they arrive, in order for each routing key, across scaling."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import Final

from connector.client._connection import Connection, Endpoint, wait_ready
from connector.client._cuts import Lineage
from connector.client._reader import EventBatch, data_loss
from connector.client._stores import SegmentStores, error_of
from connector.errors import (
    ConnectionLostError,
    DeadlineExceededError,
    NoSuchSegmentError,
    ProtocolError,
    SegmentSealedError,
    SegmentStoreError,
    SegmentTruncatedError,
)
from connector.wire import (
    READ_CHUNK,
    EventColumn,
    FrameParser,
    ReadSegment,
    SegmentRead,
    StreamCut,
    StreamName,
    encode,
    segment_name,
)

__all__ = ["TailReader"]

_RETRY_PAUSE: Final = 0.2
# A server answers a read at the tail after 60 s (measured: 66 s) even if nothing came; one that does not is gone.
_PARKED_SECONDS: Final = 90.0


class _SegmentTail:
    """One segment being followed: its parser and the one request that the server holds."""

    def __init__(self, stream: StreamName, segment_id: int, offset: int) -> None:
        self.id = segment_id
        self.name = segment_name(stream, segment_id)
        self.offset = offset
        self.parser = FrameParser(offset, segment=self.name)
        self.asked = False
        self.asked_at = 0.0
        self.retry_at = 0.0


class TailReader:
    """Reads a stream from a cut on and does not end. Not thread safe.

    The server answers a read at the tail when data arrive, so waiting costs nothing. One connection to each segment
    store carries the reads of all its segments. A lost connection is opened again, as long as it comes back within
    the timeout.
    """

    def __init__(self, stores: SegmentStores, start: StreamCut) -> None:
        self._stores = stores
        self._stream = start.stream
        self._lineage = Lineage(stores, start.stream)
        self._positions = dict(start.positions)
        self._finished: set[int] = set()
        self._tails = {i: _SegmentTail(start.stream, i, offset) for i, offset in self._positions.items()}
        self._connections: dict[Endpoint, Connection] = {}
        self._outage_began = self._failed_at = float("-inf")
        self._unanswered = 0

    @property
    def position(self) -> StreamCut:
        """Cut after the last event that was handed out."""
        return StreamCut(self._stream, self._positions)

    @property
    def at_end(self) -> bool:
        """Whether the stream was sealed and read to its end."""
        return not self._tails

    def poll(self, timeout: float) -> EventBatch | None:
        """The next events of one segment, or None if none arrived within ``timeout`` seconds or the stream ended.

        Raises DataLossError, SegmentStoreError, ControllerError, DeadlineExceededError.
        """
        end = time.monotonic() + timeout
        while self._tails:
            try:
                self._ask()
                batch = self._receive(max(0.0, end - time.monotonic()))
            except SegmentStoreError as error:
                self._recover(error)
                batch = None
            except DeadlineExceededError:
                self._start_over()  # what is left of the half answer must not be taken for the next one
                raise
            if batch is not None or time.monotonic() >= end:
                return batch
        return None

    def __enter__(self) -> TailReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[EventBatch]:
        """Yield batches until the stream is sealed and read to its end."""
        while not self.at_end:
            batch = self.poll(self._stores.timeout)
            if batch is not None:
                yield batch

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _ask(self) -> None:
        """Send a read for every segment that has none outstanding."""
        now = time.monotonic()
        for tail in self._tails.values():
            if tail.asked or tail.retry_at > now:
                continue
            endpoint = self._stores.endpoint(self._stream, tail.id)
            deadline = self._stores.deadline()
            connection = self._connections.get(endpoint)
            if connection is None:
                connection = self._connections[endpoint] = self._stores.pool.take(endpoint, deadline)
            token = self._stores.token(self._stream, write=False)
            request = ReadSegment(tail.name, tail.offset, READ_CHUNK, token, request_id=tail.id)
            connection.send(encode(request), deadline)
            tail.asked, tail.asked_at = True, time.monotonic()

    def _receive(self, timeout: float) -> EventBatch | None:
        asked = [t.asked_at for t in self._tails.values() if t.asked]
        answer_due = min(asked, default=float("inf")) + _PARKED_SECONDS
        waiting = min(timeout, answer_due - time.monotonic())
        if len(asked) < len(self._tails):
            waiting = min(waiting, _RETRY_PAUSE)  # the others are asked again soon
        ready, _ = wait_ready(list(self._connections.values()), [], max(0.0, waiting))
        if not ready:
            if time.monotonic() >= answer_due:
                self._unanswered += 1
                text = f"stream {self._stream}: a read was not answered for {_PARKED_SECONDS:g} s"
                if self._unanswered > 1:
                    raise DeadlineExceededError(f"{text}, and neither was the one before it")
                raise ConnectionLostError(text)
            return None
        reply = ready[0].receive(self._stores.deadline())
        if isinstance(reply, SegmentRead):
            self._failed_at, self._unanswered = float("-inf"), 0
            return self._take(reply)
        tail = self._tail_of(getattr(reply, "segment", None))
        error = error_of(reply, tail.name)
        if isinstance(error, SegmentSealedError):
            self._finish(tail)
            return None
        if isinstance(error, SegmentTruncatedError | NoSuchSegmentError):
            raise data_loss(self._stream, tail.id, tail.offset, error) from error
        raise error

    def _tail_of(self, name: str | None) -> _SegmentTail:
        for tail in self._tails.values():
            if name is None or tail.name == name:
                return tail
        raise SegmentStoreError(f"an answer came for segment {name}, which is not being read")

    def _take(self, reply: SegmentRead) -> EventBatch | None:
        tail = self._tail_of(reply.segment)
        if reply.offset != tail.offset:
            raise ProtocolError(f"segment {tail.name} answered a read at {tail.offset} with bytes of {reply.offset}")
        tail.asked = False
        column: EventColumn | None = None
        if len(reply.data):
            column = tail.parser.feed(reply.data)
            tail.offset += len(reply.data)
            self._positions[tail.id] = tail.offset - tail.parser.pending
        if reply.end_of_segment:
            self._finish(tail)
        if column is None or not len(column.offsets):
            return None
        return EventBatch(self._stream, tail.id, column.payload, column.offsets)

    def _finish(self, tail: _SegmentTail) -> None:
        tail.parser.finish()
        del self._tails[tail.id]
        self._finished.add(tail.id)
        for segment_id in self._lineage.advance(self._positions, self._finished):
            self._tails[segment_id] = _SegmentTail(self._stream, segment_id, 0)

    def _recover(self, error: SegmentStoreError) -> None:
        """Forget connections and ask again, unless this has not helped for the whole timeout.

        An outage is over with the first answer, and also when nothing has failed for as long as one may last: reads
        that wait at the tail are answered late when all is well.
        """
        now = time.monotonic()
        if now - self._failed_at > self._stores.timeout:
            self._outage_began = now
        self._failed_at = now
        if not error.retriable or now - self._outage_began > self._stores.timeout:
            raise error
        self._start_over()
        for tail in self._tails.values():
            self._stores.forget(self._stream, tail.id, error)
            tail.retry_at = now + _RETRY_PAUSE

    def _start_over(self) -> None:
        """Close the connections, so that every segment is asked for again from where its parser stands."""
        self.close()
        for tail in self._tails.values():
            tail.asked = False
