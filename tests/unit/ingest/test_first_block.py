"""The block that inference reads is parsed once, and only used for the records that it is of."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pravega_connector.operations.ingest import FileOptions, FileSource

pytestmark = pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])


def written(path: Path, numbers: list[str]) -> Path:
    head, line = ("n\n", "{}\n") if path.suffix == ".csv" else ("", '{{"n": {}}}\n')
    path.write_text(head + "".join(line.format(number) for number in numbers))
    return path


def read(source: FileSource, offset: int = 0, at: int = 0) -> list[Any]:
    return [row["n"] for chunk in source.read(source.ids()[at], offset) for row in chunk.batch.to_pylist()]


def test_every_read_has_all_records_from_its_offset(tmp_path: Path, name: str) -> None:
    source = FileSource([written(tmp_path / name, ["1", "2", "3"])])
    assert source.schema.types == [pa.int64()]
    assert [read(source, 1), read(source), read(source, 2), read(source)] == [[2, 3], [1, 2, 3], [3], [1, 2, 3]]


def test_a_file_that_changed_after_inference_is_read_as_it_is(tmp_path: Path, name: str) -> None:
    source = FileSource([written(tmp_path / name, ["1", "2"])])
    assert source.schema.types == [pa.int64()]
    written(tmp_path / name, ["7", "8"])
    assert read(source) == [7, 8]


def test_each_of_several_files_has_its_records(tmp_path: Path, name: str) -> None:
    files = [written(tmp_path / f"{at}-{name}", [str(at), str(at + 1)]) for at in (1, 5)]
    source = FileSource(files)
    assert source.schema.types == [pa.int64()]
    assert [read(source, at=1), read(source)] == [[5, 6], [1, 2]]


def test_a_type_that_is_set_is_not_that_of_inference(tmp_path: Path, name: str) -> None:
    source = FileSource([written(tmp_path / name, ["1.50", "2.00"])], FileOptions(types={"n": pa.string()}))
    assert source.schema.types == [pa.string()]
    assert read(source) == ["1.50", "2.00"]


def test_types_that_a_later_file_widens_are_those_of_all_records(tmp_path: Path, name: str) -> None:
    files = [written(tmp_path / f"{at}-{name}", [number]) for at, number in enumerate(["1", "0.5"])]
    source = FileSource(files)
    assert source.schema.types == [pa.float64()]
    assert [read(source), read(source, at=1)] == [[1.0], [0.5]]
