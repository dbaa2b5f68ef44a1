"""What a ledger's entries amount to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final
from uuid import uuid4

from connector.ledger._entries import AppState, Barrier, Committed, Content, Entry, Prepared, Resolved, Snapshot

__all__ = ["LedgerState", "fold", "snapshot_of"]

#: Runs of a query that are remembered. Fencing a run that was forgotten is only later, not missing: its appends fail.
MAX_RUNS: Final = 16
#: Committed batches of an application whose contents are remembered, some 60 bytes each in a snapshot. As many as Spark
#: keeps in a checkpoint (spark.sql.streaming.minBatchesToRetain): an older one it cannot repeat.
MAX_RECENT: Final = 100

LedgerState = Mapping[str, AppState]


def fold(entries: Iterable[Entry], state: LedgerState | None = None) -> dict[str, AppState]:
    """The state after entries that follow ``state``, by application."""
    apps = dict(state or {})
    for entry in entries:
        if isinstance(entry, Snapshot):
            apps = {app.app: app for app in entry.apps}
        elif not isinstance(entry, Barrier):
            apps[entry.app] = _after(apps.get(entry.app, AppState(entry.app)), entry)
    return apps


def _after(app: AppState, entry: Prepared | Committed | Resolved) -> AppState:
    if isinstance(entry, Prepared):
        return replace(_with_run(app, entry), open=entry)
    closed = app.open
    if closed is not None and closed.batch <= entry.batch:
        app = replace(app, open=None, last_set=tuple(part.transaction for part in closed.parts))
    if isinstance(entry, Committed):
        app = replace(_with_run(app, entry), last_run=entry.run, last_nonce=entry.nonce)
        return _with_batch(app, entry.batch, entry.content)
    if entry.choice != "accept":
        return app
    if closed is None or closed.batch != entry.batch:
        return replace(app, last=max(app.last, entry.batch))
    # What a replay has to be, to be taken for this batch, though a part of it is lost.
    return _with_batch(app, entry.batch, closed.content)


def _with_batch(app: AppState, batch: int, content: Content) -> AppState:
    others = [recent for recent in app.recent if recent[0] != batch]
    recent = sorted([*others, (batch, content)])[-MAX_RECENT:]
    return replace(app, last=max(app.last, batch), recent=tuple(recent))


def _with_run(app: AppState, entry: Prepared | Committed) -> AppState:
    runs = app.runs if not entry.run or entry.run in app.runs else (*app.runs, entry.run)[-MAX_RUNS:]
    return replace(app, query=entry.query or app.query, runs=runs)


def snapshot_of(state: LedgerState) -> Snapshot:
    """An entry that says the same as all entries so far."""
    return Snapshot(tuple(state[name] for name in sorted(state)), str(uuid4()))
