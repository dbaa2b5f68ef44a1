"""Key-value tables in Spark: a batch read, and a sink that sets the latest value of each key.

- ``columns``: columns of a read, and rows of entries.
- ``reader``: reader of a batch query.
- ``changes``: rows as changes of keys.
- ``upsert``: application of changes to a table.
- ``writer``: writers of batch and streaming queries.
"""
