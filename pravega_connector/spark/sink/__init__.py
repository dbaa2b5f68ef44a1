"""The Spark sink: batch and streaming writes to a stream.

Spark calls ``writers``. A task has ``writers_by_stream``, and ``kept_writers`` keeps them for the next task.
``transactions`` has the transactions of tasks and their commit. Target streams and the conversion of rows to events are
in :mod:`pravega_connector.rows`. The package imports no module, so a process loads only the modules that it needs.
"""
