"""One run of a program in steps: it takes over or waits, then leads, and continues after failures of servers.

Ingestion and mirrors are such programs. A run claims all items with each step, so only one run at a time makes steps.
It records a transaction before it writes it. So a rejected run has written nothing, and the open transaction shows
other runs that this one is active.

A step is written while the step before becomes visible, and committed after it. The record names the step before, for
the run that has to redo the step.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final
from uuid import UUID

from pravega_connector.errors import (
    ConnectorError,
    DeadlineExceededError,
    NoSuchSegmentError,
    SegmentSealedError,
    StepUndecidedError,
    StreamNotFoundError,
    StreamSealedError,
    TransactionError,
)
from pravega_connector.exactly_once.steps.log import StepLog
from pravega_connector.exactly_once.steps.machine import Outcome, Turn, transactions
from pravega_connector.exactly_once.steps.state import ALL, Named, Step, Update, owed_item
from pravega_connector.exactly_once.steps.takeover import Owner, Takeover
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import StreamName
from pravega_connector.writer.transactions import LeaseKeeper, OpenTransaction

#: Seconds between two polls of a log, or of the program's input, while there is nothing to do.
POLL: Final = 0.5
_SHORT_POLL: Final = 0.05
# Timeout of an abort, in seconds. It may fail: the next run also aborts, and the lease expires.
_DROP: Final = 5.0
# Timeout to record the outcome of the last step of a stopped run, in seconds. Otherwise the next run finds it.
_LEAVE: Final = 3.0
# Seconds without progress before the first warning in the log, and between two warnings.
_WARN_AFTER: Final = 10.0
_WARN_EVERY: Final = 30.0
# Possible errors of a segment store that lost its segments while it was frozen; the controller knows their state.
_ABOUT_EXISTENCE: Final = (NoSuchSegmentError, SegmentSealedError, StreamNotFoundError, StreamSealedError)


class Leader(ABC):
    """One run. Not thread safe."""

    final: ClassVar[tuple[type[ConnectorError], ...]] = ()
    """Errors of the program that end the run, after all committed steps are visible."""

    def __init__(
        self,
        stores: SegmentStores,
        target: StreamName,
        steps: StepLog,
        me: Owner,
        *,
        label: str,
        log: logging.Logger,
        lease: float,
        takeover_after: float | None = None,
        resolution: Mapping[UUID, bool] | None = None,
    ) -> None:
        """``label`` names the work in log lines, such as "ingestion into shop/orders"."""
        self._stores, self._target, self._steps, self._me = stores, target, steps, me
        self._label, self._log, self._lease = label, log, lease
        self._takeover, self._resolution = Takeover(me, after=takeover_after), resolution or {}
        self._trouble = Trouble(label, stores.health.failover_timeout, log)
        self._keeper = LeaseKeeper()
        self._others: set[StreamName] = set()  # streams of parts
        self._last: Step | None = None  # committed, but not yet recorded as committed
        self._unseen: Step | None = None  # committed, but not yet known to be visible

    def run(self) -> None:
        """Make steps until nothing is left. Raises ConnectorErrors.

        After an error or the end of the process, another run resumes at the position of this one. When the run is
        stopped, for example by KeyboardInterrupt, its last step is committed or aborted. The outcome is recorded if
        this is possible within 3 s.
        """
        try:
            self._run()
        except ConnectorError:
            raise
        except BaseException:
            leaving = threading.Thread(target=self._leave, name="steps end", daemon=True)
            leaving.start()
            leaving.join(_LEAVE)
            raise

    # ---------------------------------------------------------------- the program

    @abstractmethod
    def _lead(self) -> bool:
        """Make step after step. Return True if all is done, False if another run is in the way."""

    @abstractmethod
    def _report(self, what: str) -> None:
        """Show the current activity to the user."""

    @abstractmethod
    def _content_of(self, step: Step) -> str:
        """Describe the content of a step for an operator who looks for it in the stream."""

    @abstractmethod
    def _count_step(self, outcome: str) -> None:
        """Count a step: ``redone``, or ``recovered`` from another run."""

    def _settled(self) -> dict[str, tuple[Any, Any]]:
        """Return items that move without output, with the positions before and after."""
        return {}

    # ---------------------------------------------------------------- failures

    def _run(self) -> None:
        done = False
        with self._keeper:
            while not done:
                try:
                    self._await_lead()
                    done = self._lead()
                except self.final:
                    self._await_visible()
                    raise
                except ConnectorError as error:
                    if not self._may_pass(error) or not self._trouble.note(error.message):
                        raise
                    self._report(f"trouble: {error.message}")
                    time.sleep(POLL)

    def _may_pass(self, error: ConnectorError) -> bool:
        """Return True if a failed step may succeed later. Raises StreamNotFoundError for a deleted stream."""
        if error.retriable or not isinstance(error, _ABOUT_EXISTENCE):
            return error.retriable
        try:
            for stream in (self._target, self._steps.name, *self._others):
                self._require(stream)
                if not self._stores.controller.current_segments(stream):
                    return False
        except ConnectorError as refusal:
            if not refusal.retriable:
                raise
        return True

    def _require(self, stream: StreamName) -> None:
        if not self._stores.controller.stream_exists(stream):
            raise StreamNotFoundError.of(stream)

    def _leave(self) -> None:
        """Record the outcome of this run's last step, so that other runs do not have to wait for it."""
        # Use a separate log: the run may have been stopped in the middle of an update. The next run handles errors.
        with contextlib.suppress(Exception), StepLog(self._stores, self._steps.name, self._steps.life) as steps:
            if self._me.run in steps.state.steps:
                steps.carry_out(self._turn(Update(run=self._me.run, life=steps.life, settled=self._settled())))

    # ---------------------------------------------------------------- who leads

    def _await_lead(self) -> None:
        """Wait until no step is in the way: each is decided, and visible if it is committed."""
        pause, waited_for, completed = _SHORT_POLL, "", None
        while steps := self._steps.read().steps:
            run, step = next(iter(steps.items()))
            owner = Owner.from_json(run, step.note)
            self._others |= {StreamName.parse(named.stream) for named in transactions(step)}
            status = self._steps.status(StreamName.parse(step.stream), step.transaction)
            if status.is_committed and step.parts and completed != step.transaction:
                self._steps.complete(step)  # before the leases of its parts end
                completed = step.transaction
            lease = float(step.note.get("lease", self._lease))
            if self._takeover.may_take_over(owner, step.transaction, status, lease):
                self._take_over(owner, step, was_decided=status.is_aborted)
                continue
            if waited_for != run:
                self._log.info("%s waits: %s is active", self._label, owner)
                waited_for = run
            self._trouble.is_over()
            self._report(f"waiting: {owner} is active")
            time.sleep(pause)
            pause = min(2 * pause, POLL)
        self._last = self._unseen = None

    def _take_over(self, owner: Owner, step: Step, *, was_decided: bool) -> bool:
        """Decide a step of this run or of another one, and claim the items.

        Return False if another run has decided it. That run may have made more steps, which only the log shows.
        """
        mine = owner.run == self._me.run
        claim = Update(run=self._me.run, life=self._steps.life, claim={ALL: None})
        turn = self._carry_out(self._turn(claim, deciding=frozenset({step.transaction})))
        committed = turn.recorded(step.transaction)
        if committed is None:
            return False
        if not mine:
            self._count_step("recovered")
            outcome = "committed" if committed else "aborted"
            self._log.info("%s taken over from %s: its last step is %s", self._label, owner, outcome)
            if not was_decided:
                self._takeover.note(owner, committed=committed)
        elif not committed:
            self._count_step("redone")
            self._trouble.redo()
        return True

    # ---------------------------------------------------------------- one step

    def _update(self, **changes: Any) -> Update:
        """Return an update of this run with the outcome of its last step."""
        decided = {} if self._last is None else {self._last.transaction: True}
        return Update(run=self._me.run, life=self._steps.life, decided=decided, claim={ALL: None}, **changes)

    def _new_step(
        self, transaction: OpenTransaction[bytes], moves: dict[str, tuple[Any, Any]], content: Any = None
    ) -> Step:
        """Return the step of a transaction. It follows the last step. ``content`` is required for parts."""
        after = () if self._last is None else transactions(self._last)
        note = self._me.to_json() | {"lease": self._lease}
        return Step(transaction.id, str(transaction.stream), moves, after, content=content, note=note)

    def _owed(self) -> dict[str, Any]:
        """Return the streams to which a part of a step must be written again, each with the content of the step."""
        paid = () if self._last is None else self._last.moves
        return {stream: content for stream, content in self._steps.state.owed.items() if owed_item(stream) not in paid}

    def _make(
        self,
        transaction: OpenTransaction[bytes],
        update: Update,
        write: Callable[[], object],
        settle: Callable[[], object] = lambda: None,
        parts: Callable[[], Sequence[OpenTransaction[bytes]]] = tuple,
    ) -> bool:
        """Record a step, ``write`` it, and commit it. Return False if it failed, or if another run is in the way.

        ``parts`` are the transactions of other streams that ``write`` has begun. ``settle`` is called before the
        commit. An error aborts the transactions.
        """
        turn = self._turn(update, deciding=frozenset(), see=False)
        try:
            turn = self._record(turn)
            if turn.outcome is not Outcome.WRITTEN:
                self._drop(transaction)
                return False
            write()
            for each in (transaction, *parts()):
                self._flush(each)
            self._trouble.moves()
            if parts():
                turn = self._record(self._turn(self._with_parts(update, parts()), deciding=frozenset(), see=False))
                if turn.outcome is not Outcome.WRITTEN:
                    self._drop(transaction, *parts())
                    return False
            turn = self._await_before(turn, transaction, *parts())
            settle()
        except TransactionError as error:  # its lease has expired, or another run has taken over
            self._trouble.note(error.message)
            self._drop(transaction, *parts())
            return False
        except BaseException:
            self._drop(transaction, *parts())
            raise
        finally:
            self._keeper.discard(transaction)
        # Wait only for the decision: the next step can be written before this one is visible.
        try:
            turn = self._carry_out(turn.committing())
        finally:
            for part in parts():
                self._keeper.discard(part)
        return self._conclude(turn, parts())

    def _conclude(self, turn: Turn, parts: Sequence[OpenTransaction[bytes]]) -> bool:
        """Return whether this run continues after a step: it is committed, and no other run has decided it.

        If a part of it is not committed, the log then has what is owed.
        """
        step = turn.update.step
        assert step is not None
        if turn.outcome is Outcome.OWED:
            self._unseen = None
            if not self._take_over(self._me, step, was_decided=False):
                return False
        elif turn.outcome is Outcome.COMMITTED:
            self._last = self._unseen = step
        else:
            if turn.outcome is Outcome.ABORTED:
                self._drop(*parts)
            self._trouble.note(f"transaction {step.transaction} was aborted")
            return False
        self._trouble.is_over()
        return True

    def _drop(self, *open_ones: OpenTransaction[bytes]) -> None:
        """Abort transactions that will not be committed; if this fails, they end when their leases expire."""
        for each in open_ones:
            self._keeper.discard(each)
            with contextlib.suppress(ConnectorError):
                each.abort(timeout=_DROP)

    @staticmethod
    def _with_parts(update: Update, parts: Sequence[OpenTransaction[bytes]]) -> Update:
        """Return the update that adds parts to the recorded step of another one."""
        assert update.step is not None
        named = tuple(Named(str(part.stream), part.id) for part in parts)
        return Update(run=update.run, life=update.life, claim=update.claim, step=replace(update.step, parts=named))

    def _settle(self, **changes: Any) -> bool:
        """Record changes without a transaction, when all committed steps are visible.

        Return False if another run has taken over.
        """
        unseen = () if self._last is None else transactions(self._last)
        turn = self._record(self._turn(self._update(**changes), deciding=frozenset(), unseen=unseen))
        if turn.outcome is not Outcome.WRITTEN:
            return False
        self._unseen = None
        return True

    def _await_visible(self) -> None:
        """Wait until committed events are visible to readers. Raises DeadlineExceededError."""
        if self._unseen is not None:
            self._carry_out(self._turn(Update(run=self._me.run, life=self._steps.life, step=self._unseen)).seeing())
            self._unseen = None
            self._trouble.is_over()

    # ---------------------------------------------------------------- turns

    def _turn(self, update: Update, **options: Any) -> Turn:
        return Turn(update, resolution=self._resolution, **options)

    def _record(self, turn: Turn) -> Turn:
        """Write an update of this run. Its outcome is WRITTEN unless another run was faster."""
        turn = self._carry_out(turn, known=True)
        if turn.outcome is Outcome.WRITTEN:
            self._last = None
            self._steps.compact()
        return turn

    def _carry_out(self, turn: Turn, *, known: bool = False, waiting: Callable[[], None] | None = None) -> Turn:
        """Execute a turn. Raises StepUndecidedError for a transaction that the server has forgotten."""
        turn = self._steps.carry_out(turn, known=known, waiting=waiting or self._note_waiting)
        if turn.forgotten is not None:
            self._require(StreamName.parse(turn.forgotten.stream))
            step = next(step for step in turn.in_the_way if turn.forgotten in transactions(step))
            raise self._undecided(self._forgotten(step) or [turn.forgotten], step)
        return turn

    def _forgotten(self, step: Step) -> list[Named]:
        """Return the transactions of a step whose outcome neither the servers nor the operator know."""
        open_ones = [named for named in transactions(step) if named.id not in self._resolution]
        return [named for named in open_ones if self._steps.is_forgotten(named)]

    def _undecided(self, forgotten: Sequence[Named], step: Step) -> StepUndecidedError:
        names = ", ".join(f"transaction {named.id} of stream {named.stream}" for named in forgotten)
        return StepUndecidedError(
            f"the servers have forgotten {names} (they do so after 24 h), so it is unknown whether each stream has its "
            f"events of {self._content_of(step)}. Look for these events in each stream, then restart once with "
            "resolve={ID: OUTCOME} (--resolve ID=OUTCOME) for each of these transactions: committed if its stream has "
            "them, aborted if not"
        )

    def _note_waiting(self) -> None:
        what = f"a committed transaction of stream {self._target} is not visible"
        if not self._trouble.note(f"{what} yet"):
            raise DeadlineExceededError(f"{what} within {self._trouble.limit:g} s")

    def _flush(self, transaction: OpenTransaction[bytes]) -> None:
        try:
            transaction.flush(self._lease / 4)
        except DeadlineExceededError:
            self._keeper.add(transaction)
            transaction.flush()

    def _await_before(self, turn: Turn, *open_ones: OpenTransaction[bytes]) -> Turn:
        """Return the turn when the step before is visible; keep the transactions open until then."""
        began = time.monotonic()

        def keep_open() -> None:
            self._note_waiting()
            if time.monotonic() - began > self._lease / 4:
                for each in open_ones:
                    self._keeper.add(each)

        for each in open_ones:
            each.detach()
        turn = self._carry_out(turn.awaiting(), waiting=keep_open)
        self._unseen = None
        self._trouble.is_over()
        return turn


