"""Events of the segments that one reader of a group owns, with the group's checkpoints between them.

It reads as :mod:`.tail` does, but the group assigns and removes the segments. The reader takes its turn in the group
with each call, and within a long batch whenever something is due. So a slow caller does not delay the others for longer
than it takes to process the events of one call. If the servers need more time for a turn than the call has left, the
turn continues in the background. The next call waits for it and delivers nothing until it has ended.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from pravega_connector.core import arguments, io
from pravega_connector.core.connection import ProcessBound, wait_ready
from pravega_connector.core.deadline import Deadline
from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import (
    ConfigError,
    DataLossError,
    NoSuchSegmentError,
    ReaderOfflineError,
    SegmentTruncatedError,
)
from pravega_connector.reader.slices import EventBatch, data_loss
from pravega_connector.reader.tail import TailReader, _SegmentTail
from pravega_connector.reader_groups.delivery import Delivery, GroupEvent
from pravega_connector.reader_groups.member import GroupMember
from pravega_connector.reader_groups.protocol import Positions, Ranged, Segment
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import StreamCut, StreamName
from pravega_serde import after_fork
from pravega_serde.errors import PravegaError

T = TypeVar("T")
V = TypeVar("V")
_log: Final = logging.getLogger(__name__)
#: Minimum seconds that a call waits for its turn in the group. Healthy servers need a few milliseconds.
_TURN_SECONDS: Final = 0.25


class _OwnedSegments(TailReader):
    """Segments of one stream that a reader owns. It does not read successors: the group assigns them."""

    def __init__(self, stores: SegmentStores, stream: StreamName) -> None:
        super().__init__(stores, StreamCut(stream, {}))
        self.ended: list[int] = []
        """Segments that were read to their ends, but not yet reported to the group."""
        self.begins: dict[int, int] = {}
        """First offsets of truncated segments, not yet reported to the group."""

    def own(self, positions: Mapping[int, int]) -> None:
        """Read only these segments. A segment that is already being read continues at its offset."""
        for segment_id in self._tails.keys() - positions.keys():
            self._drop(self._tails[segment_id])
        self.ended = [segment_id for segment_id in self.ended if segment_id in positions]
        for segment_id in positions.keys() - self._tails.keys() - set(self.ended):
            self._positions[segment_id] = positions[segment_id]
            self._tails[segment_id] = self._tail(segment_id, positions[segment_id])

    def restart(self) -> None:
        """Drop all segments, and the state that an interrupted call has left."""
        self._positions, self.ended, self.begins = {}, [], {}
        self._restart()

    def _drop(self, tail: _SegmentTail) -> None:
        del self._tails[tail.id]
        self._positions.pop(tail.id, None)
        tail.attempts.close()
        if tail.asked is None:
            return
        # Its answer is still due, and would be treated as the answer to a later read of the segment.
        connection = self._connections.pop(tail.asked, None)
        self._pinged.pop(tail.asked, None)
        if connection is not None:
            connection.close()
        for other in self._tails.values():
            if other.asked == tail.asked:
                other.asked = None

    def _begin(self, kind: str, about: Any, work: Callable[[Deadline], Any], tail: _SegmentTail) -> None:
        if kind != "end":
            super()._begin(kind, about, work, tail)
            return
        self._finish(tail, followed=False)
        del self._positions[tail.id]
        self.ended.append(tail.id)

    def _errand_failed(self, kind: str, about: Any, error: Exception) -> None:
        tail = self._tails.get(about) if kind not in ("connect", "overdue") else None
        if tail is not None and isinstance(error, SegmentTruncatedError | NoSuchSegmentError):
            loss = data_loss(self._stream, tail.id, tail.offset, error)
            if isinstance(error, NoSuchSegmentError):
                self.ended.append(tail.id)
            elif error.start_offset > tail.offset:
                self.begins[tail.id] = error.start_offset
            else:
                return  # the answer to a read from before the segment was released and acquired again
            self._drop(tail)
            raise loss from error
        super()._errand_failed(kind, about, error)


class _Turn:
    """Requests of a turn, in a separate thread."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._free = threading.Lock()  # only one thread runs the work, even if two were started
        self._started = False
        self.ended = threading.Event()

    def start(self) -> None:
        """Start the thread unless it was started. After an interrupt, the method may be called again."""
        if not self._started:
            io.start(self._run, "pravega-group-turn")
            self._started = True

    def _run(self) -> None:
        if not self._free.acquire(blocking=False):
            return
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised where the turn is waited for
            self._error = error
        finally:
            self.ended.set()

    def check(self) -> None:
        """Raise the error with which the turn ended, if any."""
        if self._error is not None:
            raise self._error


