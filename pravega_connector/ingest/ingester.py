"""Ingestion in steps: record a transaction, write it, commit it; and wait for another run that may be active.

The protocol is in :mod:`pravega_connector.exactly_once.steps`. A source is an item, and its position a
:class:`~.feed.Progress`. A run claims all sources with each step, so only one run at a time makes steps. It records a
transaction before it writes it. So a rejected run has written nothing, and the open transaction shows other runs that
this one is active.

A step is written while the step before becomes visible, and committed after it. The record names the step before, for
the run that has to redo the step.

docs/measurements/ingestion.md describes all cases.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from pravega_connector import metrics
from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import (
    ConnectorError,
    DeadlineExceededError,
    IngestError,
    IngestUndecidedError,
    NoSuchSegmentError,
    SegmentSealedError,
    SourceError,
    StreamNotFoundError,
    StreamSealedError,
    TransactionError,
)
from pravega_connector.exactly_once.steps import ALL, Named, Outcome, Step, StepLog, Turn, Update
from pravega_connector.ingest.content import ContentWriter, Counts, DeadLetters
from pravega_connector.ingest.encode import Columns, Encoding
from pravega_connector.ingest.feed import Draft, Feed, Progress
from pravega_connector.ingest.replayable import ReplayableSource
from pravega_connector.ingest.takeover import Owner, Resolution, Takeover
from pravega_connector.wire import StreamName
from pravega_connector.writer.transactions import LeaseKeeper, OpenTransaction, TransactionalWriter

_log: Final = logging.getLogger(__name__)

# Seconds between two polls of a state, or of the sources, while other runs are active.
_POLL: Final = 0.5
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of an ingester, for all kinds of sources."""

    lease: float = 30.0
    """Seconds that a transaction stays open after its ingester has ended."""
    follow: bool = False
    """If True, wait for new sources."""
    keep_going: bool = False
    """If True, leave out a source with errors; otherwise they end the run."""


