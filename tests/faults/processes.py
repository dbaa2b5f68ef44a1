"""Processes under test: start, kill, pause, resume and wait; each process leads a session and has a log file."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from pravega_connector.local import ClusterOptions, ClusterProcess
from pravega_connector.local.cluster import Cluster, launch_cluster
from tests.support.processes import kill_session, session_of, stat_of

T = TypeVar("T")

ROOT: Final = Path(__file__).parents[2]
#: Seconds until a process ends: on a busy machine a Spark application takes minutes.
_END_SECONDS: Final = 600.0


def await_that(what: str, condition: Callable[[], T], seconds: float = 180.0, *, poll: float = 0.05) -> T:
    """Return the first true value of a condition. Raises AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(poll)
    return value


class Process:
    """A command that runs in its own session. Each method applies to all processes of the session."""

    def __init__(
        self,
        command: Sequence[object],
        log: Path,
        environment: Mapping[str, str] | None = None,
        *,
        stdin: bool = False,
        answers: bool = False,
    ) -> None:
        """Start the command; ``stdin``: it reads requests, ``answers``: it writes answers to standard output."""
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*map(str, command)],
                cwd=log.parent,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE if answers else output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Exit code, minus the signal's number after a signal, or None while it runs."""
        return self._process.poll()

    @property
    def has_ended(self) -> bool:
        return self.code is not None

    def processes(self) -> list[int]:
        return session_of(self.pid)

    def text(self, most: int = 2000) -> str:
        """Return the end of the log."""
        return self.log.read_text(errors="replace")[-most:]

    def request(self, line: str) -> None:
        """Write a line to standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def answer(self) -> bytes:
        """Return the next line of standard output."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def end_input(self) -> None:
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()

    def wait(self, seconds: float = _END_SECONDS) -> int:
        """Return the exit code of the command; no process of the session is left."""
        try:
            code = self._process.wait(seconds)
        finally:
            kill_session(self.pid)
        await_that(f"all processes of session {self.pid} end", lambda: not self.processes())
        return code

    def kill(self) -> str:
        """Kill it; return the proof. Raises AssertionError if it ended before."""
        kill_session(self.pid)
        code = self.wait()
        assert code == -signal.SIGKILL, f"process {self.pid} ended with {code} before it was killed: {self.text()}"
        return "ended by signal 9"

    def pause(self) -> None:
        """Stop all processes of the session, and wait until the first one has stopped."""
        kill_session(self.pid, signal.SIGSTOP)
        await_that(f"process {self.pid} stops", lambda: self.state in ("T", "t"))

    def resume(self) -> str:
        """Let it continue; return the proof that it was paused until now."""
        state = self.state
        assert state in ("T", "t"), f"process {self.pid} is in state {state!r} and was not paused"
        kill_session(self.pid, signal.SIGCONT)
        return f"in state {state}"

    @property
    def state(self) -> str:
        """State letter of the first process, as Linux shows it; empty after its end."""
        return next(iter(stat_of(self.pid)), "")

    def close(self, grace: float = 0.0) -> None:
        """End its input, and kill it after `grace` seconds."""
        self.end_input()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace)
        kill_session(self.pid)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


# ---- servers ---------------------------------------------------------------------------------------------------------


@contextmanager
def running_cluster(options: ClusterOptions) -> Iterator[Cluster]:
    cluster = launch_cluster(options)
    try:
        yield cluster
    finally:
        cluster.process.close()


def kill_server(process: ClusterProcess) -> str:
    """Kill a server process; return the proof."""
    pid = process.pid
    process.kill()
    assert process.exit_code == -signal.SIGKILL, f"{process.name} was to be killed and ended with {process.exit_code}"
    assert stat_of(pid)[:1] in ([], ["Z"]), f"process {pid} of {process.name} still runs"
    return f"{process.name} ended by signal 9"


@contextmanager
def pause_server(process: ClusterProcess, seconds: float) -> Iterator[None]:
    """Pause a server process while the block runs, `seconds` at least; it is stopped all the time."""
    pid, since = process.pid, time.monotonic()
    process.pause()
    try:
        yield
        time.sleep(max(0.0, since + seconds - time.monotonic()))
        state: list[Any] = stat_of(pid)[:1]
        assert state == ["T"], f"{process.name} was not paused: {state}"
    finally:
        process.resume()


@dataclass(frozen=True)
class Outage:
    """Failure of a server process for a while: it is killed and started again, or paused and resumed."""

    process: ClusterProcess
    kill: bool
    seconds: float
    after: float = 0.0
    """Seconds from the start of a trial."""

    def __str__(self) -> str:
        return f"{'kill' if self.kill else 'freeze'} {self.process.name} at {self.after:.0f} s for {self.seconds:.0f} s"

    def begin(self) -> None:
        if not self.process.running:
            self.process.start()
        if self.kill:
            kill_server(self.process)
            return
        self.process.pause()
        assert stat_of(self.process.pid)[:1] == ["T"], f"{self.process.name} was not paused"

    def end(self) -> None:
        if self.kill:
            self.process.start()
        elif self.process.running:
            self.process.resume()
