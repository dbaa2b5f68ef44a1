"""TLS and users: the client against a server that asks for both."""

import asyncio

import pyarrow as pa
import pytest
import trustme
import uvloop

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import AuthenticationError
from pravega_connector.stores import segment_stores
from tests.integration._users import ADMIN, password

pytestmark = pytest.mark.real_servers("TLS, users and delegation tokens")

USER, PASSWORD = ADMIN, password(ADMIN)


@pytest.fixture(scope="module")
def server(admin: PravegaConfig) -> PravegaConfig:
    """The server without credentials."""
    return PravegaConfig(controller=admin.controller, tls_ca_file=admin.tls_ca_file)


@pytest.fixture
def client(server: PravegaConfig, scope):
    with PravegaClient(server.with_credentials(USER, PASSWORD).with_scope(scope)) as client:
        yield client


def test_events_are_written_and_read_with_delegation_tokens(client, stream_name):
    client.create_stream(stream_name, 2)
    events = [b"%d:" % i + bytes(i % 5000) for i in range(1500)]
    with client.follow(stream_name, start=client.head(stream_name)) as reader:
        with client.writer(stream_name, max_event_size=10 << 20) as writer:
            writer.write_column(pa.array(events), pa.array([str(i % 9) for i in range(1500)]))
            writer.write(bytes(9 << 20), "large")
        assert sorted(client.read(stream_name)) == sorted([*events, bytes(9 << 20)])
        followed = []
        while len(followed) < 1501 and (batch := reader.poll(10)) is not None:
            followed += batch.events.to_pylist()
    assert sorted(followed) == sorted([*events, bytes(9 << 20)])
    token = client.stores.token(stream_name, write=True)
    assert token.count(".") == 2
    assert segment_stores._token_end(token) < float("inf")


def test_tls_is_used_without_its_scheme(server, stream_name):
    plain = server.with_credentials(USER, PASSWORD).with_controller(server.controller.replace("tls://", "tcp://"))
    settings = {"ca_file": server.tls_ca_file, "to_controller": True, "to_stores": True}
    with PravegaClient(plain.with_tls(**settings)) as client:
        client.create_stream(stream_name)
        client.write(stream_name, "event", "string")
        assert list(client.read(stream_name, "string")) == ["event"]


def test_tables_take_delegation_tokens(client, scope):
    """The server checks the name of the segments, scope/table_kvtable, for which Java's client requests no token."""
    client.create_table("ages", 4, partitions=2)
    table = client.table("ages", key="string", value="string")
    version = table.insert("anna", "31")
    assert table.put("anna", "32", version) != version
    assert [(entry.key, entry.value) for entry in table.entries()] == [("anna", "32")]
    assert list(table.keys()) == ["anna"]
    table.remove("anna")
    assert [str(name) for name in client.tables()] == [f"{scope}/ages"]
    assert client.stores.token(table.name.segments, write=True).count(".") == 2
    assert client.delete_table("ages")


def test_transactions_and_revisions_take_delegation_tokens_too(client, stream_name):
    client.create_stream(stream_name)
    with client.transactions(stream_name).begin() as transaction:
        transaction.write(b"in a transaction")
        transaction.ping()
    with client.revisioned(stream_name) as log:
        start = log.oldest_revision()
        (entry,) = log.read_from(start)
        assert log.write_conditionally(entry[0], b"at a revision") == log.latest_revision()
        assert log.write_conditionally(start, b"late") is None
        assert log.compare_and_set_mark(None, entry[0])
        assert log.mark() == entry[0]
        log.truncate_to_revision(entry[0])
        assert [written for _, written in log.read_from(log.oldest_revision())] == [b"at a revision"]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_the_client_for_asyncio_uses_tls_and_tokens(run, client, stream_name):
    async def main():
        async with AsyncPravegaClient(client.config) as other:
            await other.create_stream(stream_name, 2)

            async def follow():
                found = []
                async with other.follow(stream_name, "string", start="earliest") as reader:
                    while len(found) < 301:
                        found += await reader.poll(10)
                return sorted(found)

            following = [asyncio.create_task(follow()) for _ in range(3)]
            async with other.writer(stream_name, "string") as writer:
                for number in range(300):
                    await writer.write(f"{number:03}" * (number * 20), str(number % 7))
            async with other.transactions(stream_name, "string").begin() as transaction:
                await transaction.write("together", "7")
            return await asyncio.gather(*following)

    written = sorted(["together", *(f"{number:03}" * (number * 20) for number in range(300))])
    assert run(main()) == [written] * 3


@pytest.mark.parametrize("write", [False, True], ids=["reading", "writing"])
def test_a_token_that_the_server_refuses_is_replaced(client, stream_name, write):
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        writer.write(b"first")
    key = (stream_name, write)
    refused = "e30.e30.bm9uc2Vuc2U"
    client.stores._tokens[key] = (refused, float("inf"))
    if write:
        with client.writer(stream_name) as writer:
            writer.write(b"second")
    assert list(client.read(stream_name)) == ([b"first", b"second"] if write else [b"first"])
    assert client.stores._tokens[key][0] != refused


def test_a_wrong_password_is_one_line_without_the_password(server, stream_name):
    wrong = "my dog's birthday"
    config = server.with_credentials(USER, wrong)
    with PravegaClient(config) as client, pytest.raises(AuthenticationError) as caught:
        client.create_stream(stream_name)
    text = str(caught.value)
    assert text.startswith("[PRAVEGA-AUTHENTICATION] ")
    assert "\n" not in text
    for secret in (wrong, config.auth_token):
        assert secret not in text
        assert secret not in repr(config)


def test_missing_credentials_are_reported_with_the_way_to_give_them(server, stream_name):
    with PravegaClient(server) as client, pytest.raises(AuthenticationError, match="with_credentials"):
        client.head(stream_name)


def test_a_server_whose_certificate_is_not_trusted_is_refused(server, stream_name, tmp_path):
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    config = server.with_credentials(USER, PASSWORD).with_tls(ca_file=tmp_path / "other.pem")
    with PravegaClient(config, timeout=2) as client, pytest.raises(AuthenticationError, match="check tls_ca_file"):
        client.head(stream_name)


def test_a_segment_store_with_another_name_is_refused_unless_told_otherwise(client, server, stream_name):
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        writer.write(b"x")
    credentials = server.with_credentials(USER, PASSWORD)
    host, port = client.controller.endpoint(stream_name, 0)
    assert host == "localhost"

    def read(config):
        with PravegaClient(config, timeout=2) as other:
            # The same store by an address that its certificate does not name.
            other.controller.endpoint = lambda stream, segment_id, **_: ("127.1", port)
            return list(other.read(stream_name))

    with pytest.raises(AuthenticationError, match="certificate"):
        read(credentials)
    assert read(credentials.with_tls(ca_file=server.tls_ca_file, validate_hostname=False)) == [b"x"]
