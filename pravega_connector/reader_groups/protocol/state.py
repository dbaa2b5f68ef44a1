"""State of a reader group: which reader reads which segments from where, and the checkpoints under way.

All members of a group have the same state. It is a value: an update returns a new one (:mod:`.updates`). Maps keep the
order in which they were read or grew. A member acquires unassigned segments in its map's order, which may differ from
another member's. (Java: ``ReaderGroupState``, ``CheckpointState``, ``ReaderGroupConfig``.)
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from pravega_connector.errors import ConfigError, InvalidNameError
from pravega_connector.wire import StreamCut, StreamName, parse_segment_name, segment_name
from pravega_serde.java.hashing import table_order

DEFAULT_CHECKPOINT_MS: Final = 30_000
DEFAULT_REFRESH_MS: Final = 3000
DEFAULT_OUTSTANDING: Final = 3
NO_ID: Final = uuid.UUID(int=0)
NO_GENERATION: Final = -1
END_OF_SEGMENT: Final = -1
"""Offset of a segment that was read to its end."""
SILENT: Final = "_SILENT_"
"""Part of the names of checkpoints that readers take without notifying the user."""
LEAST_DISTANCE: Final = 30_000
"""Minimum distance to the tail, in milliseconds, that every reader counts with (``ASSUMED_LAG_MILLIS``)."""

T = TypeVar("T")


class Segment(NamedTuple):
    """Segment of any stream. ``str()`` returns its name on the wire."""

    stream: StreamName
    id: int

    def __str__(self) -> str:
        return segment_name(self.stream, self.id)

    @classmethod
    def parse(cls, name: str) -> Segment:
        """Return the segment with this name. Raises InvalidNameError."""
        segment = cls(*parse_segment_name(name))
        if "#transaction" in name:
            raise InvalidNameError(f"invalid segment name {name!r}: it is a transaction's")
        return segment


class KeyRange(NamedTuple):
    """Range of routing keys of a segment, ``low <= key < high``."""

    low: float
    high: float


Positions = Mapping[Segment, int]
"""Offsets by segment; END_OF_SEGMENT for one that has ended."""
Ranges = Mapping[Segment, KeyRange | None]
"""Key ranges by segment; None where it is unknown, for the segments from which a group began."""


class Ranged(NamedTuple):
    """Offsets by segment, and the key ranges of the same segments in the same order."""

    positions: Positions = MappingProxyType({})
    ranges: Ranges = MappingProxyType({})

    @classmethod
    def of(cls, positions: Positions, ranges: Ranges = MappingProxyType({})) -> Ranged:
        """Return the positions with the key ranges of their segments."""
        return cls(dict(positions), {segment: ranges.get(segment) for segment in positions})


class Retention(Enum):
    """Way in which a group limits the retention of its streams (``StreamDataRetention``)."""

    NONE = 0
    MANUAL = 1
    AUTOMATIC = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Base class of the values that are serialized with revisions."""

    later: tuple[bytes, ...] = field(default=(), compare=False, repr=False)
    """Bodies of the revisions that this version does not know. They are written back unchanged."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Start or end of a group in a stream, with the bytes from which it was decoded."""

    cut: StreamCut | None = None
    """Stream cut; None means unbounded: the stream's head, or no end."""
    data: bytes | None = field(default=None, compare=False, repr=False)
    """Bytes of the cut. Java orders its segments differently, and a state that is written again keeps that order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig(Written):
    """Configuration of a group, which the controller has too."""

    start: Mapping[StreamName, Bound]
    """Streams that are read, with their starts."""
    end: Mapping[StreamName, Bound] = field(default_factory=dict)
    """Ends of the group; a missing stream has no end."""
    checkpoint_ms: int = DEFAULT_CHECKPOINT_MS
    """Milliseconds between automatic checkpoints. If not positive, there are none; segments then keep their readers."""
    refresh_ms: int = DEFAULT_REFRESH_MS
    """Milliseconds between polls of the state."""
    max_outstanding: int = DEFAULT_OUTSTANDING
    """Maximum number of requested checkpoints that are not complete."""
    retention: Retention = Retention.NONE
    generation: int = NO_GENERATION
    """Number of changes of this configuration; -1 if the controller has not seen it."""
    id: uuid.UUID = NO_ID
    """Id that distinguishes the group from an earlier one of the same name."""

    @property
    def settings(self) -> tuple[Any, ...]:
        """All fields except generation and id, to compare with a requested configuration.

        ``ReaderGroupConfig.equals`` also distinguishes no end from an unbounded end.
        """
        fixed = self.checkpoint_ms, self.refresh_ms, self.max_outstanding, self.retention
        ends = {stream: bound for stream, bound in self.end.items() if bound.cut is not None}
        return dict(self.start), ends, *fixed

    def check(self) -> None:
        """Raise ConfigError for a configuration that stops Java's clients (``ReaderGroupConfigBuilder.build``)."""
        if not self.start:
            raise ConfigError("a reader group reads one stream at least: name the streams")
        if self.max_outstanding < 1:
            raise ConfigError(f"a reader group allows one outstanding checkpoint at least, not {self.max_outstanding}")
        for stream, bound in (*self.start.items(), *self.end.items()):
            if bound.cut is not None and bound.cut.stream != stream:
                raise ConfigError(f"a reader group has a stream cut of {bound.cut.stream} for {stream}")
        for stream, bound in self.end.items():
            if bound.cut is None:
                continue
            if stream not in self.start:
                raise ConfigError(f"a reader group ends in {stream}, which it does not read")
            begin = self.start[stream].cut
            if begin is not None and not _comes_before(begin.positions, bound.cut.positions):
                raise ConfigError(f"a reader group ends in {stream} at {bound.cut}, before it begins: {begin}")