class Ingester:
    """One run. Not thread safe."""

    def __init__(
        self,
        client: PravegaClient,
        target: StreamName,
        source: ReplayableSource,
        *,
        steps: StepLog,
        feed: Feed,
        encoding: Callable[[pa.Schema], Encoding],
        me: Owner,
        settings: Settings,
        dead_letters: DeadLetters | None = None,
        takeover_after: float | None = None,
        resolution: Resolution | None = None,
        tell: Callable[[str, Counts], None] = lambda _what, _counts: None,
    ) -> None:
        self.counts = Counts()
        self._client, self._target, self._label = client, target, str(target)
        self._steps, self._feed = steps, feed
        self._me, self._settings, self._tell = me, settings, tell
        self._takeover, self._resolution = Takeover(me, after=takeover_after), resolution
        self._trouble = _Trouble(target, client.health.failover_timeout)
        self._columns = Columns(source, encoding)
        self._transactions: TransactionalWriter[bytes] = client.transactions(target, lease=settings.lease)
        self._keeper = LeaseKeeper()
        self._content = ContentWriter(source, self._keeper, dead_letters)
        self._last: Step | None = None  # committed, but not yet recorded as committed
        self._unseen: Step | None = None  # committed, but not yet known to be visible

    def run(self) -> None:
        """Ingest until nothing is left (never, with ``follow``). Raises IngestErrors, ConnectorErrors.

        After an error or the end of the process, another run resumes at the position of this one. When the run is
        stopped, for example by KeyboardInterrupt, its last step is committed or aborted. The outcome is recorded if
        this is possible within 3 s.
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
                    self._await_lead()
                    done = self._lead()
                except IngestError:
                    self._await_visible()  # wait for the steps committed before the error
                    raise
                except ConnectorError as error:
                    if not self._may_pass(error) or not self._trouble.note(error.message):
                        raise
                    self._tell(f"trouble: {error.message}", self.counts)
                    time.sleep(_POLL)

    def _may_pass(self, error: ConnectorError) -> bool:
        """Return True if a failed step may succeed later. Raises StreamNotFoundError for a deleted stream."""
        if error.retriable or not isinstance(error, _ABOUT_EXISTENCE):
            return error.retriable
        try:
            for stream in (self._target, self._steps.name):
                self._client.require_stream(stream)
                if not self._client.controller.current_segments(stream):
                    return False
        except ConnectorError as refusal:
            if not refusal.retriable:
                raise
        return True

    def _leave(self) -> None:
        """Record the outcome of this run's last step, so that other runs do not have to wait for it."""
        # Use a separate log: the run may have been stopped in the middle of an update. The next run handles errors.
        with contextlib.suppress(Exception), StepLog(self._client.stores, self._steps.name, self._steps.life) as steps:
            if self._me.run in steps.state.steps:
                steps.carry_out(self._turn(Update(run=self._me.run, life=steps.life, settled=self._settled())))

    # ---------------------------------------------------------------- who leads

    def _await_lead(self) -> None:
        """Wait until no step is in the way: each is decided, and visible if it is committed."""
        pause, waited_for = _SHORT_POLL, ""
        while steps := self._steps.read().steps:
            run, step = next(iter(steps.items()))
            owner = Owner.from_json(run, step.note)
            status = self._steps.status(self._target, step.transaction)
            lease = float(step.note.get("lease", self._settings.lease))
            if self._takeover.may_take_over(owner, step.transaction, status, lease):
                self._take_over(owner, step, was_decided=status.is_aborted)
                continue
            if waited_for != run:
                _log.info("ingestion into %s waits: %s is active", self._target, owner)
                waited_for = run
            self._trouble.is_over()
            self._tell(f"waiting: {owner} is active", self.counts)
            time.sleep(pause)
            pause = min(2 * pause, _POLL)
        self._last = self._unseen = None

    def _take_over(self, owner: Owner, step: Step, *, was_decided: bool) -> None:
        """Decide a step of this run or of another one, and claim the sources."""
        mine = owner.run == self._me.run
        claim = Update(run=self._me.run, life=self._steps.life, claim={ALL: None})
        turn = self._carry_out(self._turn(claim, deciding=frozenset({step.transaction})))
        committed = turn.decided.get(step.transaction)
        if committed is None:
            return  # decided by another run
        if not mine:
            self.counts.recovered += 1
            metrics.INGEST_STEPS.add(1, "recovered", self._label)
            outcome = "committed" if committed else "aborted"
            _log.info("ingestion into %s taken over from %s: its last step is %s", self._target, owner, outcome)
            if not was_decided:
                self._takeover.note(owner, committed=committed)
        elif not committed:
            self.counts.redone += 1
            metrics.INGEST_STEPS.add(1, "redone", self._label)
            self._trouble.redo()

    def _lead(self) -> bool:
        """Execute step after step. Return True if all is done, False if another run is in the way."""
        self._begin_feed()
        while True:
            try:
                draft = self._feed.next()
            except SourceError as error:
                self._leave_out(error)
                continue
            if draft is not None:
                if not self._step(draft):
                    return False
                continue
            if not self._rest():
                return False
            if not self._settings.follow:
                return True
            if not self._await_sources():
                return False

    def _begin_feed(self) -> None:
        while True:
            try:
                self._feed.begin(self._steps.state.positions)
            except SourceError as error:
                self._leave_out(error)
            else:
                metrics.INGEST_PENDING.set(len(self._feed.pending), self._label)
                return

    def _leave_out(self, error: SourceError) -> None:
        if not self._settings.keep_going or error.source_id is None:
            raise error
        self._feed.fail(error.source_id, error)

    def _rest(self) -> bool:
        """Record that there is no open step. Return False if another run has taken over."""
        if self._last is None and not self._feed.ended:
            return True
        update = Update(
            run=self._me.run,
            life=self._steps.life,
            decided=self._decided(),
            claim={ALL: None},
            settled=self._settled(),
        )
        unseen = () if self._last is None else (Named(self._last.stream, self._last.transaction),)
        done = self._record(self._turn(update, deciding=frozenset(), unseen=unseen)).outcome is Outcome.WRITTEN
        if done:
            self._unseen = None
        return done

    def _await_visible(self) -> None:
        """Wait until committed events are visible to readers. Raises DeadlineExceededError."""
        if self._unseen is not None:
            self._carry_out(self._turn(Update(run=self._me.run, life=self._steps.life, step=self._unseen)).seeing())
            self._unseen = None
            self._trouble.is_over()

    def _await_sources(self) -> bool:
        """Wait for new sources. Return False if another run has changed the state."""
        while True:
            began = time.monotonic()
            revision = self._steps.revision
            self._steps.read()
            if self._steps.revision != revision:
                return False
            self._trouble.is_over()
            self._begin_feed()
            if self._feed.pending:
                return True
            self._tell("waiting for new sources", self.counts)
            # Listing many files takes time; spend at most a tenth of the time on it.
            time.sleep(max(2 * _POLL, 9 * (time.monotonic() - began)))

    # ---------------------------------------------------------------- one step

    def _step(self, draft: Draft) -> bool:
        """Execute a step. Return False if it failed, or if another run is in the way."""
        columns, encoding = self._columns.agree(self._steps.state.note.get("schema"))
        transaction = self._transactions.begin()
        update = self._update(draft, transaction, columns)
        turn = self._turn(update, deciding=frozenset(), see=False)
        try:
            turn = self._record(turn)
            if turn.outcome is not Outcome.WRITTEN:
                _drop(transaction)
                return False
            done = self._content.write(transaction, draft, encoding, self._tell_content)
            self._flush(transaction)
            self._trouble.moves()
            turn = self._await_before(turn, transaction)
            self._content.settle(draft)
        except TransactionError as error:  # its lease has expired, or another run has taken over
            self._trouble.note(error.message)
            _drop(transaction)
            return False
        except SourceError as error:
            self._trouble.note(error.message)
            _drop(transaction)
            self._leave_out(error)
            return False
        except BaseException:
            _drop(transaction)
            raise
        finally:
            self._keeper.discard(transaction)
            self._content.forget()
        # Wait only for the decision: the next step can be written before this one is visible.
        turn = self._carry_out(turn.committing())
        if turn.outcome is not Outcome.COMMITTED:
            self._trouble.note(f"transaction {transaction.id} was aborted")
            return False
        self._last = self._unseen = update.step
        self._trouble.is_over()
        self._count(draft, done)
        return True

    def _update(self, draft: Draft, transaction: OpenTransaction[bytes], columns: str | None) -> Update:
        """Return the record of a step, with the outcome of the step before."""
        settled = self._settled()
        moves = {}
        for piece in draft.pieces:
            before = settled[piece.source][1] if piece.source in settled else self._position(piece.source)
            moves[piece.source] = before, piece.after.to_json()
        step = Step(
            transaction.id,
            str(self._target),
            moves,
            () if self._last is None else (self._last.transaction,),
            self._me.to_json() | {"lease": self._settings.lease},
        )
        return Update(
            run=self._me.run,
            life=self._steps.life,
            decided=self._decided(),
            claim={ALL: None},
            settled=settled,
            step=step,
            note={} if columns is None else {"schema": columns},
        )

    def _decided(self) -> dict[uuid.UUID, bool]:
        return {} if self._last is None else {self._last.transaction: True}

    def _position(self, source: str) -> Any:
        """Return the position of a source after the last step."""
        if self._last is not None and source in self._last.moves:
            return self._last.moves[source][1]
        return self._steps.state.positions.get(source)

    def _settled(self) -> dict[str, tuple[Any, Any]]:
        """Return the sources that were read to their end: their positions, and the positions with all records."""
        return {
            source: (self._position(source), Progress(mark, records, finished=True).to_json())
            for source, (records, mark) in self._feed.ended.items()
        }

    def _turn(self, update: Update, **options: Any) -> Turn:
        turn = Turn(update, **options)
        if self._resolution is None:
            return turn
        forgotten = {step.transaction: self._resolution == "committed" for step in self._steps.state.steps.values()}
        return replace(turn, resolution=forgotten)

    def _record(self, turn: Turn) -> Turn:
        """Write an update of this run. Its outcome is WRITTEN unless another run was faster."""
        ended = len(self._feed.ended)
        turn = self._carry_out(turn, known=True)
        if turn.outcome is Outcome.WRITTEN:
            self.counts.sources += ended
            metrics.INGESTED_SOURCES.add(ended, self._label)
            self._feed.ended, self._last = {}, None
            self._steps.compact()
        return turn

    def _carry_out(self, turn: Turn, *, known: bool = False, waiting: Callable[[], None] | None = None) -> Turn:
        """Execute a turn; raise IngestUndecidedError for a transaction that the server has forgotten."""
        turn = self._steps.carry_out(turn, known=known, waiting=waiting or self._note_waiting)
        if turn.outcome is Outcome.UNDECIDED and turn.in_the_way:
            self._client.require_stream(self._target)
            raise _undecided(self._target, turn.in_the_way[0])
        return turn

    def _note_waiting(self) -> None:
        what = f"a committed transaction of stream {self._target} is not visible"
        if not self._trouble.note(f"{what} yet"):
            raise DeadlineExceededError(f"{what} within {self._trouble.limit:g} s")

    def _tell_content(self, id_: str, done: Counts) -> None:
        self._trouble.moves()
        self._tell(id_, self.counts.with_content(done))

    def _flush(self, transaction: OpenTransaction[bytes]) -> None:
        try:
            transaction.flush(self._settings.lease / 4)
        except DeadlineExceededError:
            self._keeper.add(transaction)
            transaction.flush()

    def _await_before(self, turn: Turn, transaction: OpenTransaction[bytes]) -> Turn:
        """Return the turn when the step before is visible; keep the transaction open until then."""
        began = time.monotonic()

        def keep_open() -> None:
            self._note_waiting()
            if time.monotonic() - began > self._settings.lease / 4:
                self._keeper.add(transaction)

        transaction.detach()
        turn = self._carry_out(turn.awaiting(), waiting=keep_open)
        self._unseen = None
        self._trouble.is_over()
        return turn

    def _count(self, draft: Draft, done: Counts) -> None:
        self.counts = self.counts.with_content(done)
        self.counts.transactions += 1
        metrics.INGEST_STEPS.add(1, "committed", self._label)
        metrics.INGESTED_EVENTS.add(done.events, self._label)
        metrics.INGESTED_BYTES.add(done.bytes, self._label)
        metrics.BAD_RECORDS.add(done.rejected, "ingest", self._label)
        metrics.INGEST_PENDING.set(len(self._feed.pending), self._label)
        self._feed.ended |= draft.ended


