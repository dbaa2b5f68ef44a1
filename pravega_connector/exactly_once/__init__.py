"""Exactly-once protocols: batches of the Spark sink, and work that proceeds in steps."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.exactly_once.batch_commit.decided_cut import decided_cuts as decided_cuts
    from pravega_connector.exactly_once.batch_commit.state import ledger_name as ledger_name
    from pravega_connector.exactly_once.batch_commit.state import require_ledger as require_ledger
    from pravega_connector.exactly_once.streams_transaction import Decisions as Decisions
    from pravega_connector.exactly_once.streams_transaction import StreamsTransaction as StreamsTransaction
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "batch_commit.decided_cut": "decided_cuts",
            "batch_commit.state": "ledger_name require_ledger",
            "streams_transaction": "Decisions StreamsTransaction",
        },
    )
