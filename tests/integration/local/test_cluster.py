"""The embedded cluster: separate processes that can fail one by one, and that end with their starter."""

import re

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.errors import LocalServerError
from pravega_connector.local import LocalPravega
from pravega_connector.local.jars import cache_dir

NAMES = ["zookeeper", "bookie-1", "bookie-2", "bookie-3", "controller-1", "controller-2", "store-1", "store-2"]
CLI = "import sys; from pravega_connector.operations.cli import main; main(sys.argv[1:])"


@pytest.fixture(scope="module")
def cluster():
    with LocalPravega(cluster=True, controllers=2) as server:
        yield server


@pytest.fixture
def client(cluster):
    with PravegaClient(cluster.config, timeout=60.0) as client:
        yield client


@pytest.fixture
def copy(client, stream_name):
    """Write numbered events to the test's stream and read all of it back."""
    client.create_stream(stream_name, 8)

    def run(first, count):
        with client.writer(stream_name) as writer:
            for number in range(first, first + count):
                writer.write(b"%d" % number, routing_key=str(number))
        return sorted(int(event) for event in client.read(stream_name))

    return run


def stores_of(client, stream):
    return {client.controller.endpoint(stream, number) for number in range(8)}


@pytest.mark.long
def test_each_process_is_one_of_its_own(cluster):
    assert list(cluster.processes) == NAMES
    assert len({process.pid for process in cluster.processes.values()}) == len(NAMES)
    assert all(process.log.exists() for process in cluster.processes.values())
    assert re.fullmatch(r"tcp://127\.0\.0\.1:\d+,127\.0\.0\.1:\d+", cluster.controller_uri)


@pytest.mark.long
def test_ready_means_that_both_stores_have_work(cluster, client, copy, stream_name):
    assert stores_of(client, stream_name) == set(cluster.cluster.stores)
    assert copy(0, 100) == list(range(100))


@pytest.mark.long
def test_what_is_stored_outlives_all_processes(cluster, copy):
    copy(0, 100)
    before = {name: process.pid for name, process in cluster.processes.items()}
    cluster.restart()
    assert all(process.pid != before[name] for name, process in cluster.processes.items())
    assert copy(100, 100) == list(range(200))


@pytest.mark.long
def test_the_ended_processes_are_named_when_the_rest_is_not_ready(cluster):
    controllers = [cluster.processes[name] for name in ("controller-1", "controller-2")]
    for process in controllers:
        process.kill()
    with pytest.raises(LocalServerError, match=r"\(controller-1, controller-2 do not run\)"):
        cluster.await_ready(5.0)
    for process in controllers:
        process.start()
    cluster.await_ready()


@pytest.mark.long
def test_a_bookie_that_is_unavailable_is_replaced(cluster, copy):
    copy(0, 10)
    cluster.processes["bookie-1"].kill()
    cluster.await_ready()
    assert copy(10, 100) == list(range(110))
    cluster.processes["bookie-1"].start()


@pytest.mark.long
def test_a_frozen_store_loses_its_containers(cluster, client, copy, stream_name, eventually):
    copy(0, 10)
    (frozen,) = [endpoint for endpoint, name in cluster.cluster.stores.items() if name == "store-1"]
    cluster.processes["store-1"].pause()
    try:
        eventually(lambda: frozen not in stores_of(client, stream_name))
    finally:
        cluster.processes["store-1"].resume()


@pytest.mark.long
def test_a_store_that_ended_is_not_waited_for(cluster):
    cluster.processes["store-2"].kill()
    with pytest.raises(LocalServerError, match=r"store-2 does not run; start it again, or see .*store-2\.log"):
        cluster.await_ready()
    cluster.processes["store-2"].start()
    cluster.await_ready()


def test_one_process_has_none_to_choose_from(pravega):
    with pytest.raises(LocalServerError, match="cluster=True"):
        _ = pravega.processes


@pytest.fixture
def home(monkeypatch, tmp_path):
    """A cache folder of the test's own, with the jars that exist already."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "jars").symlink_to(cache_dir() / "jars")
    monkeypatch.setenv("PRAVEGA_SERDE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.long
def test_in_the_background(home, start_python, is_gone):
    def cli(*args):
        process = start_python(CLI, "local", *args, PRAVEGA_SERDE_CACHE=str(home))
        output, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
        return output.splitlines()

    assert cli("up", "--cluster", "--port", "0")[0].startswith("Pravega is up at tcp://127.0.0.1:")
    try:
        _, *lines = cli("status")
        pids = {line.split()[0]: int(line.split("pid ")[1].split()[0]) for line in lines}
        assert list(pids) == [name for name in NAMES if name != "controller-2"]
        assert not any(map(is_gone, pids.values()))
        assert "store-1  ended" in cli("kill", "store-1")[0]
        assert is_gone(pids["store-1"])
        assert "paused" in cli("pause", "store-2")[0]
        assert [line.split()[0] for line in cli("status") if "paused" in line] == ["store-2"]
        assert "paused" not in cli("resume", "store-2")[0]
        assert f"pid {pids['store-1']} " not in cli("restart", "store-1")[0]
    finally:
        cli("down")
    assert all(map(is_gone, pids.values()))
