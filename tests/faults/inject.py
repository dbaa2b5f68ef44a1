"""Kill points: wrapped methods of a process under test, each a point at which it kills, stops or delays itself.

A fault is a mapping::

    {"at": "after COMMIT_PILOT", "nth": 2, "action": "kill", "seconds": 0.0, "batch": 1, "partition": 0, "attempt": 0}

It is caused once in a folder, when a process reaches the point for the ``nth`` time with these values; batch, partition
and attempt may be missing. Just before, the process reports it in the file ``fired`` of the folder.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

_WHERE: Final = frozenset({"batch", "partition", "attempt"})
_HOLD_SECONDS: Final = 600.0
#: Seconds between a call and the fault during it; chance decides whether the call arrives.
_DURING_SECONDS: Final = 0.003

_folder = Path()
_fault: dict[str, Any] = {}
_run = ""
_times = 0


def arm(folder: Path, fault: Mapping[str, Any], run: str = "") -> None:
    """Set the fault of this process, empty for none; ``run`` names the application in notes."""
    global _folder, _fault, _run
    _folder, _fault, _run = folder, dict(fault), run


def note(what: str, **more: Any) -> None:
    """Append a whole line to ``log.jsonl`` of the folder; other processes append as well."""
    line = json.dumps({"what": what, "run": _run, "pid": os.getpid(), "time": time.time(), **more}) + "\n"
    log = os.open(_folder / "log.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, line.encode())
    os.close(log)


def notes() -> list[dict[str, Any]]:
    """Return what processes of this application have noted."""
    log = _folder / "log.jsonl"
    lines = map(json.loads, log.read_text().splitlines()) if log.exists() else ()
    return [line for line in lines if line["run"] == _run]


def reach(point: str, **where: Any) -> None:
    """Cause the fault if this is its point."""
    global _times  # noqa: PLW0603 - one fault for each process
    if _fault.get("at") != point or any(_fault[name] != where.get(name) for name in _WHERE & _fault.keys()):
        return
    _times += 1
    if _times < _fault.get("nth", 1) or (_folder / "fired").exists():
        return
    if _fault["action"] == "kill-later":
        threading.Thread(target=_kill_later, args=(point, where), daemon=True).start()
    elif _fire(point, where):
        _ACTIONS[_fault["action"]]()


def _fire(point: str, where: Mapping[str, Any]) -> bool:
    """Report that the fault is about to be caused; return False if another process did so before."""
    report = {"at": point, "action": _fault["action"], "pid": os.getpid(), "run": _run, "time": time.time(), **where}
    # A link makes the file appear complete, once.
    complete = _folder / f"fired-by-{os.getpid()}-{threading.get_ident()}"
    complete.write_text(json.dumps(report))
    try:
        os.link(complete, _folder / "fired")
    except FileExistsError:
        return False
    finally:
        complete.unlink()
    return True


def after(
    cls: type,
    name: str,
    point: str,
    *,
    only: Callable[[Any], bool] = lambda _: True,
    where: Callable[[], Mapping[str, Any]] = dict,
) -> None:
    """Reach a point when a method has returned a value that ``only`` accepts."""
    method = getattr(cls, name)

    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = method(*args, **kwargs)
        if only(result):
            reach(point, **where())
        return result

    setattr(cls, name, wrapper)


def during(point: str, call: Callable[[], Any], **where: Any) -> Any:
    """Make a call, and return its result; reach the point while the call is in flight."""
    if _fault.get("at") != point:
        return call()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(call)
        time.sleep(_fault.get("seconds", _DURING_SECONDS))
        reach(point, **where)
        return answer.result()


# ---- actions ---------------------------------------------------------------------------------------------------------


def _signal(number: int) -> None:
    os.kill(os.getpid(), number)


def _signal_session(number: int) -> None:
    """Send a signal to every process of the session, this one last."""
    mine = os.getsid(0)
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if os.getsid(int(name)) == mine:
                    os.kill(int(name), number)
            except ProcessLookupError:
                continue
    _signal(number)


def _kill_later(point: str, where: Mapping[str, Any]) -> None:
    """Kill this process when Spark has had time to receive its result."""
    time.sleep(_fault.get("seconds", 0.5))
    if _fire(point, where):
        _signal(signal.SIGKILL)


def _hold() -> None:
    """Wait until the test has created the file ``go``."""
    deadline = time.monotonic() + _HOLD_SECONDS
    while not (_folder / "go").exists() and time.monotonic() < deadline:
        time.sleep(0.02)


_ACTIONS: Final[dict[str, Callable[[], None]]] = {
    "kill": lambda: _signal(signal.SIGKILL),
    "kill-all": lambda: _signal_session(signal.SIGKILL),
    "stop": lambda: _signal(signal.SIGSTOP),
    "stop-all": lambda: _signal_session(signal.SIGSTOP),
    "sleep": lambda: time.sleep(_fault["seconds"]),
    "hold": _hold,
}
