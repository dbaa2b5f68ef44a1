"""Files as a source: which they are, their columns, their records from any place, and what is wrong with bad ones."""

import bz2
import gzip
import lzma
import os
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pravega_connector.errors import BadRecordError, ConfigError, SourceChangedError, SourceUnreadableError
from pravega_connector.operations.ingest import FileOptions, FileSource, file_source
from pravega_connector.operations.ingest.file_source import parse_types

ROWS = [{"a": number, "b": f"text {number}"} for number in range(2500)]
CSV = "a,b\n" + "".join(f"{row['a']},{row['b']}\n" for row in ROWS)
JSON = "".join(f'{{"a": {row["a"]}, "b": "{row["b"]}"}}\n' for row in ROWS)
AVRO = {"type": "record", "name": "Row", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]}


def write_avro(path: Path) -> None:
    with path.open("wb") as out:
        fastavro.writer(out, AVRO, ROWS, codec="deflate", sync_interval=2000)


def write_zstd(path: Path) -> None:
    with pa.output_stream(str(path), compression="zstd") as out:
        out.write(JSON.encode())


WRITERS: dict[str, Any] = {
    "x.csv": lambda path: path.write_text(CSV),
    "x.tsv": lambda path: path.write_text(CSV.replace(",", "\t")),
    "x.csv.gz": lambda path: path.write_bytes(gzip.compress(CSV.encode())),
    "x.csv.bz2": lambda path: path.write_bytes(bz2.compress(CSV.encode())),
    "x.csv.xz": lambda path: path.write_bytes(lzma.compress(CSV.encode())),
    "x.jsonl": lambda path: path.write_text(JSON),
    "x.json.zst": write_zstd,
    "x.avro": write_avro,
    "x.parquet": lambda path: pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=700),
}


