"""The protocol: record a transaction, then write it, then commit it; and who may.

Each step of an ingestion is one transaction. It is begun, recorded in the state by a conditional update together with
what became of the one before, and only then written and committed. So

- a run that loses the update has written nothing, and writes nothing: it aborts its own empty transaction;
- a step is followed by another one only when its transaction is decided; what may yet be committed is never redone;
- a transaction that is not recorded has no events and is never committed: it ends with its lease.

A commit is decided before it is visible, and commits that are not visible become so in any order. So a step is written
while the one before becomes visible, and committed when it is. The record says which one that is, for whoever does the
step again.

docs/ingest.md tells the rest, hole by hole.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from .. import metrics
from ..client import (
    LeaseKeeper,
    OpenTransaction,
    PravegaClient,
    StreamName,
    TransactionalWriter,
    TransactionStatus,
)
from ..errors import (
    ConnectorError,
    DeadlineExceededError,
    IngestError,
    NoSuchSegmentError,
    SegmentSealedError,
    SourceError,
    StreamNotFoundError,
    StreamSealedError,
    TransactionError,
)
from .content import ContentWriter, Counts, DeadLetters
from .encode import Columns, Encoding
from .feed import Draft, Feed
from .journal import Journal, Owner, Piece, Progress, Step, Update
from .referee import Fate, Referee
from .replayable import ReplayableSource

__all__ = ["Ingester", "Settings"]

_log: Final = logging.getLogger(__name__)

# Seconds between two looks at a state, or at the sources, while others are to move.
_POLL: Final = 0.5
_SHORT_POLL: Final = 0.05
# Seconds between the first two looks at a commit that is under way.
_FIRST_LOOK: Final = 0.005
# Seconds for an abort that nothing depends on: the next run aborts, too, and the lease ends.
_DROP: Final = 5.0
# Seconds to record how the last step of a run has ended that is stopped; without it the next run finds out.
_LEAVE: Final = 3.0
# Seconds without progress that are worth a line in the log, and between two such lines.
_WARN_AFTER: Final = 10.0
_WARN_EVERY: Final = 30.0
# What a segment store that lost its segments while it was frozen may answer, and the controller knows better.
_ABOUT_EXISTENCE: Final = (NoSuchSegmentError, SegmentSealedError, StreamNotFoundError, StreamSealedError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of an ingester, for all kinds of sources."""

    lease: float = 30.0
    """Seconds that a transaction stays open when its ingester is gone."""
    follow: bool = False
    """Whether to wait for new sources."""
    keep_going: bool = False
    """Whether a bad source is left out instead of ending everything."""


