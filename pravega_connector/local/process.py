"""Child processes that end with this process, even if it is killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from pravega_connector.local import supervisor

_END_SECONDS: Final = 10.0


def isolated(*words: str) -> list[str]:
    """Return the command line of a program of the supervisor, which ignores the caller's environment."""
    # Isolated mode, without site packages.
    return [sys.executable, "-I", "-S", supervisor.__file__, *words]


class SupervisedProcess:
    """Command under a supervisor, which ends the command when this process closes it or dies.

    ``folder`` belongs to the command and is its working directory. ``folder/pid`` has its process id, and the folder is
    removed with the command. The files stay if the command ended by itself, or after ``close(keep=True)``. ``lock`` is
    a file that stays locked while the command runs. ``output`` receives standard output and standard error. With
    ``subprocess.PIPE``, read it as ``.output``.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        output: int | IO[bytes],
        folder: Path | None = None,
        lock: Path | None = None,
    ) -> None:
        self._owner = os.getpid()
        self._detached = False
        self._process = subprocess.Popen(
            isolated("run", str(self._owner), str(lock or "-"), str(folder or "-"), *command),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            # Only this process handles Ctrl-C.
            start_new_session=True,
        )

    @property
    def supervisor_pid(self) -> int:
        """Process id of the supervisor. SIGTERM to it ends the command."""
        return self._process.pid

    @property
    def output(self) -> IO[bytes]:
        """Standard output of the command."""
        assert self._process.stdout is not None
        return self._process.stdout

    def exit_code(self) -> int | None:
        """Return the command's exit code, or None while it runs."""
        return self._process.poll()

    def wait(self, timeout: float) -> int:
        """Wait until the command ends by itself. Raises subprocess.TimeoutExpired."""
        return self._process.wait(timeout)

    def detach(self) -> None:
        """Let the command outlive this process. From then on, only a signal to its supervisor ends it."""
        self._say(b"d")
        self._detached = True
        # Otherwise, Popen would warn about a running process when this object is deleted.
        self._process.returncode = 0

    def close(self, *, keep: bool = False) -> None:
        """End the command and wait for its end. This has no effect in a forked child of the starter."""
        if os.getpid() != self._owner or self._detached:
            return
        self._say(b"k" if keep else b"")
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            # The kernel ends the command with the supervisor.
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _say(self, word: bytes) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        # The supervisor may have ended with its command, and close() may be called twice.
        with contextlib.suppress(BrokenPipeError):
            if not pipe.closed:
                pipe.write(word)
                pipe.close()
