"""Runs the processes of a cluster: starts each by name when asked, and tells how each is doing.

Run by path with an isolated interpreter, under a supervisor. Argument: the cluster's folder. In it:

    cluster.json    {"processes": {NAME: [WORD, ...]}, ...}: the command of each process
    control         a named pipe; a line NAME starts that process if it does not run
    NAME.state      {"pid": N, "state": "running" | "paused" | "ended", "code": N | null, "starts": N}
    NAME.log        what the process printed, over all of its starts
    NAME/           its working folder

A process is killed, paused and resumed by signals of whoever likes to: only its parent is told reliably that it stopped
or ended, which is why the states are written here. The processes end with this one.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1


class Keeper:
    """The processes of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._commands: dict[str, list[str]] = json.loads((folder / "cluster.json").read_text())["processes"]
        self._names: dict[int, str] = {}
        self._starts = dict.fromkeys(self._commands, 0)
        self._prepare = _dying_with(os.getpid())

    def start(self, name: str) -> None:
        """Start a process unless it runs."""
        if name not in self._commands or name in self._names.values():
            return
        self._starts[name] += 1
        with open(self._folder / f"{name}.log", "ab") as log:
            try:
                child = subprocess.Popen(
                    self._commands[name],
                    cwd=self._folder / name,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    preexec_fn=self._prepare,  # noqa: PLW1509 - there is one thread
                )
            except OSError as error:
                log.write(f"{error}\n".encode())
                self._tell(name, 0, "ended", 127)
                return
        # It is waited for here, together with the others.
        child.returncode = 0
        self._names[child.pid] = name
        self._tell(name, child.pid, "running")

    def look(self) -> None:
        """Tell of every process that has stopped, gone on or ended."""
        while self._names:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if not pid:
                return
            if os.WIFSTOPPED(status):
                self._tell(self._names[pid], pid, "paused")
            elif os.WIFCONTINUED(status):
                self._tell(self._names[pid], pid, "running")
            else:
                self._tell(self._names.pop(pid), pid, "ended", os.waitstatus_to_exitcode(status))

    def _tell(self, name: str, pid: int, state: str, code: int | None = None) -> None:
        told: dict[str, Any] = {"pid": pid, "state": state, "code": code, "starts": self._starts[name]}
        partial = self._folder / f"{name}.partial"
        partial.write_text(json.dumps(told))
        partial.replace(self._folder / f"{name}.state")


def _dying_with(keeper: int) -> Callable[[], None]:
    """What a process does before it starts, so that the kernel ends it with the keeper (Linux only)."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def prepare() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != keeper:
                os._exit(1)

    return prepare


def main(argv: list[str]) -> None:
    """Serve the folder named in ``argv`` until a signal ends this process."""
    folder = Path(argv[0])
    wakeup, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # Also open for writing, so that it has no end when those who ask have gone.
    control = os.open(folder / "control", os.O_RDWR)
    keeper, words = Keeper(folder), b""
    while True:
        ready, _, _ = select.select([wakeup, control], [], [])
        if wakeup in ready:
            os.read(wakeup, 4096)
        keeper.look()
        if control in ready:
            *names, words = (words + os.read(control, 4096)).split(b"\n")
            for name in names:
                keeper.start(name.decode())


if __name__ == "__main__":
    main(sys.argv[1:])
