"""Values of CSV and JSON lines: inference keeps them, and what a column would lose is an error."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pravega_connector.errors import BadRecordError, ConfigError, SourceUnreadableError
from pravega_connector.operations.ingest import FileOptions, FileSource
from pravega_connector.operations.ingest.encode import encoding_for
from pravega_connector.operations.ingest.file_source import parse_types
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.wire import StreamName
from pravega_serde.columnar.building import parse_times

TARGET = StreamName("a", "b")
INT, DOUBLE, TEXT, BOOL = pa.int64(), pa.float64(), pa.string(), pa.bool_()
WIDE = pa.decimal128(38, 0)
TIME, INSTANT, DATE = pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32()


def source(path: Path, data: bytes | str, **options: Any) -> FileSource:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    types = parse_types(options.pop("types", []))
    return FileSource([path], FileOptions(types=types, **options))


def events(files: FileSource) -> list[str]:
    """The events that the files become, with the default format."""
    encoding = encoding_for(files.schema, parse_options(SinkOptions, {"stream": str(TARGET)}))
    found = []
    for id_ in files.ids():
        for chunk in files.read(id_):
            for rows in encoding.by_stream([(id_, chunk)], TARGET):
                found += [event.as_py() for event in rows.events]
    return [event.decode() if isinstance(event, bytes) else event for event in found]


def fields(files: FileSource, name: str = "x") -> list[str]:
    """The JSON text of a field of each event."""
    decode = json.JSONDecoder(parse_float=str, parse_int=str).decode
    return [decode(event)[name] for event in events(files)]


#: Texts of a CSV column, its type, and the texts in the events if they differ.
COLUMNS: dict[str, tuple[list[str], pa.DataType, list[str] | None]] = {
    "integers": (["1", "-7", "0", "9223372036854775807"], INT, None),
    "integers in quotes": (['"1"', '"-7"'], INT, ["1", "-7"]),
    "integers with blanks": ([" 1", "2 "], INT, ["1", "2"]),
    "leading zeros": (["01234", "1"], TEXT, None),
    "leading zeros of fractions": (["00.5", "1"], TEXT, None),
    "plus": (["+441234567890", "+1"], TEXT, None),
    "hexadecimal": (["0x1A", "0x1B"], TEXT, None),
    "unsigned 64 bits": (["1", "18446744073709551615"], WIDE, None),
    "25 digits": (["1", "-1234567890123456789012345"], WIDE, None),
    "38 digits": (["9" * 38], WIDE, None),
    "39 digits": (["9" * 39, "1"], TEXT, None),
    "fractions": (["0.5", "-1.25", "3"], DOUBLE, ["0.5", "-1.25", "3.0"]),
    "fractions without zero": ([".5"], DOUBLE, ["0.5"]),
    "17 digits of a double": (["0.30000000000000004"], DOUBLE, None),
    "17 digits of no double": (["1234567890123456.7", "1"], pa.decimal128(38, 1), ["1234567890123456.7", "1.0"]),
    "16 digits of no double": (["9.123456789012345", "9.123456789012347"], pa.decimal128(38, 15), None),
    "integer over 2**53 next to a fraction": (
        ["9007199254740993", "0.5"],
        pa.decimal128(38, 1),
        ["9007199254740993.0", "0.5"],
    ),
    "18 digits": (["1.23456789012345678", "1"], pa.decimal128(38, 17), ["1.23456789012345678", "1.00000000000000000"]),
    "40 digits": (["1." + "3" * 39], TEXT, None),
    "exponents with sign": (["1e-05", "1E+16"], DOUBLE, ["1.0E-5", "1.0E16"]),
    "exponents with point": (["1.5E3"], DOUBLE, ["1500.0"]),
    "article numbers": (["1E5", "8E2"], TEXT, None),
    "article numbers out of range": (["7E400"], TEXT, None),
    "out of range": (["1.0E400", "1e-400"], TEXT, None),
    "NaN and infinity": (["0.5", "NaN", "-inf"], DOUBLE, ["0.5", "NaN", "-Infinity"]),
    "names like NaN": (["nan", "inf"], TEXT, None),
    "Nan is a name": (["Nan", "0.5"], TEXT, None),
    "a point only": (["1.", "."], TEXT, None),
    "separators": (["1_000", "1,5"], TEXT, None),
    "booleans": (["true", "FALSE"], BOOL, ["true", "false"]),
    "booleans and numbers": (["1", "true"], TEXT, None),
    "yes and no": (["yes", "no", "T"], TEXT, None),
    "dates": (["2026-05-01", "0001-01-01"], DATE, None),
    "days that do not exist": (["2026-02-30"], TEXT, None),
    "other dates": (["01.05.2026", "5/1/2026"], TEXT, None),
    "times of day": (["12:34", "01:02:03"], TEXT, None),
    "times": (
        ["2026-05-01 12:00:00", "2026-05-01T12:30"],
        TIME,
        ["2026-05-01T12:00:00.000000", "2026-05-01T12:30:00.000000"],
    ),
    "midnight": (["2026-05-01 00:00:00"], TIME, ["2026-05-01T00:00:00.000000"]),
    "instants": (
        ["2026-05-01T12:00:00+02:00", "2026-05-01 12:00:00Z"],
        INSTANT,
        ["2026-05-01T10:00:00.000000Z", "2026-05-01T12:00:00.000000Z"],
    ),
    "with and without zone": (["2026-05-01T12:00:00Z", "2026-05-01T12:00:00"], TEXT, None),
    "dates and times": (["2026-05-01", "2026-05-01T12:00:00"], TEXT, None),
    "microseconds and zeros": (["2026-05-01 12:00:00.123456000"], TIME, ["2026-05-01T12:00:00.123456"]),
    "tenths of microseconds": (["2026-05-01 12:00:00.1234567", "2026-05-01 12:00:00"], TEXT, None),
    "nanoseconds with zone": (["2026-05-01T12:00:00.123456789Z"], TEXT, None),
    "leap second": (["2026-12-31T23:59:60Z"], TEXT, None),
    "text": (["tea", "ü☕"], TEXT, None),
    "empty text": (['""', "tea"], TEXT, ["", "tea"]),
}


UNQUOTED = [name for name, (texts, _, _) in COLUMNS.items() if not any('"' in text for text in texts)]


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
def test_columns_of_csv(tmp_path: Path, name: str, turned: bool):
    texts, kind, wanted = COLUMNS[name]
    expected = texts if wanted is None else wanted
    if turned:
        texts, expected = texts[::-1], expected[::-1]
    quoted = [f'"{text}"' if "," in text else text for text in texts]
    files = source(tmp_path / "x.csv", "k,x\n" + "".join(f"{row},{text}\n" for row, text in enumerate(quoted)))
    assert files.schema.field("x").type == kind
    assert [str(each).lower() if isinstance(each, bool) else each for each in fields(files)] == expected


@pytest.mark.parametrize("name", UNQUOTED)
@pytest.mark.parametrize(
    "first", ["1", "0.5", "2026-05-01", "2026-05-01 12:34:56", "2026-05-01 12:34:56Z", "true", "tea"]
)
def test_a_text_after_the_sample_is_the_same_value_or_an_error_whose_fix_works(tmp_path: Path, name: str, first: str):
    texts = COLUMNS[name][0]
    path = tmp_path / "x.csv"
    for text in texts:
        files = source(path, f"k,x\n1,{first}\n")
        assert files.schema.names == ["k", "x"]
        field = f'"{text}"' if "," in text else text
        path.write_text(f"k,x\n1,{first}\n2,{field}\n")
        found, error = second(files)
        if error:
            assert "line 3: column 'x': " in error
            assert "(--type x=string)" in error
            fixed = FileSource([path], FileOptions(types=parse_types(["x=string"])))
            assert fields(fixed)[1] == text
            continue
        assert same(found, text), (found, text)


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
@pytest.mark.parametrize(
    ("first", "text"),
    [
        ("1", "-0"),
        ("1", "007"),
        ("1", " 007"),
        ("1", "-007"),
        ("1", "0x1A"),
        ("1", '"01"'),
        ("0.5", "1E5"),
        ("0.5", "-01"),
    ],
)
def test_numbers_with_other_digits_are_found_in_any_place(tmp_path: Path, delimiter: str, first: str, text: str):
    path = tmp_path / "x.csv"
    good = f"{first}{delimiter}2026-05-01 00:00:01{delimiter}-0.5\n"
    names = f"x{delimiter}at{delimiter}y\n"
    files = source(path, names + good, delimiter=delimiter)
    assert files.schema.types == [INT if first == "1" else DOUBLE, TIME, DOUBLE]
    for before in (0, 3000):
        path.write_text(names + good * before + good.replace(first, text, 1))
        with pytest.raises(BadRecordError, match=f"line {before + 2}: column 'x': .*without a loss"):
            events(files)
    path.write_text(names + good * 3000)
    assert len(events(files)) == 3000


def second(files: FileSource) -> tuple[Any, str]:
    """The field of the second event, and the error if it cannot be read."""
    try:
        return fields(files)[1], ""
    except BadRecordError as error:
        return None, str(error)


def same(found: Any, text: str) -> bool:
    """True if a value of an event equals its text's."""
    if isinstance(found, bool):
        return str(found).lower() == text.lower()
    if found == text:
        return True
    try:
        return Decimal(found) == Decimal(text) or (Decimal(found).is_nan() and Decimal(text).is_nan())
    except ArithmeticError:
        # Times: the event is an instant in UTC, or a time to the microsecond.
        kind = INSTANT if "Z" in found else TIME
        return bool(parse_times(pa.array([found]), kind) == parse_times(pa.array([text]), kind))


