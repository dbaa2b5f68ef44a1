"""Faults of a Spark application, from outside: the connector's modules are wrapped as they are imported.

Two variables of the environment tell what to do. ``EXACTLY_ONCE_FOLDER`` takes ``log.jsonl``, what every process did
(transactions begun, commits asked for), and ``fired``, by which the process that makes the fault says so before.
``EXACTLY_ONCE_FAULT`` is the fault, as JSON::

    {"at": "after COMMIT_PILOT", "batch": 1, "partition": 0, "nth": 2, "action": "kill-all", "seconds": 0.0}

``at`` is a place that :func:`reach` is called with; the fault fires once, at the ``nth`` time that a process comes
there with these ``batch``, ``partition`` and ``attempt`` (any, if they are not given).

Each event is written with the id of its transaction behind it, so that readers see whose events they see. The digests
are made before, so replays are compared as they would be without.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["EXACTLY_ONCE_FOLDER"])
FAULT: dict[str, Any] = json.loads(os.environ.get("EXACTLY_ONCE_FAULT", "{}"))
RUN = os.environ.get("EXACTLY_ONCE_RUN", "")
_times = 0


def install() -> None:
    """Wait for the connector's modules to be imported."""
    sys.meta_path.insert(0, _Finder())


def hide(package: str) -> None:
    """Have the package missing."""

    class Hidden(MetaPathFinder):
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
            if name == package:
                raise ModuleNotFoundError(f"{package} is hidden", name=package)

    sys.meta_path.insert(0, Hidden())


# ---- what is told ----------------------------------------------------------------------------------------------------


