"""Processes of a cluster, here of ``sleep``: what can be done to them by name, from any process, and how they end."""

import json
import os
import signal
import subprocess

import pytest

from pravega_connector.errors import ConfigError, LocalServerError
from pravega_connector.local import ClusterOptions, LocalPravega
from pravega_connector.local.cluster import cluster_processes, is_kept
from pravega_connector.local.process import SupervisedProcess, isolated

COMMANDS = {
    "steady": ["sleep", "600"],
    "stubborn": ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"],
    "brief": ["sh", "-c", "echo bye; exit 7"],
    "absent": ["/no/such/program"],
}

# Starts a cluster in the folder given, reports that it is up, and stays.
STARTER = """
import sys, time
from pathlib import Path
from tests.unit.local.test_cluster_process import start
keeper, processes = start(Path(sys.argv[1]))
processes["steady"].start()
processes["stubborn"].start()
print(processes["steady"].pid, processes["stubborn"].pid, flush=True)
time.sleep(600)
"""


def start(folder):
    for name in COMMANDS:
        (folder / name).mkdir()
    (folder / "cluster.json").write_text(json.dumps({"processes": COMMANDS}))
    os.mkfifo(folder / "control")
    keeper = SupervisedProcess(isolated("keep", str(folder)), output=subprocess.DEVNULL, folder=folder)
    while not is_kept(folder):
        assert keeper.exit_code() is None
    return keeper, cluster_processes(folder)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "cluster"
    made.mkdir()
    return made


@pytest.fixture
def processes(folder):
    keeper, made = start(folder)
    yield made
    keeper.close()


def test_nothing_runs_before_it_is_started(processes):
    assert list(processes) == list(COMMANDS)
    steady = processes["steady"]
    assert (steady.running, steady.paused, steady.exit_code) == (False, False, None)
    with pytest.raises(LocalServerError, match="steady does not run"):
        _ = steady.pid


def test_killed_and_started_again(processes, is_gone):
    steady = processes["steady"]
    steady.start()
    first = steady.pid
    steady.start()
    assert steady.pid == first
    steady.kill()
    assert is_gone(first)
    assert (steady.running, steady.exit_code) == (False, -signal.SIGKILL)
    steady.kill()
    steady.restart()
    assert steady.pid != first
    assert steady.exit_code is None


def test_restart_ends_what_runs(processes, is_gone):
    steady = processes["steady"]
    steady.start()
    first = steady.pid
    steady.restart()
    assert is_gone(first)
    assert steady.running


def test_paused_and_resumed(processes):
    steady = processes["steady"]
    steady.start()
    steady.pause()
    assert (steady.running, steady.paused) == (True, True)
    steady.resume()
    assert (steady.running, steady.paused) == (True, False)
    steady.pause()
    steady.kill()
    assert (steady.running, steady.paused) == (False, False)


def test_terminate_waits_for_the_end(processes, monkeypatch, eventually):
    steady, stubborn = processes["steady"], processes["stubborn"]
    steady.start()
    steady.terminate()
    assert steady.exit_code == -signal.SIGTERM
    stubborn.start()
    eventually(lambda: stubborn.log.read_text() == "up\n")
    monkeypatch.setattr("pravega_connector.local.cluster._COMMAND_SECONDS", 0.2)
    with pytest.raises(LocalServerError, match=r"stubborn did not end in .*stubborn\.log"):
        stubborn.terminate()
    assert stubborn.running


@pytest.mark.parametrize("command", ["pause", "resume", "terminate"])
def test_signals_need_a_process(processes, command):
    with pytest.raises(LocalServerError, match="steady: it does not run"):
        getattr(processes["steady"], command)()


def test_one_that_ends_by_itself_is_noticed_and_its_log_continues(processes, eventually):
    brief = processes["brief"]
    for runs in (1, 2):
        brief.start()
        eventually(lambda: not brief.running)
        assert brief.exit_code == 7
        assert brief.log.read_text() == "bye\n" * runs


def test_a_command_that_cannot_be_run(processes):
    processes["absent"].start()
    assert (processes["absent"].running, processes["absent"].exit_code) == (False, 127)
    assert "/no/such/program" in processes["absent"].log.read_text()


def test_all_end_with_the_keeper(folder, is_gone):
    keeper, processes = start(folder)
    processes["steady"].start()
    processes["stubborn"].start()
    processes["stubborn"].pause()
    pids = [processes[name].pid for name in ("steady", "stubborn")]
    keeper.close()
    assert all(map(is_gone, pids))
    assert not folder.exists()


def test_states_of_a_cluster_that_ended_are_not_believed(folder, is_gone, eventually):
    keeper, processes = start(folder)
    processes["steady"].start()
    pid = processes["steady"].pid
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    eventually(lambda: is_gone(pid))
    assert not processes["steady"].running
    with pytest.raises(LocalServerError, match="its cluster has ended"):
        processes["steady"].start()
    keeper.close()


def test_all_end_when_their_starter_is_killed(start_python, folder, is_gone, eventually):
    starter = start_python(STARTER, folder)
    pids = [int(word) for word in starter.stdout.readline().split()]
    assert not any(map(is_gone, pids))
    starter.kill()
    starter.wait(120)
    eventually(lambda: all(map(is_gone, pids)))
    eventually(lambda: not folder.exists())


@pytest.mark.parametrize(
    "options",
    [
        {"controllers": 0},
        {"stores": 0},
        {"bookies": 1},
        {"containers": 1},
        {"heap_mb": 1},
        {"cache_mb": 1},
        {"port": -1},
    ],
)
def test_options_that_cannot_be_right(options):
    with pytest.raises(ConfigError):
        ClusterOptions(**options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"cluster": True, "tls": True}, "a local cluster has no TLS"),
        ({"cluster": True, "username": "ann"}, "both username and password"),
        ({"cluster": True, "token_seconds": 20}, "with credentials"),
        ({"username": "ann", "password": "x", "token_seconds": 0}, "at least 1"),
        ({"controllers": 2}, "2 controllers need cluster=True"),
    ],
)
def test_arguments_that_do_not_go_together(options, told):
    with pytest.raises(ConfigError, match=told):
        LocalPravega(**options)
