"""Recovery without Spark: inspect a ledger, finish batches, and resolve batches that no rule can finish."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pravega_connector.controller.targets import is_deleted, name_of, target_of
from pravega_connector.core.deadline import Deadline
from pravega_connector.core.values import TransactionStatus
from pravega_connector.errors import ConfigError, OutcomeUnknownError
from pravega_connector.exactly_once.batch_commit.entries import (
    SEVERAL_STREAMS,
    AppState,
    Entry,
    Forgotten,
    Key,
    Prepared,
    Resolved,
    TransactionId,
)
from pravega_connector.exactly_once.batch_commit.machine import Commit, Job, Role
from pravega_connector.exactly_once.batch_commit.servers import (
    Servers,
    await_visible,
    carry_out,
    note_parts,
    stream_of,
    writer_of,
)
from pravega_connector.exactly_once.batch_commit.state import Ledger, LedgerState
from pravega_connector.exactly_once.batch_commit.statuses import inferred, is_live, weigh
from pravega_connector.exactly_once.batch_commit.table import Event, Outcome
from pravega_connector.single_segment.revisioned import Revision
from pravega_connector.wire import StreamName

if TYPE_CHECKING:
    from pravega_connector.stores.segment_stores import SegmentStores

_FORGOTTEN = 10_000  # maximum applications of one entry, about 100 bytes each
_LEASE = 60.0  # seconds of a ping's lease: enough to commit the open transactions


@dataclass(frozen=True, slots=True)
class Finding:
    """State of one application in the ledger, and of its open batch on the servers."""

    app: AppState
    statuses: tuple[TransactionStatus, ...] = ()
    """Statuses of the open batch's transactions, in order; empty without an open batch."""
    deleted: frozenset[str] = frozenset()
    """Streams of the open batch that are deleted, with all their rows."""

    @property
    def verdict(self) -> str:
        """State of the open batch, in a sentence."""
        return "nothing to do" if self.app.open is None else weigh(self.decided).value

    @property
    def decided(self) -> tuple[TransactionStatus, ...]:
        """Statuses of the open batch's transactions, with the conclusions from the other ones."""
        assert self.app.open is not None
        return inferred(self.statuses, [part.transaction.stream in self.deleted for part in self.app.open.parts])


