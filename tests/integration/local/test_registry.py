"""The embedded schema registry: who is let in, what it keeps, how it ends."""

import os
import shutil
import signal
import threading

import pytest

from pravega_connector.errors import ConfigError, LocalServerError
from pravega_connector.local import LocalSchemaRegistry, RegistryUser
from pravega_serde.errors import RegistryAuthenticationError, RegistryPermissionError, RegistryProtocolError
from pravega_serde.registry import Compatibility, GroupProperties, SchemaInfo, SchemaRegistryClient, SerializationFormat

PROPERTIES = GroupProperties(SerializationFormat.AVRO, Compatibility.FULL)
SCHEMA = SchemaInfo("R", SerializationFormat.AVRO, b'{"type":"record","name":"R","fields":[]}')


@pytest.mark.long
def test_users_over_tls():
    admin, reader = RegistryUser("admin", "pass:word"), RegistryUser("reader", "x", ("prn::/namespace:/group:g,READ",))
    assert "pass:word" not in repr(admin)
    with LocalSchemaRegistry(users=[admin, reader], tls=True) as registry:
        assert registry.uri.startswith("https://127.0.0.1:")

        def client(username=None, password=None, *, ca_file=str(registry.ca_file)):
            return SchemaRegistryClient(registry.uri, username=username, password=password, ca_file=ca_file)

        with client("admin", "pass:word") as allowed:
            assert allowed.add_group("g", PROPERTIES)
            allowed.add_schema("g", SCHEMA)
        with client("reader", "x") as limited:
            assert limited.group_properties("g") == PROPERTIES
            assert limited.latest_schemas("g")[0].schema == SCHEMA
            with pytest.raises(RegistryPermissionError):
                limited.add_schema("g", SCHEMA)
            with pytest.raises(RegistryPermissionError):
                limited.remove_group("g")
        for credentials in [(), ("admin", "wrong"), ("nobody", "x")]:
            with client(*credentials) as unknown, pytest.raises(RegistryAuthenticationError):
                unknown.group_properties("g")
        with client(ca_file=None) as doubtful, pytest.raises(RegistryProtocolError, match=r"no trusted .* ca_file"):
            doubtful.group_properties("g")


@pytest.mark.long
def test_groups_in_pravega_outlive_a_registry_and_calls_its_restart(pravega, free_port):
    settings = {"controller": pravega.config, "port": free_port}
    with LocalSchemaRegistry(**settings) as registry:
        client = SchemaRegistryClient(registry.uri, timeout=60, latest_seconds=0)
        client.add_group("kept", PROPERTIES)
        version = client.add_schema("kept", SCHEMA)
    found = []
    asking = threading.Thread(target=lambda: found.append(client.schema_versions("kept")))
    asking.start()
    with LocalSchemaRegistry(**settings):
        asking.join(60)
    assert [(item.schema, item.version) for item in found[0]] == [(SCHEMA, version)]
    client.close()


def test_mistakes_are_one_line(free_port):
    registry = LocalSchemaRegistry(port=free_port)
    with pytest.raises(LocalServerError, match="is not running; call start"):
        _ = registry.uri
    with registry:
        with pytest.raises(LocalServerError, match=f"is running already, at http://127.0.0.1:{free_port}"):
            registry.start()
        with pytest.raises(LocalServerError, match=f"port {free_port} is in use"):
            LocalSchemaRegistry(port=free_port).start()
        assert registry.log.exists()
    registry.close()
    with pytest.raises(ConfigError, match="invalid port"):
        LocalSchemaRegistry(port=70_000)
    with pytest.raises(ConfigError, match="heap_mb of 64"):
        LocalSchemaRegistry(heap_mb=1)


def test_a_registry_that_ends_by_itself_says_why():
    with pytest.raises(LocalServerError, match=r"ended with exit code 1 \(Too small maximum heap\)") as caught:
        LocalSchemaRegistry(java_options=("-Xmx1k",)).start()
    log = str(caught.value).rpartition("see ")[2]
    shutil.rmtree(log.rpartition("/")[0])


def test_the_address_of_a_registry_that_was_killed_says_so(eventually, is_gone):
    with LocalSchemaRegistry() as registry:
        supervisor = registry._server.process.supervisor_pid
        os.kill(registry.pid, signal.SIGKILL)
        eventually(lambda: is_gone(supervisor))
        with pytest.raises(LocalServerError, match=r"the schema registry ended with exit code 137 .*server\.log$"):
            _ = registry.uri
        folder = registry.log.parent
    shutil.rmtree(folder)


def test_it_ends_with_its_starter(start_python, is_gone, eventually):
    starter = start_python(
        "import time; from pravega_connector.local import LocalSchemaRegistry; r = LocalSchemaRegistry(); r.start();"
        "print(r.pid, flush=True); time.sleep(600)"
    )
    pid = int(starter.stdout.readline())
    assert not is_gone(pid)
    starter.kill()
    eventually(lambda: is_gone(pid))
