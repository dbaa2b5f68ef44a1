"""Exactly once: which transactions a batch is, who may commit them, and what to do when something went wrong.

``table`` has the protocol: a table of phases and events, with the reasons. ``machine`` works through it without I/O,
``servers`` makes the calls that it asks for, ``outcomes`` has the errors that it can end in, ``recovery`` what an
operator can do without Spark. ``entries`` is the format of what the ledger holds, ``state`` the stream that holds it.
"""

from pravega_connector.exactly_once.batch_commit.entries import (
    AppState,
    Barrier,
    Committed,
    Content,
    Entry,
    Forgotten,
    Key,
    Part,
    Prepared,
    Resolved,
    Snapshot,
    from_bytes,
    to_bytes,
)
from pravega_connector.exactly_once.batch_commit.machine import Ask, Commit, Job, Request, Role
from pravega_connector.exactly_once.batch_commit.outcomes import check
from pravega_connector.exactly_once.batch_commit.recovery import Finding, Recovery
from pravega_connector.exactly_once.batch_commit.servers import (
    Servers,
    await_visible,
    carry_out,
    latest_of,
    note_batch,
    writer_of,
)
from pravega_connector.exactly_once.batch_commit.state import (
    Ledger,
    LedgerState,
    fold,
    ledger_name,
    snapshots_of,
    target_of,
)
from pravega_connector.exactly_once.batch_commit.table import TABLE, Event, Move, Outcome, Phase, Table

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
    "Forgotten",
    "Job",
    "Key",
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
    "snapshots_of",
    "target_of",
    "to_bytes",
    "writer_of",
]
