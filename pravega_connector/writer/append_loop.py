"""The loop behind a writer: moves blocks into segments over non-blocking connections until they are durable.

Callers hand over blocks in an :class:`~.inbox.Inbox` and wait with :meth:`AppendLoop.flush`. Everything else, set-ups,
acknowledgements, scaling, lost connections, happens in one thread or task, so no session needs a lock. Blocking work is
a background job: look-ups, connects, large events, checks of a segment's end. A segment has one job at a time and waits
for it; the other segments continue.

A block that does not fit into one wire frame is written to a transient segment, then merged in one step (Java:
``LargeEventWriter``). The transient segment lives as long as the connection, so a failure leaves nothing.
"""

from __future__ import annotations

import atexit
import logging
import math
import time
import uuid
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pravega_connector import metrics
from pravega_connector.core import io
from pravega_connector.core.background import Errands
from pravega_connector.core.connection import AppendConnection, Connection, Endpoint, wait_ready
from pravega_connector.core.deadline import QUIET, Deadline
from pravega_connector.core.retry import Attempts
from pravega_connector.core.values import Successor
from pravega_connector.errors import (
    ConnectionLostError,
    ConnectorError,
    DeadlineExceededError,
    NoSuchSegmentError,
    SegmentSealedError,
    SegmentStoreError,
    UnexpectedReplyError,
    WrongHostError,
)
from pravega_connector.stores.segment_stores import SegmentStores, error_of
from pravega_connector.wire import (
    AppendSession,
    AppendSetup,
    AppendState,
    Block,
    ConditionalBlockEnd,
    CreateTransientSegment,
    DataAppended,
    GetSegmentAttribute,
    KeepAlive,
    MergeSegments,
    Message,
    SegmentAttribute,
    SegmentAttributeUpdated,
    SegmentCreated,
    SegmentsMerged,
    SetupAppend,
    StreamName,
    encode,
)
from pravega_connector.writer.inbox import Inbox
from pravega_connector.writer.routing import Destination
from pravega_serde import after_fork

# Bytes on the wire and not acknowledged, for each segment: enough to keep a server busy, little to send again.
SEGMENT_WINDOW: Final = 8 << 20
# Connections to one segment store: several let it work for several containers at once.
_CONNECTIONS_PER_ENDPOINT: Final = 4
_KEEP_ALIVE_SECONDS: Final = 5.0
# A store that owes an answer for this time is treated as failed: a frozen process, or a host without power, closes no
# connection. A wrong decision costs little, because a new connection resumes from the store's last event.
SILENCE_SECONDS: Final = 10.0
# Seconds between two automatic notes of event time, as in Java's writer.
NOTE_SECONDS: Final = 5.0
_NOTE: Final = ("time", None)
# An attempt at a large event: some hundred MB at a slow store.
_LARGE_SECONDS: Final = 30.0
_MERGED: Final = 1
# Bytes of one append of it.
_PIECE: Final = 4 << 20
_logger: Final = logging.getLogger(__name__)


# Loops of writers that were not closed, but for those that have delivered everything after their writer was collected.
_unclosed: Final[weakref.WeakSet[AppendLoop]] = weakref.WeakSet()


def settle(acknowledgement: Any, error: ConnectorError | None = None) -> None:
    """End the Future of a block, unless it has ended."""
    if not acknowledgement.done():
        if error is None:
            acknowledgement.set_result(None)
        else:
            acknowledgement.set_exception(error)


class Delivery:
    """Events of a writer that are not durable, and the warnings about them if the writer is not closed.

    A finalizer of the writer holds it. So it must not refer to an error: its traceback may refer to the writer.
    """

    __slots__ = ("_inbox", "_wake", "_writer", "durable", "failure", "is_orphaned", "timeout")

    def __init__(self, writer: str, inbox: Inbox, wake: Callable[[], None]) -> None:
        """``writer`` is a name; ``wake`` wakes the thread of the loop."""
        self._writer, self._inbox, self._wake = writer, inbox, wake
        self.durable = 0
        """Number of events that are durable."""
        self.failure: str | None = None
        """Reason why the loop has ended, if it has."""
        self.is_orphaned = False
        """Whether the writer was collected before it was closed."""
        self.timeout: float | None = None
        """Seconds to deliver the events of a writer that was collected."""

    @property
    def unflushed(self) -> int:
        """Number of events that were accepted and are not durable."""
        return self._inbox.accepted - self.durable

    def orphan(self, timeout: float | None) -> None:
        """Warn of a writer that was collected; make the loop deliver its events, and then end.

        A garbage collection may call it at any line of any thread, so it takes no lock and does not wait.
        """
        self.timeout, self.is_orphaned = timeout, True
        self._wake()
        if self.failure is not None:
            self.report_loss(self.failure)
        self._warn("unclosed")

    def at_exit(self) -> None:
        """Report the events that the process takes with it."""
        if self.unflushed:
            _logger.error(
                "the process ends before %d events of %s are durable: close the writer first",
                self.unflushed,
                self._writer,
            )
            self._warn("unclosed at the end of the process:")

    def report_loss(self, reason: str) -> None:
        """Log how many events are lost, if any."""
        if self.unflushed:
            _logger.error("%s was not closed, and %d of its events are lost: %s", self._writer, self.unflushed, reason)

    def _warn(self, reason: str) -> None:
        text = f"{reason} {self._writer} (unflushed events: {self.unflushed}); use it in a 'with' block"
        warnings.warn(text, ResourceWarning, stacklevel=2)


