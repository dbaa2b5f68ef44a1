"""The registry that the serializers' tests share. Each has groups of its own."""

from collections.abc import Iterator

import pytest

from connector.local import LocalSchemaRegistry
from pravega_serde.registry import SchemaRegistryClient


@pytest.fixture(scope="session")
def uri() -> Iterator[str]:
    """Where a registry with memory only is."""
    with LocalSchemaRegistry() as registry:
        yield registry.uri


@pytest.fixture(scope="session")
def client(uri: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient(uri) as client:
        yield client
