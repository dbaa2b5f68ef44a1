"""Stream of the ledger, and the state that results from its entries."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from pravega_connector.core import io
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
    TransactionId,
    from_bytes,
    to_bytes,
)
from pravega_connector.single_segment.revisioned import Revision, RevisionedStreamClient
from pravega_connector.wire import StreamName
from pravega_serde import after_fork

if TYPE_CHECKING:
    from pravega_connector.reader.positions import SupportsCuts
    from pravega_connector.stores.segment_stores import SegmentStores

_log: Final = logging.getLogger(__name__)
#: Number of a query's runs that are kept. A run that was dropped is fenced only later, when its appends fail.
MAX_RUNS: Final = 16
#: Number of an application's committed batches with known contents, about 60 bytes each in a snapshot. Spark keeps as
#: many in a checkpoint (spark.sql.streaming.minBatchesToRetain), and cannot replay an older batch.
MAX_RECENT: Final = 100
#: Number of entries between two snapshots: about 250 batches.
COMPACT_AFTER: Final = 512
#: Bytes of one snapshot. A larger state is split. An entry has at most 8 MiB.
SNAPSHOT_BYTES: Final = 2**20
#: Bytes of a state above which a warning is logged: each new process reads them before its first batch.
LARGE_STATE: Final = 4 * 2**20
#: Attempts to read a ledger that is compacted at the same time: each missed compaction costs one.
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
    # A replay must have this content to count as this batch, although a part of it is lost.
    return _with_batch(app, entry.batch, closed.content)


def _with_batch(app: AppState, batch: int, content: Content) -> AppState:
    others = [recent for recent in app.recent if recent[0] != batch]
    recent = sorted([*others, (batch, content)])[-MAX_RECENT:]
    return replace(app, last=max(app.last, batch), recent=tuple(recent))


def _with_run(app: AppState, entry: Prepared | Committed) -> AppState:
    runs = app.runs if not entry.run or entry.run in app.runs else (*app.runs, entry.run)[-MAX_RUNS:]
    return replace(app, query=entry.query or app.query, runs=runs, time=max(app.time, entry.time))


def snapshots_of(state: LedgerState) -> list[Snapshot]:
    """Return snapshots that replace all entries so far, split by the maximum size of an entry."""
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
    """Return the stream with the ledger of a target, by default named with the suffix ``-ledger``.

    ``name`` is a stream in the scope of the target, or ``scope/stream``. Raises ConfigError if it is the target itself.
    """
    name = name or f"{target.stream}-ledger"
    ledger = StreamName.parse(name) if "/" in name else StreamName(target.scope, name)
    if ledger == target:
        raise ConfigError(f"stream {target} cannot be its own ledger: set ledger to the name of another stream")
    return ledger


def require_ledger(client: SupportsCuts, ledger: StreamName, *targets: StreamName) -> None:
    """Raise StreamNotFoundError if the ledger does not exist, or for a target that does not exist, either."""
    try:
        client.require_stream(ledger)
    except StreamNotFoundError:
        for target in targets:
            client.require_stream(target)
        raise StreamNotFoundError(
            f"the ledger {ledger} does not exist: no exactly-once batch was written with it, so there is nothing to "
            "recover. If the writer has another ledger (its option 'ledger'), pass its name"
        ) from None


class _Entries:
    """Serializer of entries: see :mod:`pravega_connector.exactly_once.batch_commit.entries`."""

    serialize = staticmethod(to_bytes)
    deserialize = staticmethod(from_bytes)


class Ledger:
    """Reader and writer of the ledger of one or more target streams. Thread safe. Entries are read only once.

    Creates the stream if it does not exist, also if it is deleted later. Raises AuthenticationError, and ConfigError if
    it has several segments or a retention policy.
    """

    def __init__(self, stores: SegmentStores, name: StreamName) -> None:
        self.name = name
        self._stores = stores
        self._lock = io.lock()
        self._stream = self._opened()
        self._revision: Revision | None = None
        self._state: LedgerState = {}
        self._since_snapshot = 0
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._lock = after_fork.inherited(f"ledger {self.name}")

    def _opened(self) -> RevisionedStreamClient[Entry]:
        stores, name = self._stores, self.name
        # Creating a stream needs a permission on the whole scope, which writing to an existing ledger does not need.
        if not stores.controller.stream_exists(name):
            stores.controller.create_stream_with(name, StreamConfig(tags=(STATE_TAG,)))
        if stores.controller.stream_config(name).retention is not None:
            raise ConfigError(
                f"ledger {name} has a retention policy, which would delete the record of committed batches: remove "
                "the policy with client.controller.update_stream, or set ledger to another stream"
            )
        return RevisionedStreamClient(stores, name, _Entries())

    def check_writable(self) -> None:
        """Raise AuthenticationError if the ledger is read-only, rather than when the first entry is written."""
        self._stores.token(self.name, write=True)

    def read(self) -> tuple[Revision, LedgerState]:
        """Return the end of the ledger, and the state there. Raises LedgerFormatError, LedgerTruncatedError."""
        with self._lock:
            for _ in range(_READINGS):
                try:
                    self._advance()
                except DataLossError:  # compacted since: a snapshot has the dropped entries
                    self._revision = None
                except (NoSuchSegmentError, StreamNotFoundError):  # deleted, and perhaps recreated
                    self._stream.close()
                    self._stream, self._revision = self._opened(), None
                else:
                    assert self._revision is not None
                    return self._revision, self._state
            raise LedgerTruncatedError(
                f"ledger {self.name} was truncated, so the record of committed batches is incomplete: check which "
                "batches are in the target, delete the ledger, and set ledger_adopt to true for one run"
            )

    def _advance(self) -> None:
        """Read the new entries. An error changes nothing."""
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
        """Return the revision at which a new reader begins.

        Raises DataLossError if entries after it were truncated.
        """
        mark, oldest = self._stream.mark(), self._stream.oldest_revision()
        if oldest.offset > (0 if mark is None else mark.offset):
            raise DataLossError(f"ledger {self.name} begins at offset {oldest.offset}, after its snapshot")
        return oldest if mark is None else mark

    def last_set(self, key: Key) -> tuple[TransactionId, ...]:
        """Return the transactions of an application's last batch, if they are known without a call."""
        known = self._state.get(key)
        return () if known is None else known.last_set

    def history(self) -> Iterator[tuple[Revision, Entry]]:
        """Iterate over all entries that the stream still has, oldest first, each with the revision after it."""
        return self._stream.read_from(self._stream.oldest_revision())

    def append(self, entry: Entry, revision: Revision, *, deadline: Deadline) -> Revision | None:
        """Append if the ledger still ends at ``revision``. Return the new end, or None if it does not.

        After a lost answer, the same bytes are sent again until the deadline. Then it raises OutcomeUnknownError: the
        entry may exist, or may still be written.
        """
        while True:
            try:
                end = self._stream.write_once(revision, entry)
            except OutcomeUnknownError:
                if deadline.passed:
                    raise
                continue
            except DataLossError:  # earlier entries were compacted since; the next read finds the state
                return None
            with self._lock:
                if end is not None and self._revision == revision:
                    self._state = fold([entry], self._state)
                    self._since_snapshot += 1
                    self._revision = end
            return end

    def compact(self) -> bool:
        """Write snapshots and truncate the entries that earlier snapshots replaced, if enough entries are new.

        Returns True if it did. The mark moves to just before the newest snapshots, so that new readers begin there. The
        entries before it are kept until the next compaction, for processes that are reading them.
        """
        if self._since_snapshot < COMPACT_AFTER:  # as last read; other processes' entries count next time
            return False
        revision, state = self.read()
        if self._since_snapshot < COMPACT_AFTER:  # another process has just compacted it
            return False
        before, end = self._stream.mark(), revision
        for snapshot in snapshots_of(state):
            written = self._stream.write_conditionally(end, snapshot)
            if written is None:
                return False  # other processes are active and will compact it
            end = written
        if self._stream.compare_and_set_mark(before, revision) and before is not None:
            self._stream.truncate_to_revision(before)
        if end.offset - revision.offset > LARGE_STATE:
            _log.warning(
                "ledger %s keeps %d applications in %d bytes, which each new process reads: drop the applications "
                "that never write again with pravega-serde recover --forget or --forget-older",
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
