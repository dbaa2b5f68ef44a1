"""Key-value table: get, put, insert and remove entries, conditionally by version, and iterate over them.

(Java: ``KeyValueTableImpl``, ``TableSegmentImpl`` and ``KeyValueTableIteratorImpl``, which can share a table with this
module.)

Theory of operation: an update without an answer
------------------------------------------------
If the answer to an update is lost, the update is sent again, with the same conditions. These cases apply:

- The second one is accepted. If it has a condition on a version, the first one has not taken effect and cannot take
  effect later, because the version has changed.
- The second one is refused. Then either the first one has taken effect, or another client has changed an entry. An
  entry does not record who wrote it, so the outcome is unknown: OutcomeUnknownError. (Java reports a refusal.)

A refusal of the first one is certain: no update of this call has taken effect.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, Generic, NamedTuple, TypeVar

from pravega_connector.core import arguments, io
from pravega_connector.core.deadline import Deadline
from pravega_connector.core.values import TableConfig
from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import (
    ConfigError,
    ConnectorError,
    NoSuchSegmentError,
    OutcomeUnknownError,
    TableLimitError,
    TableNotFoundError,
    TableVersionError,
    UnexpectedReplyError,
)
from pravega_connector.stores.segment_stores import SegmentStores, error_of
from pravega_connector.tables.keys import KeyCodec, SupportsBoth, TableSegments, after, encoded
from pravega_connector.tables.values import Change, Insert, Put, Remove, TableEntry, Version
from pravega_connector.wire import (
    ANY_VERSION,
    MAX_FRAME_SIZE,
    NO_ENTRY,
    Message,
    ReadTable,
    ReadTableEntries,
    ReadTableKeys,
    RemoveTableKeys,
    TableEntriesRead,
    TableEntriesUpdated,
    TableKeyBadVersion,
    TableKeyDoesNotExist,
    TableKeysRead,
    TableKeysRemoved,
    TableName,
    TableRead,
    UpdateTableEntries,
    WireEntry,
    WireKey,
    entry_size,
    segment_name,
)

T = TypeVar("T")
V = TypeVar("V")
R = TypeVar("R", bound=Message)

#: Longest value in bytes (TableStore.MAXIMUM_VALUE_LENGTH).
MAX_VALUE: Final = (1 << 20) - 8192
#: Most entries of one update (TableSegment.MAXIMUM_BATCH_KEY_COUNT).
MAX_ENTRIES: Final = 256
#: Most bytes of one update (TableSegment.MAXIMUM_BATCH_LENGTH).
MAX_UPDATE: Final = MAX_FRAME_SIZE - 8192
# Keys of one request for values: an answer with the longest values fits into a message.
_KEYS_AT_ONCE: Final = 15
# Requests of one call that are sent side by side.
_SIDE_BY_SIDE: Final = 5
_BATCH: Final = 100


class _Found(NamedTuple):
    """Entry of an iteration, in the order of its key."""

    key: bytes
    segment_id: int
    version: int
    value: bytes


class Table(HintedNames, Generic[V]):
    """Key-value table. Thread safe. It uses the client's connections, so it needs no ``close``.

    A key is a primary key, or the tuple ``(primary key, secondary key)`` in a table with secondary keys. Their
    serializers must return bytes of the table's lengths. All entries of a primary key are in one segment, and one
    update can change several of them. Entries are ordered by the bytes of their keys.

    All methods raise TableNotFoundError if the table was deleted, and ConnectionLostError, DeadlineExceededError or
    ControllerUnavailableError if the servers stay unavailable.
    """

    def __init__(
        self,
        stores: SegmentStores,
        name: TableName,
        *,
        key: SupportsBoth,
        secondary: SupportsBoth,
        value: SupportsBoth,
    ) -> None:
        """Open the table. Raises TableNotFoundError."""
        self.name = name
        self.config: TableConfig = stores.controller.table_config(name)
        self._stores, self._stream = stores, name.segments
        self._segments = TableSegments(stores.controller.table_segments(name))
        self._keys = KeyCodec(name, self.config, key, secondary)
        self._value = value

    def __repr__(self) -> str:
        return f"Table({self.name})"

    # ---------------------------------------------------------------- reading

    def get(self, key: Any) -> TableEntry[V] | None:
        """Return the entry of a key, or None. Raises DeserializationError."""
        return self.get_all([key])[0]

    def get_all(self, keys: Iterable[Any]) -> list[TableEntry[V] | None]:
        """Return the entries of several keys, in their order, with None for a missing one.

        The keys may have different primary keys. Each entry is current, but they are not read at one moment. Raises
        DeserializationError.
        """
        wanted = [self._keys.encode(key) for key in keys]
        by_segment: dict[int, list[int]] = {}
        for place, (primary, _) in enumerate(wanted):
            by_segment.setdefault(self._segments.of(primary), []).append(place)
        pieces = [
            (segment, places[at : at + _KEYS_AT_ONCE])
            for segment, places in by_segment.items()
            for at in range(0, len(places), _KEYS_AT_ONCE)
        ]

        def read(piece: tuple[int, list[int]]) -> Sequence[WireEntry]:
            return self._read(piece[0], [b"".join(wanted[place]) for place in piece[1]])

        found: list[TableEntry[V] | None] = [None] * len(wanted)
        for (segment, places), entries in zip(pieces, io.side_by_side(read, pieces, _SIDE_BY_SIDE), strict=True):
            for place, (data, version, value) in zip(places, entries, strict=True):
                if version != NO_ENTRY:
                    found[place] = self._entry(_Found(data, segment, version, value))
        return found

    def exists(self, key: Any) -> bool:
        """Return True if the table has an entry for a key."""
        primary, secondary = self._keys.encode(key)
        (entry,) = self._read(self._segments.of(primary), [primary + secondary])
        return entry.version != NO_ENTRY

    __contains__ = exists

    def entries(
        self,
        primary: Any = None,
        *,
        start: Any = None,
        end: Any = None,
        prefix: bytes | str | None = None,
        batch_size: int = _BATCH,
    ) -> Generator[TableEntry[V], None, None]:
        """Yield entries in the order of their keys: all of the table, or those of a range.

        - ``primary``: only the entries of this primary key.
        - ``start`` and ``end``: the first and the last primary key, both included. With ``primary``, they are secondary
          keys.
        - ``prefix``: the first bytes of the primary key, or of the secondary key with ``primary``. A str is encoded as
          UTF-8.

        About ``batch_size`` entries are requested at a time. The result is not a snapshot. An entry that is changed
        during the iteration may have its old or its new value. Raises TableLimitError and ConfigError for invalid
        keys, DeserializationError.
        """
        return self._scan(self._find, (primary, start, end, prefix), batch_size, self._entry)

    def keys(
        self,
        primary: Any = None,
        *,
        start: Any = None,
        end: Any = None,
        prefix: bytes | str | None = None,
        batch_size: int = _BATCH,
    ) -> Generator[Any, None, None]:
        """Yield keys without their values, in their order; otherwise as :meth:`entries`."""
        return self._scan(self._find_keys, (primary, start, end, prefix), batch_size, lambda each: self._key(each.key))

    # ---------------------------------------------------------------- updates

    def put(self, key: Any, value: V, version: Version | None = None) -> Version:
        """Set an entry, and return its version. The entry is durable on return.

        Without ``version``, any earlier entry is replaced, and a missing one is added. If an answer is lost, the same
        value is set again. This may overwrite another client's change that was made since the call began. After
        OutcomeUnknownError, call it again.

        With ``version``, the entry must have this version. Raises TableVersionError if it does not, or does not exist.
        Raises OutcomeUnknownError if the entry was changed, and the answer was lost that tells by which client. To find
        out, get the entry. If each client writes different values, its value shows who was first.

        Raises TableLimitError, SerializationError.
        """
        return self.update([Put(key, value, version)])[0]

    def insert(self, key: Any, value: V) -> Version:
        """Add an entry for a key that has none, and return its version. The entry is durable on return.

        Raises TableVersionError if the key exists. Otherwise as :meth:`put` with a version.
        """
        return self.update([Insert(key, value)])[0]

    def remove(self, key: Any, version: Version | None = None) -> None:
        """Remove an entry. The removal is durable on return.

        Without ``version``, a missing entry is not an error. If an answer is lost, the entry is removed again, also if
        another client has added one since. With ``version``, it raises the errors of :meth:`put`.
        """
        self.update([Remove(key, version)])

    def update(self, changes: Iterable[Change]) -> list[Version]:
        """Make several changes of one primary key, all or none. Return the versions of the new entries.

        ``changes`` are :class:`Put` and :class:`Insert`, or only :class:`Remove`, whose result is empty. All conditions
        are checked before the first change. The changes are durable on return. Raises TableVersionError if
        one of the conditions is not met: then nothing was changed. If no change has a condition, a lost answer is
        treated as for :meth:`put` without a version, else as with one.

        Raises TableLimitError for more than 256 changes, changes of several primary keys, and values or updates that
        are too large. Raises ConfigError for a key that occurs twice.
        """
        made = list(changes)
        if not made:
            return []
        removes = isinstance(made[0], Remove)
        if any(not isinstance(each, Insert | Put | Remove) or isinstance(each, Remove) != removes for each in made):
            raise ConfigError("an update must have only Put and Insert, or only Remove: split it")
        entries, segment_id = self._checked(made)
        conditional = any(entry.version != ANY_VERSION for entry in entries)
        if removes:
            keys = tuple(WireKey(entry.key, entry.version) for entry in entries)
            self._change(
                segment_id,
                lambda number, token: RemoveTableKeys(number, self._name(segment_id), token, keys),
                TableKeysRemoved,
                conditional=conditional,
            )
            return []
        reply = self._change(
            segment_id,
            lambda number, token: UpdateTableEntries(number, self._name(segment_id), token, entries),
            TableEntriesUpdated,
            conditional=conditional,
            is_right=lambda reply: len(reply.versions) == len(entries),
        )
        return [Version(segment_id, number) for number in reply.versions]

    # ---------------------------------------------------------------- inside: updates

    def _checked(self, changes: Sequence[Change]) -> tuple[tuple[WireEntry, ...], int]:
        """Return the entries of an update and their segment. A removal has an empty value."""
        if len(changes) > MAX_ENTRIES:
            raise TableLimitError(
                f"an update of table {self.name} has {len(changes)} changes; the limit is {MAX_ENTRIES}"
            )
        entries, common, segment_id, size, seen = list[WireEntry](), None, -1, 0, set[bytes]()
        for change in changes:
            primary, secondary = self._keys.encode(change.key)
            if common is None:
                common, segment_id = primary, self._segments.of(primary)
            elif primary != common:
                raise TableLimitError(
                    f"an update of table {self.name} has entries of several primary keys; only those of one primary "
                    "key can be changed together: split it"
                )
            if (key := primary + secondary) in seen:
                raise ConfigError(f"an update of table {self.name} has key {change.key!r} twice: name it once")
            seen.add(key)
            value = b"" if isinstance(change, Remove) else self._encoded(change.key, change.value)
            size += entry_size(key, value)
            entries.append(WireEntry(key, self._condition(change, segment_id), value))
        if size > MAX_UPDATE:
            raise TableLimitError(
                f"an update of table {self.name} has {size:,} bytes; the limit is {MAX_UPDATE:,}: split it"
            )
        return tuple(entries), segment_id

    def _encoded(self, key: Any, value: Any) -> bytes:
        data = encoded(self._value, value, "value")
        if len(data) > MAX_VALUE:
            raise TableLimitError(
                f"the value of key {key!r} of table {self.name} has {len(data):,} bytes; the limit is {MAX_VALUE:,}"
            )
        return data

    def _condition(self, change: Change, segment_id: int) -> int:
        if isinstance(change, Insert):
            return NO_ENTRY
        arguments.instance("version", change.version, Version, "entry.version, or Version.parse(text)")
        if change.version is None:
            return ANY_VERSION
        if change.version.segment_id != segment_id:
            raise TableVersionError(
                f"version {change.version} is not of key {change.key!r} of table {self.name}: it belongs to another "
                "entry, or to an earlier table of this name"
            )
        return change.version.number

    def _change(
        self,
        segment_id: int,
        request: Callable[[int, str], Message],
        kind: type[R],
        *,
        conditional: bool,
        is_right: Callable[[R], bool] = lambda _: True,
    ) -> R:
        """Send an update until it is accepted or refused, and return the reply. See the theory of operation."""
        in_doubt = False  # an attempt without an answer may have taken effect

        def attempt(deadline: Deadline) -> tuple[R | None, bool]:
            nonlocal in_doubt
            doubted = in_doubt

            def sent(number: int, token: str) -> Message:
                nonlocal in_doubt
                in_doubt = True
                return request(number, token)

            reply = self._ask(segment_id, sent, deadline, write=True)
            if isinstance(reply, kind):
                if not is_right(reply):
                    raise UnexpectedReplyError.of(f"the store of segment {self._name(segment_id)}", reply)
                return reply, doubted
            in_doubt = doubted
            if isinstance(reply, TableKeyBadVersion | TableKeyDoesNotExist):
                return None, doubted
            raise error_of(reply, self._name(segment_id))

        try:
            reply, doubted = self._run(segment_id, attempt)
        except TableNotFoundError:
            raise
        except ConnectorError as error:
            if in_doubt:
                raise self._unknown(error.message, conditional=conditional) from error
            raise
        if reply is not None:
            return reply
        if doubted:
            raise self._unknown("an answer was lost, and the entry was changed since", conditional=conditional)
        raise TableVersionError(
            f"an update of table {self.name} was refused: an entry has another version than required, does not exist, "
            "or exists and should be inserted; get it and decide again"
        )

    def _unknown(self, reason: str, *, conditional: bool) -> OutcomeUnknownError:
        advice = "get the entry to find out" if conditional else "update it again"
        return OutcomeUnknownError(
            f"whether an update of table {self.name} took effect is unknown ({reason}); {advice}"
        )

    # ---------------------------------------------------------------- inside: reading

    def _read(self, segment_id: int, keys: Sequence[bytes]) -> Sequence[WireEntry]:
        """Return the entries of keys of one segment, in their order."""
        wanted = tuple(map(WireKey, keys))

        def attempt(deadline: Deadline) -> Sequence[WireEntry]:
            def request(number: int, token: str) -> Message:
                return ReadTable(number, self._name(segment_id), token, wanted)

            reply = self._answer(segment_id, request, TableRead, deadline)
            if [entry.key for entry in reply.entries] != list(keys):
                raise UnexpectedReplyError.of(f"the store of segment {self._name(segment_id)}", reply, "for other keys")
            return reply.entries

        return self._run(segment_id, attempt)

    def _scan(
        self,
        find: Callable[[int, bytes, bytes, int], list[_Found]],
        where: tuple[Any, Any, Any, bytes | str | None],
        batch_size: int,
        convert: Callable[[_Found], Any],
    ) -> Generator[Any, None, None]:
        """Return a generator over a range. The arguments are checked now."""
        arguments.count("batch_size", batch_size, 1)
        primary = where[0]
        first, last = self._keys.range(*where)
        size = self.config.primary_key
        one = first[:size] == last[:size]
        segments = [self._segments.of(first[:size])] if one or primary is not None else self._segments.ids
        return self._merged([self._walk(find, each, first, last, batch_size) for each in segments], convert)

    @staticmethod
    def _merged(walks: list[Iterator[_Found]], convert: Callable[[_Found], Any]) -> Generator[Any, None, None]:
        for each in walks[0] if len(walks) == 1 else heapq.merge(*walks):
            yield convert(each)

    def _walk(
        self,
        find: Callable[[int, bytes, bytes, int], list[_Found]],
        segment_id: int,
        start: bytes,
        end: bytes,
        size: int,
    ) -> Iterator[_Found]:
        """Yield what a segment has from ``start`` to ``end``, batch by batch."""
        at: bytes | None = start
        while at is not None and at <= end:
            batch = find(segment_id, at, end, size)
            if not batch:
                return
            yield from batch
            at = after(batch[-1].key)

    def _find(self, segment_id: int, start: bytes, end: bytes, size: int) -> list[_Found]:
        """Return the first entries from ``start`` to ``end``, about ``size``; none if there are none."""

        def request(number: int, token: str) -> Message:
            return ReadTableEntries(number, self._name(segment_id), token, size, b"", b"", start, end)

        def attempt(deadline: Deadline) -> list[_Found]:
            reply = self._answer(segment_id, request, TableEntriesRead, deadline)
            found = [_Found(key, segment_id, version, value) for key, version, value in reply.entries]
            return self._ordered(found, start, end, reply)

        return self._run(segment_id, attempt)

    def _find_keys(self, segment_id: int, start: bytes, end: bytes, size: int) -> list[_Found]:
        """Return the first keys from ``start`` to ``end``, about ``size``, with empty values."""

        def request(number: int, token: str) -> Message:
            return ReadTableKeys(number, self._name(segment_id), token, size, b"", b"", start, end)

        def attempt(deadline: Deadline) -> list[_Found]:
            reply = self._answer(segment_id, request, TableKeysRead, deadline)
            return self._ordered(
                [_Found(key, segment_id, version, b"") for key, version in reply.keys], start, end, reply
            )

        return self._run(segment_id, attempt)

    def _ordered(self, found: list[_Found], start: bytes, end: bytes, reply: Message) -> list[_Found]:
        """Return entries whose keys are in order and within a range. Raises UnexpectedReplyError for others."""
        keys = [each.key for each in found]
        inside = all(len(key) == len(start) and start <= key <= end for key in keys)
        if not inside or any(first >= second for first, second in pairwise(keys)):
            raise UnexpectedReplyError.of(f"a store of table {self.name}", reply, "for other keys")
        return found

    def _entry(self, found: _Found) -> TableEntry[V]:
        value = self._value.deserialize(found.value)
        return TableEntry(self._key(found.key), value, Version(found.segment_id, found.version))

    def _key(self, data: bytes) -> Any:
        return self._keys.decode(data)

    # ---------------------------------------------------------------- inside: requests

    def _name(self, segment_id: int) -> str:
        return segment_name(self._stream, segment_id)

    def _answer(self, segment_id: int, request: Callable[[int, str], Message], kind: type[R], deadline: Deadline) -> R:
        reply = self._ask(segment_id, request, deadline, write=False)
        if not isinstance(reply, kind):
            raise error_of(reply, self._name(segment_id))
        return reply

    def _ask(
        self, segment_id: int, request: Callable[[int, str], Message], deadline: Deadline, *, write: bool
    ) -> Message:
        """Return the reply to ``request(number, token)``, which is called immediately before it is sent."""
        token = self._stores.token(self._stream, write=write, deadline=deadline)
        endpoint = self._stores.endpoint(self._stream, segment_id, deadline)
        with self._stores.pool.lease(endpoint, deadline) as connection:
            return connection.ask(request(connection.next_request_id(), token), deadline)

    def _run(self, segment_id: int, attempt: Callable[[Deadline], T]) -> T:
        try:
            return self._stores.run(self._stream, segment_id, attempt)
        except NoSuchSegmentError:
            raise TableNotFoundError.deleted(self.name) from None
