"""Short times in tests that hold on a busy machine, too: other work of the machine does not count as the client's."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pravega_serde.registry import http

PACES = (1, 4, 16)
_TICK = 0.005
# A longer tick is the machine's: this process could not run.
_LONGEST_TICK = 2 * _TICK
_STARVED = 0.02


class Meter:
    """The seconds that this process could run in, or was free to wait in, by a thread that ticks."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lost = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick)

    @property
    def starved(self) -> bool:
        """Return True if the machine kept this process from running long enough that short times mean nothing."""
        return self._lost > _STARVED

    @contextlib.contextmanager
    def running(self) -> Iterator[Meter]:
        self._thread.start()
        try:
            yield self
        finally:
            self._done.set()
            self._thread.join()

    def _tick(self) -> None:
        before, done = time.monotonic(), False
        while not done:
            done = self._done.wait(_TICK)
            now = time.monotonic()
            took, before = now - before, now
            self.seconds += min(took, _LONGEST_TICK)
            self._lost += max(took - _LONGEST_TICK, 0)


def paced(check: Callable[..., None]) -> Callable[..., None]:
    """A test that takes its times, and the client's pauses, times ``pace``, which is 1 unless the machine is busy.

    It may fail and is repeated, with all times longer, if the process was starved in the meantime.
    """

    @functools.wraps(check)
    def run(*args: Any, **kwargs: Any) -> None:
        for pace in PACES:
            with pytest.MonkeyPatch.context() as patch, Meter().running() as meter:
                patch.setattr(http, "_FIRST_PAUSE", http._FIRST_PAUSE * pace)
                patch.setattr(http, "_LONGEST_PAUSE", http._LONGEST_PAUSE * pace)
                try:
                    check(*args, pace=pace, **kwargs)
                except (Exception, pytest.fail.Exception):
                    if pace == PACES[-1] or not meter.starved:
                        raise
                else:
                    return

    signature = inspect.signature(check)
    own = [parameter for name, parameter in signature.parameters.items() if name != "pace"]
    run.__dict__["__signature__"] = signature.replace(parameters=own)
    return run


class Clock:
    """A clock in place of the module ``time``, which stands still."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now
