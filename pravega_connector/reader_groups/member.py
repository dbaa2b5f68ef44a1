"""Member of a reader group: sends the requests of the reader's state machine.

It reads no events. The code that reads calls :meth:`GroupMember.turn` before each event or block of events. It reports
which events were delivered and which segments have ended, and reads from :attr:`GroupMember.reading`.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from pravega_connector.core import io
from pravega_connector.core.values import MAX_LONG, SubscriberId
from pravega_connector.errors import OutcomeUnknownError, ReaderOfflineError
from pravega_connector.reader_groups.protocol import (
    END_OF_SEGMENT,
    GroupConfig,
    GroupState,
    Init,
    InitSerializer,
    KeyRange,
    Positions,
    Ranged,
    Segment,
    StateSerializer,
    StateUpdate,
    apply,
    create,
)
from pravega_connector.reader_groups.protocol.machine import (
    Ask,
    Now,
    Phase,
    Reader,
    Request,
    Succession,
    should_compact,
)
from pravega_connector.single_segment.synchronizer import StateSynchronizer
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire.names import group_stream
from pravega_serde.errors import PravegaError

if TYPE_CHECKING:
    from pravega_connector.controller.service import ControllerClient

_log: Final = logging.getLogger(__name__)
# Attempts to write one update while its outcome is unknown. Each follows all attempts of a call.
_UNKNOWN: Final = 3
# Time for a reader to leave that could not be opened.
_GIVE_UP_SECONDS: Final = 5.0
# Independent of the sequence that a program has seeded.
_CHANCE: Final = random.SystemRandom()


def _now() -> Now:
    return Now(time.monotonic(), time.time_ns() // 1_000_000)


def init_of(controller: ControllerClient, config: GroupConfig) -> Init:
    """Return a group's initial update: start at the configured stream cuts, or at the heads of the streams."""
    start: dict[Segment, int] = {}
    end: dict[Segment, int] = {}
    for stream, bound in config.start.items():
        cut = controller.head_cut(stream) if bound.cut is None else bound.cut
        start |= {Segment(stream, number): offset for number, offset in cut.positions.items()}
    for stream, bound in config.end.items():
        positions = {} if bound.cut is None else bound.cut.positions
        # A segment that is complete in the cut is read to its end, at any offset.
        end |= {Segment(stream, n): MAX_LONG if offset < 0 else offset for n, offset in positions.items()}
    return Init(config, Ranged.of(start), end)


