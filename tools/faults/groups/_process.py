"""Processes that read in a group, of either language, and what they have noted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from tests.interop._java_program import java_command
from tools.processes import stat_of

__all__ = ["KINDS", "Note", "ReaderProcess", "notes_of"]

KINDS: Final = ("java", "python")
_ROOT: Final = Path(__file__).parents[3]


class Note(NamedTuple):
    """A line of a reader's file; ReaderLoop.java says what there is."""

    kind: str
    ms: int
    fields: list[str]


def notes_of(lines: bytes) -> list[Note]:
    """The notes of whole lines."""
    rows = (line.split("\t") for line in lines.decode().splitlines())
    return [Note(row[0], int(row[1]), row[2:]) for row in rows]


class ReaderProcess:
    """A process that reads under one id after another, each with a file of its own."""

    def __init__(self, kind: str, controller: str, folder: Path, number: int) -> None:
        command = (
            java_command("ReaderLoop") if kind == "java" else [sys.executable, "-m", "tools.faults.groups._python"]
        )
        self.kind, self.number, self._folder = kind, number, folder
        with (folder / f"process-{number}.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, controller],
                cwd=_ROOT,
                env={**os.environ, "PYTHONPATH": str(_ROOT)},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        self.reader = ""
        self.paused = False
        self._seen = 0  # bytes of the file
        self._kinds: set[str] = set()
        self._position: str | None = None

    def join(self, scope: str, group: str, reader: str) -> None:
        """Come into a group under an id."""
        self.reader, self._seen, self._kinds, self._position = reader, 0, set(), None
        self._tell(f"join {scope} {group} {reader} {self._file}")

    def leave(self) -> None:
        """Close the reader."""
        self._tell("leave")

    def has_noted(self, *kinds: str) -> bool:
        """Whether the present reader has made a note of one of these kinds."""
        self._look()
        return not self._kinds.isdisjoint(kinds)

    @property
    def position(self) -> bytes | None:
        """The position that the reader has noted last."""
        self._look()
        return None if self._position is None else bytes.fromhex(self._position)

    @property
    def is_well(self) -> bool:
        """Whether it reads."""
        alive = self._process.poll() is None and not self.paused
        return alive and self.has_noted("joined") and not self.has_noted("left", "out")

    def kill(self) -> str:
        """Kill it; the proof that it was killed."""
        self._process.kill()
        code = self._process.wait(30)
        assert code == -signal.SIGKILL, f"{self.reader} ended with {code} before it was killed"
        return f"{self.reader} ended by signal 9"

    def pause(self) -> None:
        """Have it stand still."""
        os.kill(self._process.pid, signal.SIGSTOP)
        self.paused = True

    def go_on(self) -> str:
        """Let it go on; the proof that it stood still until now."""
        state = stat_of(self._process.pid)[0]
        assert state in "Tt", f"{self.reader} is in state {state} and does not stand still"
        os.kill(self._process.pid, signal.SIGCONT)
        self.paused = False
        return f"{self.reader} in state {state}"

    def close(self) -> None:
        """End it, whatever it does."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def said(self) -> str:
        """The end of its log."""
        return (self._folder / f"process-{self.number}.log").read_text(errors="replace")[-1500:]

    @property
    def _file(self) -> Path:
        return self._folder / f"{self.reader}.notes"

    def _tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())
        self._process.stdin.flush()

    def _look(self) -> None:
        if not self.reader or not self._file.exists():
            return
        with self._file.open("rb") as file:
            file.seek(self._seen)
            new = file.read()
        new = new[: new.rfind(b"\n") + 1]
        self._seen += len(new)
        for note in notes_of(new):
            self._kinds.add(note.kind)
            if note.kind == "position":
                self._position = note.fields[0]
