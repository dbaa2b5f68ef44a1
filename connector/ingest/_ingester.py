"""The protocol: record a transaction, then write it, then commit it; and who may.

Each step of an ingestion is one transaction. It is begun, recorded in the state by a conditional update together with
what became of the one before, and only then written and committed. So

- whoever loses the update has written nothing, and writes nothing: it aborts its own empty transaction;
- a step is followed by another one only when its transaction is decided; nobody redoes what may yet be committed;
- a transaction that is not recorded has no events and is never committed: it ends with its lease.

docs/ingest.md tells the rest, hole by hole.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from connector.client import LeaseKeeper, OpenTransaction, PravegaClient, StreamName, TransactionalWriter
from connector.errors import (
    ConnectorError,
    DeadlineExceededError,
    OutcomeUnknownError,
    SourceError,
    TransactionError,
)
from connector.ingest._columns import Columns
from connector.ingest._content import ContentWriter, Counts
from connector.ingest._dead_letters import DeadLetters
from connector.ingest._encode import Encoding
from connector.ingest._feed import Draft, Feed
from connector.ingest._journal import Journal
from connector.ingest._referee import Fate, Referee
from connector.ingest._source import ReplayableSource
from connector.ingest._state import Owner, Piece, Progress, Step, Update

__all__ = ["Ingester", "Settings"]

# Between two looks at a state, or at the sources, while others are to move.
_POLL: Final = 0.5
_SHORT_POLL: Final = 0.05
# How long the server is asked for what became of a commit.
_COMMIT: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How an ingester behaves, whatever it ingests."""

    lease: float = 30.0
    """Seconds that a transaction stays open when its ingester is gone."""
    follow: bool = False
    """Whether to wait for new sources."""
    keep_going: bool = False
    """Whether a bad source is left out instead of ending everything."""
    patience: float = 60.0
    """Seconds in which trouble with the servers may pass."""


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
        self._journal, self._feed, self._referee = journal, feed, referee
        self._me, self._settings, self._tell = me, settings, tell
        self._columns = Columns(source, encoding)
        self._transactions: TransactionalWriter[bytes] = client.transactions(target, lease=settings.lease)
        self._keeper = LeaseKeeper()
        self._content = ContentWriter(source, self._keeper, dead_letters)
        self._last: OpenTransaction[bytes] | None = None  # committed, and perhaps not visible yet

    def run(self) -> None:
        """Ingest until nothing is left (never, with ``follow``). Raises IngestErrors, ConnectorErrors.

        After any error, and any end of the process, another run goes on where this one was.
        """
        trouble_since: float | None = None
        done = False
        with self._keeper:
            while not done:
                before = self.counts.transactions
                try:
                    done = self._lead(committed=self._await_lead())
                    trouble_since = None
                except ConnectorError as error:
                    if not (error.retriable or isinstance(error, OutcomeUnknownError)):
                        raise
                    now = time.monotonic()
                    if trouble_since is None or self.counts.transactions > before:
                        trouble_since = now
                    if now - trouble_since > self._settings.patience:
                        raise
                    self._tell(f"trouble: {error.message}", self.counts)
                    time.sleep(_POLL)

    # ---------------------------------------------------------------- who leads

    def _await_lead(self) -> bool:
        """Return when the last step is decided and its owner need not be waited for; whether it is committed."""
        pause = _SHORT_POLL
        while True:
            state = self._journal.fetch()
            if state.step is None:
                return False
            fate = self._referee.decide(state.number, state.step)
            if fate is not Fate.AT_WORK:
                mine = state.step.owner.run == self._me.run
                self.counts.recovered += not mine
                self.counts.redone += mine and fate is Fate.ABORTED
                return fate is Fate.COMMITTED
            self._tell(f"waiting: {state.step.owner.host}, process {state.step.owner.pid} is at work", self.counts)
            time.sleep(pause)
            pause = min(2 * pause, _POLL)

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
                return self._feed.begin(known)
            except SourceError as error:
                self._leave_out(error)

    def _leave_out(self, error: SourceError) -> None:
        if not self._settings.keep_going or error.source_id is None:
            self._await_visible()
            raise error
        self._feed.fail(error.source_id, error)

    def _rest(self, *, committed: bool) -> bool:
        """Record that there is no open step, so that nobody need wait for this run; whether that was recorded."""
        self._await_visible()
        if self._journal.state.step is None and not self._feed.ended:
            return True
        if not self._record(Update(committed, self._feed.ended)):
            return False
        self._feed.ended = {}
        return True

    def _await_visible(self) -> None:
        """Return when readers see what is committed."""
        if self._last is not None:
            self._last.commit()  # once more, which changes nothing
            self._last = None

    def _await_sources(self) -> bool:
        """Return when there is something new to ingest; False when somebody else was faster."""
        while True:
            began = time.monotonic()
            number = self._journal.state.number
            if self._journal.fetch().number != number:
                return False
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
        step = Step(transaction.id, self._me, self._settings.lease, draft.pieces)
        ended = self._feed.ended
        try:
            if not self._record(Update(committed, ended, step, columns)):
                _drop(transaction)
                return None
            self._feed.ended = {}
            done = self._content.write(transaction, draft, encoding, self._tell_content)
            self._flush(transaction)
            self._content.settle(draft)
        except TransactionError:
            _drop(transaction)  # its lease has ended, or somebody has taken over
            return None
        except SourceError as error:
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
        self._last = transaction
        self._count(draft, done)
        return True

    def _record(self, update: Update) -> bool:
        """Make a conditional update; whether this run was the one that made it."""
        made = self._journal.record(update)
        if made:
            self.counts.sources += len(update.ended)
            self._journal.compact()
        return made

    def _tell_content(self, id_: str, done: Counts) -> None:
        self._tell(id_, self.counts.with_content(done))

    def _flush(self, transaction: OpenTransaction[bytes]) -> None:
        try:
            transaction.flush(self._settings.lease / 4)
        except DeadlineExceededError:
            self._keeper.add(transaction)
            transaction.flush()

    def _commit(self, transaction: OpenTransaction[bytes]) -> bool:
        """Commit a step; whether it is committed. Raises OutcomeUnknownError: its recovery asks again."""
        try:
            # That it is decided is enough: the server makes transactions visible in the order of their commits.
            transaction.commit(wait=False, timeout=_COMMIT)
        except TransactionError:
            return False
        return True

    def _count(self, draft: Draft, done: Counts) -> None:
        self.counts = self.counts.with_content(done)
        self.counts.transactions += 1
        self._feed.ended |= draft.ended


def _after(piece: Piece) -> Progress:
    return Progress(piece.mark, -1 if piece.end is None else piece.end, piece.end is None)


def _drop(transaction: OpenTransaction[bytes]) -> None:
    """Abort a transaction that is not to be committed; if that cannot be done it ends with its lease."""
    with contextlib.suppress(ConnectorError):
        transaction.abort()
