"""The fake segment store: segments in memory, and rules for single requests."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from connector.wire import (
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
    encode,
)
from tests.fake_store._codec import Append, RequestDecoder, frame, split_events

NEVER_WROTE = -(2**63)
MAX_READ = 2 << 20
Request = Message | Append
Rule = Callable[["Session", Request], None]


@dataclass
class FakeSegment:
    name: str
    data: bytearray = field(default_factory=bytearray)
    start: int = 0
    sealed: bool = False
    numbers: dict[bytes, int] = field(default_factory=dict)  # writer id -> last event number
    attributes: dict[bytes, int] = field(default_factory=dict)
    parked: list[tuple[Session, ReadSegment]] = field(default_factory=list)

    @property
    def events(self) -> list[bytes]:
        return split_events(bytes(self.data))


class Session:
    """One connection, with what the store knows of it."""

    def __init__(self, store: FakeSegmentStore, sock: socket.socket) -> None:
        self.store, self.sock = store, sock
        self.previous: dict[bytes, int] = {}
        self.writers: dict[bytes, str] = {}
        self.received = self.sent = 0
        self.deaf = False
        """Set it to leave all requests that come unserved, as a host does that went away without a word."""

    def reply(self, message: Message) -> None:
        data = encode(message)
        cut = self.store.cut_replies_at
        if cut is not None and self.sent + len(data) >= cut:
            with contextlib.suppress(OSError):
                self.sock.sendall(data[: max(0, cut - self.sent)])
            self.store.cut_replies_at = None
            self.drop()
            return
        with contextlib.suppress(OSError):
            self.sock.sendall(data)
            self.sent += len(data)

    def reset(self) -> None:
        """End the connection so that the client loses replies that it has not read yet, as the real server does."""
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.store.drops += 1
        self.deaf = True
        self.sock.close()

    def drop(self) -> None:
        """End the connection at once; requests that came over it and were not served never are."""
        self.store.drops += 1
        self.deaf = True
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)


class FakeSegmentStore:
    """Speaks the segment store's protocol; ``on`` says how the next requests of a kind are treated instead."""

    def __init__(self) -> None:
        self.segments: dict[str, FakeSegment] = {}
        self.requests: list[Request] = []
        self.connections = 0
        self.drops = 0
        self.cut_requests_at: int | None = None
        """Drop the connection that has received so many bytes; used up by that."""
        self.cut_replies_at: int | None = None
        """Drop the connection after so many bytes sent; used up by that."""
        self.frozen = False
        self.lock = threading.RLock()
        self._rules: list[tuple[type, Rule, int]] = []
        self._sessions: list[Session] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint: tuple[str, int] = self._listener.getsockname()
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    # ---------------------------------------------------------------- what tests do

    def on(self, kind: type, rule: Rule, times: int = 1) -> None:
        """Treat the next requests of a kind by ``rule(session, request)``; it may call :meth:`serve` itself."""
        with self.lock:
            self._rules.append((kind, rule, times))

    @property
    def unused_rules(self) -> int:
        """How many times rules would still apply: 0 when everything that a test wanted has happened."""
        return sum(times for _, _, times in self._rules)

    def create(self, name: str, data: bytes = b"", *, start: int = 0) -> FakeSegment:
        with self.lock:
            segment = self.segments[name] = FakeSegment(name, bytearray(data), start)
            return segment

    def append(self, name: str, data: bytes) -> None:
        with self.lock:
            segment = self.segments[name]
            segment.data += data
            self._wake(segment)

    def seal(self, name: str) -> None:
        with self.lock:
            segment = self.segments[name]
            segment.sealed = True
            for session, request in segment.parked:
                session.reply(SegmentIsSealed(request.request_id, name, "stack", request.offset))
            segment.parked.clear()

    def parked(self) -> int:
        """How many reads wait at a tail."""
        with self.lock:
            return sum(len(segment.parked) for segment in self.segments.values())

    def drop_all(self) -> None:
        with self.lock:
            for session in self._sessions:
                session.drop()
            self._sessions.clear()

    def freeze(self) -> None:
        """Take connections and requests from now on, and answer none, as a stopped process does."""
        with self.lock:
            self.frozen = True
            for session in self._sessions:
                session.deaf = True
            for segment in self.segments.values():
                segment.parked.clear()

    def count(self, kind: type) -> int:
        return sum(isinstance(request, kind) for request in self.requests)

    # ---------------------------------------------------------------- sockets

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            session = Session(self, sock)
            session.deaf = self.frozen
            thread = threading.Thread(target=self._talk, args=(session,))
            with self.lock:
                self.connections += 1
                self._sessions.append(session)
                self._threads.append(thread)
            thread.start()

    def _talk(self, session: Session) -> None:
        decoder = RequestDecoder()
        with session.sock, contextlib.suppress(OSError):
            while data := session.sock.recv(1 << 16):
                cut = self.cut_requests_at
                last = cut is not None and session.received + len(data) >= cut
                if last and cut is not None:
                    data = data[: cut - session.received]
                    self.cut_requests_at = None
                session.received += len(data)
                for request in decoder.feed(data):
                    if not session.deaf:
                        self._treat(session, request)
                if last:
                    session.drop()
                    return

    def _treat(self, session: Session, request: Request) -> None:
        with self.lock:
            self.requests.append(request)
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
        if self._listener.fileno() < 0:
            return
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept, which close() alone would not
        self._listener.close()
        self._thread.join()
        self.drop_all()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---------------------------------------------------------------- the protocol

    def serve(self, session: Session, request: Request) -> None:
        """What a server that works does."""
        with self.lock:
            match request:
                case Hello() | KeepAlive():
                    session.reply(request)
                case SetupAppend(request_id=rid, writer_id=writer, segment=name):
                    if (segment := self._segment(session, rid, name)) is not None:
                        session.writers[writer] = name
                        session.previous[writer] = segment.numbers.get(writer, NEVER_WROTE)
                        session.reply(AppendSetup(rid, name, writer, session.previous[writer]))
                case Append(writer_id=writer):
                    if (segment := self._segment(session, request.request_id, session.writers[writer])) is not None:
                        self._append(session, request, segment)
                case ConditionalAppend(writer_id=writer, event_number=number, request_id=rid):
                    segment = self.segments[session.writers[writer]]
                    if request.expected_offset == len(segment.data):
                        self._append(session, Append(writer, frame(request.event), 1, number, rid), segment)
                    else:
                        session.reply(ConditionalCheckFailed(writer, number, rid))
                case GetSegmentAttribute(request_id=rid, segment=name, attribute_id=attribute):
                    if (segment := self._segment(session, rid, name)) is not None:
                        session.reply(SegmentAttribute(rid, segment.attributes.get(attribute, NO_ATTRIBUTE)))
                case UpdateSegmentAttribute(request_id=rid, segment=name, attribute_id=attribute):
                    if (segment := self._segment(session, rid, name)) is not None:
                        expected = segment.attributes.get(attribute, NO_ATTRIBUTE) == request.expected_value
                        if expected:
                            segment.attributes[attribute] = request.new_value
                        session.reply(SegmentAttributeUpdated(rid, expected))
                case TruncateSegment(request_id=rid, segment=name, offset=offset):
                    if (segment := self._segment(session, rid, name)) is not None:
                        self._truncate(session, rid, segment, offset)
                case ReadSegment():
                    self._read(session, request)
                case GetStreamSegmentInfo(request_id=rid, segment=name):
                    if (segment := self._segment(session, rid, name)) is not None:
                        end = len(segment.data)
                        session.reply(StreamSegmentInfo(rid, name, True, segment.sealed, False, 0, end, segment.start))
                case ReadTable(request_id=rid, segment=name):
                    session.reply(NoSuchSegment(rid, name, "stack", -1))  # it has no tables, as far as anybody may see
                case CreateTransientSegment(request_id=rid, parent=parent):
                    name = f"{parent}#transient.{len(self.segments)}"
                    self.create(name)
                    session.reply(SegmentCreated(rid, name))
                case ConditionalBlockEnd(writer_id=writer, event_number=number, data=data, request_id=rid):
                    segment = self.segments[session.writers[writer]]
                    assert request.expected_offset == len(segment.data)
                    segment.data += data
                    session.reply(DataAppended(writer, number, number - 1, rid, len(segment.data)))
                case MergeSegments(request_id=rid, target=target, source=source):
                    self._merge(session, rid, target, source)

    def _segment(self, session: Session, rid: int, name: str) -> FakeSegment | None:
        segment = self.segments.get(name)
        if segment is None:
            session.reply(NoSuchSegment(rid, name, "stack", -1))
        return segment

    def _append(self, session: Session, request: Append, segment: FakeSegment) -> None:
        writer, rid = request.writer_id, request.request_id
        if writer not in session.previous:
            session.reset()
            return
        if segment.sealed:
            del session.previous[writer]
            session.reply(SegmentIsSealed(rid, segment.name, "stack", -1))
            return
        if session.previous[writer] != segment.numbers.get(writer, NEVER_WROTE):
            session.reply(InvalidEventNumber(writer, rid, "stack", request.last_event_number))
            session.drop()
            return
        segment.data += request.data
        segment.numbers[writer] = request.last_event_number
        previous, session.previous[writer] = session.previous[writer], request.last_event_number
        session.reply(DataAppended(writer, request.last_event_number, previous, rid, len(segment.data)))
        self._wake(segment)

    def _truncate(self, session: Session, rid: int, segment: FakeSegment, offset: int) -> None:
        if not segment.start <= offset <= len(segment.data):
            session.reply(SegmentIsTruncated(rid, segment.name, segment.start, "stack", offset))
            return
        segment.start = offset
        session.reply(SegmentTruncated(rid, segment.name))

    def _merge(self, session: Session, rid: int, target: str, source: str) -> None:
        parent = self.segments[target]
        if parent.sealed:
            session.reply(SegmentIsSealed(rid, target, "stack", -1))
            return
        parent.data += self.segments.pop(source).data
        session.reply(SegmentsMerged(rid, target, source, len(parent.data)))
        self._wake(parent)

    def _read(self, session: Session, request: ReadSegment) -> None:
        rid, name, offset = request.request_id, request.segment, request.offset
        segment = self._segment(session, rid, name)
        if segment is None:
            return
        end = len(segment.data)
        if offset < segment.start:
            session.reply(SegmentIsTruncated(rid, name, segment.start, "stack", offset))
        elif segment.sealed and offset > end:
            session.drop()
        elif offset >= end and not segment.sealed:
            segment.parked.append((session, request))
        else:
            data = bytes(segment.data[offset : offset + min(max(request.length, 8), MAX_READ)])
            at_end = offset + len(data) == end
            session.reply(SegmentRead(name, offset, at_end, at_end and segment.sealed, memoryview(data), rid))

    def _wake(self, segment: FakeSegment) -> None:
        parked, segment.parked = segment.parked, []
        for session, request in parked:
            self._read(session, request)
