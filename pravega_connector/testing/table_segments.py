"""Table segments in memory, and the answers of a segment store to requests about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pravega_connector.errors import ProtocolError
from pravega_connector.wire import (
    ANY_VERSION,
    NO_ENTRY,
    ErrorMessage,
    Message,
    ReadTable,
    ReadTableEntries,
    ReadTableKeys,
    RemoveTableKeys,
    TableEntriesRead,
    TableEntriesUpdated,
    TableKeyBadVersion,
    TableKeysRead,
    TableKeysRemoved,
    TableRead,
    UpdateTableEntries,
    WireEntry,
    WireKey,
    entry_size,
    key_size,
)

#: Requests about a table segment.
TableRequest = ReadTable | ReadTableEntries | ReadTableKeys | RemoveTableKeys | UpdateTableEntries

_STACK: Final = ""  # servers return Java's stack trace here if configured
_HEADER: Final = 17  # bytes of an entry in a segment before its key (EntrySerializer.HEADER_LENGTH)
_MAX_READ: Final = 2 << 20  # bytes after which a server ends an answer with keys or entries
_ILLEGAL_ARGUMENT: Final = 0  # ErrorMessage.ErrorCode.ILLEGAL_ARGUMENT_EXCEPTION


@dataclass
class Table:
    """Table segment. The version of an entry is its offset in the segment, as in servers."""

    name: str
    key_length: int = 0
    """Length of each key; 0 for any length."""
    entries: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    """Version and value by key."""
    length: int = 0

    def put(self, key: str | bytes, value: bytes) -> int:
        """Set a value. Return its version."""
        data = key.encode() if isinstance(key, str) else key
        version, self.length = self.length, self.length + _HEADER + len(data) + len(value)
        self.entries[data] = (version, value)
        return version

    def remove(self, key: str | bytes) -> None:
        """Remove a key if it exists."""
        data = key.encode() if isinstance(key, str) else key
        if self.entries.pop(data, None) is not None:
            self.length += _HEADER + len(data)

    def answer(self, request: TableRequest) -> Message:
        """Execute a request, and return the answer of a server without faults."""
        rid = request.request_id
        if self.key_length and any(len(key) != self.key_length for key in _keys(request)):
            return ErrorMessage(rid, self.name, f"the keys must have {self.key_length} bytes", _ILLEGAL_ARGUMENT)
        match request:
            case ReadTable(keys=keys):
                found = (WireEntry(key, *self.entries.get(key, (NO_ENTRY, b""))) for key, _ in keys)
                return TableRead(rid, self.name, tuple(found))
            case ReadTableKeys():
                entries = self._range(request)
                return TableKeysRead(rid, self.name, tuple(WireKey(key, version) for key, version, _ in entries), b"")
            case ReadTableEntries():
                return TableEntriesRead(rid, self.name, tuple(self._range(request)), b"")
            case _:
                return self._change(request)

    def _change(self, request: UpdateTableEntries | RemoveTableKeys) -> Message:
        rid = request.request_id
        changes = request.entries if isinstance(request, UpdateTableEntries) else request.keys
        keys = [(key, version) for key, version, *_ in changes]
        if not all(version in (ANY_VERSION, self.entries.get(key, (NO_ENTRY,))[0]) for key, version in keys):
            return TableKeyBadVersion(rid, self.name, _STACK)
        if isinstance(request, UpdateTableEntries):
            return TableEntriesUpdated(rid, tuple(self.put(key, value) for key, _, value in request.entries))
        for key, _ in keys:
            self.remove(key)
        return TableKeysRemoved(rid, self.name)

    def _range(self, request: ReadTableKeys | ReadTableEntries) -> Iterator[WireEntry]:
        count = size = 0
        with_values = isinstance(request, ReadTableEntries)
        for key in sorted(self.entries):
            if count >= request.count or size >= _MAX_READ:
                return
            if request.start <= key <= request.end:
                version, value = self.entries[key]
                yield WireEntry(key, version, value)
                count, size = count + 1, size + (entry_size(key, value) if with_values else key_size(key))


def _keys(request: TableRequest) -> list[bytes]:
    match request:
        case ReadTable(keys=keys) | RemoveTableKeys(keys=keys):
            return [key for key, _ in keys]
        case UpdateTableEntries(entries=entries):
            return [key for key, _, _ in entries]
        case ReadTableKeys() | ReadTableEntries():
            if request.continuation or request.prefix:
                raise ProtocolError(
                    "invalid request: tables with keys of one length have no continuation and no prefix"
                )
            return [request.start, request.end]
