"""The Spark source: batch and streaming reads of a stream.

Spark calls ``readers``, which also read the rows of a partition. On the driver, ``streams`` finds the streams to read,
and ``bounds`` their start and end positions. ``planner`` finds the end of the next micro-batch within the limits of
``admission``. ``offsets`` is the form of that end in the checkpoint, ``progress`` the report of it. ``columns``
configures the builder of rows, with ``registry_schemas`` for groups of a schema registry. ``dead_letters`` stores
malformed events elsewhere, and ``data_loss`` handles events that were deleted before they were read. ``inference``
finds the columns of events without a schema. ``metadata`` reads streams and segments as rows. The package imports no
module, so a process loads only the modules that it needs.
"""
