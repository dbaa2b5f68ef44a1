"""Locks between processes, each on a file. The system releases a lock when its process ends."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_POLL_SECONDS: Final = 0.05


@contextlib.contextmanager
def file_lock(path: Path, seconds: float = math.inf, *, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold the lock on a file during the block. Create the file if it is missing.

    The lock excludes other threads, too. ``waiting`` is called once if the lock is not free. Raises TimeoutError if the
    lock is not free within ``seconds``.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _is_acquired(file):
            waiting()
            end = time.monotonic() + seconds
            while not _is_acquired(file):
                if time.monotonic() > end:
                    raise TimeoutError(f"{path} was locked for {seconds:g} s")
                time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(file)


def _is_acquired(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
