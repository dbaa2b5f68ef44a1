"""Watermarks of one stream, computed from its writers' noted times like the controller does."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from pravega_connector.testing.history import StreamHistory
from pravega_connector.wire import SegmentRange
from pravega_connector.wire.versioned import put_compact_int, put_versioned


@dataclass
class _Writer:
    time: int
    cut: dict[int, int]
    gone: bool = False
    quiet_since: float | None = None
    """Time of the first check that found no noted time since the last watermark."""


class EventTime:
    """Times that writers have noted, and the watermark that results."""

    def __init__(self, history: StreamHistory) -> None:
        self._history = history
        self._writers: dict[str, _Writer] = {}
        self._low: int | None = None

    def note(self, writer: str, time: int, cut: Mapping[int, int]) -> str:
        """Record a writer's time at a position. Return the name of the outcome."""
        known = self._writers.get(writer)
        if known is not None and time < known.time:
            return "INVALID_TIME"
        if not self._history.covers(cut) or (known is not None and not self._history.precedes(known.cut, cut)):
            return "INVALID_POSITION"
        self._writers[writer] = _Writer(time, dict(cut))
        return "SUCCESS"

    def remove(self, writer: str) -> bool:
        """Stop waiting for a writer. Its last noted time still counts.

        Return False for a writer that never noted a time.
        """
        if writer not in self._writers:
            return False
        self._writers[writer].gone = True
        return True

    def look(self, now: float, timeout_ms: int) -> bytes | None:
        """Return the due watermark, encoded, or None while a writer must be waited for."""
        fresh = {name: each for name, each in self._writers.items() if self._low is None or each.time > self._low}
        for name in [name for name, each in self._writers.items() if each.gone and name not in fresh]:
            del self._writers[name]
        for name, each in self._writers.items():
            each.quiet_since = None if name in fresh else each.quiet_since or now
            if each.quiet_since is not None and now - each.quiet_since <= timeout_ms / 1000:
                return None
        if not fresh:
            return None
        times = [each.time for each in fresh.values()]
        self._low = min(times)
        ranges = self._history.segments()
        cut = self._history.latest(each.cut for each in fresh.values())
        return encode_watermark(min(times), max(times), {ranges[i]: offset for i, offset in cut.items()})


def encode_watermark(low: int, high: int, cut: Mapping[SegmentRange, int]) -> bytes:
    """Encode a watermark for its stream; see :mod:`pravega_connector.wire.internal_records`."""
    entries = b"".join(
        put_versioned([struct.pack(">qdd", segment.id, segment.low, segment.high)]) + struct.pack(">q", offset)
        for segment, offset in cut.items()
    )
    return put_versioned([struct.pack(">qq", low, high) + put_compact_int(len(cut)) + entries])
