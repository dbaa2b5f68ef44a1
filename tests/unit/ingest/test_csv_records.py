"""Records of CSV that are rejected: the same ones in any file, each with its reason, at a cost that does not grow."""

import csv
from pathlib import Path

import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.errors import SourceUnreadableError
from pravega_connector.operations.ingest import FileOptions, FileSource
from pravega_connector.operations.ingest.csv_lines import OPEN, STRAY, broken
from pravega_connector.operations.ingest.file_source import parse_types
from pravega_connector.operations.ingest.lines import Lines, lines_of
from tests.unit.ingest.test_lines import Blocks

LOSS = "without a loss; set the type of the column (--type a=string)"

#: Malformed lines with the columns ``a`` and ``b``, the type of ``a``, and the reason, or what the text is not.
MALFORMED: dict[str, tuple[str, str, str]] = {
    "a text": ("x,1", "int64", "a 64-bit integer"),
    "a large integer": ("9223372036854775808,1", "int64", "a 64-bit integer"),
    "an integer of another size": ("-129,1", "int8", "int8"),
    "a day that does not exist": ("2026-06-31,1", "date32", "a date"),
    "a leap day of no leap year": ("2026-02-29,1", "date32", "a date"),
    "an hour that does not exist": ("2026-06-30 24:00,1", "timestamp[us]", "a time without a zone"),
    "too many digits": ("1.00000000000000001,1", "double", "a double"),
    "too many digits of a decimal": ("1.005,1", "decimal(10,2)", "decimal128(10, 2)"),
    "a field more": ("1,2,3", "int64", "Expected 2 columns, got 3"),
    "an open quote": ('"1,2', "int64", OPEN),
    "an open quote after a quote inside a field": ('5","1', "string", OPEN),
    "text after a quoted field": ('"5"6,1', "int64", STRAY),
    "a blank after a quoted field": ('"5" ,1', "int64", STRAY),
    "a quote within a quoted field": ('"5"6"7",1', "string", STRAY),
    "text after the last quoted field": ('5,"1"x', "string", STRAY),
    "other text encodings": ("\xff,2", "string", "column 'a' is not UTF-8; set the encoding of the file (--encoding)"),
}
GOOD = {"int64": "7", "int8": "-128", "date32": "2024-02-29", "double": "0.1", "decimal(10,2)": "1.5", "string": "é"}


@pytest.mark.parametrize("name", MALFORMED)
def test_rejected_records_cost_no_pass_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    line, kind, reason = MALFORMED[name]
    if reason.startswith(("a ", "int8", "decimal")) and reason not in (OPEN, STRAY):
        reason = f"column 'a': '{line.partition(',')[0]}' is not {reason} {LOSS}"
    good = f"{GOOD.get(kind, '2024-02-29 23:59')},1"
    lines = [good.encode(), *[line.encode("latin-1"), good.encode()] * 500]
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b\n" + b"\n".join(lines))
    source = FileSource([path], FileOptions(reject=True, types=parse_types([f"a={kind}"])))
    assert source.schema.names == ["a", "b"]
    calls = []
    read = pyarrow.csv.read_csv
    monkeypatch.setattr(pyarrow.csv, "read_csv", lambda *arguments: calls.append(1) or read(*arguments))
    (chunk,) = source.read(*source.ids())
    assert [(bad.record, bad.line, bad.reason) for bad in chunk.rejected] == [
        (row, row + 2, reason) for row in range(1, 1000, 2)
    ]
    assert chunk.batch.num_rows == 501
    assert len(set(chunk.batch.column("a").to_pylist())) == 1
    assert len(calls) <= 3


