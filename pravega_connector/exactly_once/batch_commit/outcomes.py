"""Errors for the outcomes of a commit. Each says what happened and what to do."""

from __future__ import annotations

import logging
from typing import Final

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
from pravega_connector.exactly_once.batch_commit.machine import Commit, Role
from pravega_connector.exactly_once.batch_commit.table import Outcome
from pravega_connector.wire import StreamName

_log: Final = logging.getLogger(__name__)

_ERRORS: Final[dict[Outcome, tuple[type[ExactlyOnceError], str]]] = {
    Outcome.FENCED: (
        FencedError,
        (
            "another run of this query has taken over; nothing is lost and nothing is written twice. Stop one of "
            "them: two queries must not share a checkpoint"
        ),
    ),
    Outcome.AHEAD: (
        FencedError,
        (
            "it is prepared, and this run is at batch {own} only: another run is ahead, or the checkpoint was put back "
            "from an older copy. Nothing is lost. Stop the other run; if there is none, run pravega-serde recover "
            "{target} --finish, and restart the query"
        ),
    ),
    Outcome.STRANGER: (
        LedgerMissingError,
        (
            "the ledger does not know this query, which is beyond its first batch: the ledger was deleted, or the"
            " query did not write exactly once before. If no batch can be repeated, set ledger_adopt to true for "
            "one run"
        ),
    ),
    Outcome.REUSED: (
        AppIdReusedError,
        "the application id was used by another query, whose versions are as high: choose a new txn_app_id",
    ),
    Outcome.DUPLICATE: (
        DuplicateWriteError,
        "this run has written this batch already: give each write of a batch a txn_app_id of its own",
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
            "it is committed with {known}, and was repeated with others ({came}). Nothing is lost: the committed rows "
            "stay, and the others were not written. If files of the checkpoint were removed or changed, put them back: "
            "then the batch is repeated as it was. If the query cannot repeat its rows (rand(), uuid()), set "
            "accept_recorded_batch to {batch} for one run: the committed rows count, and the others are dropped"
        ),
    ),
    Outcome.UNCOMPARED: (
        ReplayDiffersError,
        (
            "batch {last} is committed, and nothing is known of this earlier one, so it cannot be told whether the "
            "rows that came ({came}) are in the stream, and they were not written. Write them under a number above "
            "{last}; or, if they are there, set accept_recorded_batch to {batch} for one run: it is passed over"
        ),
    ),
    Outcome.LOST: (
        LostBatchError,
        (
            "it was recorded and never became visible, and Spark has gone on to a later batch: was the checkpoint"
            " edited? Look at it with pravega-serde recover"
        ),
    ),
    Outcome.UNFINISHED: (
        UnfinishedBatchError,
        (
            "its transactions are lost and its rows are not here to write it again: restart the query, or choose "
            "with pravega-serde recover"
        ),
    ),
    Outcome.TORN: (
        TornBatchError,
        (
            "a part of it is visible and a part is lost, because a lease ended while it was being committed, and "
            "the rows that Spark gave for it now are others: choose with pravega-serde recover"
        ),
    ),
    Outcome.UNDECIDABLE: (
        TornBatchError,
        (
            "the server has forgotten whether it was committed (after 24 h by default): look for its events, then"
            " choose with pravega-serde recover"
        ),
    ),
}


def check(machine: Commit, target: StreamName) -> None:
    """Return if the batch is committed, now or before. Otherwise raise the ExactlyOnceError with the reason."""
    assert machine.ended
    outcome, job = machine.outcome, machine.job
    if outcome in _ERRORS:
        kind, text = _ERRORS[outcome]
        batch = machine.recorded.batch if machine.recorded is not None else job.batch
        told = text.format(
            batch=batch, last=machine.last, known=machine.known, came=job.content, own=job.batch, target=target
        )
        raise kind(f"batch {batch} of {job.app or 'a query'} for stream {target}: {told}{_parts(machine)}")
    if outcome is Outcome.SKIPPED:
        _log.info("batch %d for stream %s was committed before; it was not written again", job.batch, target)
    if outcome in (Outcome.COMMITTED, Outcome.SKIPPED) and job.role is not Role.OPERATOR:
        _warn(machine, target)


def _warn(machine: Commit, target: StreamName) -> None:
    """Log a warning if a replayed batch was accepted without equal rows."""
    job, known = machine.job, machine.known
    if known is None:
        if machine.outcome is Outcome.SKIPPED:
            _log.warning(
                "batch %d for stream %s was passed over, as accept_recorded_batch says, and %s were dropped: nothing "
                "is known of it, and batch %d is committed",
                job.batch, target, job.content, machine.last,
            )  # fmt: skip
    elif known != job.content:
        _log.warning(
            "batch %d for stream %s counts as it is recorded, with %s; other rows of a repetition were dropped: %s",
            job.batch, target, known, job.content,
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
