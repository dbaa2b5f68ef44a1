"""Readers in Java and Python share a group and fail, in short: ``python -m tests.faults groups`` does so at length."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from pravega_connector.local import LocalPravega
from tests.faults.groups.audit import audit
from tests.faults.groups.readers import notes_of
from tests.faults.groups.trial import GroupSettings, play

SHORT = GroupSettings(events=6000, seconds=20.0, pause=6.0)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_nothing_is_lost_or_out_of_order(pravega: LocalPravega, tmp_path: Path) -> None:
    play(pravega.config, 1, tmp_path, SHORT)
    verdict = audit(tmp_path)
    assert not verdict.failures, verdict
    assert verdict.measures["written"] == SHORT.events
    assert len(verdict.measures["resets"]) == 2
    assert {"java killed", "python killed", "scaled", "compacted"} <= verdict.faults.keys(), (
        "and the audit asks for more"
    )
    finds_what_is_wrong(tmp_path)


def finds_what_is_wrong(folder: Path) -> None:
    """The audit of what would have been noted if a reader had been given less, or more."""
    notes, middle = read_once(folder)
    lines = notes.read_text().splitlines(keepends=True)
    notes.write_text("".join(lines[:middle] + lines[middle + 1 :]))
    assert audit(folder).sum("lost") == 1
    notes.write_text("".join(lines[: middle + 1] + lines[middle:]))
    assert any("did not follow" in failure for failure in audit(folder).failures)
    notes.write_text("".join(lines))
    history = folder / "history.jsonl"
    entries = history.read_text().splitlines(keepends=True)
    history.write_text("".join(entries[: len(entries) // 2]))
    assert audit(folder).failures


def read_once(folder: Path) -> tuple[Path, int]:
    """The notes of a reader, and the line in the middle of its events that no other reader has."""
    readers = json.loads((folder / "trial.json").read_text())["readers"]
    files = [folder / f"{reader}.notes" for reader, about in readers.items() if about["phase"] == 0]
    events = {
        file: [note.fields[:2] for note in notes_of(text) if note.kind == "event"]
        for file in files
        if (text := file.read_bytes())
    }
    file = max(events, key=lambda one: len(events[one]))
    given = Counter(tuple(event) for each in events.values() for event in each)
    at = next(n for n in range(len(events[file]) // 2, len(events[file])) if given[tuple(events[file][n])] == 1)
    lines = file.read_text().splitlines()
    return file, [number for number, line in enumerate(lines) if line.startswith("event\t")][at]
