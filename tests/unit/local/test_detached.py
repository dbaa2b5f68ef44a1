"""Records about a server in the background."""

import fcntl
import json

import pytest

from pravega_connector.local import DetachedServer, detached_server

TOLD = {"uri": "tcp://127.0.0.1:9090", "pid": 1, "started": 5.0, "log": "/tmp/log"}


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A server in the background, as far as its lock tells; called with what its state file says."""
    monkeypatch.setenv("PRAVEGA_SERDE_CACHE", str(tmp_path))
    folder = tmp_path / "local"
    folder.mkdir()

    def write(told):
        (folder / "server.json").write_text(json.dumps(told))

    with open(folder / "server.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield write


def test_a_state_of_a_version_without_clusters(server):
    server(TOLD)
    found = detached_server()
    assert found == DetachedServer("tcp://127.0.0.1:9090", 1, 5.0, "/tmp/log", cluster=None)
    assert found.processes == {}


def test_a_cluster_names_its_folder(server, tmp_path):
    (tmp_path / "cluster.json").write_text(json.dumps({"processes": {"store-1": ["java"]}}))
    server(TOLD | {"cluster": str(tmp_path)})
    found = detached_server()
    assert list(found.processes) == ["store-1"]
