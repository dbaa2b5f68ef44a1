"""Session that appends to one segment, without I/O: the bytes to send, and the effect of each answer.

Theory of operation
-------------------
Events are sent in *blocks*: each block is appended atomically, with the number of its last event. Numbers count the
events that this writer id has written to this segment. So ``AppendSetup.last_event_number`` shows after any
reconnection which blocks are durable. The server does not recognize a repeated block, so a block is sent again only
after a set-up has shown that it did not arrive. (Java: ``SegmentOutputStreamImpl``.)

::

    IDLE --setup()--> SETUP --AppendSetup--> READY --sealed()--> SEALED --setup()--> DRAINING --AppendSetup--> DONE
     ^ ^                |                      |                    ^                   |                       |
     | +----------------+------ disconnected() +                    +-- disconnected() -+                       |
     +------------------------------------------------- reopened() ---------------------------------------------+

A sealed segment still answers a set-up with the last durable number. So the blocks that are left after ``DRAINING`` are
exactly those for the successors. If the segment has no successors because it is not sealed, the session restarts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

import numpy as np
import numpy.typing as npt

from pravega_connector.errors import UnexpectedReplyError
from pravega_connector.wire.codec import encode
from pravega_connector.wire.messages import NO_ATTRIBUTE, AppendSetup, BlockAppend, DataAppended, SetupAppend


class AppendState(Enum):
    """State of an AppendSession; the diagram is in the module's docstring."""

    IDLE = auto()
    SETUP = auto()
    READY = auto()
    SEALED = auto()
    DRAINING = auto()
    DONE = auto()


# (state, event) -> next state. A server that follows the protocol causes no other pair.
_TRANSITIONS: Final = {
    (AppendState.IDLE, "setup"): AppendState.SETUP,
    (AppendState.SETUP, "AppendSetup"): AppendState.READY,
    (AppendState.SETUP, "sealed"): AppendState.SEALED,
    (AppendState.READY, "sealed"): AppendState.SEALED,
    (AppendState.SEALED, "setup"): AppendState.DRAINING,
    (AppendState.DRAINING, "AppendSetup"): AppendState.DONE,
    (AppendState.DONE, "reopened"): AppendState.IDLE,
    (AppendState.IDLE, "disconnected"): AppendState.IDLE,
    (AppendState.SETUP, "disconnected"): AppendState.IDLE,
    (AppendState.READY, "disconnected"): AppendState.IDLE,
    (AppendState.SEALED, "disconnected"): AppendState.SEALED,
    (AppendState.DRAINING, "disconnected"): AppendState.SEALED,
    # Once the segment is sealed, each append in flight is refused separately. The last refusals may arrive after the
    # answer to the next set-up, because a store does not answer in the order of the requests.
    (AppendState.SEALED, "sealed"): AppendState.SEALED,
    (AppendState.DRAINING, "sealed"): AppendState.DRAINING,
    (AppendState.DONE, "sealed"): AppendState.DONE,
}


@dataclass(slots=True)
class Block:
    """Framed events that are appended in one step.

    ``ends`` are the end offsets of the events in ``data``. ``positions`` are their positions in the key space [0, 1).
    They are kept until the block is durable, because the events of a sealed segment are routed again.
    """

    data: memoryview
    ends: npt.NDArray[np.int64]
    positions: npt.NDArray[np.float64]
    large: bool = False  # True if it is too large for a wire frame
    last_number: int = field(default=0, init=False)
    request_id: int = field(default=0, init=False)  # of the last request that sent it
    merge_id: bytes = b""  # id of the segment's attribute that shows if a large block was merged
    mark: int = 0  # for the owner; parts of the block share it
    note: object = None  # for the owner of a block that is never divided
    sender: tuple[bytes, int] | None = None  # writer id that may have sent it already, and the event number before it

    def split(self, targets: npt.NDArray[np.int64]) -> Iterator[tuple[int, Block]]:
        """Split the events by target segment (one id for each event), each part in order."""
        starts = np.concatenate((np.zeros(1, np.int64), self.ends[:-1]))
        for target in np.unique(targets):
            chosen = np.flatnonzero(targets == target)
            parts = [self.data[starts[i] : self.ends[i]] for i in chosen]
            ends = np.cumsum(self.ends[chosen] - starts[chosen])
            part = Block(
                memoryview(b"".join(parts)), ends, self.positions[chosen], self.large, mark=self.mark, note=self.note
            )
            yield int(target), part


