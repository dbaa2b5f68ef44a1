"""Child processes that end with this one, whatever ends it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from connector.local import _supervisor

__all__ = ["SupervisedProcess", "spawn_detached"]

_END_SECONDS: Final = 10.0


def _supervised(parent: int, lock: Path | None, folder: Path | None, command: Sequence[str]) -> list[str]:
    supervisor = [sys.executable, "-I", "-S", _supervisor.__file__]
    return [*supervisor, str(parent), str(lock or "-"), str(folder or "-"), *command]


class SupervisedProcess:
    """A command under a supervisor that ends it when this process closes it or dies.

    ``folder``, if given, is the command's own: its process id is written to ``folder/pid``, and it is removed with the
    command unless ``close(keep=True)``. ``output`` takes standard output and error; ``subprocess.PIPE`` makes it
    readable as ``.output``.
    """

    def __init__(self, command: Sequence[str], *, output: int | IO[bytes], folder: Path | None = None) -> None:
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            _supervised(self._owner, None, folder, command),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for this process alone to act on.
            start_new_session=True,
        )

    @property
    def output(self) -> IO[bytes]:
        """What the command prints."""
        assert self._process.stdout is not None
        return self._process.stdout

    def exit_code(self) -> int | None:
        """The command's exit code, None while it runs."""
        return self._process.poll()

    def wait(self, timeout: float) -> int:
        """Wait for the command to end by itself; raises subprocess.TimeoutExpired."""
        return self._process.wait(timeout)

    def close(self, *, keep: bool = False) -> None:
        """End the command and wait until it is gone. Without effect in a forked child of the starter."""
        pipe = self._process.stdin
        if pipe is None or pipe.closed or os.getpid() != self._owner:
            return
        try:
            if keep:
                pipe.write(b"k")
            pipe.close()
        except BrokenPipeError:
            pass
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            # The command follows: the kernel ends it with its supervisor.
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def spawn_detached(command: Sequence[str], *, output: IO[bytes], lock: Path, folder: Path) -> int:
    """Start a command that outlives this process; its supervisor's id. The lock file stays locked while it runs."""
    process = subprocess.Popen(
        _supervised(0, lock, folder, command),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    # Nobody here waits for it, on purpose.
    process.returncode = 0
    return process.pid
