"""Entries of the ledger: events of a revisioned stream, as JSON that a person can read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from uuid import UUID

from ..errors import LedgerFormatError

__all__ = [
    "AppState",
    "Barrier",
    "Committed",
    "Content",
    "Entry",
    "Part",
    "Prepared",
    "Resolved",
    "Snapshot",
    "from_bytes",
    "to_bytes",
]

#: Raised whenever an older version could misread an entry. Readers refuse what is newer than they are.
#:
#: Version 1 had no totals: of a batch that is committed it kept the rows alone, and of a part a digest of the rows in
#: their order, which nothing can be compared with any more.
FORMAT_VERSION: Final = 2
_READABLE: Final = (1, FORMAT_VERSION)
_LANE: Final = 2**64


@dataclass(frozen=True, slots=True, order=True)
class Content:
    """Total of rows, in whatever order and partitions: contents can be added up and compared."""

    rows: int = 0
    bytes: int | None = 0
    """Bytes of the events; None in an entry of version 1, which has the rows alone."""
    total: int | None = 0
    """Two sums modulo 2**64 over the rows' routing keys and events (connector.sink.contents); None in version 1."""

    def __add__(self, other: Content) -> Content:
        known = self.bytes is not None and other.bytes is not None
        return Content(
            self.rows + other.rows,
            self.bytes + other.bytes if known else None,  # type: ignore[operator]
            _sum_of_lanes(self.total, other.total),
        )

    def same_as(self, other: Content) -> bool:
        """Whether these are the same rows, as far as both are known."""
        ours, theirs = (self.rows, self.bytes, self.total), (other.rows, other.bytes, other.total)
        return all(one == another for one, another in zip(ours, theirs, strict=True) if None not in (one, another))

    def __str__(self) -> str:
        return f"{self.rows} rows" + ("" if self.bytes is None else f", {self.bytes} bytes")


