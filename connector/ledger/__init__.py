"""Exactly once: which transactions a batch is, who may commit them, and what to do when something went wrong."""

from connector.ledger._carry_out import Servers, await_visible, carry_out
from connector.ledger._entries import (
    AppState,
    Barrier,
    Committed,
    Content,
    Entry,
    Part,
    Prepared,
    Resolved,
    Snapshot,
    from_bytes,
    to_bytes,
)
from connector.ledger._event_time import latest_of, note_batch, writer_of
from connector.ledger._machine import Ask, Commit, Job, Request, Role
from connector.ledger._outcomes import check
from connector.ledger._recover import Finding, Recovery
from connector.ledger._state import LedgerState, fold, snapshot_of
from connector.ledger._stream import Ledger, ledger_name
from connector.ledger._table import TABLE, Event, Move, Outcome, Phase, Table

__all__ = [
    "TABLE",
    "AppState",
    "Ask",
    "Barrier",
    "Commit",
    "Committed",
    "Content",
    "Entry",
    "Event",
    "Finding",
    "Job",
    "Ledger",
    "LedgerState",
    "Move",
    "Outcome",
    "Part",
    "Phase",
    "Prepared",
    "Recovery",
    "Request",
    "Resolved",
    "Role",
    "Servers",
    "Snapshot",
    "Table",
    "await_visible",
    "carry_out",
    "check",
    "fold",
    "from_bytes",
    "latest_of",
    "ledger_name",
    "note_batch",
    "snapshot_of",
    "to_bytes",
    "writer_of",
]
