"""Reader of a group with exactly-once output: each transaction is committed together with the read position.

The group does not know which events were processed. If a reader fails, the events after its last checkpoint are read
again. So the readers share a log of steps (:mod:`pravega_connector.exactly_once.steps`) next to the group. A segment is
an item, and its position an offset.

1. A reader that acquires segments *claims* them in the log. It begins at the log's offset, not the group's.
2. It processes events into a transaction, and flushes it.
3. It *records* the transaction with the offsets before and after, segment by segment.
4. It commits the transaction, and waits until readers see it.

The order of each key is kept for two reasons. Steps of one segment become visible one after the other (4). The group
assigns the successors of a segment only after a checkpoint of its reader, and the reader commits before that.
"""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from pravega_connector.core import arguments
from pravega_connector.core.connection import ProcessBound
from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import ConfigError, ConnectorError, ReaderOfflineError, TransactionUnknownError
from pravega_connector.exactly_once.steps import Life, Outcome, Step, StepLog, Turn, Update
from pravega_connector.reader_groups.delivery import GroupEvent
from pravega_connector.reader_groups.member import GroupMember
from pravega_connector.reader_groups.protocol import Positions, Segment
from pravega_connector.reader_groups.reader import GroupReader
from pravega_connector.wire import StreamName
from pravega_connector.writer.transactions import LeaseKeeper, OpenTransaction, TransactionalWriter
from pravega_serde import after_fork

if TYPE_CHECKING:
    from pravega_connector.stores.segment_stores import SegmentStores

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)


def steps_stream(scope: str, group: str) -> StreamName:
    """Return the stream with the log of a group's steps."""
    return StreamName(scope, f"{group}-positions")


