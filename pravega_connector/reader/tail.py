"""Reader of the tail of a stream: events as they arrive, in order per routing key, across scaling.

Theory of operation
-------------------
The loop of :meth:`TailReader.poll` never waits for a single server. Calls that may block (look-ups, connects,
questions to the controller) are errands. Requests and replies use non-blocking connections, one for each segment
store. The server holds the reads at the tail. A quiet store gets a keep-alive and must answer it, so the reader
notices a frozen store even if no reply is due. A failure affects only the segments of its store. They are looked up
and requested again, each from the position of its parser.

An interrupt can leave connections, errands and parsers in any state. So a reader notes that a call is under way. If the
last call was interrupted, the next one drops them and continues from the position. The position moves in the one step
that ends a call, so it never includes events that the call did not return.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Final

from pravega_connector import metrics
from pravega_connector.core import arguments
from pravega_connector.core.background import Errands
from pravega_connector.core.connection import Connection, Endpoint, ProcessBound, wait_ready
from pravega_connector.core.deadline import QUIET, Deadline
from pravega_connector.core.retry import Attempts
from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import (
    ConfigError,
    ConnectionLostError,
    ConnectorError,
    DeadlineExceededError,
    NoSuchSegmentError,
    RoutingKeyError,
    SegmentSealedError,
    SegmentStoreError,
    SegmentTruncatedError,
    StreamNotFoundError,
    UnexpectedReplyError,
    WrongHostError,
)
from pravega_connector.reader.slices import EventBatch, Select, data_loss
from pravega_connector.stores.segment_stores import SegmentStores, error_of, read_error_of
from pravega_connector.stores.segments import Lineage
from pravega_connector.wire import (
    READ_CHUNK,
    AuthTokenCheckFailed,
    EventColumn,
    FrameParser,
    KeepAlive,
    Message,
    ReadSegment,
    SegmentRead,
    StreamCut,
    StreamName,
    answers,
    encode,
    segment_name,
)
from pravega_serde import after_fork
from pravega_serde.errors import PravegaError

_logger: Final = logging.getLogger(__name__)
# Seconds before a read without a reply is checked. A store holds a read until data arrive, or until the segment was not
# used for a minute. If other clients use the segment, the store holds it forever.
_PARKED_SECONDS: Final = 90.0
# Seconds of silence before a store gets a keep-alive, and seconds that it then has to answer.
_PING_AFTER: Final = 5.0
# A request has about a hundred bytes: a connection that does not accept them at once is dead.
_SEND_SECONDS: Final = 1.0


class _SegmentTail:
    """Segment that is being followed: its parser and the one request that the server holds."""

    def __init__(self, stream: StreamName, segment_id: int, offset: int, attempts: Attempts) -> None:
        self.id = segment_id
        self.name = segment_name(stream, segment_id)
        self.offset = offset
        self.parser = FrameParser(offset, segment=self.name)
        self.attempts = attempts
        self.asked: Endpoint | None = None  # the store that holds a read
        self.request = ReadSegment(self.name, offset, 0, "", 0)  # the last request
        self.asked_at = 0.0
        self.overdue = 0  # consecutive reads without a reply although there were data


class TailReader(HintedNames, ProcessBound):
    """Reader that follows a stream from a cut and does not end. Not thread safe.

    The server answers a read at the tail when data arrive, so waiting costs nothing. One connection to each segment
    store carries the reads of all its segments. Lost connections, frozen stores and moved segments are retried. Only a
    segment that stays unavailable for longer than a call may take raises an error. After that error, you can poll the
    reader again.
    """

    def __init__(
        self,
        stores: SegmentStores,
        start: StreamCut,
        lineage: Lineage | None = None,
        select: Select | None = None,
    ) -> None:
        """With a ``lineage`` of one routing key, only its segments are read. ``select`` filters their events."""
        self._stores = stores
        self._stream = start.stream
        self._label = str(start.stream)
        self._lineage = lineage or Lineage(stores, start.stream)
        self._select = select
        self._positions = dict(start.positions)
        self._finished: set[int] = set()
        self._tails = {i: self._tail(i, self._positions[i]) for i in self._lineage.included(start)}
        self._connections: dict[Endpoint, Connection] = {}
        self._pinged: dict[Endpoint, float] = {}  # time of the keep-alive that was not answered yet
        self._now = 0.0  # time of the last pass over the segments
        self._errands = self._new_errands()
        self._in_call = False  # True between two calls if the last one was interrupted
        self._handed: tuple[int, int] | None = None  # segment and end of the last batch, until in positions
        self._closed = False
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._errands = after_fork.inherited(f"reader of stream {self._stream}")

    def _tail(self, segment_id: int, offset: int) -> _SegmentTail:
        attempts = self._stores.health.attempts(_logger, f"following stream {self._stream}")
        return _SegmentTail(self._stream, segment_id, offset, attempts)

    def _new_errands(self) -> Errands:
        return Errands(f"pravega-reader {self._stream}")

    @property
    def position(self) -> StreamCut:
        """Cut after the last returned event."""
        if self._handed is None or self._in_call:
            return StreamCut(self._stream, self._positions)
        segment_id, end = self._handed
        return StreamCut(self._stream, {**self._positions, segment_id: end})

    def __repr__(self) -> str:
        return f"TailReader({self.position})"

    @property
    def positions(self) -> list[StreamCut]:
        """The position in a list, as readers of several streams return it."""
        return [self.position]

    @property
    def timeout(self) -> float:
        """Seconds that a call of the client may take."""
        return self._stores.timeout

    @property
    def at_end(self) -> bool:
        """True if the stream was sealed and read to its end."""
        return not self._tails

    def poll(self, timeout: float) -> EventBatch | None:
        """Return the next events of one segment, or None after ``timeout`` seconds or when the stream has ended.

        Raises DataLossError. Raises SegmentStoreError, ControllerError or DeadlineExceededError if a segment stays
        unavailable. After a retriable error, the next call continues.
        """
        arguments.wait("timeout", timeout)
        self.require_open()
        self._begin_call()
        try:
            batch = self._next(time.monotonic() + timeout)
        except RoutingKeyError:
            raise  # as after an interrupt: the next call reads the events again
        except Exception:
            self._in_call = False
            raise
        try:
            self._in_call = False
            return batch
        except BaseException:
            self.take_back()
            raise

    def take_back(self) -> None:
        """Mark the batch of the last call as not returned: the next call reads it again."""
        self._in_call = True

    def _begin_call(self) -> None:
        if self._in_call:
            self._restart()
        if self._handed is not None:
            segment_id, end = self._handed
            self._positions[segment_id] = end
            self._handed = None
        self._in_call = True

    def _restart(self) -> None:
        """Drop the state of an interrupted call, and continue from the position."""
        self._errands.fileno()  # raises in a forked child, which must not continue to read
        self._handed = None
        self._disconnect()
        self._pinged.clear()
        self._errands = self._new_errands()
        open_ = filter(self._lineage.includes, self._positions.keys() - self._finished)
        self._tails = {segment_id: self._tail(segment_id, self._positions[segment_id]) for segment_id in open_}
        self._in_call = False

    def _next(self, end: float) -> EventBatch | None:
        while self._tails:
            self._run_errands()
            if not self._tails:
                break
            self._ask()
            batch = self._receive(max(0.0, end - time.monotonic()))
            self.require_open()  # another task may have closed it
            if batch is not None or time.monotonic() >= end:
                return batch
        return None

    def require_open(self) -> None:
        """Raise ConfigError after :meth:`close`."""
        if self._closed:
            raise ConfigError(f"the reader of stream {self._stream} is closed: create a new reader with start=position")

    def __enter__(self) -> TailReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[EventBatch]:
        """Yield batches until the stream is sealed and read to its end."""
        while not self.at_end:
            batch = self.poll(self.timeout)
            if batch is not None:
                yield batch

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._disconnect()

    def _disconnect(self) -> None:
        self._errands.close()
        for tail in self._tails.values():
            tail.attempts.close()
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # ---------------------------------------------------------------- errands

    def _run_errands(self) -> None:
        """Process the results of errands. Raises errors that are not retriable."""
        for key, result in self._errands.take():
            kind, about = key
            if isinstance(result, Exception):
                self._errand_failed(kind, about, result)
            elif kind == "connect":
                self._connections[about] = result
            elif kind == "end" and about in self._tails:
                self._finish(self._tails[about], followed=result)
            elif kind == "overdue" and about in self._tails:
                self._looked_into(self._tails[about], *result)

    def _errand_failed(self, kind: str, about: Any, error: Exception) -> None:
        if not isinstance(error, ConnectorError):
            raise error
        if kind == "connect":
            self._lost(about, error)
        elif (tail := self._tails.get(about)) is not None:
            if kind == "overdue":
                if tail.asked is not None:
                    self._lost(tail.asked, error)  # the segment's store reports the reason on the next read
                return
            if isinstance(error, SegmentTruncatedError | NoSuchSegmentError | StreamNotFoundError):
                raise data_loss(self._stream, tail.id, tail.offset, error) from error
            self._failed(tail, error)

    def _begin(self, kind: str, about: Any, work: Callable[[Deadline], Any], tail: _SegmentTail) -> None:
        self._errands.begin((kind, about), lambda: work(tail.attempts.share()))

    def _locate(self, segment_id: int, deadline: Deadline) -> None:
        self._stores.endpoint(self._stream, segment_id, deadline)
        self._stores.token(self._stream, write=False, deadline=deadline)

    def _learn_end(self, segment_id: int, deadline: Deadline) -> bool:
        """Return True if other segments follow a sealed one, False for the last segments of a sealed stream.

        Raises WrongHostError if the controller reports neither yet.
        """
        if self._lineage.successors(segment_id):
            return True
        if self._stores.controller.current_segments(self._stream, deadline=deadline):
            raise WrongHostError(
                f"segment {segment_name(self._stream, segment_id)} has ended, and has no successor yet"
            )
        return False

    def _look_into(self, segment_id: int, offset: int, asked_at: float, deadline: Deadline) -> tuple[float, bool]:
        """Return ``asked_at``, and True if a read that was sent then should have been answered."""
        info = self._stores.segment_infos(self._stream, [segment_id], deadline=deadline)[segment_id]
        return asked_at, not info.exists or info.sealed or info.write_offset > offset

    def _looked_into(self, tail: _SegmentTail, asked_at: float, overdue: bool) -> None:
        if tail.asked is None or tail.asked_at != asked_at:
            return  # the reply has arrived
        if not overdue:
            tail.asked_at = time.monotonic()
            return
        tail.overdue += 1
        silence = time.monotonic() - asked_at
        text = f"stream {self._stream}: the stream has events, but a read was not answered for {silence:.0f} s"
        self._lost(tail.asked, ConnectionLostError(text))
        if tail.overdue > 1:
            tail.overdue = 0
            raise DeadlineExceededError(f"{text}, nor was the read before it")

    # ---------------------------------------------------------------- requests

    def _ask(self) -> None:
        """Send a read for each segment without an outstanding one."""
        now = self._now = time.monotonic()
        for tail in list(self._tails.values()):
            if tail.attempts.due > now or not self._waits(tail):
                continue
            endpoint = self._stores.known_endpoint(self._stream, tail.id)
            token = self._stores.known_token(self._stream, write=False)
            if endpoint is None or token is None:
                self._begin("locate", tail.id, partial(self._locate, tail.id), tail)
                continue
            connection = self._connections.get(endpoint)
            if connection is None:
                self._begin("connect", endpoint, partial(self._stores.pool.take, endpoint), tail)
                continue
            request = ReadSegment(tail.name, tail.offset, READ_CHUNK, token, request_id=tail.id)
            try:
                connection.send(encode(request), Deadline(_SEND_SECONDS))
            except (SegmentStoreError, DeadlineExceededError) as error:
                self._lost(endpoint, error)
                continue
            tail.asked, tail.asked_at, tail.request = endpoint, now, request

    def _waits(self, tail: _SegmentTail) -> bool:
        """True if nothing is in flight for a segment except, at most, a connection to its store."""
        return tail.asked is None and not any(
            self._errands.is_under_way((kind, tail.id)) for kind in ("locate", "confirm", "end")
        )

    # ---------------------------------------------------------------- replies

    def _receive(self, timeout: float) -> EventBatch | None:
        ready = self._ready(timeout)
        self._look_after(ready)
        for endpoint in ready:
            connection = self._connections.get(endpoint)
            while connection is not None and connection is self._connections.get(endpoint):
                try:
                    reply = connection.receive_now()
                except SegmentStoreError as error:
                    self._lost(endpoint, error)
                    break
                if reply is None:
                    break
                batch = self._take(reply, endpoint)
                if batch is not None:
                    self._connections[endpoint] = self._connections.pop(endpoint)  # now the last in turn
                    return batch
        return None

    def _ready(self, timeout: float) -> list[Endpoint]:
        """Return the stores with input, after at most ``timeout`` seconds or when something is due."""
        sources, seconds = self.waits()
        self._in_call = False  # an interrupt of the wait loses nothing
        ready, _ = wait_ready(sources, [], min(timeout, seconds))
        self._in_call = True
        return [endpoint for endpoint, connection in self._connections.items() if connection in ready]

    def waits(self) -> tuple[list[Errands | Connection], float]:
        """Return the sources that :meth:`poll` waits for, and the seconds until something is due without input."""
        now = self._now
        due = [tail.attempts.due for tail in self._tails.values() if tail.attempts.due > now]
        due += [self._due(endpoint) for endpoint in self._connections]
        for tail in self._tails.values():
            if tail.asked is not None:
                if not self._errands.is_under_way(("overdue", tail.id)):  # its result wakes the loop
                    due.append(tail.asked_at + _PARKED_SECONDS)
                if tail.attempts.in_trouble:
                    due.append(tail.asked_at + self._settled)
        seconds = min((at - time.monotonic() for at in due), default=math.inf)
        return [self._errands, *self._connections.values()], max(0.0, seconds)

    def _due(self, endpoint: Endpoint) -> float:
        """Return the time of the next keep-alive to a store, or the time limit for its answer to the last one."""
        return self._pinged.get(endpoint, self._connections[endpoint].heard_at) + _PING_AFTER

    @property
    def _settled(self) -> float:
        """Seconds after which the store holds a read that it did not refuse.

        The read has then succeeded, although no data arrive.
        """
        return min(QUIET, self._stores.timeout)

    def _look_after(self, ready: list[Endpoint]) -> None:
        """Send keep-alives to quiet stores. Give up stores that did not answer one, and lost reads."""
        now = time.monotonic()
        for endpoint, connection in list(self._connections.items()):
            if endpoint in ready:
                continue
            if connection.heard_at >= self._pinged.get(endpoint, now):
                self._pinged.pop(endpoint, None)
            if now < self._due(endpoint):
                continue
            if endpoint in self._pinged:
                self._lost(endpoint, connection.gone_silent(now - connection.heard_at))
                continue
            try:
                connection.send(encode(KeepAlive()), Deadline(_SEND_SECONDS))
            except (SegmentStoreError, DeadlineExceededError) as error:
                self._lost(endpoint, error)
            else:
                self._pinged[endpoint] = now
        for tail in list(self._tails.values()):
            if tail.asked is None or tail.asked in ready:
                continue
            if now >= tail.asked_at + _PARKED_SECONDS:
                self._begin("overdue", tail.id, partial(self._look_into, tail.id, tail.offset, tail.asked_at), tail)
            elif tail.attempts.in_trouble and now >= tail.asked_at + self._settled:
                tail.attempts.done()

    def _take(self, reply: Message, endpoint: Endpoint) -> EventBatch | None:
        if isinstance(reply, AuthTokenCheckFailed):  # it does not name the read that it refuses
            self._lost(endpoint, error_of(reply, f"of stream {self._stream}"))
            return None
        tail = self._tail_of(reply, endpoint)
        if tail is None:
            self._lost(endpoint, UnexpectedReplyError.of(f"a store of stream {self._stream}", reply))
            return None
        if isinstance(reply, SegmentRead):
            return self._take_data(reply, tail)
        error = read_error_of(reply, tail.name)
        if isinstance(error, SegmentSealedError):
            self._begin("end", tail.id, partial(self._learn_end, tail.id), tail)
        elif isinstance(error, SegmentTruncatedError | NoSuchSegmentError):
            self._begin("confirm", tail.id, partial(self._stores.confirm, self._stream, tail.id, error), tail)
        else:
            self._failed(tail, error)
            return None
        tail.asked = None
        return None

    def _tail_of(self, reply: Message, endpoint: Endpoint) -> _SegmentTail | None:
        """Return the segment with the read that a reply answers, or None."""
        tail = self._tails.get(getattr(reply, "request_id", -1))
        if tail is None or tail.asked != endpoint or not answers(tail.request, reply):
            return None
        return tail

    def _take_data(self, reply: SegmentRead, tail: _SegmentTail) -> EventBatch | None:
        tail.asked, tail.overdue = None, 0
        tail.attempts.done()
        column: EventColumn | None = None
        if len(reply.data):
            column = tail.parser.feed(reply.data)
            metrics.CONSUMED_BYTES.add(len(reply.data), self._label)
            tail.offset += len(reply.data)
        if reply.end_of_segment:
            self._begin("end", tail.id, partial(self._learn_end, tail.id), tail)
        if column is None or not len(column.offsets):
            return None
        metrics.CONSUMED_EVENTS.add(len(column.offsets), self._label)
        batch = EventBatch(self._stream, tail.id, column.payload, column.offsets)
        if self._select is not None:
            batch = self._select(batch, self._lineage.range_of(tail.id))
            if not len(batch.offsets):
                self._positions[tail.id] = tail.parser.offset
                return None
        self._handed = tail.id, tail.parser.offset
        return batch

    def _finish(self, tail: _SegmentTail, *, followed: bool) -> None:
        tail.parser.finish()
        tail.attempts.done()
        if followed:  # else the stream is sealed: its position stays after the last event
            positions, finished = dict(self._positions), self._finished | {tail.id}
            started = self._lineage.advance(positions, finished)
            self._positions, self._finished = positions, finished
            for segment_id in started:
                self._tails[segment_id] = self._tail(segment_id, 0)
        del self._tails[tail.id]

    # ---------------------------------------------------------------- failures

    def _lost(self, endpoint: Endpoint, error: ConnectorError) -> None:
        """Drop a connection, and look up the segments of its store again."""
        connection = self._connections.pop(endpoint, None)
        self._pinged.pop(endpoint, None)
        if connection is not None:
            connection.close()
            self._stores.health.count("reconnects", _logger, f"stream {self._stream}: {error.message}")
        concerned = [
            tail
            for tail in self._tails.values()
            if tail.asked == endpoint
            # None: another reader has just forgotten it.
            or (self._waits(tail) and self._stores.known_endpoint(self._stream, tail.id) in (endpoint, None))
        ]
        for tail in concerned:
            tail.asked = None
        for tail in concerned:
            self._failed(tail, error)

    def _failed(self, tail: _SegmentTail, error: PravegaError) -> None:
        """Look up and request a segment again. Raises the error if it is not retriable or the time is up."""
        tail.asked = None
        self._stores.forget(self._stream, tail.id, error)
        if not error.retriable:
            raise error
        tail.attempts.failed(error)
        if tail.attempts.deadline.passed:
            given_up = tail.attempts.given_up()
            tail.attempts.close()
            raise given_up
