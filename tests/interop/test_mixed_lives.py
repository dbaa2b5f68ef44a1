"""Lives of a group of Java's and Python's readers, in short: tools.faults.groups has the long ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connector.local import LocalPravega
from tools.faults.groups._audit import audit
from tools.faults.groups._life import Settings, play

SHORT = Settings(events=6000, seconds=20.0, pause=6.0)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_nothing_is_lost_or_out_of_order(pravega: LocalPravega, tmp_path: Path) -> None:
    play(pravega.config, 1, tmp_path, SHORT)
    verdict = audit(tmp_path)
    assert not verdict.failures, verdict
    assert verdict.events == SHORT.events
    assert len(verdict.resets) == 2
    assert {"java killed", "python killed", "scaled", "compacted"} <= verdict.faults.keys(), (
        "and the audit asks for more"
    )
    finds_what_is_wrong(tmp_path)


def finds_what_is_wrong(folder: Path) -> None:
    """The audit of what would have been noted if readers had been given less, or more."""
    life = folder / "life.json"
    readers = json.loads(life.read_text())["readers"]
    notes = next(
        file
        for reader, about in readers.items()
        if about["phase"] == 2 and (file := folder / f"{reader}.notes").read_text().count("event\t") > 4
    )
    lines = notes.read_text().splitlines(keepends=True)
    events = [at for at, line in enumerate(lines) if line.startswith("event")]
    middle = events[len(events) // 2]
    notes.write_text("".join(lines[:middle] + lines[middle + 1 :]))
    assert audit(folder).lost == 1
    notes.write_text("".join(lines[: middle + 1] + lines[middle:]))
    assert any("did not follow" in failure for failure in audit(folder).failures)
    notes.write_text("".join(lines))
    history = folder / "history.jsonl"
    entries = history.read_text().splitlines(keepends=True)
    history.write_text("".join(entries[: len(entries) // 2]))
    assert audit(folder).failures
