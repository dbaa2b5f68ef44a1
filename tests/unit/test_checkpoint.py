"""Spark's checkpoint folders, written here as Spark 4.2 and 4.3 write them (both versions of the offset log)."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pravega_connector.checkpoint import committed_batch, committed_offset, committed_offsets
from pravega_connector.errors import ConfigError
from pravega_serde import MissingExtraError

SETTINGS = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1795263411920, "conf": {"a": "v1\u2028"}})
OTHER = '{"offset":10,"timestamp":2000}'


def ours(at: int, stream: str = "s/t") -> str:
    return json.dumps({"streams": {stream: {"0.#epoch.0": at}}, "version": 1})


@pytest.fixture(params=["v1", "v2"])
def write(request, tmp_path: Path) -> Callable[..., Path]:
    """``write({batch: [offset texts]}, commits)``: a checkpoint folder; leftovers of a crash are in it as well."""

    def write(offsets: dict[int, list[str]], commits: list[int]) -> Path:
        for name in ("offsets", "commits"):
            (tmp_path / name).mkdir()
            (tmp_path / name / ".7.5aab46a7.tmp").write_text("half")
            (tmp_path / name / ".7.crc").write_bytes(b"crc")
        for batch, texts in offsets.items():
            lines = texts if request.param == "v1" else [f"source-{i}:{text}" for i, text in enumerate(texts)]
            (tmp_path / "offsets" / str(batch)).write_text("\n".join([request.param, SETTINGS, *lines]))
        for batch in commits:
            (tmp_path / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
        return tmp_path

    return write


def test_committed_is_the_newest_with_a_commit(write):
    folder = write({8: [ours(1)], 9: [ours(2)], 10: [ours(3)]}, [8, 9])
    assert committed_batch(folder) == 9
    assert committed_offset(folder)["streams"] == {"s/t": {"0.#epoch.0": 2}}
    assert committed_offset(folder.as_uri()) == committed_offset(str(folder))


def test_our_source_is_found_among_others(write):
    assert committed_offset(write({0: [OTHER, "-", "12", "not json {", ours(5)]}, [0])) == json.loads(ours(5))


def test_several_sources_of_ours(write):
    folder = write({0: [ours(1, "s/a"), OTHER, ours(2, "s/b")]}, [0])
    assert [list(offset["streams"]) for offset in committed_offsets(folder)] == [["s/a"], ["s/b"]]
    with pytest.raises(ConfigError, match="2 Pravega sources \\(s/a; s/b\\)"):
        committed_offset(folder)


@pytest.mark.parametrize(
    ("offsets", "commits", "said"),
    [
        ({}, [], "not finished a batch yet"),
        ({0: [ours(1)]}, [], "not finished a batch yet"),
        ({0: [OTHER]}, [0], "no Pravega source"),
        ({1: [ours(1)]}, [2], "batch 2 .* cannot be read"),
    ],
)
def test_what_is_missing_is_said(write, offsets, commits, said):
    with pytest.raises(ConfigError, match=said):
        committed_offset(write(offsets, commits))


def test_no_checkpoint(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"checkpoint .* does not exist"):
        committed_offset(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="no folder 'offsets'"):
        committed_offset(tmp_path)
    with pytest.raises(ConfigError, match="nowhere://bucket/checkpoint is on an unknown file system"):
        committed_offset("nowhere://bucket/checkpoint")
    with pytest.raises(ConfigError, match="cannot read checkpoint memory://none: it has no folder"):
        committed_offset("memory://none")


def test_on_another_file_system(write, request):
    folder = write({8: [ours(1)], 9: [ours(2)], 10: [ours(3)]}, [8, 9])
    files = fsspec.filesystem("memory")
    files.put(str(folder), "/query", recursive=True)
    request.addfinalizer(lambda: files.rm("/query", recursive=True))
    assert committed_batch("memory://query") == 9
    assert committed_offset("memory://query/") == committed_offset(folder)
    files.rm("/query/commits", recursive=True)
    with pytest.raises(ConfigError, match="not finished a batch yet"):
        committed_offset("memory://query")


def test_another_file_system_without_its_packages(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtraError, match=r"a checkpoint on s3a needs the package 'fsspec'.*\[checkpoints\]"):
        committed_offset("s3a://bucket/checkpoint")


def test_whatever_another_file_system_raises_is_one_line(monkeypatch):
    def refuse(*_: object, **__: object):
        raise RuntimeError("no credentials")

    monkeypatch.setattr(MemoryFileSystem, "ls", refuse)
    with pytest.raises(ConfigError, match="memory://query: RuntimeError: no credentials"):
        committed_offset("memory://query")


@pytest.mark.parametrize("text", ["", "v1", "v3\n{}\n" + ours(1), "\x00"])
def test_other_files_are_refused(tmp_path: Path, text: str):
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0").write_text(text)
    with pytest.raises(ConfigError, match="unknown version of the offset log"):
        committed_offset(tmp_path)
