"""The Spark source: batch and streaming reads of a stream.

Spark calls ``readers``, which also read the rows of a partition. On the driver, ``streams`` finds the streams to read.
``offset_planner`` finds the end of the next micro-batch within the limits of ``admission``, ``tasks`` divides it, and
``progress`` reports it. ``dead_letters`` stores malformed events elsewhere, and ``data_loss`` handles events that were
deleted before they were read. ``metadata`` reads streams and segments as rows. Positions, the form of an offset in the
checkpoint, and the builder of rows are in :mod:`pravega_connector.rows`. The package imports no module, so a process
loads only the modules that it needs.
"""