class ExactlyOnceReader(HintedNames, ProcessBound, Generic[T]):
    """Reader of a group that also writes the output of its events. Not thread safe. Context manager.

    Events written with :meth:`write` become visible together with the position after all events that were delivered
    before the committing call. That is the first call after ``interval`` seconds, or a checkpoint. The end of the block
    commits the rest and leaves the group. An error in the block drops all uncommitted output, and another reader reads
    those events again.

    If a method of the reader has raised an error, leave the block and create a new reader.
    """

    def __init__(
        self,
        stores: SegmentStores,
        scope: str,
        group: str,
        reader_id: str,
        *,
        serializer: Any,
        writer: TransactionalWriter[Any],
        interval: float,
        delay: float,
    ) -> None:
        self._writer, self._interval = writer, interval
        self._run = f"{reader_id}/{uuid.uuid4()}"
        self._at: dict[Segment, int] = {}  # offsets of the claimed segments in the log
        self._decided: dict[uuid.UUID, bool] = {}
        self._transaction: OpenTransaction[Any] | None = None
        self._began: float | None = None  # time at which the step's first event was delivered
        self._keeper = LeaseKeeper()
        self._broken = False
        with contextlib.ExitStack() as undo:
            undo.callback(self._keeper.close)
            self._member = GroupMember(stores, scope, group, reader_id, delay=delay)
            undo.callback(self._member.give_up)
            self._life = self._life_of_group()
            self._steps = StepLog(stores, steps_stream(scope, group), self._life)
            undo.callback(self._steps.close)
            self._reader: GroupReader[T] = GroupReader(stores, self._member, serializer, begin_at=self._claim)
            undo.pop_all()
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._broken = after_fork.inherited("ExactlyOnceReader")

    @property
    def id(self) -> str:
        """Name of the reader in its group."""
        return self._reader.id

    @property
    def committed(self) -> dict[Segment, int]:
        """Offsets up to which the output has the events of the owned segments.

        END_OF_SEGMENT means all of them.
        """
        return dict(self._at)

    @property
    def timeout(self) -> float:
        """Timeout of a client call in seconds."""
        return self._reader.timeout

    @property
    def at_end(self) -> bool:
        """True if the group has read all data. The last delivered events may still have to be committed."""
        return self._reader.at_end

    # ---------------------------------------------------------------- events in, events out

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> GroupEvent[T]:
        """Return the next event. All events before it have their output by now.

        Stops when the group has read all data. Raises the errors of :meth:`GroupReader.poll` and :meth:`commit`.
        """
        while True:
            found = self.next_event(self.timeout)
            if found is not None:
                return found
            if self._reader.at_end:
                self.commit()
                raise StopIteration

    def next_event(self, timeout: float) -> GroupEvent[T] | None:
        """Return the next event, or None after ``timeout`` seconds.

        Raises the errors of :meth:`GroupReader.poll` and :meth:`commit`.
        """
        found: GroupEvent[T] | None = self._poll(self._reader.next_event, timeout)
        return found

    def poll(self, timeout: float) -> list[GroupEvent[T]]:
        """Return the next events, all of one segment; empty after ``timeout`` seconds.

        Raises the errors of :meth:`GroupReader.poll` and :meth:`commit`.
        """
        arguments.wait("timeout", timeout)
        return self._poll(self._reader.poll, timeout) or []

    def _poll(self, take: Callable[[float], Any], timeout: float) -> Any:
        """Return the next non-checkpoint result of ``take``, or None after ``timeout`` seconds.

        Commits when the commit interval has passed.
        """
        self._check()
        end = time.monotonic() + timeout
        while True:
            now = time.monotonic()
            wait = max(0.0, end - now)
            if self._began is not None:
                due = self._began + self._interval
                if now >= due:
                    self.commit()
                else:
                    wait = min(wait, due - now)
            found = None
            try:
                found = take(wait)
                first = found[0] if isinstance(found, list) and found else found
                if not first:
                    self._settle()
                    if time.monotonic() >= end or self._reader.at_end:
                        return None
                    continue
                if not first.is_checkpoint:
                    if self._began is None:
                        self._began = time.monotonic()
                    return found
                self.commit()  # the next call reports the checkpoint to the group
            except ReaderOfflineError:
                self._broken = True
                raise
            except Exception:
                raise
            except BaseException:
                if found:  # it was delivered only to this call
                    self._reader.take_back()
                raise

    def write(self, value: Any, routing_key: str | None = None, *, key: object = None) -> None:
        """Write an output event for the delivered events, as :meth:`EventWriter.write`.

        Raises the errors of a transaction.
        """
        self.begin().write(value, routing_key, key=key)

    def begin(self) -> OpenTransaction[Any]:
        """Return the transaction of the next commit. :meth:`write` begins one if there is none."""
        self._check()
        if self._transaction is None:
            transaction = self._writer.begin()
            self._transaction = transaction
            self._keeper.add(transaction)
        return self._transaction

    def commit(self, *, before: GroupEvent[T] | None = None) -> None:
        """Mark all delivered events as processed. Their output is permanently visible on return.

        ``before`` is an event of the last call: that event and the later ones in its segment are left to the next
        commit. Raises ReaderOfflineError if another reader has taken over, and TransactionExpiredError,
        OutcomeUnknownError, DeadlineExceededError. After an error, a new reader determines the outcome.
        """
        self._check()
        position = dict(self._reader.position.positions)
        if before is not None and before.segment in position:
            position[before.segment] = before.offset
        moved = {s: (at, position[s]) for s, at in self._at.items() if s in position and position[s] != at}
        transaction = self._transaction
        if not moved and transaction is None:
            self._began = None if before is None else self._began
            return
        self._broken = True  # until the commit is done
        step, settled = None, {str(segment): ends for segment, ends in moved.items()}
        if transaction is not None:
            if not moved:
                raise ConfigError("events were written before an event was read: read an event, then write its results")
            transaction.detach()
            step, settled = Step(transaction.id, str(transaction.stream), settled), {}
        self._carry_out(settled=settled, forget=self._gone(), step=step)
        if transaction is not None:
            self._keeper.discard(transaction)
            self._transaction = None
        self._decided = {} if transaction is None else {transaction.id: True}
        self._at = {segment: at for segment, at in self._at.items() if segment in position}
        self._at |= {segment: end for segment, (_, end) in moved.items()}
        self._began, self._broken = None if before is None else time.monotonic(), False
        self._steps.compact()

    # ---------------------------------------------------------------- end

    def finish(self, *, before: GroupEvent[T] | None = None) -> None:
        """Commit as :meth:`commit` does, and record the outcome in the log, as the end of the block does."""
        self.commit(before=before)
        self._settle()

    def close(self) -> None:
        """Commit, and leave the group. Durable on return."""
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if after_fork.is_inherited(self._broken):
            return
        with contextlib.ExitStack() as last:
            last.callback(self._steps.close)
            last.callback(self._keeper.close)
            last.callback(self._member.close)
            last.callback(self._drop)
            if kind is None and not self._broken:
                self.finish()
            self._reader.leave(self._at)

    def _drop(self) -> None:
        """Abort the unprepared transaction. If that fails, its lease expires."""
        if self._transaction is not None:
            with contextlib.suppress(ConnectorError):
                self._transaction.abort(timeout=5.0)

    # ---------------------------------------------------------------- private

    def _settle(self) -> None:
        """Record the outcome of the last step, because the server forgets transactions after a day."""
        if self._decided:
            self._carry_out()
            self._decided = {}

    def _check(self) -> None:
        if self._broken:
            raise ConfigError(f"reader {self.id} has failed or is closed: create a new reader of its group")
        try:
            self._keeper.check()
        except ConnectorError:
            self._broken = True
            raise

    def _gone(self) -> tuple[str, ...]:
        """Return the segments that the group has finished, which the log can drop."""
        left = self._at.keys() - self._reader.position.positions.keys()
        known = self._member.state.positions
        return tuple(sorted(str(segment) for segment in left if segment not in known))

    def _claim(self, acquired: Positions) -> Mapping[Segment, int]:
        """Claim segments in the log, and return the offsets at which to begin."""
        self._life = self._life_of_group()
        self._broken = True
        self._carry_out(claim={str(segment): offset for segment, offset in acquired.items()}, known=False)
        self._broken = False
        found: dict[Segment, int] = {segment: self._steps.state.positions[str(segment)] for segment in acquired}
        for segment, offset in found.items():
            if offset != acquired[segment]:
                _log.info("%s: %s is at %d in the log, %d in the group", self._run, segment, offset, acquired[segment])
        self._at |= found
        return found

    def _life_of_group(self) -> Life:
        config = self._member.state.config
        return Life(str(config.id), config.generation)

    def _carry_out(self, *, known: bool = True, **changes: Any) -> None:
        """Write an update, and commit its step. Raises ReaderOfflineError, TransactionErrors, OutcomeUnknownError."""
        update = Update(run=self._run, life=self._life, decided=self._decided, **changes)
        turn = self._steps.carry_out(Turn(update, commit=update.step is not None), known=known)
        if turn.outcome is Outcome.LOST:
            raise ReaderOfflineError(
                f"run {self._run} has lost its segments: {turn.reason}. Uncommitted results are dropped, and their "
                "events are read again: create a new reader"
            )
        if turn.outcome in (Outcome.WRITTEN, Outcome.COMMITTED):
            return
        if turn.in_the_way:
            step = turn.in_the_way[0]
            raise TransactionUnknownError(
                f"stream {step.stream} no longer knows transaction {step.transaction}, so its outcome is unknown; it "
                f"contained the events of {', '.join(step.moves)}. Look for them in the stream"
            )
        assert self._transaction is not None
        self._transaction.commit()  # raises the error with the reason
        raise AssertionError(turn.outcome)
