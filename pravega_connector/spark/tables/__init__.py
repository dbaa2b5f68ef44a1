"""Key-value tables in Spark: a batch read, and a sink that sets the latest value of each key.

- ``columns``: columns of a read, and rows of entries.
- ``reader``: reader of a batch query.
- ``changes``: rows as changes of keys. ``winning_changes``: which change of a key wins.
- ``upsert``: application of changes to a table.
- ``writer``: writers of batch and streaming queries.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.spark.tables.columns import table_columns as table_columns
    from pravega_connector.spark.tables.reader import TableReader as TableReader
    from pravega_connector.spark.tables.writer import TableBatchWriter as TableBatchWriter
    from pravega_connector.spark.tables.writer import TableStreamWriter as TableStreamWriter
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "columns": "table_columns",
            "reader": "TableReader",
            "writer": "TableBatchWriter TableStreamWriter",
        },
    )