def _sum_of_lanes(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return None
    high, low = (one // _LANE + other // _LANE) % _LANE, (one + other) % _LANE
    return high * _LANE + low


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """One task's share of a batch: its transaction and what is in it."""

    transaction: UUID
    content: Content
    event_time: int | None = None
    """Milliseconds that event time has come to with these rows, if the sink has an event time column."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """All tasks of a batch have flushed; these transactions, and no others, are the batch.

    The first part is the batch's *pilot*. ``generation`` counts the sets that were recorded for one batch: a later one
    replaces the earlier.
    """

    kind: ClassVar[str] = "prepared"
    app: str
    query: str
    run: str
    nonce: str
    batch: int
    generation: int
    parts: tuple[Part, ...]

    @property
    def content(self) -> Content:
        """Content of all parts."""
        return sum((part.content for part in self.parts), Content())


@dataclass(frozen=True, slots=True)
class Committed:
    """The batch is visible as a whole, and will never be written again."""

    kind: ClassVar[str] = "committed"
    app: str
    query: str
    run: str
    nonce: str
    batch: int
    content: Content = Content()


@dataclass(frozen=True, slots=True)
class Resolved:
    """An operator's word on a batch that no rule can finish.

    ``accept``: it counts as committed with what is visible of it. ``discard``: it counts as never prepared, and is
    written again as a whole when Spark replays it.
    """

    kind: ClassVar[str] = "resolved"
    app: str
    nonce: str
    batch: int
    choice: str


@dataclass(frozen=True, slots=True)
class Barrier:
    """End of all earlier decisions, which can be appended no more: a batch without tasks found nothing prepared."""

    kind: ClassVar[str] = "barrier"
    nonce: str


@dataclass(frozen=True, slots=True)
class AppState:
    """State of one application (a streaming query, or a ``txn_app_id``)."""

    app: str
    query: str = ""
    last: int = -1
    """The last batch that is committed; -1 before the first."""
    last_run: str = ""
    last_nonce: str = ""
    recent: tuple[tuple[int, Content], ...] = ()
    """Batches that were committed last, ascending, and what is in them: a repeated one is compared with it."""
    last_set: tuple[UUID, ...] = ()
    """Transactions of the last batch that had some: it may be visible only in part as yet."""
    open: Prepared | None = None
    """The batch that is prepared and not yet committed."""
    runs: tuple[str, ...] = ()
    """Runs of the query in the order in which they first appear, the newest last."""

    def content_of(self, batch: int) -> Content | None:
        """Committed content of a batch; None if it is not known, or no longer."""
        return dict(self.recent).get(batch)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that the entries before it amount to, so that they may be truncated."""

    kind: ClassVar[str] = "snapshot"
    apps: tuple[AppState, ...]
    nonce: str


Entry = Prepared | Committed | Resolved | Barrier | Snapshot


def to_bytes(entry: Entry) -> bytes:
    """An entry as it stands in the stream. Equal entries are equal bytes."""
    return json.dumps(
        {"v": FORMAT_VERSION, "type": entry.kind, **_to_json(entry)}, sort_keys=True, separators=(",", ":")
    ).encode()


def from_bytes(data: bytes) -> Entry:
    """The inverse of :func:`to_bytes`. Raises LedgerFormatError for anything else, and for newer versions."""
    try:
        raw = json.loads(data)
        version = raw["v"]
        if version in _READABLE:
            return _READERS[raw["type"]](raw, version)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerFormatError(
            f"invalid ledger entry of {len(data)} bytes ({type(error).__name__}: {error}); something else "
            "has written to this stream"
        ) from error
    raise LedgerFormatError(
        f"an entry has format version {version!r} and this pravega-serde knows {FORMAT_VERSION}: use the version that "
        "wrote it, or a newer one"
    )


def _to_json(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, Snapshot):
        return {"apps": [_app_to_json(app) for app in entry.apps], "nonce": entry.nonce}
    fields = {name: getattr(entry, name) for name in entry.__slots__}
    if isinstance(entry, Prepared):
        fields["parts"] = [_part_to_json(part) for part in entry.parts]
    if isinstance(entry, Committed):
        fields["content"] = _content_to_json(entry.content)
    return fields


def _part_to_json(part: Part) -> list[Any]:
    fields: list[Any] = [str(part.transaction), *_content_to_json(part.content)]
    return fields if part.event_time is None else [*fields, part.event_time]


def _content_to_json(content: Content) -> list[Any]:
    return [content.rows, content.bytes, None if content.total is None else f"{content.total:032x}"]


def _app_to_json(app: AppState) -> dict[str, Any]:
    fields = {name: getattr(app, name) for name in app.__slots__}
    recent = [[batch, *_content_to_json(content)] for batch, content in app.recent]
    last_set = [str(id_) for id_ in app.last_set]
    return {**fields, "recent": recent, "last_set": last_set, "open": None if app.open is None else _to_json(app.open)}


def _content(raw: list[Any], version: int) -> Content:
    rows, size, total = raw
    known = version > 1 and total is not None
    return Content(int(rows), None if size is None else int(size), int(total, 16) if known else None)


def _part(raw: list[Any], version: int) -> Part:
    return Part(UUID(raw[0]), _content(raw[1:4], version), int(raw[4]) if len(raw) > 4 else None)


def _prepared(raw: dict[str, Any], version: int) -> Prepared:
    parts = tuple(_part(part, version) for part in raw["parts"])
    return Prepared(
        raw["app"], raw["query"], raw["run"], raw["nonce"], int(raw["batch"]), int(raw["generation"]), parts
    )


def _committed(raw: dict[str, Any], version: int) -> Committed:
    content = _rows_alone(raw["rows"]) if version == 1 else _content(raw["content"], version)
    return Committed(raw["app"], raw["query"], raw["run"], raw["nonce"], int(raw["batch"]), content)


def _rows_alone(rows: Any) -> Content:
    return Content(int(rows), None, None)


def _resolved(raw: dict[str, Any], version: int) -> Resolved:  # noqa: ARG001
    return Resolved(raw["app"], raw["nonce"], int(raw["batch"]), raw["choice"])


def _barrier(raw: dict[str, Any], version: int) -> Barrier:  # noqa: ARG001
    return Barrier(raw["nonce"])


def _app(raw: dict[str, Any], version: int) -> AppState:
    last = int(raw["last"])
    if version == 1:
        recent = [(last, _rows_alone(raw["last_rows"]))] if last >= 0 else []
    else:
        recent = [(int(batch), _content(content, version)) for batch, *content in raw["recent"]]
    return AppState(
        raw["app"],
        raw["query"],
        last,
        raw["last_run"],
        raw["last_nonce"],
        tuple(recent),
        tuple(map(UUID, raw.get("last_set", ()))),  # which version 1 does not have
        None if raw["open"] is None else _prepared(raw["open"], version),
        tuple(raw["runs"]),
    )


def _snapshot(raw: dict[str, Any], version: int) -> Snapshot:
    return Snapshot(tuple(_app(app, version) for app in raw["apps"]), raw["nonce"])


_READERS: Final[Mapping[str, Callable[[dict[str, Any], int], Entry]]] = {
    "barrier": _barrier,
    "committed": _committed,
    "prepared": _prepared,
    "resolved": _resolved,
    "snapshot": _snapshot,
}
