"""What a transaction is to the controller: its id and segments when it is begun, and what becomes of it.

A transaction is a register that is set once: OPEN becomes COMMITTING and then COMMITTED, or ABORTING and then ABORTED,
and stays so. A commit or an abort is *decided* when the controller has left OPEN; what follows is the server's work.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import Enum

from connector.errors import (
    TransactionAbortedError,
    TransactionCommittedError,
    TransactionError,
    TransactionUnknownError,
)
from connector.wire import SegmentRange, StreamName

__all__ = ["CreatedTransaction", "TransactionStatus", "status_error"]


class TransactionStatus(Enum):
    """What the controller says about a transaction."""

    OPEN = "open"
    """It takes events, until its lease ends."""
    COMMITTING = "committing"
    """It is committed for good; readers see its events soon."""
    COMMITTED = "committed"
    """Readers see its events."""
    ABORTING = "aborting"
    """It is aborted for good."""
    ABORTED = "aborted"
    """Its events are gone."""
    UNKNOWN = "unknown"
    """Never there, or completed so long ago (24 h by default) that it is forgotten: committed or not, nobody knows."""

    @property
    def is_committed(self) -> bool:
        """Whether it is decided that readers see its events."""
        return self in (TransactionStatus.COMMITTING, TransactionStatus.COMMITTED)

    @property
    def is_aborted(self) -> bool:
        """Whether it is decided that nobody ever sees its events."""
        return self in (TransactionStatus.ABORTING, TransactionStatus.ABORTED)


@dataclass(frozen=True, slots=True)
class CreatedTransaction:
    """A transaction that was just begun."""

    id: uuid.UUID
    """Its id, which any process can commit or abort it by."""
    segments: list[SegmentRange]
    """Parents of its own segments. After a scaling with transactions open, they need not be segments of the stream."""


def status_error(
    status: TransactionStatus, action: str, stream: StreamName, transaction: uuid.UUID
) -> TransactionError:
    """The error for an action that the transaction's status, which is not OPEN, does not allow."""
    what = f"cannot {action} transaction {transaction} of stream {stream}"
    if status.is_committed:
        return TransactionCommittedError(f"{what}: it is {status.value}")
    if status.is_aborted:
        return TransactionAbortedError(
            f"{what}: it is {status.value}, by somebody or because its lease ended, and its events are gone; "
            "write them again in a new one"
        )
    return TransactionUnknownError(
        f"{what}: the controller does not know it. It was never there, or it was completed so long ago (24 h by "
        "default) that it is forgotten; look for its events in the stream before writing them again"
    )
