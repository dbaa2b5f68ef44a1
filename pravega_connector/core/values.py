"""Values of the controller's calls: configurations of streams and tables, segments, transactions, subscribers.

The outcome of a transaction is set once: OPEN becomes COMMITTING and then COMMITTED, or ABORTING and then ABORTED. It
does not change afterwards. A commit or an abort is *decided* when the controller has left OPEN. The server does the
rest.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, get_args

from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import (
    ConfigError,
    TransactionAbortedError,
    TransactionCommittedError,
    TransactionError,
    TransactionUnknownError,
)
from pravega_connector.wire import SegmentRange, StreamName

MAX_INT: Final = 2**31 - 1  # rates and counts are Java ints
MAX_LONG: Final = 2**63 - 1  # RetentionPolicy: "no upper limit"
# Several polls of the controller (every 10 s), and several micro-batches of a typical query.
AGGREGATION_TIMEOUT_MS: Final = 60_000
#: Tag of the streams that hold this project's own state. They hold no events, so no pattern includes them.
STATE_TAG: Final = "pravega-serde.state"

ScalingKind = Literal["fixed", "events", "kbytes"]
RetentionKind = Literal["time", "size"]


def _check(what: str, value: int, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigError(f"{what} must be a whole number from {low} to {high}, not {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPolicy(HintedNames):
    """Policy that adapts a stream's segments to its load: see ``fixed``, ``by_events`` and ``by_kbytes``."""

    kind: ScalingKind = "fixed"
    """Load that drives the scaling; "fixed" never scales on its own."""
    min_segments: int = 1
    """Least number of segments; with "fixed", the number at creation."""
    target_rate: int = 0
    """Events or KiB per second that one segment should take."""
    scale_factor: int = 0
    """Most parts that one segment is split into at once."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(ScalingKind):
            kinds = ", ".join(get_args(ScalingKind))
            raise ConfigError(f"invalid scaling policy {self.kind!r}; valid kinds: {kinds}")
        least = 0 if self.kind == "fixed" else 1
        _check("the number of segments", self.min_segments, 1, MAX_INT)
        _check("the target rate", self.target_rate, least, MAX_INT)
        _check("the scale factor", self.scale_factor, least, MAX_INT)

    @classmethod
    def fixed(cls, segments: int) -> ScalingPolicy:
        """Return a policy with a fixed number of segments, changed only by explicit scaling."""
        return cls(min_segments=segments)

    @classmethod
    def by_events(cls, rate: int, factor: int = 2, min_segments: int = 1) -> ScalingPolicy:
        """Return a policy that splits segments above ``rate`` events per second and merges those far below."""
        return cls(kind="events", target_rate=rate, scale_factor=factor, min_segments=min_segments)

    @classmethod
    def by_kbytes(cls, rate: int, factor: int = 2, min_segments: int = 1) -> ScalingPolicy:
        """Return a policy that splits segments above ``rate`` KiB per second and merges those far below."""
        return cls(kind="kbytes", target_rate=rate, scale_factor=factor, min_segments=min_segments)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy(HintedNames):
    """Policy for the part of a stream that the server keeps. It truncates the rest every 30 minutes by default."""

    kind: RetentionKind
    """Limited property: the age of events, or the bytes of the stream."""
    least: int
    """Milliseconds or bytes that are always kept."""
    most: int = MAX_LONG
    """Milliseconds or bytes kept at most while subscribers lag behind."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(RetentionKind):
            kinds = ", ".join(get_args(RetentionKind))
            raise ConfigError(f"invalid retention policy {self.kind!r}; valid kinds: {kinds}")
        _check("the retention", self.least, 0, MAX_LONG)
        _check("the most that is retained", self.most, self.least, MAX_LONG)

    @classmethod
    def by_time(cls, ms: int, most_ms: int = MAX_LONG) -> RetentionPolicy:
        """Return a policy that keeps events for at least ``ms`` milliseconds."""
        return cls(kind="time", least=ms, most=most_ms)

    @classmethod
    def by_size(cls, size: int, most: int = MAX_LONG) -> RetentionPolicy:
        """Return a policy that keeps at least ``size`` bytes of events."""
        return cls(kind="size", least=size, most=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConfig:
    """Complete configuration of a stream. To change it, use :func:`dataclasses.replace` and write it back."""

    scaling: ScalingPolicy = ScalingPolicy()
    """Scaling policy of the stream."""
    retention: RetentionPolicy | None = None
    """Retention policy of the stream; None keeps everything."""
    tags: tuple[str, ...] = ()
    """Words to find the stream by."""
    timestamp_aggregation_timeout_ms: int = AGGREGATION_TIMEOUT_MS
    """Milliseconds for which a writer that notes no later time holds the watermarks back.

    With 0, the server's default, the server waits for no writer. The fastest of several writers then determines the
    watermarks, and the lower bounds of the other writers' events are wrong. Choose more than the longest pause
    between two notes of a writer. It costs nothing in streams without noted times.
    """
    rollover_size_bytes: int = 0
    """Size of a segment's chunks in long-term storage; 0 is the server's default."""


#: Longest key of a table in bytes, primary and secondary together (AttributeId.MAX_LENGTH of the servers).
MAX_KEY_LENGTH: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConfig:
    """Configuration of a key-value table, which cannot be changed. Raises ConfigError."""

    primary_key: int
    """Length of each primary key in bytes."""
    secondary_key: int = 0
    """Length of each secondary key in bytes; 0 for a table without secondary keys."""
    partitions: int = 1
    """Number of segments. All entries of a primary key are in one of them."""
    rollover_size_bytes: int = 0
    """Size of a segment's chunks in long-term storage; 0 is the server's default."""

    def __post_init__(self) -> None:
        _check("the length of the primary key", self.primary_key, 1, MAX_KEY_LENGTH)
        _check("the length of the secondary key", self.secondary_key, 0, MAX_KEY_LENGTH - self.primary_key)
        _check("the number of partitions", self.partitions, 1, MAX_INT)
        _check("the rollover size", self.rollover_size_bytes, 0, MAX_LONG)


@dataclass(frozen=True, slots=True)
class Successor:
    """Segment that continues keys of a sealed segment."""

    range: SegmentRange
    """The segment and its key range."""
    predecessors: tuple[int, ...]
    """All segments that it follows. For order per routing key, read each of them to its end first."""


class TransactionStatus(Enum):
    """Status of a transaction at the controller."""

    OPEN = "open"
    """Open for events, until its lease expires."""
    COMMITTING = "committing"
    """Committed permanently; readers see its events soon."""
    COMMITTED = "committed"
    """Readers see its events."""
    ABORTING = "aborting"
    """Aborted permanently."""
    ABORTED = "aborted"
    """Aborted, and its events were deleted."""
    UNKNOWN = "unknown"
    """Never existed, or completed so long ago (24 h by default) that it is forgotten. The outcome is unknown."""

    @property
    def is_committed(self) -> bool:
        """True if it is decided that readers see its events."""
        return self in (TransactionStatus.COMMITTING, TransactionStatus.COMMITTED)

    @property
    def is_aborted(self) -> bool:
        """True if it is decided that readers never see its events."""
        return self in (TransactionStatus.ABORTING, TransactionStatus.ABORTED)


@dataclass(frozen=True, slots=True)
class CreatedTransaction:
    """Transaction that was just begun."""

    id: uuid.UUID
    """Its id, with which any process can commit or abort it."""
    segments: list[SegmentRange]
    """Parents of its segments. After a scaling during open transactions, they may not be segments of the stream."""


def status_error(
    status: TransactionStatus, action: str, stream: StreamName, transaction: uuid.UUID
) -> TransactionError:
    """Return the error for an action that the transaction's status, which is not OPEN, does not allow."""
    what = f"cannot {action} transaction {transaction} of stream {stream}"
    if status.is_committed:
        return TransactionCommittedError(f"{what}: it is {status.value}")
    if status.is_aborted:
        return TransactionAbortedError(
            f"{what}: it is {status.value}, by a client or because its lease ended, and its events were deleted; "
            "write them again in a new transaction"
        )
    return TransactionUnknownError(
        f"{what}: the controller does not know it. It never existed, or it ended longer ago than the controller "
        "remembers (24 h by default); check the stream for its events before you write them again"
    )


@dataclass(frozen=True, slots=True)
class SubscriberId:
    """Reader group as the controller distinguishes it from an earlier one of the same name."""

    group: str
    """Name of the reader group, in the stream's scope."""
    id: str
    """UUID of the reader group."""
    generation: int
    """Number of changes of its configuration."""
