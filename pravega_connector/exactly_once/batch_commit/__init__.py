"""Exactly-once batches: the transactions of a batch, the processes that may commit them, and recovery.

``table`` has the protocol: a table of phases and events, with the reasons. ``machine`` executes it without I/O, and
``servers`` makes the calls. ``outcomes`` has the errors of its outcomes, and ``recovery`` the operations of an operator
without Spark. ``entries`` is the format of the ledger's entries, ``state`` the stream with them.
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
