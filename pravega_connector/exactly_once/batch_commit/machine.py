"""State machine of a commit: it executes the table, returns the next request and processes the answer.

It does no I/O and is immutable: ``answered`` returns a new machine. So the model that explores every order of events,
with crashes in and between calls, runs this same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, Final

from pravega_connector.core.values import TransactionStatus as Status
from pravega_connector.exactly_once.batch_commit.entries import (
    AppState,
    Barrier,
    Committed,
    Content,
    Entry,
    Key,
    Part,
    Prepared,
    TransactionId,
    content_of,
)
from pravega_connector.exactly_once.batch_commit.state import LedgerState
from pravega_connector.exactly_once.batch_commit.statuses import inferred, is_live, replacements, weigh
from pravega_connector.exactly_once.batch_commit.table import TABLE, Event, Outcome, Phase, Table


class Role(Enum):
    """Role of a process in a batch."""

    WRITER = "writer"  # has the rows of the batch, in its own transactions
    BYSTANDER = "bystander"  # Spark ran the batch without a task; it can only finish a prepared batch
    OPERATOR = "operator"  # recovers without Spark; may also abort a batch that must be written again


class Ask(Enum):
    """Kind of a request, with the type of its answer."""

    READ = "read"  # (revision, LedgerState)
    APPEND = "append"  # revision after it; None: refused. After a lost answer, the same bytes are sent again
    STATUS = "status"  # transaction -> Status
    PING = "ping"  # transaction -> Status; OPEN: its lease was prolonged
    COMMIT = "commit"  # transaction -> Status after the call; OPEN: its commit was not requested yet
    SETTLE = "settle"  # transaction -> Status; COMMITTING: must be visible before another of its stream is committed
    ABORT = "abort"  # transaction -> Status after the call
    EXIST = "exist"  # streams that are deleted, or recreated under their name


@dataclass(frozen=True, slots=True)
class Request:
    """Request to the servers. Calls for several transactions are sent concurrently, in any order."""

    ask: Ask
    transactions: tuple[TransactionId, ...] = ()
    streams: tuple[str, ...] = ()
    entry: Entry | None = None
    revision: Any = None


@dataclass(frozen=True, slots=True)
class Job:
    """One ``commit(messages, batch)``: the caller, and the parts that this attempt's tasks wrote, by partition.

    A bystander does not know its application, because only tasks carry it.
    """

    app: str
    query: str
    run: str
    nonce: str
    batch: int
    own: tuple[Part, ...] = ()
    """Parts of this attempt. The first is the pilot if they are recorded."""
    role: Role = Role.WRITER
    adopt: bool = True
    """True if a batch that is not the first may be the first in the ledger."""
    accept: int | None = None
    """Batch that counts as recorded even if it is replayed with other rows."""
    target: str = ""
    """Stream and creation of the target, or ``SEVERAL_STREAMS``. Other targets may share the ledger."""
    time: int = 0
    """Milliseconds since 1970, for the entries."""
    several: bool = False
    """True if the run may write a batch more than once, as the function of ``foreachBatch`` may."""

    def ids(self) -> frozenset[TransactionId]:
        """Return the transactions of this attempt."""
        return frozenset(part.transaction for part in self.own)

    @property
    def content(self) -> Content:
        """Content of everything that the tasks wrote."""
        return content_of(self.own)


Judgement = tuple[Event, dict[str, Any]]


@dataclass(frozen=True)
class Commit:
    """State of one commit or one abort: see :mod:`pravega_connector.exactly_once.batch_commit.table`."""

    job: Job
    phase: Phase = Phase.READ
    revision: Any = None
    """End of the ledger for this decision. An append at another revision is refused."""
    recorded: Prepared | None = None
    """Set that the ledger names."""
    proposed: Prepared | None = None
    """Set to be recorded next."""
    statuses: tuple[Status, ...] = ()
    """Statuses of the recorded parts, as last seen."""
    settling: tuple[TransactionId, ...] = ()
    """Transactions of the last batch that may not be visible yet."""
    missing: frozenset[tuple[TransactionId, Status]] = frozenset()
    """Recorded transactions that were lost or forgotten while their stream existed."""
    deleted: frozenset[str] = frozenset()
    """Streams of recorded transactions that are deleted, with all their rows."""
    fresh: frozenset[TransactionId] = frozenset()
    """Open transactions with a ping that still counts. They are not pinged again."""
    last: int = -1
    """Last committed batch when the ledger was last read."""
    known: Content | None = None
    """Committed content of the batch if it was compared with the own rows; None if it is not known."""
    outcome: Outcome | None = None
    table: ClassVar[Table] = TABLE

    @property
    def ended(self) -> bool:
        """True if the machine has an outcome and needs no further call."""
        return self.phase is Phase.END

    @property
    def own_count(self) -> bool:
        """True if the committed batch has the rows of this attempt, or equal rows."""
        return self._is_own(self.known)

    def answered(self, answer: Any) -> Commit:
        """Return the machine after an answer. Phases without a request are skipped."""
        machine = self._observed(answer)._after(answer)
        while machine.phase in _TRANSACTIONS and not machine.request().transactions:
            machine = machine._after({})
        return machine

    def aged(self, transactions: Iterable[TransactionId] | None = None) -> Commit:
        """Return the machine after the pings of these transactions, or of all, have become too old to count."""
        left = frozenset() if transactions is None else self.fresh.difference(transactions)
        return self if left == self.fresh else replace(self, fresh=left)

    def _observed(self, answer: Any) -> Commit:
        """Return the machine with the pings that count.

        Any answer other than OPEN invalidates the ping of its transaction.
        """
        ask = self.request().ask
        if ask in (Ask.READ, Ask.APPEND, Ask.EXIST):
            return self
        still = {id_ for id_, status in answer.items() if status is Status.OPEN}
        fresh = self.fresh.difference(answer.keys() - still)
        return replace(self, fresh=fresh | still if ask is Ask.PING else fresh)

    def _after(self, answer: Any) -> Commit:
        event, changes = getattr(self, _JUDGES[self.phase])(answer)
        move = self.table[self.phase, event]
        return replace(self, **changes, phase=move.to, outcome=move.outcome or self.outcome)

    # ---- requests ----------------------------------------------------------------------------------------------------

    def request(self) -> Request:
        """Return the next request. Invalid once the machine has ended."""
        if self.phase in (Phase.READ, Phase.ABANDON_READ):
            return Request(Ask.READ)
        if self.phase in _ENTRIES:
            return Request(Ask.APPEND, entry=getattr(self, _ENTRIES[self.phase])(), revision=self.revision)
        if self.phase is Phase.EXIST:
            return Request(Ask.EXIST, streams=tuple(dict.fromkeys(id_.stream for id_, _ in self._unsure())))
        ask, select = _TRANSACTIONS[self.phase]
        return Request(ask, getattr(self, select)())

    def _parts(self) -> list[tuple[TransactionId, Status]]:
        assert self.recorded is not None
        return [(part.transaction, status) for part, status in zip(self.recorded.parts, self.statuses, strict=True)]

    def _all(self) -> tuple[TransactionId, ...]:
        assert self.recorded is not None
        return tuple(part.transaction for part in self.recorded.parts)

    def _open(self) -> tuple[TransactionId, ...]:
        return tuple(id_ for id_, status in self._parts() if status is Status.OPEN)

    def _unsure(self) -> list[tuple[TransactionId, Status]]:
        """Return the transactions that are forgotten, or lost in a committed batch, or whose stream is deleted."""
        lost = (Status.ABORTING, Status.ABORTED, Status.UNKNOWN) if self.statuses[0].is_committed else (Status.UNKNOWN,)
        return [
            (id_, status)
            for id_, status in self._parts()
            if status in lost and (id_, status) not in self.missing and id_.stream not in self.deleted
        ]

    def _awaited(self) -> tuple[TransactionId, ...]:
        """Return the transactions that are being committed, if others of their stream must be committed after them."""
        waiting = {id_.stream for id_ in self._open()}
        return tuple(id_ for id_, status in self._parts() if status is Status.COMMITTING and id_.stream in waiting)

    def _ready(self) -> tuple[TransactionId, ...]:
        """Return the open transactions of streams in which none is being committed."""
        busy = {id_.stream for id_ in self._awaited()}
        return tuple(id_ for id_ in self._open() if id_.stream not in busy)

    def _stale(self) -> tuple[TransactionId, ...]:
        return tuple(id_ for id_ in self._open() if id_ not in self.fresh)

    def _settling(self) -> tuple[TransactionId, ...]:
        return self.settling

    def _pilot(self) -> tuple[TransactionId, ...]:
        return self._all()[:1]

    def _pilot_pending(self) -> tuple[TransactionId, ...]:
        return () if self.statuses[0].is_committed else self._pilot()

    def _own_stale(self) -> tuple[TransactionId, ...]:
        assert self.proposed is not None
        mine = self.job.ids() - self.fresh
        return tuple(part.transaction for part in self.proposed.parts if part.transaction in mine)

    def _own_unrecorded(self) -> tuple[TransactionId, ...]:
        named = () if self.recorded is None else self._all()
        return tuple(part.transaction for part in self.job.own if part.transaction not in named)

    def _own_pilot(self) -> tuple[TransactionId, ...]:
        return tuple(part.transaction for part in self.job.own[:1])

    def _own_rest(self) -> tuple[TransactionId, ...]:
        return tuple(part.transaction for part in self.job.own[1:])

    def _prepared(self) -> Prepared:
        assert self.proposed is not None
        return self.proposed

    def _barrier(self) -> Barrier:
        return Barrier(self.job.nonce)

    def _committed(self) -> Committed:
        job, of = self.job, self.recorded
        if of is None:
            return Committed(job.app, job.query, job.run, job.nonce, job.batch, target=job.target, time=job.time)
        visible = (part for part, status in zip(of.parts, self.statuses, strict=True) if status.is_committed)
        # A helping process is not a run of the query, and must not look like a run that has taken over.
        content = content_of(visible)
        return Committed(of.app, of.query, job.run, job.nonce, of.batch, content, of.target, job.time)

    def _claim(self) -> Committed:
        job = self.job
        assert self.known is not None
        return Committed(job.app, job.query, job.run, job.nonce, job.batch, self.known, job.target, job.time)

    # ---- events of the answers ---------------------------------------------------------------------------------------

    def _judge_read(self, answer: tuple[Any, LedgerState]) -> Judgement:
        revision, state = answer
        app = self._app(state)
        event = self._row(app)
        proposed = self._own_set(0) if event is Event.NOTHING else None
        changes = {
            "revision": revision,
            "recorded": app.open,
            "proposed": proposed,
            "statuses": (),
            "settling": app.last_set,
            "last": app.last,
        }
        return event, changes if event not in _COMPARED else {**changes, "known": app.content_of(self.job.batch)}

    def _app(self, state: LedgerState) -> AppState:
        job = self.job
        if job.role is not Role.BYSTANDER:
            return state.get(Key(job.app, job.target), AppState(job.app, target=job.target))
        apps = (app for app in state.values() if app.target == job.target and app.open is not None)
        prepared = [app for app in apps if app.open is not None and app.open.batch == job.batch]
        return prepared[0] if prepared else AppState("", target=job.target)

    def _row(self, app: AppState) -> Event:
        """Return the row of the protocol's table that applies to the ledger."""
        job, prepared = self.job, app.open
        if job.run in app.runs and app.runs[-1] != job.run:
            return Event.FENCED
        if prepared is not None and prepared.batch > job.batch:
            return Event.AHEAD
        if job.batch <= app.last:
            return self._row_of_committed(app)
        if prepared is not None:
            return Event.OLDER if prepared.batch < job.batch else Event.RECORDED
        return self._row_of_new(app)

    def _row_of_new(self, app: AppState) -> Event:
        job = self.job
        if job.role is not Role.WRITER:
            return Event.NO_TASKS
        if job.batch > 0 and app.last < 0 and not job.adopt:
            return Event.STRANGER
        return Event.NOTHING if job.own else Event.EMPTY

    def _row_of_committed(self, app: AppState) -> Event:
        job = self.job
        if app.query and job.query and app.query != job.query:
            return Event.REUSED
        this_run = app.seen == job.batch and app.seen_run == job.run
        if this_run and app.seen_nonce != job.nonce:
            return Event.DUPLICATE
        known = app.content_of(job.batch)
        if job.role is Role.WRITER and not self._is_own(known):
            if job.accept == job.batch:
                return Event.ACCEPTED
            return Event.UNCOMPARED if known is None else Event.OTHER_ROWS
        if this_run:
            return Event.COMMITTED_NOW
        return Event.REPEATED if job.several and job.role is Role.WRITER else Event.COMMITTED_BEFORE

    def _is_own(self, known: Content | None) -> bool:
        return known == self.job.content

    def _own_set(self, generation: int) -> Prepared:
        job = self.job
        return Prepared(job.app, job.query, job.run, job.nonce, job.batch, generation, job.own, job.target, job.time)

    def _judge_statuses(self, answer: Mapping[TransactionId, Status]) -> Judgement:
        gone = [id_.stream in self.deleted for id_ in self._all()]
        statuses = inferred([answer[id_] for id_ in self._all()], gone)
        event, changes = weigh(statuses), {"statuses": statuses}
        if event is Event.TORN and (proposed := self._repair(statuses)) is not None:
            # A lost part that replaces itself has the right rows but no transaction. Only a replay has another one.
            again = not self._lost(statuses).isdisjoint(part.transaction for part in proposed.parts)
            return Event.WRITE_AGAIN if again else Event.REPAIRABLE, {**changes, "proposed": proposed}
        if event in _UNFINISHABLE and replace(self, statuses=statuses)._unsure():
            return Event.UNSURE, changes
        if event in (Event.PILOT_OPEN, Event.PILOT_LOST) and self.job.role is Role.BYSTANDER:
            return Event.NOT_MINE, changes
        return event, changes

    def _judge_existing(self, deleted: frozenset[str]) -> Judgement:
        missing = frozenset(each for each in self._unsure() if each[0].stream not in deleted)
        return Event.DONE, {"missing": self.missing | missing, "deleted": self.deleted | deleted}

    def _lost(self, statuses: tuple[Status, ...]) -> frozenset[TransactionId]:
        return frozenset(id_ for id_, status in zip(self._all(), statuses, strict=True) if status.is_aborted)

    def _repair(self, statuses: tuple[Status, ...]) -> Prepared | None:
        """Return the recorded set with the lost parts replaced, if this attempt has their rows."""
        recorded = self.recorded
        assert recorded is not None
        parts = replacements(recorded, statuses, self.job.own) if recorded.batch == self.job.batch else None
        return None if parts is None else replace(self._own_set(recorded.generation + 1), parts=parts)

    def _judge_aborted_pilot(self, answer: Mapping[TransactionId, Status]) -> Judgement:
        if not self._seen(answer)[0].is_aborted:
            return Event.REFUSED, {}
        return Event.ABORTED, {"statuses": self._seen(answer)}

    def _judge_aborted_set(self, answer: Mapping[TransactionId, Status]) -> Judgement:
        recorded, changes = self.recorded, {"statuses": self._seen(answer)}
        assert recorded is not None
        # The pilot no longer tells whether the others may be committed: each must be aborted. One that a call found
        # open, and that is forgotten now, may have been committed in between.
        undecided = self._pilot()[0].stream in self.deleted
        committed = any(status.is_committed for status in changes["statuses"])
        if undecided and (committed or Status.UNKNOWN in answer.values()):
            return Event.REFUSED, changes
        if self.job.role is not Role.WRITER:
            return Event.NOT_MINE, changes
        if recorded.batch < self.job.batch:
            return Event.GONE, changes
        if not self.job.own:
            return Event.EMPTIED, changes
        return Event.REPLACED, {**changes, "proposed": self._own_set(recorded.generation + 1)}

    def _judge_visible(self, answer: Mapping[TransactionId, Status]) -> Judgement:
        settling = tuple(id_ for id_, status in answer.items() if status is Status.COMMITTING)
        return Event.NOT_YET if settling else Event.VISIBLE, {"settling": settling}

    def _judge_own(self, answer: Mapping[TransactionId, Status]) -> Judgement:
        whole = all(status is Status.OPEN for status in answer.values())
        return Event.WHOLE if whole else Event.NOT_WHOLE, {}

    def _judge_prepared(self, revision: Any | None) -> Judgement:
        proposed = self.proposed
        if revision is None:
            return Event.REFUSED, {}
        assert proposed is not None
        known = dict(self._parts()) if self.recorded is not None else {}
        statuses = tuple(known.get(part.transaction, Status.OPEN) for part in proposed.parts)
        return Event.DONE, {"revision": revision, "recorded": proposed, "proposed": None, "statuses": statuses}

    def _judge_live(self, answer: Mapping[TransactionId, Status]) -> Judgement:
        statuses = self._seen(answer)
        # If the set is known to be incomplete, all open transactions are saved.
        whole = self.outcome is not None or all(is_live(status) for status in statuses)
        return Event.WHOLE if whole else Event.NOT_WHOLE, {"statuses": statuses}

    def _judge_pilot(self, answer: Mapping[TransactionId, Status]) -> Judgement:
        done = all(status.is_committed for status in answer.values())
        return Event.DONE if done else Event.REFUSED, {"statuses": self._seen(answer)}

    def _judge_settled(self, answer: Mapping[TransactionId, Status]) -> Judgement:
        statuses = self._seen(answer)
        after = replace(self, statuses=statuses)
        waits = after._open() and not after._ready()
        return Event.NOT_YET if waits else Event.VISIBLE, {"statuses": statuses}

    def _judge_rest(self, answer: Mapping[TransactionId, Status]) -> Judgement:
        statuses = self._seen(answer)
        refused = self.outcome is None and not all(is_live(status) for status in answer.values())
        if not refused and Status.OPEN in statuses:
            return Event.NOT_YET, {"statuses": statuses}
        done = Event.DONE if self.outcome is None else Event.SAVED
        return Event.REFUSED if refused else done, {"statuses": statuses}

    def _judge_recorded(self, revision: Any | None) -> Judgement:
        job, committed = self.job, self._committed()
        if revision is None:
            return Event.REFUSED, {}
        if committed.batch < job.batch:
            return Event.CAUGHT_UP, {"revision": revision}
        changes = {"revision": revision, "known": committed.content}
        if job.role is Role.BYSTANDER:
            return Event.CAUGHT_UP, changes
        other = job.role is Role.WRITER and job.accept != job.batch and not self._is_own(committed.content)
        return Event.OTHER_ROWS if other else Event.DONE, changes

    def _judge_appended(self, revision: Any | None) -> Judgement:
        return (Event.REFUSED, {}) if revision is None else (Event.DONE, {"revision": revision})

    def _judge_ignored(self, answer: Mapping[TransactionId, Status]) -> Judgement:
        return Event.DONE, {}

    def _judge_abandoning(self, answer: tuple[Any, LedgerState]) -> Judgement:
        revision, state = answer
        app = self._app(state)
        # While the batch is recorded, the unanswered append of a repair may still arrive. It would name own
        # transactions next to a committed pilot, so they are left to it, or until their lease expires.
        recorded = app.open is not None and app.open.batch == self.job.batch
        return Event.RECORDED if recorded else Event.UNRECORDED, {"revision": revision, "recorded": app.open}

    def _judge_abandoned_pilot(self, answer: Mapping[TransactionId, Status]) -> Judgement:
        lost = all(status.is_aborted for status in answer.values())
        return Event.ABORTED if lost else Event.REFUSED, {}

    def _seen(self, answer: Mapping[TransactionId, Status]) -> tuple[Status, ...]:
        return tuple(answer.get(id_, status) for id_, status in self._parts())


