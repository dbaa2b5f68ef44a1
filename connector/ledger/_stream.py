"""The stream that a ledger lives in."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Final

from connector.client import PravegaClient, Revision, ScalingPolicy, StreamName
from connector.errors import DataLossError, OutcomeUnknownError
from connector.ledger._entries import Entry, Snapshot, from_bytes, to_bytes
from connector.ledger._state import LedgerState, fold, snapshot_of

__all__ = ["Ledger", "ledger_name"]

#: Entries after a snapshot that make the next one worth writing: some 250 batches.
COMPACT_AFTER: Final = 512


def ledger_name(target: StreamName, name: str | None = None) -> StreamName:
    """The stream that keeps the ledger of a target: beside it, by default with ``-ledger`` behind its name."""
    return StreamName(target.scope, name or f"{target.stream}-ledger")


class _Entries:
    """How entries are written: see :mod:`connector.ledger._entries`."""

    serialize = staticmethod(to_bytes)
    deserialize = staticmethod(from_bytes)


class Ledger:
    """Reads and appends to the ledger of one target stream. Thread safe; what was read once is not read again.

    Creates the stream if there is none. Raises AuthenticationError, ConfigError if it has several segments.
    """

    def __init__(self, client: PravegaClient, name: StreamName) -> None:
        # Creating takes a right on the whole scope, which whoever writes to a ledger that is there need not have.
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
            self._state = fold([entry], self._state)
            self._since_snapshot = 0 if isinstance(entry, Snapshot) else self._since_snapshot + 1
            self._revision = revision

    def history(self) -> Iterator[tuple[Revision, Entry]]:
        """All entries that are still there, oldest first, each with the revision after it."""
        return self._stream.read_from(self._stream.oldest_revision())

    def append(self, entry: Entry, revision: Revision, *, deadline: float) -> Revision | None:
        """Append if the ledger still ends at ``revision``; the new end, or None if it does not.

        An answer that was lost is asked for again with the same bytes until ``deadline`` (monotonic seconds), then
        raises OutcomeUnknownError: the entry may be there, or may still come.
        """
        while True:
            try:
                return self._stream.write_once(revision, entry)
            except OutcomeUnknownError:
                if time.monotonic() > deadline:
                    raise

    def compact(self) -> bool:
        """Write a snapshot and drop what the one before made needless, if that is worth it; whether it was done.

        The mark goes to just before the newest snapshot, so that whoever begins to read begins there. What lay before
        is kept until the next time, for those who are reading it.
        """
        revision, state = self.read()
        if self._since_snapshot < COMPACT_AFTER:
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
