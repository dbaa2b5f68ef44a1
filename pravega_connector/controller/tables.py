"""Calls about key-value tables."""

from __future__ import annotations

from collections.abc import Iterator

from pravega_connector.controller import methods
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.calls import ControllerCalls
from pravega_connector.core.deadline import Deadline
from pravega_connector.core.values import TableConfig
from pravega_connector.errors import TableNotFoundError
from pravega_connector.wire import SegmentRange, TableName


class TableCalls(ControllerCalls):
    """Calls about key-value tables."""

    def create_table(self, table: TableName, config: TableConfig) -> bool:
        """Create a key-value table in an existing scope.

        Return False if the table existed, with any configuration.
        """
        return self._change(methods.CREATE_TABLE, methods.encode_table(table, config), "create table", table)

    def delete_table(self, table: TableName) -> bool:
        """Delete a key-value table with all its entries. Return False if it did not exist."""
        try:
            return self._change(methods.DELETE_TABLE, methods.table_message(table), "delete table", table)
        except TableNotFoundError:
            return False

    def table_config(self, table: TableName) -> TableConfig:
        """Return a key-value table's configuration. Raises TableNotFoundError."""
        request = methods.table_message(table)
        return methods.decode_table(self._done(methods.TABLE_CONFIG, request, "look up table", table).config)

    def table_segments(self, table: TableName, *, deadline: Deadline | None = None) -> list[SegmentRange]:
        """Return the segments of a key-value table, by id. They never change. Raises TableNotFoundError."""
        response = self._call(methods.TABLE_SEGMENTS, methods.table_message(table), table, deadline)
        return methods.decode_ranges(response.segmentRanges)

    def iterate_tables(self, scope: str) -> Iterator[TableName]:
        """Yield the key-value tables of a scope, page by page, each once. Raises ScopeNotFoundError."""
        message, found, token = methods.scope_message(scope), set[str](), pb.ContinuationToken()
        while True:
            request = pb.KVTablesInScopeRequest(scope=message, continuationToken=token)
            page = self._done(methods.LIST_TABLES, request, "list the tables of scope", scope)
            names = {info.kvtName for info in page.kvtables} - found
            if not names:  # an empty page ends the list; one of old names would never end it
                return
            found |= names
            yield from (TableName(scope, name) for name in sorted(names) if not name.startswith("_"))
            token = page.continuationToken