@dataclass(slots=True)
class _Lane:
    """A segment's session with its connection and its attempts to connect."""

    segment_id: int
    session: AppendSession
    attempts: Attempts
    connection: AppendConnection | None = None
    busy: bool = False  # an errand is under way for it
    ended: SegmentStoreError | None = None  # what a store said of its end, until it is known what follows


class AppendLoop:
    """Sends blocks to segments; thread safe for its callers."""

    def __init__(
        self,
        stores: SegmentStores,
        destination: Destination,
        inbox: Inbox,
        *,
        max_in_flight: int,
        note_time: Callable[[int], object] | None = None,
    ) -> None:
        """``note_time`` notes an event time in milliseconds for everything that is durable now. It may block."""
        self._note_time = note_time
        self._note_at = math.inf if note_time is None else time.monotonic() + NOTE_SECONDS
        self._noting: tuple[int, int] | None = None  # a time to note, and the mark that must be durable first
        self._stores, self._destination, self._routes = stores, destination, inbox.routes
        self._stream: StreamName = destination.stream
        self._label = str(destination.stream)
        self._max_in_flight = max_in_flight
        self._collect_at = math.inf
        self._bell = io.bell()
        self._inbox = inbox
        self._durable = 0  # bytes of what was handed over
        # Bytes that are not durable of each hand-over, by its mark: the number of bytes that were handed over before.
        self._open: OrderedDict[int, int] = OrderedDict()
        self._settled = 0  # everything before this mark is durable
        self._failure: ConnectorError | None = None
        self._trouble: ConnectorError | None = None  # the last passing error, for the text of a deadline
        self._closing = False
        self._limit: Deadline | None = None  # for the events of a writer that was collected
        self._lanes: dict[int, _Lane] = {}
        self._connections: dict[tuple[Endpoint, int], AppendConnection] = {}
        self._request_id = 0
        self._now = 0.0  # when the lanes were looked through last
        self._errands = Errands(f"pravega-writer {self._stream}")
        self.delivery = Delivery(destination.writer, inbox, self._errands.wake)
        _unclosed.add(self)
        after_fork.register(self)
        self._worker = io.start(self._run, f"pravega-writer {self._stream}")

    def _after_fork(self) -> None:
        _unclosed.discard(self)

    # ---------------------------------------------------------------- callers' side

    @property
    def _in_flight(self) -> int:
        """Bytes that were handed over and are not durable."""
        return self._inbox.enqueued - self._durable

    @property
    def has_room(self) -> bool:
        """True if another piece of any size may be handed over: the bytes in flight are below the limit."""
        return self._in_flight < self._max_in_flight

    @property
    def is_durable(self) -> bool:
        """True if everything that was handed over is durable."""
        return not self._in_flight

    def wait_for_room(self, deadline: Deadline) -> None:
        """Return when :attr:`has_room`."""
        self._wait_until(lambda: self.has_room, deadline)

    def flush(self, deadline: Deadline) -> None:
        """Wait until everything handed over before is durable. Later events of other threads do not extend the wait."""
        mark = self._inbox.enqueued
        self._wait_until(lambda: self._settled >= mark, deadline)
        self.raise_failure()

    def wake(self) -> None:
        """Make the thread look at once."""
        self._errands.wake()

    def close(self) -> None:
        """End the thread; what is not durable is given up."""
        self._closing = True
        _unclosed.discard(self)
        self._failure = self._failure or self._destination.closed()
        self._bell.ring()
        self.wake()
        self._worker.join()

    @property
    def failure(self) -> ConnectorError | None:
        """Reason why the thread has ended, or ends, if it does."""
        return self._failure

    def raise_failure(self) -> None:
        """Raise what ended the thread, if it has ended."""
        if self._failure is not None:
            raise self._failure

    def _wait_until(self, is_so: Callable[[], bool], deadline: Deadline) -> None:
        while not is_so():
            self.raise_failure()
            try:
                left = deadline.remaining(f"writing to stream {self._stream}")
            except DeadlineExceededError as error:
                cause = f" (last error: {self._trouble})" if self._trouble else ""
                raise DeadlineExceededError(
                    f"{error.message}; {self._in_flight} bytes are not acknowledged{cause}"
                ) from None
            self._bell.wait(lambda: self._failure is not None or is_so(), left)

    # ---------------------------------------------------------------- the thread

    def _run(self) -> None:
        try:
            while not self._closing and not (self.delivery.is_orphaned and self._is_delivered()):
                self._step()
        except ConnectorError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - a bug must reach the caller, not end a thread in silence
            self._fail(ConnectorError(f"writing to stream {self._stream} failed: {type(error).__name__}: {error}"))
        except BaseException:  # an event loop that ends
            self._fail(ConnectorError(f"writing to stream {self._stream} was cancelled"))
            raise
        finally:
            for connection in self._connections.values():
                connection.close()
            for lane in self._lanes.values():
                lane.attempts.close()
            self._errands.close()
            self._refuse_waiting()
            if self.delivery.is_orphaned:
                self.delivery.report_loss(str(self._failure or self._trouble or "the delivery timeout has passed"))
                _unclosed.discard(self)

    def _is_delivered(self) -> bool:
        """Return True if a collected writer has delivered all events, or its time is over."""
        if self._limit is None:
            self._limit = self._stores.deadline(self.delivery.timeout)
        return not self.delivery.unflushed or self._limit.passed

    def _fail(self, error: ConnectorError) -> None:
        self._failure, self.delivery.failure = error, str(error)
        self._bell.ring()

    def _refuse_waiting(self) -> None:
        """End the acknowledgements of all blocks that are not durable with the reason why the thread ends."""
        error = self._failure or self._destination.closed()
        blocks = [block for lane in self._lanes.values() for block in lane.session.take_unacknowledged()]
        for block in [*blocks, *(block for _, block in self._inbox.take())]:
            if block.note is not None:
                settle(block.note, error)

    def _step(self) -> None:
        self._take_inbox()
        self._now = time.monotonic()
        if self._note_at <= self._now or self._noting is not None:
            self._note_present()
        for lane in list(self._lanes.values()):
            self._push(lane)
        self._wait_for_io()

    def _note_present(self) -> None:
        """Note the present, as soon as all events that were accepted before it are durable."""
        if self._noting is None:
            rows, now = self._inbox.rows, time.time()
            # Rows that are not handed over yet were accepted since then.
            past = self._now - rows.since if rows.values else 0.0
            self._noting = int((now - max(0.0, past)) * 1000), rows.enqueued
        if self._note_at <= self._now:
            self._note_at = self._now + NOTE_SECONDS
        millis, mark = self._noting
        if self._settled >= mark and not self._errands.is_under_way(_NOTE):
            self._noting = None
            assert self._note_time is not None
            self._errands.begin(_NOTE, partial(self._note_time, millis))

    def _take_inbox(self) -> None:
        self._collect_at = self._inbox.collect(lambda: self.has_room)
        for segment_id, block in self._inbox.take():
            self._open[block.mark] = self._open.get(block.mark, 0) + len(block.data)
            self._enqueue(segment_id, block)

    def _enqueue(self, segment_id: int, block: Block) -> None:
        if not self._routes.is_current(segment_id):
            # Routed before the segment was found sealed.
            for target, part in block.split(self._routes.targets(block.positions)):
                self._enqueue(target, part)
            return
        lane = self._lanes.get(segment_id)
        if lane is None:
            name = self._destination.segment_name(segment_id)
            writer_id, before = block.sender or (uuid.uuid4().bytes, None)
            session = AppendSession(name, writer_id, window=SEGMENT_WINDOW, before=before)
            # Without an end: a caller's deadline bounds that caller's wait, and many writers never flush.
            attempts = self._stores.health.attempts(_logger, f"writing to stream {self._stream}", Deadline(math.inf))
            lane = self._lanes[segment_id] = _Lane(segment_id, session, attempts)
        if block.large:
            block.merge_id = uuid.uuid4().bytes  # another one for each segment that the event may go to
        lane.session.enqueue(block)

    def _push(self, lane: _Lane) -> None:
        """Connect the lane if it has work, and send what its window allows."""
        if lane.busy or lane.attempts.due > self._now:
            return
        session = lane.session
        if lane.ended is not None:
            self._begin("end", lane, partial(self._destination.successors, lane.segment_id, lane.ended))
        elif session.state in (AppendState.IDLE, AppendState.SEALED):
            if session.unacknowledged or session.state is AppendState.SEALED:
                self._set_up(lane)
        else:
            if lane.connection is not None:
                for buffer in session.to_send(self._next_request_id()):
                    lane.connection.send(buffer)
                self._flush_connection(lane.connection)
            if (large := session.due_large_block()) is not None:
                self._begin("large", lane, partial(self._append_large, lane.segment_id, session.segment, large))

    def _set_up(self, lane: _Lane) -> None:
        """Bind the lane to a connection to its segment's store, as far as that is there already."""
        endpoint = self._stores.known_endpoint(self._stream, lane.segment_id)
        token = self._stores.known_token(self._stream, write=True)
        if endpoint is None or token is None:
            self._begin("locate", lane, partial(self._locate, lane.segment_id))
            return
        key = (endpoint, lane.segment_id % _CONNECTIONS_PER_ENDPOINT)
        connection = self._connections.get(key)
        if connection is None:
            self._errands.begin(
                ("connect", key), lambda: AppendConnection(endpoint, self._stores.pool.tls, lane.attempts.share())
            )
            return
        connection.lanes[lane.session.segment] = lane.segment_id
        connection.writers[lane.session.writer_id] = lane.segment_id
        connection.send(lane.session.setup(self._next_request_id(), token))
        lane.connection = connection
        self._flush_connection(connection)

    # ---------------------------------------------------------------- errands

    def _begin(self, kind: str, lane: _Lane, work: Callable[[Deadline], Any]) -> None:
        lane.busy = True
        quiet = _LARGE_SECONDS if kind == "large" else QUIET
        self._errands.begin((kind, lane.segment_id), lambda: work(lane.attempts.share(quiet)))

    def _locate(self, segment_id: int, deadline: Deadline) -> None:
        self._stores.endpoint(self._stream, segment_id, deadline)
        self._stores.token(self._stream, write=True, deadline=deadline)

    def _append_large(self, segment_id: int, segment: str, block: Block, deadline: Deadline) -> None:
        """Append a block of any size; it is durable and visible as a whole on return. One attempt.

        ``segment`` is the name of the segment to append to: that of ``segment_id``, or the transaction's counterpart.
        Raises SegmentSealedError, NoSuchSegmentError, and what is retriable. Where the answer to the merge was lost,
        another attempt finds that the event is there.
        """
        token = self._stores.token(self._stream, write=True, deadline=deadline)
        endpoint = self._stores.endpoint(self._stream, segment_id, deadline)
        with self._stores.pool.lease(endpoint, deadline) as connection:
            try:
                if _write_and_merge(connection, segment, token, block, deadline):
                    return
                refusal: SegmentStoreError = UnexpectedReplyError(
                    f"segment {segment} refused a large event as a duplicate, but does not have it; retry later"
                )
            except SegmentSealedError as error:  # nothing can be merged any more; an earlier attempt may have been
                refusal = error
            asked = GetSegmentAttribute(connection.next_request_id(), segment, block.merge_id, token)
            reply = connection.ask(asked, deadline)
            if not isinstance(reply, SegmentAttribute):
                raise error_of(reply, segment)
            if reply.value != _MERGED:
                raise refusal

    def _run_errands(self) -> None:
        """Take what errands brought. Raises what cannot pass."""
        for key, result in self._errands.take():
            kind, about = key
            if kind == "connect":
                self._connected(about, result)
                continue
            if kind == "time":
                if isinstance(result, Exception):  # the next one is due soon
                    _logger.debug("stream %s: the event time was not noted: %s", self._stream, result)
                continue
            lane = self._lanes[about]
            lane.busy = False
            if isinstance(result, Exception):
                self._errand_failed(kind, lane, result)
            elif kind == "end":
                self._reroute(lane, result)
            elif kind == "large":
                self._acknowledged(lane, lane.session.large_block_done())

    def _connected(self, key: tuple[Endpoint, int], result: AppendConnection | Exception) -> None:
        if isinstance(result, AppendConnection):
            self._connections[key] = result
            return
        if not isinstance(result, ConnectorError) or not result.retriable:
            raise result
        endpoint, number = key
        for lane in self._lanes.values():
            waits = lane.connection is None and not lane.busy and lane.segment_id % _CONNECTIONS_PER_ENDPOINT == number
            # None: forgotten just now, for another segment of that store.
            if waits and self._stores.known_endpoint(self._stream, lane.segment_id) in (endpoint, None):
                self._postpone(lane, result)

    def _errand_failed(self, kind: str, lane: _Lane, error: Exception) -> None:
        if isinstance(error, NoSuchSegmentError) and kind == "large":
            self._refused(lane, error)
            return
        if isinstance(error, SegmentSealedError) and kind == "large":
            if lane.session.state is AppendState.READY:  # else its connection was lost: the next set-up comes first
                self._refused(lane, error)
            return
        if not isinstance(error, ConnectorError) or not error.retriable:
            raise error
        if lane.session.state is not AppendState.DONE:
            lane.ended = None  # the controller has no end: ask the store again
        elif isinstance(error, WrongHostError):  # the controller has no end: retry the segment
            lane.ended = None
            lane.session.reopened()
        self._postpone(lane, error)

    def _next_request_id(self) -> int:
        self._request_id += 1
        return self._request_id

    # ---------------------------------------------------------------- input and output

    def _wait_for_io(self) -> None:
        connections = list(self._connections.values())
        busy = [c for c in connections if c.has_output]
        sources: list[AppendConnection | Errands] = [self._errands, *connections]
        readable, writable = wait_ready(sources, busy, self._pause())
        self._run_errands()  # here, so that what woke the thread is looked for after it
        for connection in connections:
            if connection in writable:
                self._flush_connection(connection)
            if connection in readable:
                self._read(connection)
            elif time.monotonic() >= connection.owes_since + self._patience(connection):
                self._lost(connection, connection.gone_silent(time.monotonic() - connection.owes_since))
            elif connection.idle_for(_KEEP_ALIVE_SECONDS):
                connection.send(encode(KeepAlive()))

    def _patience(self, connection: AppendConnection) -> float:
        """Seconds that a store may owe an answer; one that has never given any has less."""
        quiet = SILENCE_SECONDS if connection.heard else min(QUIET, SILENCE_SECONDS)
        if time.monotonic() < connection.owes_since + quiet:
            return quiet
        shares = [lane.attempts.share(quiet).seconds for lane in self._lanes.values() if lane.connection is connection]
        return max([quiet, *(share for share in shares if share > quiet)])

    def _pause(self) -> float:
        """Seconds until something is due that no socket announces."""
        retries = [lane.attempts.due for lane in self._lanes.values() if lane.attempts.due > self._now]
        silences = [connection.owes_since + self._patience(connection) for connection in self._connections.values()]
        due = min([self._collect_at, self._note_at, *retries, *silences]) - time.monotonic()
        return min(max(0.0, due), _KEEP_ALIVE_SECONDS)

    def _flush_connection(self, connection: AppendConnection) -> None:
        try:
            connection.flush()
        except ConnectionLostError as error:
            self._lost(connection, error)

    def _read(self, connection: AppendConnection) -> None:
        try:
            messages = connection.receive()
            self._stores.health.answered()
            for message in messages:
                self._handle(connection, message)
            if not self._is_owed(connection):
                connection.owes_since = math.inf
            elif messages:  # a KeepAlive is not the answer that is owed
                connection.owes_since = time.monotonic()
        except SegmentStoreError as error:
            if not error.retriable:
                raise
            self._lost(connection, error)

    def _is_owed(self, connection: AppendConnection) -> bool:
        """Return True if a lane of the connection waits for an answer. A store may freeze between two answers."""
        lanes = map(self._lanes.get, connection.lanes.values())
        return any(lane and lane.connection is connection and lane.session.awaits_reply for lane in lanes)

    def _handle(self, connection: AppendConnection, message: Message) -> None:
        if isinstance(message, DataAppended | AppendSetup):
            if message.writer_id not in connection.writers:
                raise UnexpectedReplyError.of(f"a store of stream {self._stream}", message)
            lane = self._lanes.get(connection.writers[message.writer_id])
            # Another lane, or another connection: that one was rerouted or lost.
            if lane and lane.session.writer_id == message.writer_id and lane.connection is connection:
                self._acknowledged(lane, lane.session.receive(message))
                if lane.session.state is AppendState.DONE:
                    lane.connection = None
                    lane.ended = SegmentSealedError(f"segment {lane.session.segment} is sealed")
            return
        name = getattr(message, "segment", None)
        error = error_of(message, name or f"of stream {self._stream}")
        if name is None:
            raise error
        if name not in connection.lanes:
            raise UnexpectedReplyError.of(f"a store of stream {self._stream}", message, f"for segment {name}")
        # A missing lane was rerouted, so refusals of its requests in flight have no meaning.
        lane = self._lanes.get(connection.lanes[name])
        if lane is not None and lane.connection is connection:
            self._refused(lane, error)

    def _refused(self, lane: _Lane, error: SegmentStoreError) -> None:
        if not isinstance(error, SegmentSealedError | NoSuchSegmentError):
            raise error
        if isinstance(error, SegmentSealedError):
            lane.session.sealed()
            return
        lane.ended = error
        if lane.connection is not None:  # where it may be believed, nothing of what waits can be in the segment
            self._lost(lane.connection, error)

    def _lost(self, connection: AppendConnection, error: SegmentStoreError) -> None:
        """Start over on a new connection, which also is how any passing refusal is settled."""
        connection.close()
        self._stores.health.count("reconnects", _logger, f"stream {self._stream}: {error.message}")
        self._connections = {key: c for key, c in self._connections.items() if c is not connection}
        for lane in self._lanes.values():
            if lane.connection is connection:
                lane.connection = None
                lane.session.disconnected()
                self._postpone(lane, error)

    def _postpone(self, lane: _Lane, error: ConnectorError) -> None:
        self._trouble = error
        self._stores.forget(self._stream, lane.segment_id, error)
        lane.attempts.failed(error)

    def _acknowledged(self, lane: _Lane, blocks: list[Block]) -> None:
        if not blocks:
            return
        lane.attempts.done()
        size = 0
        for block in blocks:
            size += len(block.data)
            left = self._open[block.mark] - len(block.data)
            if left:
                self._open[block.mark] = left
            else:
                del self._open[block.mark]
        events = sum(len(block.ends) for block in blocks)
        metrics.SENT_EVENTS.add(events, self._label)
        metrics.SENT_BYTES.add(size, self._label)
        self._durable += size
        self.delivery.durable += events
        self._settled = next(iter(self._open), self._durable)
        self._bell.ring()
        for block in blocks:
            if block.note is not None:
                settle(block.note)

    def _reroute(self, lane: _Lane, successors: list[Successor]) -> None:
        """Give what a segment that has ended did not take to its successors, before anything that comes later."""
        del self._lanes[lane.segment_id]
        lane.attempts.done()
        self._routes.replace(lane.segment_id, successors)
        for block in lane.session.take_unacknowledged():
            for target, part in block.split(self._routes.targets(block.positions)):
                self._enqueue(target, part)


