"""Errors for the outcomes of a commit. Each says what happened and what to do."""

from __future__ import annotations

import logging
from typing import Final

from pravega_connector.controller.targets import name_of
from pravega_connector.core.values import TransactionStatus
from pravega_connector.errors import (
    AppIdReusedError,
    DuplicateWriteError,
    ExactlyOnceError,
    FencedError,
    LeaseExpiredError,
    LedgerMissingError,
    LostBatchError,
    ReplayDiffersError,
    TornBatchError,
    UnfinishedBatchError,
)
from pravega_connector.exactly_once.batch_commit.entries import SEVERAL_STREAMS
from pravega_connector.exactly_once.batch_commit.machine import Commit, Role
from pravega_connector.exactly_once.batch_commit.table import Outcome
from pravega_connector.wire import StreamName

_log: Final = logging.getLogger(__name__)

_ERRORS: Final[dict[Outcome, tuple[type[ExactlyOnceError], str]]] = {
    Outcome.FENCED: (
        FencedError,
        (
            "another run of this query has taken over; nothing is lost or duplicated. Stop one of the runs: two "
            "queries must not share a checkpoint"
        ),
    ),
    Outcome.AHEAD: (
        FencedError,
        (
            "it is prepared, but this run is only at batch {own}: another run is ahead, or the checkpoint was "
            "restored from an older copy. Nothing is lost. Stop the other run; if there is none, run pravega-serde "
            "recover {target} --finish, and restart the query"
        ),
    ),
    Outcome.STRANGER: (
        LedgerMissingError,
        (
            "the ledger does not know this query, which is past its first batch: the ledger was deleted, or earlier "
            "batches were not written exactly once. If no batch can be replayed, set ledger_adopt to true for one run"
        ),
    ),
    Outcome.REUSED: (
        AppIdReusedError,
        "the application id belongs to another query with versions at least as high: choose a new txn_app_id",
    ),
    Outcome.DUPLICATE: (
        DuplicateWriteError,
        "this run has already written this batch: set a separate txn_app_id for each write of a batch",
    ),
    Outcome.EXPIRED: (
        LeaseExpiredError,
        (
            "a transaction ended before the batch was committed: its lease was shorter than the slowest task or a "
            "pause of the driver, or another process aborted it. Nothing is lost: restart the query, and it writes the "
            "batch again. If the lease was too short, set a longer transaction_timeout_ms"
        ),
    ),
    Outcome.OTHER_ROWS: (
        ReplayDiffersError,
        (
            "it is committed with {known}, and was replayed with other rows ({came}). Nothing is lost: the committed "
            "rows stay, and the other rows were not written. If files of the checkpoint were removed or changed, "
            "restore them: then the batch is replayed with its own rows. If the query cannot repeat its rows "
            "(rand(), uuid()), set accept_recorded_batch to {batch} for one run: the committed rows count, and the "
            "other rows are dropped"
        ),
    ),
    Outcome.UNCOMPARED: (
        ReplayDiffersError,
        (
            "batch {last} is committed, and this earlier batch is not in the ledger, so it is unknown whether its "
            "rows ({came}) are in the stream; they were not written. Write them with a number above {last}. If "
            "the stream has them, set accept_recorded_batch to {batch} for one run to skip the batch"
        ),
    ),
    Outcome.LOST: (
        LostBatchError,
        (
            "it was recorded and never became visible, and Spark has continued with a later batch: was the "
            "checkpoint edited? Inspect it with pravega-serde recover"
        ),
    ),
    Outcome.UNFINISHED: (
        UnfinishedBatchError,
        (
            "its transactions are lost, and this run does not have its rows to write it again: restart the query, or "
            "choose with pravega-serde recover"
        ),
    ),
    Outcome.TORN: (
        TornBatchError,
        (
            "a part of it is visible and a part is lost, because a lease ended during its commit, and Spark replayed "
            "it with other rows or partitions: choose with pravega-serde recover"
        ),
    ),
    Outcome.UNDECIDABLE: (
        TornBatchError,
        (
            "the server no longer knows whether it was committed (it forgets after 24 h by default): look for its "
            "events, then choose with pravega-serde recover"
        ),
    ),
}

_TAKEN: Final = (
    "another transaction of this application has taken over. {fate}. Use an application id in one process at a time, "
    "and end a transaction before you begin the next one"
)

#: Outcomes that follow if another transaction of the application has the version.
_VERSION_TAKEN: Final = (
    Outcome.FENCED,
    Outcome.AHEAD,
    Outcome.SKIPPED,
    Outcome.DUPLICATE,
    Outcome.OTHER_ROWS,
    Outcome.UNCOMPARED,
)

