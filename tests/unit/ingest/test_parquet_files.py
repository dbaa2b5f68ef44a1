"""Parquet files: every value becomes the value of an event, or an error whose fix works."""

import datetime as dt
import json
import math
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pravega_connector.errors import BadRecordError, SourceUnreadableError
from pravega_connector.operations.ingest import FileOptions, FileSource
from pravega_connector.operations.ingest.file_source import parse_types
from tests.unit.ingest.test_exact_values import events

US = pa.timestamp("us")
FAR = [dt.datetime(1, 1, 1), dt.datetime(1677, 9, 21), dt.datetime(2262, 4, 12), dt.datetime(9999, 12, 31, 23, 59, 59)]
ID = uuid.UUID("25f95c12-d66b-4070-b581-0d92ec959193")


def wrapped(values: pa.Array, shape: str) -> tuple[pa.Array, Any]:
    """A column of a shape around values, and the way back to a value of the JSON of a row."""
    if shape == "struct":
        return pa.StructArray.from_arrays([values], ["a"]), lambda value: value["a"]
    if shape == "list":
        offsets = pa.array(range(len(values) + 1), pa.int32())
        return pa.ListArray.from_arrays(offsets, values), lambda value: value[0]
    if shape == "map":
        offsets = pa.array(range(len(values) + 1), pa.int32())
        return pa.MapArray.from_arrays(offsets, pa.array(["k"] * len(values)), values), lambda value: value["k"]
    return values, lambda value: value


shapes = pytest.mark.parametrize("shape", ["column", "struct", "list", "map"])


@shapes
def test_int96_of_any_year(tmp_path: Path, shape: str):
    column, back = wrapped(pa.array(FAR, US), shape)
    pq.write_table(pa.table({"x": column}), tmp_path / "x.parquet", use_deprecated_int96_timestamps=True)
    found = [back(json.loads(event)["x"]) for event in events(FileSource([tmp_path / "x.parquet"]))]
    assert [dt.datetime.fromisoformat(each) for each in found] == FAR


@shapes
def test_extension_types(tmp_path: Path, shape: str):
    ids = pa.array([ID.bytes, None], pa.uuid())
    texts = pa.array(['{"a": 1}', None], pa.json_())
    for values, expected in ((ids, str(ID)), (texts, '{"a": 1}')):
        column, back = wrapped(values, shape)
        pq.write_table(pa.table({"x": column}), tmp_path / "x.parquet")
        found = [back(json.loads(event)["x"]) for event in events(FileSource([tmp_path / "x.parquet"]))]
        assert found == [expected, None]


@shapes
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_that_is_not_utf8_is_an_error(tmp_path: Path, shape: str, kind: pa.DataType):
    text = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff")]
    )
    column, _ = wrapped(text.cast(pa.binary()).cast(kind, safe=False) if kind != pa.string() else text, shape)
    pq.write_table(pa.table({"x": column}), tmp_path / "x.parquet")
    with pytest.raises(BadRecordError, match=r"x\.parquet has a value in column 'x' that is not UTF-8"):
        events(FileSource([tmp_path / "x.parquet"]))
    if shape == "column":
        assert events(FileSource([tmp_path / "x.parquet"], FileOptions(types={"x": pa.binary()}))) == [
            '{"x":"YQ=="}',
            '{"x":"/w=="}',
        ]


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.time64("ns")])
def test_nanoseconds_are_an_error_whose_fix_works(tmp_path: Path, kind: pa.DataType):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": pa.array([1000, 2_000_000], pa.int64()).cast(kind)}), path)
    assert len(events(FileSource([path]))) == 2
    pq.write_table(pa.table({"x": pa.array([1001, 2_000_000], pa.int64()).cast(kind)}), path)
    with pytest.raises(BadRecordError, match=r"x.parquet has a value in column 'x' .*--type x=string"):
        events(FileSource([path]))
    found = events(FileSource([path], FileOptions(types=parse_types(["x=string"]))))
    assert "000001001" in found[0]


@shapes
def test_nan_fits_a_wider_type(tmp_path: Path, shape: str):
    values = pa.array([math.nan, 0.5, None], pa.float32())
    pq.write_table(pa.table({"x": wrapped(values, shape)[0]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"x": wrapped(values.cast(pa.float64()), shape)[0]}), tmp_path / "a.parquet")
    found = events(FileSource([tmp_path / "a.parquet", tmp_path / "b.parquet"]))
    assert found[:3] == found[3:]
    assert "NaN" in found[0]


