"""Pravega and a schema registry for tests, in this process. They start in milliseconds, and fail on request.

No Java is needed. ``requests`` decodes the wire protocol like a server. ``segments`` has the data of a segment, and
``segment_store`` the segment store. ``history`` has the epochs of a stream, and ``event_time`` computes its watermarks.
``controller_state`` has the rest of the controller's state, and ``controller_service`` its gRPC interface.
``in_process`` combines them, and ``faults`` makes them fail. The schema registry is
:mod:`pravega_serde.registry.memory`; ``registry_server`` serves it over HTTP. ``pytest_plugin`` has the fixtures, which
pytest finds if the package is installed.

The suites of the client, the ledger and the registry pass on these servers and on the real ones (``--pravega=kit``).
docs/tools/test-kit.md lists the limitations.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.testing.faults import Faults as Faults
    from pravega_connector.testing.in_process import InProcessPravega as InProcessPravega
    from pravega_connector.testing.registry_server import InProcessRegistry as InProcessRegistry
    from pravega_serde.registry.confluent_memory import ConfluentMemoryRegistry as ConfluentMemoryRegistry
    from pravega_serde.registry.confluent_memory import mock_confluent_registry as mock_confluent_registry
    from pravega_serde.registry.memory import MemoryRegistry as MemoryRegistry
    from pravega_serde.registry.memory import mock_registry as mock_registry
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "faults": "Faults",
            "in_process": "InProcessPravega",
            "registry_server": (
                "ConfluentMemoryRegistry InProcessRegistry MemoryRegistry mock_confluent_registry mock_registry"
            ),
        },
    )
