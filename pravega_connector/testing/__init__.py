"""Pravega and a schema registry for tests, in this process: started in milliseconds, without Java, failing on request.

Users have it as :mod:`pravega_serde.testing`. ``requests`` reads the wire protocol as a server does, ``segments`` is
what a segment store keeps, ``store`` the store itself. ``history`` has the epochs of a stream, ``event_time`` makes its
watermarks, ``cluster`` is the rest of what a controller knows, ``controller`` its gRPC interface. ``in_process`` puts
them together, ``faults`` makes them fail. The schema registry is :mod:`pravega_serde.registry.memory`;
``registry_server`` lets it answer over HTTP.

What is trusted of it is what the suites of the client, the ledger and the registry ask: they pass on it and on the real
servers alike (``--pravega=kit``). Users' rights, TLS, tokens, retention, auto-scaling and key-value tables it has not.
"""

from pravega_connector.testing.faults import Faults, RequestKind
from pravega_connector.testing.in_process import InProcessPravega
from pravega_connector.testing.registry_server import InProcessRegistry

__all__ = ["Faults", "InProcessPravega", "InProcessRegistry", "RequestKind"]