#: Values of a field of JSON lines, its type, and the texts of the values in the events if they differ.
VALUES: dict[str, tuple[list[str], pa.DataType, list[Any] | None]] = {
    "integers": (["1", "-7", "9223372036854775807", "-9223372036854775808"], INT, None),
    "unsigned 64 bits": (["1", "18446744073709551615"], WIDE, None),
    "25 digits": (["1234567890123456789012345"], WIDE, None),
    "39 digits": (["1" + "0" * 38, "1"], TEXT, None),
    "5000 digits": (["1" + "0" * 5000, "1"], TEXT, None),
    "fractions": (["0.5", "2", "1e2"], DOUBLE, ["0.5", "2.0", "100.0"]),
    "minus zero": (["-0", "-0.0"], DOUBLE, ["-0.0", "-0.0"]),
    "integer over 2**53 next to a fraction": (
        ["9007199254740993", "0.5"],
        pa.decimal128(38, 1),
        ["9007199254740993.0", "0.5"],
    ),
    "large integers next to a fraction": (["9007199254740991", "0.5"], DOUBLE, ["9.007199254740991E15", "0.5"]),
    "20 digits after the point": (["0.12345678901234567891"], pa.decimal128(38, 20), None),
    "17 digits": (["0.12345678901234567"], pa.decimal128(38, 17), None),
    "50 digits": (["0." + "3" * 50], TEXT, None),
    "out of range": (["7E400", "1e-400"], TEXT, None),
    "numbers and text": (["1", '"x"', "1E5", "1.50", "true", "null"], TEXT, ["1", "x", "1E5", "1.50", "true", None]),
    "objects and text": (['{"b": [1, 0.10]}', '"x"'], TEXT, ['{"b":[1,0.10]}', "x"]),
    "lists and objects": (["[]", "{}"], TEXT, ["[]", "{}"]),
    "times stay text": (
        ['"2026-05-01T12:00:00Z"', '"2026-05-01T12:00:00+02:00"', '"2026-05-01"'],
        TEXT,
        ["2026-05-01T12:00:00Z", "2026-05-01T12:00:00+02:00", "2026-05-01"],
    ),
    "text like numbers": (['"007"', '"1e5"', '"NaN"'], TEXT, ["007", "1e5", "NaN"]),
    "colons and quotes": ([r'"a\":b"', '":"', r'": {\"x\": 1}"'], TEXT, ['a":b', ":", ': {"x": 1}']),
    "astral characters": ([r'"\ud83d\ude00"', '"😀"'], TEXT, ["😀", "😀"]),
    "booleans": (["true", "false"], BOOL, [True, False]),
    "only null": (["null"], TEXT, [None]),
    "lists": (["[1, 2]", "[]", "[null]", "null"], pa.list_(INT), [["1", "2"], [], [None], None]),
    "lists of numbers and text": (['[1, "a"]'], pa.list_(TEXT), [["1", "a"]]),
    "objects": (
        ['{"a": 1}', '{"b": {"c": "t"}}'],
        pa.struct([("a", INT), ("b", pa.struct([("c", TEXT)]))]),
        [{"a": "1", "b": None}, {"a": None, "b": {"c": "t"}}],
    ),
    "lists of objects": (['[{"a": 1}, {"a": 1}]'], pa.list_(pa.struct([("a", INT)])), [[{"a": "1"}, {"a": "1"}]]),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
def test_fields_of_json_lines(tmp_path: Path, name: str, turned: bool):
    values, kind, wanted = VALUES[name]
    expected = values if wanted is None else wanted
    if turned and name != "objects":
        values, expected = values[::-1], expected[::-1]
    files = source(tmp_path / "x.jsonl", "".join(f'{{"k": {row}, "x": {value}}}\n' for row, value in enumerate(values)))
    assert files.schema.field("x").type == kind
    assert fields(files) == expected


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("first", ["1", "0.5", '"t"', "true", "[0]", '{"a": 0}', "18446744073709551615", "null"])
def test_a_value_after_the_sample_is_the_same_or_an_error_whose_fix_works(tmp_path: Path, name: str, first: str):
    path = tmp_path / "x.jsonl"
    for value in VALUES[name][0]:
        files = source(path, f'{{"x": {first}}}\n')
        assert files.schema.names == ["x"]
        path.write_text(f'{{"x": {first}}}\n{{"x": {value}}}\n')
        found, error = second(files)
        if error:
            assert "x.jsonl, line 2: " in error
            assert "has no column" in error or "(--type x=string)" in error
            fixed = FileSource([path], FileOptions(types=parse_types(["x=string"])))
            decode = json.JSONDecoder(parse_float=str, parse_int=str).decode
            text, literal = fields(fixed)[1], decode(value)
            assert text == literal if isinstance(literal, str) else decode(text) == literal
            continue
        literal = json.loads(value, parse_float=Decimal, parse_int=Decimal)
        if isinstance(found, str) and isinstance(literal, Decimal):
            assert Decimal(found) == literal
        elif isinstance(found, str) and not isinstance(literal, str):
            assert json.loads(found, parse_float=Decimal, parse_int=Decimal) == literal
        elif isinstance(literal, (str, bool)) or literal is None:
            assert found == literal


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"a":1,"a":2}', "the name 'a' occurs twice in an object"),
        ('{"a":null,"a":2}', "the name 'a' occurs twice in an object"),
        ('{"a":1,"o":{"b":1,"b":1}}', "the name 'b' occurs twice in an object"),
        ('{"a" : 1, "a"\t:2}', "the name 'a' occurs twice in an object"),
        ('{"a":1,"c":2}', "the field 'c' has no column"),
        ('{"a":1,"o":{"c":2}}', "the field 'c' has no column"),
        ('{"a":"x"}', r"a string where an integer is expected \(field \$.a\)"),
        ('{"a":1.5}', r"a number where an integer is expected \(field \$.a\)"),
        ('{"a":9223372036854775808}', "a number beyond the range of int64"),
        ('{"a":1} {"a":2}', "not JSON: Extra data"),
        ("[1]", "an array where an object is expected"),
        ("null", "null where an object is expected"),
        ("5", "a number where an object is expected"),
        ('{"a":NaN}', "NaN"),
        ('{"a":1', "not JSON"),
        ('{"t":"\\ud800"}', "an unpaired surrogate"),
        ('{"t":"\\udc00"}', "an unpaired surrogate"),
        ("[" * 200_000, "nested"),
        ('{"t":' + "[" * 200_000 + "]" * 200_000 + "}", "nested"),
    ],
)
def test_causes_of_malformed_lines(tmp_path: Path, line: str, reason: str):
    path = tmp_path / "x.jsonl"
    good = '{"a":1,"t":"t","o":{"b":1}}\n'
    files = source(path, good)
    assert files.schema.names == ["a", "t", "o"]
    for before in (1, 100):
        number = before + 1
        path.write_text(good * before + line + "\n" + good * before)
        with pytest.raises(BadRecordError, match=f"x.jsonl, line {number}: .*{reason}"):
            events(files)
        lenient = FileSource([path], FileOptions(reject=True))
        lenient.fix(files.schema)
        (chunk,) = lenient.read(*lenient.ids())
        assert [bad.line for bad in chunk.rejected] == [number]
        assert chunk.batch.num_rows == chunk.records - 1