def _at_exit() -> None:
    for loop in list(_unclosed):
        loop.delivery.at_exit()


atexit.register(_at_exit)


def _write_and_merge(connection: Connection, parent: str, token: str, block: Block, deadline: Deadline) -> bool:
    """Write a block to a transient segment, and merge it into ``parent``. Return False if ``parent`` has it already.

    The merge sets an attribute of the segment, one for each block, which must not be set before. So of several attempts
    one takes effect, also where the store does an earlier one after it was asked for a later one.
    """
    number, framed = connection.next_request_id, block.data

    def ask(request: Message, expected: type[Message], segment: str | None = None) -> Message:
        reply = connection.ask(request, deadline, segment=segment)
        if not isinstance(reply, expected):
            raise error_of(reply, parent)
        return reply

    created = ask(CreateTransientSegment(number(), uuid.uuid4().bytes, parent, token), SegmentCreated)
    assert isinstance(created, SegmentCreated)
    writer_id = uuid.uuid4().bytes
    ask(SetupAppend(number(), writer_id, created.segment, token), AppendSetup)
    for piece, at in enumerate(range(0, len(framed), _PIECE)):
        data = framed[at : at + _PIECE]
        ask(ConditionalBlockEnd(writer_id, piece, at, data, number()), DataAppended, created.segment)
    merge = MergeSegments(number(), parent, created.segment, token, attribute_id=block.merge_id, new_value=_MERGED)
    reply = connection.ask(merge, deadline)
    if not isinstance(reply, SegmentsMerged | SegmentAttributeUpdated):
        raise error_of(reply, parent)
    return isinstance(reply, SegmentsMerged)
