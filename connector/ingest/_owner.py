"""Who runs an ingester, and whether a run of this machine has ended."""

from __future__ import annotations

import functools
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from connector.ingest._state import Owner

__all__ = ["has_ended", "this_run"]

_at_work: Final[set[str]] = set()  # the runs in this process


@contextmanager
def this_run() -> Iterator[Owner]:
    """A new run in this process, which is at work until the block ends."""
    me = Owner(str(uuid.uuid4()), _host(), os.getpid(), _started(os.getpid()))
    _at_work.add(me.run)
    try:
        yield me
    finally:
        _at_work.discard(me.run)


def has_ended(owner: Owner) -> bool:
    """Whether a run has ended for certain: it was of this machine, and it or its process is gone. Costs no call.

    Nothing that matters depends on it; it spares waiting for a lease.
    """
    if not owner.pid or owner.host != _host():
        return False
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    if _started(owner.pid) != owner.since:
        return True
    return owner.run not in _at_work if owner.pid == os.getpid() else _is_zombie(owner.pid)


@functools.cache
def _host() -> str:
    """The machine since it was started, and its world of process ids: containers have their own."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(Path("/proc/self/ns/pid").readlink().name)
    return "/".join(parts)


def _started(pid: int) -> int:
    """When a process was started, in ticks since the machine was; 0 where that cannot be told."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def _is_zombie(pid: int) -> bool:
    fields = _stat(pid)
    return bool(fields) and fields[0] == "Z"


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third one on; none where there is no such file."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