LATIN = "id,näme\n1,Meier\n2,Müller\n"


def test_text_that_is_not_utf8_names_line_column_and_fix(tmp_path: Path):
    with pytest.raises(SourceUnreadableError, match=r"line 1: the names of the columns are not UTF-8; .*--encoding"):
        _ = source(tmp_path / "x.csv", LATIN.encode("latin-1")).schema
    data = LATIN.replace("ä", "a").encode("latin-1")
    with pytest.raises(BadRecordError, match=r"x.csv, line 3: column 'name' is not UTF-8; .*--encoding"):
        events(source(tmp_path / "x.csv", data))
    with pytest.raises(BadRecordError, match=r"x.jsonl, line 2: .*UTF-8.*--encoding"):
        events(source(tmp_path / "x.jsonl", b'{"a":"x"}\n{"a":"\xfc"}\n'))
    with pytest.raises(BadRecordError, match=r"x.txt, line 2: .*UTF-?8.*--encoding"):
        events(source(tmp_path / "x.txt", b"x\n\xfc\n"))


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8", "utf-8-sig", "utf-32"])
@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.txt"])
def test_encodings(tmp_path: Path, encoding: str, name: str):
    texts = {"x.csv": LATIN, "x.jsonl": '{"näme":"Müller"}\n' * 20_000, "x.txt": "Müller\nMeier\n"}
    files = source(tmp_path / name, texts[name].encode(encoding), encoding=encoding)
    found = events(files)
    if name == "x.txt":
        assert found == ["Müller", "Meier"]
    else:
        assert [json.loads(event)["näme"] for event in found][-1] == "Müller"


