"""Child processes that end with this one, whatever ends it."""

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
    """Command of one of the supervisor's programs; nothing of the caller's environment can disturb it."""
    # Isolated and without site packages.
    return [sys.executable, "-I", "-S", supervisor.__file__, *words]


class SupervisedProcess:
    """A command under a supervisor that ends it when this process closes it or dies.

    ``folder``, if given, is the command's own and its working directory: the command's process id is written to
    ``folder/pid``, and the folder is removed with the command. If the command ended by itself, or after
    ``close(keep=True)``, the files in it stay. ``lock`` is a file that stays locked while it runs. ``output`` takes
    standard output and error; ``subprocess.PIPE`` makes it readable as ``.output``.
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
            # Ctrl-C is for this process alone to act on.
            start_new_session=True,
        )

    @property
    def supervisor_pid(self) -> int:
        """Process id of the supervisor; SIGTERM to it ends the command."""
        return self._process.pid

    @property
    def output(self) -> IO[bytes]:
        """Standard output of the command."""
        assert self._process.stdout is not None
        return self._process.stdout

    def exit_code(self) -> int | None:
        """The command's exit code, None while it runs."""
        return self._process.poll()

    def wait(self, timeout: float) -> int:
        """Wait for the command to end by itself; raises subprocess.TimeoutExpired."""
        return self._process.wait(timeout)

    def detach(self) -> None:
        """Let the command outlive this process: from now on only a signal to its supervisor ends it."""
        self._say(b"d")
        self._detached = True
        # Popen would warn that a process still runs when this object goes.
        self._process.returncode = 0

    def close(self, *, keep: bool = False) -> None:
        """End the command and wait until it is gone. Without effect in a forked child of the starter."""
        if os.getpid() != self._owner or self._detached:
            return
        self._say(b"k" if keep else b"")
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            # The kernel ends the command with it.
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _say(self, word: bytes) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        # The supervisor may have ended with its command, and close() may come twice.
        with contextlib.suppress(BrokenPipeError):
            if not pipe.closed:
                pipe.write(word)
                pipe.close()
