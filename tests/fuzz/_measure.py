"""Cost of an input: CPU seconds, and the process's peak of memory while it is read."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

import pyarrow as pa

__all__ = ["HangError", "Meter", "settle", "watched"]

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # proc_pid_clear_refs(5): the peak becomes what is resident now
_LIBC = ctypes.CDLL(None)


class HangError(BaseException):
    """An input takes so long that it is not waited for. Not an Exception: no handler may catch it."""


def settle() -> None:
    """Give unused memory back, so that what comes next has to ask for its own."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError):  # only glibc has it
        _LIBC.malloc_trim(0)


class Meter:
    """Measures from its creation on; it sees all resident memory, of all owners."""

    def __init__(self) -> None:
        _CLEAR.write_text(_RESET_PEAK)
        self._before = _kibibytes("VmRSS")
        self._start = time.process_time()

    def seconds(self) -> float:
        return time.process_time() - self._start

    def mebibytes(self) -> float:
        return (_kibibytes("VmHWM") - self._before) / 1024


def _kibibytes(name: str) -> int:
    status = _STATUS.read_text()
    at = status.index(name) + len(name) + 1
    return int(status[at : status.index("kB", at)])


@contextlib.contextmanager
def watched(seconds: float) -> Iterator[None]:
    """Raise HangError when the block has taken that much CPU time."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise HangError(f"no end after {seconds:.0f} s of CPU time")

    before: Callable[..., object] | int | None = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
