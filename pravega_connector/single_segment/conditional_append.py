"""Appends to one segment, one after the other, each with a known outcome if possible.

Theory of operation: appends of one object (SegmentAppender)
------------------------------------------------------------
Each append carries the writer id of this object and the next number. The server stores the last number of a writer id
with the segment, and changes it in the same step as the bytes. So after a lost connection, a set-up reports if the
append took effect: then its number is the last one. If it is not the last one, the outcome is still open. An append
in flight may arrive after the set-up. It is repeated with the same number, and one of these cases applies:

- It is accepted. The first append cannot take effect any more, because its number no longer follows the last one.
- It is refused for its number, because the first one arrived after the set-up. The next set-up reports the outcome.
- It is refused because the segment has grown, by the first append or by another client's. Once the segment is longer,
  no append that expected the old length can take effect. Then a set-up reports if it was this one.

A store already refuses an append while an earlier one is still becoming durable. The earlier one cannot be read yet,
and the store forgets it if it fails now. (This was seen with two clients in a race.) So after each refusal, the
appender waits until the segment is longer. The earlier event can be read by then.

The outcome is unknown only if the time is up before this ends. Then the append is kept, and another call with the same
bytes at the same length continues it. (Java's ``ConditionalOutputStreamImpl`` treats the last case as a refusal.)

Theory of operation: appends that any process may repeat (NumberedAppender)
---------------------------------------------------------------------------
Several processes write the same events with the same numbers under one writer id, one after the other or at the same
time. An example is the attempts of a task. A segment stores the last number of a writer id and changes it in the same
step as its bytes. It refuses an append that does not follow the number that its connection has seen. So each process
appends the events that are missing according to the set-up of its connection. If an append is refused because another
process was faster, the process sets up again and continues after the other's last event. If a process is killed at
any point, the events up to the last number exist once.

All events have one routing key, so there is one segment at a time. After a scaling, its successor does not know the
writer id. The sealed predecessors know it permanently, because nothing can be appended to them. So before the first
append to a segment, the predecessors are asked, newest first, until one knows the id. The guarantee ends with the
segments that know it. If a stream is scaled and truncated past them between two attempts, it accepts the events again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

from pravega_connector.core import io
from pravega_connector.core.connection import Connection
from pravega_connector.core.deadline import Deadline, Polls
from pravega_connector.errors import (
    ConfigError,
    ConnectionLostError,
    ConnectorError,
    NoSuchSegmentError,
    OutcomeUnknownError,
    SegmentSealedError,
    StreamSealedError,
    UnexpectedReplyError,
)
from pravega_connector.stores.segment_stores import SegmentCalls, SegmentStores, error_of
from pravega_connector.wire import (
    EVENT_HEADER_SIZE,
    NO_ATTRIBUTE,
    AppendSetup,
    BlockAppend,
    ConditionalAppend,
    ConditionalCheckFailed,
    DataAppended,
    Message,
    SegmentRange,
    SetupAppend,
    StreamName,
    frame_events,
    segment_epoch,
    segment_name,
)
from pravega_serde import after_fork
from pravega_serde.routing import segment_key

# Seconds for an append to become durable. If a segment store takes longer, it has another problem.
_SETTLING: Final = 1.0
_FIRST_PAUSE: Final = 0.001
# Bytes of one append, unless a single event is larger.
_BLOCK_BYTES: Final = 1 << 20

Numbered = tuple[int, bytes]
R = TypeVar("R", bound=Message)


@dataclass(slots=True)
class _Append:
    """Append in flight."""

    event: bytes
    expected: int | None  # required length of the segment; None: any
    number: int
    sent: bool = False  # it may have taken effect
    done: bool = False  # it took effect, or was refused

    def data(self) -> bytes | memoryview:
        """Return the bytes that the segment receives."""
        return frame_events((self.event,)).data


def _encoded(request: BlockAppend, data: bytes | memoryview, event_count: int) -> bytes:
    """Return the encoded message for an append of bytes."""
    before, after = request.around(len(data), event_count)
    return b"".join((before, data, after))


class SegmentAppender:
    """Appender of events to one segment. Thread safe. It opens one connection, on first use."""

    def __init__(self, stores: SegmentStores, stream: StreamName, segment_id: int) -> None:
        self._stores, self._stream, self._id = stores, stream, segment_id
        self._name = segment_name(stream, segment_id)
        self._calls = SegmentCalls(stores, stream, segment_id)
        self._writer_id = uuid.uuid4().bytes
        self._lock = io.lock()
        self._number = 0
        self._connection: Connection | None = None
        self._pending: _Append | None = None  # the last append, until its outcome is known
        after_fork.register(self)

    def _after_fork(self) -> None:
        # Not only the connection: two processes with one writer id would confuse their acknowledgements.
        self._lock = after_fork.inherited(f"writer of segment {self._name}")

    def append(self, event: bytes) -> None:
        """Append an event, which is durable on return. Raises OutcomeUnknownError, StreamSealedError."""
        with self._lock:
            self._resolve(self._begin(event, None))

    def append_at(self, event: bytes, expected: int) -> bool:
        """Append an event if the segment ends at ``expected``. Return True if it was appended and is durable.

        Raises OutcomeUnknownError, after which the same call continues until the outcome is known. Raises
        StreamSealedError.
        """
        with self._lock:
            pending = self._pending
            if pending is not None and (pending.event, pending.expected) == (event, expected):
                return self._resolve(pending)
            return self._resolve(self._begin(event, expected))

    def close(self) -> None:
        """Close the connection."""
        if after_fork.is_inherited(self._lock):
            return
        with self._lock:
            self._disconnect()

    def _begin(self, event: bytes, expected: int | None) -> _Append:
        self._number += 1
        self._pending = _Append(event, expected, self._number)
        return self._pending

    def _resolve(self, append: _Append) -> bool:
        def attempt(deadline: Deadline) -> bool:
            try:
                return self._try(append, deadline)
            except BaseException as error:
                self._disconnect()  # the next append would mistake a late reply for its own
                if isinstance(error, SegmentSealedError):
                    # Permanent, whichever store reports it: Java seals byte streams without the controller.
                    raise StreamSealedError.of(self._stream) from None
                raise

        try:
            appended = self._stores.run(self._stream, self._id, attempt)
        except NoSuchSegmentError:
            raise self._calls.missing() from None
        except ConnectorError as error:
            if not append.sent or isinstance(error, ConfigError | StreamSealedError):
                raise
            raise self._unknown(append, error) from error
        append.done = True
        self._pending = None
        return appended

    def _unknown(self, append: _Append, error: ConnectorError) -> OutcomeUnknownError:
        advice = "write the same bytes at the same revision again to find out"
        if append.expected is None:
            advice = "read the stream to find out; the event may still arrive"
        return OutcomeUnknownError(
            f"whether an event was appended to {self._name} is unknown after {self._stores.timeout:g} s "
            f"({error.message}); {advice}"
        )

    def _try(self, append: _Append, deadline: Deadline) -> bool:
        if self._connection is None and self._took(append, deadline):
            return True
        assert self._connection is not None
        in_doubt, append.sent = append.sent, True
        reply = self._ask(self._connection, append, deadline)
        if isinstance(reply, DataAppended):
            return True
        if not isinstance(reply, ConditionalCheckFailed):
            raise error_of(reply, self._name)
        assert append.expected is not None
        self._await_longer(append.expected, deadline)
        return in_doubt and self._took(append, deadline)

    def _ask(self, connection: Connection, append: _Append, deadline: Deadline) -> Message:
        number = connection.next_request_id()
        if append.expected is not None:
            conditional = ConditionalAppend(self._writer_id, append.number, append.expected, append.event, number)
            return connection.ask(conditional, deadline, segment=self._name)
        block = BlockAppend(self._writer_id, append.number, number)
        return connection.ask(block, deadline, data=_encoded(block, append.data(), 1), segment=self._name)

    def _await_longer(self, length: int, deadline: Deadline) -> None:
        """Return when the segment is longer. If it does not grow soon, raise ConnectionLostError to retry."""
        polls = Polls(Deadline(_SETTLING), _FIRST_PAUSE, _SETTLING, to_the_end=True)
        while (now := self._calls.info(deadline).write_offset) <= length:
            if now < length:
                raise ConfigError(f"cannot append at offset {length} of segment {self._name}: it ends at {now}")
            if not polls.again():
                raise ConnectionLostError(
                    f"segment {self._name} refused an append because it had grown, but it had not"
                )

    def _took(self, append: _Append, deadline: Deadline) -> bool:
        """Bind the writer id to the connection. Return True if the append, which is the last one, took effect."""
        if self._connection is None:
            self._connection = self._stores.pool.take(self._stores.endpoint(self._stream, self._id, deadline), deadline)
        token = self._stores.token(self._stream, write=True, deadline=deadline)
        number = self._connection.next_request_id()
        reply = self._connection.ask(SetupAppend(number, self._writer_id, self._name, token), deadline)
        if not isinstance(reply, AppendSetup):
            raise error_of(reply, self._name)
        last = append.number if append.sent else append.number - 1
        if reply.last_event_number > last:
            raise UnexpectedReplyError.of(
                f"the store of segment {self._name}", reply, f"for event {reply.last_event_number}"
            )
        return reply.last_event_number == append.number

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class NumberedAppender:
    """Appender of numbered events of one routing key, each once even if others append it. Not thread safe."""

    def __init__(self, stores: SegmentStores, stream: StreamName, routing_key: str, writer_id: bytes) -> None:
        self._stores, self._stream, self._writer_id = stores, stream, writer_id
        self._position = segment_key(routing_key)
        self._segment: int | None = None
        self._last = NO_ATTRIBUTE  # the highest number that is known to be durable
        self._connection: Connection | None = None
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._connection = None  # any process may append the same events, over its own connection

    def append(self, events: Sequence[Numbered]) -> None:
        """Append the events that the stream lacks. All are durable on return.

        The numbers must grow, also from call to call. Raises StreamNotFoundError, StreamSealedError, and retriable
        errors if the servers stay unavailable.
        """
        for block in _blocks(events):
            while missing := [event for event in block if event[0] > self._last]:
                self._append(missing)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _append(self, block: list[Numbered]) -> None:
        """Append the missing events to the present segment. If it was sealed, forget it to find the next one."""
        if self._segment is None:
            self._find_segment()
        assert self._segment is not None
        try:
            self._stores.run(self._stream, self._segment, lambda deadline: self._try(block, deadline))
        except (SegmentSealedError, NoSuchSegmentError):
            # Its last number is found when the next segment asks its predecessors.
            self._segment = None

    def _try(self, block: list[Numbered], deadline: Deadline) -> None:
        try:
            if self._connection is None:
                self._set_up(deadline)
            missing = [event for event in block if event[0] > self._last]
            if missing:
                self._send(missing, deadline)
        except BaseException:
            self.close()  # the next set-up reports which events were accepted
            raise

    def _send(self, block: list[Numbered], deadline: Deadline) -> None:
        assert self._connection is not None
        assert self._segment is not None
        frame = frame_events([event for _, event in block]).data
        number = block[-1][0]
        request = BlockAppend(self._writer_id, number, self._connection.next_request_id())
        name = segment_name(self._stream, self._segment)
        data = _encoded(request, frame, len(block))
        self._check(self._connection.ask(request, deadline, data=data, segment=name), DataAppended)
        self._last = number

    def _set_up(self, deadline: Deadline) -> None:
        assert self._segment is not None
        endpoint = self._stores.endpoint(self._stream, self._segment, deadline)
        self._connection = self._stores.pool.take(endpoint, deadline)
        token = self._stores.token(self._stream, write=True, deadline=deadline)
        name = segment_name(self._stream, self._segment)
        request = SetupAppend(self._connection.next_request_id(), self._writer_id, name, token)
        reply = self._check(self._connection.ask(request, deadline), AppendSetup)
        self._last = max(self._last, reply.last_event_number)

    def _check(self, reply: Message, kind: type[R]) -> R:
        """Return the reply if it has the expected class. Raises the error for a refusal."""
        assert self._segment is not None
        if not isinstance(reply, kind):
            raise error_of(reply, segment_name(self._stream, self._segment))
        return reply

    def _find_segment(self) -> None:
        current = _at(self._position, self._stores.controller.current_segments(self._stream))
        if current is None:
            raise StreamSealedError.of(self._stream)
        for segment_id in _predecessors(self._stores, self._stream, current, self._position):
            try:
                number = SegmentCalls(self._stores, self._stream, segment_id).attribute(self._writer_id)
            except NoSuchSegmentError:
                break  # truncated away, with all segments before it
            if number != NO_ATTRIBUTE:
                self._last = max(self._last, number)
                break  # earlier segments have lower numbers
        self._segment = current


def _blocks(events: Sequence[Numbered]) -> Iterator[list[Numbered]]:
    block: list[Numbered] = []
    size = 0
    for event in events:
        if block and size + len(event[1]) > _BLOCK_BYTES:
            yield block
            block, size = [], 0
        block.append(event)
        size += len(event[1]) + EVENT_HEADER_SIZE
    if block:
        yield block


def _at(position: float, segments: Sequence[SegmentRange]) -> int | None:
    return next((each.id for each in segments if each.low <= position < each.high), None)


# History does not change, so a process asks once for each segment.
@lru_cache(maxsize=256)
def _predecessors(stores: SegmentStores, stream: StreamName, segment_id: int, position: float) -> tuple[int, ...]:
    """Return the earlier segments with this position on the key line, newest first."""
    found: dict[int, None] = {}
    for epoch in range(segment_epoch(segment_id) - 1, -1, -1):
        before = _at(position, stores.controller.epoch_segments(stream, epoch))
        if before is not None:
            found[before] = None
    return tuple(found)