def test_a_wrong_encoding_is_an_error_of_the_file(tmp_path: Path):
    with pytest.raises(SourceUnreadableError, match=r"x.csv is not utf-16"):
        events(source(tmp_path / "x.csv", b"a,b\n1,2\n3", encoding="utf-16-be"))
    with pytest.raises(ConfigError, match="unknown encoding 'none'"):
        FileOptions(encoding="none")


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("last", [True, False], ids=["", "no last line end"])
def test_line_ends(tmp_path: Path, name: str, end: str, last: bool):
    lines = ["a,b", "1,2", "", "4,x"] if name == "x.csv" else ['{"a":1,"b":2}', "", "  \t", '{"a":4,"b":"x"}']
    files = source(tmp_path / name, end.join(lines) + end * last)
    assert [json.loads(event) for event in events(files)] == [{"a": 1, "b": "2"}, {"a": 4, "b": "x"}]


def test_line_ends_in_quotes_are_not_those_of_the_file(tmp_path: Path):
    files = source(tmp_path / "x.csv", 'a,b\r1,"p\nq"\r2,"r\r\ns"\r', multiline=True)
    assert [json.loads(event) for event in events(files)] == [{"a": 1, "b": "p\nq"}, {"a": 2, "b": "r\r\ns"}]
    with pytest.raises(BadRecordError, match=r"line 3: a quote is missing, .*--multiline"):
        events(source(tmp_path / "y.csv", 'a,b,c\n1,2,3\n"once\nupon",5,6\n'))
    with pytest.raises(BadRecordError, match=r"line 3: "):
        events(source(tmp_path / "z.csv", 'a\nx\ny\rz\n"p\nq"\n'))


