"""A supervised command ends with the process that started it, however that ends."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from pravega_connector.local.process import SupervisedProcess

SLEEP = ["sleep", "600"]

# Starts a command in the folder given, tells the supervisor's process id, and stays.
STARTER = """
import os, signal, subprocess, sys, time
from pathlib import Path
from pravega_connector.local.process import SupervisedProcess
process = SupervisedProcess(["sleep", "600"], output=subprocess.DEVNULL, folder=Path(sys.argv[1]))
print(process.supervisor_pid, flush=True)
if "stop" in sys.argv:
    os.kill(process.supervisor_pid, signal.SIGSTOP)
if "fork" in sys.argv and os.fork() == 0:
    print(os.getpid(), flush=True)
    process.close()
    time.sleep(600)
if "detach" in sys.argv:
    process.detach()
if "return" not in sys.argv:
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
def pid_in(folder, eventually):
    def read():
        eventually(lambda: (folder / "pid").exists() and (folder / "pid").read_text().endswith("\n"))
        return int((folder / "pid").read_text())

    return read


@pytest.fixture
def has_looked_thrice(eventually):
    """Wait until a supervisor has looked for its starter, which it does each second, and sleeps again."""

    def sleeps(supervisor):
        lines = Path(f"/proc/{supervisor}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:"))

    def wait(supervisor):
        before = sleeps(supervisor)
        eventually(lambda: sleeps(supervisor) > before + 3)

    return wait


def test_close_ends_the_command_and_removes_its_folder(folder, pid_in, is_gone):
    process = SupervisedProcess(SLEEP, output=subprocess.DEVNULL, folder=folder)
    pid = pid_in()
    assert not is_gone(pid)
    assert process.exit_code() is None
    process.close()
    assert is_gone(pid)
    assert not folder.exists()
    process.close()


def test_files_stay_if_asked_but_not_what_was_stored(folder, pid_in, is_gone):
    (folder / "stored").mkdir()
    (folder / "log").touch()
    process = SupervisedProcess(SLEEP, output=subprocess.DEVNULL, folder=folder)
    pid = pid_in()
    process.close(keep=True)
    assert is_gone(pid)
    assert {path.name for path in folder.iterdir()} == {"log", "pid"}


@pytest.mark.parametrize(("status", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 128 + 9)])
def test_a_command_that_ends_by_itself(folder, status, code):
    (folder / "stored").mkdir()
    process = SupervisedProcess(["sh", "-c", f"echo bye; {status}"], output=subprocess.PIPE, folder=folder)
    assert process.output.read() == b"bye\n"
    assert process.wait(120) == code
    process.close()
    assert {path.name for path in folder.iterdir()} == {"pid"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_command_ends_when_its_starter_is_killed(start_python, folder, pid_in, is_gone, eventually, number):
    starter = start_python(STARTER, folder)
    pid = pid_in()
    assert not is_gone(pid)
    starter.send_signal(number)
    starter.wait(120)
    eventually(lambda: is_gone(pid))
    eventually(lambda: not folder.exists())


def test_the_command_ends_when_its_starter_forgets_it(start_python, folder, pid_in, is_gone, eventually):
    starter = start_python(STARTER, folder, "return")
    assert starter.wait(120) == 0
    eventually(lambda: not folder.exists())


def test_a_forked_child_neither_ends_the_command_nor_keeps_it(start_python, folder, pid_in, is_gone, eventually):
    starter = start_python(STARTER, folder, "fork")
    _, child = int(starter.stdout.readline()), int(starter.stdout.readline())
    pid = pid_in()
    assert not is_gone(pid)
    # The child still has the pipe to the supervisor open.
    starter.kill()
    starter.wait(120)
    try:
        eventually(lambda: is_gone(pid))
        assert not is_gone(child)
    finally:
        os.kill(child, signal.SIGKILL)


def test_the_command_ends_when_its_supervisor_is_killed(folder, pid_in, is_gone, eventually):
    process = SupervisedProcess(SLEEP, output=subprocess.DEVNULL, folder=folder)
    pid = pid_in()
    os.kill(process.supervisor_pid, signal.SIGKILL)
    eventually(lambda: is_gone(pid))
    process.close()


def test_a_starter_that_ends_at_once_has_detached_its_command(
    start_python, folder, pid_in, is_gone, eventually, has_looked_thrice
):
    """Its last byte counts although the supervisor, stopped here, runs only when the starter has ended."""
    starter = start_python(STARTER, folder, "stop", "detach", "return")
    supervisor = int(starter.stdout.readline())
    assert starter.wait(120) == 0
    os.kill(supervisor, signal.SIGCONT)
    pid = pid_in()
    has_looked_thrice(supervisor)
    assert not is_gone(pid)
    os.kill(supervisor, signal.SIGTERM)
    eventually(lambda: is_gone(pid))


def test_a_detached_command_outlives_its_starter_until_a_signal_comes(
    start_python, folder, pid_in, is_gone, eventually, has_looked_thrice
):
    starter = start_python(STARTER, folder, "detach", "return")
    supervisor = int(starter.stdout.readline())
    pid = pid_in()
    assert starter.wait(120) == 0
    has_looked_thrice(supervisor)
    assert not is_gone(pid)
    os.kill(supervisor, signal.SIGTERM)
    eventually(lambda: is_gone(pid))
    eventually(lambda: not folder.exists())
