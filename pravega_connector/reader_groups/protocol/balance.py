"""Distribution of the segments of a group among its readers: which reader acquires segments, and which one releases.

The rules are Java's (``ReaderGroupStateManager``, ``ReaderGroupState``), so that readers of both languages agree.
"""

from __future__ import annotations

import math

from pravega_connector.reader_groups.protocol.state import LEAST_DISTANCE, GroupState, Segment


def relative_sizes(state: GroupState) -> dict[str, float]:
    """Return the work of each reader, in units of the largest distance."""
    farthest = max((_distance(state, r) for r, owned in state.assigned.items() if owned), default=1)
    return {r: len(owned) * _distance(state, r) / farthest for r, owned in state.assigned.items()}


def _distance(state: GroupState, reader: str) -> int:
    return max(LEAST_DISTANCE, state.distances.get(reader, 0))


def rank(state: GroupState, reader: str) -> int:
    """Return the rank of a reader by :func:`relative_sizes`.

    The rank is 0 for the reader with the most work, and -1 for a reader that is not online.
    """
    sizes = relative_sizes(state)
    return sorted(sizes, key=lambda r: -sizes[r]).index(reader) if reader in sizes else -1


def to_acquire(state: GroupState, reader: str) -> list[Segment]:
    """Return the segments that a reader may acquire now: its share, and at least one if there are any."""
    free = len(state.unassigned)
    share = math.floor(state.segments / max(1, state.readers) + 0.5) - len(state.assigned.get(reader, ()))
    count = max(1, free // max(1, state.readers), min(free, share))
    return list(state.unassigned)[:count]


def has_too_many(state: GroupState, reader: str) -> bool:
    """Return True if a reader should release a segment."""
    if len(state.assigned.get(reader, ())) <= 1:
        return False
    sizes = relative_sizes(state)
    return sizes[reader] > min(sizes.values()) + max(1, len(state.unassigned))