def _undecided(target: StreamName, step: Step) -> IngestUndecidedError:
    pieces = []
    for source, (before, after) in step.moves.items():
        first = 0 if before is None else Progress.from_json(before).offset
        end = Progress.from_json(after).offset
        pieces.append(f"{source} from record {first}{'' if end < 0 else f' to {end}'}")
    return IngestUndecidedError(
        f"stream {target} no longer knows transaction {step.transaction} (it forgets after 24 h), so its outcome is "
        f"unknown; it contained {', '.join(pieces)}. Look for these events in the stream, then restart once with "
        "resolve=committed if the stream has them, or resolve=aborted if not"
    )


def _drop(transaction: OpenTransaction[bytes]) -> None:
    """Abort a transaction that will not be committed; if this fails, it ends when its lease expires."""
    with contextlib.suppress(ConnectorError):
        transaction.abort(timeout=_DROP)


class _Trouble:
    """Duration of an outage without progress, and its log messages."""

    def __init__(self, target: StreamName, failover_timeout: float) -> None:
        self._what, self.limit = f"ingestion into {target}", failover_timeout
        self._moved = time.monotonic()  # time of the last success
        self._since: float | None = None  # time of the last success before the first error
        self._reason = ""
        self._warned = self._redone = -math.inf  # times of the last log messages
        self._told = False  # True if the current outage was logged

    def note(self, reason: str) -> bool:
        """Record that a call failed, or is not finished yet. Return True if there is time left for it."""
        now = time.monotonic()
        self._since = self._moved if self._since is None else self._since
        stands_still, self._reason = now - self._since, reason
        left = self.limit - stands_still
        if left > 0 and stands_still >= _WARN_AFTER and now - self._warned >= _WARN_EVERY:
            _log.warning(
                "%s: no progress for %.0f s, retrying for %.0f s more; last error: %s",
                self._what,
                stands_still,
                left,
                reason,
            )
            self._warned, self._told = now, True
        return left > 0

    def moves(self) -> None:
        """Record a success that may be followed by the same error. A step that always fails does not end the outage."""
        self._moved = time.monotonic()

    def is_over(self) -> None:
        """Record that an operation was completed."""
        self.moves()
        if self._told and self._since is not None:
            _log.warning("%s: recovered after %.0f s", self._what, self._moved - self._since)
        self._since, self._reason, self._told = None, "", False

    def redo(self) -> None:
        """Record that a step has failed, and is repeated."""
        now = time.monotonic()
        if now - self._redone >= _WARN_EVERY:
            _log.warning("%s: retrying a step: %s", self._what, self._reason or "its transaction was aborted")
            self._redone = now
