"""The processes of a local cluster, each of which can be stopped, killed, paused and started again by its name."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from connector.errors import LocalServerError

__all__ = ["ClusterProcess", "cluster_processes", "is_kept"]

# Of one command: an orderly end of a segment store takes a few seconds.
_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.01


class ClusterProcess:
    """One process of a cluster. Its commands return when they have come true, and raise LocalServerError in 60 s.

    It is started again with the ports and the folder that it had, so it still has what it stored; whether it is ready
    for work is another matter (``LocalPravega.await_ready``). Any process of the same user may give the commands.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self.name = name

    @property
    def log(self) -> Path:
        """What it printed: warnings and errors, over all of its starts."""
        return self._folder / f"{self.name}.log"

    @property
    def pid(self) -> int:
        """Its process id. Raises LocalServerError when it does not run."""
        pid = self._pid()
        if pid is None:
            raise LocalServerError(f"{self.name} does not run; start it again, or see {self.log}")
        return pid

    @property
    def running(self) -> bool:
        """Whether it has been started and has not ended; a paused one runs too."""
        return self._pid() is not None

    @property
    def paused(self) -> bool:
        """Whether it stands still."""
        return self.running and self._state()["state"] == "paused"

    @property
    def exit_code(self) -> int | None:
        """How it has ended, minus the number of the signal that ended it; None while it runs or was never started."""
        code = self._state()["code"]
        return None if code is None else int(code)

    def start(self) -> None:
        """Start it unless it runs."""
        if self.running:
            return
        before = self._state()["starts"]
        try:
            control = _open_control(self._folder)
        except OSError as error:
            raise LocalServerError(f"cannot start {self.name}: its cluster has ended") from error
        with open(control, "wb") as pipe:
            pipe.write(f"{self.name}\n".encode())
        self._await("start", lambda: self._state()["starts"] > before)

    def terminate(self) -> None:
        """Ask it to end (SIGTERM), and wait until it has."""
        self._signal(signal.SIGTERM)
        self._await("end", lambda: not self.running)

    def kill(self) -> None:
        """End it without warning (SIGKILL). Without effect on one that has ended."""
        self._signal(signal.SIGKILL)
        self._await("end", lambda: not self.running)

    def pause(self) -> None:
        """Let it stand still (SIGSTOP): it keeps its connections and answers nothing."""
        self._signal(signal.SIGSTOP)
        self._await("stop", lambda: self.paused)

    def resume(self) -> None:
        """Let a paused one go on (SIGCONT)."""
        self._signal(signal.SIGCONT)
        self._await("go on", lambda: not self.paused)

    def restart(self) -> None:
        """Kill it if it runs, and start it again."""
        self.kill()
        self.start()

    def _signal(self, number: signal.Signals) -> None:
        pid = self._pid()
        if pid is None and number != signal.SIGKILL:
            raise LocalServerError(f"cannot send {number.name} to {self.name}: it does not run")
        with contextlib.suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, number)

    def _pid(self) -> int | None:
        state = self._state()
        return state["pid"] if state["state"] in ("running", "paused") and is_kept(self._folder) else None

    def _state(self) -> dict[str, Any]:
        try:
            told: dict[str, Any] = json.loads((self._folder / f"{self.name}.state").read_text())
        except FileNotFoundError:
            return {"pid": 0, "state": "new", "code": None, "starts": 0}
        return told

    def _await(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise LocalServerError(f"{self.name} did not {what} in {_SECONDS:.0f} s; see {self.log}")
            time.sleep(_POLL_SECONDS)

    def __repr__(self) -> str:
        return f"ClusterProcess({self.name!r})"


def cluster_processes(folder: Path) -> Mapping[str, ClusterProcess]:
    """The processes of the cluster in a folder by their names, in the order in which they are started."""
    try:
        names = json.loads((folder / "cluster.json").read_text())["processes"]
    except FileNotFoundError as error:
        raise LocalServerError(f"the cluster in {folder} has ended") from error
    return {name: ClusterProcess(folder, name) for name in names}


def is_kept(folder: Path) -> bool:
    """Whether the states are kept up to date: what is written may be of a process that ended with its keeper."""
    try:
        os.close(_open_control(folder))
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return False
        raise
    return True


def _open_control(folder: Path) -> int:
    # Fails where nobody reads.
    return os.open(folder / "control", os.O_WRONLY | os.O_NONBLOCK)
