"""Appends that anybody may repeat: each event has a number, and a stream takes the numbers of a writer id once.

Theory of operation
-------------------
Several processes, one after the other or at the same time, write the same events with the same numbers under one
writer id (the attempts of a task, say). A segment keeps the last number of a writer id, changed in the same step as its
bytes, and an append is refused unless it follows the number that its connection has seen. So each appends what the
set-up of its connection says is missing, and whoever is refused (another one was faster) sets up again and goes on
behind the other's last event. Wherever one of them is killed, the events below the last number are there once.

All events have one routing key, so there is one segment at a time. After a scaling its successor knows nothing of the
writer id; the sealed predecessors do, for good, because nothing can be appended to them any more. So before the first
append to a segment the predecessors are asked, newest first, until one knows the id. The guarantee ends with the
segments that know: a stream that was scaled and truncated behind that between two attempts takes the events again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from connector.client._connection import Connection
from connector.client._deadline import Deadline
from connector.client._segment_calls import SegmentCalls
from connector.client._stores import SegmentStores, error_of
from connector.errors import NoSuchSegmentError, SegmentSealedError, StreamSealedError
from connector.wire import (
    EVENT_HEADER_SIZE,
    NO_ATTRIBUTE,
    AppendSetup,
    DataAppended,
    Message,
    SegmentRange,
    SetupAppend,
    StreamName,
    encode,
    encode_append,
    frame_events,
    segment_epoch,
    segment_name,
)
from pravega_serde.routing import segment_key

__all__ = ["NumberedAppender"]

# Bytes of one append, unless a single event is larger.
_BLOCK_BYTES: Final = 1 << 20

Numbered = tuple[int, bytes]


class NumberedAppender:
    """Appends numbered events of one routing key, each once, whoever else does the same. Not thread safe."""

    def __init__(self, stores: SegmentStores, stream: StreamName, routing_key: str, writer_id: bytes) -> None:
        self._stores, self._stream, self._writer_id = stores, stream, writer_id
        self._position = segment_key(routing_key)
        self._segment: int | None = None
        self._last = NO_ATTRIBUTE  # the highest number that is known to be durable
        self._connection: Connection | None = None

    def append(self, events: Sequence[Numbered]) -> None:
        """Append the events that the stream lacks; on return all are durable. Their numbers grow, from call to call.

        Raises StreamNotFoundError, StreamSealedError, and retriable errors when the servers stay away.
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
        """Append to the present segment what it lacks; if it ends meanwhile, find the next one."""
        if self._segment is None:
            self._find_segment()
        assert self._segment is not None
        try:
            self._stores.run(self._stream, self._segment, lambda deadline: self._try(block, deadline))
        except (SegmentSealedError, NoSuchSegmentError):
            # What it took before is found as that of a predecessor.
            self._segment = None

    def _try(self, block: list[Numbered], deadline: Deadline) -> None:
        try:
            if self._connection is None:
                self._set_up(deadline)
            missing = [event for event in block if event[0] > self._last]
            if missing:
                self._send(missing, deadline)
        except BaseException:
            self.close()  # the next set-up tells what was taken
            raise

    def _send(self, block: list[Numbered], deadline: Deadline) -> None:
        frame = frame_events([event for _, event in block]).data
        number = block[-1][0]
        before, after = encode_append(self._writer_id, len(frame), len(block), number, number)
        self._ask(b"".join((before, frame, after)), DataAppended, deadline)
        self._last = number

    def _set_up(self, deadline: Deadline) -> None:
        assert self._segment is not None
        endpoint = self._stores.endpoint(self._stream, self._segment, deadline)
        self._connection = self._stores.pool.take(endpoint, deadline)
        token = self._stores.token(self._stream, write=True, deadline=deadline)
        name = segment_name(self._stream, self._segment)
        reply = self._ask(encode(SetupAppend(0, self._writer_id, name, token)), AppendSetup, deadline)
        assert isinstance(reply, AppendSetup)
        self._last = max(self._last, reply.last_event_number)

    def _ask(self, request: bytes, kind: type[Message], deadline: Deadline) -> Message:
        assert self._connection is not None
        assert self._segment is not None
        self._connection.send(request, deadline)
        reply = self._connection.receive(deadline)
        if not isinstance(reply, kind):
            raise error_of(reply, segment_name(self._stream, self._segment))
        return reply

    def _find_segment(self) -> None:
        current = _at(self._position, self._stores.controller.current_segments(self._stream))
        if current is None:
            raise StreamSealedError(f"stream {self._stream} is sealed; nothing more can be written to it")
        for segment_id in _predecessors(self._stores, self._stream, current, self._position):
            try:
                number = SegmentCalls(self._stores, self._stream, segment_id).attribute(self._writer_id)
            except NoSuchSegmentError:
                break  # truncated away, and all before it
            if number != NO_ATTRIBUTE:
                self._last = max(self._last, number)
                break  # those before it have lower numbers
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


# History does not change: for each segment it is asked once in a process.
@lru_cache(maxsize=256)
def _predecessors(stores: SegmentStores, stream: StreamName, segment_id: int, position: float) -> tuple[int, ...]:
    """The segments that had the place on the key line before, newest first."""
    found: dict[int, None] = {}
    for epoch in range(segment_epoch(segment_id) - 1, -1, -1):
        before = _at(position, stores.controller.epoch_segments(stream, epoch))
        if before is not None:
            found[before] = None
    return tuple(found)
