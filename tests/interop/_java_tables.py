"""Runs java/TablePeer.java: key-value tables of the Java client."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pravega_connector.tables import TableEntry, Version
from pravega_connector.wire import StreamName, TableName
from tests.interop._java_program import JavaProgram

__all__ = ["JavaTablePeer"]

Key = tuple[bytes, bytes]


class JavaTablePeer(JavaProgram):
    """The Java client against one controller. All keys are (primary, secondary). Context manager."""

    def __init__(self, controller: str) -> None:
        super().__init__("TablePeer", controller)

    def create(self, table: TableName, partitions: int, primary: int, secondary: int) -> bool:
        """Create a table. Return False if it exists."""
        return bool(self._do("create", table, partitions=partitions, primary=primary, secondary=secondary))

    def tables(self, table: TableName) -> list[str]:
        """The tables of the scope of a table."""
        return list(self._do("tables", table))

    def delete(self, table: TableName) -> bool:
        """Delete a table. Return False if it does not exist."""
        return bool(self._do("delete", table))

    def put(self, table: TableName, entries: Iterable[tuple[Key, bytes]]) -> list[Version] | None:
        """Set entries of one primary key."""
        return self._update(table, [["put", *_hex(key), value.hex(), None] for key, value in entries])

    def put_at(self, table: TableName, key: Key, value: bytes, version: Version) -> Version | None:
        """Set an entry that has a version. Return None if it has another one."""
        found = self._update(table, [["put", *_hex(key), value.hex(), str(version)]])
        return found[0] if found else None

    def put_and_insert(
        self, table: TableName, key: Key, value: bytes, version: Version, added: Key
    ) -> list[Version] | None:
        """Set an entry that has a version, and add one with the same value. Return None if either is refused."""
        changes = [["put", *_hex(key), value.hex(), str(version)], ["insert", *_hex(added), value.hex(), None]]
        return self._update(table, changes)

    def insert(self, table: TableName, key: Key, value: bytes) -> Version | None:
        """Add an entry. Return None if the key exists."""
        found = self._update(table, [["insert", *_hex(key), value.hex(), None]])
        return found[0] if found else None

    def remove(self, table: TableName, key: Key, version: Version | None = None) -> bool:
        """Remove an entry. Return False if it is refused."""
        return self._update(table, [["remove", *_hex(key), "", version and str(version)]]) is not None

    def get(self, table: TableName, keys: Iterable[Key]) -> list[TableEntry[bytes] | None]:
        """The entries of keys."""
        return [found and _entry(found) for found in self._do("get", table, keys=[_hex(key) for key in keys])]

    def entries(
        self, table: TableName, start: bytes | None = None, end: bytes | None = None
    ) -> list[TableEntry[bytes]]:
        """The entries of a range of primary keys."""
        bounds = {"from": start and start.hex(), "to": end and end.hex()}
        return [_entry(found) for found in self._do("all", table, **bounds)]

    def entries_of(
        self, table: TableName, primary: bytes, start: bytes | None = None, end: bytes | None = None
    ) -> list[TableEntry[bytes]]:
        """The entries of a range of secondary keys."""
        bounds = {"from": start and start.hex(), "to": end and end.hex()}
        return [_entry(found) for found in self._do("of", table, primary=primary.hex(), **bounds)]

    def _update(self, table: TableName, changes: Sequence[Any]) -> list[Version] | None:
        found = self._do("update", table, changes=changes)
        return None if found is None else [Version.parse(text) for text in found]

    def _do(self, do: str, table: TableName, **request: Any) -> Any:
        return self._ask(do, StreamName(table.scope, table.table), **request)


def _hex(key: Key) -> list[str | None]:
    primary, secondary = key
    return [primary.hex(), secondary.hex() if secondary else None]


def _entry(found: Sequence[str]) -> TableEntry[bytes]:
    primary, secondary, value, version = found
    key = bytes.fromhex(primary), bytes.fromhex(secondary)
    return TableEntry(key, bytes.fromhex(value), Version.parse(version))
