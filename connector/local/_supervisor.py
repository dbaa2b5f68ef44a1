"""Runs one command and ends it when whoever started this process is gone, even by ``kill -9``.

Run by path with an isolated interpreter, so it imports the standard library alone and starts in a few milliseconds.

Arguments: the starter's process id (0: nobody's, run until a signal comes), a lock file or "-", a working folder or
"-", then the command. Standard input is a pipe whose other end the starter holds: end of file means that it is gone or
wants the command ended. A starter that forked may leave the pipe open in its children, so the parent's id is watched
too. The working folder is removed at the end, unless the byte ``k`` (keep) came, or the command ended by itself.
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
from pathlib import Path
from typing import Final

_POLL_SECONDS: Final = 1.0
_PR_SET_PDEATHSIG: Final = 1
_ENDING_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(argv: list[str]) -> int:
    """Supervise the command in ``argv``; the exit code is the command's own, or 0 when it was ended on purpose."""
    parent, lock, folder, *command = argv
    wakeup = _wake_on_signals()
    held = _hold(lock)
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    supervisor = os.getpid()

    def die_with_supervisor() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != supervisor:
                os._exit(1)

    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_supervisor)  # noqa: PLW1509
    if folder != "-":
        Path(folder, "pid").write_text(f"{child.pid}\n")
    keep = _wait(child, int(parent), wakeup)
    code = child.poll()
    if code is None:
        # Nothing of an in-memory server is worth an orderly end, which would take seconds.
        child.kill()
        child.wait()
    if folder != "-" and code is None and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    held.close()
    return 0 if code is None else code if code >= 0 else 128 - code


def _wake_on_signals() -> int:
    """A descriptor that becomes readable when a child ends (byte SIGCHLD) or an ending signal comes."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (*_ENDING_SIGNALS, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return reader


def _hold(lock: str) -> contextlib.AbstractContextManager[object] | object:
    """Hold the lock file for this process's life: whoever finds it locked knows that the server is alive."""
    file = open(os.devnull if lock == "-" else lock, "ab")  # noqa: SIM115
    if lock != "-":
        fcntl.flock(file, fcntl.LOCK_EX)
    return file


def _wait(child: subprocess.Popen[bytes], parent: int, wakeup: int) -> bool:
    """Return when the child has ended or is to be ended; true if the starter wants the folder kept."""
    keep = False
    watched = [wakeup, sys.stdin.fileno()] if parent else [wakeup]
    while child.poll() is None and (not parent or os.getppid() == parent):
        ready, _, _ = select.select(watched, [], [], _POLL_SECONDS)
        if wakeup in ready and set(os.read(wakeup, 64)) & set(_ENDING_SIGNALS):
            break
        if parent and sys.stdin.fileno() in ready:
            said = os.read(sys.stdin.fileno(), 64)
            keep = keep or b"k" in said
            if not said:
                break
    return keep


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
