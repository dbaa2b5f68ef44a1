"""Bad records in their own files."""

import errno
import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.errors import IngestError
from pravega_connector.operations.ingest import FileOptions, FileSource, IngestSummary, Rejected, ingest
from pravega_connector.operations.ingest.content import DeadLetters
from pravega_connector.operations.ingest.feed import Piece
from tests.support.small_files import no_file_beyond
from tests.unit.ingest._servers import TARGET, Servers

PIECE = Piece("folder/a.csv", 3, None, "mark")
BAD = Rejected(4, 6, "no number", "ü,x")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "letters"


@pytest.fixture
def letters(folder: Path) -> DeadLetters:
    return DeadLetters(folder)


def test_they_exist_once_they_are_published(letters: DeadLetters, folder: Path) -> None:
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
        IngestError, match=r"malformed records cannot be written to .*jsonl: No such file or directory; "
    ) as e:
        letters.publish([PIECE])
    assert type(e.value) is IngestError
    with pytest.raises(IngestError, match="No such file or directory; nothing is committed"):
        letters.add(PIECE, [BAD])


@pytest.mark.parametrize(
    ("name", "text", "malformed"), [("x.jsonl", "[1,\n2]\n", 2), ("x.jsonl", "", 0), ("x.csv", "", 0)]
)
def test_a_file_without_a_good_record_has_no_columns(
    client: PravegaClient, servers: Servers, tmp_path: Path, folder: Path, name: str, text: str, malformed: int
) -> None:
    (tmp_path / name).write_text(text)
    source = FileSource([tmp_path / name], FileOptions(reject=True))
    counts = ingest(source, TARGET, client=client, dead_letters=folder).counts
    assert (counts.events, counts.rejected) == (0, malformed)


@pytest.mark.parametrize(
    "found", [pytest.param("while they are read", marks=pytest.mark.long), "when they are put in place"]
)
def test_a_full_disk(client: PravegaClient, servers: Servers, tmp_path: Path, folder: Path, found: str) -> None:
    """One line. Nothing of the step is in the stream or in the folder, and a repetition does all of it."""
    data = tmp_path / "data"
    data.mkdir()
    text = "x" * (2000 if found == "while they are read" else 20)  # beyond what is buffered, or not
    for file in range(2):
        lines = "".join(f"{row if row % 2 else text},{row}\n" for row in range(2000))
        (data / f"{file}.csv").write_text("number,row\n" + (lines if file else "1,-1\n"))

    def run() -> IngestSummary:
        source = FileSource([data], FileOptions(types={"number": pa.int64()}, reject=True))
        return ingest(source, TARGET, client=client, dead_letters=folder)

    full = f"malformed records cannot be written to {folder}/1.csv.*: {os.strerror(errno.EFBIG)}; nothing is committed"
    with pytest.raises(IngestError, match=full) as e, no_file_beyond(10_000):
        run()
    assert "\n" not in str(e.value)
    assert servers.numbers == [1]
    assert list(folder.iterdir()) == []
    summary = run()
    assert (summary.counts.events, summary.counts.rejected) == (1000, 1000)
    assert servers.numbers == [1, *range(1, 2000, 2)]
    (letters,) = folder.iterdir()
    told = [json.loads(line) for line in letters.read_text().splitlines()]
    assert [each["text"] for each in told] == [f"{text},{row}" for row in range(0, 2000, 2)]
    assert run().counts.transactions == 0
