"""Pravega and a schema registry for tests, in this process: started in milliseconds, without Java, failing on request.

``requests`` reads the wire protocol as a server does, ``segments`` holds the data of a segment, ``segment_store`` the
store itself. ``history`` has the epochs of a stream, ``event_time`` computes its watermarks, ``controller_state`` is
the rest of the controller's state, ``controller_service`` its gRPC interface. ``in_process`` combines them, ``faults``
makes them fail. The schema registry is :mod:`pravega_serde.registry.memory`; ``registry_server`` serves it over HTTP.
``pytest_plugin`` has the fixtures, which pytest finds where the package is installed.

The suites of the client, the ledger and the registry pass on these servers and on the real ones (``--pravega=kit``).
docs/tools/test-kit.md lists the limitations.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.testing.faults import Faults as Faults
    from pravega_connector.testing.in_process import InProcessPravega as InProcessPravega
    from pravega_connector.testing.registry_server import InProcessRegistry as InProcessRegistry
    from pravega_serde.registry.memory import MemoryRegistry as MemoryRegistry
    from pravega_serde.registry.memory import mock_registry as mock_registry
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "faults": "Faults",
            "in_process": "InProcessPravega",
            "registry_server": "InProcessRegistry MemoryRegistry mock_registry",
        },
    )
