"""State that several processes share. Each process applies the same updates in the same order.

The stream holds the history of the state: an initial value and updates. A compaction adds another initial value, which
replaces everything before it. The mark points to the latest initial value, and readers start there. (Java:
``StateSynchronizerImpl`` and ``UpdateOrInitSerializer``, which can share a stream with this module.)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Generic, TypeVar

from pravega_connector.core import io
from pravega_connector.core.connection import ProcessBound
from pravega_connector.errors import ConfigError, DataLossError
from pravega_connector.single_segment.revisioned import Revision, RevisionedStreamClient, SupportsBoth
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import StreamName
from pravega_serde import after_fork
from pravega_serde.errors import DeserializationError

S = TypeVar("S")
I = TypeVar("I")  # noqa: E741 - initial values, updates, states
U = TypeVar("U")

_INIT: Final = 1
_UPDATES: Final = 2
_I32: Final = struct.Struct(">i")
# Most restarts because the beginning was truncated: before each, other clients have compacted twice.
_RESTARTS: Final = 20


@dataclass(frozen=True, slots=True)
class _Entry(Generic[I, U]):
    """Initial value, in a list of one, or updates."""

    init: list[I]
    updates: list[U]


def encode_init(value: bytes) -> bytes:
    """Return the entry of an initial value."""
    return _I32.pack(_INIT) + value


def encode_updates(updates: Sequence[bytes]) -> bytes:
    """Return the entry of updates."""
    return _I32.pack(_UPDATES) + b"".join(_I32.pack(len(update)) + update for update in updates)


class _EntrySerializer(Generic[I, U]):
    """Serializer of entries: ``i32 1 | initial value`` or ``i32 2 | (i32 length | update)*``."""

    def __init__(self, init_serializer: SupportsBoth[I], update_serializer: SupportsBoth[U]) -> None:
        self._init, self._update = init_serializer, update_serializer

    def serialize(self, entry: _Entry[I, U], /) -> bytes:
        if entry.init:
            return encode_init(self._init.serialize(entry.init[0]))
        return encode_updates([self._update.serialize(update) for update in entry.updates])

    def deserialize(self, data: bytes, /) -> _Entry[I, U]:
        kind = _I32.unpack_from(data)[0] if len(data) >= _I32.size else 0
        if kind == _INIT:
            return _Entry([self._init.deserialize(data[_I32.size :])], [])
        if kind == _UPDATES:
            return _Entry([], [self._update.deserialize(update) for update in _split(data)])
        raise DeserializationError("invalid entry of a state synchronizer: its first byte is neither 1 nor 2")


def _split(data: bytes) -> list[bytes]:
    """Return the updates of an entry, as bytes."""
    parts, at = [], _I32.size
    while at < len(data):
        begin = at + _I32.size
        size = _I32.unpack_from(data, at)[0] if begin <= len(data) else -1
        if not 0 <= size <= len(data) - begin:
            raise DeserializationError(f"the update at byte {at} runs past the end of its entry")
        at = begin + size
        parts.append(data[begin:at])
    return parts


class StateSynchronizer(ProcessBound, Generic[S, I, U]):
    """State built from an initial value and updates, the same in all processes on the stream. Thread safe.

    ``create(initial value)`` builds the first state, and ``apply(state, update)`` builds the next one. Both must depend
    only on their arguments and must not change anything, so that all processes reach the same states. Two serializers
    write initial values and updates. All processes must use the same serializers. The stream must have one segment and
    no retention policy.
    """

    def __init__(
        self,
        stores: SegmentStores,
        stream: StreamName,
        *,
        create: Callable[[I], S],
        apply: Callable[[S, U], S],
        init_serializer: SupportsBoth[I],
        update_serializer: SupportsBoth[U],
    ) -> None:
        """Open the stream.

        Raises StreamNotFoundError, StreamSealedError, ConfigError for a stream of several segments.
        """
        self.stream = stream
        self._create, self._apply = create, apply
        self._log = RevisionedStreamClient(stores, stream, _EntrySerializer(init_serializer, update_serializer))
        self._lock = io.rlock()
        self._current: tuple[Revision, S] | None = None
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._lock = after_fork.inherited(f"StateSynchronizer of stream {self.stream}")

    @property
    def state(self) -> S | None:
        """State as of the last read or write of this object; None before the first one."""
        current = self._current
        return None if current is None else current[1]

    @property
    def revision(self) -> Revision | None:
        """Revision of :attr:`state`."""
        current = self._current
        return None if current is None else current[0]

    def initialize(self, value: I) -> bool:
        """Write the first state of the stream, unless it has one. Return True if this call wrote it.

        On return, :attr:`state` is current. Raises OutcomeUnknownError.
        """
        with self._lock:
            # A compacted stream begins later, and its tail is after offset 0.
            start = Revision(self.stream, self._log.oldest_revision().segment_id, 0)
            written = self._log.write_conditionally(start, _Entry([value], []))
            if written is None:
                self._restart()
                return False
            self._current = written, self._create(value)
            return True

    def fetch_updates(self) -> None:
        """Apply all updates that were written until now, so that the state is current.

        Raises DeserializationError, DataLossError.
        """
        with self._lock:
            try:
                self._follow(self._beginning() if self._current is None else self._current[0])
            except DataLossError:  # another client has compacted
                self._restart()

    def update_state(self, generate: Callable[[S], Sequence[U]]) -> Sequence[U]:
        """Write updates that follow from the current state, all or none. Return the written updates.

        If another client was first, ``generate`` is called again with the newer state. The call ends if ``generate``
        returns no updates. Updates are durable on return. Raises ConfigError if there is no state yet.

        Raises OutcomeUnknownError if the updates may be written, may not be, or may be written later. To find out, give
        updates unique names and look for a name in the later states.
        """
        with self._lock:
            while updates := list(generate(self._known_state())):
                assert self._current is not None
                written = self._log.write_conditionally(self._current[0], _Entry([], updates))
                if written is not None:
                    self._apply_all(written, updates)
                    return updates
                self.fetch_updates()
            return []

    def update_state_unconditionally(self, updates: Sequence[U]) -> None:
        """Write updates that are valid in any state.

        They are durable on return. The state has them after :meth:`fetch_updates`.
        """
        if updates:
            self._log.write_unconditionally(_Entry([], list(updates)))

    def compact(self, compactor: Callable[[S], I | None]) -> bool:
        """Replace the history of the present state by one initial value, and return True.

        If ``compactor`` returns None, nothing changes and the result is False. Entries before the previous compaction
        are truncated, so concurrent readers are not disturbed.
        """
        with self._lock:
            while (value := compactor(self._known_state())) is not None:
                assert self._current is not None
                before = self._current[0]
                written = self._log.write_conditionally(before, _Entry([value], []))
                if written is not None:
                    self._current = written, self._create(value)
                    self._move_mark(Revision(before.stream, before.segment_id, before.offset))
                    return True
                self.fetch_updates()
            return False

    def bytes_since_compaction(self) -> int:
        """Return the number of bytes that a new reader must read to reach the present state."""
        mark, current = self._log.mark(), self._current
        begin = mark.offset if mark is not None else 0
        return max(0, current[0].offset - begin) if current is not None else 0

    def close(self) -> None:
        """Close the connection that writes."""
        self._log.close()

    def __enter__(self) -> StateSynchronizer[S, I, U]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    # ---------------------------------------------------------------- inside

    def _known_state(self) -> S:
        if self._current is None:
            self.fetch_updates()
        if self._current is None:
            raise ConfigError(f"stream {self.stream} has no state yet: initialize it first")
        return self._current[1]

    def _beginning(self) -> Revision:
        return self._log.mark() or self._log.oldest_revision()

    def _follow(self, start: Revision) -> None:
        for revision, entry in self._log.read_from(start):
            if entry.init:
                self._current = revision, self._create(entry.init[0])
            else:
                self._apply_all(revision, entry.updates)

    def _apply_all(self, revision: Revision, updates: Sequence[U]) -> None:
        """Apply the updates of one entry. Ignore updates before the first initial value."""
        if self._current is None:
            return
        state = self._current[1]
        for update in updates:
            state = self._apply(state, update)
        last = max(len(updates) - 1, 0)
        self._current = Revision(revision.stream, revision.segment_id, revision.offset, last), state

    def _restart(self) -> None:
        """Restart at the latest compaction and read from there. After an error, the state is as before."""
        before = self._current
        for _ in range(_RESTARTS):
            try:
                self._current = None
                self._follow(self._beginning())
            except DataLossError:  # other clients have compacted twice more
                continue
            except BaseException:
                self._current = self._current or before
                raise
            if self.state is not None:
                return
            break
        raise DataLossError(
            f"stream {self.stream} has no initial value at the start of its entries: it was truncated other than by a "
            "state synchronizer (by a retention policy?), or is not the stream of a state synchronizer"
        )

    def _move_mark(self, mark: Revision) -> None:
        before = self._log.mark()
        if before is None or before < mark:
            self._log.compare_and_set_mark(before, mark)
        if before is not None:
            self._log.truncate_to_revision(before)
