"""Commit of a batch as a table: the next action for every state.

A transaction of Pravega is a one-shot register: OPEN becomes COMMITTING or ABORTING in one step on the server, and
never changes again. A batch is written into one transaction for each task and stream, and no step commits several
transactions. So the *pilot*, the first transaction of a recorded set, decides for all of them, in all streams:

    no other transaction of the set is committed before the pilot is committed;
    no other transaction is aborted before the pilot is aborted.

Another process may find a recorded set later: another driver, one that was presumed dead, ``abort()``, or an operator.
It reads the decision from the pilot, or decides the pilot in that one step and then knows the decision. The ledger
names the transactions of a batch. An entry is appended only if the ledger has not changed since the state for the
decision was read. So a driver with an outdated decision is refused and restarts. A transaction is committed only after
an entry that names it was accepted, also for a repair.

Streams of a batch do not wait for each other: after the pilot, each stream commits its transactions. A stream may be
sealed, which aborts its open transactions, and then deleted. A part in a deleted stream can no longer change, and its
rows are deleted too, so it counts as the pilot has decided. If the pilot itself was deleted and is forgotten, another
committed transaction shows its decision. If there is none, the others are aborted one by one. An abort that is refused
shows that another process knows the pilot as committed.

A committed batch number is skipped only if its rows are the recorded ones. A replay with other rows is reported and
writes nothing, as is a replay that cannot be compared any more. Two writes of one ``foreachBatch`` may have the same
ids and rows by mistake: the second write of a run is reported. To report it after a restart too, the run appends
COMMITTED again when it skips the first write.

A commit is decided before it is visible. Transactions with concurrent commits may become visible in any order, segment
by segment. So a batch is recorded only after the batch before it was completely visible. Later events are committed
later, and cannot overtake it. Usually this was the case long before the tasks are done.

Undecidable cases are reported, never guessed. A lease may have expired after the pilot was committed (*torn*), unless
the lost rows were written again, byte for byte, in the same stream. Or the server has forgotten a state
(*undecidable*).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Phase(Enum):
    """Phase of a commit. The value describes the request to the servers."""

    READ = "read the ledger to its end"
    EVALUATE = "ask the status of the recorded transactions"
    EXIST = "ask whether the streams of lost and forgotten transactions exist"
    ABORT_PILOT = "abort the recorded pilot"
    ABORT_RECORDED = "abort the rest of the recorded set"
    PING_OWN = "ping the own transactions of the set to be recorded"
    AWAIT = "ask whether the last batch is visible"
    PREPARE = "append PREPARED"
    PING_RECORDED = "ping the open transactions of the recorded set"
    COMMIT_PILOT = "commit the pilot"
    AWAIT_COMMIT = "ask whether what is committed is visible"
    COMMIT_REST = "commit the others"
    RECORD = "append COMMITTED"
    CLAIM = "append COMMITTED once more, for this run"
    FENCE = "append BARRIER"
    ABORT_OWN = "abort the own transactions that no entry names"
    ABANDON_READ = "after a failure, read the ledger to its end"
    ABANDON_PILOT = "after a failure, abort the first own transaction"
    ABANDON_REST = "after a failure, abort the others"
    END = "end"


class Event(Enum):
    """Meaning of the answers."""

    FENCED = "a later run has taken over"
    AHEAD = "a later batch is prepared"
    REUSED = "the application id belongs to another query"
    STRANGER = "the ledger has nothing of this query, which is not new"
    DUPLICATE = "this run has committed this batch already"
    COMMITTED_BEFORE = "the batch is committed, with these rows"
    REPEATED = "the batch is committed, with these rows, and this run may write it twice"
    COMMITTED_NOW = "the batch is committed, by this very call whose answer was lost"
    ACCEPTED = "the batch is committed with other rows, or unknown ones, and the user has accepted that"
    OTHER_ROWS = "the batch is committed, with other rows"
    UNCOMPARED = "a later batch is committed, and nothing is known of this one"
    OLDER = "an older batch is prepared"
    RECORDED = "the batch is prepared"
    NOTHING = "the batch is new"
    EMPTY = "the batch is new and has no rows"
    NO_TASKS = "there were no tasks, and nothing is prepared"
    WHOLE = "all live"
    NOT_WHOLE = "no longer all live"
    UNSURE = "some are lost or forgotten, and their stream may be deleted"
    PILOT_LOST = "the pilot is lost"
    PILOT_OPEN = "the pilot is open, another is lost"
    REPAIRABLE = "the pilot is committed, the lost rows are here again"
    WRITE_AGAIN = "the pilot is committed, own transactions are lost, and a replay has their rows"
    TORN = "the pilot is committed, others are lost"
    FORGOTTEN = "the pilot is committed, the status of others is forgotten"
    PILOT_FORGOTTEN = "the status of the pilot is forgotten"
    NOT_MINE = "the set is lost, and there is nothing to replace it with"
    VISIBLE = "all of it is visible"
    NOT_YET = "not yet"
    DONE = "done"
    SAVED = "all that was open of a torn set is committed"
    REFUSED = "refused"
    ABORTED = "aborted"
    REPLACED = "aborted, new rows are here"
    EMPTIED = "aborted, and the new batch has no rows"
    GONE = "aborted, and Spark has gone on to a later batch"
    CAUGHT_UP = "done, and there may be more to finish"
    UNRECORDED = "the batch is not prepared"


class Outcome(Enum):
    """End of a commit. Each outcome except the first three becomes an error."""

    COMMITTED = "the batch is committed"
    SKIPPED = "the batch had been committed before; its repetition was aborted"
    ABANDONED = "the own transactions are aborted, or left to the entry that names them"
    FENCED = "another run of the query has taken over"
    AHEAD = "a later batch of the query is prepared"
    REUSED = "the application id was used by another query"
    STRANGER = "the ledger does not know a query that has committed batches"
    DUPLICATE = "the same batch was written twice by one run"
    OTHER_ROWS = "the batch is committed, and was repeated with other rows, which are aborted"
    UNCOMPARED = "the batch is older than what is known, and its rows are aborted"
    EXPIRED = "an own transaction ended too early; the batch must be written again"
    TORN = "a part of the batch is visible and a part is lost"
    UNDECIDABLE = "the server has forgotten whether the batch was committed"
    LOST = "a batch that Spark has done with is lost"
    UNFINISHED = "a prepared batch cannot be finished without its rows"


@dataclass(frozen=True, slots=True)
class Move:
    """Next phase, and the outcome if it is already known."""

    to: Phase
    outcome: Outcome | None = None


Table = Mapping[tuple[Phase, Event], Move]

TABLE: Final[Table] = {
    (Phase.READ, Event.FENCED): Move(Phase.END, Outcome.FENCED),
    (Phase.READ, Event.AHEAD): Move(Phase.END, Outcome.AHEAD),
    (Phase.READ, Event.REUSED): Move(Phase.END, Outcome.REUSED),
    (Phase.READ, Event.STRANGER): Move(Phase.END, Outcome.STRANGER),
    (Phase.READ, Event.DUPLICATE): Move(Phase.END, Outcome.DUPLICATE),
    (Phase.READ, Event.COMMITTED_BEFORE): Move(Phase.ABORT_OWN, Outcome.SKIPPED),
    (Phase.READ, Event.REPEATED): Move(Phase.CLAIM),
    (Phase.READ, Event.COMMITTED_NOW): Move(Phase.ABORT_OWN, Outcome.COMMITTED),
    (Phase.READ, Event.ACCEPTED): Move(Phase.ABORT_OWN, Outcome.SKIPPED),
    (Phase.READ, Event.OTHER_ROWS): Move(Phase.ABORT_OWN, Outcome.OTHER_ROWS),
    (Phase.READ, Event.UNCOMPARED): Move(Phase.ABORT_OWN, Outcome.UNCOMPARED),
    (Phase.READ, Event.OLDER): Move(Phase.EVALUATE),
    (Phase.READ, Event.RECORDED): Move(Phase.EVALUATE),
    (Phase.READ, Event.NOTHING): Move(Phase.PING_OWN),
    (Phase.READ, Event.EMPTY): Move(Phase.RECORD),
    (Phase.READ, Event.NO_TASKS): Move(Phase.FENCE),
    (Phase.EVALUATE, Event.WHOLE): Move(Phase.PING_RECORDED),
    (Phase.EVALUATE, Event.PILOT_OPEN): Move(Phase.ABORT_PILOT),
    (Phase.EVALUATE, Event.PILOT_LOST): Move(Phase.ABORT_RECORDED),
    (Phase.EVALUATE, Event.REPAIRABLE): Move(Phase.PING_OWN),
    (Phase.EVALUATE, Event.WRITE_AGAIN): Move(Phase.PING_RECORDED, Outcome.EXPIRED),
    (Phase.EVALUATE, Event.TORN): Move(Phase.PING_RECORDED, Outcome.TORN),
    (Phase.EVALUATE, Event.FORGOTTEN): Move(Phase.PING_RECORDED, Outcome.UNDECIDABLE),
    (Phase.EVALUATE, Event.PILOT_FORGOTTEN): Move(Phase.ABORT_OWN, Outcome.UNDECIDABLE),
    (Phase.EVALUATE, Event.NOT_MINE): Move(Phase.END, Outcome.UNFINISHED),
    (Phase.EVALUATE, Event.UNSURE): Move(Phase.EXIST),
    (Phase.EXIST, Event.DONE): Move(Phase.EVALUATE),
    (Phase.ABORT_PILOT, Event.ABORTED): Move(Phase.ABORT_RECORDED),
    (Phase.ABORT_PILOT, Event.REFUSED): Move(Phase.READ),
    (Phase.ABORT_RECORDED, Event.REPLACED): Move(Phase.PING_OWN),
    (Phase.ABORT_RECORDED, Event.EMPTIED): Move(Phase.RECORD),
    (Phase.ABORT_RECORDED, Event.GONE): Move(Phase.ABORT_OWN, Outcome.LOST),
    (Phase.ABORT_RECORDED, Event.NOT_MINE): Move(Phase.END, Outcome.UNFINISHED),
    (Phase.ABORT_RECORDED, Event.REFUSED): Move(Phase.READ),
    (Phase.PING_OWN, Event.WHOLE): Move(Phase.AWAIT),
    (Phase.PING_OWN, Event.NOT_WHOLE): Move(Phase.ABORT_OWN, Outcome.EXPIRED),
    (Phase.AWAIT, Event.VISIBLE): Move(Phase.PREPARE),
    (Phase.AWAIT, Event.NOT_YET): Move(Phase.PING_OWN),
    (Phase.PREPARE, Event.DONE): Move(Phase.PING_RECORDED),
    (Phase.PREPARE, Event.REFUSED): Move(Phase.READ),
    (Phase.PING_RECORDED, Event.WHOLE): Move(Phase.COMMIT_PILOT),
    (Phase.PING_RECORDED, Event.NOT_WHOLE): Move(Phase.READ),
    (Phase.COMMIT_PILOT, Event.DONE): Move(Phase.AWAIT_COMMIT),
    (Phase.COMMIT_PILOT, Event.REFUSED): Move(Phase.READ),
    (Phase.AWAIT_COMMIT, Event.VISIBLE): Move(Phase.COMMIT_REST),
    (Phase.AWAIT_COMMIT, Event.NOT_YET): Move(Phase.PING_RECORDED),
    (Phase.COMMIT_REST, Event.DONE): Move(Phase.RECORD),
    (Phase.COMMIT_REST, Event.NOT_YET): Move(Phase.PING_RECORDED),
    (Phase.COMMIT_REST, Event.SAVED): Move(Phase.ABORT_OWN),
    (Phase.COMMIT_REST, Event.REFUSED): Move(Phase.READ),
    (Phase.RECORD, Event.DONE): Move(Phase.ABORT_OWN, Outcome.COMMITTED),
    (Phase.RECORD, Event.OTHER_ROWS): Move(Phase.ABORT_OWN, Outcome.OTHER_ROWS),
    (Phase.RECORD, Event.CAUGHT_UP): Move(Phase.READ),
    (Phase.RECORD, Event.REFUSED): Move(Phase.READ),
    (Phase.CLAIM, Event.DONE): Move(Phase.ABORT_OWN, Outcome.SKIPPED),
    (Phase.CLAIM, Event.REFUSED): Move(Phase.READ),
    (Phase.FENCE, Event.DONE): Move(Phase.END, Outcome.COMMITTED),
    (Phase.FENCE, Event.REFUSED): Move(Phase.READ),
    (Phase.ABORT_OWN, Event.DONE): Move(Phase.END),
    (Phase.ABANDON_READ, Event.RECORDED): Move(Phase.END, Outcome.ABANDONED),
    (Phase.ABANDON_READ, Event.UNRECORDED): Move(Phase.ABANDON_PILOT),
    (Phase.ABANDON_PILOT, Event.ABORTED): Move(Phase.ABANDON_REST),
    (Phase.ABANDON_PILOT, Event.REFUSED): Move(Phase.END, Outcome.ABANDONED),
    (Phase.ABANDON_REST, Event.DONE): Move(Phase.END, Outcome.ABANDONED),
}
