"""Names and ids of streams, tables, segments and transaction segments."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import Final

from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import InvalidNameError

MAX_NAME_LENGTH: Final = 255  # NameUtils.MAX_NAME_SIZE; the controller accepts 250 for streams that users create
MAX_SEGMENT_PART: Final = 2**31 - 1  # numbers and epochs are Java ints

# NameUtils.validateStreamName. Java's \p{Alnum} is ASCII. One leading underscore marks Pravega's own names.
_NAME: Final = re.compile(r"_?[A-Za-z0-9.\-]+")
_TABLE_SUFFIX: Final = "_kvtable"  # NameUtils.KVTABLE_SUFFIX
_GROUP_PREFIX: Final = "_RG"  # NameUtils.READER_GROUP_STREAM_PREFIX
# NameUtils.extractSegmentTokens: a segment without an epoch has epoch 0.
_SEGMENT: Final = re.compile(r"(?P<stream>[^/]+/[^/]+)/(?P<number>[0-9]{1,10})(?:\.#epoch\.(?P<epoch>[0-9]{1,10}))?")
_TRANSACTION: Final = "#transaction."
_TRANSACTION_SEGMENT: Final = re.compile(r"(?P<parent>.+)#transaction\.(?P<id>[0-9a-f]{32})")


def _check_name(kind: str, name: str) -> None:
    if not isinstance(name, str):
        raise InvalidNameError(f"the {kind} name must be a str, not {type(name).__name__}")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidNameError(
            f"the {kind} name {name[:40]!r}... has {len(name)} characters; the limit is {MAX_NAME_LENGTH}"
        )
    if _NAME.fullmatch(name) is None:
        raise InvalidNameError(
            f"invalid {kind} name {name!r}: only ASCII letters, digits, '.' and '-' are allowed (after one '_' if "
            "internal)"
        )


def validate_scope_name(name: str) -> str:
    """Return the name of a scope if it is valid, also an internal one such as ``_system``.

    Raises InvalidNameError.
    """
    _check_name("scope", name)
    return name


@dataclass(frozen=True, slots=True, order=True)
class StreamName(HintedNames):
    """Scope and name of a stream. ``str()`` returns ``scope/stream``.

    Raises InvalidNameError. Internal streams (``_MARKclicks``) are accepted, because they can be read. The controller
    refuses to create one.
    """

    scope: str
    """Scope of the stream."""
    stream: str
    """Name of the stream inside its scope."""

    def __post_init__(self) -> None:
        _check_name("scope", self.scope)
        _check_name("stream", self.stream.removesuffix(_TABLE_SUFFIX) if isinstance(self.stream, str) else self.stream)

    def __str__(self) -> str:
        return f"{self.scope}/{self.stream}"

    @classmethod
    def parse(cls, text: str) -> StreamName:
        """Parse ``scope/stream``. Raises InvalidNameError."""
        if not isinstance(text, str):
            raise InvalidNameError(
                f"the name of a stream must be a str such as 'scope/stream', not a {type(text).__name__}"
            )
        scope, slash, stream = text.partition("/")
        if not slash:
            raise InvalidNameError(f"invalid stream {text!r}: write scope/stream")
        return cls(scope, stream)

    @property
    def is_internal(self) -> bool:
        """True if Pravega itself created the stream or its scope."""
        return self.stream.startswith("_") or self.scope.startswith("_") or self.stream.endswith(_TABLE_SUFFIX)


@dataclass(frozen=True, slots=True, order=True)
class TableName(HintedNames):
    """Scope and name of a key-value table. ``str()`` returns ``scope/table``.

    Raises InvalidNameError.
    """

    scope: str
    """Scope of the table."""
    table: str
    """Name of the table inside its scope."""

    def __post_init__(self) -> None:
        _check_name("scope", self.scope)
        _check_name("table", self.table)

    def __str__(self) -> str:
        return f"{self.scope}/{self.table}"

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Parse ``scope/table``. Raises InvalidNameError."""
        if not isinstance(text, str):
            raise InvalidNameError(
                f"the name of a table must be a str such as 'scope/table', not a {type(text).__name__}"
            )
        scope, slash, table = text.partition("/")
        if not slash:
            raise InvalidNameError(f"invalid table {text!r}: write scope/table")
        return cls(scope, table)

    @property
    def segments(self) -> StreamName:
        """Stream to which the table's segments belong, by their names."""
        return StreamName(self.scope, self.table + _TABLE_SUFFIX)


def table_of(stream: StreamName) -> TableName | None:
    """Return the table with these segments (:attr:`TableName.segments`); None for the segments of a stream."""
    name = stream.stream.removesuffix(_TABLE_SUFFIX)
    return None if name == stream.stream else TableName(stream.scope, name)


def group_stream(scope: str, group: str) -> StreamName:
    """Return the stream with the state of a reader group."""
    return StreamName(scope, _GROUP_PREFIX + group)


def group_of(stream: StreamName) -> str | None:
    """Return the reader group with its state in ``stream``; None for other streams."""
    name = stream.stream.removeprefix(_GROUP_PREFIX)
    return None if name == stream.stream else name


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """Segment and the routing keys that it owns: ``low <= key < high``, within [0, 1)."""

    id: int
    """Segment id: epoch << 32 | number."""
    low: float
    """First key position that belongs to the segment."""
    high: float
    """First key position after the segment."""


def segment_number(segment_id: int) -> int:
    """Return the number of a segment, counted over the life of its stream."""
    return segment_id & 0xFFFFFFFF


def segment_epoch(segment_id: int) -> int:
    """Return the epoch in which a segment was created. Each scaling begins a new epoch."""
    return segment_id >> 32


def segment_id(number: int, epoch: int) -> int:
    """Return the id of a segment. Raises InvalidNameError unless both parts are non-negative Java ints."""
    if not (0 <= number <= MAX_SEGMENT_PART and 0 <= epoch <= MAX_SEGMENT_PART):
        raise InvalidNameError(f"invalid segment number {number} or epoch {epoch}: both must be in [0, 2**31)")
    return epoch << 32 | number


def segment_name(stream: StreamName, segment_id: int) -> str:
    """Return the name of a segment on the wire, ``scope/stream/0.#epoch.0``."""
    return f"{stream.scope}/{stream.stream}/{segment_id & 0xFFFFFFFF}.#epoch.{segment_id >> 32}"


def parse_segment_name(name: str) -> tuple[StreamName, int]:
    """Return stream and id of a segment. For a transaction's segment, they are its parent's.

    Raises InvalidNameError.
    """
    parent, _ = split_transaction(name)
    match = _SEGMENT.fullmatch(parent)
    if match is None:
        raise InvalidNameError(f"invalid segment name {name!r}: write scope/stream/0.#epoch.0")
    return StreamName.parse(match["stream"]), segment_id(int(match["number"]), int(match["epoch"] or 0))


def transaction_segment_name(parent: str, transaction: uuid.UUID) -> str:
    """Return the name of the segment with a transaction's events until they are merged into ``parent``."""
    return f"{parent}{_TRANSACTION}{transaction.int:032x}"


def split_transaction(name: str) -> tuple[str, uuid.UUID | None]:
    """Return the name of the parent segment, and the transaction's id (None for an ordinary segment)."""
    match = _TRANSACTION_SEGMENT.fullmatch(name)
    if match is None:
        return name, None
    return match["parent"], uuid.UUID(hex=match["id"])
