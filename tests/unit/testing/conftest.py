"""The fixtures that users get, as pytest finds them where the package is installed."""

from pravega_connector.testing.pytest_plugin import (  # noqa: F401 - fixtures
    pravega,
    pravega_client,
    pravega_stream,
    schema_registry,
)
