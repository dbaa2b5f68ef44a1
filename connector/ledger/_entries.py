"""What the ledger holds: entries of a revisioned stream, as JSON that a person can read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from uuid import UUID

from connector.errors import LedgerFormatError

__all__ = [
    "AppState",
    "Barrier",
    "Committed",
    "Entry",
    "Part",
    "Prepared",
    "Resolved",
    "Snapshot",
    "from_bytes",
    "to_bytes",
]

#: Raised whenever an older version could misread an entry. Readers refuse what is newer than they are.
FORMAT_VERSION: Final = 1


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """One task's share of a batch: its transaction and what is in it."""

    transaction: UUID
    rows: int
    bytes: int
    digest: str
    """Of the rows' routing keys and events in their order; equal digests are equal rows."""
    event_time: int | None = None
    """Milliseconds that event time has come to with these rows, where the sink is told of it."""


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


@dataclass(frozen=True, slots=True)
class Committed:
    """The batch is visible as a whole, and will never be written again."""

    kind: ClassVar[str] = "committed"
    app: str
    query: str
    run: str
    nonce: str
    batch: int
    rows: int = 0


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
    """Whatever was decided on before this can no longer be appended: a batch without tasks found nothing prepared."""

    kind: ClassVar[str] = "barrier"
    nonce: str


@dataclass(frozen=True, slots=True)
class AppState:
    """What the ledger says of one application (a streaming query, or a ``txn_app_id``)."""

    app: str
    query: str = ""
    last: int = -1
    """The last batch that is committed; -1 before the first."""
    last_run: str = ""
    last_nonce: str = ""
    last_rows: int = 0
    open: Prepared | None = None
    """The batch that is prepared and not yet committed."""
    runs: tuple[str, ...] = ()
    """Runs of the query in the order in which they first appear, the newest last."""


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
        if version == FORMAT_VERSION:
            return _READERS[raw["type"]](raw)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerFormatError(
            f"an entry of {len(data)} bytes is not one of a ledger ({type(error).__name__}: {error}); something else "
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
    return fields


def _part_to_json(part: Part) -> list[Any]:
    fields: list[Any] = [str(part.transaction), part.rows, part.bytes, part.digest]
    # Only where there is one: versions that do not know it pass it over.
    return fields if part.event_time is None else [*fields, part.event_time]


def _app_to_json(app: AppState) -> dict[str, Any]:
    fields = {name: getattr(app, name) for name in app.__slots__}
    return {**fields, "open": None if app.open is None else _to_json(app.open)}


def _part(raw: list[Any]) -> Part:
    return Part(UUID(raw[0]), int(raw[1]), int(raw[2]), str(raw[3]), int(raw[4]) if len(raw) > 4 else None)


def _prepared(raw: dict[str, Any]) -> Prepared:
    parts = tuple(_part(part) for part in raw["parts"])
    return Prepared(
        raw["app"], raw["query"], raw["run"], raw["nonce"], int(raw["batch"]), int(raw["generation"]), parts
    )


def _committed(raw: dict[str, Any]) -> Committed:
    return Committed(raw["app"], raw["query"], raw["run"], raw["nonce"], int(raw["batch"]), int(raw["rows"]))


def _resolved(raw: dict[str, Any]) -> Resolved:
    return Resolved(raw["app"], raw["nonce"], int(raw["batch"]), raw["choice"])


def _barrier(raw: dict[str, Any]) -> Barrier:
    return Barrier(raw["nonce"])


def _app(raw: dict[str, Any]) -> AppState:
    return AppState(
        raw["app"],
        raw["query"],
        int(raw["last"]),
        raw["last_run"],
        raw["last_nonce"],
        int(raw["last_rows"]),
        None if raw["open"] is None else _prepared(raw["open"]),
        tuple(raw["runs"]),
    )


def _snapshot(raw: dict[str, Any]) -> Snapshot:
    return Snapshot(tuple(_app(app) for app in raw["apps"]), raw["nonce"])


_READERS: Final[Mapping[str, Callable[[dict[str, Any]], Entry]]] = {
    "barrier": _barrier,
    "committed": _committed,
    "prepared": _prepared,
    "resolved": _resolved,
    "snapshot": _snapshot,
}
