"""Appends to one segment, one after the other, each with a certain outcome as far as that can be had.

Theory of operation
-------------------
Each append carries the writer id of this object and the next number; the server keeps the last number of a writer id
with the segment, changed in the same step as the segment's bytes. So after a lost connection a set-up tells whether the
append took effect (its number is the last one) or not. "Not" is no answer yet: an append that was on its way may land
after the set-up. It is repeated then, with the same number, and

- is accepted: the first one can land no more, because its number no longer follows the last one;
- is refused for its number (the first one landed after the set-up): the next set-up tells;
- is refused because the segment has grown: by the first one, or by somebody else's. Once the segment is seen to be
  longer, no append that expected the old length can land any more, and a set-up tells whose it was.

A store refuses already for an append that it has only begun to make durable, which nobody can read yet (seen with two
clients in a race), and which it forgets if it fails now. So every refusal waits until the segment is seen to be longer:
what was there first can be read when it is told.

Only when the time is up before this ends is the outcome unknown. The append is kept then, and asking again for the same
bytes at the same length goes on with it. (Java's ``ConditionalOutputStreamImpl`` takes the last case for a refusal.)
"""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass
from typing import Final

from connector.client._connection import Connection
from connector.client._deadline import Deadline
from connector.client._segment_calls import SegmentCalls
from connector.client._stores import SegmentStores, error_of
from connector.errors import (
    ConfigError,
    ConnectionLostError,
    ConnectorError,
    NoSuchSegmentError,
    OutcomeUnknownError,
    SegmentSealedError,
    StreamSealedError,
)
from connector.wire import (
    AppendSetup,
    ConditionalAppend,
    ConditionalCheckFailed,
    DataAppended,
    Message,
    SetupAppend,
    StreamName,
    encode,
    encode_append,
    frame_events,
    segment_name,
)

__all__ = ["SegmentAppender"]

# Seconds for an append that is being made durable; a segment store that takes longer has other trouble.
_SETTLING: Final = 1.0
_FIRST_PAUSE: Final = 0.001


@dataclass(slots=True)
class _Append:
    """An append on its way."""

    event: bytes
    expected: int | None  # length of the segment that it asks for; None: any
    number: int
    sent: bool = False  # it may have taken effect

    def request(self, writer_id: bytes) -> bytes:
        if self.expected is not None:
            return encode(ConditionalAppend(writer_id, self.number, self.expected, self.event, self.number))
        frame = frame_events((self.event,)).data
        before, after = encode_append(writer_id, len(frame), 1, self.number, self.number)
        return b"".join((before, frame, after))


class SegmentAppender:
    """Appends events to one segment. Thread safe; one connection, opened when it is needed."""

    def __init__(self, stores: SegmentStores, stream: StreamName, segment_id: int) -> None:
        self._stores, self._stream, self._id = stores, stream, segment_id
        self._name = segment_name(stream, segment_id)
        self._calls = SegmentCalls(stores, stream, segment_id)
        self._writer_id = uuid.uuid4().bytes
        self._lock = threading.Lock()
        self._number = 0
        self._connection: Connection | None = None
        self._pending: _Append | None = None  # the last one, unless its outcome is known

    def append(self, event: bytes) -> None:
        """Append an event; it is durable on return. Raises OutcomeUnknownError, StreamSealedError."""
        with self._lock:
            self._resolve(self._begin(event, None))

    def append_at(self, event: bytes, expected: int) -> bool:
        """Append an event if the segment ends at ``expected``; whether it did. It is durable then.

        Raises OutcomeUnknownError, after which the same call goes on until the outcome is known; StreamSealedError.
        """
        with self._lock:
            pending = self._pending
            if pending is not None and (pending.event, pending.expected) == (event, expected):
                return self._resolve(pending)
            return self._resolve(self._begin(event, expected))

    def close(self) -> None:
        """Close the connection."""
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
                self._disconnect()  # an answer that is still to come would be taken for the next one's
                if isinstance(error, SegmentSealedError):
                    # For good, whichever store says so: Java's byte streams are sealed without the controller.
                    text = f"stream {self._stream} is sealed; nothing more can be written to it"
                    raise StreamSealedError(text) from None
                raise

        try:
            appended = self._stores.run(self._stream, self._id, attempt)
        except NoSuchSegmentError:
            raise self._calls.missing() from None
        except ConnectorError as error:
            if not append.sent or isinstance(error, ConfigError | StreamSealedError):
                raise
            raise self._unknown(append, error) from error
        self._pending = None
        return appended

    def _unknown(self, append: _Append, error: ConnectorError) -> OutcomeUnknownError:
        advice = "write the same bytes at the same revision again to find out"
        if append.expected is None:
            advice = "read the stream to find out, but it may come yet"
        return OutcomeUnknownError(
            f"whether an event was appended to {self._name} could not be learned within {self._stores.timeout:g} s "
            f"({error.message}); {advice}"
        )

    def _try(self, append: _Append, deadline: Deadline) -> bool:
        if self._connection is None and self._set_up(deadline) >= append.number:
            return True
        in_doubt, append.sent = append.sent, True
        reply = self._ask(append.request(self._writer_id), deadline)
        if isinstance(reply, DataAppended):
            return True
        if not isinstance(reply, ConditionalCheckFailed):
            raise error_of(reply, self._name)
        assert append.expected is not None
        self._await_longer(append.expected, deadline)
        return in_doubt and self._set_up(deadline) >= append.number

    def _await_longer(self, length: int, deadline: Deadline) -> None:
        """Return when the segment is longer. Raises ConnectionLostError, so as to try again, if it is not soon."""
        end = time.monotonic() + _SETTLING
        pause = _FIRST_PAUSE
        while (now := self._calls.info(deadline).write_offset) <= length:
            if now < length:
                raise ConfigError(f"there is no offset {length} in segment {self._name} to append at: it ends at {now}")
            if time.monotonic() >= end:
                raise ConnectionLostError(f"segment {self._name} was refused to grow, but it has not grown")
            time.sleep(pause)
            pause *= 2

    def _set_up(self, deadline: Deadline) -> int:
        """Bind the writer id to the connection; the number of its last append that took effect."""
        if self._connection is None:
            self._connection = self._stores.pool.take(self._stores.endpoint(self._stream, self._id, deadline), deadline)
        token = self._stores.token(self._stream, write=True, deadline=deadline)
        reply = self._ask(encode(SetupAppend(0, self._writer_id, self._name, token)), deadline)
        if not isinstance(reply, AppendSetup):
            raise error_of(reply, self._name)
        return reply.last_event_number

    def _ask(self, request: bytes, deadline: Deadline) -> Message:
        assert self._connection is not None
        self._connection.send(request, deadline)
        return self._connection.receive(deadline)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
