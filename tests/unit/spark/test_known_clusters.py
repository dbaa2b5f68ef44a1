"""Notes of Spark's processes for each other that a cluster has answered."""

import os
import tempfile
from pathlib import Path

import pytest

from pravega_connector.config import PravegaConfig
from pravega_connector.spark import known_clusters
from pravega_connector.spark.known_clusters import has_answered, note_answer

HERE = PravegaConfig(controller="tcp://here:9090")
THERE = PravegaConfig(controller="tcp://there:9090")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the notes of this test lie."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(known_clusters, "is_spark_process", lambda: True)
    known_clusters._noted.clear()
    return tmp_path / f"pravega-serde-{os.getuid()}"


def test_an_answer_is_known_to_all_processes_for_an_hour(folder: Path) -> None:
    assert not has_answered(HERE)
    note_answer(HERE)
    assert has_answered(HERE)
    assert not has_answered(THERE)
    assert folder.stat().st_mode & 0o777 == 0o700
    [file] = folder.iterdir()
    assert file.read_bytes() == b""
    for age, known in ((3000, True), (4000, False), (-100, False)):
        time = file.stat().st_mtime - age
        os.utime(file, (time, time))
        assert has_answered(HERE) is known, age
        os.utime(file)


def test_a_plain_program_neither_writes_nor_reads_notes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_clusters, "is_spark_process", lambda: False)
    note_answer(HERE)
    assert not folder.exists()
    monkeypatch.setattr(known_clusters, "is_spark_process", lambda: True)
    note_answer(HERE)
    assert has_answered(HERE)
    monkeypatch.setattr(known_clusters, "is_spark_process", lambda: False)
    assert not has_answered(HERE)


def test_an_answer_is_noted_at_most_once_a_minute(folder: Path) -> None:
    note_answer(HERE)
    [file] = folder.iterdir()
    os.utime(file, (0, 0))
    note_answer(HERE)
    assert file.stat().st_mtime == 0
    known_clusters._noted[HERE.controller] -= 61
    note_answer(HERE)
    assert has_answered(HERE)


@pytest.mark.parametrize("trap", ["writable", "link", "file"])
def test_a_folder_that_others_can_write_to_says_nothing(folder: Path, tmp_path: Path, trap: str) -> None:
    note_answer(HERE)
    if trap == "writable":
        folder.chmod(0o777)
    elif trap == "link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.rename(tmp_path / "elsewhere")
        folder.touch()
    assert not has_answered(HERE)
    known_clusters._noted.clear()
    note_answer(HERE)  # and is not an error
    assert not has_answered(HERE)
