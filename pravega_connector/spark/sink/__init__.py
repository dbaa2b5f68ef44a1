"""The Spark sink: batch and streaming writes to a stream.

Spark calls ``writers``. ``targets`` finds the streams that rows go to. ``encoding`` converts rows to events without
Spark, with ``registry_schema`` for a group of a schema registry. ``transactions`` has the transactions of tasks and
their commit. ``digest`` has the totals that compare a replayed batch with the committed one. The package imports no
module, so a process loads only the modules that it needs.
"""
