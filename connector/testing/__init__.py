"""Pravega and a schema registry for tests, in this process: started in milliseconds, without Java, failing on request.

``requests`` reads the wire protocol as a server does, ``segments`` is what a segment store keeps, ``store`` the store
itself. ``history`` has the epochs of a stream, ``event_time`` makes its watermarks, ``cluster`` is the rest of what a
controller knows, ``controller`` its gRPC interface. ``in_process`` puts them together, ``faults`` makes them fail, and
``plugin`` has fixtures for pytest. The schema registry is :mod:`pravega_serde.registry.memory`; ``registry_server``
lets it answer over HTTP. All of it is a fake that the suites of real servers pass on, too; it is no store for data.
"""
