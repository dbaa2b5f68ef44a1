"""Following the tail of a stream: events as they arrive, in order for each routing key, across scaling.

Theory of operation
-------------------
The loop of :meth:`TailReader.poll` never waits for one server alone. What may block (look-ups, connects, questions to
the controller) is an errand; requests and replies go over non-blocking connections, one for each segment store, on
which the server holds the reads at the tail. A store that has nothing to say is asked for a sign of life, so that one
that is frozen is noticed though nothing is due from it. Whatever fails concerns the segments of its store alone: they
are looked up and asked for again, each from where its parser stands.

An interrupt can leave connections, errands and parsers in any state. So a reader notes that a call is under way; if the
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
from pravega_connector.core.connection import Connection, Endpoint, wait_ready
from pravega_connector.core.deadline import QUIET, Deadline
from pravega_connector.core.retry import Attempts
from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import (
    ConfigError,
    ConnectionLostError,
    ConnectorError,
    DeadlineExceededError,
    NoSuchSegmentError,
    SegmentSealedError,
    SegmentStoreError,
    SegmentTruncatedError,
    UnexpectedReplyError,
    WrongHostError,
)
from pravega_connector.reader.slices import EventBatch, data_loss
from pravega_connector.stores.segment_stores import SegmentStores, error_of
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
# Seconds after which a read without an answer is looked into. A store holds it until data come, or until it has done
# without the segment for a minute: for ever where other clients use the segment.
_PARKED_SECONDS: Final = 90.0
# Seconds without a word from a store before it is asked for one, and those that it has for that.
_PING_AFTER: Final = 5.0
# A request is some hundred bytes: a connection that does not take them at once is dead.
_SEND_SECONDS: Final = 1.0


class _SegmentTail:
    """One segment being followed: its parser and the one request that the server holds."""

    def __init__(self, stream: StreamName, segment_id: int, offset: int, attempts: Attempts) -> None:
        self.id = segment_id
        self.name = segment_name(stream, segment_id)
        self.offset = offset
        self.parser = FrameParser(offset, segment=self.name)
        self.attempts = attempts
        self.asked: Endpoint | None = None  # the store that holds a read
        self.request = ReadSegment(self.name, offset, 0, "", 0)  # the last one
        self.asked_at = 0.0
        self.overdue = 0  # reads in a row that were not answered though there was something to read


class TailReader(HintedNames):
    """Reads a stream from a cut on and does not end. Not thread safe.

    The server answers a read at the tail when data arrive, so waiting costs nothing. One connection to each segment
    store carries the reads of all its segments. Lost connections, frozen stores and moved segments are mended; only a
    segment that stays away for longer than a call may take is an error, and after it the reader can be polled again.
    """

    def __init__(self, stores: SegmentStores, start: StreamCut) -> None:
        self._stores = stores
        self._stream = start.stream
        self._label = str(start.stream)
        self._lineage = Lineage(stores, start.stream)
        self._positions = dict(start.positions)
        self._finished: set[int] = set()
        self._tails = {i: self._tail(i, offset) for i, offset in self._positions.items()}
        self._connections: dict[Endpoint, Connection] = {}
        self._pinged: dict[Endpoint, float] = {}  # when a word was asked for that has not come yet
        self._now = 0.0  # when the segments were looked through last
        self._errands = self._new_errands()
        self._in_call = False  # True between two calls: the last one was interrupted
        self._handed: tuple[int, int] | None = None  # segment and end of the last batch, unless in the positions
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
        """Cut after the last event that was handed out."""
        if self._handed is None or self._in_call:
            return StreamCut(self._stream, self._positions)
        segment_id, end = self._handed
        return StreamCut(self._stream, {**self._positions, segment_id: end})

    def __repr__(self) -> str:
        return f"TailReader({self.position})"

    @property
    def positions(self) -> list[StreamCut]:
        """The position, as readers of several streams have it."""
        return [self.position]

    @property
    def timeout(self) -> float:
        """Seconds that a call of the client may take."""
        return self._stores.timeout

    @property
    def at_end(self) -> bool:
        """Whether the stream was sealed and read to its end."""
        return not self._tails

    def poll(self, timeout: float) -> EventBatch | None:
        """The next events of one segment, or None if none arrived within ``timeout`` seconds or the stream ended.

        Raises DataLossError, and SegmentStoreError, ControllerError, DeadlineExceededError when a segment stays away;
        after one that is retriable it goes on with the next call.
        """
        arguments.wait("timeout", timeout)
        self.require_open()
        self._begin_call()
        try:
            batch = self._next(time.monotonic() + timeout)
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
        """Count the batch of the last call as not handed out: the next call reads it again."""
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
        """Drop what an interrupted call has left, and continue from the position."""
        self._errands.fileno()  # raises in a forked child, which must not read on
        self._handed = None
        self._disconnect()
        self._pinged.clear()
        self._errands = self._new_errands()
        open_ = self._positions.keys() - self._finished
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
            raise ConfigError(f"the reader of stream {self._stream} is closed: make a new one, with start=position")

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
        """Take what errands brought. Raises what cannot pass."""
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
                    self._lost(tail.asked, error)  # asked anew, the store of the segment itself says what is wrong
                return
            if isinstance(error, SegmentTruncatedError | NoSuchSegmentError):
                raise data_loss(self._stream, tail.id, tail.offset, error) from error
            self._failed(tail, error)

    def _begin(self, kind: str, about: Any, work: Callable[[Deadline], Any], tail: _SegmentTail) -> None:
        self._errands.begin((kind, about), lambda: work(tail.attempts.share()))

    def _locate(self, segment_id: int, deadline: Deadline) -> None:
        self._stores.endpoint(self._stream, segment_id, deadline)
        self._stores.token(self._stream, write=False, deadline=deadline)

    def _learn_end(self, segment_id: int, deadline: Deadline) -> bool:
        """Look for what follows a sealed segment; False for the last ones of a sealed stream.

        Raises WrongHostError where the controller does not know of either yet.
        """
        if self._lineage.successors(segment_id):
            return True
        if self._stores.controller.current_segments(self._stream, deadline=deadline):
            raise WrongHostError(f"segment {segment_name(self._stream, segment_id)} has ended, and nothing follows yet")
        return False

    def _look_into(self, segment_id: int, offset: int, asked_at: float, deadline: Deadline) -> tuple[float, bool]:
        """Check whether a read that was asked at a time should have been answered."""
        info = self._stores.segment_infos(self._stream, [segment_id], deadline=deadline)[segment_id]
        return asked_at, not info.exists or info.sealed or info.write_offset > offset

    def _looked_into(self, tail: _SegmentTail, asked_at: float, overdue: bool) -> None:
        if tail.asked is None or tail.asked_at != asked_at:
            return  # the answer has come
        if not overdue:
            tail.asked_at = time.monotonic()
            return
        tail.overdue += 1
        silence = time.monotonic() - asked_at
        text = f"stream {self._stream}: there are events, but a read of them was not answered for {silence:.0f} s"
        self._lost(tail.asked, ConnectionLostError(text))
        if tail.overdue > 1:
            tail.overdue = 0
            raise DeadlineExceededError(f"{text}, and neither was the one before it")

    # ---------------------------------------------------------------- requests

    def _ask(self) -> None:
        """Send a read for every segment that has none outstanding."""
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
        """Whether nothing is under way for a segment but, at most, a connection to its store."""
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
                    self._connections[endpoint] = self._connections.pop(endpoint)  # the others first, next time
                    return batch
        return None

    def _ready(self, timeout: float) -> list[Endpoint]:
        """The stores from which something has come, after at most ``timeout`` seconds or until something is due."""
        sources, seconds = self.waits()
        self._in_call = False  # an interrupt of the wait leaves nothing undone
        ready, _ = wait_ready(sources, [], min(timeout, seconds))
        self._in_call = True
        return [endpoint for endpoint, connection in self._connections.items() if connection in ready]

    def waits(self) -> tuple[list[Errands | Connection], float]:
        """What :meth:`poll` waits for: sources of news, and the seconds until something is due without any."""
        now = self._now
        due = [tail.attempts.due for tail in self._tails.values() if tail.attempts.due > now]
        due += [self._due(endpoint) for endpoint in self._connections]
        for tail in self._tails.values():
            if tail.asked is not None:
                if not self._errands.is_under_way(("overdue", tail.id)):  # whose result wakes the loop
                    due.append(tail.asked_at + _PARKED_SECONDS)
                if tail.attempts.in_trouble:
                    due.append(tail.asked_at + self._settled)
        seconds = min((at - time.monotonic() for at in due), default=math.inf)
        return [self._errands, *self._connections.values()], max(0.0, seconds)

    def _due(self, endpoint: Endpoint) -> float:
        """Time of the next keep-alive to a store, or by which it must have answered the last one."""
        return self._pinged.get(endpoint, self._connections[endpoint].heard_at) + _PING_AFTER

    @property
    def _settled(self) -> float:
        """Seconds after which a read that is not refused is held by the store: all is well, though nothing comes."""
        return min(QUIET, self._stores.timeout)

    def _look_after(self, ready: list[Endpoint]) -> None:
        """Ask stores that have been quiet for a word; give up those that did not give it, and reads that were lost."""
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
        if isinstance(reply, AuthTokenCheckFailed):  # it does not say which read it refuses
            self._lost(endpoint, error_of(reply, f"of stream {self._stream}"))
            return None
        tail = self._tail_of(reply, endpoint)
        if tail is None:
            self._lost(endpoint, UnexpectedReplyError.of(f"a store of stream {self._stream}", reply))
            return None
        if isinstance(reply, SegmentRead):
            return self._take_data(reply, tail)
        error = error_of(reply, tail.name)
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
        """Return the segment whose read a reply answers; None if it answers none."""
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
        self._handed = tail.id, tail.parser.offset
        return EventBatch(self._stream, tail.id, column.payload, column.offsets)

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

    # ---------------------------------------------------------------- trouble

    def _lost(self, endpoint: Endpoint, error: ConnectorError) -> None:
        """Do without a connection, and ask anew where its segments are."""
        connection = self._connections.pop(endpoint, None)
        self._pinged.pop(endpoint, None)
        if connection is not None:
            connection.close()
            self._stores.health.count("reconnects", _logger, f"stream {self._stream}: {error.message}")
        concerned = [
            tail
            for tail in self._tails.values()
            if tail.asked == endpoint
            # None: forgotten just now, by another reader.
            or (self._waits(tail) and self._stores.known_endpoint(self._stream, tail.id) in (endpoint, None))
        ]
        for tail in concerned:
            tail.asked = None
        for tail in concerned:
            self._failed(tail, error)

    def _failed(self, tail: _SegmentTail, error: PravegaError) -> None:
        """Have a segment looked up and asked for again. Raises the error if that has not helped for long enough."""
        tail.asked = None
        self._stores.forget(self._stream, tail.id, error)
        if not error.retriable:
            raise error
        tail.attempts.failed(error)
        if tail.attempts.deadline.passed:
            given_up = tail.attempts.given_up()
            tail.attempts.close()
            raise given_up