class Ingester:
    """One run. Not thread safe."""

    def __init__(
        self,
        client: PravegaClient,
        target: StreamName,
        source: ReplayableSource,
        *,
        journal: Journal,
        feed: Feed,
        encoding: Callable[[pa.Schema], Encoding],
        referee: Referee,
        me: Owner,
        settings: Settings,
        dead_letters: DeadLetters | None = None,
        tell: Callable[[str, Counts], None] = lambda _what, _counts: None,
    ) -> None:
        self.counts = Counts()
        self._client, self._target, self._label = client, target, str(target)
        self._journal, self._feed, self._referee = journal, feed, referee
        self._me, self._settings, self._tell = me, settings, tell
        self._trouble = _Trouble(target, client.health.failover_timeout)
        self._columns = Columns(source, encoding)
        self._transactions: TransactionalWriter[bytes] = client.transactions(target, lease=settings.lease)
        self._keeper = LeaseKeeper()
        self._content = ContentWriter(source, self._keeper, dead_letters)
        self._unseen: uuid.UUID | None = None  # committed, and not yet seen to be visible

    def run(self) -> None:
        """Ingest until nothing is left (never, with ``follow``). Raises IngestErrors, ConnectorErrors.

        After any error, and any end of the process, another run goes on where this one was. When it is stopped, as by
        KeyboardInterrupt, the last step is aborted or was committed, and recorded as such, if that can be done soon.
        """
        try:
            self._run()
        except ConnectorError:
            raise
        except BaseException:
            leaving = threading.Thread(target=self._leave, name="ingestion ends", daemon=True)
            leaving.start()
            leaving.join(_LEAVE)
            raise

    def _run(self) -> None:
        done = False
        with self._keeper:
            while not done:
                try:
                    done = self._lead(committed=self._await_lead())
                except IngestError:
                    self._await_visible()  # what was committed before it
                    raise
                except ConnectorError as error:
                    if not self._may_pass(error) or not self._trouble.note(error.message):
                        raise
                    self._tell(f"trouble: {error.message}", self.counts)
                    time.sleep(_POLL)

    def _may_pass(self, error: ConnectorError) -> bool:
        """Whether a failed step may succeed later. Raises StreamNotFoundError for a deleted stream."""
        if error.retriable or not isinstance(error, _ABOUT_EXISTENCE):
            return error.retriable
        try:
            for stream in (self._target, self._journal.name):
                self._client.require_stream(stream)
                if not self._client.controller.current_segments(stream):
                    return False
        except ConnectorError as refusal:
            if not refusal.retriable:
                raise
        return True

    def _leave(self) -> None:
        """Record the outcome of this run's last step, so that no other run has to wait for it."""
        # A journal of its own: what was stopped may have been in the middle of an update. Errors are the next run's.
        with contextlib.suppress(Exception), Journal(self._client, self._target, self._journal.name) as journal:
            state = journal.fetch()
            if state.step is None or state.step.owner.run != self._me.run:
                return
            committed = self._referee.decide(state.number, state.step) is Fate.COMMITTED
            unseen = state.step.transaction if committed else state.step.after
            # Once there is no step, nothing tells others to wait for what is not visible yet.
            while unseen is not None and self._referee.status(unseen) is TransactionStatus.COMMITTING:
                time.sleep(_SHORT_POLL)
            journal.record(Update(committed, self._feed.ended))

    # ---------------------------------------------------------------- who leads

    def _await_lead(self) -> bool:
        """Return when the last step is decided and its owner need not be waited for; whether it is committed."""
        pause, waited_for = _SHORT_POLL, ""
        while True:
            step = self._journal.fetch().step
            if step is None:
                self._unseen = None
                return False
            fate = self._referee.decide(self._journal.state.number, step)
            if fate is not Fate.AT_WORK:
                self._take_lead(step, fate)
                return fate is Fate.COMMITTED
            owner = f"{step.owner.host}, process {step.owner.pid}"
            if waited_for != step.owner.run:
                _log.info("ingestion into %s waits: %s is at work", self._target, owner)
                waited_for = step.owner.run
            self._trouble.is_over()
            self._tell(f"waiting: {owner} is at work", self.counts)
            time.sleep(pause)
            pause = min(2 * pause, _POLL)

    def _take_lead(self, step: Step, fate: Fate) -> None:
        """Note a step that is decided, to go on after it."""
        mine = step.owner.run == self._me.run
        if not mine:
            self.counts.recovered += 1
            metrics.INGEST_STEPS.add(1, "recovered", self._label)
        elif fate is Fate.ABORTED:
            self.counts.redone += 1
            metrics.INGEST_STEPS.add(1, "redone", self._label)
        self._unseen = step.transaction if fate is Fate.COMMITTED else step.after
        if not mine:
            where = f"{step.owner.host}, process {step.owner.pid}"
            _log.info("ingestion into %s taken over from %s: its last step is %s", self._target, where, fate.value)
        elif fate is Fate.ABORTED:
            self._trouble.redo()

    def _lead(self, *, committed: bool) -> bool:
        """Make step after step; True when all is done, False when the lead is lost. ``committed``: the last step is."""
        state = self._journal.state
        known = state.sources
        if committed and state.step is not None:
            known = {**known, **{piece.source: _after(piece) for piece in state.step.pieces}}
        self._begin_feed(known)
        while True:
            try:
                draft = self._feed.next()
            except SourceError as error:
                self._leave_out(error)
                continue
            if draft is None:
                if not self._rest(committed=committed):
                    return False
                committed = False
                if not self._settings.follow:
                    return True
                if not self._await_sources():
                    return False
            elif (ended := self._step(draft, committed=committed)) is None:
                return False
            else:
                committed = ended

    def _begin_feed(self, known: Mapping[str, Progress]) -> None:
        while True:
            try:
                self._feed.begin(known)
            except SourceError as error:
                self._leave_out(error)
            else:
                metrics.INGEST_PENDING.set(len(self._feed.pending), self._label)
                return

    def _leave_out(self, error: SourceError) -> None:
        if not self._settings.keep_going or error.source_id is None:
            raise error
        self._feed.fail(error.source_id, error)

    def _rest(self, *, committed: bool) -> bool:
        """Record that there is no open step. Returns False if another run has taken over."""
        self._await_visible()
        if self._journal.state.step is None and not self._feed.ended:
            return True
        if not self._record(Update(committed, self._feed.ended)):
            return False
        self._feed.ended = {}
        return True

    def _await_visible(self, next_: OpenTransaction[bytes] | None = None) -> None:
        """Return when readers see what is committed; ``next_`` is kept open meanwhile. Raises DeadlineExceededError."""
        if self._unseen is None:
            return
        began, pause = time.monotonic(), _FIRST_LOOK
        while self._referee.status(self._unseen) is TransactionStatus.COMMITTING:
            what = f"transaction {self._unseen} of stream {self._target} is committed, but not visible"
            if not self._trouble.note(f"{what} yet"):
                raise DeadlineExceededError(f"{what} within {self._trouble.limit:g} s")
            if next_ is not None and time.monotonic() - began > self._settings.lease / 4:
                self._keeper.add(next_)
                next_ = None
            time.sleep(pause)
            pause = min(1.25 * pause, _POLL)
        self._unseen = None
        self._trouble.is_over()

    def _await_sources(self) -> bool:
        """Wait for new sources. Returns False if another run has changed the state."""
        while True:
            began = time.monotonic()
            number = self._journal.state.number
            if self._journal.fetch().number != number:
                return False
            self._trouble.is_over()
            self._begin_feed(self._journal.state.sources)
            if self._feed.pending:
                return True
            self._tell("waiting for new sources", self.counts)
            # Looking through many files takes its time, and is not to be all that is done.
            time.sleep(max(2 * _POLL, 9 * (time.monotonic() - began)))

    # ---------------------------------------------------------------- one step

    def _step(self, draft: Draft, *, committed: bool) -> bool | None:
        """Make a step; True if it is committed, False if it came to nothing, None if the lead is lost."""
        columns, encoding = self._columns.agree(self._journal.state.schema)
        transaction = self._transactions.begin()
        step = Step(transaction.id, self._me, self._settings.lease, draft.pieces, self._unseen)
        ended = self._feed.ended
        try:
            if not self._record(Update(committed, ended, step, columns)):
                _drop(transaction)
                return None
            self._feed.ended = {}
            done = self._content.write(transaction, draft, encoding, self._tell_content)
            self._flush(transaction)
            self._trouble.moves()
            self._await_visible(transaction)
            self._content.settle(draft)
        except TransactionError as error:  # its lease has ended, or another run has taken over
            self._trouble.note(error.message)
            _drop(transaction)
            return None
        except SourceError as error:
            self._trouble.note(error.message)
            _drop(transaction)
            self._leave_out(error)
            return None
        except BaseException:
            _drop(transaction)
            raise
        finally:
            self._keeper.discard(transaction)
            self._content.forget()
        if not self._commit(transaction):
            return None
        self._unseen = transaction.id
        self._trouble.is_over()
        self._count(draft, done)
        return True

    def _record(self, update: Update) -> bool:
        """Make a conditional update. Returns False if another run was faster."""
        made = self._journal.record(update)
        if made:
            self.counts.sources += len(update.ended)
            metrics.INGESTED_SOURCES.add(len(update.ended), self._label)
            self._journal.compact()
        return made

    def _tell_content(self, id_: str, done: Counts) -> None:
        self._trouble.moves()
        self._tell(id_, self.counts.with_content(done))

    def _flush(self, transaction: OpenTransaction[bytes]) -> None:
        try:
            transaction.flush(self._settings.lease / 4)
        except DeadlineExceededError:
            self._keeper.add(transaction)
            transaction.flush()

    def _commit(self, transaction: OpenTransaction[bytes]) -> bool:
        """Commit a step. Returns False if it was aborted. Raises OutcomeUnknownError: its recovery asks again."""
        try:
            # That it is decided is enough for now: the next step can be written before this one is visible.
            transaction.commit(wait=False)
        except TransactionError as error:
            self._trouble.note(error.message)
            return False
        return True

    def _count(self, draft: Draft, done: Counts) -> None:
        self.counts = self.counts.with_content(done)
        self.counts.transactions += 1
        metrics.INGEST_STEPS.add(1, "committed", self._label)
        metrics.INGESTED_EVENTS.add(done.events, self._label)
        metrics.INGESTED_BYTES.add(done.bytes, self._label)
        metrics.BAD_RECORDS.add(done.rejected, "ingest", self._label)
        metrics.INGEST_PENDING.set(len(self._feed.pending), self._label)
        self._feed.ended |= draft.ended