def note(what: str, **more: Any) -> None:
    """Append a line to the log, whole even among others."""
    line = json.dumps({"what": what, "run": RUN, "pid": os.getpid(), "time": time.time(), **more}) + "\n"
    log = os.open(FOLDER / "log.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, line.encode())
    os.close(log)


def reach(where: str, **place: Any) -> None:
    """A process comes to ``where``: make the fault, if it is here."""
    global _times  # noqa: PLW0603 - one fault for each process
    if FAULT.get("at") != where or any(FAULT[name] != place.get(name) for name in _NARROW & FAULT.keys()):
        return
    _times += 1
    if _times < FAULT.get("nth", 1) or (FOLDER / "fired").exists():
        return
    action = _ACTIONS[FAULT["action"]]
    if action is _kill_later or fire(where, **place):
        action()


_NARROW = frozenset({"batch", "partition", "attempt"})


def fire(where: str, **place: Any) -> bool:
    """Say that the fault is about to be made; False if another process was faster."""
    told = {
        "at": where,
        "action": FAULT["action"],
        "pid": os.getpid(),
        "session": os.getsid(0),
        "run": RUN,
        "time": time.time(),
        **place,
    }
    # Whole or not there: it is waited for.
    whole = FOLDER / f"fired-by-{os.getpid()}-{threading.get_ident()}"
    whole.write_text(json.dumps(told))
    try:
        os.link(whole, FOLDER / "fired")
    except FileExistsError:
        return False
    finally:
        whole.unlink()
    return True


# ---- what is done ----------------------------------------------------------------------------------------------------


def session() -> list[int]:
    """All processes of this application but this one: JVM, driver, planners, daemons, workers."""
    mine, found = os.getsid(0), []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if os.getsid(int(name)) == mine:
                    found.append(int(name))
            except ProcessLookupError:
                continue
    return found


def _to_all(number: int) -> None:
    for pid in session():
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
    os.kill(os.getpid(), number)


def _kill_all() -> None:
    _to_all(signal.SIGKILL)


def _stop_all() -> None:
    _to_all(signal.SIGSTOP)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _kill_later() -> None:
    """When Spark has had time to take what this process has given it."""
    place = _task()

    def end() -> None:
        time.sleep(FAULT.get("seconds", 0.5))
        if fire(FAULT["at"], **place):
            _kill()

    threading.Thread(target=end, daemon=True).start()


def _sleep() -> None:
    time.sleep(FAULT["seconds"])


def _hold() -> None:
    """Until the test has done what it wants to happen in between."""
    deadline = time.monotonic() + 600
    while not (FOLDER / "go").exists() and time.monotonic() < deadline:
        time.sleep(0.02)


_ACTIONS: dict[str, Callable[[], None]] = {
    "kill": _kill,
    "kill-later": _kill_later,
    "kill-all": _kill_all,
    "stop-all": _stop_all,
    "sleep": _sleep,
    "hold": _hold,
}

# ---- where -----------------------------------------------------------------------------------------------------------


def _task() -> dict[str, Any]:
    """Where a worker is: batch, partition and attempt of its task; nothing outside of tasks."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return {}
    batch = context.getLocalProperty("streaming.sql.batchId")
    return {
        "batch": None if batch is None else int(batch),
        "partition": context.partitionId(),
        "attempt": context.attemptNumber(),
    }


def _after(cls: type, name: str, then: Callable[..., None]) -> None:
    """Call ``then(result, *arguments)`` after a method."""
    method = getattr(cls, name)

    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = method(*args, **kwargs)
        then(result, *args)
        return result

    setattr(cls, name, wrapper)


def _patch_transactions(module: Any) -> None:
    def begun(transaction: Any, writer: Any) -> None:
        note("begun", transaction=str(transaction.id), stream=str(writer.stream), lease=writer.lease, **_task())

    def write_column(self: Any, events: Any, routing_keys: Any = None) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        signature = pa.scalar(b"|" + str(self.id).encode(), pa.binary())
        write(self, pc.binary_join_element_wise(events.cast(pa.binary()), signature, b""), routing_keys)

    write = module.OpenTransaction.write_column
    module.OpenTransaction.write_column = write_column
    _after(module.TransactionalWriter, "begin", begun)


def _patch_tasks(module: Any) -> None:
    task, sink = module._Task, module.ExactlyOnce
    _after(task, "_begin", lambda *_: reach("after begin", **_task()))
    _after(task, "add", lambda *_: reach("while writing", **_task()))
    _after(task, "prepare", lambda *_: reach("after flush", **_task()))
    _after(sink, "write", lambda *_: reach("after message", **_task()))
    commit = sink.commit

    def told(self: Any, client: Any, messages: Any, batch: int) -> None:
        parts = [str(m.part.transaction) for m in messages if getattr(m, "part", None) is not None]
        note("commit", batch=batch, parts=parts)
        try:
            commit(self, client, messages, batch)
        except Exception as error:
            note("commit failed", batch=batch, error=str(error))
            raise
        note("commit done", batch=batch)

    sink.commit = told


def _patch_ledger(module: Any) -> None:
    answer, now = module._answer, {"batch": -1}

    def told(machine: Any, servers: Any) -> Any:
        phase, batch = machine.phase.name, machine.job.batch
        now["batch"] = batch
        note("phase", phase=phase, batch=batch)
        reach(f"before {phase}", batch=batch)
        if FAULT.get("at") == f"during {phase}":
            # The call goes out; whether it arrives before the end of this process is left to chance.
            threading.Thread(target=lambda: answer(machine, servers), daemon=True).start()
            time.sleep(FAULT.get("seconds", 0.003))
            reach(f"during {phase}", batch=batch)
        result = answer(machine, servers)
        reach(f"after {phase}", batch=batch)
        return result

    commit = module.Servers._commit

    def then_reach(self: Any, id_: Any, **first: Any) -> Any:
        status = commit(self, id_, **first)
        reach("after one commit", **now)
        return status

    module._answer = told
    module.Servers._commit = then_reach
    module.Servers._each = lambda self, call, ids: {id_: call(id_) for id_ in ids}  # one by one


_PATCHES: dict[str, Callable[[Any], None]] = {
    "pravega_connector.writer.transactions": _patch_transactions,
    "pravega_connector.exactly_once.batches.servers": _patch_ledger,
    "pravega_connector.spark.sink.transactions": _patch_tasks,
}


class _Finder(MetaPathFinder):
    """Wraps a module when it is imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        patch = _PATCHES.pop(name, None)
        if patch is None:
            return None
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            patch(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
