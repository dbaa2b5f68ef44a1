"""One object per key and process, for all callers."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pravega_serde.per_process import PerProcess


def test_a_key_has_one_object():
    objects: PerProcess[str, object] = PerProcess()
    first = objects.get("a", object)
    assert objects.get("a", object) is first
    assert objects.get("b", object) is not first


def test_an_object_may_be_none_and_is_made_once():
    made: list[int] = []
    looked: PerProcess[str, None] = PerProcess()
    for _ in range(3):
        looked.get("a", lambda: made.append(1))
    assert made == [1]


def test_whoever_fails_to_make_it_leaves_it_to_the_next():
    objects: PerProcess[str, int] = PerProcess()
    with pytest.raises(ZeroDivisionError):
        objects.get("a", lambda: 1 // 0)
    assert objects.get("a", lambda: 7) == 7


def test_others_wait_for_their_own_key_only():
    objects: PerProcess[str, object] = PerProcess()
    begun, go_on = threading.Event(), threading.Event()

    def slowly() -> object:
        begun.set()
        assert go_on.wait(120)
        return object()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(objects.get, "a", slowly)
        assert begun.wait(120)
        second = pool.submit(objects.get, "a", object)
        objects.get("b", object)
        assert not second.done()
        go_on.set()
        assert first.result(120) is second.result(120)


def test_clearing_closes_and_forgets():
    closed: list[str] = []
    objects: PerProcess[str, str] = PerProcess(closed.append)
    objects.get("a", lambda: "old")
    objects.clear()
    assert closed == ["old"]
    assert objects.get("a", lambda: "new") == "new"
    objects.clear()


FORKED = """
import os, threading, time
from pravega_serde.per_process import PerProcess

class Named(str):
    def __del__(self):
        print("collected", self, flush=True)

objects = PerProcess(lambda name: print("closed", name, "by parent" if os.getpid() == parent else "by child"))
parent = os.getpid()
objects.get("k", lambda: Named("parent's"))
begun = threading.Event()
threading.Thread(target=lambda: objects.get("slow", lambda: (begun.set(), time.sleep(60))), daemon=True).start()
begun.wait()
child = os.fork()
if child == 0:
    print(objects.get("k", lambda: Named("child's")), objects.get("slow", lambda: "own"), flush=True)
    objects.clear()
    os._exit(0)
os.waitpid(child, 0)
print(objects.get("k", lambda: Named("third")))
"""


def test_a_forked_process_has_its_own_and_leaves_the_parents_alone():
    # Even while a thread of the parent makes one; at the end each process closes what it has made, and no other.
    command = [sys.executable, "-W", "ignore", "-c", FORKED]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith("collected")] == [
        "child's own",
        "closed child's by child",
        "closed own by child",
        "parent's",
        "closed parent's by parent",
    ]
    assert lines.index("closed parent's by parent") < lines.index("collected parent's")