def test_escaped_quotes_do_not_hide_the_line_ends(tmp_path: Path):
    files = source(tmp_path / "x.jsonl", '{"a":"5\\" pipe"}\r{"a":"y"}\r')
    assert events(files) == ['{"a":"5\\" pipe"}', '{"a":"y"}']


@pytest.mark.parametrize("last", ["", "\n", "\r\n"])
@pytest.mark.parametrize("before", ["", "z,5\n"])
def test_an_empty_last_field_after_a_quoted_one_is_null(tmp_path: Path, before: str, last: str):
    found = events(source(tmp_path / "x.csv", f'a,b\n{before}"x",{last}'))
    assert json.loads(found[-1]) == {"a": "x", "b": None}


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.txt"])
def test_a_byte_order_mark_is_not_text(tmp_path: Path, name: str):
    texts = {"x.csv": "näme\nx\n", "x.jsonl": '{"näme":"x"}\n', "x.txt": "x\n"}
    assert "\ufeff" not in events(source(tmp_path / name, "\ufeff" + texts[name]))[0]


def test_the_types_of_files_hold_the_values_of_all_files(tmp_path: Path):
    (tmp_path / "1.jsonl").write_text('{"x": 9007199254740993}\n')
    files = source(tmp_path / "2.jsonl", '{"x": 0.5}\n')
    files = FileSource([tmp_path])
    assert fields(files) == ["9007199254740993.0", "0.5"]
    (tmp_path / "3.jsonl").write_text('{"x": "tea"}\n')
    assert fields(FileSource([tmp_path])) == ["9007199254740993", "0.5", "tea"]


