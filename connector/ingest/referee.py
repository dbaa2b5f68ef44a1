"""Fate of a recorded step, and the choice to wait for the run that recorded it."""

from __future__ import annotations

import functools
import os
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Final, Literal

from ..client import CommitWatch, PravegaClient, StreamName, TransactionStatus
from ..errors import IngestUndecidedError, TransactionCommittedError, TransactionUnknownError
from .journal import Owner, Step

__all__ = ["RESOLUTIONS", "Fate", "Referee", "Resolution", "has_ended", "this_run"]

Resolution = Literal["committed", "aborted"]
RESOLUTIONS: Final[tuple[Resolution, ...]] = ("committed", "aborted")
# How often it is asked again after a transaction that is said to be unknown, and seconds before each time.
_DOUBTS: Final = 3
_DOUBT: Final = 1.0


class Fate(Enum):
    """End of a step, as far as it has one."""

    COMMITTED = "committed"
    """Its pieces are in the stream, for good."""
    ABORTED = "aborted"
    """None of its pieces is in the stream, for good."""
    AT_WORK = "at work"
    """The run that recorded it may be at work."""


class Referee:
    """Decides steps by the status of their transactions.

    Any decision is right at any time: an open transaction is aborted before its step counts as failed, and the abort is
    refused if it was committed. Waiting only keeps ingesters from taking each other's work.
    """

    def __init__(
        self,
        client: PravegaClient,
        target: StreamName,
        me: Owner,
        *,
        takeover_after: float | None = None,
        resolution: Resolution | None = None,
    ) -> None:
        """``takeover_after`` seconds without any step count as a sign that the owner is gone.

        It may be slow instead. So these seconds are doubled for open transactions with each one that was aborted for
        their sake: otherwise several ingesters whose steps take longer would abort each other's for ever. They are
        halved again with each commit that was seen.

        ``resolution`` is what to take a transaction for that the server has forgotten.
        """
        self._client, self._target, self._me = client, target, me
        self._commits = CommitWatch(client.controller, target)
        self._takeover_after, self._resolution = takeover_after, resolution
        self._patience = takeover_after or 0.0  # with open transactions
        self._seen: tuple[int, float] = -1, 0.0

    def decide(self, number: int, step: Step) -> Fate:
        """Fate of the step that made state ``number``. Raises IngestUndecidedError, OutcomeUnknownError."""
        status = self.status(step.transaction)
        if status.is_aborted:
            return Fate.ABORTED
        if status is TransactionStatus.UNKNOWN:
            return self._forgotten(step)
        if not self._may_take_over(number, step, open_=status is TransactionStatus.OPEN):
            return Fate.AT_WORK
        if status.is_committed:
            self._patience = max(self._takeover_after or 0.0, self._patience / 2)
            return Fate.COMMITTED
        if not self._has_ended(step.owner):
            self._patience *= 2
        return self._abort(step)

    def status(self, transaction: uuid.UUID) -> TransactionStatus:
        """The status of a transaction of the target; UNKNOWN only if that is said again and again.

        The controller reads its records from segments, and says UNKNOWN for one that it does not find: a store that
        does not know yet that it has lost them may be asked for it.
        """
        for _ in range(_DOUBTS):
            status = self._commits.status(transaction)
            if status is not TransactionStatus.UNKNOWN:
                return status
            time.sleep(_DOUBT)
        return self._commits.status(transaction)

    def _abort(self, step: Step) -> Fate:
        try:
            self._client.transaction(self._target, step.transaction).abort()
        except TransactionCommittedError:
            return Fate.COMMITTED
        except TransactionUnknownError:
            return self._forgotten(step)
        return Fate.ABORTED

    def _may_take_over(self, number: int, step: Step, *, open_: bool) -> bool:
        if self._has_ended(step.owner):
            return True
        if self._seen[0] != number:
            self._seen = number, time.monotonic()
        quiet = time.monotonic() - self._seen[1]
        if self._takeover_after is not None:
            return quiet >= (self._patience if open_ else self._takeover_after)
        # An open transaction is a sign of life: a run that is gone does not ping it, and then the server aborts it.
        return not open_ and quiet >= step.lease

    def _has_ended(self, owner: Owner) -> bool:
        """Whether it is certain that no other run works on a step of this owner."""
        return owner.run == self._me.run or has_ended(owner)

    def _forgotten(self, step: Step) -> Fate:
        self._client.require_stream(self._target)
        if self._resolution is not None:
            return Fate(self._resolution)
        pieces = ", ".join(
            f"{piece.source} from record {piece.offset}{'' if piece.end is None else f' to {piece.end}'}"
            for piece in step.pieces
        )
        raise IngestUndecidedError(
            f"stream {self._target} does not know transaction {step.transaction} any more (it forgets after 24 h), so "
            f"whether it was committed cannot be told; it was to hold {pieces}. Look for these events in the stream, "
            "then start again once with resolve=committed if they are there, or resolve=aborted if they are not"
        )


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
