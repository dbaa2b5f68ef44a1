"""Recovery without Spark: look at a ledger, finish what can be finished, decide what no rule can."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from ..client import PravegaClient, StreamName, TransactionStatus
from ..client.deadline import Deadline
from ..errors import ConfigError, OutcomeUnknownError
from .entries import AppState, Prepared, Resolved
from .machine import Commit, Job, Role, inferred, weigh
from .servers import Servers, carry_out, latest_of, note_batch, writer_of
from .state import Ledger
from .table import Outcome

__all__ = ["Finding", "Recovery"]

_LEASE = 60.0  # seconds that a ping of ours asks for: enough to commit what is open


@dataclass(frozen=True, slots=True)
class Finding:
    """State of one application in the ledger, and of its open batch on the servers."""

    app: AppState
    statuses: tuple[TransactionStatus, ...] = ()
    """Statuses of the open batch's transactions, in their order; empty without an open batch."""

    @property
    def verdict(self) -> str:
        """State of the open batch, in a sentence."""
        if self.app.open is None:
            return "nothing to do"
        return weigh(inferred(self.statuses)).value


class Recovery:
    """The ledger of one target stream in an operator's hands."""

    def __init__(self, client: PravegaClient, target: StreamName, ledger: Ledger, *, timeout: float = 60.0) -> None:
        """``timeout``: seconds for finishing one batch."""
        self._client, self._target, self._ledger, self._timeout = client, target, ledger, timeout

    def survey(self) -> list[Finding]:
        """List every application that writes to the stream exactly once. Changes nothing."""
        _, state = self._ledger.read()
        return [Finding(app, self._statuses(app.open)) for _, app in sorted(state.items())]

    def left_open(self) -> list[uuid.UUID]:
        """Transactions that the ledger names, of finished batches, and that are OPEN all the same.

        Those of tasks that failed stand nowhere: neither the ledger nor the servers list them. They end by lease.
        """
        named = {
            part.transaction: entry.batch
            for _, entry in self._ledger.history()
            if isinstance(entry, Prepared)
            for part in entry.parts
        }
        wanted = {part.transaction for f in self.survey() if f.app.open for part in f.app.open.parts}
        controller = self._client.controller
        return [
            id_
            for id_ in named
            if id_ not in wanted and controller.transaction_status(self._target, id_) is TransactionStatus.OPEN
        ]

    def finish(self, app: str) -> Outcome:
        """Commit the open batch of an application if it is whole; abort it if nothing of it is visible.

        COMMITTED: done, and its event time noted if it has one. UNFINISHED: aborted as a whole; the query writes it
        again when it restarts. TORN, UNDECIDABLE: see :meth:`resolve`. Raises ConfigError if nothing is open,
        OutcomeUnknownError.
        """
        prepared = self._open(app)
        job = Job(app, "", "", str(uuid.uuid4()), prepared.batch, role=Role.OPERATOR)
        servers = Servers(self._client.controller, self._target, self._ledger, lease=_LEASE, timeout=self._timeout)
        outcome = carry_out(Commit(job), servers).outcome
        assert outcome is not None
        if outcome is Outcome.COMMITTED:
            ids = [part.transaction for part in prepared.parts]
            note_batch(self._client, self._target, writer_of(app), latest_of(prepared.parts), ids)
        return outcome

    def resolve(self, app: str, choice: str) -> None:
        """Close the open batch by decision: ``accept`` what is visible of it, or ``discard`` it to be written again.

        Accepting loses the rows of the lost transactions; discarding repeats those of the committed ones. Call
        :meth:`finish` first: it saves what can be saved. Raises ConfigError, OutcomeUnknownError.
        """
        if choice not in ("accept", "discard"):
            raise ConfigError(f"choose accept or discard, not {choice!r}")
        revision, _ = self._ledger.read()
        prepared = self._open(app)
        if TransactionStatus.OPEN in self._statuses(prepared):
            raise ConfigError(f"batch {prepared.batch} of {app} still has open transactions: finish it first")
        entry = Resolved(app, str(uuid.uuid4()), prepared.batch, choice)
        if self._ledger.append(entry, revision, deadline=Deadline(self._timeout)) is None:
            raise OutcomeUnknownError(f"another process changed ledger {self._ledger.name} meanwhile: look again")

    def _open(self, app: str) -> Prepared:
        _, state = self._ledger.read()
        if app not in state:
            raise ConfigError(f"ledger {self._ledger.name} knows no {app!r}; it knows: {', '.join(sorted(state))}")
        prepared = state[app].open
        if prepared is None:
            raise ConfigError(f"{app} has no open batch; its last, {state[app].last}, is committed")
        return prepared

    def _statuses(self, prepared: Prepared | None) -> tuple[TransactionStatus, ...]:
        parts = () if prepared is None else prepared.parts
        return tuple(self._client.controller.transaction_status(self._target, part.transaction) for part in parts)
