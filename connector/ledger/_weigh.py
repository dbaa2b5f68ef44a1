"""What the statuses of a recorded set mean, and whether lost rows are there again."""

from __future__ import annotations

from collections.abc import Sequence

from connector.client import TransactionStatus
from connector.ledger._entries import Part, Prepared
from connector.ledger._table import Event

__all__ = ["inferred", "is_live", "replacements", "weigh"]


def is_live(status: TransactionStatus) -> bool:
    """Whether its events are visible, or still can be."""
    return status is TransactionStatus.OPEN or status.is_committed


def inferred(statuses: Sequence[TransactionStatus]) -> tuple[TransactionStatus, ...]:
    """The statuses, with a forgotten pilot as committed if another one is: nobody commits another one before it."""
    pilot, *others = statuses
    if pilot is TransactionStatus.UNKNOWN and any(status.is_committed for status in others):
        pilot = TransactionStatus.COMMITTED
    return pilot, *others


def weigh(statuses: Sequence[TransactionStatus]) -> Event:
    """What can be done with a recorded set; its pilot is the first. TORN may still be repairable."""
    pilot, others = statuses[0], statuses[1:]
    if pilot is TransactionStatus.UNKNOWN:
        return Event.PILOT_FORGOTTEN
    if pilot.is_aborted:
        return Event.PILOT_LOST
    if all(is_live(status) for status in others):
        return Event.WHOLE
    if pilot is TransactionStatus.OPEN:
        return Event.PILOT_OPEN
    return Event.FORGOTTEN if TransactionStatus.UNKNOWN in others else Event.TORN


def replacements(
    recorded: Prepared, statuses: Sequence[TransactionStatus], own: Sequence[Part]
) -> tuple[Part, ...] | None:
    """The recorded parts with each lost one replaced by an own one of the same rows; None if one is not there.

    An own part is used once, in whatever partition it is. Parts that are recorded and live stay what they are: two
    partitions may have equal rows.
    """
    taken = {part.transaction for part, status in zip(recorded.parts, statuses, strict=True) if not status.is_aborted}
    named = {part.transaction for part in recorded.parts}
    own = sorted(own, key=lambda part: part.transaction in named)  # a lost one that names itself comes last
    parts = []
    for part, status in zip(recorded.parts, statuses, strict=True):
        if not status.is_aborted:
            parts.append(part)
            continue
        # Of a part that version 1 recorded too little is known to replace it.
        known = part.content.total is not None
        same = [o for o in own if known and o.transaction not in taken and o.content == part.content]
        if not same:
            return None
        taken.add(same[0].transaction)
        parts.append(same[0])
    return tuple(parts)
