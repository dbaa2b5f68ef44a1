"""Values that the controller takes and gives: a stream's configuration, and what follows a segment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from connector.client._proto import controller_pb2 as pb
from connector.errors import ConfigError
from connector.wire import SegmentRange

MAX_INT: Final = 2**31 - 1  # rates and counts are Java ints
MAX_LONG: Final = 2**63 - 1  # RetentionPolicy: "no upper limit"

ScalingKind = Literal["fixed", "events", "kbytes"]
RetentionKind = Literal["time", "size"]

_SCALING: Final[dict[ScalingKind, pb.ScalingPolicy.ScalingPolicyType]] = {
    "fixed": pb.ScalingPolicy.FIXED_NUM_SEGMENTS,
    "events": pb.ScalingPolicy.BY_RATE_IN_EVENTS_PER_SEC,
    "kbytes": pb.ScalingPolicy.BY_RATE_IN_KBYTES_PER_SEC,
}
_RETENTION: Final[dict[RetentionKind, pb.RetentionPolicy.RetentionPolicyType]] = {
    "time": pb.RetentionPolicy.TIME,
    "size": pb.RetentionPolicy.SIZE,
}
_SCALING_KINDS: Final = {number: kind for kind, number in _SCALING.items()}
_RETENTION_KINDS: Final = {number: kind for kind, number in _RETENTION.items()}


def _check(what: str, value: int, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigError(f"{what} must be a whole number from {low} to {high}, not {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPolicy:
    """How the number of a stream's segments follows its load: see ``fixed``, ``by_events`` and ``by_kbytes``."""

    kind: ScalingKind = "fixed"
    """What drives the scaling; "fixed" never scales on its own."""
    min_segments: int = 1
    """Least number of segments; with "fixed", the number at creation."""
    target_rate: int = 0
    """Events or KiB per second that one segment should take."""
    scale_factor: int = 0
    """Most parts that one segment is split into at once."""

    def __post_init__(self) -> None:
        if self.kind not in _SCALING:
            raise ConfigError(f"{self.kind!r} is no scaling policy; there are: {', '.join(_SCALING)}")
        least = 0 if self.kind == "fixed" else 1
        _check("the number of segments", self.min_segments, 1, MAX_INT)
        _check("the target rate", self.target_rate, least, MAX_INT)
        _check("the scale factor", self.scale_factor, least, MAX_INT)

    @classmethod
    def fixed(cls, segments: int) -> ScalingPolicy:
        """Always so many segments, unless somebody scales by hand."""
        return cls(min_segments=segments)

    @classmethod
    def by_events(cls, rate: int, factor: int = 2, min_segments: int = 1) -> ScalingPolicy:
        """Split a segment that takes more than ``rate`` events per second, merge those that take far fewer."""
        return cls(kind="events", target_rate=rate, scale_factor=factor, min_segments=min_segments)

    @classmethod
    def by_kbytes(cls, rate: int, factor: int = 2, min_segments: int = 1) -> ScalingPolicy:
        """Split a segment that takes more than ``rate`` KiB per second, merge those that take far less."""
        return cls(kind="kbytes", target_rate=rate, scale_factor=factor, min_segments=min_segments)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """How much of a stream the server keeps; it truncates the rest in its own time (every 30 minutes by default)."""

    kind: RetentionKind
    """What is limited: the age of events, or the bytes of the stream."""
    least: int
    """Milliseconds or bytes that are always kept."""
    most: int = MAX_LONG
    """Milliseconds or bytes kept at most while subscribers lag behind."""

    def __post_init__(self) -> None:
        if self.kind not in _RETENTION:
            raise ConfigError(f"{self.kind!r} is no retention policy; there are: {', '.join(_RETENTION)}")
        _check("the retention", self.least, 0, MAX_LONG)
        _check("the most that is retained", self.most, self.least, MAX_LONG)

    @classmethod
    def by_time(cls, ms: int, most_ms: int = MAX_LONG) -> RetentionPolicy:
        """Keep events for at least ``ms`` milliseconds."""
        return cls(kind="time", least=ms, most=most_ms)

    @classmethod
    def by_size(cls, size: int, most: int = MAX_LONG) -> RetentionPolicy:
        """Keep at least ``size`` bytes of events."""
        return cls(kind="size", least=size, most=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConfig:
    """The whole configuration of a stream; change one with :func:`dataclasses.replace` and write it back."""

    scaling: ScalingPolicy = ScalingPolicy()
    """How it scales."""
    retention: RetentionPolicy | None = None
    """What is kept; None keeps everything."""
    tags: tuple[str, ...] = ()
    """Words to find the stream by."""
    timestamp_aggregation_timeout_ms: int = 0
    """How long a silent writer holds the watermarks back; 0 is the server's default."""
    rollover_size_bytes: int = 0
    """Size of a segment's chunks in long-term storage; 0 is the server's default."""


@dataclass(frozen=True, slots=True)
class Successor:
    """A segment that takes over keys of a sealed one."""

    range: SegmentRange
    """The segment and its key range."""
    predecessors: tuple[int, ...]
    """All the segments it follows; for order per routing key, read every one of them to its end first."""


def encode_config(scope: str, stream: str, config: StreamConfig) -> pb.StreamConfig:
    """The configuration as the controller takes it."""
    scaling, retention = config.scaling, config.retention
    return pb.StreamConfig(
        streamInfo=pb.StreamInfo(scope=scope, stream=stream),
        scalingPolicy=pb.ScalingPolicy(
            scaleType=_SCALING[scaling.kind],
            targetRate=scaling.target_rate,
            scaleFactor=scaling.scale_factor,
            minNumSegments=scaling.min_segments,
        ),
        retentionPolicy=None if retention is None else _encode_retention(retention),
        tags=pb.Tags(tag=config.tags) if config.tags else None,
        timestampAggregationTimeout=config.timestamp_aggregation_timeout_ms,
        rolloverSizeBytes=config.rollover_size_bytes,
    )


def _encode_retention(retention: RetentionPolicy) -> pb.RetentionPolicy:
    return pb.RetentionPolicy(
        retentionType=_RETENTION[retention.kind], retentionParam=retention.least, retentionMax=retention.most
    )


def decode_config(message: pb.StreamConfig) -> StreamConfig:
    """A stream's configuration as the controller gave it."""
    scaling, retention = message.scalingPolicy, message.retentionPolicy
    kind = _RETENTION_KINDS.get(retention.retentionType)
    return StreamConfig(
        scaling=ScalingPolicy(
            kind=_SCALING_KINDS[scaling.scaleType],
            min_segments=scaling.minNumSegments,
            target_rate=scaling.targetRate,
            scale_factor=scaling.scaleFactor,
        ),
        retention=kind
        and RetentionPolicy(
            kind=kind,
            least=retention.retentionParam,
            # Servers before 0.10 have no upper limit, and streams made then say 0.
            most=retention.retentionMax or MAX_LONG,
        ),
        tags=tuple(sorted(message.tags.tag)),
        timestamp_aggregation_timeout_ms=message.timestampAggregationTimeout,
        rollover_size_bytes=message.rolloverSizeBytes,
    )


def decode_ranges(ranges: Iterable[pb.SegmentRange]) -> list[SegmentRange]:
    """Segments and their key ranges, in the order of their ids."""
    values = (SegmentRange(r.segmentId.segmentId, r.minKey, r.maxKey) for r in ranges)
    return sorted(values, key=lambda value: value.id)