def test_fields_that_come_late_need_the_whole_file(tmp_path: Path):
    data = '{"a":1}\n' * 200_000 + '{"a":2.5,"late":{"x":1}}\n'
    with pytest.raises(BadRecordError, match=r"line 200001: .*'late' has no column.*--infer-all"):
        events(source(tmp_path / "x.jsonl", data))
    assert json.loads(events(source(tmp_path / "x.jsonl", data, infer_all=True))[-1]) == {"a": 2.5, "late": {"x": 1}}


def test_too_many_fields_are_an_error_of_the_file(tmp_path: Path):
    line = json.dumps({f"f{number}": number for number in range(20_000)})
    with pytest.raises(SourceUnreadableError, match=r"x.jsonl: the values have more than 10000 fields"):
        _ = source(tmp_path / "x.jsonl", line + "\n").schema


AT = '"2026-05-01T12:00:00Z"'
#: Kind of file, lines of the sample, a later line, and the type from the user.
LOST: dict[str, tuple[str, list[str], str, str]] = {
    "digits before the point of a decimal": ("csv", [], "1058", "decimal(38, 37)"),
    "digits that overflow": ("csv", ["0.12345678901234567890"], "3426334970632769149.2", ""),
    "an integer that overflows": ("csv", ["12345678901234567890"], "340282366920938463463374607431768211457", ""),
    "digits over the precision": ("csv", [], "99999", "decimal(5, 2)"),
    "an exponent of an integer": ("csv", ["0.5"], "123456789012345678901e-10", ""),
    "an exponent with zeros": ("csv", ["0.5"], "1.3436424411240122e+0005", ""),
    "an exponent in JSON": ("jsonl", ["0.5"], "9007199254740993e-1", ""),
    "an exponent with zeros in JSON": ("jsonl", ["0.5"], "1.3436424411240122e0005", ""),
    "a zero before a quote": ("csv", ["1"], '"0"7', ""),
    "a sign before a quote": ("csv", ["1"], '"-"0', ""),
    "a hexadecimal number in parts": ("csv", ["0.5"], '"0"x1A', ""),
    "digits after a quote": ("csv", ["0.5"], '"1.234567"89012345678', ""),
    "minus zero": ("jsonl", ["1"], "-0", ""),
    "a number over any integer": ("jsonl", ["1"], "1e1000000", ""),
    "nanoseconds": ("jsonl", [AT], '"2026-05-01T12:00:00.123456789Z"', "timestamp"),
    "nanoseconds of parts": ("jsonl", [AT], "[2026,5,1,12,0,0,123456789]", "timestamp"),
    "digits of a small float": ("csv", [], "16777217", "float"),
    "digits of a small float in JSON": ("jsonl", ["0.5"], "16777217", "float"),
    "a number over any float": ("jsonl", ["0.5"], "1e39", "float"),
    "two objects": ("jsonl", ["1"], '1}\n{"x":1}{"x":2}\n{"x":\n3', ""),
}
TYPES = {"decimal(38, 37)": pa.decimal128(38, 37), "decimal(5, 2)": pa.decimal128(5, 2)} | {
    "timestamp": INSTANT,
    "float": pa.float32(),
}


