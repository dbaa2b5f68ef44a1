"""What a ledger's entries amount to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final
from uuid import uuid4

from connector.ledger._entries import AppState, Barrier, Committed, Entry, Prepared, Resolved, Snapshot

__all__ = ["LedgerState", "fold", "snapshot_of"]

#: Runs of a query that are remembered. Fencing a run that was forgotten is only later, not missing: its appends fail.
MAX_RUNS: Final = 16

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
    still_open = app.open if app.open is not None and app.open.batch > entry.batch else None
    if isinstance(entry, Resolved):
        last = max(app.last, entry.batch) if entry.choice == "accept" else app.last
        return replace(app, open=still_open, last=last)
    return replace(
        _with_run(app, entry),
        open=still_open,
        last=max(app.last, entry.batch),
        last_run=entry.run,
        last_nonce=entry.nonce,
        last_rows=entry.rows,
    )


def _with_run(app: AppState, entry: Prepared | Committed) -> AppState:
    runs = app.runs if not entry.run or entry.run in app.runs else (*app.runs, entry.run)[-MAX_RUNS:]
    return replace(app, query=entry.query or app.query, runs=runs)


def snapshot_of(state: LedgerState) -> Snapshot:
    """An entry that says the same as all entries so far."""
    return Snapshot(tuple(state[name] for name in sorted(state)), str(uuid4()))