class Trouble:
    """Duration of an outage without progress, and its log messages."""

    def __init__(self, what: str, limit: float, log: logging.Logger) -> None:
        """``what`` names the work, and ``limit`` is the timeout without progress in seconds."""
        self._label, self.limit, self._log = what, limit, log
        self._moved = time.monotonic()  # time of the last success
        self._since: float | None = None  # time of the last success before the first error
        self._reason = ""
        self._warned = self._redone = -math.inf  # times of the last log messages
        self._reported = False  # True if the current outage was logged

    def note(self, reason: str) -> bool:
        """Record that a call failed, or is not finished yet. Return True if there is time left for it."""
        now = time.monotonic()
        self._since = self._moved if self._since is None else self._since
        stands_still, self._reason = now - self._since, reason
        left = self.limit - stands_still
        if left > 0 and stands_still >= _WARN_AFTER and now - self._warned >= _WARN_EVERY:
            self._log.warning(
                "%s: no progress for %.0f s, retrying for %.0f s more; last error: %s",
                self._label,
                stands_still,
                left,
                reason,
            )
            self._warned, self._reported = now, True
        return left > 0

    def moves(self) -> None:
        """Record a success that may be followed by the same error. A step that always fails does not end the outage."""
        self._moved = time.monotonic()

    def is_over(self) -> None:
        """Record that an operation was completed."""
        self.moves()
        if self._reported and self._since is not None:
            self._log.warning("%s: recovered after %.0f s", self._label, self._moved - self._since)
        self._since, self._reason, self._reported = None, "", False

    def redo(self) -> None:
        """Record that a step has failed, and is repeated."""
        now = time.monotonic()
        if now - self._redone >= _WARN_EVERY:
            self._log.warning("%s: retrying a step: %s", self._label, self._reason or "its transaction was aborted")
            self._redone = now
