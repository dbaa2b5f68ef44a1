"""Detection of other runs: which run has recorded a step, and if it may still be active."""

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
from pravega_connector.errors import ConfigError
from pravega_serde.errors import one_line

Resolution = Literal["committed", "aborted"]
RESOLUTIONS: Final[tuple[Resolution, ...]] = ("committed", "aborted")


def resolutions(given: Mapping[uuid.UUID, Resolution] | Mapping[str, Resolution] | None) -> dict[uuid.UUID, bool]:
    """Return an operator's decisions on forgotten transactions: True for each committed one. Raises ConfigError."""
    if not isinstance(given, Mapping | None):
        raise ConfigError(f"argument 'resolve' must have an outcome for each transaction id, not {given!r}")
    decided: dict[uuid.UUID, bool] = {}
    for id_, outcome in (given or {}).items():
        try:
            transaction = id_ if isinstance(id_, uuid.UUID) else uuid.UUID(id_)
        except (ValueError, TypeError, AttributeError):
            raise ConfigError(f"resolve: {id_!r} is not a transaction id, such as the error shows") from None
        if outcome not in RESOLUTIONS:
            raise ConfigError(f"resolve: transaction {transaction} is {outcome!r}; set {' or '.join(RESOLUTIONS)}")
        if decided.setdefault(transaction, outcome == "committed") != (outcome == "committed"):
            raise ConfigError(f"resolve: transaction {transaction} has two outcomes; set one of them")
    return decided


@dataclass(frozen=True, slots=True)
class Owner:
    """Run of an ingester: its id, and its host and process for checking if it is alive."""

    run: str
    host: str
    pid: int
    since: int

    def to_json(self) -> dict[str, Any]:
        """Return the fields that a step records; the log has the run id itself."""
        return {"host": self.host, "pid": self.pid, "since": self.since}

    @classmethod
    def from_json(cls, run: str, value: Mapping[str, Any]) -> Owner:
        """Parse the fields of a step. Another client need not record any."""
        return cls(run, str(value.get("host", "")), int(value.get("pid", 0)), int(value.get("since", 0)))

    def __str__(self) -> str:
        return one_line(f"{self.host}, process {self.pid}")


class Takeover:
    """Policy that decides whether to wait for the run that recorded a step.

    A wrong answer only costs work: a step that is taken over too soon is aborted and repeated.
    """

    def __init__(self, me: Owner, *, after: float | None = None) -> None:
        """Set up. After ``after`` seconds without any step, the owner is assumed to have ended.

        The owner may be slow instead. So for open transactions, these seconds double with each transaction that was
        aborted after a wait. Otherwise several ingesters with longer steps would abort each other's steps forever. The
        seconds are halved again with each commit that was seen.
        """
        self._me, self._after = me, after
        self._patience = after or 0.0  # the same for open transactions
        self._seen: tuple[uuid.UUID | None, float] = None, 0.0

    def may_take_over(self, owner: Owner, transaction: uuid.UUID, status: TransactionStatus, lease: float) -> bool:
        """Return True to decide the step of ``owner`` now; ``status`` is the status of its transaction."""
        if status.is_aborted or status is TransactionStatus.UNKNOWN or self._has_ended(owner):
            return True
        if self._seen[0] != transaction:
            self._seen = transaction, time.monotonic()
        quiet = time.monotonic() - self._seen[1]
        is_open = status is TransactionStatus.OPEN
        if self._after is not None:
            return quiet >= (self._patience if is_open else self._after)
        # An open transaction shows that its run is alive: after a run has ended, the server aborts its transaction.
        return not is_open and quiet >= lease

    def note(self, owner: Owner, *, committed: bool) -> None:
        """Record the outcome of a step that was taken over."""
        if committed:
            self._patience = max(self._after or 0.0, self._patience / 2)
        elif not self._has_ended(owner):
            self._patience *= 2

    def _has_ended(self, owner: Owner) -> bool:
        """Return True if it is certain that no other run works on a step of this owner."""
        return owner.run == self._me.run or has_ended(owner)


_at_work: Final[set[str]] = set()  # ids of the active runs in this process


@contextmanager
def this_run() -> Iterator[Owner]:
    """Yield a new run in this process; it is active until the block ends."""
    me = Owner(str(uuid.uuid4()), _host(), os.getpid(), _started(os.getpid()))
    _at_work.add(me.run)
    try:
        yield me
    finally:
        _at_work.discard(me.run)


def has_ended(owner: Owner) -> bool:
    """Return True if a run has certainly ended: it ran on this machine, and it or its process does not exist.

    The check makes no call to a server. Correctness does not depend on it; it avoids waiting for a lease to expire.
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
    """Return the machine, its boot id and its process id namespace: each container has its own."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(Path("/proc/self/ns/pid").readlink().name)
    return "/".join(parts)


def _started(pid: int) -> int:
    """Return the start time of a process, in ticks since boot; 0 if unknown."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def _is_zombie(pid: int) -> bool:
    fields = _stat(pid)
    return bool(fields) and fields[0] == "Z"


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third one; none if the file does not exist."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