def test_nanoseconds_of_durations_are_not_cut(tmp_path: Path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": pa.array([-28_524, 2000], pa.duration("ns"))}), path)
    files = FileSource([path])
    with pytest.raises(BadRecordError, match=r"x.parquet has a value in column 'x' .*--type x=string"):
        next(files.read(*files.ids()))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (pa.array([1], pa.int64()), pa.array([5], pa.int16()), "5"),
        (pa.array([0.5]), pa.array([5], pa.int32()), "5.0"),
        (pa.array([Decimal("1.50")]), pa.array([0.25]), None),
        (pa.array(["tea"]), pa.array([b"tea"]), '"tea"'),
        (pa.array([0.5]), pa.array([2**53 + 1]), None),
        (pa.array([1]), pa.array([0.5]), None),
        (pa.array([1]), pa.array(["007"]), None),
        (pa.array([0.5], pa.float32()), pa.array([0.1]), None),
        (pa.array([Decimal("1.50")]), pa.array([0.125]), None),
        (pa.array([0.5]), pa.array([Decimal("1234567890123456.78")]), None),
        (pa.array([dt.datetime(2026, 5, 1)]), pa.array([dt.date(2026, 5, 1)]), None),
        (pa.array([dt.date(2026, 5, 1)]), pa.array([dt.datetime(2026, 5, 1)]), None),
        (pa.array([True]), pa.array([1]), None),
        (pa.array([1]), pa.array([None], pa.null()), "null"),
        (pa.array([1]), pa.array([dt.datetime(2026, 5, 1)]), None),
        (pa.array([dt.datetime(2026, 5, 1)]), pa.array([5]), None),
        (pa.array([dt.datetime(2026, 5, 1)]), pa.array([dt.datetime(2026, 5, 1)], pa.timestamp("us", "UTC")), None),
        (pa.array([1], pa.int32()), pa.array([dt.date(2026, 5, 1)]), None),
        (pa.array([dt.time(1)]), pa.array([5]), None),
        (pa.array([1]), pa.array([dt.timedelta(1)]), None),
    ],
)
def test_other_types_in_a_later_file_are_the_same_value_or_an_error(
    tmp_path: Path, first: pa.Array, second: pa.Array, expected: str | None
):
    for name, column in (("1", first), ("2", second)):
        pq.write_table(pa.table({"x": column}), tmp_path / f"{name}.parquet")
    if expected is not None:
        assert events(FileSource([tmp_path]))[1] == f'{{"x":{expected}}}'
        return
    with pytest.raises(BadRecordError, match=r"2.parquet has a value in column 'x' .*--type x=string"):
        events(FileSource([tmp_path]))
    fixed = FileSource([tmp_path], FileOptions(types=parse_types(["x=string"])))
    assert json.loads(events(fixed)[1])["x"] == second.cast(pa.string())[0].as_py()


def test_the_checksums_of_pages_are_verified(tmp_path: Path):
    path, settings = tmp_path / "x.parquet", {"compression": "none", "use_dictionary": False}
    pq.write_table(pa.table({"x": range(1000)}), path, write_page_checksum=True, **settings)
    data = bytearray(path.read_bytes())
    data[data.index((500).to_bytes(8, "little")) + 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(SourceUnreadableError, match="it is damaged"):
        events(FileSource([path]))


def test_two_columns_of_one_name(tmp_path: Path):
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"]), tmp_path / "x.parquet")
    with pytest.raises(SourceUnreadableError, match=r"x.parquet has two columns called 'x'"):
        events(FileSource([tmp_path / "x.parquet"]))


def test_a_column_called_event_is_a_field_unless_it_is_a_line(tmp_path: Path):
    (tmp_path / "x.csv").write_text("event\nlogin\n")
    (tmp_path / "x.jsonl").write_text('{"event":"login"}\n')
    pq.write_table(pa.table({"event": ["login"]}), tmp_path / "x.parquet")
    (tmp_path / "x.txt").write_text("login\n")
    for name in ("x.csv", "x.jsonl", "x.parquet"):
        files = FileSource([tmp_path / name])
        assert events(files) == ['{"event":"login"}']
        again = FileSource([tmp_path / name])
        again.fix(pa.ipc.read_schema(pa.py_buffer(files.schema.serialize())))
        assert events(again) == ['{"event":"login"}']
    assert events(FileSource([tmp_path / "x.txt"])) == ["login"]
