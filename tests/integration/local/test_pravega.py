"""The embedded server: it works, has its ports for itself, and ends with its owner."""

import os
import re
import signal
import socket
import time

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.errors import AuthenticationError, ConfigError, DeadlineExceededError, LocalServerError
from pravega_connector.local import LocalPravega, LocalSchemaRegistry, launch
from pravega_connector.local import server as module
from pravega_serde.registry import Compatibility, GroupProperties, SchemaRegistryClient, SerializationFormat

PASSWORD = "a:b c\\ü"

STARTER = """
import time
from pravega_connector.local import LocalPravega
server = LocalPravega()
server.start()
print(server.pid, server.log, flush=True)
time.sleep(600)
"""


@pytest.fixture
def temp_folder(monkeypatch, tmp_path):
    """Where servers keep their folders in this test."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_ready_means_that_events_can_be_written_at_once(pravega):
    assert re.fullmatch(r"tcp://127\.0\.0\.1:\d+", pravega.controller_uri)
    with PravegaClient(pravega.controller_uri) as client:
        # Nothing of the readiness probe is left.
        assert "local-readiness" not in client.controller.list_scopes()


def test_a_failure_in_the_middle_of_the_probe_is_not_an_obstacle(monkeypatch, pravega):
    real, attempts = launch._round_trip, []

    def round_trip(client, stream, store):
        attempts.append(stream)
        real(client, stream, store)
        if len(attempts) == 1:
            client.controller.seal_stream(stream)
            raise DeadlineExceededError("too slow")

    monkeypatch.setattr(launch, "_round_trip", round_trip)
    with PravegaClient(pravega.controller_uri) as client:
        client.create_stream("probe/probe")
        store = client.controller.endpoint(client.name("probe/probe"), 0)
    launch.await_ready(pravega.config, [store], deadline=time.monotonic() + 60, check=lambda: None)
    assert len(attempts) == 2


def test_the_segment_store_is_on_loopback(pravega):
    host, port = "127.0.0.1", int(pravega.controller_uri.rpartition(":")[2])
    with PravegaClient(pravega.controller_uri) as client:
        client.create_stream("ports/ports")
        store = client.controller.endpoint(client.name("ports/ports"), 0)
    assert store[0] == host
    assert store[1] != port


@pytest.mark.long
def test_a_second_server_has_the_port_it_is_given_and_its_own_data(pravega, temp_folder, free_port):
    with (
        LocalPravega(port=free_port) as other,
        PravegaClient(other.controller_uri) as there,
        PravegaClient(pravega.controller_uri) as here,
    ):
        assert other.controller_uri == f"tcp://127.0.0.1:{free_port}" != pravega.controller_uri
        there.create_stream("elsewhere/stream")
        assert there.controller.scope_exists("elsewhere")
        assert not here.controller.scope_exists("elsewhere")
        with pytest.raises(LocalServerError, match="running already"):
            other.start()
        with pytest.raises(LocalServerError, match=f"port {free_port} is in use; .* port 0"):
            LocalPravega(port=free_port).start()
        assert len(list(temp_folder.iterdir())) == 1
    assert list(temp_folder.iterdir()) == []
    with pytest.raises(LocalServerError, match="not running"):
        _ = other.controller_uri


@pytest.mark.long  # tests/unit/local/test_process.py kills the parent of another command
def test_the_server_ends_when_its_parent_is_killed(start_python, is_gone, eventually):
    parent = start_python(STARTER)
    pid, log = parent.stdout.readline().split()
    assert not is_gone(int(pid))
    parent.send_signal(signal.SIGKILL)
    parent.wait(120)
    eventually(lambda: is_gone(int(pid)))
    eventually(lambda: not os.path.exists(os.path.dirname(log)))


@pytest.mark.long
def test_a_port_that_was_taken_in_the_meantime(monkeypatch, temp_folder):
    real, given = module.free_ports, []

    with socket.create_server(("127.0.0.1", 0)) as thief:

        def free_ports(count):
            given.append(real(count))
            # The first time ZooKeeper's port is in use by another process.
            return [*given[0][:2], thief.getsockname()[1]] if len(given) == 1 else given[-1]

        monkeypatch.setattr(module, "free_ports", free_ports)
        with LocalPravega() as server:
            assert server.controller_uri == f"tcp://127.0.0.1:{given[1][0]}"
    assert len(given) == 2
    assert list(temp_folder.iterdir()) == []


@pytest.mark.long
def test_a_server_that_never_gets_ready_is_started_once_more(monkeypatch, temp_folder):
    real, limits = module.await_ready, []

    def await_ready(*args, deadline, **others):
        limits.append(deadline - time.monotonic())
        if len(limits) == 1:
            raise launch.NotReadyError("too slow")
        real(*args, deadline=deadline, **others)

    monkeypatch.setattr(module, "await_ready", await_ready)
    with LocalPravega(start_timeout=120.0):
        assert len(list(temp_folder.iterdir())) == 1
    assert limits == [pytest.approx(60, abs=1), pytest.approx(60, abs=1)]


@pytest.mark.long
def test_another_server_on_the_controllers_port_is_not_mistaken_for_ours(monkeypatch, pravega, temp_folder):
    taken = int(pravega.controller_uri.rpartition(":")[2])
    real, given = module.free_ports, []

    def free_ports(count):
        given.append(real(count))
        return [taken, *given[0][1:]] if len(given) == 1 else given[-1]

    monkeypatch.setattr(module, "free_ports", free_ports)
    with LocalPravega() as server:
        assert server.controller_uri == f"tcp://127.0.0.1:{given[1][0]}"


def test_a_server_that_cannot_start_says_why_and_where_more_is_reported(temp_folder):
    with pytest.raises(
        LocalServerError, match=r"^\[PRAVEGA-LOCAL-SERVER\] [^\n]*exit code 1[^\n]*server\.log$"
    ) as caught:
        LocalPravega(java_options=("-XX:NoSuchOption",)).start()
    (folder,) = temp_folder.iterdir()
    assert str(folder / "server.log") in str(caught.value)
    assert "NoSuchOption" in (folder / "server.log").read_text()


def test_a_deadline_that_is_too_short(temp_folder, is_gone):
    with pytest.raises(LocalServerError, match="not ready in time"):
        LocalPravega(start_timeout=1.0).start()
    (folder,) = temp_folder.iterdir()
    assert is_gone(int((folder / "pid").read_text()))


@pytest.mark.long
def test_tls_and_credentials():
    # Characters that a properties file, a URL or a user list might stumble over.
    with LocalPravega(username="ann", password=PASSWORD, tls=True) as server:
        assert server.controller_uri.startswith("tls://")
        assert PASSWORD not in repr(server.config)
        with PravegaClient(server.config) as client:
            client.create_stream("safe/stream")
            with client.writer("safe/stream") as writer:
                writer.write(b"secret")
            assert list(client.read("safe/stream")) == [b"secret"]
        for stranger in (
            server.config.with_credentials("ann", "wrong"),
            server.config.with_credentials("bob", PASSWORD),
        ):
            with PravegaClient(stranger) as client, pytest.raises(AuthenticationError):
                client.create_stream("safe/other")
        with LocalSchemaRegistry(controller=server.config) as registry, SchemaRegistryClient(registry.uri) as groups:
            assert groups.add_group("safe", GroupProperties(SerializationFormat.AVRO, Compatibility.FULL))


@pytest.mark.parametrize(
    "options", [{"username": "ann"}, {"heap_mb": 10}, {"cache_mb": 1}, {"port": 70_000}, {"port": -1}]
)
def test_options_that_cannot_be_right(options):
    with pytest.raises(ConfigError):
        LocalPravega(**options)
