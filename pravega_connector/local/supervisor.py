"""Programs that supervise the servers' processes, and end them with their starter, even after ``kill -9``.

They are run by path with an isolated interpreter, import only the standard library, and start in a few milliseconds.

``run STARTER LOCK FOLDER COMMAND...`` supervises one command. STARTER is the starter's process id, LOCK a file or "-",
FOLDER a working folder or "-". While the command runs, the lock is held and ``FOLDER/pid`` has its process id.

Standard input is a pipe, and the starter holds its other end. End of file means that the starter has ended, or ends
the command. A starter that forked may have left the pipe open in its children, so its process id is watched, too. At
the end, the folder is removed. Bytes before the end of file change that. After ``k``, the files in the folder are kept.
After ``d``, the command is detached, and only a signal ends it. The files are also kept if the command ends by itself.

``keep FOLDER`` runs the processes of a cluster until a signal ends it. It starts a process on request, and all
processes end with it. In FOLDER:

    cluster.json    {"processes": {NAME: [WORD, ...]}, ...}: the command of each process
    control         a named pipe; a line NAME starts that process if it does not run
    NAME.state      {"pid": N, "state": "running" | "paused" | "ended", "code": N | null, "starts": N}
    NAME.log        output of the process, over all of its starts
    NAME/           its working folder

Any process can kill, pause and resume such a process with signals. Only the parent is notified reliably when a process
stops or ends, so ``keep`` writes the states.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_NONE: Final = "-"
_POLL_SECONDS: Final = 1.0
_END_SECONDS: Final = 5.0
# <sys/prctl.h>
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_STDIN: Final = 0
_ENDING_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run(starter: str, lock: str, folder: str, *command: str) -> int:
    """Supervise the command. Return the command's exit code, or 0 if it was ended on purpose."""
    wakeup = _wake_on((*_ENDING_SIGNALS, signal.SIGCHLD))
    _adopt()
    if lock != _NONE:
        # Never closed: the kernel releases the lock when this process ends.
        fcntl.flock(os.open(lock, os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=_dying_with(os.getpid()),  # noqa: PLW1509 - there is one thread
        # A separate process group, so that the children of the command end with it.
        process_group=0,
    )
    if folder != _NONE:
        Path(folder, "pid").write_text(f"{child.pid}\n")
    keep = _wait(child, int(starter), wakeup)
    code = child.poll()
    if code is None:
        # The data of these servers does not outlive them, and an orderly end would take seconds.
        _end_group(child)
    if folder != _NONE:
        _tidy(Path(folder), keep=keep or code is not None)
    return 0 if code is None else code if code >= 0 else 128 - code


def _wait(child: subprocess.Popen[bytes], starter: int, wakeup: int) -> bool:
    """Return when the command has ended or must be ended. Return True if the folder must be kept."""
    said = b""
    watched = [wakeup, _STDIN]
    while child.poll() is None:
        ready, _, _ = select.select(watched, [], [], _POLL_SECONDS)
        if wakeup in ready and set(os.read(wakeup, 64)) & set(_ENDING_SIGNALS):
            break
        if _STDIN in ready:
            word = os.read(_STDIN, 64)
            said += word
            if not word and b"d" not in said:
                break
            if not word:
                watched = [wakeup]
        elif b"d" not in said and os.getppid() != starter:  # read its last bytes first
            break
    return b"k" in said


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """Kill the command and its children, and wait for their end: they may be writing into the folder."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    deadline = time.monotonic() + _END_SECONDS
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)


def _tidy(folder: Path, *, keep: bool) -> None:
    """Remove the folder, or only the data folders in it. The log then shows the cause."""
    for path in list(folder.iterdir()) if keep else [folder]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def _adopt() -> None:
    """Become the parent of the processes that the command leaves, to wait for their end (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def keep(folder: str) -> int:
    """Run the cluster in a folder until a signal ends this process."""
    wakeup = _wake_on((signal.SIGCHLD,))
    # Also open for writing, so that no end of file comes when all writers have closed the pipe.
    control = os.open(Path(folder, "control"), os.O_RDWR)
    keeper, words = Keeper(Path(folder)), b""
    while True:
        ready, _, _ = select.select([wakeup, control], [], [])
        if wakeup in ready:
            os.read(wakeup, 4096)
        keeper.look()
        if control in ready:
            *names, words = (words + os.read(control, 4096)).split(b"\n")
            for name in names:
                keeper.start(name.decode())


class Keeper:
    """Processes of one cluster, by name."""

    def __init__(self, folder: Path) -> None:
        self._json = json
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
        # look() waits for it, together with the others.
        child.returncode = 0
        self._names[child.pid] = name
        self._tell(name, child.pid, "running")

    def look(self) -> None:
        """Write the state of every process that has stopped, resumed or ended."""
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
        partial.write_text(self._json.dumps(told))
        partial.replace(self._folder / f"{name}.state")


def _wake_on(signals: tuple[signal.Signals, ...]) -> int:
    """Return a descriptor from which the numbers of the received signals can be read."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return reader


def _dying_with(parent: int) -> Callable[[], None]:
    """Return a function that a child calls before it starts.

    The kernel then kills the child if its parent is killed (Linux only).
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def prepare() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

    return prepare


if __name__ == "__main__":
    program, *arguments = sys.argv[1:]
    sys.exit(keep(*arguments) if program == "keep" else run(*arguments))