def _comes_before(start: Mapping[int, int], end: Mapping[int, int]) -> bool:
    """Return True if Java accepts these offsets by segment id as start and end."""
    for segment in start.keys() & end.keys():
        begin, last = start[segment], end[segment]
        if (last >= 0 and begin > last) or begin < 0 <= last:
            return False
    if not start or not end:
        return not start and not end
    return min(start) <= min(end) and max(start) <= max(end)


def _none() -> dict[Any, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints(Written):
    """Checkpoints that were begun, the readers that have not taken them, and the reported positions."""

    names: tuple[str, ...] = ()
    """Names in the order in which they were begun. Some may have no positions any more."""
    waiting: Mapping[str, Mapping[str, None]] = field(default_factory=_none)
    """Readers, as an ordered set, that have not taken a checkpoint yet. Complete checkpoints are missing."""
    positions: Mapping[str, Positions] = field(default_factory=_none)
    last: Positions = field(default_factory=_none)
    """Positions of the last complete checkpoint that was not silent; empty if there is none."""
    published: bool = True
    """True if the last checkpoint was published to the controller."""

    def is_complete(self, name: str) -> bool:
        """Return True if all readers have taken the checkpoint, or if it does not exist any more."""
        return name not in self.waiting

    def of(self, reader: str) -> list[str]:
        """Return the checkpoints that wait for a reader, in the order of Java's clients.

        The order matters: if several become complete because a reader leaves, the final one becomes the last
        checkpoint.
        """
        found = [name for name, readers in self.waiting.items() if reader in readers]
        if len(found) < 2:
            return found
        # Rarely needed, so most processes do not import the package.
        places = 16  # initial size of a HashMap, which grows when it is three quarters full
        while 4 * len(self.waiting) > 3 * places:
            places *= 2
        order = table_order(found, places)
        assert order is not None
        return [found[at] for at in order]

    @property
    def outstanding(self) -> list[str]:
        """Checkpoints that are not complete, except silent ones."""
        return [name for name in self.names if name in self.waiting and SILENT not in name]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState(Written):
    """State of a group. A compaction writes it too (Java: ``CompactReaderGroupState``)."""

    config: GroupConfig
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    distances: Mapping[str, int] = field(default_factory=_none)
    """Distances to the tail that the readers reported, in milliseconds."""
    future: Mapping[Segment, Mapping[int, None]] = field(default_factory=_none)
    """Segments that no reader may read yet, with the ids of uncompleted predecessors as an ordered set."""
    assigned: Mapping[str, Positions] = field(default_factory=_none)
    """Segments of each online reader, with the offsets at which it began or took its last checkpoint."""
    unassigned: Positions = field(default_factory=_none)
    last_read: Positions = field(default_factory=_none)
    """Positions that readers have reported since, for the time windows of the streams."""
    end: Positions = field(default_factory=_none)
    """Offsets at which the group ends. In missing segments it has no end."""
    ranges: Ranges = field(default_factory=_none, compare=False)
    """Key ranges of all segments above."""
    updating: bool = False
    """True if a process is about to change the configuration."""

    @property
    def readers(self) -> int:
        """Number of readers that are online."""
        return len(self.assigned)

    @property
    def segments(self) -> int:
        """Number of segments that are read or wait for a reader."""
        return len(self.unassigned) + sum(map(len, self.assigned.values()))

    @property
    def positions(self) -> dict[Segment, int]:
        """Offsets, after the delivered events, of all segments that are read or wait for a reader."""
        return {**self.unassigned, **{s: at for owned in self.assigned.values() for s, at in owned.items()}}

    @property
    def is_end_of_data(self) -> bool:
        """True if there is nothing left to read and no more data can arrive."""
        return not (self.future or self.unassigned or any(self.assigned.values()))

    def last_read_of(self, stream: StreamName) -> Ranged:
        """Return the positions that bound the time window of a stream."""
        return Ranged.of({s: at for s, at in self.last_read.items() if s.stream == stream}, self.ranges)


def state_of(config: GroupConfig, start: Ranged, end: Positions, *, updating: bool = False) -> GroupState:
    """Return the state of a group that starts or restarts: no reader reads, and all segments wait for one."""
    return GroupState(
        config=config,
        unassigned=dict(start.positions),
        last_read=dict(start.positions),
        end=dict(end),
        ranges=dict(start.ranges),
        updating=updating,
    )


def ordered_set(items: Iterable[T]) -> dict[T, None]:
    """Return a set that keeps its order and is equal to another one in any order."""
    return dict.fromkeys(items)


def by_stream(positions: Positions) -> dict[StreamName, StreamCut]:
    """Return the positions as one stream cut for each stream."""
    streams: dict[StreamName, dict[int, int]] = {}
    for segment, offset in positions.items():
        streams.setdefault(segment.stream, {})[segment.id] = offset
    return {stream: StreamCut(stream, inside) for stream, inside in streams.items()}
