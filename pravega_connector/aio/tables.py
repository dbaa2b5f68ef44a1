"""Key-value tables for asyncio, around the plain client's table."""

from __future__ import annotations

from types import TracebackType
from typing import Any, TypeVar

from pravega_connector.aio.objects import AsyncEvents, Opened, as_coroutine
from pravega_connector.core.values import TableConfig
from pravega_connector.tables.table import Table
from pravega_connector.tables.values import TableEntry
from pravega_connector.wire import TableName

V = TypeVar("V")


class AsyncTable(Opened[Table[V]]):
    """Key-value table; see Table. Any number of tasks may use it.

    A cancelled update may have taken effect, or may do so soon: get the entry to find out.
    """

    @property
    def name(self) -> TableName:
        """Name of the table."""
        return self._known().name

    @property
    def config(self) -> TableConfig:
        """Key lengths and partitions of the table."""
        return self._known().config

    get = as_coroutine(Table.get)
    get_all = as_coroutine(Table.get_all)
    exists = as_coroutine(Table.exists)
    put = as_coroutine(Table.put)
    insert = as_coroutine(Table.insert)
    remove = as_coroutine(Table.remove)
    update = as_coroutine(Table.update)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Do nothing: a table uses the connections of its client."""

    def entries(self, primary: Any = None, **options: Any) -> AsyncEvents[TableEntry[V]]:
        """Yield entries in the order of their keys; see Table.entries. Arguments are checked at the first step."""
        return AsyncEvents(self._home, lambda: self._opened().entries(primary, **options))

    def keys(self, primary: Any = None, **options: Any) -> AsyncEvents[Any]:
        """Yield keys in their order; see Table.keys. Arguments are checked at the first step."""
        return AsyncEvents(self._home, lambda: self._opened().keys(primary, **options))

    def _opened(self) -> Table[V]:
        """Return the table, and open it if it is not open yet. It runs as a step of an iteration."""
        if self._made is None:
            self._made = self._make()
        return self._made
