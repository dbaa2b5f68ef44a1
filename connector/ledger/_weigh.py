"""What the statuses of a recorded set mean, and whether lost rows are there again."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from connector.ledger._entries import Part, Prepared
from connector.ledger._table import Event

__all__ = ["Status", "inferred", "replacements", "weigh"]


class Status(Enum):
    """Of a transaction, as the controller gives it. UNKNOWN says nothing: it is neither lost nor committed."""

    OPEN = "OPEN"
    COMMITTING = "COMMITTING"
    COMMITTED = "COMMITTED"
    ABORTING = "ABORTING"
    ABORTED = "ABORTED"
    UNKNOWN = "UNKNOWN"

    @property
    def done(self) -> bool:
        """Its events are visible, or will be whatever happens."""
        return self in (Status.COMMITTING, Status.COMMITTED)

    @property
    def lost(self) -> bool:
        """Its events will never be visible."""
        return self in (Status.ABORTING, Status.ABORTED)

    @property
    def live(self) -> bool:
        """Its events are visible, or still can be."""
        return self is Status.OPEN or self.done


def inferred(statuses: Sequence[Status]) -> tuple[Status, ...]:
    """The statuses, with a forgotten pilot as committed if another one is: nobody commits another one before it."""
    pilot, *others = statuses
    if pilot is Status.UNKNOWN and any(status.done for status in others):
        pilot = Status.COMMITTED
    return pilot, *others


def weigh(statuses: Sequence[Status]) -> Event:
    """What can be done with a recorded set; its pilot is the first. TORN may still be repairable."""
    pilot, others = statuses[0], statuses[1:]
    if pilot is Status.UNKNOWN:
        return Event.PILOT_FORGOTTEN
    if pilot.lost:
        return Event.PILOT_LOST
    if all(status.live for status in others):
        return Event.WHOLE
    if pilot is Status.OPEN:
        return Event.PILOT_OPEN
    return Event.FORGOTTEN if Status.UNKNOWN in others else Event.TORN


def replacements(recorded: Prepared, statuses: Sequence[Status], own: Sequence[Part]) -> tuple[Part, ...] | None:
    """The recorded parts with each lost one replaced by an own one of the same rows; None if one is not there.

    An own part is used once, in whatever partition it is. Parts that are recorded and live stay what they are: two
    partitions may have equal rows.
    """
    taken = {part.transaction for part, status in zip(recorded.parts, statuses, strict=True) if not status.lost}
    named = {part.transaction for part in recorded.parts}
    own = sorted(own, key=lambda part: part.transaction in named)  # a lost one that names itself comes last
    parts = []
    for part, status in zip(recorded.parts, statuses, strict=True):
        if not status.lost:
            parts.append(part)
            continue
        same = [o for o in own if o.transaction not in taken and (o.digest, o.rows, o.bytes) == _content(part)]
        if not same:
            return None
        taken.add(same[0].transaction)
        parts.append(same[0])
    return tuple(parts)


def _content(part: Part) -> tuple[str, int, int]:
    return part.digest, part.rows, part.bytes
