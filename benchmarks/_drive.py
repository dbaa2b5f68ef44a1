"""Client side of the driver protocol: one long-lived process for each peer.

A peer prints ``{"ready": VERSION}``, and then answers each request line with one line. Therefore its JIT and its
imports are warm, and the runs of all peers can alternate.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from benchmarks._cpu import tree_cpu_seconds

__all__ = ["Peer", "PeerError"]

_ROOT: Final = Path(__file__).resolve().parent.parent
_LOG_LINES: Final = 12  # of a failed peer's standard error: enough for the first lines of a stack trace
_ERROR_CHARACTERS: Final = 1000  # Spark's errors hold whole Java stack traces


class PeerError(RuntimeError):
    """A peer did not start, ended, answered with an error, or did not answer in time."""


class Peer:
    """Process of a peer, as a context manager. The process ends with the ``with`` block."""

    def __init__(
        self, name: str, command: Sequence[str], *, env: Mapping[str, str] | None = None, start_timeout: float = 120.0
    ) -> None:
        self.name = name
        self._log = tempfile.NamedTemporaryFile(prefix="peer-", suffix=".log")  # noqa: SIM115  # closed by close()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=_ROOT,
            env={**os.environ, **(env or {})},
            text=True,
        )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._collector = threading.Thread(target=self._collect, daemon=True)
        self._collector.start()
        self.version = str(self._next(start_timeout)["ready"])

    def ask(self, do: str, *, timeout: float = 300.0, **request: Any) -> dict[str, Any]:
        """Return the answer to one request. Raises PeerError for an error, or without an answer within the timeout."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps({"do": do, **request}) + "\n")
            stdin.flush()
        except OSError as e:
            raise PeerError(f"{self.name} has ended\n{self._tail()}") from e
        return self._next(timeout)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process and its descendants until now."""
        return tree_cpu_seconds(self._process.pid)

    def close(self) -> None:
        """Close the standard input of the process, and kill it if it does not end."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._collector.join()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _collect(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            for line in stdout:
                self._answers.put(line)
        self._answers.put("")

    def _next(self, timeout: float) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=timeout)
        except queue.Empty:
            self._process.kill()  # a late answer would be treated as the next answer
            raise PeerError(f"{self.name} did not answer within {timeout:.0f} s\n{self._tail()}") from None
        if not line:
            raise PeerError(f"{self.name} has ended\n{self._tail()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerError(f"{self.name}: {answer['error'][:_ERROR_CHARACTERS]}\n{self._tail()}")
        return answer

    def _tail(self) -> str:
        with open(self._log.name, errors="replace") as log:
            return "".join(log.readlines()[-_LOG_LINES:])
