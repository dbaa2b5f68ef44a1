"""Key-value table: get, put, insert and remove entries, conditionally by version, and iterate over them.

(Java: ``KeyValueTableImpl`` and ``KeyValueTableIteratorImpl``, which can share a table with this module.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from pravega_connector.core import arguments, io
from pravega_connector.core.values import TableConfig
from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import ConfigError, TableLimitError, TableVersionError
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.tables.keys import KeyCodec, SupportsBoth, TableSegments, encoded
from pravega_connector.tables.requests import MAX_ENTRIES, MAX_UPDATE, MAX_VALUE, SegmentRequests
from pravega_connector.tables.values import Change, Insert, Put, Remove, TableEntry, Version
from pravega_connector.wire import ANY_VERSION, NO_ENTRY, TableName, WireEntry, WireKey, entry_size

V = TypeVar("V")

# Requests of one call that are sent side by side.
_SIDE_BY_SIDE: Final = 5
_BATCH: Final = 100


#: Entry of an iteration: key, segment id, number of the version, value.
_Found = tuple[bytes, int, int, bytes]
_key_of: Final = itemgetter(0)


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
        self._requests = SegmentRequests(stores, name)
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
        wanted = [self._keys.encode(key) for key in arguments.listed("keys", keys)]
        segment_of = {primary: self._segments.of(primary) for primary in {primary for primary, _ in wanted}}
        places: dict[int, list[int]] = {}
        for place, (primary, _) in enumerate(wanted):
            places.setdefault(segment_of[primary], []).append(place)

        def read(segment: int) -> list[WireEntry]:
            return self._requests.read(segment, [b"".join(wanted[place]) for place in places[segment]])

        found: list[TableEntry[V] | None] = [None] * len(wanted)
        for segment, entries in zip(places, io.side_by_side(read, places, _SIDE_BY_SIDE), strict=True):
            for place, (data, version, value) in zip(places[segment], entries, strict=True):
                if version != NO_ENTRY:
                    found[place] = self._entry((data, segment, version, value))
        return found

    def exists(self, key: Any) -> bool:
        """Return True if the table has an entry for a key."""
        primary, secondary = self._keys.encode(key)
        (entry,) = self._requests.read(self._segments.of(primary), [primary + secondary])
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

        About ``batch_size`` entries are requested at a time, and the next ones while you process these. The result is
        not a snapshot. An entry that is changed during the iteration may have its old or its new value. Raises
        TableLimitError and ConfigError for invalid keys, DeserializationError.
        """
        return self._scan((primary, start, end, prefix), batch_size, self._entry, values=True)

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
        return self._scan((primary, start, end, prefix), batch_size, lambda each: self._key(each[0]), values=False)

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
        made = arguments.listed("changes", changes)
        if not made:
            return []
        removes = isinstance(made[0], Remove)
        kinds = (Remove,) if removes else (Put, Insert)
        if not all(isinstance(each, kinds) for each in made):
            raise ConfigError("an update must have only Put and Insert, or only Remove: split it")
        entries, segment_id = self._checked(made)
        if removes:
            self._requests.remove(segment_id, [WireKey(entry.key, entry.version) for entry in entries])
            return []
        return [Version(segment_id, number) for number in self._requests.update(segment_id, entries)]

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
        if change.version is None:
            return ANY_VERSION
        arguments.instance("version", change.version, Version, "entry.version, or Version.parse(text)")
        if change.version.segment_id != segment_id:
            raise TableVersionError(
                f"version {change.version} is not of key {change.key!r} of table {self.name}: it belongs to another "
                "entry, or to an earlier table of this name"
            )
        return change.version.number

    # ---------------------------------------------------------------- inside: reading

    def _scan(
        self,
        where: tuple[Any, Any, Any, bytes | str | None],
        batch_size: int,
        convert: Callable[[_Found], Any],
        *,
        values: bool,
    ) -> Generator[Any, None, None]:
        """Return a generator over a range. The arguments are checked now."""
        arguments.count("batch_size", batch_size, 1, 2**31 - 1, optional=False)
        primary = where[0]
        first, last = self._keys.range(*where)
        size = self.config.primary_key
        one = first[:size] == last[:size]
        segments = [self._segments.of(first[:size])] if one or primary is not None else self._segments.ids

        def walk(segment_id: int) -> Generator[list[_Found], None, None]:
            for page in self._requests.pages(segment_id, first, last, batch_size, values=values):
                yield [(key, segment_id, version, value) for key, version, value in page]

        def convert_all() -> Generator[Any, None, None]:
            with ExitStack() as stack:
                for found in _merged([stack.enter_context(closing(walk(each))) for each in segments]):
                    for each in found:
                        yield convert(each)

        return convert_all()

    def _entry(self, found: _Found) -> TableEntry[V]:
        key, segment_id, number, data = found
        value = self._value.deserialize(data)
        return TableEntry(self._key(key), value, Version(segment_id, number))

    def _key(self, data: bytes) -> Any:
        return self._keys.decode(data)


def _merged(walks: Sequence[Iterator[list[_Found]]]) -> Iterator[list[_Found]]:
    """Yield the entries of several segments in the order of their keys, many at a time."""
    held: list[tuple[Iterator[list[_Found]], list[_Found]]] = [(walk, []) for walk in walks]
    while True:
        pages = [(walk, page or next(walk, [])) for walk, page in held]
        held = [(walk, page) for walk, page in pages if page]
        if not held:
            return
        end = min(page[-1][0] for _, page in held)  # further pages of each segment have greater keys
        counts = [bisect_right(page, end, key=_key_of) for _, page in held]
        yield sorted(each for (_, page), count in zip(held, counts, strict=True) for each in page[:count])
        held = [(walk, page[count:]) for (walk, page), count in zip(held, counts, strict=True)]
