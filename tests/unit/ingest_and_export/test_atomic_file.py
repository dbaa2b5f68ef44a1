"""A file exists as a whole or not at all."""

import errno
import os
import stat
from pathlib import Path

import pytest

from pravega_connector.errors import OutputFileError
from pravega_serde.atomic_file import WholeFile
from tests.support.small_files import no_file_beyond


def test_the_name_appears_when_the_file_is_whole(tmp_path):
    path = tmp_path / "out.bin"
    with WholeFile(path) as file:
        file.write(b"abc")
        assert not path.exists()
    assert path.read_bytes() == b"abc"
    assert os.listdir(tmp_path) == ["out.bin"]


def test_an_error_leaves_nothing_and_what_was_there(tmp_path):
    path = tmp_path / "out.bin"
    path.write_bytes(b"before")

    def fail():
        with WholeFile(path) as file:
            file.write(b"abc")
            raise ValueError("oh")

    with pytest.raises(ValueError, match="oh"):
        fail()
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["out.bin"]


def test_a_file_keeps_its_permissions_and_a_link_leads_to_it(tmp_path):
    path, link = tmp_path / "out.bin", tmp_path / "link"
    path.write_bytes(b"before")
    path.chmod(0o600)
    link.symlink_to(path)
    with WholeFile(link) as file:
        file.write(b"abc")
    assert path.read_bytes() == b"abc"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert link.is_symlink()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_only_a_file_is_replaced(tmp_path, make):
    path = tmp_path / "out.bin"
    make(path)
    before = path.stat()
    with pytest.raises(OutputFileError, match=r"out.bin is not a file, and is not replaced by one"):
        WholeFile(path).__enter__()
    assert path.stat().st_mode == before.st_mode
    assert os.listdir(tmp_path) == ["out.bin"]


def test_a_signal_right_after_the_file_was_created_leaves_nothing(tmp_path, monkeypatch):
    def open_and_be_interrupted(path, *_args, **_settings):
        path.touch()
        raise SystemExit(143)

    monkeypatch.setattr(Path, "open", open_and_be_interrupted)
    with pytest.raises(SystemExit):
        WholeFile(tmp_path / "out.bin").__enter__()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "piece", [100, 20_000, 3 << 20], ids=["found at the end", "found in the buffer", "found at once"]
)
def test_a_full_disk_leaves_nothing(tmp_path, piece):
    def write():
        with WholeFile(tmp_path / "out.bin") as file:
            for _ in range(200):
                file.write(bytes(piece))

    refused = pytest.raises(OutputFileError, match=f"out.bin cannot be written: {os.strerror(errno.EFBIG)}")
    with refused, no_file_beyond(10_000):
        write()
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(OutputFileError, match="No such file or directory"):
        WholeFile(tmp_path / "missing" / "out.bin").__enter__()
