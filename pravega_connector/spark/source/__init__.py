"""The Spark source: batch and streaming reads of a stream.

Spark calls ``readers``, which also read the rows of a partition. On the driver, ``streams`` finds the streams to read,
``bounds`` their beginnings and ends, and ``planner`` the end of the next micro-batch within the limits of
``admission``. ``offsets`` is the form of that end in the checkpoint, ``progress`` the report of it. ``columns`` makes
record batches of events, with ``registry_schemas`` for groups of a schema registry. ``bad_records`` treats events that
cannot be decoded, and ``data_loss`` events that are gone. ``inference`` finds the columns of events without a schema.
``metadata`` reads streams and segments as rows. The package imports no module, so a process loads only what it needs.
"""