class AppendSession:
    """Blocks on their way into one segment, over one connection at a time. Not thread safe."""

    def __init__(self, segment: str, writer_id: bytes, *, window: int, before: int | None = None) -> None:
        """With ``before``, continue another session of the writer id, which may have sent all of the first blocks.

        It is the number of the last event before these blocks.
        """
        self.segment = segment
        self.writer_id = writer_id
        self.state = AppendState.IDLE
        self._window = window
        self._pending: deque[Block] = deque()  # not yet durable, oldest first
        self._sent = 0  # number of them on the current connection
        self._bytes_in_flight = 0
        self._continues = self._probing = before is not None  # probing: one block at a time, until one is acknowledged
        self._number = before or 0
        self._sent_number = NO_ATTRIBUTE  # of the last event that was sent, on any connection
        self._durable_number = NO_ATTRIBUTE if before is None else before
        self._setup_id = 0

    def _go(self, event: str) -> None:
        after = _TRANSITIONS.get((self.state, event))
        if after is None:
            raise UnexpectedReplyError(
                f"unexpected {event} for segment {self.segment} in state {self.state.name}; retry on a new connection"
            )
        self.state = after

    @property
    def unacknowledged(self) -> bool:
        """True if any block may not be durable."""
        return bool(self._pending)

    @property
    def awaits_reply(self) -> bool:
        """True if the connection owes an answer to a set-up or to an append."""
        return self._sent > 0 or self.state in (AppendState.SETUP, AppendState.DRAINING)

    def setup(self, request_id: int, token: str) -> bytes:
        """Return the request that binds the session to a new connection.

        For a sealed segment, it requests the last event number.
        """
        self._go("setup")
        self._setup_id = request_id
        return encode(SetupAppend(request_id, self.writer_id, self.segment, token))

    def disconnected(self) -> None:
        """Discard the state of the connection. The next set-up shows which blocks arrived.

        The server refuses one append to a sealed segment and drops the connection at the next one, often before the
        refusal has arrived. So the first block on a new connection is sent alone.
        """
        self._go("disconnected")
        self._sent = self._bytes_in_flight = 0
        self._probing = True

    def enqueue(self, block: Block) -> None:
        """Add a block, and keep it until it is durable or returned by :meth:`take_unacknowledged`."""
        self._number += len(block.ends)
        block.last_number = self._number
        if self._continues:
            self._sent_number = self._number
        self._pending.append(block)

    def to_send(self, request_id: int) -> Iterator[memoryview | bytes]:
        """Yield the buffers to send now, within the window of bytes in flight. Stop at a large block."""
        while self.state is AppendState.READY and self._sent < len(self._pending):
            block = self._pending[self._sent]
            size = len(block.data)
            if block.large or (self._sent and (self._probing or self._bytes_in_flight + size > self._window)):
                return
            block.request_id = request_id
            append = BlockAppend(self.writer_id, block.last_number, request_id)
            before, after = append.around(size, len(block.ends))
            self._sent += 1
            self._sent_number = max(self._sent_number, block.last_number)
            self._bytes_in_flight += size
            yield before
            yield block.data
            yield after

    def due_large_block(self) -> Block | None:
        """Return the large block at the head of the queue; None until all earlier ones are durable."""
        if self.state is AppendState.READY and self._pending and not self._sent and self._pending[0].large:
            return self._pending[0]
        return None

    def large_block_done(self) -> list[Block]:
        """Remove the large block, which was merged, and return it."""
        block = self._pending.popleft()
        self._durable_number = block.last_number
        return [block]

    def receive(self, reply: AppendSetup | DataAppended) -> list[Block]:
        """Process an acknowledgement. Return the blocks that it made durable.

        Raises UnexpectedReplyError for the acknowledgement of another request, or of events that were not sent.
        """
        if isinstance(reply, AppendSetup):
            number = reply.last_event_number
            count = 0 if number <= self._durable_number else self._blocks_until(number)
            ours = (reply.request_id, reply.segment) == (self._setup_id, self.segment)
            if not ours or count is None or number > self._sent_number:
                raise self._unexpected(reply, number)
            self._go("AppendSetup")
            return self._drop(count)
        count = self._blocks_until(reply.event_number)
        if not count or count > self._sent or reply.request_id != self._pending[count - 1].request_id:
            raise self._unexpected(reply, reply.event_number)
        self._probing = False
        return self._drop(count)

    def sealed(self) -> None:
        """Record that the segment is sealed. The next set-up shows which events it has."""
        self._go("sealed")
        self._sent = self._bytes_in_flight = 0

    def reopened(self) -> None:
        """Record that the segment accepts events, although a store reported it as sealed.

        The next set-up binds the session.
        """
        self._go("reopened")
        self._probing = True

    def take_unacknowledged(self) -> list[Block]:
        """Remove and return the blocks that are not durable, in order."""
        blocks = list(self._pending)
        self._pending.clear()
        self._sent = self._bytes_in_flight = 0
        return blocks

    def _unexpected(self, reply: AppendSetup | DataAppended, number: int) -> UnexpectedReplyError:
        return UnexpectedReplyError.of(f"the store of segment {self.segment}", reply, f"for event {number}")

    def _blocks_until(self, number: int) -> int | None:
        """Return the number of blocks that are durable if the event ``number`` is.

        None if no block ends with that event.
        """
        for before, block in enumerate(self._pending):
            if block.last_number >= number:
                return before + 1 if block.last_number == number else None
        return None

    def _drop(self, count: int) -> list[Block]:
        """Remove and return the first blocks, which are durable."""
        durable = [self._pending.popleft() for _ in range(count)]
        if durable:
            self._durable_number = durable[-1].last_number
        self._sent = max(0, self._sent - count)
        self._bytes_in_flight = max(0, self._bytes_in_flight - sum(len(block.data) for block in durable))
        return durable
