"""Segment store in this process: real sockets, segments in memory, and rules for single requests.

Each connection has a thread that reads and serves its requests. This thread never waits to send an answer: a separate
thread sends the bytes that a socket does not accept at once. Therefore a client can call the controller before it has
read all answers.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, Self

from pravega_connector.errors import ProtocolError
from pravega_connector.tcp_ports import listen_on_free_port
from pravega_connector.testing.requests import Append, Request, RequestDecoder, frame
from pravega_connector.testing.segments import ParkedRead, Segment, SupportsReply
from pravega_connector.testing.table_segments import Table, TableRequest
from pravega_connector.wire import (
    NO_ATTRIBUTE,
    AppendSetup,
    ConditionalAppend,
    ConditionalBlockEnd,
    ConditionalCheckFailed,
    CreateTransientSegment,
    DataAppended,
    GetSegmentAttribute,
    GetStreamSegmentInfo,
    Hello,
    InvalidEventNumber,
    KeepAlive,
    MergeSegments,
    Message,
    NoSuchSegment,
    ReadSegment,
    ReadTable,
    ReadTableEntries,
    ReadTableKeys,
    RemoveTableKeys,
    SegmentAttribute,
    SegmentAttributeUpdated,
    SegmentCreated,
    SegmentIsSealed,
    SegmentIsTruncated,
    SegmentRead,
    SegmentsMerged,
    SegmentTruncated,
    SetupAppend,
    StreamSegmentInfo,
    TruncateSegment,
    UpdateSegmentAttribute,
    UpdateTableEntries,
    encode,
)
from pravega_connector.wire.messages import OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION

#: Seconds after which a server answers a read at the tail without data.
TAIL_SECONDS: Final = 60.0
_STACK: Final = ""  # servers return Java's stack trace here if configured
_RECEIVE: Final = 1 << 20

Rule = Callable[["Session", Request], None]


class Session:
    """Connection and its state."""

    def __init__(self, store: SegmentStore, sock: socket.socket) -> None:
        self.store, self.sock = store, sock
        self.previous: dict[bytes, int] = {}
        """Last event number of each writer that was set up here."""
        self.writers: dict[bytes, str] = {}
        """Segment of each writer that was set up here."""
        self.transients: list[str] = []
        self.received = self.sent = 0
        self.greeted = False
        """Whether a request has come."""
        self.deaf = False
        """Set it to serve no further request, like a host that failed without a message."""
        self.copies = 1
        """Number of times that each answer is sent."""
        self._out: deque[memoryview | None] = deque()  # None: end the connection
        self._out_lock = threading.Lock()
        self._sender: threading.Thread | None = None

    def reply(self, message: Message) -> None:
        """Send a message. If the state of the store is being changed, send it after the change."""
        data = encode(message) * self.copies
        cut = self.store.cut_replies_at
        if cut is not None and self.sent + len(data) >= cut:
            self.store.cut_replies_at = None
            self._send(memoryview(data)[: max(0, cut - self.sent)])
            self.drop()
            return
        self.sent += len(data)
        self._send(memoryview(data))

    def drop(self) -> None:
        """End the connection at once. Its requests that were not served yet are dropped."""
        self.store.drops += 1
        self.deaf = True
        self._send(None)

    def reset(self) -> None:
        """End the connection so that the client loses the replies that it has not read yet.

        The real server does the same.
        """
        self.store.drops += 1
        self.deaf = True
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def _send(self, data: memoryview | None) -> None:
        with self._out_lock:
            self._out.append(data)
        self.store._send_soon(self)

    def flush(self) -> None:
        """Send the waiting bytes that the socket accepts. A thread sends the rest."""
        with self._out_lock:
            while self._out and self._sender is None:
                if self._end_if_next():
                    return
                try:
                    self._sent(self.sock.send(self._out[0] or b"", socket.MSG_DONTWAIT))
                except BlockingIOError:
                    self._sender = threading.Thread(target=self._send_rest, daemon=True)
                    self._sender.start()
                except OSError:
                    self._out.clear()

    def _send_rest(self) -> None:
        while True:
            with self._out_lock:
                if not self._out or self._end_if_next():
                    self._sender = None
                    return
                data = self._out[0]
            try:
                count = self.sock.send(data or b"")
            except OSError:
                count = -1
            with self._out_lock:
                if count < 0:
                    self._out.clear()
                else:
                    self._sent(count)

    def _sent(self, count: int) -> None:
        rest = (self._out.popleft() or memoryview(b""))[count:]
        if rest:
            self._out.appendleft(rest)

    def _end_if_next(self) -> bool:
        if self._out[0] is not None:
            return False
        self._out.clear()
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        return True


class SegmentStore:
    """Server of the segment store's protocol on a loopback port. ``on`` sets rules for the next requests.

    ``segments`` and ``tables`` are its data. Change them under ``lock``.
    """

    def __init__(self) -> None:
        self.segments: dict[str, Segment] = {}
        self.tables: dict[str, Table] = {}
        self.connections = 0
        self.drops = 0
        self.cut_requests_at: int | None = None
        """Drop the first connection that has received this number of bytes. Applies once."""
        self.cut_replies_at: int | None = None
        """Drop the first connection after this number of sent bytes. Applies once."""
        self.frozen = False
        self.lock = threading.RLock()
        self._depth = 0
        self._to_flush: list[Session] = []
        self._transients = 0
        self._rules: list[tuple[type | tuple[type, ...], Rule, int]] = []
        self._sessions: list[Session] = []
        self._threads: set[threading.Thread] = set()
        self._listener = listen_on_free_port(lambda port: socket.create_server(("127.0.0.1", port)))
        self.endpoint: tuple[str, int] = self._listener.getsockname()
        self._thread = threading.Thread(target=self._accept, name="pravega-segment-store", daemon=True)
        self._thread.start()

    # ---------------------------------------------------------------- rules and faults

    def on(self, kind: type | tuple[type, ...], rule: Rule, times: int = 1) -> None:
        """Handle the next requests of a kind with ``rule(session, request)``.

        The rule may call :meth:`serve` itself.
        """
        with self.lock:
            self._rules.append((kind, rule, times))

    @property
    def unused_rules(self) -> int:
        """Number of times that rules still apply, which is 0 when all of them have applied."""
        return sum(times for _, _, times in self._rules)

    def forget_rules(self) -> None:
        """Drop all rules. All further requests are served normally."""
        with self.lock:
            self._rules.clear()

    def parked(self) -> int:
        """Return the number of reads that wait at a tail."""
        with self.lock:
            return sum(len(segment.parked) for segment in self.segments.values())

    def drop_all(self) -> None:
        """End all connections."""
        with self.lock:
            for session in self._sessions:
                session.drop()
            self._sessions.clear()

    def freeze(self) -> None:
        """Accept connections and requests without an answer from now on, like a stopped process."""
        with self.lock:
            self.frozen = True
            for session in self._sessions:
                session.deaf = True
            for segment in self.segments.values():
                segment.parked.clear()

    def thaw(self) -> None:
        """Answer again, on new connections. The old ones are ended."""
        with self.lock:
            self.frozen = False
            self.drop_all()

    # ---------------------------------------------------------------- segments

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock during the block. Answers of the block are sent after the lock is released."""
        waiting: list[Session] = []
        with self.lock:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if not self._depth:
                    waiting, self._to_flush = self._to_flush, []
        for session in waiting:
            session.flush()

    def _send_soon(self, session: Session) -> None:
        with self.lock:
            if self._depth:
                if session not in self._to_flush:
                    self._to_flush.append(session)
                return
        session.flush()

    def create(self, name: str, data: bytes = b"", *, start: int = 0) -> Segment:
        """Create a segment."""
        with self.lock:
            segment = self.segments[name] = Segment(name, bytearray(data), start)
            return segment

    def append(self, name: str, data: bytes) -> None:
        """Append bytes to a segment."""
        with self.changing():
            segment = self.segments[name]
            segment.append(data)
            self._wake(segment)

    def seal(self, name: str) -> None:
        """Seal a segment, and answer the reads at its tail."""
        with self.changing():
            segment = self.segments[name]
            segment.sealed = True
            parked, segment.parked = segment.parked, []
            for each in parked:
                each.session.reply(SegmentIsSealed(each.request.request_id, name, _STACK, each.request.offset))

    def truncate(self, name: str, offset: int) -> None:
        """Drop the bytes before an offset."""
        with self.changing():
            segment = self.segments[name]
            segment.start = max(segment.start, min(offset, segment.length))

    def delete(self, name: str) -> None:
        """Delete a segment if it exists, and answer the reads at its tail."""
        with self.changing():
            segment = self.segments.pop(name, None)
            for each in segment.parked if segment else ():
                each.session.reply(NoSuchSegment(each.request.request_id, name, _STACK, -1))

    def merge(self, target: str, source: str) -> int:
        """Append a segment to another one and delete it, in one step.

        Return the new length of the target.
        """
        with self.changing():
            segment = self.segments[target]
            segment.append(self.segments[source].data)
            self.delete(source)
            self._wake(segment)
            return segment.length

    def answer_parked(self, seconds: float = TAIL_SECONDS) -> None:
        """Answer reads that have waited ``seconds`` for data with no bytes."""
        with self.changing():
            limit = time.monotonic() - seconds
            for segment in self.segments.values():
                late = [each for each in segment.parked if each.since <= limit]
                segment.parked = [each for each in segment.parked if each.since > limit]
                for each in late:
                    request, nothing = each.request, memoryview(b"")
                    read = SegmentRead(segment.name, request.offset, True, False, nothing, request.request_id)
                    each.session.reply(read)

    # ---------------------------------------------------------------- sockets

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            session = Session(self, sock)
            thread = threading.Thread(target=self._talk, args=(session,), daemon=True)
            with self.lock:
                session.deaf = self.frozen
                self.connections += 1
                self._sessions.append(session)
                self._threads.add(thread)
            thread.start()

    def _talk(self, session: Session) -> None:
        try:
            with session.sock, contextlib.suppress(OSError):
                self._receive(session)
        except ProtocolError:
            # Another server's client may come, if that server had this port before.
            if session.greeted:
                raise
        finally:
            self._forget(session)

    def _receive(self, session: Session) -> None:
        decoder = RequestDecoder()
        while data := session.sock.recv(_RECEIVE):
            cut = self.cut_requests_at
            last = cut is not None and session.received + len(data) >= cut
            if last and cut is not None:
                data = data[: cut - session.received]
                self.cut_requests_at = None
            session.received += len(data)
            for request in decoder.feed(data):
                session.greeted = True
                if not session.deaf:
                    self._treat(session, request)
            if last:
                session.drop()
                return

    def _forget(self, session: Session) -> None:
        with self.lock:
            if session in self._sessions:
                self._sessions.remove(session)
            self._threads.discard(threading.current_thread())
            for segment in self.segments.values():
                segment.parked = [each for each in segment.parked if each.session is not session]
            for name in session.transients:
                self.segments.pop(name, None)

    def _treat(self, session: Session, request: Request) -> None:
        with self.lock:
            rule = self._rule_for(request)
        if rule is not None:
            rule(session, request)
        else:
            self.serve(session, request)

    def _rule_for(self, request: Request) -> Rule | None:
        for i, (kind, rule, times) in enumerate(self._rules):
            if isinstance(request, kind):
                self._rules[i : i + 1] = [(kind, rule, times - 1)] if times > 1 else []
                return rule
        return None

    def close(self) -> None:
        """End all connections. The data in ``segments`` stays readable."""
        if self._listener.fileno() < 0:
            return
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept, which close() does not
        self._listener.close()
        self._thread.join()
        with self.lock:
            sessions, threads = list(self._sessions), list(self._threads)
        self.drop_all()
        for session in sessions:
            with contextlib.suppress(OSError):  # unsent answers are lost
                session.sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---------------------------------------------------------------- the protocol

    def serve(self, session: Session, request: Request) -> None:
        """Serve a request as a server without faults does."""
        with self.changing():
            match request:
                case Hello():
                    session.reply(Hello())
                    if request.low > PROTOCOL_VERSION or request.high < OLDEST_PROTOCOL_VERSION:
                        session.drop()
                case KeepAlive():
                    session.reply(request)
                case SetupAppend(request_id=rid, writer_id=writer, segment=name):
                    if (segment := self._segment(session, rid, name)) is not None:
                        session.writers[writer] = name
                        session.previous[writer] = segment.attribute(writer)
                        session.reply(AppendSetup(rid, name, writer, session.previous[writer]))
                case Append() | ConditionalAppend() | ConditionalBlockEnd():
                    self._write(session, request)
                case ReadSegment():
                    self._read(session, request)
                case MergeSegments():
                    self._merge(session, request)
                case CreateTransientSegment(request_id=rid, parent=parent):
                    self._transients += 1
                    name = f"{parent}#transient.{self._transients:032x}"
                    self.create(name)
                    session.transients.append(name)
                    session.reply(SegmentCreated(rid, name))
                case ReadTable() | ReadTableEntries() | ReadTableKeys() | RemoveTableKeys() | UpdateTableEntries():
                    self._about_table(session, request)
                case _:
                    self._about_one(session, request)

    def _about_one(self, session: Session, request: Message) -> None:
        """Serve a query or a change of one segment."""
        match request:
            case GetStreamSegmentInfo(request_id=rid, segment=name):
                if (found := self._segment(session, rid, name)) is not None:
                    state = (True, found.sealed, False, found.modified_ms, found.length, found.start)
                    session.reply(StreamSegmentInfo(rid, name, *state))
            case GetSegmentAttribute(request_id=rid, segment=name, attribute_id=attribute):
                if (found := self._segment(session, rid, name)) is not None:
                    session.reply(SegmentAttribute(rid, found.attribute(attribute)))
            case UpdateSegmentAttribute(request_id=rid, segment=name, attribute_id=attribute):
                if (found := self._segment(session, rid, name)) is not None:
                    expected = found.attribute(attribute) == request.expected_value
                    if expected:
                        found.attributes[attribute] = request.new_value
                    session.reply(SegmentAttributeUpdated(rid, expected))
            case TruncateSegment(request_id=rid, segment=name, offset=offset):
                if (found := self._segment(session, rid, name)) is not None:
                    if found.start <= offset <= found.length:
                        found.start = offset
                        session.reply(SegmentTruncated(rid, name))
                    else:
                        session.reply(SegmentIsTruncated(rid, name, found.start, _STACK, offset))

    def _segment(self, session: SupportsReply, rid: int, name: str) -> Segment | None:
        segment = self.segments.get(name)
        if segment is None:
            session.reply(NoSuchSegment(rid, name, _STACK, -1))
        return segment

    def _write(self, session: Session, request: Append | ConditionalAppend | ConditionalBlockEnd) -> None:
        writer, rid = request.writer_id, request.request_id
        number = request.last_event_number if isinstance(request, Append) else request.event_number
        if writer not in session.previous:
            session.reset()
            return
        if (segment := self._segment(session, rid, session.writers[writer])) is None:
            return
        if segment.sealed:
            if isinstance(request, Append):  # a writer with several appends in flight gets one answer
                del session.previous[writer]
            session.reply(SegmentIsSealed(rid, segment.name, _STACK, -1))
            return
        if not isinstance(request, Append) and request.expected_offset != segment.length:
            session.reply(ConditionalCheckFailed(writer, number, rid))
            return
        previous = session.previous[writer]
        if previous != segment.attribute(writer):
            session.reply(InvalidEventNumber(writer, rid, _STACK, number))
            session.drop()
            return
        if isinstance(request, Append) and number <= previous != NO_ATTRIBUTE:
            session.drop()
            return
        segment.append(frame(request.event) if isinstance(request, ConditionalAppend) else request.data)
        segment.attributes[writer] = session.previous[writer] = number
        session.reply(DataAppended(writer, number, previous, rid, segment.length))
        self._wake(segment)

    def _merge(self, session: Session, request: MergeSegments) -> None:
        rid, target, source = request.request_id, request.target, request.source
        if (parent := self._segment(session, rid, target)) is None or self._segment(session, rid, source) is None:
            return
        if parent.sealed:
            session.reply(SegmentIsSealed(rid, target, _STACK, -1))
            return
        if parent.attribute(request.attribute_id) != request.expected_value:
            session.reply(SegmentAttributeUpdated(rid, False))
            return
        parent.attributes[request.attribute_id] = request.new_value
        session.reply(SegmentsMerged(rid, target, source, self.merge(target, source)))

    def _read(self, session: SupportsReply, request: ReadSegment) -> None:
        rid, name, offset = request.request_id, request.segment, request.offset
        segment = self._segment(session, rid, name)
        if segment is None:
            return
        end = segment.length
        if offset < segment.start:
            session.reply(SegmentIsTruncated(rid, name, segment.start, _STACK, offset))
        elif segment.sealed and offset > end:
            session.drop()
        elif offset >= end and not segment.sealed:
            segment.parked.append(ParkedRead(session, request))
        else:
            data = segment.read(offset, request.length)
            at_end = offset + len(data) == end
            session.reply(SegmentRead(name, offset, at_end, at_end and segment.sealed, memoryview(data), rid))

    def _wake(self, segment: Segment) -> None:
        parked, segment.parked = segment.parked, []
        for each in parked:
            self._read(each.session, each.request)

    def _about_table(self, session: Session, request: TableRequest) -> None:
        table = self.tables.get(request.segment)
        if table is None:
            session.reply(NoSuchSegment(request.request_id, request.segment, _STACK, -1))
        else:
            session.reply(table.answer(request))
