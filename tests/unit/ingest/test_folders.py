"""Folders: each regular file is found once, and nothing else is read."""

import gzip
import json
import os
import socket
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pravega_connector.errors import ConfigError, SourceUnreadableError
from pravega_connector.operations.ingest import FileOptions, FileSource, ingest
from pravega_connector.testing import InProcessPravega
from tests.unit.ingest.test_exact_values import events

LINE = '{"a":1}\n'


def test_a_file_is_found_once_through_any_link(tmp_path: Path):
    (tmp_path / "real" / "in").mkdir(parents=True)
    (tmp_path / "real" / "in" / "x.jsonl").write_text(LINE)
    (tmp_path / "a").symlink_to("real")
    (tmp_path / "real" / "in" / "up").symlink_to("..")
    (tmp_path / "real" / "self").symlink_to(".")
    (tmp_path / "x.jsonl").symlink_to("real/in/x.jsonl")
    (tmp_path / "z.csv").symlink_to("x.jsonl")
    whole = FileSource([tmp_path, tmp_path / "a", tmp_path / "x.jsonl", tmp_path / "**" / "*.jsonl"])
    assert whole.ids() == [str(tmp_path / "real" / "in" / "x.jsonl")]
    assert events(FileSource([tmp_path / "a"])) == [LINE.strip()]
    based = FileSource([tmp_path / "a"], FileOptions(base=str(tmp_path / "a")))
    assert based.ids() == ["in/x.jsonl"]
    (tmp_path / "other.jsonl").write_text(LINE)
    (tmp_path / "real" / "out.jsonl").symlink_to("../other.jsonl")
    with pytest.raises(ConfigError, match="is not in the base folder"):
        based.ids()


def test_a_link_to_a_name_without_suffix_has_its_own_kind(tmp_path: Path):
    (tmp_path / "blob").write_text(LINE)
    (tmp_path / "x.jsonl").symlink_to("blob")
    assert events(FileSource([tmp_path])) == [LINE.strip()]


@pytest.mark.parametrize("target", ["loop.jsonl", "nothing.jsonl"])
def test_a_link_to_nothing_is_an_error_of_that_file(tmp_path: Path, target: str):
    (tmp_path / "a.jsonl").write_text(LINE)
    (tmp_path / "loop.jsonl").symlink_to(target)
    files = FileSource([tmp_path])
    bad = next(id_ for id_ in files.ids() if not id_.endswith("a.jsonl"))
    for call in (lambda: files.mark(bad), lambda: list(files.read(bad)), lambda: files.change(bad, "1 2 3")):
        with pytest.raises(SourceUnreadableError, match=target):
            call()
    assert files.size(bad) == 0


def test_only_regular_files_are_read(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text(LINE)
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "device.jsonl").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s.jsonl"))
        files = FileSource([tmp_path])
        assert files.ids() == [str(tmp_path / "a.jsonl")]
        assert sorted(map(os.path.basename, files.listing().ignored)) == ["device.jsonl", "pipe.jsonl", "s.jsonl"]
    for name in ("pipe.jsonl", "device.jsonl"):
        with pytest.raises(SourceUnreadableError, match=r"is a pipe, a device or a socket.*pravega-serde write"):
            FileSource([tmp_path / name]).ids()


def test_names_that_are_not_utf8(tmp_path: Path):
    folder = os.fsencode(tmp_path)
    with open(os.path.join(folder, b"caf\xe9.jsonl"), "w") as file:
        file.write(LINE)
    with gzip.open(os.path.join(folder, b"caf\xe9.jsonl.gz"), "w") as packed:
        packed.write(LINE.encode())
    with open(os.path.join(folder, b"caf\xe9.parquet"), "wb") as table:
        pq.write_table(pa.table({"a": [1]}), table)
    os.mkdir(os.path.join(folder, b"\xff"))
    with open(os.path.join(folder, b"\xff", b"x.txt"), "w") as file:
        file.write("x")
    with InProcessPravega() as server, server.client() as client:
        for base in (None, str(tmp_path)):
            stream = "t/based" if base else "t/paths"
            client.create_stream(stream)
            files = FileSource([tmp_path], FileOptions(base=base))
            only = [id_ for id_ in files.ids() if not id_.endswith(".txt")]
            assert [os.path.basename(id_) for id_ in only] == [
                "caf\\xe9.jsonl",
                "caf\\xe9.jsonl.gz",
                "caf\\xe9.parquet",
            ]
            (tmp_path / os.fsdecode(b"\xff") / "x.txt").unlink(missing_ok=True)
            for expected in (3, 0):
                again = FileSource([tmp_path], FileOptions(base=base))
                assert ingest(again, stream, client=client).counts.events == expected
            assert [json.loads(event) for event in client.read(stream)] == [{"a": 1}] * 3
