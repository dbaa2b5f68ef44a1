"""Runs one command and ends it when whoever started this process is gone, even by ``kill -9``.

Run by path with an isolated interpreter: it imports the standard library alone and starts in a few milliseconds.

Arguments: the starter's process id, a lock file or "-", a working folder or "-", then the command. The lock is held,
and ``folder/pid`` names the command, as long as the command runs. Standard input is a pipe whose other end the starter
holds. End of file there means that the starter is gone or wants the command ended; a starter that forked may have left
the pipe open in its children, so its process id is watched too. The folder is removed then. Bytes before the end of
file change that: ``k`` keeps the files in the folder, ``d`` detaches, so that only a signal ends the command. The files
are also kept when the command ends by itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_NONE: Final = "-"
_POLL_SECONDS: Final = 1.0
_END_SECONDS: Final = 5.0
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_STDIN: Final = 0
_ENDING_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(argv: list[str]) -> int:
    """Supervise the command in ``argv``; the exit code is the command's own, or 0 when it was ended on purpose."""
    parent, lock, folder, *command = argv
    wakeup = _wake_on_signals()
    _adopt()
    if lock != _NONE:
        # Never closed: the kernel gives the lock back with this process.
        fcntl.flock(os.open(lock, os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=_dying_with(os.getpid()),  # noqa: PLW1509 - there is one thread
        # A group of its own: what the command has started ends with it.
        process_group=0,
    )
    if folder != _NONE:
        Path(folder, "pid").write_text(f"{child.pid}\n")
    keep = _wait(child, int(parent), wakeup)
    code = child.poll()
    if code is None:
        # Nothing that the servers here store outlives them, and an orderly end would take seconds.
        _end_group(child)
    if folder != _NONE:
        _tidy(Path(folder), keep=keep or code is not None)
    return 0 if code is None else code if code >= 0 else 128 - code


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """Kill the command and what it has started, and wait until they are gone: they may be writing into the folder."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    deadline = time.monotonic() + _END_SECONDS
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)


def _tidy(folder: Path, *, keep: bool) -> None:
    """Remove the folder, or only the folders in it, which hold what was stored: the log tells what happened."""
    for path in list(folder.iterdir()) if keep else [folder]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def _wake_on_signals() -> int:
    """A descriptor on which each signal's number can be read: ending ones, and the end of the command."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (*_ENDING_SIGNALS, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return reader


def _adopt() -> None:
    """Be the parent of what the command leaves behind, so that it can be waited for (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _dying_with(supervisor: int) -> Callable[[], None]:
    """What the command does before it starts, so that the kernel ends it if this process is killed (Linux only)."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def prepare() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != supervisor:
                os._exit(1)

    return prepare


def _wait(child: subprocess.Popen[bytes], parent: int, wakeup: int) -> bool:
    """Return when the command has ended or is to be ended; true if the folder is to be kept."""
    said = b""
    watched = [wakeup, _STDIN]
    while child.poll() is None and (b"d" in said or os.getppid() == parent):
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
    return b"k" in said


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
