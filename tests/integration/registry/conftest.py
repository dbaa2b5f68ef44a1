"""The registry that the serializers' tests share. Each has separate groups."""

from collections.abc import Iterator

import pytest

from pravega_serde.registry import SchemaRegistryClient


@pytest.fixture(scope="module")
def uri(registry: str) -> str:
    """Where a registry with memory only is."""
    return registry


@pytest.fixture(scope="module")
def client(uri: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient(uri) as client:
        yield client
