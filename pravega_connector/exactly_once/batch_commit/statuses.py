"""Statuses of the transactions of a recorded set: what they decide, and which parts can replace lost ones."""

from __future__ import annotations

from collections.abc import Sequence

from pravega_connector.core.values import TransactionStatus as Status
from pravega_connector.exactly_once.batch_commit.entries import Part, Prepared, content_of
from pravega_connector.exactly_once.batch_commit.table import Event


def is_live(status: Status) -> bool:
    """Return True if the transaction's events are visible or can still become visible."""
    return status is Status.OPEN or status.is_committed


def inferred(statuses: Sequence[Status], gone: Sequence[bool]) -> tuple[Status, ...]:
    """Return the statuses with the conclusions from the other ones. ``gone`` is True for parts of a deleted stream.

    The pilot is always committed first, so a forgotten pilot is committed if another transaction is. A stream is sealed
    before it is deleted, which ends its transactions. So a part of a deleted stream can no longer change. If the batch
    is committed, the part counts as committed: its rows were deleted with their stream. Otherwise it counts as aborted.
    If the pilot is forgotten and its stream deleted, the batch is not committed while no other transaction is.
    """
    pilot, others = statuses[0], list(zip(statuses[1:], gone[1:], strict=True))
    if pilot is Status.UNKNOWN:
        if any(status.is_committed for status, _ in others):
            pilot = Status.COMMITTED
        elif gone[0] and all(lost or status is not Status.UNKNOWN for status, lost in others):
            pilot = Status.ABORTED
    end = Status.COMMITTED if pilot.is_committed else Status.ABORTED
    return pilot, *(end if lost else status for status, lost in others)


def weigh(statuses: Sequence[Status]) -> Event:
    """Return the event for the statuses of a recorded set, with the pilot first.

    TORN may still be repairable.
    """
    pilot, others = statuses[0], statuses[1:]
    if pilot is Status.UNKNOWN:
        return Event.PILOT_FORGOTTEN
    if pilot.is_aborted:
        return Event.PILOT_LOST
    if all(is_live(status) for status in others):
        return Event.WHOLE
    if pilot is Status.OPEN:
        return Event.PILOT_OPEN
    return Event.FORGOTTEN if Status.UNKNOWN in others else Event.TORN


def replacements(recorded: Prepared, statuses: Sequence[Status], own: Sequence[Part]) -> tuple[Part, ...] | None:
    """Return the recorded parts with the lost ones replaced by own parts with the same rows, or None.

    An own part is used once, in any partition, and only in its stream. Recorded live parts stay as they are, because
    two partitions may have equal rows. If a stream has no live part, all own parts of the stream replace its recorded
    ones together, in any partitions.
    """
    live = [part for part, status in zip(recorded.parts, statuses, strict=True) if not status.is_aborted]
    lost = [part for part, status in zip(recorded.parts, statuses, strict=True) if status.is_aborted]
    kept = {part.transaction for part in live}
    named = {part.transaction for part in lost}
    own = [part for part in own if part.transaction not in kept]
    own.sort(key=lambda part: part.transaction in named)  # a lost part that names itself comes last
    with_live = {part.transaction.stream for part in live}
    found: list[Part] = []
    for stream in dict.fromkeys(part.transaction.stream for part in lost):
        wanted = [part for part in lost if part.transaction.stream == stream]
        mine = [part for part in own if part.transaction.stream == stream]
        same = _each(wanted, mine)
        if same is None and stream not in with_live and content_of(mine) == content_of(wanted):
            same = mine
        if same is None:
            return None
        found += same
    return (*live, *found)


def _each(wanted: Sequence[Part], own: Sequence[Part]) -> list[Part] | None:
    """Return an own part with the same content for each wanted one, or None."""
    left, found = list(own), []
    for part in wanted:
        same = next((each for each in left if each.content == part.content), None)
        if same is None:
            return None
        left.remove(same)
        found.append(same)
    return found
