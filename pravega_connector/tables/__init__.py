"""Key-value tables: entries by primary and secondary key, with versions.

- ``values``: entries, versions, and the changes of an update.
- ``keys``: keys as bytes, and the segment of a primary key.
- ``requests``: requests to the segments of a table.
- ``table``: a table that a program opens.
"""

from pravega_connector.core.values import TableConfig as TableConfig
from pravega_connector.tables.table import Table
from pravega_connector.tables.values import Insert, Put, Remove, TableEntry, Version
from pravega_connector.wire import TableName as TableName

__all__ = ["Insert", "Put", "Remove", "Table", "TableConfig", "TableEntry", "TableName", "Version"]
