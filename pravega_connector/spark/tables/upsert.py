"""Application of changes to a key-value table.

Theory of operation: retries, tasks that outlive their attempt, and other queries
----------------------------------------------------------------------------------
- Without an order, an entry is set or removed without a condition. A second attempt sets the same values. A task of an
  earlier attempt that still runs may set an older value after a newer one.
- With an order, a change is applied only if it is newer than the entry in the table, under the condition that the entry
  still has the version that was compared. So the entry of a key is the newest one of all changes, in any sequence and
  with any repetition. A removed entry has no order: an older change that arrives later adds the key again.
- With versions in the rows, each change has its own condition. If it is refused, and the entry already has the new
  value, an earlier attempt has made the change. If the entry has a third value, another client has changed it. After a
  lost answer, that client may have changed the new value: the outcome is unknown. After an earlier attempt of the task,
  too, but that attempt usually had the same conflict. So the error says only what this attempt knows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_connector.core import io
from pravega_connector.errors import OutcomeUnknownError, TableVersionError
from pravega_connector.spark.tables.changes import ChangeEncoder
from pravega_connector.spark.tables.winning_changes import QUOTED, Changes, newer
from pravega_connector.tables.columns import KeyBytes, KeySegments, key_rows
from pravega_connector.tables.requests import MAX_ENTRIES, MAX_UPDATE, SegmentRequests
from pravega_connector.wire import ANY_VERSION, NO_ENTRY, WireEntry, WireKey, entry_size
from pravega_serde.errors import DeserializationError

# Updates of one task that are sent side by side.
_SIDE_BY_SIDE: Final = 5
# Attempts of an update that other clients overtake each time, and the longest pause before the next one in seconds.
_ROUNDS: Final = 100
_LONGEST_PAUSE: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Change:
    """Change of one entry; the value is None to remove it."""

    key: bytes
    value: bytes | None
    version: int = ANY_VERSION


class Upsert:
    """Application of changes by one task."""

    def __init__(
        self, requests: SegmentRequests, segments: KeySegments, encoder: ChangeEncoder, *, repeated: bool = False
    ) -> None:
        """``repeated`` is True if an earlier attempt of the task may have made some of the changes."""
        self._requests, self._segments, self._encoder, self._repeated = requests, segments, encoder, repeated

    def apply(self, changes: Changes) -> None:
        """Make the changes, which are durable on return. Each entry is changed atomically, the batch is not.

        Raises TableVersionError for an entry that does not have the version of its row, OutcomeUnknownError if it may
        have had it, and DeserializationError for an entry whose order cannot be read. Raises the errors of
        SegmentRequests.
        """
        ids = self._segments.of(self._primary_keys(changes))
        pieces = [(int(each), rows) for each in np.unique(ids) for rows in _parts(np.flatnonzero(ids == each), changes)]
        io.side_by_side(lambda piece: self._apply(piece[0], changes.take(piece[1])), pieces, _SIDE_BY_SIDE)

    def _apply(self, segment_id: int, changes: Changes) -> None:
        if changes.orders is not None:
            self._apply_newer(segment_id, changes)
        elif changes.versions is not None:
            self._apply_at_versions(segment_id, changes)
        else:
            self._send(segment_id, _made(changes))

    def _apply_newer(self, segment_id: int, changes: Changes) -> None:
        """Make the changes that are newer than the entries in the table."""
        order = self._encoder.order
        assert order is not None
        left = changes
        for _ in self._rounds():
            found = self._requests.read(segment_id, left.keys.to_pylist())
            values = pa.array([each.value if each.version != NO_ENTRY else None for each in found], pa.binary())
            try:
                wins = newer(order, left, values)
            except DeserializationError as error:
                key = left.keys[error.row or 0].as_py()
                raise DeserializationError(
                    f"the value of key {key[:QUOTED]!r} of table {self._requests.table} has no readable column "
                    f"{order.column!r} for 'order_column': {error.reason}"
                ) from error
            missing = np.array([each.version == NO_ENTRY for each in found], bool)
            wins &= ~(missing & left.values.is_null().to_numpy(zero_copy_only=False))  # nothing to remove
            rows = np.flatnonzero(wins)
            if not len(rows):
                return
            left = left.take(rows)
            versions = [found[row].version for row in rows]
            if self._try(segment_id, _made(left, versions)):
                return

    def _apply_at_versions(self, segment_id: int, changes: Changes) -> None:
        """Make changes of entries that have the versions of the rows."""
        assert changes.versions is not None
        assert changes.segments is not None
        for key, other in zip(changes.keys.to_pylist(), changes.segments.to_pylist(), strict=True):
            if other is not None and other != segment_id:
                raise self._conflict(key, "its version belongs to another entry, or to an earlier table of this name")
        left, doubted = _made(changes, changes.versions.to_pylist()), False
        for _ in self._rounds():
            try:
                self._send(segment_id, left)
            except TableVersionError:
                pass
            except OutcomeUnknownError:
                doubted = True
            else:
                return
            found = self._requests.read(segment_id, [each.key for each in left])
            pairs = zip(left, found, strict=True)
            left = [change for change, entry in pairs if not self._is_made(change, entry, doubted=doubted)]
            if not left:
                return

    def _is_made(self, change: _Change, entry: WireEntry, *, doubted: bool) -> bool:
        """Return True if an entry has the new value.

        Raises TableVersionError if the change is not possible. Raises OutcomeUnknownError if it is not possible any
        more, and ``doubted`` says that it may have been made.
        """
        current = None if entry.version == NO_ENTRY else entry.value
        if entry.version == change.version:
            return change.value is None and current is None  # nothing to remove
        if current == change.value:
            return True
        if doubted:
            raise OutcomeUnknownError(
                f"whether the entry of key {change.key[:QUOTED]!r} of table {self._requests.table} was written is "
                "unknown: an answer was lost, and another client has changed the entry since. Read the table, and "
                "decide again"
            )
        raise self._conflict(change.key, "it was changed or removed since its version was read")

    def _conflict(self, key: bytes, reason: str) -> TableVersionError:
        what = "was not written"
        if self._repeated:
            what += " by this attempt of the task, but maybe by an earlier one"
        return TableVersionError(
            f"the entry of key {key[:QUOTED]!r} of table {self._requests.table} {what}: {reason}; "
            "read the table, decide again, and write the rows again"
        )

    # ---------------------------------------------------------------- inside

    def _primary_keys(self, changes: Changes) -> KeyBytes:
        config = self._encoder.config
        return key_rows(changes.keys, config.primary_key + config.secondary_key)[:, : config.primary_key]

    def _rounds(self) -> Iterator[int]:
        """Yield the numbers of attempts, with pauses in between. Raises TableVersionError after the last one."""
        for number in range(_ROUNDS):
            yield number
            io.sleep(random.uniform(0, min(0.01 * 2**number, _LONGEST_PAUSE)))
        raise TableVersionError(
            f"an update of table {self._requests.table} was refused {_ROUNDS} times, because other clients change the "
            "same entries all the time: write them with fewer clients"
        )

    def _try(self, segment_id: int, changes: Sequence[_Change]) -> bool:
        """Make changes with conditions. Return False if some are refused, or their outcome is unknown."""
        try:
            self._send(segment_id, changes)
        except (TableVersionError, OutcomeUnknownError):
            return False  # the next read of the entries finds out; it raises if the servers are unavailable
        return True

    def _send(self, segment_id: int, changes: Sequence[_Change]) -> None:
        entries = [WireEntry(each.key, each.version, each.value) for each in changes if each.value is not None]
        removed = [WireKey(each.key, each.version) for each in changes if each.value is None]
        if entries:
            self._requests.update(segment_id, entries)
        if removed:
            self._requests.remove(segment_id, removed)


def _made(changes: Changes, versions: Sequence[int] | None = None) -> list[_Change]:
    keys, values = changes.keys.to_pylist(), changes.values.to_pylist()
    if versions is None:
        return list(map(_Change, keys, values))
    return list(map(_Change, keys, values, versions))


def _parts(rows: npt.NDArray[np.int64], changes: Changes) -> Iterator[npt.NDArray[np.int64]]:
    """Divide rows into updates, each within the limits of a server."""
    taken = changes.take(rows)
    start = size = 0
    for at, (key, value) in enumerate(zip(taken.keys.to_pylist(), taken.values.to_pylist(), strict=True)):
        one = entry_size(key, value or b"")
        if at - start == MAX_ENTRIES or size + one > MAX_UPDATE:
            yield rows[start:at]
            start, size = at, 0
        size += one
    yield rows[start:]
