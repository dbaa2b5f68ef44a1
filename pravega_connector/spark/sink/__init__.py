"""The Spark sink: batch and streaming writes to a stream.

Spark calls ``writers``. ``targets`` finds the streams that rows go to, and ``kept_writers`` keeps their writers for the
next task. ``encoding`` converts rows to events without Spark. ``registry_schema`` does so for a schema registry.
``transactions`` has the transactions of tasks and their commit. ``digest`` has the totals that compare a replayed batch
with the committed one. The package imports no module, so a process loads only the modules that it needs.
"""