@pytest.fixture(params=WRITERS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path: Path = tmp_path / request.param
    WRITERS[request.param](path)
    return path


def read(source: FileSource, id_: str, offset: int = 0) -> list[Any]:
    found, at = [], offset
    for chunk in source.read(id_, offset):
        assert chunk.first == at
        at += chunk.records
        assert chunk.batch.num_rows == chunk.records - len(chunk.rejected)
        found += chunk.batch.to_pylist()
    return found


def test_records_are_read_from_any_place(path: Path):
    source = FileSource([path])
    (id_,) = source.ids()
    assert id_ == str(path)
    assert source.schema.names == ["a", "b"]
    assert [field.type for field in source.schema] == [pa.int64(), pa.string()]
    for offset in (0, 1, 699, 700, 701, 2499, 2500, 9999):
        assert read(source, id_, offset) == ROWS[offset:]


def test_a_file_cut_in_half_is_not_a_shorter_file(path: Path):
    whole = path.read_bytes()
    source = FileSource([path])
    (id_,) = source.ids()
    assert source.schema.names == ["a", "b"]
    path.write_bytes(whole[: len(whole) // 2])
    if path.suffix in (".csv", ".tsv", ".jsonl"):  # text that is cut may look whole
        assert source.change(id_, f"{len(whole)} 0 0 digest") is not None
        return
    with pytest.raises(SourceUnreadableError, match=path.name):
        read(source, id_)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst", ".lz4", ".br"])
def test_an_empty_file_is_not_a_compressed_one(tmp_path: Path, suffix: str):
    path = tmp_path / f"x.csv{suffix}"
    path.touch()
    with pytest.raises(SourceUnreadableError, match=r"x\.csv\..* is empty, so it was not completely written"):
        read(FileSource([path]), str(path))


def test_text_is_lines(tmp_path: Path):
    (tmp_path / "a.log").write_bytes("one\r\n\nthrée".encode())
    source = FileSource([tmp_path])
    (id_,) = source.ids()
    assert read(source, id_) == [{"event": "one"}, {"event": ""}, {"event": "thrée"}]
    assert read(source, id_, 2) == [{"event": "thrée"}]
    (tmp_path / "a.log").write_bytes(b"one\n\xff\n")
    with pytest.raises(BadRecordError, match=r"a.log, line 2"):
        read(source, id_)


def test_folders_and_globs_in_order(tmp_path: Path):
    for name in ("b/2.csv", "b/10.csv", "a.csv", "_c.csv", ".d.csv", "b/e.csv.tmp", "b/readme.md", "z.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a\n1\n")
    source = FileSource([tmp_path], FileOptions(base=str(tmp_path)))
    assert source.ids() == ["a.csv", "b/10.csv", "b/2.csv", "z.csv"]
    assert [os.path.basename(path) for path in source.listing().ignored] == ["readme.md"]
    globbed = FileSource([tmp_path / "**" / "?.csv", tmp_path / "a.csv"], FileOptions(base=str(tmp_path)))
    assert globbed.ids() == ["a.csv", "b/2.csv", "z.csv"]
    with pytest.raises(ConfigError, match="is not in the base"):
        FileSource([tmp_path / "a.csv"], FileOptions(base=str(tmp_path / "b"))).ids()
    with pytest.raises(SourceUnreadableError, match="does not exist"):
        FileSource([tmp_path / "none.csv"]).ids()
    with pytest.raises(ConfigError, match="unknown kind of file"):
        FileSource([tmp_path / "b" / "readme.md"]).ids()
    assert len(FileSource([tmp_path / "b" / "readme.md"], FileOptions(input="text")).ids()) == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("3", "Expected 2 columns, got 1: '3'$"),
        ("3,4,5", "Expected 2 columns, got 3: '3,4,5'$"),
        ("x,4", "column 'a': 'x' is not a 64-bit integer"),
    ],
)
def test_a_bad_line_is_named_or_handed_over(tmp_path: Path, line: str, reason: str):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n\n" + line + "\n5,6\n")
    source = FileSource([path], FileOptions(types=parse_types(["a=int64", "b=int64"])))
    (id_,) = source.ids()
    with pytest.raises(BadRecordError, match=rf"x.csv, line 4: .*{reason}") as caught:
        read(source, id_)
    assert repr(line) in str(caught.value)
    lenient = FileSource([path], FileOptions(reject=True, types=parse_types(["a=int64", "b=int64"])))
    (chunk,) = lenient.read(*lenient.ids())
    assert chunk.batch.to_pylist() == [{"a": 1, "b": 2}, {"a": 5, "b": 6}]
    assert (chunk.records, [(bad.record, bad.line, bad.text) for bad in chunk.rejected]) == (3, [(1, 4, line)])
    head, rest = chunk.split(2)
    assert (head.batch.to_pylist(), head.records, len(head.rejected)) == ([{"a": 1, "b": 2}], 2, 1)
    assert (rest.batch.to_pylist(), rest.first, rest.rejected) == ([{"a": 5, "b": 6}], 2, ())
    (late,) = lenient.read(*lenient.ids(), 2)
    assert late.batch.to_pylist() == [{"a": 5, "b": 6}]


@pytest.mark.parametrize("line", ["{", "[1]", '{"a": 2} {"a": 3}', "none"])
def test_a_bad_line_does_not_keep_the_columns_from_being_found(tmp_path: Path, line: str):
    path = tmp_path / "x.jsonl"
    path.write_text(f'{{"a": 1}}\n{line}\n{{"a": 4, "b": "x"}}\n')
    lenient = FileSource([path], FileOptions(reject=True))
    assert lenient.schema.names == ["a", "b"]
    (chunk,) = lenient.read(*lenient.ids())
    assert chunk.batch.to_pylist() == [{"a": 1, "b": None}, {"a": 4, "b": "x"}]
    assert [(bad.line, bad.text) for bad in chunk.rejected] == [(2, line)]
    strict = FileSource([path])
    with pytest.raises(BadRecordError, match=r"x.jsonl, line 2: "):
        read(strict, *strict.ids())


@pytest.mark.parametrize(("name", "text"), [("x.csv", "a,b\n1,2,3\n"), ("x.jsonl", "{\n")])
def test_a_file_of_bad_lines_only_has_no_rows(tmp_path: Path, name: str, text: str):
    path = tmp_path / name
    path.write_text(text)
    source = FileSource([path], FileOptions(reject=True))
    assert source.schema.names == (["a", "b"] if name == "x.csv" else [])
    (chunk,) = source.read(*source.ids())
    assert (chunk.batch.num_rows, chunk.records, len(chunk.rejected)) == (0, 1, 1)


def test_a_field_that_no_column_is_for_is_a_bad_record(tmp_path: Path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n' * 10)
    source = FileSource([path])
    assert source.schema.names == ["a"]
    path.write_text('{"a": 1}\n{"a": 2, "new": 3}\n')
    with pytest.raises(BadRecordError, match=r"x.jsonl, line 2: .*the field 'new' has no column"):
        read(source, *source.ids())


def test_a_quoted_line_end_is_reported_and_can_be_allowed(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text('a,b\n1,"two\nlines"\n3,4\n')
    with pytest.raises(BadRecordError, match="line 2"):
        list(FileSource([path], FileOptions(types=parse_types(["a=string", "b=string"]))).read(str(path)))
    source = FileSource([path], FileOptions(multiline=True))
    assert read(source, *source.ids()) == [{"a": 1, "b": "two\nlines"}, {"a": 3, "b": "4"}]


def test_types_hold_for_all_files(tmp_path: Path):
    (tmp_path / "1.csv").write_text("a,b,c\n1,,2013-01-01T05:00:00Z\n")
    (tmp_path / "2.csv").write_text("c,b,a\n2013-01-01T06:00:00Z,NA,2.5\n")
    source = FileSource([tmp_path])
    kinds = {field.name: field.type for field in source.schema}
    assert kinds == {"a": pa.float64(), "b": pa.string(), "c": pa.timestamp("us", "UTC")}
    rows = [row for id_ in source.ids() for row in read(source, id_)]
    assert [(row["a"], row["b"]) for row in rows] == [(1.0, None), (2.5, None)]
    (tmp_path / "3.csv").write_text("a,b\n1,2\n")
    with pytest.raises(BadRecordError, match=r"3.csv, line 1: it lacks the column 'c'"):
        list(source.read(source.ids()[2]))
    with pytest.raises(ConfigError, match="column 'd' of the types does not exist"):
        _ = FileSource([tmp_path / "1.csv"], FileOptions(types=parse_types(["d=string"]))).schema


def test_files_are_recognized_by_their_content(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text(CSV)
    source = FileSource([path])
    (id_,) = source.ids()
    mark = source.mark(id_)
    assert source.change(id_, mark) is None
    os.utime(path, ns=(1, 1))
    assert source.change(id_, mark) is None
    before = path.stat()
    path.write_text(CSV.replace("text 7\n", "text 8\n"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert source.change(id_, mark) == "it has other content of the same size"
    path.write_text(CSV[:-1])
    assert "bytes and had" in (source.change(id_, mark) or "")
    path.unlink()
    with pytest.raises(SourceUnreadableError, match="does not exist"):
        source.change(id_, mark)


def test_a_file_that_is_being_written_to_gets_no_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "x.csv"
    path.write_text(CSV)
    source = FileSource([path])
    (id_,) = source.ids()

    digest = file_source._digest

    def meanwhile(name: str) -> str:
        path.write_text(CSV + CSV)
        return digest(name)

    monkeypatch.setattr(file_source, "_digest", meanwhile)
    with pytest.raises(SourceChangedError, match="is being written to"):
        source.mark(id_)


def test_types_are_read_from_text():
    assert parse_types(["a=string", "b=timestamp[us, tz=UTC]", "c=decimal(10, 2)", "d=date32"]) == {
        "a": pa.string(),
        "b": pa.timestamp("us", "UTC"),
        "c": pa.decimal128(10, 2),
        "d": pa.date32(),
    }
    for wrong in ("a", "=string", "a=strin"):
        with pytest.raises(ConfigError):
            parse_types([wrong])


@pytest.mark.parametrize("first", ["null", " null", "nullx", "[1]", '"x"', "1"])
def test_a_first_line_that_is_not_an_object_is_rejected(tmp_path: Path, first: str):
    path = tmp_path / "x.jsonl"
    path.write_text(f'{first}\n{{"a":1}}\n')
    source = FileSource([path], FileOptions(reject=True, types=parse_types(["a=int64"])))
    (chunk,) = source.read(*source.ids())
    (bad,) = chunk.rejected
    assert (bad.record, bad.line) == (0, 1)
    assert "--type $" not in bad.reason
    assert chunk.batch.to_pylist() == [{"a": 1}]
