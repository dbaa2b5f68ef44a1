"""Events that do not fit into one wire frame: written to a transient segment, then merged in one step.

(Java: ``LargeEventWriter``.) The transient segment lives as long as the connection, so a failure leaves nothing.
"""

from __future__ import annotations

import itertools
import uuid
from typing import Final

from connector.client._connection import Connection
from connector.client._deadline import Deadline
from connector.client._stores import SegmentStores, error_of
from connector.wire import (
    AppendSetup,
    ConditionalBlockEnd,
    CreateTransientSegment,
    DataAppended,
    MergeSegments,
    Message,
    SegmentCreated,
    SegmentsMerged,
    SetupAppend,
    StreamName,
    encode,
)

__all__ = ["append_large_event"]

_PIECE: Final = 4 << 20


def append_large_event(  # noqa: PLR0917
    stores: SegmentStores, stream: StreamName, segment_id: int, segment: str, framed: memoryview, deadline: Deadline
) -> None:
    """Append one framed event of any size; it is durable and visible as a whole on return. One attempt.

    ``segment`` is the name of the segment to append to: that of ``segment_id``, or a transaction's beside it. Raises
    SegmentSealedError, NoSuchSegmentError, and what is retriable. Where the answer to the merge was lost, another
    attempt writes the event again: such an event may come twice.
    """
    token = stores.token(stream, write=True, deadline=deadline)
    with stores.pool.lease(stores.endpoint(stream, segment_id, deadline), deadline) as connection:
        _write_and_merge(connection, segment, token, framed, deadline)


def _write_and_merge(connection: Connection, parent: str, token: str, framed: memoryview, deadline: Deadline) -> None:
    numbers = itertools.count(1)

    def ask(request: Message, expected: type[Message]) -> Message:
        connection.send(encode(request), deadline)
        reply = connection.receive(deadline)
        if not isinstance(reply, expected):
            raise error_of(reply, parent)
        return reply

    created = ask(CreateTransientSegment(next(numbers), uuid.uuid4().bytes, parent, token), SegmentCreated)
    assert isinstance(created, SegmentCreated)
    writer_id = uuid.uuid4().bytes
    ask(SetupAppend(next(numbers), writer_id, created.segment, token), AppendSetup)
    for number, at in enumerate(range(0, len(framed), _PIECE)):
        piece = framed[at : at + _PIECE]
        ask(ConditionalBlockEnd(writer_id, number, at, piece, next(numbers)), DataAppended)
    ask(MergeSegments(next(numbers), parent, created.segment, token), SegmentsMerged)
