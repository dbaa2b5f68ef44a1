"""Locks between processes."""

import subprocess
import sys
import threading

import pytest

from pravega_connector.local.file_lock import file_lock

HOLD = """
import sys
from pathlib import Path
from pravega_connector.local.file_lock import file_lock
with file_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_another_process_excludes_and_its_end_releases(tmp_path):
    path = tmp_path / "lock"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        told = []
        with pytest.raises(TimeoutError), file_lock(path, 0.1, waiting=lambda: told.append("waiting")):
            raise AssertionError("two held it")
        assert told == ["waiting"]
        with file_lock(path, 30, waiting=holder.kill):
            pass


def test_another_thread_waits(tmp_path):
    path = tmp_path / "lock"
    order, waiting = [], threading.Event()

    def work():
        with file_lock(path, 30, waiting=waiting.set):
            order.append("second")

    with file_lock(path):
        thread = threading.Thread(target=work)
        thread.start()
        assert waiting.wait(120)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
