"""The ledger's stream, and what its entries amount to."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4

from pravega_connector.core.deadline import Deadline
from pravega_connector.core.values import STATE_TAG, StreamConfig
from pravega_connector.errors import (
    ConfigError,
    DataLossError,
    LedgerTruncatedError,
    NoSuchSegmentError,
    OutcomeUnknownError,
    StreamNotFoundError,
)
from pravega_connector.exactly_once.batch_commit.entries import (
    AppState,
    Barrier,
    Committed,
    Content,
    Entry,
    Forgotten,
    Key,
    Prepared,
    Resolved,
    Snapshot,
    from_bytes,
    to_bytes,
)
from pravega_connector.single_segment.revisioned import Revision, RevisionedStreamClient
from pravega_connector.wire import StreamName, segment_number
from pravega_serde import after_fork

if TYPE_CHECKING:
    from pravega_connector.controller.service import ControllerClient
    from pravega_connector.stores.segment_stores import SegmentStores

_log: Final = logging.getLogger(__name__)
#: Runs of a query that are remembered. Fencing a run that was forgotten is only later, not missing: its appends fail.
MAX_RUNS: Final = 16
#: Committed batches of an application whose contents are remembered, some 60 bytes each in a snapshot. As many as Spark
#: keeps in a checkpoint (spark.sql.streaming.minBatchesToRetain): an older one it cannot repeat.
MAX_RECENT: Final = 100
#: Entries after a snapshot that make the next one worth writing: some 250 batches.
COMPACT_AFTER: Final = 512
#: Bytes of one snapshot; a state that has more is in several. An entry has 8 MiB at most.
SNAPSHOT_BYTES: Final = 2**20
#: Bytes of a state that are worth a warning: each new process reads them before its first batch.
LARGE_STATE: Final = 4 * 2**20
#: Readings of a ledger that is compacted meanwhile: each compaction that is missed costs one.
_READINGS: Final = 3

LedgerState = Mapping[Key, AppState]


def fold(entries: Iterable[Entry], state: LedgerState | None = None) -> dict[Key, AppState]:
    """Return the state after entries that follow ``state``, by application and target."""
    apps = dict(state or {})
    for entry in entries:
        if isinstance(entry, Snapshot):
            apps |= {app.key: app for app in entry.apps}
        elif isinstance(entry, Forgotten):
            for key in entry.keys:
                apps.pop(key, None)
        elif not isinstance(entry, Barrier):
            key = Key(entry.app, entry.target)
            apps[key] = _after(apps.get(key) or AppState(entry.app, target=entry.target), entry)
    return apps


def _after(app: AppState, entry: Prepared | Committed | Resolved) -> AppState:
    if isinstance(entry, Prepared):
        return replace(_with_run(app, entry), open=entry)
    closed = app.open
    if closed is not None and closed.batch <= entry.batch:
        app = replace(app, open=None, last_set=tuple(part.transaction for part in closed.parts))
    if isinstance(entry, Committed):
        app = replace(_with_run(app, entry), seen=entry.batch, seen_run=entry.run, seen_nonce=entry.nonce)
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
    return replace(app, query=entry.query or app.query, runs=runs, time=max(app.time, entry.time))


def snapshots_of(state: LedgerState) -> list[Snapshot]:
    """Return entries that say the same as all entries so far: as many as the size of an entry makes necessary."""
    groups: list[list[AppState]] = [[]]
    size = 0
    for key in sorted(state):
        needed = len(to_bytes(Snapshot((state[key],), "")))
        if groups[-1] and size + needed > SNAPSHOT_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(state[key])
        size += needed
    return [Snapshot(tuple(group), str(uuid4())) for group in groups]


def ledger_name(target: StreamName, name: str | None = None) -> StreamName:
    """Return the stream that keeps the ledger of a target: in its scope, by default with ``-ledger`` behind its name.

    Raises ConfigError if it is the target itself.
    """
    ledger = StreamName(target.scope, name or f"{target.stream}-ledger")
    if ledger == target:
        raise ConfigError(f"stream {target} cannot be its own ledger: set ledger to the name of another stream")
    return ledger


def target_of(controller: ControllerClient, stream: StreamName) -> str:
    """Return the stream and its creation: ``scope/stream#number``, for the entries of the ledger.

    A stream that is deleted and created again goes on counting its segments. So the number of its first segment tells
    one creation from another, as long as the scope exists; a ledger is in the scope of its targets. Raises
    StreamNotFoundError.
    """
    first = min(segment_number(segment.id) for segment in controller.epoch_segments(stream, 0))
    return f"{stream}#{first}"


class _Entries:
    """Serializer of entries: see :mod:`pravega_connector.exactly_once.batch_commit.entries`."""

    serialize = staticmethod(to_bytes)
    deserialize = staticmethod(from_bytes)


class Ledger:
    """Reads and appends to a ledger of one or more target streams. Thread safe; what was read once is not read again.

    Creates the stream if it is missing, also if it is deleted later. Raises AuthenticationError, ConfigError if it has
    several segments or a retention policy.
    """

    def __init__(self, stores: SegmentStores, name: StreamName) -> None:
        self.name = name
        self._stores = stores
        self._lock = threading.Lock()
        self._stream = self._opened()
        self._revision: Revision | None = None
        self._state: LedgerState = {}
        self._since_snapshot = 0
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._lock = after_fork.inherited(f"ledger {self.name}")

    def _opened(self) -> RevisionedStreamClient[Entry]:
        stores, name = self._stores, self.name
        # Creating takes a right on the whole scope, which writing to an existing ledger does not need.
        if not stores.controller.stream_exists(name):
            stores.controller.create_stream_with(name, StreamConfig(tags=(STATE_TAG,)))
        if stores.controller.stream_config(name).retention is not None:
            raise ConfigError(
                f"ledger {name} has a retention policy, which would delete the record of committed batches: remove it "
                "with client.controller.update_stream, or name another stream in ledger"
            )
        return RevisionedStreamClient(stores, name, _Entries())

    def check_writable(self) -> None:
        """Raise AuthenticationError if it can only be read, which would show with the first entry otherwise."""
        self._stores.token(self.name, write=True)

    def read(self) -> tuple[Revision, LedgerState]:
        """Return the end of the ledger, and the state there. Raises LedgerFormatError, LedgerTruncatedError."""
        with self._lock:
            for _ in range(_READINGS):
                try:
                    self._advance()
                except DataLossError:  # compacted meanwhile: a snapshot has all that was dropped
                    self._revision = None
                except (NoSuchSegmentError, StreamNotFoundError):  # deleted, and perhaps created again
                    self._stream.close()
                    self._stream, self._revision = self._opened(), None
                else:
                    assert self._revision is not None
                    return self._revision, self._state
            raise LedgerTruncatedError(
                f"ledger {self.name} was truncated, so the record of committed batches is incomplete: look which "
                "batches are in the target, delete the ledger, and set ledger_adopt to true for one run"
            )

    def _advance(self) -> None:
        """Read on; on an error all is as before."""
        revision, since = self._revision, self._since_snapshot
        entries: list[Entry] = []
        if revision is None:
            revision, since = self._first(), 0
        for end, entry in self._stream.read_from(revision):
            revision = end
            entries.append(entry)
            since = 0 if isinstance(entry, Snapshot) else since + 1
        if entries or self._revision is None:
            self._state = fold(entries, None if self._revision is None else self._state)
        self._revision, self._since_snapshot = revision, since

    def _first(self) -> Revision:
        """Where a new reader begins. Raises DataLossError if entries from there on were truncated."""
        mark, oldest = self._stream.mark(), self._stream.oldest_revision()
        if oldest.offset > (0 if mark is None else mark.offset):
            raise DataLossError(f"ledger {self.name} begins at offset {oldest.offset}, after its snapshot")
        return oldest if mark is None else mark

    def last_set(self, key: Key) -> tuple[UUID, ...]:
        """Return the transactions of an application's last batch, as far as they are known without a call."""
        known = self._state.get(key)
        return () if known is None else known.last_set

    def history(self) -> Iterator[tuple[Revision, Entry]]:
        """Iterate over all entries that the stream still has, oldest first, each with the revision after it."""
        return self._stream.read_from(self._stream.oldest_revision())

    def append(self, entry: Entry, revision: Revision, *, deadline: Deadline) -> Revision | None:
        """Append if the ledger still ends at ``revision``; return the new end, or None if it does not.

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
            except DataLossError:  # what came first was compacted since; the next reading tells all
                return None
            with self._lock:
                if end is not None and self._revision == revision:
                    self._state = fold([entry], self._state)
                    self._since_snapshot += 1
                    self._revision = end
            return end

    def compact(self) -> bool:
        """Write snapshots and drop what those before made needless, if that is worth it; return whether it was done.

        The mark goes to just before the newest snapshots, so that new readers begin there. What lay before
        is kept until the next time, for those who are reading it.
        """
        if self._since_snapshot < COMPACT_AFTER:  # as last read: what others have appended counts the next time
            return False
        revision, state = self.read()
        if self._since_snapshot < COMPACT_AFTER:  # another one has just done it
            return False
        before, end = self._stream.mark(), revision
        for snapshot in snapshots_of(state):
            written = self._stream.write_conditionally(end, snapshot)
            if written is None:
                return False  # others are at work; they will come to it
            end = written
        if self._stream.compare_and_set_mark(before, revision) and before is not None:
            self._stream.truncate_to_revision(before)
        if end.offset - revision.offset > LARGE_STATE:
            _log.warning(
                "ledger %s keeps %d applications in %d bytes, which each new process reads: drop those that never "
                "write again with pravega-serde recover --forget or --forget-older",
                self.name, len(state), end.offset - revision.offset,
            )  # fmt: skip
        return True

    def close(self) -> None:
        """Close the connection that appends."""
        self._stream.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
