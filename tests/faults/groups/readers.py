"""Processes that read in a group, in Java or in Python, and their notes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NamedTuple

from tests.faults.processes import ROOT, Process
from tests.interop._java_program import java_command

KINDS: Final = ("java", "python")


class Note(NamedTuple):
    """A line of a reader's file; ReaderLoop.java lists the kinds."""

    kind: str
    ms: int
    fields: list[str]


def notes_of(lines: bytes) -> list[Note]:
    """Parse the complete lines of a reader's file."""
    rows = (line.split("\t") for line in lines[: lines.rfind(b"\n") + 1].decode().splitlines())
    return [Note(row[0], int(row[1]), row[2:]) for row in rows]


class ReaderProcess(Process):
    """A process that reads under one id after another, each with its own file."""

    def __init__(self, kind: str, controller: str, folder: Path, number: int) -> None:
        command = java_command("ReaderLoop") if kind == "java" else [sys.executable, "-m", "tests.faults.groups.reader"]
        log = folder / f"process-{number}.log"
        super().__init__([*command, controller], log, {"PYTHONPATH": str(ROOT)}, stdin=True)
        self.kind, self._folder = kind, folder
        self.reader = ""
        self._seen = 0  # bytes of the file
        self._kinds: set[str] = set()
        self._position: str | None = None

    def join(self, scope: str, group: str, reader: str) -> None:
        """Join a group under an id."""
        self.reader, self._seen, self._kinds, self._position = reader, 0, set(), None
        self.request(f"join {scope} {group} {reader} {self._file}")

    def leave(self) -> None:
        """Close the reader."""
        self.request("leave")

    def has_noted(self, *kinds: str) -> bool:
        """Return True if the present reader has made a note of one of these kinds."""
        self._read_notes()
        return not self._kinds.isdisjoint(kinds)

    @property
    def position(self) -> bytes | None:
        """Position that the reader has noted last."""
        self._read_notes()
        return None if self._position is None else bytes.fromhex(self._position)

    @property
    def is_reading(self) -> bool:
        running = not self.has_ended and self.state not in ("T", "t")
        return running and self.has_noted("joined") and not self.has_noted("left", "out")

    @property
    def _file(self) -> Path:
        return self._folder / f"{self.reader}.notes"

    def _read_notes(self) -> None:
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