@pytest.mark.parametrize("name", LOST)
def test_what_a_column_would_lose_is_an_error(tmp_path: Path, name: str):
    kind, sample, late, type_ = LOST[name]
    made = (lambda each: f'{{"x":{each}}}\n') if kind == "jsonl" else (lambda each: f"{each}\n")
    head = "x\n" if kind == "csv" else ""
    path = tmp_path / f"f.{kind}"
    path.write_text(head + "".join(map(made, sample)))
    files = FileSource([path], FileOptions(types={"x": TYPES[type_]} if type_ else {}))
    assert files.schema.names == ["x"]
    path.write_text(head + "".join(map(made, [*sample, late])))
    with pytest.raises(BadRecordError):
        events(files)


@pytest.mark.parametrize("digits", ["1" * 5000, "1e-99999999999999999999999"])
def test_numbers_beyond_any_column_are_text(tmp_path: Path, digits: str):
    assert fields(source(tmp_path / "f.csv", f"x\n{digits}\n")) == [digits]


@pytest.mark.parametrize(
    ("text", "multiline"),
    [
        ('x,y\n1,"' + "y" * 140_000 + '\nmore, text"\n2,last\n', False),
        ('x,y\n1,"' + "y" * 140_000 + "\n", True),
        ('x,y\n"a"b,"c\nd,e"\n', False),
    ],
)
def test_a_quote_that_is_not_closed_is_an_error(tmp_path: Path, text: str, multiline: bool):
    with pytest.raises(BadRecordError, match="a quote is missing"):
        events(source(tmp_path / "f.csv", text, multiline=multiline))


@pytest.mark.parametrize("delimiter", ["\\t", "", ",,", "é", "\0", '"', "\n"])
def test_a_delimiter_is_one_character(delimiter: str):
    with pytest.raises(ConfigError, match="invalid delimiter"):
        FileOptions(delimiter=delimiter)


def test_a_delimiter_of_numbers_joins_none(tmp_path: Path):
    text = "x/y\n0.5/0.12345678901234567890\n"
    with pytest.raises(BadRecordError, match=r"0\.12345678901234567890"):
        events(source(tmp_path / "f.csv", text, delimiter="/", types=["x=double", "y=double"]))


@pytest.mark.parametrize("text", ["007", "-007", "+441234567890", "1E5", "0x1A", "00.5"])
@pytest.mark.parametrize("kind", ["int64", "double", "decimal(20,2)"])
def test_text_that_looks_like_a_number_stays_text(tmp_path: Path, text: str, kind: str):
    """No type of numbers reads it, and the fix that the error names keeps it as it is."""
    data = f"x,y\n1,a\n{text},b\n"
    with pytest.raises(BadRecordError, match=r"line 3: .*\(--type x=string\)"):
        events(source(tmp_path / "x.csv", data, types=[f"x={kind}"]))
    assert fields(source(tmp_path / "x.csv", data, types=["x=string"])) == ["1", text]
    assert fields(source(tmp_path / "x.csv", data)) == ["1", text]
