"""State of a reader group: who reads which segments from where, and which checkpoints are under way.

All members of a group hold the same state. It is a value: an update makes another one (:mod:`.updates`). Maps keep the
order in which they were read or grew: a member acquires unassigned segments in its own, which others need not share.
(Java: ``ReaderGroupState``, ``CheckpointState``, ``ReaderGroupConfig``.)
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from pravega_connector.errors import ConfigError, InvalidNameError
from pravega_connector.wire import StreamCut, StreamName, parse_segment_name, segment_name

DEFAULT_CHECKPOINT_MS: Final = 30_000
DEFAULT_REFRESH_MS: Final = 3000
DEFAULT_OUTSTANDING: Final = 3
NO_ID: Final = uuid.UUID(int=0)
NO_GENERATION: Final = -1
END_OF_SEGMENT: Final = -1
"""Offset of a segment that was read to its end."""
SILENT: Final = "_SILENT_"
"""Part of the names of checkpoints that readers take without a word to the user."""
LEAST_DISTANCE: Final = 30_000
"""Milliseconds behind the tail that every reader counts with at least (``ASSUMED_LAG_MILLIS``)."""
GROUP_PREFIX: Final = "_RG"  # NameUtils.READER_GROUP_STREAM_PREFIX

T = TypeVar("T")


def group_stream(scope: str, group: str) -> StreamName:
    """Stream that holds the state of a reader group."""
    return StreamName(scope, GROUP_PREFIX + group)


def group_of(stream: StreamName) -> str | None:
    """The reader group whose state a stream holds; None for other streams."""
    name = stream.stream.removeprefix(GROUP_PREFIX)
    return None if name == stream.stream else name


class Segment(NamedTuple):
    """A segment of any stream; ``str()`` is its name on the wire."""

    stream: StreamName
    id: int

    def __str__(self) -> str:
        return segment_name(self.stream, self.id)

    @classmethod
    def parse(cls, name: str) -> Segment:
        """Segment of a name. Raises InvalidNameError."""
        segment = cls(*parse_segment_name(name))
        if "#transaction" in name:
            raise InvalidNameError(f"invalid segment name {name!r}: it is a transaction's")
        return segment


class KeyRange(NamedTuple):
    """Routing keys of a segment, ``low <= key < high``."""

    low: float
    high: float


Positions = Mapping[Segment, int]
"""Offsets by segment; END_OF_SEGMENT for one that has ended."""
Ranges = Mapping[Segment, KeyRange | None]
"""Key ranges by segment; None where nobody has said it: that of segments from which a group began."""


class Ranged(NamedTuple):
    """Offsets by segment, and the key ranges of the same segments in the same order."""

    positions: Positions = MappingProxyType({})
    ranges: Ranges = MappingProxyType({})

    @classmethod
    def of(cls, positions: Positions, ranges: Ranges = MappingProxyType({})) -> Ranged:
        """The positions, with those of the ranges that are theirs."""
        return cls(dict(positions), {segment: ranges.get(segment) for segment in positions})


class Retention(Enum):
    """How a group holds back the retention of its streams (``StreamDataRetention``)."""

    NONE = 0
    MANUAL = 1
    AUTOMATIC = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What has bytes of its own."""

    later: tuple[bytes, ...] = field(default=(), compare=False, repr=False)
    """Bodies of the revisions that this version does not know: they are written again as they were."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a group begins or ends in a stream, with the bytes of it that were read."""

    cut: StreamCut | None = None
    """None is unbounded: the stream's head, or no end."""
    data: bytes | None = field(default=None, compare=False, repr=False)
    """Java orders the segments of a cut its own way: a state that is written again keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig(Written):
    """Configuration of a group, as the controller has it too."""

    start: Mapping[StreamName, Bound]
    """The streams that are read, and from where."""
    end: Mapping[StreamName, Bound] = field(default_factory=dict)
    """Where the group ends; a stream that is missing has no end."""
    checkpoint_ms: int = DEFAULT_CHECKPOINT_MS
    """Milliseconds between automatic checkpoints; none if not positive: then no segment ever changes its reader."""
    refresh_ms: int = DEFAULT_REFRESH_MS
    """Milliseconds between looks at the state."""
    max_outstanding: int = DEFAULT_OUTSTANDING
    """Checkpoints that may be asked for while none of them is complete."""
    retention: Retention = Retention.NONE
    generation: int = NO_GENERATION
    """Number of changes of this configuration; -1 for one that the controller has not seen."""
    id: uuid.UUID = NO_ID
    """Tells the group from an earlier one of the same name."""

    @property
    def settings(self) -> tuple[Any, ...]:
        """All but generation and id, to compare with what a user asks for.

        (``ReaderGroupConfig.equals``, which also tells no end from an end that is unbounded.)
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
    """Whether Java takes these offsets by segment id for a beginning and an end."""
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
    """Checkpoints that were begun: who is still to take them, and what the others have said."""

    names: tuple[str, ...] = ()
    """In the order in which they were begun; some of them may have no positions any more."""
    waiting: Mapping[str, Mapping[str, None]] = field(default_factory=_none)
    """Readers, as an ordered set, that have not taken a checkpoint yet; complete ones are missing."""
    positions: Mapping[str, Positions] = field(default_factory=_none)
    last: Positions = field(default_factory=_none)
    """Positions of the last complete one that was not silent; empty if there is none."""
    published: bool = True
    """Whether the last one was told to the controller."""

    def is_complete(self, name: str) -> bool:
        """Whether all readers have taken it; also if it is gone."""
        return name not in self.waiting

    def of(self, reader: str) -> list[str]:
        """Checkpoints that wait for a reader, in the order in which Java's clients have them.

        It counts: of those that are complete because a reader goes, the one that comes last becomes the last one.
        """
        found = [name for name, readers in self.waiting.items() if reader in readers]
        if len(found) < 2:
            return found
        # Seldom needed: most processes do without the package.
        from pravega_serde.java.hashing import table_order  # noqa: PLC0415

        places = 16  # a HashMap begins so, and grows when it is three quarters full
        while 4 * len(self.waiting) > 3 * places:
            places *= 2
        order = table_order(found, places)
        assert order is not None
        return [found[at] for at in order]

    @property
    def outstanding(self) -> list[str]:
        """Those that are not complete, without the silent ones."""
        return [name for name in self.names if name in self.waiting and SILENT not in name]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState(Written):
    """State of a group. It is also what a compaction writes (Java: ``CompactReaderGroupState``)."""

    config: GroupConfig
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    distances: Mapping[str, int] = field(default_factory=_none)
    """Milliseconds that readers say to be behind the tail."""
    future: Mapping[Segment, Mapping[int, None]] = field(default_factory=_none)
    """Segments that nobody may read yet: ids of the predecessors, as an ordered set, that are not read to the end."""
    assigned: Mapping[str, Positions] = field(default_factory=_none)
    """Segments of each reader that is online, from where it began or took its last checkpoint."""
    unassigned: Positions = field(default_factory=_none)
    last_read: Positions = field(default_factory=_none)
    """What readers have told of their positions since, for the time windows of the streams."""
    end: Positions = field(default_factory=_none)
    """Offsets at which the group ends; in segments that are missing it does not."""
    ranges: Ranges = field(default_factory=_none, compare=False)
    """Key ranges of all the segments above."""
    updating: bool = False
    """Whether somebody is about to change the configuration."""

    @property
    def readers(self) -> int:
        """Number of readers that are online."""
        return len(self.assigned)

    @property
    def segments(self) -> int:
        """Number of segments that are read, or wait for a reader."""
        return len(self.unassigned) + sum(map(len, self.assigned.values()))

    @property
    def positions(self) -> dict[Segment, int]:
        """Offsets of all segments that are read, or wait for a reader: behind what readers have delivered."""
        return {**self.unassigned, **{s: at for owned in self.assigned.values() for s, at in owned.items()}}

    @property
    def is_end_of_data(self) -> bool:
        """Whether there is nothing left to read, and never will be."""
        return not (self.future or self.unassigned or any(self.assigned.values()))

    def relative_sizes(self) -> dict[str, float]:
        """What each reader has to do, in units of the largest distance."""
        farthest = max((self._distance(r) for r, owned in self.assigned.items() if owned), default=1)
        return {r: len(owned) * self._distance(r) / farthest for r, owned in self.assigned.items()}

    def _distance(self, reader: str) -> int:
        return max(LEAST_DISTANCE, self.distances.get(reader, 0))

    def rank(self, reader: str) -> int:
        """Place of a reader by :meth:`relative_sizes`, 0 for the one with most to do; -1 if it is not online."""
        sizes = self.relative_sizes()
        return sorted(sizes, key=lambda r: -sizes[r]).index(reader) if reader in sizes else -1

    def to_acquire(self, reader: str) -> list[Segment]:
        """Segments that a reader may take now: its share, and at least one if there are any."""
        free = len(self.unassigned)
        share = math.floor(self.segments / max(1, self.readers) + 0.5) - len(self.assigned.get(reader, ()))
        count = max(1, free // max(1, self.readers), min(free, share))
        return list(self.unassigned)[:count]

    def has_too_many(self, reader: str) -> bool:
        """Whether a reader ought to give up a segment."""
        if len(self.assigned.get(reader, ())) <= 1:
            return False
        sizes = self.relative_sizes()
        return sizes[reader] > min(sizes.values()) + max(1, len(self.unassigned))

    def last_read_of(self, stream: StreamName) -> Ranged:
        """Positions that bound the time window of a stream."""
        return Ranged.of({s: at for s, at in self.last_read.items() if s.stream == stream}, self.ranges)


def state_of(config: GroupConfig, start: Ranged, end: Positions, *, updating: bool = False) -> GroupState:
    """State of a group that begins, or begins again: nobody reads, and all segments wait for readers."""
    return GroupState(
        config=config,
        unassigned=dict(start.positions),
        last_read=dict(start.positions),
        end=dict(end),
        ranges=dict(start.ranges),
        updating=updating,
    )


def ordered_set(items: Iterable[T]) -> dict[T, None]:
    """A set that keeps its order, and is equal to another one whatever the order."""
    return dict.fromkeys(items)


def by_stream(positions: Positions) -> dict[StreamName, StreamCut]:
    """Positions as a cut of each stream."""
    streams: dict[StreamName, dict[int, int]] = {}
    for segment, offset in positions.items():
        streams.setdefault(segment.stream, {})[segment.id] = offset
    return {stream: StreamCut(stream, inside) for stream, inside in streams.items()}
