"""Entries of the ledger: events of a revisioned stream, as readable JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar, Final, NamedTuple
from uuid import UUID

from pravega_connector.controller.targets import name_of
from pravega_connector.errors import LedgerFormatError

#: Increased whenever another version could misread an entry. Until version 3, all transactions were of the target.
FORMAT_VERSION: Final = 4
_LANE: Final = 2**64


@dataclass(frozen=True, slots=True, order=True)
class Content:
    """Total of rows in any order and partitions. Contents can be added and compared."""

    rows: int = 0
    bytes: int = 0
    """Bytes of the events."""
    total: int = 0
    """Two sums modulo 2**64 over the rows' routing keys and events (:mod:`.digest`)."""

    def __add__(self, other: Content) -> Content:
        return Content(self.rows + other.rows, self.bytes + other.bytes, _sum_of_lanes(self.total, other.total))

    def __str__(self) -> str:
        return f"{self.rows} rows, {self.bytes} bytes"


def _sum_of_lanes(one: int, other: int) -> int:
    high, low = (one // _LANE + other // _LANE) % _LANE, (one + other) % _LANE
    return high * _LANE + low


class TransactionId(NamedTuple):
    """Transaction with its stream. A batch may have transactions of several streams."""

    stream: str
    """Stream and its creation, as ``controller.targets.target_of`` returns them."""
    id: UUID

    def __str__(self) -> str:
        return f"{self.id} of {name_of(self.stream)}"


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """Share of one task and one stream in a batch: its transaction and the content of it."""

    transaction: TransactionId
    content: Content
    event_time: int | None = None
    """Latest event time of these rows in milliseconds, if the sink has an event time column."""


def content_of(parts: Iterable[Part]) -> Content:
    """Return the content of a batch. Its total also depends on the stream of each row.

    A stream that is deleted and recreated counts as the same stream, so that a replay is recognized.
    """
    streams: dict[str, Content] = {}
    for part in parts:
        name = name_of(part.transaction.stream)
        streams[name] = streams.get(name, Content()) + part.content
    return sum((_bound(name, content) for name, content in streams.items()), Content())


def _bound(name: str, content: Content) -> Content:
    data = json.dumps([name, content.rows, content.bytes, content.total]).encode()
    return Content(content.rows, content.bytes, int.from_bytes(blake2b(data, digest_size=16).digest()))


#: Target of an application whose batches are of several streams. Its transactions name their streams.
SEVERAL_STREAMS: Final = "*"


class Key(NamedTuple):
    """Key of an application's state. An application may write to several targets, each with separate batches."""

    app: str
    target: str
    """The target's stream and its creation, as ``target_of`` returns them, or ``SEVERAL_STREAMS``."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """All tasks of a batch have flushed. Exactly these transactions are the batch.

    The first part is the batch's *pilot*: it decides for all, also in other streams. ``generation`` counts the sets
    that were recorded for one batch: a later set replaces the earlier.
    """

    kind: ClassVar[str] = "prepared"
    app: str
    query: str
    run: str
    nonce: str
    batch: int
    generation: int
    parts: tuple[Part, ...]
    target: str = ""
    time: int = 0
    """Milliseconds since 1970, by the clock of the driver that appended it."""

    @property
    def content(self) -> Content:
        """Content of all parts."""
        return content_of(self.parts)


@dataclass(frozen=True, slots=True)
class Committed:
    """The batch is completely visible, and will never be written again."""

    kind: ClassVar[str] = "committed"
    app: str
    query: str
    run: str
    nonce: str
    batch: int
    content: Content = Content()
    target: str = ""
    time: int = 0
    """Milliseconds since 1970, by the clock of the driver that appended it."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Operator's decision on a batch that no rule can finish.

    ``accept``: the batch counts as committed with its visible part. ``discard``: the batch counts as never prepared,
    and is written again completely when Spark replays it.
    """

    kind: ClassVar[str] = "resolved"
    app: str
    nonce: str
    batch: int
    choice: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Operator's statement that applications never write again. Their state is dropped."""

    kind: ClassVar[str] = "forgotten"
    keys: tuple[Key, ...]
    nonce: str


@dataclass(frozen=True, slots=True)
class Barrier:
    """End of all earlier decisions, which can no longer be appended: a batch without tasks found nothing prepared."""

    kind: ClassVar[str] = "barrier"
    nonce: str


@dataclass(frozen=True, slots=True)
class AppState:
    """State of one application (a streaming query, or a ``txn_app_id``) with one target."""

    app: str
    query: str = ""
    last: int = -1
    """Last committed batch; -1 before the first."""
    seen: int = -1
    """Batch of the newest COMMITTED entry: ``last``, or an earlier replayed one."""
    seen_run: str = ""
    seen_nonce: str = ""
    recent: tuple[tuple[int, Content], ...] = ()
    """Last committed batches, ascending, with their contents, to compare a replayed batch with."""
    last_set: tuple[TransactionId, ...] = ()
    """Transactions of the last batch that had any. They may not all be visible yet."""
    open: Prepared | None = None
    """Batch that is prepared and not yet committed."""
    runs: tuple[str, ...] = ()
    """Runs of the query in the order in which they first appear, with the newest last."""
    target: str = ""
    time: int = 0
    """Time of the application's newest entry, in milliseconds since 1970."""

    @property
    def key(self) -> Key:
        """Key of this state."""
        return Key(self.app, self.target)

    def content_of(self, batch: int) -> Content | None:
        """Return the committed content of a batch; None if it is not known, or not any more."""
        return dict(self.recent).get(batch)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of some applications at this entry.

    Several consecutive snapshots contain the state of all entries before the first, which may then be truncated.
    """

    kind: ClassVar[str] = "snapshot"
    apps: tuple[AppState, ...]
    nonce: str


Entry = Prepared | Committed | Resolved | Forgotten | Barrier | Snapshot


def to_bytes(entry: Entry) -> bytes:
    """Return the bytes of an entry in the stream. Equal entries have equal bytes."""
    return json.dumps(
        {"v": FORMAT_VERSION, "type": entry.kind, **_to_json(entry)}, sort_keys=True, separators=(",", ":")
    ).encode()


def from_bytes(data: bytes) -> Entry:
    """Return the entry of these bytes, as the inverse of :func:`to_bytes`.

    Raises LedgerFormatError for other bytes and for other versions.
    """
    try:
        raw = json.loads(data)
        version = raw["v"]
        if version == FORMAT_VERSION:
            return _READERS[raw["type"]](raw)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise LedgerFormatError(
            f"invalid ledger entry of {len(data)} bytes ({type(error).__name__}: {error}); another program has "
            "written to this stream"
        ) from error
    raise LedgerFormatError(
        f"an entry has format version {version!r}, but this pravega-serde reads version {FORMAT_VERSION}: use the "
        "pravega-serde that wrote it"
    )


def _to_json(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, Snapshot):
        return {"apps": [_app_to_json(app) for app in entry.apps], "nonce": entry.nonce}
    fields = {name: getattr(entry, name) for name in entry.__slots__}
    if isinstance(entry, Prepared):
        streams = _numbered(part.transaction for part in entry.parts)
        fields |= {"streams": list(streams), "parts": [_part_to_json(part, streams) for part in entry.parts]}
    if isinstance(entry, Committed):
        fields["content"] = _content_to_json(entry.content)
    return fields


def _numbered(transactions: Iterable[TransactionId]) -> dict[str, int]:
    """Return the number of each stream. The names are in an entry only once."""
    names = dict.fromkeys(transaction.stream for transaction in transactions)
    return {name: number for number, name in enumerate(names)}


def _part_to_json(part: Part, streams: Mapping[str, int]) -> list[Any]:
    fields: list[Any] = [*_id_to_json(part.transaction, streams), *_content_to_json(part.content)]
    return fields if part.event_time is None else [*fields, part.event_time]


def _id_to_json(transaction: TransactionId, streams: Mapping[str, int]) -> list[Any]:
    return [streams[transaction.stream], str(transaction.id)]


def _content_to_json(content: Content) -> list[Any]:
    return [content.rows, content.bytes, f"{content.total:032x}"]


def _app_to_json(app: AppState) -> dict[str, Any]:
    fields = {name: getattr(app, name) for name in app.__slots__}
    streams = _numbered(app.last_set)
    return {
        **fields,
        "recent": [[batch, *_content_to_json(content)] for batch, content in app.recent],
        "streams": list(streams),
        "last_set": [_id_to_json(transaction, streams) for transaction in app.last_set],
        "open": None if app.open is None else _to_json(app.open),
    }


def _content(raw: list[Any]) -> Content:
    rows, size, total = raw
    return Content(int(rows), int(size), int(total, 16))


def _id(raw: list[Any], streams: list[str]) -> TransactionId:
    return TransactionId(streams[int(raw[0])], UUID(raw[1]))


def _part(raw: list[Any], streams: list[str]) -> Part:
    return Part(_id(raw, streams), _content(raw[2:5]), int(raw[5]) if len(raw) > 5 else None)


def _prepared(raw: dict[str, Any]) -> Prepared:
    return Prepared(
        raw["app"],
        raw["query"],
        raw["run"],
        raw["nonce"],
        int(raw["batch"]),
        int(raw["generation"]),
        tuple(_part(part, raw["streams"]) for part in raw["parts"]),
        raw["target"],
        int(raw["time"]),
    )


def _committed(raw: dict[str, Any]) -> Committed:
    return Committed(
        raw["app"],
        raw["query"],
        raw["run"],
        raw["nonce"],
        int(raw["batch"]),
        _content(raw["content"]),
        raw["target"],
        int(raw["time"]),
    )


def _resolved(raw: dict[str, Any]) -> Resolved:
    return Resolved(raw["app"], raw["nonce"], int(raw["batch"]), raw["choice"], raw["target"])


def _forgotten(raw: dict[str, Any]) -> Forgotten:
    return Forgotten(tuple(Key(app, target) for app, target in raw["keys"]), raw["nonce"])


def _barrier(raw: dict[str, Any]) -> Barrier:
    return Barrier(raw["nonce"])


def _app(raw: dict[str, Any]) -> AppState:
    return AppState(
        raw["app"],
        raw["query"],
        int(raw["last"]),
        int(raw["seen"]),
        raw["seen_run"],
        raw["seen_nonce"],
        tuple((int(batch), _content(content)) for batch, *content in raw["recent"]),
        tuple(_id(each, raw["streams"]) for each in raw["last_set"]),
        None if raw["open"] is None else _prepared(raw["open"]),
        tuple(raw["runs"]),
        raw["target"],
        int(raw["time"]),
    )


def _snapshot(raw: dict[str, Any]) -> Snapshot:
    return Snapshot(tuple(map(_app, raw["apps"])), raw["nonce"])


_READERS: Final[Mapping[str, Callable[[dict[str, Any]], Entry]]] = {
    "barrier": _barrier,
    "committed": _committed,
    "forgotten": _forgotten,
    "prepared": _prepared,
    "resolved": _resolved,
    "snapshot": _snapshot,
}