_COMPARED: Final = frozenset(
    {Event.COMMITTED_BEFORE, Event.REPEATED, Event.COMMITTED_NOW, Event.ACCEPTED, Event.OTHER_ROWS}
)

#: Events that need an operator, unless a stream is deleted.
_UNFINISHABLE: Final = frozenset({Event.TORN, Event.FORGOTTEN, Event.PILOT_FORGOTTEN})

#: Phases that append to the ledger: the method that returns the entry.
_ENTRIES: Final = {
    Phase.PREPARE: "_prepared",
    Phase.RECORD: "_committed",
    Phase.CLAIM: "_claim",
    Phase.FENCE: "_barrier",
}

#: Phases with requests about transactions: the kind, and the method that selects the transactions.
_TRANSACTIONS: Final = {
    Phase.EVALUATE: (Ask.STATUS, "_all"),
    Phase.ABORT_PILOT: (Ask.ABORT, "_pilot"),
    Phase.ABORT_RECORDED: (Ask.ABORT, "_open"),
    Phase.AWAIT: (Ask.STATUS, "_settling"),
    Phase.PING_OWN: (Ask.PING, "_own_stale"),
    Phase.PING_RECORDED: (Ask.PING, "_stale"),
    Phase.COMMIT_PILOT: (Ask.COMMIT, "_pilot_pending"),
    Phase.AWAIT_COMMIT: (Ask.SETTLE, "_awaited"),
    Phase.COMMIT_REST: (Ask.COMMIT, "_ready"),
    Phase.ABORT_OWN: (Ask.ABORT, "_own_unrecorded"),
    Phase.ABANDON_PILOT: (Ask.ABORT, "_own_pilot"),
    Phase.ABANDON_REST: (Ask.ABORT, "_own_rest"),
}

_JUDGES: Final = {
    Phase.READ: "_judge_read",
    Phase.EVALUATE: "_judge_statuses",
    Phase.EXIST: "_judge_existing",
    Phase.ABORT_PILOT: "_judge_aborted_pilot",
    Phase.ABORT_RECORDED: "_judge_aborted_set",
    Phase.AWAIT: "_judge_visible",
    Phase.PING_OWN: "_judge_own",
    Phase.PREPARE: "_judge_prepared",
    Phase.PING_RECORDED: "_judge_live",
    Phase.COMMIT_PILOT: "_judge_pilot",
    Phase.AWAIT_COMMIT: "_judge_settled",
    Phase.COMMIT_REST: "_judge_rest",
    Phase.RECORD: "_judge_recorded",
    Phase.CLAIM: "_judge_appended",
    Phase.FENCE: "_judge_appended",
    Phase.ABORT_OWN: "_judge_ignored",
    Phase.ABANDON_READ: "_judge_abandoning",
    Phase.ABANDON_PILOT: "_judge_abandoned_pilot",
    Phase.ABANDON_REST: "_judge_ignored",
}