#: Errors of a program's transaction over several streams, where they differ.
_OF_PROGRAMS: Final[dict[Outcome, tuple[type[ExactlyOnceError], str]]] = {
    **dict.fromkeys(_VERSION_TAKEN, (FencedError, _TAKEN)),
    Outcome.EXPIRED: (
        LeaseExpiredError,
        (
            "its lease of {lease:g} s ended before the commit, or another process aborted a part of it. Nothing of it "
            "is visible: write the events again, with a longer lease, or with ping() in time"
        ),
    ),
    Outcome.TORN: (
        TornBatchError,
        (
            "a part of it is visible and a part is lost, because a lease ended during its commit: to repair it, write "
            "the same events again in the next transaction, which has the same version. Otherwise choose with "
            "pravega-serde recover {target}"
        ),
    ),
}


def check(machine: Commit, target: StreamName) -> None:
    """Return if the batch is committed, now or before. Otherwise raise the ExactlyOnceError with the reason.

    ``target`` is the stream of the batch, or the ledger of a batch over several streams.
    """
    assert machine.ended
    outcome, job = machine.outcome, machine.job
    place = f"ledger {target}" if job.target == SEVERAL_STREAMS else f"stream {target}"
    if outcome in _ERRORS:
        kind, text = _ERRORS[outcome]
        batch = machine.recorded.batch if machine.recorded is not None else job.batch
        reason = text.format(
            batch=batch,
            last=machine.last,
            known=machine.known,
            came=job.content,
            own=job.batch,
            target=_recoverable(machine, target),
        )
        raise kind(f"batch {batch} of {job.app or 'a query'} for {place}: {reason}{_parts(machine)}")
    if outcome is Outcome.SKIPPED:
        _log.info("batch %d for %s was committed before; it was not written again", job.batch, place)
    if outcome in (Outcome.COMMITTED, Outcome.SKIPPED) and job.role is not Role.OPERATOR:
        _warn(machine, place)


def is_taken(outcome: Outcome | None) -> bool:
    """Return True if the version of a program's transaction was taken by another transaction of its application."""
    return outcome in _VERSION_TAKEN


def check_program(machine: Commit, ledger: StreamName, *, lease: float, fate: str = "") -> None:
    """Return if a program's transaction over several streams is committed. Otherwise raise the ExactlyOnceError.

    ``lease`` is in seconds. ``fate`` says what happened to the events if their version is taken.
    """
    outcome, job = machine.outcome, machine.job
    if outcome not in _OF_PROGRAMS:
        check(machine, ledger)
        return
    kind, text = _OF_PROGRAMS[outcome]
    reason = text.format(target=_recoverable(machine, ledger), lease=lease, fate=fate)
    raise kind(f"transaction {job.batch} of {job.app} with ledger {ledger}: {reason}{_parts(machine)}")


def _recoverable(machine: Commit, target: StreamName) -> str:
    """Return the arguments of ``pravega-serde recover`` for the batch."""
    if machine.job.target != SEVERAL_STREAMS:
        return str(target)
    parts = machine.recorded.parts if machine.recorded is not None else machine.job.own
    stream = name_of(parts[0].transaction.stream) if parts else "SCOPE/STREAM"
    return f"{stream} --ledger {target}"


def _warn(machine: Commit, place: str) -> None:
    """Log a warning if a replayed batch was accepted without equal rows."""
    job, known = machine.job, machine.known
    if known is None:
        if machine.outcome is Outcome.SKIPPED:
            _log.warning(
                "batch %d for %s was skipped because of accept_recorded_batch, and %s were dropped: the "
                "ledger does not have it, and batch %d is committed",
                job.batch, place, job.content, machine.last,
            )  # fmt: skip
    elif known != job.content:
        _log.warning(
            "batch %d for %s stays as recorded, with %s; the other rows of its replay were dropped: %s",
            job.batch, place, known, job.content,
        )  # fmt: skip


def _parts(machine: Commit) -> str:
    """Return the lost or forgotten transactions of a partially committed batch as text."""
    if machine.outcome not in (Outcome.TORN, Outcome.UNDECIDABLE) or machine.recorded is None:
        return ""
    bad = [
        f"{part.transaction} ({part.content.rows} rows, {status.value})"
        for part, status in zip(machine.recorded.parts, machine.statuses, strict=True)
        if status.is_aborted or status is TransactionStatus.UNKNOWN
    ]
    return f"; of {len(machine.statuses)} transactions: {', '.join(bad)}"
