"""The ledger's stream, and what its entries amount to."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Final
from uuid import UUID, uuid4

from ..client import PravegaClient, Revision, ScalingPolicy, StreamName
from ..client.deadline import Deadline
from ..errors import DataLossError, OutcomeUnknownError
from .entries import (
    AppState,
    Barrier,
    Committed,
    Content,
    Entry,
    Prepared,
    Resolved,
    Snapshot,
    from_bytes,
    to_bytes,
)

__all__ = ["Ledger", "LedgerState", "fold", "ledger_name", "snapshot_of"]

#: Runs of a query that are remembered. Fencing a run that was forgotten is only later, not missing: its appends fail.
MAX_RUNS: Final = 16
#: Committed batches of an application whose contents are remembered, some 60 bytes each in a snapshot. As many as Spark
#: keeps in a checkpoint (spark.sql.streaming.minBatchesToRetain): an older one it cannot repeat.
MAX_RECENT: Final = 100
#: Entries after a snapshot that make the next one worth writing: some 250 batches.
COMPACT_AFTER: Final = 512

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


def ledger_name(target: StreamName, name: str | None = None) -> StreamName:
    """The stream that keeps the ledger of a target: beside it, by default with ``-ledger`` behind its name."""
    return StreamName(target.scope, name or f"{target.stream}-ledger")


class _Entries:
    """Serializer of entries: see :mod:`connector.ledger.entries`."""

    serialize = staticmethod(to_bytes)
    deserialize = staticmethod(from_bytes)


class Ledger:
    """Reads and appends to the ledger of one target stream. Thread safe; what was read once is not read again.

    Creates the stream if it is missing. Raises AuthenticationError, ConfigError if it has several segments.
    """

    def __init__(self, client: PravegaClient, name: StreamName) -> None:
        # Creating takes a right on the whole scope, which writing to an existing ledger does not need.
        if not client.controller.stream_exists(name):
            client.controller.create_stream(name, ScalingPolicy.fixed(1))
        self.name = name
        self._client = client
        self._stream = client.revisioned(name, _Entries())
        self._lock = threading.Lock()
        self._revision: Revision | None = None
        self._state: LedgerState = {}
        self._since_snapshot = 0

    def check_writable(self) -> None:
        """Raise AuthenticationError if it can only be read, which would show with the first entry otherwise."""
        self._client.stores.token(self.name, write=True)

    def read(self) -> tuple[Revision, LedgerState]:
        """The end of the ledger, and the state there. Raises LedgerFormatError."""
        with self._lock:
            try:
                self._advance()
            except DataLossError:  # compacted meanwhile: a snapshot has all that was dropped
                self._revision = None
                self._advance()
            assert self._revision is not None
            return self._revision, self._state

    def _advance(self) -> None:
        if self._revision is None:
            self._revision = self._stream.mark() or self._stream.oldest_revision()
            self._state, self._since_snapshot = {}, 0
        for revision, entry in self._stream.read_from(self._revision):
            self._take(entry, revision)

    def _take(self, entry: Entry, end: Revision) -> None:
        self._state = fold([entry], self._state)
        self._since_snapshot = 0 if isinstance(entry, Snapshot) else self._since_snapshot + 1
        self._revision = end

    def last_set(self, app: str) -> tuple[UUID, ...]:
        """Transactions of an application's last batch, as far as they are known without a call."""
        known = self._state.get(app)
        return () if known is None else known.last_set

    def history(self) -> Iterator[tuple[Revision, Entry]]:
        """All entries that are still there, oldest first, each with the revision after it."""
        return self._stream.read_from(self._stream.oldest_revision())

    def append(self, entry: Entry, revision: Revision, *, deadline: Deadline) -> Revision | None:
        """Append if the ledger still ends at ``revision``; the new end, or None if it does not.

        An answer that was lost is asked for again with the same bytes until the deadline, then raises
        OutcomeUnknownError: the entry may be there, or may still come.
        """
        while True:
            try:
                end = self._stream.write_once(revision, entry)
            except OutcomeUnknownError:
                if deadline.passed:
                    raise
                continue
            with self._lock:
                if end is not None and self._revision == revision:
                    self._take(entry, end)
            return end

    def compact(self) -> bool:
        """Write a snapshot and drop what the one before made needless, if that is worth it; whether it was done.

        The mark goes to just before the newest snapshot, so that new readers begin there. What lay before
        is kept until the next time, for those who are reading it.
        """
        if self._since_snapshot < COMPACT_AFTER:  # as last read: what others have appended counts the next time
            return False
        revision, state = self.read()
        if self._since_snapshot < COMPACT_AFTER:  # another one has just done it
            return False
        before = self._stream.mark()
        if self._stream.write_conditionally(revision, snapshot_of(state)) is None:
            return False  # others are at work; they will come to it
        if self._stream.compare_and_set_mark(before, revision) and before is not None:
            self._stream.truncate_to_revision(before)
        return True

    def close(self) -> None:
        """Close the connection that appends."""
        self._stream.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
