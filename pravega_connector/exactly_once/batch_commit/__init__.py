"""Exactly-once batches: the transactions of a batch, the processes that may commit them, and recovery.

``table`` has the protocol: a table of phases and events, with the reasons. ``machine`` executes it without I/O,
``statuses`` weighs recorded transactions, and ``servers`` makes the calls. ``outcomes`` has the errors of its outcomes,
and ``recovery`` the operations of an operator without Spark. ``entries`` is the format of the ledger's entries,
``state`` the stream with them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.exactly_once.batch_commit.entries import SEVERAL_STREAMS as SEVERAL_STREAMS
    from pravega_connector.exactly_once.batch_commit.entries import AppState as AppState
    from pravega_connector.exactly_once.batch_commit.entries import Barrier as Barrier
    from pravega_connector.exactly_once.batch_commit.entries import Committed as Committed
    from pravega_connector.exactly_once.batch_commit.entries import Content as Content
    from pravega_connector.exactly_once.batch_commit.entries import Entry as Entry
    from pravega_connector.exactly_once.batch_commit.entries import Forgotten as Forgotten
    from pravega_connector.exactly_once.batch_commit.entries import Key as Key
    from pravega_connector.exactly_once.batch_commit.entries import Part as Part
    from pravega_connector.exactly_once.batch_commit.entries import Prepared as Prepared
    from pravega_connector.exactly_once.batch_commit.entries import Resolved as Resolved
    from pravega_connector.exactly_once.batch_commit.entries import Snapshot as Snapshot
    from pravega_connector.exactly_once.batch_commit.entries import TransactionId as TransactionId
    from pravega_connector.exactly_once.batch_commit.entries import content_of as content_of
    from pravega_connector.exactly_once.batch_commit.entries import from_bytes as from_bytes
    from pravega_connector.exactly_once.batch_commit.entries import to_bytes as to_bytes
    from pravega_connector.exactly_once.batch_commit.machine import Ask as Ask
    from pravega_connector.exactly_once.batch_commit.machine import Commit as Commit
    from pravega_connector.exactly_once.batch_commit.machine import Job as Job
    from pravega_connector.exactly_once.batch_commit.machine import Request as Request
    from pravega_connector.exactly_once.batch_commit.machine import Role as Role
    from pravega_connector.exactly_once.batch_commit.outcomes import check as check
    from pravega_connector.exactly_once.batch_commit.recovery import Finding as Finding
    from pravega_connector.exactly_once.batch_commit.recovery import Recovery as Recovery
    from pravega_connector.exactly_once.batch_commit.servers import Servers as Servers
    from pravega_connector.exactly_once.batch_commit.servers import await_visible as await_visible
    from pravega_connector.exactly_once.batch_commit.servers import carry_out as carry_out
    from pravega_connector.exactly_once.batch_commit.servers import latest_of as latest_of
    from pravega_connector.exactly_once.batch_commit.servers import note_batch as note_batch
    from pravega_connector.exactly_once.batch_commit.servers import note_parts as note_parts
    from pravega_connector.exactly_once.batch_commit.servers import stream_of as stream_of
    from pravega_connector.exactly_once.batch_commit.servers import writer_of as writer_of
    from pravega_connector.exactly_once.batch_commit.state import Ledger as Ledger
    from pravega_connector.exactly_once.batch_commit.state import LedgerState as LedgerState
    from pravega_connector.exactly_once.batch_commit.state import fold as fold
    from pravega_connector.exactly_once.batch_commit.state import ledger_name as ledger_name
    from pravega_connector.exactly_once.batch_commit.state import require_ledger as require_ledger
    from pravega_connector.exactly_once.batch_commit.state import snapshots_of as snapshots_of
    from pravega_connector.exactly_once.batch_commit.table import TABLE as TABLE
    from pravega_connector.exactly_once.batch_commit.table import Event as Event
    from pravega_connector.exactly_once.batch_commit.table import Move as Move
    from pravega_connector.exactly_once.batch_commit.table import Outcome as Outcome
    from pravega_connector.exactly_once.batch_commit.table import Phase as Phase
    from pravega_connector.exactly_once.batch_commit.table import Table as Table
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "entries": (
                "SEVERAL_STREAMS AppState Barrier Committed Content Entry Forgotten Key Part Prepared Resolved "
                "Snapshot TransactionId content_of from_bytes to_bytes"
            ),
            "machine": "Ask Commit Job Request Role",
            "outcomes": "check",
            "recovery": "Finding Recovery",
            "servers": "Servers await_visible carry_out latest_of note_batch note_parts stream_of writer_of",
            "state": "Ledger LedgerState fold ledger_name require_ledger snapshots_of",
            "table": "TABLE Event Move Outcome Phase Table",
        },
    )
