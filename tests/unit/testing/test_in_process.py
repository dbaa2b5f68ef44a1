"""An in-process Pravega as its users meet it."""

import socket
import subprocess
import sys

import pytest

from pravega_connector.client import TransactionStatus
from pravega_connector.errors import LeaseRangeError, LocalServerError
from pravega_connector.testing import InProcessPravega, InProcessRegistry
from pravega_connector.testing.segment_store import SegmentStore
from pravega_serde import SchemaRegistryClient
from pravega_serde.errors import RegistryAuthenticationError


def test_it_starts_again_empty_and_somewhere_else_at_the_same_time():
    with InProcessPravega() as one, InProcessPravega() as other:
        assert one.uri != other.uri
        for server in (one, other):
            with server.client() as client:
                client.create_stream("a/b")
                client.write("a/b", server.uri, "string")
                assert list(client.read("a/b", "string")) == [server.uri]
        one.close()
        one.start()
        with one.client() as client:
            assert client.scopes() == ["_system"]


def test_one_that_does_not_run_reports_it():
    server = InProcessPravega()
    with pytest.raises(LocalServerError, match=r"is not running; call start\(\)"):
        server.uri
    with server, pytest.raises(LocalServerError, match="is running already, at tcp://127"):
        server.start()
    server.close()
    registry = InProcessRegistry()
    with pytest.raises(LocalServerError, match=r"is not running; call start\(\)"):
        registry.uri
    with registry, pytest.raises(LocalServerError, match="is running already, at http://127"):
        registry.start()


def test_a_registry_with_a_user_refuses_others():
    with InProcessRegistry(username="ann", password="tea") as registry:
        with SchemaRegistryClient(registry.uri, username="ann", password="tea") as client:
            assert list(client.groups()) == []
        for other in ({}, {"username": "ann", "password": "milk"}):
            with SchemaRegistryClient(registry.uri, **other) as client, pytest.raises(RegistryAuthenticationError):
                list(client.groups())


def test_a_lease_may_be_as_short_as_it_was_made_to_be(eventually):
    with InProcessPravega(shortest_lease=0.1) as server, server.client() as client:
        client.create_stream("a/b")
        transaction = client.transactions("a/b", lease=0.1).begin()
        transaction.detach()
        left = client.transaction("a/b", transaction.id)
        eventually(lambda: left.status() is TransactionStatus.ABORTED)
        with pytest.raises(LeaseRangeError):
            client.transactions("a/b", lease=0.05).begin()


def test_the_door_loads_nothing_before_it_is_asked_for():
    code = (
        "import pravega_connector.testing, pravega_connector.testing.pytest_plugin, sys\n"
        "print(len({'numpy', 'pyarrow', 'grpc', 'google.protobuf', 'http.server'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "0\n"


def test_names_that_it_does_not_have():
    import pravega_connector.testing as door

    assert {*door.__all__} <= {*dir(door)}
    with pytest.raises(
        AttributeError, match=r"pravega_connector\.testing has no Pravega: did you mean InProcessPravega"
    ):
        door.Pravega


def test_a_client_of_another_server_that_had_the_port_before_is_refused():
    with SegmentStore() as store, socket.create_connection(store.endpoint, timeout=10) as other:
        other.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert other.recv(1) == b""