def _after(piece: Piece) -> Progress:
    return Progress(piece.mark, -1 if piece.end is None else piece.end, piece.end is None)


def _drop(transaction: OpenTransaction[bytes]) -> None:
    """Abort a transaction that is not to be committed; if that cannot be done it ends with its lease."""
    with contextlib.suppress(ConnectorError):
        transaction.abort(timeout=_DROP)


class _Trouble:
    """Time for which errors have kept a run from making progress, and its log messages."""

    def __init__(self, target: StreamName, failover_timeout: float) -> None:
        self._what, self.limit = f"ingestion into {target}", failover_timeout
        self._moved = time.monotonic()  # when something went well last
        self._since: float | None = None  # what that was before the first error
        self._reason = ""
        self._warned = self._redone = -math.inf  # when the log was told last
        self._told = False  # of trouble that is not over

    def note(self, reason: str) -> bool:
        """Note that something has failed, or is not done yet. Returns whether there is time left for it."""
        now = time.monotonic()
        self._since = self._moved if self._since is None else self._since
        stands_still, self._reason = now - self._since, reason
        left = self.limit - stands_still
        if left > 0 and stands_still >= _WARN_AFTER and now - self._warned >= _WARN_EVERY:
            _log.warning("%s stands still for %.0f s, %.0f s are left: %s", self._what, stands_still, left, reason)
            self._warned, self._told = now, True
        return left > 0

    def moves(self) -> None:
        """Note a success after which the same may fail again: a step that always fails is trouble that stays."""
        self._moved = time.monotonic()

    def is_over(self) -> None:
        """Note that something was brought to an end."""
        self.moves()
        if self._told and self._since is not None:
            _log.warning("%s goes on after %.0f s", self._what, self._moved - self._since)
        self._since, self._reason, self._told = None, "", False

    def redo(self) -> None:
        """Note that a step has come to nothing, and is done again."""
        now = time.monotonic()
        if now - self._redone >= _WARN_EVERY:
            _log.warning("%s does a step again: %s", self._what, self._reason or "its transaction was aborted")
            self._redone = now
