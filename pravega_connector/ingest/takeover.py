"""Whether a run that has recorded a step may still be at work, and which run this is."""

from __future__ import annotations

import functools
import os
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pravega_connector.core.values import TransactionStatus

Resolution = Literal["committed", "aborted"]
RESOLUTIONS: Final[tuple[Resolution, ...]] = ("committed", "aborted")


@dataclass(frozen=True, slots=True)
class Owner:
    """A run of an ingester: its id, and where to check whether it is alive."""

    run: str
    host: str
    pid: int
    since: int

    def to_json(self) -> dict[str, Any]:
        """Return the facts that a step notes; the log has the run itself."""
        return {"host": self.host, "pid": self.pid, "since": self.since}

    @classmethod
    def from_json(cls, run: str, value: Mapping[str, Any]) -> Owner:
        """Parse the facts of a step. Another client need not note any."""
        return cls(run, str(value.get("host", "")), int(value.get("pid", 0)), int(value.get("since", 0)))

    def __str__(self) -> str:
        return f"{self.host}, process {self.pid}"


class Takeover:
    """Decides whether to wait for the run that recorded a step.

    Nothing depends on the answer but work: a step that is taken over too soon is aborted and done again.
    """

    def __init__(self, me: Owner, *, after: float | None = None) -> None:
        """``after`` seconds without any step count as a sign that the owner has ended.

        It may be slow instead. So these seconds are doubled for open transactions with each one that was aborted for
        their sake: otherwise several ingesters whose steps take longer would abort each other's for ever. They are
        halved again with each commit that was seen.
        """
        self._me, self._after = me, after
        self._patience = after or 0.0  # with open transactions
        self._seen: tuple[uuid.UUID | None, float] = None, 0.0

    def may_take_over(self, owner: Owner, transaction: uuid.UUID, status: TransactionStatus, lease: float) -> bool:
        """Return whether to decide the step of ``owner`` now; ``status`` is its transaction's."""
        if status.is_aborted or status is TransactionStatus.UNKNOWN or self._has_ended(owner):
            return True
        if self._seen[0] != transaction:
            self._seen = transaction, time.monotonic()
        quiet = time.monotonic() - self._seen[1]
        is_open = status is TransactionStatus.OPEN
        if self._after is not None:
            return quiet >= (self._patience if is_open else self._after)
        # An open transaction is a sign of life: if a run has ended, the server aborts its transaction.
        return not is_open and quiet >= lease

    def note(self, owner: Owner, *, committed: bool) -> None:
        """Note the outcome of a step that was taken over."""
        if committed:
            self._patience = max(self._after or 0.0, self._patience / 2)
        elif not self._has_ended(owner):
            self._patience *= 2

    def _has_ended(self, owner: Owner) -> bool:
        """Return whether it is certain that no other run works on a step of this owner."""
        return owner.run == self._me.run or has_ended(owner)


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
    """Start time of a process, in ticks since boot; 0 if unknown."""
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
