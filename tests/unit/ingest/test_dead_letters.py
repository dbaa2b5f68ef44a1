"""Bad records in files of their own."""

import json
import shutil
from pathlib import Path

import pytest

from connector.errors import IngestError
from connector.ingest import Rejected
from connector.ingest._dead_letters import DeadLetters
from connector.ingest._state import Piece

PIECE = Piece("folder/a.csv", 3, None, "mark")
BAD = Rejected(4, 6, "no number", "ü,x")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "letters"


@pytest.fixture
def letters(folder: Path) -> DeadLetters:
    return DeadLetters(folder)


def test_they_are_there_once_they_are_published(letters: DeadLetters, folder: Path) -> None:
    letters.add(PIECE, [BAD])
    letters.add(PIECE, [BAD])
    assert list(folder.glob("*.jsonl")) == []
    letters.publish([PIECE])
    assert list(folder.iterdir()) == [letters.path(PIECE)]
    told = [json.loads(line) for line in letters.path(PIECE).read_text(encoding="utf-8").splitlines()]
    assert told == [{"source": "folder/a.csv", "record": 4, "line": 6, "reason": "no number", "text": "ü,x"}] * 2


def test_another_reading_replaces_them(letters: DeadLetters, folder: Path) -> None:
    for count in (2, 1, 0):
        if count:
            letters.add(PIECE, [BAD] * count)
        letters.publish([PIECE])
        lines = [line for path in folder.iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
        assert len(lines) == count
    assert list(folder.iterdir()) == []


def test_nothing_is_left_of_what_was_discarded(letters: DeadLetters, folder: Path) -> None:
    letters.add(PIECE, [BAD])
    letters.discard()
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_gone(letters: DeadLetters, folder: Path) -> None:
    letters.add(PIECE, [BAD])
    shutil.rmtree(folder)
    with pytest.raises(
        IngestError, match=r"bad records cannot be written to .*jsonl: No such file or directory; "
    ) as e:
        letters.publish([PIECE])
    assert type(e.value) is IngestError
    with pytest.raises(IngestError, match="No such file or directory; nothing is committed"):
        letters.add(PIECE, [BAD])
