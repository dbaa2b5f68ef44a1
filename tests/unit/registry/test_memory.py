"""``mock://name``: a registry of the process, which its tests on a real one's recorded session know as well."""

import asyncio

import pytest

from pravega_connector.testing import mock_registry
from pravega_serde.errors import RegistryConflictError, RegistryNotFoundError, RegistryUnavailableError, SerdeError
from pravega_serde.registry import (
    AsyncSchemaRegistryClient,
    Compatibility,
    GroupProperties,
    RegistryConfig,
    SchemaInfo,
    SchemaRegistryClient,
    SerializationFormat,
    deserializer,
    serializer,
)

AVRO = SerializationFormat.AVRO
ONE = SchemaInfo("n.R", AVRO, b'{"type":"record","name":"n.R","fields":[{"name":"a","type":"int"}]}')
BAD = SchemaInfo("n.R", AVRO, b'{"type":"record","name":"n.R","fields":[{"name":"a","type":"string"}]}')


@pytest.fixture
def uri(request: pytest.FixtureRequest) -> str:
    return f"mock://{request.node.name}"


def test_clients_of_one_name_share_it_and_others_do_not(uri):
    with SchemaRegistryClient(uri) as one, SchemaRegistryClient(uri) as two, SchemaRegistryClient(f"{uri}-2") as other:
        one.add_group("g", GroupProperties(AVRO, Compatibility.FULL))
        version = one.add_schema("g", ONE)
        assert two.find_version("g", ONE) == version
        with pytest.raises(RegistryConflictError):
            two.add_schema("g", BAD)
        assert list(other.groups()) == []
        with SchemaRegistryClient(uri, namespace="apart") as apart, pytest.raises(RegistryNotFoundError):
            apart.group_properties("g")


def test_serializers_take_it(uri):
    write = serializer(uri, group="g", schema=ONE, create_group=True, register_schema=True)
    assert deserializer(uri, group="g").deserialize(write.serialize({"a": 5})) == {"a": 5}


def test_the_client_for_asyncio_takes_it(uri):
    async def main():
        async with AsyncSchemaRegistryClient(uri) as client:
            await client.add_group("g", GroupProperties(AVRO, Compatibility.FULL))
            mock_registry(uri).fail(times=2)
            return await client.add_schema("g", ONE)

    assert asyncio.run(main()).id == 0
    assert mock_registry(uri).pending == 0


def test_it_fails_on_request(uri):
    with SchemaRegistryClient(uri, timeout=0.2) as client:
        mock_registry(uri).fail(503, times=3)
        assert list(client.groups()) == []
        mock_registry(uri).fail(404)
        with pytest.raises(RegistryNotFoundError):
            client.group_properties("g")
        mock_registry(uri).fail(500, times=10**5)
        with pytest.raises(RegistryUnavailableError, match="was told to fail"):
            client.group_properties("g")


def test_a_mock_has_a_name():
    assert RegistryConfig(uri="mock://orders").is_mock
    assert not RegistryConfig(uri="http://localhost:9092").is_mock
    with pytest.raises(SerdeError, match="invalid registry URI 'mock://'"):
        RegistryConfig(uri="mock://")