@pytest.mark.parametrize("company", ['"",2\n', '5" x,2\n5",3\n', '"a""b",2\n', '5",1\n",a",1\n'])
def test_text_after_a_quoted_field_is_found_in_any_company(tmp_path: Path, company: str):
    path = tmp_path / "x.csv"
    options = FileOptions(reject=True)
    path.write_text(f"a,b\n{company * 3}")
    source = FileSource([path], options)
    (chunk,) = source.read(*source.ids())
    assert not chunk.rejected
    good = chunk.batch.to_pylist()
    path.write_text(f'a,b\n{company * 3}",5"6,7\n{company}')
    source = FileSource([path], options)
    (chunk,) = source.read(*source.ids())
    assert [bad.reason for bad in chunk.rejected] == [STRAY]
    assert chunk.batch.to_pylist() == [*good, *good[: len(good) // 3]]


def test_the_names_of_columns_have_no_text_after_quotes(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text('"a"b,c\n1,2\n')
    with pytest.raises(SourceUnreadableError, match=r"x\.csv, line 1: a quoted field has text after its closing quote"):
        assert FileSource([path]).schema


def test_a_title_in_the_first_line_rejects_the_others_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "x.csv"
    path.write_text("Report\n" + "a,b\n" * 1000)
    calls = []
    read = pyarrow.csv.read_csv
    monkeypatch.setattr(pyarrow.csv, "read_csv", lambda *arguments: calls.append(1) or read(*arguments))
    source = FileSource([path], FileOptions(reject=True))
    (chunk,) = source.read(*source.ids())
    assert {bad.reason for bad in chunk.rejected} == {"Expected 1 columns, got 2"}
    assert len(chunk.rejected) == 1000
    assert len(calls) <= 6


def test_the_first_malformed_column_is_named(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,x\ny,z\n2,3\n")
    source = FileSource([path], FileOptions(reject=True, types=parse_types(["a=int64", "b=int64"])))
    (chunk,) = source.read(*source.ids())
    assert [bad.reason.partition(" is")[0] for bad in chunk.rejected] == ["column 'b': 'x'", "column 'a': 'y'"]
    assert chunk.batch.to_pylist() == [{"a": 2, "b": 3}]


def rows(text: str, *, quotes: bool) -> Lines:
    (lines,) = lines_of(Blocks(text.encode()), "file", quotes=quotes)
    return lines


texts = st.text(st.sampled_from('ab,," \té'), min_size=1, max_size=8)


def is_stray(record: str) -> bool:
    try:
        list(csv.reader([record], strict=True))
    except csv.Error as error:
        return "expected after" in str(error)
    return False


@given(st.lists(texts, min_size=1, max_size=6), st.booleans())
def test_a_record_is_broken_in_any_company(records: list[str], quotes: bool):
    """If pyarrow can read a record by itself, it can read the record in its file, but for text after quotes."""
    whole = rows("\n".join(records) + "\n", quotes=quotes)
    found = broken(whole, 2, ",")
    for row in range(len(whole)):
        alone = whole.text(row)
        options = pyarrow.csv.ReadOptions(column_names=["a", "b"])
        try:
            table = pyarrow.csv.read_csv(
                pyarrow.BufferReader(alone.encode()), options, pyarrow.csv.ParseOptions(newlines_in_values=True)
            )
        except pyarrow.ArrowInvalid:
            assert row in found, alone
        else:
            opened = broken(rows(alone, quotes=quotes), 2, ",").get(0) == OPEN  # pyarrow closes it
            assert (row in found) == (opened or is_stray(alone) or table.num_rows != 1), alone


@pytest.mark.parametrize(
    ("kind", "odd", "good"),
    [
        ("double", ["1.", "0.", "-1.", "-0.", "."], ["0.5", "-.5"]),
        ("timestamp[ns]", ["2026-01-01T23:59:59.1234567890"], ["2026-01-01T23:59:59.1234567", "2026-01-01 23:59"]),
        ("timestamp[us]", ["2026-01-01T23:59:59.1234567"], ["2026-01-01T23:59:59.123456", "2026-01-01T23:59:59.123"]),
    ],
)
@pytest.mark.parametrize("company", [[], ["x"], ["1.2.3", "--1"]], ids=str)
def test_a_text_has_one_meaning_in_any_company(
    tmp_path: Path, kind: str, odd: list[str], good: list[str], company: list[str]
):
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["a", *odd, *good, *company]))
    source = FileSource([path], FileOptions(reject=True, types=parse_types([f"a={kind}"])))
    (chunk,) = source.read(*source.ids())
    assert [bad.record for bad in chunk.rejected] == [
        *range(len(odd)),
        *range(len(odd) + len(good), len(odd) + len(good) + len(company)),
    ]
    assert chunk.batch.column("a").null_count == 0


@pytest.mark.filterwarnings("error")
def test_a_block_without_good_records_warns_of_nothing(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1\n2\n")
    source = FileSource([path], FileOptions(reject=True, types=parse_types(["a=double"])))
    (chunk,) = source.read(*source.ids())
    assert [bad.reason for bad in chunk.rejected] == ["Expected 2 columns, got 1"] * 2