class GroupReader(HintedNames, ProcessBound, Generic[T]):
    """Reader of a group. Not thread safe. Context manager: leaving the block leaves the group.

    Each call marks everything that earlier calls delivered as processed. If the block ends in an error, the reader
    leaves so that another reader gets the last delivered events again. A reader that is not called for a long time
    delays the group's checkpoints, and with them the reassignment of segments.
    """

    def __init__(
        self,
        stores: SegmentStores,
        member: GroupMember,
        serializer: Any = None,
        *,
        begin_at: Callable[[Positions], Positions] | None = None,
    ) -> None:
        """Read as ``member``, with the serializer's values or raw bytes.

        ``begin_at`` receives the acquired segments with the group's offsets, and returns the offsets at which to begin.
        """
        self._member, self._timeout, self._begin_at = member, stores.timeout, begin_at
        self._owned: Positions = {}
        self._delivery: Delivery[T] = Delivery(None if serializer is None else serializer.deserialize)
        self._readers = {stream: _OwnedSegments(stores, stream) for stream in member.state.config.start}
        self._turns = list(self._readers.values())
        self._in_call = False  # True between two calls if the last one was interrupted
        self._cut = False  # True while the state of an interrupted call must be dropped
        self._turning: _Turn | None = None
        self._closed = False
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._member = after_fork.inherited("GroupReader")

    @property
    def id(self) -> str:
        """Name of the reader in its group."""
        return self._member.reader_id

    @property
    def position(self) -> Ranged:
        """Offsets after the delivered events, in all segments that the reader owns.

        Reading this property marks no event as processed.
        """
        position = self._member.position
        if self._begin_at is not None:
            # The start of a segment that was just acquired is known only at the end of the turn.
            positions = {segment: at for segment, at in position.positions.items() if segment in self._owned}
            position = Ranged(positions, position.ranges)
        delivery = self._delivery
        if delivery.segment is None or delivery.segment not in position.positions:
            return position
        return Ranged({**position.positions, delivery.segment: delivery.offset}, position.ranges)

    @property
    def at_end(self) -> bool:
        """True if the group has read all data: its streams were sealed, or it reached its configured end."""
        return not self.has_events and self._member.at_end

    def poll(self, timeout: float) -> list[GroupEvent[T]]:
        """Return the next events, up to 500 of one segment, or one checkpoint; empty after ``timeout`` seconds.

        The reader takes its turn in the group first. If servers that it needs for the turn are unavailable, the list is
        empty too. Raises the errors of :meth:`TailReader.poll`, and:

        - ReaderOfflineError
        - DeserializationError: the next call continues after the event.
        - DataLossError if the next events were truncated: the next call continues at the new start of the segment.
        """
        arguments.wait("timeout", timeout)
        if not self._fetch(timeout):
            return []
        if self._checkpoint is not None:
            return [self._pass_checkpoint()]
        return self._delivery.take_list()

    def poll_columns(self, timeout: float) -> EventBatch | GroupEvent[T] | None:
        """Return the next events of one segment as columns, or a checkpoint, or None after ``timeout`` seconds.

        Raises the errors of :meth:`poll`, except DeserializationError.
        """
        arguments.wait("timeout", timeout)
        if not self._fetch(timeout):
            return None
        if self._checkpoint is not None:
            return self._pass_checkpoint()
        return self._delivery.take_columns()

    def __iter__(self) -> Iterator[GroupEvent[T]]:
        """Yield events and checkpoints until the group has read all data."""
        while not self.at_end:
            while self._fetch(self._timeout):
                yield self._take()
                yield from iter(self._delivery.take_ready, None)

    @property
    def has_events(self) -> bool:
        """True if an event can be returned without waiting, unless its segment is reassigned."""
        return self._delivery.has_events

    @property
    def timeout(self) -> float:
        """Timeout of a client call in seconds."""
        return self._timeout

    def next_event(self, timeout: float) -> GroupEvent[T] | None:
        """Return the next event or checkpoint, or None after ``timeout`` seconds.

        Raises the errors of :meth:`poll`.
        """
        return self._delivery.take_ready() or (self._take() if self._fetch(timeout) else None)

    def take_back(self) -> None:
        """Mark what the last call delivered as not delivered."""
        self._delivery.take_back()

    def close(self) -> None:
        """Leave the group. Other readers continue after the delivered events. Durable on return."""
        self._leave(again=False)

    def leave(self, position: Positions) -> None:
        """Leave the group. Durable on return.

        The next readers continue at ``position`` in the segments that it contains.
        """
        if not self._closed and not after_fork.is_inherited(self._member):
            try:
                self._await_turn()
                self._member.leave(position)
            finally:
                self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self.close()
        elif issubclass(kind, ReaderOfflineError):
            self._end()  # the reader has lost its place, so it cannot leave
        else:
            self._leave(again=True)

    # ---------------------------------------------------------------- private

    @property
    def _checkpoint(self) -> str | None:
        """Checkpoint to deliver. Valid only when no turn is running."""
        name = self._member.checkpoint
        return None if name == self._delivery.passed else name

    def _take(self) -> GroupEvent[T]:
        # While a checkpoint waits for delivery, the next turn is due at once.
        if self._delivery.due == 0.0 and self._checkpoint is not None:
            return self._pass_checkpoint()
        return self._delivery.take()

    def _pass_checkpoint(self) -> GroupEvent[T]:
        name = self._checkpoint
        return self._delivery.hand_out(GroupEvent[T](None, checkpoint=name), self._delivery.row, name)

    def _fetch(self, timeout: float) -> bool:
        """Return True if there is something to deliver, after at most ``timeout`` seconds."""
        if self._closed:
            raise ConfigError(f"reader {self.id} is closed: create a new reader of its group")
        if self.has_events and time.monotonic() < self._delivery.due:
            return True
        if self._turning is None and self._checkpoint is not None:
            self._delivery.due = 0.0
            return True
        self._cut = self._cut or self._in_call
        self._in_call = True
        try:
            found = self._await(time.monotonic() + timeout)
        except Exception:
            self._in_call = False
            raise
        self._in_call = False
        return found

    def _await(self, end: float) -> bool:
        while self._turn(end):
            if self._checkpoint is not None or self.has_events:
                return True
            if self._member.at_end:
                return False
            left = end - time.monotonic()
            if self._read(max(0.0, min(left, self._member.wait()))):
                return True
            if left <= 0:
                break
        return False

    def _turn(self, end: float) -> bool:
        """Take part in the group and update the owned segments. Return False if the turn lasts past ``end``."""
        try:
            if self._turning is None:
                self._drop_interrupted()
                self._note()
                if self._member.begin_turn():
                    self._begin_turn()
                self._delivery.passed = None
            if not self._turn_ended(max(end - time.monotonic(), _TURN_SECONDS)):
                return False
        except ReaderOfflineError:
            self._end()  # the reader has lost its place, so it cannot leave
            raise
        self._drop_interrupted()
        if self._begin_at is not None:
            owned = self._member.position.positions
            acquired = {segment: at for segment, at in owned.items() if segment not in self._owned}
            if acquired:
                for segment, at in self._begin_at(acquired).items():
                    if at != acquired[segment]:
                        self._member.moved(segment, at)
            self._owned = owned
        reading = self._member.reading
        for stream, reader in self._readers.items():
            reader.own({segment.id: at for segment, at in reading.items() if segment.stream == stream})
        if self._delivery.segment not in reading:  # the next reader of the segment reads the rest of the batch
            self._delivery.drop()
        # A checkpoint is reported with the call after the one that delivers it.
        self._delivery.due = 0.0 if self._checkpoint is not None else time.monotonic() + self._member.wait()
        return True

    def _begin_turn(self) -> None:
        """Finish the turn in the background, or in this call.

        In an event loop, the whole call continues after its caller's timeout. With ``begin_at``, the caller must know
        which segments it owns before it does anything else.
        """
        if self._begin_at is None and io.seam() is None:
            self._turning = _Turn(self._member.finish_turn)
        else:
            self._member.finish_turn()

    def _drop_interrupted(self) -> None:
        """Drop the state of an interrupted call. Events that were not delivered are read again."""
        if self._cut:
            for reader in self._readers.values():
                reader.restart()
            self._note_batch()
            self._delivery.drop()
            self._cut = False

    def _turn_ended(self, seconds: float | None = None) -> bool:
        """Return True if no turn is running in the background, after at most ``seconds`` seconds.

        Raises the error with which the turn ended.
        """
        turning = self._turning
        if turning is None:
            return True
        turning.start()
        if not turning.ended.wait(seconds):
            return False
        self._turning = None
        turning.check()
        return True

    def _note(self) -> None:
        """Report to the group how far all segments were delivered."""
        if self._note_batch():
            self._note_ends()

    def _note_batch(self) -> bool:
        """Record how far the batch was delivered. Return True if no batch is left."""
        segment = self._delivery.segment
        if segment is None or segment not in self._member.reading:
            return True
        at = self._delivery.offset
        self._member.delivered_up_to(segment, at)
        if self.has_events:
            return False
        end = self._member.state.end.get(segment)
        if end is not None and at >= end:
            self._member.ended(segment, sealed=False)
            reader = self._readers[segment.stream]
            reader.ended = [one for one in reader.ended if one != segment.id]
        self._delivery.drop()
        return True

    def _note_ends(self) -> None:
        for stream, reader in self._readers.items():
            for segment_id, begin in reader.begins.items():
                self._member.truncated(Segment(stream, segment_id), begin)
            for segment_id in reader.ended:
                self._member.ended(Segment(stream, segment_id))
            reader.begins.clear()
            reader.ended.clear()

    def _read(self, timeout: float) -> bool:
        """Return True if events arrived within ``timeout`` seconds. The end of a segment ends the wait too."""
        end = time.monotonic() + timeout
        while True:
            for reader in self._turns:
                try:
                    batch = reader.poll(0)
                except DataLossError:
                    self._note_ends()
                    raise
                if batch is not None and self._begin(batch):
                    # Next time, poll the other streams first.
                    self._turns = [*(other for other in self._turns if other is not reader), reader]
                    return True
                if reader.ended:
                    return False
            left = end - time.monotonic()
            if left <= 0:
                return False
            waits = [reader.waits() for reader in self._readers.values() if not reader.at_end]
            sources = [source for own, _ in waits for source in own]
            seconds = max(0.0, min([left, *(seconds for _, seconds in waits)]))
            self._in_call = False  # an interrupt of the wait loses no state
            wait_ready(sources, [], seconds)
            self._in_call = True

    def _begin(self, batch: EventBatch) -> bool:
        """Use a batch up to the end of the group. Return False if all of it is after that end."""
        segment = Segment(batch.stream, batch.segment_id)
        end = self._member.state.end.get(segment)
        if end is not None and batch.end > end:
            count = int(batch.offsets.searchsorted(end))
            batch = EventBatch(batch.stream, batch.segment_id, batch.events[:count], batch.offsets[:count])
            if not count:  # truncated past the end of the group
                self._member.ended(segment, sealed=False)
                return False
        self._delivery.begin(batch)
        return True

    def _leave(self, *, again: bool) -> None:
        """Leave the group after the delivered events or, with ``again``, before those of the last call."""
        if self._closed or after_fork.is_inherited(self._member):
            return
        try:
            self._await_turn()
            at = self._delivery.last_call if again else {}
            self._cut = self._cut or self._in_call
            self._drop_interrupted()
            self._note()
            self._member.leave(at)
        finally:
            self._end()

    def _await_turn(self) -> None:
        """Wait for the turn in the background without a timeout. An earlier call had no time to wait for it."""
        try:
            self._turn_ended()
        except ReaderOfflineError:
            raise
        except PravegaError as error:  # if the failure persists, leaving raises it
            _log.info("reader %s of its group: an update of the group's state failed: %s", self.id, error)
        if self._delivery.segment not in self._member.reading:  # the turn released the segment
            self._delivery.drop()

    def _end(self) -> None:
        self._closed = True
        self._delivery.due = 0.0  # no event is ready any more
        for reader in self._readers.values():
            reader.close()
        self._member.close()
