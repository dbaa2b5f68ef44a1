"""Key-value tables: entries by primary and secondary key, with versions.

- ``values``: entries, versions, and the changes of an update.
- ``keys``: keys as bytes, and the segment of a primary key.
- ``requests``: requests to the segments of a table.
- ``table``: a table that a program opens.
"""

from typing import TYPE_CHECKING

from pravega_connector.core.values import TableConfig as TableConfig
from pravega_connector.wire import TableName as TableName

if TYPE_CHECKING:
    from pravega_connector.tables.table import Table as Table
    from pravega_connector.tables.values import Insert as Insert
    from pravega_connector.tables.values import Put as Put
    from pravega_connector.tables.values import Remove as Remove
    from pravega_connector.tables.values import TableEntry as TableEntry
    from pravega_connector.tables.values import Version as Version
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {"table": "Table", "values": "Insert Put Remove TableEntry Version"},
        ["TableConfig", "TableName"],
    )