class GroupMember:
    """One reader in a group. Not thread safe. Context manager: leaving the block leaves the group."""

    def __init__(
        self,
        stores: SegmentStores,
        scope: str,
        group: str,
        reader_id: str,
        *,
        delay: float = 0.0,
        clock: Callable[[], Now] = _now,
        chance: Callable[[], float] = _CHANCE.random,
    ) -> None:
        """Join the group, which must already have a state.

        The reader acquires segments after a random delay between ``delay`` and twice ``delay`` seconds. Raises
        ReaderOnlineError, ConfigError for a group without a state, and OutcomeUnknownError if it is unknown whether the
        reader joined. In that case, use another id.
        """
        self.scope, self.group = scope, group
        self._controller = stores.controller
        self._clock, self._chance = clock, chance
        self._log: StateSynchronizer[GroupState, Init | GroupState, StateUpdate] = StateSynchronizer(
            stores,
            group_stream(scope, group),
            create=create,
            apply=apply,
            init_serializer=InitSerializer(),
            update_serializer=StateSerializer(),
        )
        wait = delay + chance() * delay
        self._reader = Reader.join(reader_id, clock(), delay=wait)
        self._asking = False  # True before a turn if the last one was interrupted
        try:
            self._finish()
        except Exception:
            self.close()
            raise
        except BaseException:
            self.give_up()
            raise

    @property
    def reader_id(self) -> str:
        """Name of the reader in its group."""
        return self._reader.id

    @property
    def state(self) -> GroupState:
        """State of the group as of the last poll."""
        state = self._log.state
        assert state is not None
        return state

    @property
    def reading(self) -> Positions:
        """Segments to read, with the offset to read each from."""
        return self._reader.reading

    @property
    def position(self) -> Ranged:
        """Offsets of this reader in all segments that it owns."""
        return self._reader.position

    @property
    def checkpoint(self) -> str | None:
        """Checkpoint to deliver if the last turn ended with one, otherwise None."""
        return self._reader.delivered if self._reader.phase is Phase.CHECKPOINT else None

    @property
    def at_end(self) -> bool:
        """True if the group had read all data when the last turn ended."""
        return self._reader.phase is Phase.END

    def turn(self) -> None:
        """Take part in the group. The caller has processed everything that was delivered before.

        Raises ReaderOfflineError if the reader was removed. Close it without leaving, and create a new one.
        """
        if self.begin_turn():
            self.finish_turn()

    def begin_turn(self) -> bool:
        """Begin a turn as in :meth:`turn`, and return True if it needs requests to the servers.

        An interrupted turn continues, because its last write may have taken effect.
        """
        if self._asking and not self._reader.is_idle:
            self._reader = self._reader.outcome_unknown()
        else:
            self._reader = self._reader.turn(self.state, self._clock())
        return not self._reader.is_idle

    def finish_turn(self) -> None:
        """Send the requests of the turn and wait for the servers. Raises the errors of :meth:`turn`."""
        self._finish()

    def wait(self) -> float:
        """Return the seconds until the next turn may have work although no event was read."""
        return max(0.0, self._reader.due(self.state) - self._clock().seconds)

    def delivered_up_to(self, segment: Segment, offset: int) -> None:
        """Record that the events of a segment before an offset were delivered."""
        self._reader = self._reader.delivered_up_to(segment, offset)

    def ended(self, segment: Segment, *, sealed: bool = True) -> None:
        """Record the end of a segment or, with ``sealed=False``, the offset at which the group ends in it."""
        self._reader = self._reader.ended(segment, sealed=sealed)

    def truncated(self, segment: Segment, start: int) -> None:
        """Record that a segment was truncated to an offset after this reader's position."""
        self._reader = self._reader.truncated(segment, start)

    def moved(self, segment: Segment, offset: int) -> None:
        """Read an owned segment from another offset than the group's. END_OF_SEGMENT skips the segment."""
        if offset == END_OF_SEGMENT:
            self._reader = self._reader.ended(segment)
            return
        self._reader = self._reader.moved(segment, offset)
        if offset == self.state.end.get(segment):
            self._reader = self._reader.ended(segment, sealed=False)

    def leave(self, position: Positions | None = None) -> None:
        """Leave the group. Durable on return.

        Other readers continue from this reader's position, or from ``position``.
        """
        if self._reader.phase is not Phase.GONE:
            self._reader = self._reader.leave(position)
            self._finish()

    def give_up(self) -> None:
        """Leave the group because of an error or an interrupt, which stays the one to raise, and close the connection.

        If the servers do not answer soon, the reader stays in the group as a failed one.
        """
        over, bell = list[bool](), io.bell()

        def leave() -> None:
            try:
                if self._reader.phase is Phase.JOIN and self._log.state is not None:
                    self._finish()  # the same write again, which shows whether the first one took effect
                if self._reader.phase is not Phase.JOIN:
                    self.leave()
            except PravegaError as error:
                _log.info("reader %s of group %s/%s did not leave: %s", self._reader.id, self.scope, self.group, error)
            finally:
                self.close()
                over.append(True)
                bell.ring()

        io.start(leave, "pravega-group-leave")
        bell.wait(lambda: bool(over), _GIVE_UP_SECONDS)

    def close(self) -> None:
        """Close the connection. Without :meth:`leave`, the group keeps waiting for this reader."""
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            if kind is None or not issubclass(kind, ReaderOfflineError):
                self.leave()
        finally:
            self.close()

    # ---------------------------------------------------------------- private

    def _finish(self) -> None:
        """Answer the requests of the state machine until it rests."""
        self._asking = True
        try:
            while not self._reader.is_idle:
                now = self._clock()
                answer = self._answer(self._reader.request(now), now)
                self._reader = self._reader.answered(answer, self.state, self._clock())
        except Exception:
            self._asking = False
            raise
        self._asking = False

    def _answer(self, request: Request, now: Now) -> Any:
        match request.ask:
            case Ask.FETCH:
                self._fetch()
            case Ask.UPDATE:
                self._update(request, now)
            case Ask.WRITE:
                try:
                    self._log.update_state_unconditionally(request.updates)
                except OutcomeUnknownError as error:  # the next report replaces it
                    _log.info("reader %s of group %s/%s: %s", self._reader.id, self.scope, self.group, error)
            case Ask.CONFIG:
                config = self._controller.group_config(self.scope, self.group)
                return init_of(self._controller, self.state.config if config is None else config)
            case Ask.SUCCESSORS:
                assert request.segment is not None
                return self._succession(request.segment)
            case Ask.PUBLISH:
                config = self.state.config
                subscriber = SubscriberId(self.group, str(config.id), config.generation)
                for cut in request.cuts.values():
                    self._controller.update_subscriber(subscriber, cut, scope=self.scope)
        return None

    def _fetch(self) -> None:
        self._log.fetch_updates()
        # The number of bytes costs a request for the mark, so the random number is compared first.
        chance = self._chance()
        if should_compact(self.state, MAX_LONG, chance) and should_compact(
            self.state, self._log.bytes_since_compaction(), chance
        ):
            self._log.compact(lambda state: None if state.later else state)

    def _update(self, request: Request, now: Now) -> None:
        """Write the updates that follow from the state, until it is known whether they were written."""
        for attempt in range(1, _UNKNOWN + 1):
            assert request.decide is not None
            try:
                self._log.update_state(request.decide)
                return
            except OutcomeUnknownError as error:
                if self._reader.phase is Phase.JOIN or attempt == _UNKNOWN:
                    raise
                # The same bytes at the same offset show the outcome of the first write; at another they are refused.
                _log.info("reader %s of group %s/%s: %s", self._reader.id, self.scope, self.group, error)
                self._reader = self._reader.outcome_unknown()
                self._log.fetch_updates()
                request = self._reader.request(now)

    def _succession(self, segment: Segment) -> Succession:
        found = self._controller.successors(segment.stream, segment.id)
        after = {Segment(segment.stream, one.range.id): one for one in found}
        return Succession(
            {successor: one.predecessors for successor, one in after.items()},
            {successor: KeyRange(one.range.low, one.range.high) for successor, one in after.items()},
        )
