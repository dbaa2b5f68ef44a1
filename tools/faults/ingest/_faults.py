"""Faults of an ingester, from outside: its steps are wrapped, and one of them ends or stops the process.

A fault is ``{"at": PLACE, "nth": N, "action": "kill" | "stop", "seconds": S}``: the process does that to itself when it
comes to the place for the ``nth`` time. "during" places have sent their call, ``seconds`` before; whether it arrives is
left to chance. The process says before, in the file ``fired``, that the fault is about to be made.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

__all__ = ["PLACES", "install", "set_fault"]

#: Places in the order in which a step comes to them.
PLACES: Final = (
    "after decide",
    "after begin",
    "during record",
    "after record",
    "while writing",
    "after flush",
    "after visible",
    "during commit",
    "after commit",
)

_fault: dict[str, Any] = {}
_times = 0


def set_fault(fault: dict[str, Any]) -> None:
    """The fault of this process."""
    _fault.update(fault)


def install() -> None:
    """Wrap the steps of ingesters; without a fault nothing happens in them."""
    from pravega_connector.client import TransactionalWriter
    from pravega_connector.exactly_once.steps import Outcome, StepLog
    from pravega_connector.ingest.ingester import Ingester
    from pravega_connector.writer.transactions import OpenTransaction

    _after(Ingester, "_take_over", "after decide")
    _after(TransactionalWriter, "begin", "after begin")
    _during(Ingester, "_record", "during record")
    _after(Ingester, "_record", "after record", only=lambda turn: turn.outcome is Outcome.WRITTEN)
    _after(OpenTransaction, "write_column", "while writing")
    _after(Ingester, "_flush", "after flush")
    _after(Ingester, "_await_before", "after visible")
    _during(StepLog, "_commit", "during commit")
    _after(StepLog, "_commit", "after commit")


def _after(cls: type, name: str, place: str, *, only: Callable[[Any], bool] = lambda _: True) -> None:
    """Reach the place when a method has returned, and ``only`` accepts the result."""
    method = getattr(cls, name)

    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = method(*args, **kwargs)
        if only(result):
            _reach(place)
        return result

    setattr(cls, name, wrapper)


def _during(cls: type, name: str, place: str) -> None:
    method = getattr(cls, name)

    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if _fault.get("at") != place:
            return method(*args, **kwargs)
        answer: list[Any] = []
        call = threading.Thread(target=lambda: answer.append(method(*args, **kwargs)), daemon=True)
        call.start()
        time.sleep(_fault["seconds"])
        _reach(place)
        call.join()
        return answer[0]

    setattr(cls, name, wrapper)


def _reach(place: str) -> None:
    global _times  # noqa: PLW0603 - one fault for each process
    if _fault.get("at") != place:
        return
    _times += 1
    if _times == _fault["nth"]:
        Path(_fault["fired"]).write_text(json.dumps({"at": place, "pid": os.getpid()}))
        _ACTIONS[_fault["action"]]()


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


_ACTIONS: Final[dict[str, Callable[[], None]]] = {"kill": _kill, "stop": _stop}