class Recovery:
    """Operations of an operator on the ledger of one target stream, and of batches over several streams."""

    def __init__(self, stores: SegmentStores, target: StreamName, ledger: Ledger, *, timeout: float = 60.0) -> None:
        """Recover ``target``. ``timeout`` is in seconds, for finishing one batch."""
        self._stores, self._target, self._ledger, self._timeout = stores, target, ledger, timeout
        self._targets = target_of(stores.controller, target), SEVERAL_STREAMS

    def survey(self) -> list[Finding]:
        """List every application that writes to the stream, or to several streams, exactly once. Changes nothing."""
        _, state = self._ledger.read()
        return [self._finding(state[key]) for key in sorted(state) if key.target in self._targets]

    def left_open(self) -> list[TransactionId]:
        """Return transactions of finished batches that the ledger names and that are still OPEN.

        Transactions of failed tasks are missing: neither the ledger nor the servers list them. Their lease expires.
        """
        named = {
            part.transaction: entry.batch
            for _, entry in self._ledger.history()
            if isinstance(entry, Prepared) and entry.target in self._targets
            for part in entry.parts
        }
        wanted = {part.transaction for f in self.survey() if f.app.open for part in f.app.open.parts}
        return [id_ for id_ in named if id_ not in wanted and self._status(id_) is TransactionStatus.OPEN]

    def finish(self, app: str) -> Outcome:
        """Commit the open batch of an application if it is complete. Abort it if no part of it is visible.

        - COMMITTED: readers see the batch, and its event time is noted if it has one.
        - UNFINISHED: the batch was aborted and discarded. The query writes it again when it restarts.
        - TORN, UNDECIDABLE: see :meth:`resolve`.

        Raises ConfigError if no batch is open, OutcomeUnknownError, and DeadlineExceededError if the batch is committed
        but was not visible in time.
        """
        prepared = self._open(app)
        nonce = str(uuid.uuid4())
        job = Job(app, "", "", nonce, prepared.batch, role=Role.OPERATOR, target=prepared.target, time=prepared.time)
        servers = Servers(self._stores.controller, self._ledger, lease=_LEASE, timeout=self._timeout)
        outcome = carry_out(Commit(job), servers).outcome
        assert outcome is not None
        if outcome is Outcome.COMMITTED:
            await_visible(self._stores.controller, [part.transaction for part in prepared.parts], self._timeout)
            note_parts(self._stores, writer_of(app), prepared.parts, wait=False)
        if outcome is Outcome.UNFINISHED:
            self.resolve(app, "discard")
        return outcome

    def resolve(self, app: str, choice: str) -> None:
        """Close the open batch by decision: ``accept`` its visible part, or ``discard`` it to be written again.

        Accepting loses the rows of the lost transactions. Discarding repeats the rows of the committed transactions.
        Call :meth:`finish` first: it saves all rows that can be saved. Raises OutcomeUnknownError, and ConfigError for
        a batch that :meth:`finish` can close: it is open, completely visible, or, to accept it, not visible at all.
        """
        if choice not in ("accept", "discard"):
            raise ConfigError(f"choose accept or discard, not {choice!r}")
        revision, _ = self._ledger.read()
        prepared = self._open(app)
        statuses = self._finding(self._known(self._ledger.read()[1], app)).decided
        if TransactionStatus.OPEN in statuses:
            raise ConfigError(f"batch {prepared.batch} of {app} still has open transactions: finish it first")
        if all(status.is_committed for status in statuses):
            raise ConfigError(
                f"batch {prepared.batch} of {app} is completely visible: finish it instead. Discarding it would write "
                "it twice"
            )
        if choice == "accept" and weigh(statuses) is Event.PILOT_LOST:
            raise ConfigError(
                f"no row of batch {prepared.batch} of {app} is visible, so accepting it would lose all rows: finish it "
                "instead. The query writes the batch again when it restarts"
            )
        entry = Resolved(app, str(uuid.uuid4()), prepared.batch, choice, prepared.target)
        self._append(entry, revision)

    def forget(self, *apps: str) -> None:
        """Drop the state of applications that never write to the stream again.

        If such an application does write again, it is new: no version of it counts as committed. Raises ConfigError for
        an application with an open batch, and OutcomeUnknownError.
        """
        revision, state = self._ledger.read()
        known = [self._known(state, app) for app in apps]
        for app in known:
            if app.open is not None:
                raise ConfigError(f"batch {app.open.batch} of {app.app} is open: finish it before you forget {app.app}")
        self._forget(revision, known)

    def forget_older(self, seconds: float) -> list[str]:
        """Drop the state of applications without an entry in the last ``seconds`` seconds, and return their names.

        Applications with an open batch stay. Applications that wrote to a deleted stream of this name are dropped as
        well. See :meth:`forget`.
        """
        revision, state = self._ledger.read()
        before = (time.time() - seconds) * 1000
        old = [app for _, app in sorted(state.items()) if app.time < before and self._is_idle(app)]
        self._forget(revision, old)
        return [app.app for app in old]

    def _is_idle(self, app: AppState) -> bool:
        if app.target in self._targets:
            return app.open is None
        return name_of(app.target) == str(self._target)

    def _forget(self, revision: Revision, apps: list[AppState]) -> None:
        for at in range(0, len(apps), _FORGOTTEN):
            keys = tuple(app.key for app in apps[at : at + _FORGOTTEN])
            revision = self._append(Forgotten(keys, str(uuid.uuid4())), revision)

    def _append(self, entry: Entry, revision: Revision) -> Revision:
        end = self._ledger.append(entry, revision, deadline=Deadline(self._timeout))
        if end is None:
            raise OutcomeUnknownError(
                f"another process changed ledger {self._ledger.name} at the same time: repeat the command"
            )
        return end

    def _known(self, state: LedgerState, app: str) -> AppState:
        known = [state[key] for target in self._targets if (key := Key(app, target)) in state]
        if not known:
            apps = ", ".join(sorted(key.app for key in state if key.target in self._targets))
            raise ConfigError(f"ledger {self._ledger.name} knows no {app!r} of {self._target}; it knows: {apps}")
        return next((each for each in known if each.open is not None), known[0])

    def _open(self, app: str) -> Prepared:
        _, state = self._ledger.read()
        known = self._known(state, app)
        if known.open is None:
            raise ConfigError(f"{app} has no open batch; its last, {known.last}, is committed")
        return known.open

    def _finding(self, app: AppState) -> Finding:
        parts = () if app.open is None else app.open.parts
        statuses = tuple(self._status(part.transaction) for part in parts)
        doubtful = {p.transaction.stream for p, status in zip(parts, statuses, strict=True) if not is_live(status)}
        deleted = frozenset(stream for stream in doubtful if is_deleted(self._stores.controller, stream))
        return Finding(app, statuses, deleted)

    def _status(self, id_: TransactionId) -> TransactionStatus:
        return self._stores.controller.transaction_status(stream_of(id_), id_.id)
