"""Formats of other packages by ``package.module:name``: what may be named, and the errors."""

import pickle
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from pravega_connector.errors import ConfigError
from pravega_connector.rows.options import FormatOptions, parse_options
from pravega_connector.rows.pickled import Pickled
from pravega_serde import (
    DeserializationError,
    SchemaError,
    SerdeError,
    SerializationError,
    UnsupportedFormatError,
    formats,
    serializer_for,
)
from pravega_serde.adapters.by_row import ByRow
from pravega_serde.columnar.inference import RowInference
from pravega_serde.format_table import inference_of
from pravega_serde.registry import SchemaInfo, SerializationFormat, event_type

MODULE = '''
import pyarrow as pa
from pravega_serde import ColumnSerializer, DeserializationError

with open({counter!r}, "a") as file:
    file.write("loaded")

class Hex(ColumnSerializer):
    """Text in hexadecimal digits."""
    def __init__(self, *, upper: bool = False) -> None:
        self.upper = upper
    def _arguments(self):
        return {{"upper": self.upper}}
    arrow_type = pa.string()
    def serialize(self, value):
        text = value.encode().hex()
        return (text.upper() if self.upper else text).encode()
    def deserialize(self, data):
        try:
            return bytes.fromhex(data.decode()).decode()
        except ValueError as error:
            raise DeserializationError(str(error)) from error

class Rows:
    def serialize(self, value): return str(value["n"]).encode()
    def deserialize(self, data): return {{"n": int(data)}}

class ReadOnly:
    def deserialize(self, data): return len(data)

class Deserializer:
    arrow_type = pa.int64()
    def deserialize(self, data): return len(data)

class Outer:
    upper = Hex(upper=True)

def rows():
    return Rows()

def function(prefix):
    return Hex() if prefix == "0x" else None

def broken():
    raise KeyError("no key")

NUMBER = 5
'''
RECORD = pa.struct([("n", pa.int64())])


@pytest.fixture
def counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on Python's path with the module ``hexes``; the file has a word for each load of it."""
    from pravega_serde import format_table, plug_in_formats

    counter = tmp_path / "counter"
    (tmp_path / "hexes.py").write_text(MODULE.format(counter=str(counter)))
    (tmp_path / "failing.py").write_text("raise RuntimeError('two\\nlines')")
    (tmp_path / "needs_more.py").write_text("import a_module_that_is_absent")
    monkeypatch.syspath_prepend(tmp_path)
    caches = (plug_in_formats.load, plug_in_formats.installed, format_table._plug_in)
    for each in caches:
        each.cache_clear()
    yield counter
    for each in caches:
        each.cache_clear()
    sys.modules.pop("hexes", None)


def made(**options: str) -> FormatOptions:
    return parse_options(FormatOptions, options)


@pytest.mark.parametrize("place", ["hexes:Hex", " hexes:Hex ", "hexes:Outer.upper"])
def test_a_class_or_an_object_by_its_place(counter: Path, place: str):
    serializer = serializer_for(place)
    column = pa.array(["tea", None])
    assert serializer.deserialize(serializer.serialize("tea")) == "tea"
    events = serializer.encode_column(column)
    assert events.to_pylist() == [serializer.serialize("tea"), None]
    assert serializer.decode_column(events) == column
    assert pickle.loads(pickle.dumps(serializer)).serialize("é") == serializer.serialize("é")
    assert made(format=place).serializer().serialize("tea") == serializer.serialize("tea")
    errors: list[DeserializationError] = []
    assert serializer.decode_column(pa.array([b"74", b"x"]), on_error=errors.append).to_pylist() == ["t", None]
    assert [each.row for each in errors] == [1]


def test_a_function_may_return_a_serializer_without_columns(counter: Path):
    serializer = made(format="hexes:rows").column_serializer(RECORD)
    assert serializer.decode_column(pa.array([b"5"])).to_pylist() == [{"n": 5}]


def test_options_are_arguments_and_a_package_is_loaded_once(counter: Path):
    assert serializer_for("hexes:Hex", upper=True).serialize("\xff") == b"C3BF"
    assert serializer_for("hexes:function", prefix="0x").serialize("t") == b"74"
    options = made(format="hexes:Hex")
    for _ in range(3):
        options.column_serializer()
    assert counter.read_text() == "loaded"


def test_without_columns_rows_are_read_and_written_one_by_one(counter: Path):
    serializer = serializer_for("hexes:Rows")
    assert serializer.deserialize(b"7") == {"n": 7}
    assert serializer.encode_column(pa.array([{"n": 7}], RECORD)).to_pylist() == [b"7"]
    with pytest.raises(SchemaError, match="Rows does not define its columns: pass arrow_type"):
        _ = serializer.arrow_type
    with pytest.raises(ConfigError, match=r"'hexes:Rows' do not name their columns: set a schema"):
        made(format="hexes:Rows").column_serializer()
    columns = made(format="hexes:Rows").column_serializer(RECORD)
    assert columns.decode_column(pa.array([b"7", None])).to_pylist() == [{"n": 7}, None]
    with pytest.raises(DeserializationError, match=r"Rows failed: ValueError: invalid literal.*row 1"):
        columns.decode_column(pa.array([b"7", b"x"]))
    with pytest.raises(SerializationError, match="Rows failed: KeyError"):
        columns.serialize({})


@pytest.mark.parametrize("name", ["hexes:ReadOnly", "hexes:Deserializer"])
def test_a_format_may_only_read(counter: Path, name: str):
    serializer = serializer_for(name)
    assert serializer.deserialize(b"four") == 4
    with pytest.raises(SerializationError, match="only reads events"):
        serializer.serialize(4)
    known = None if name == "hexes:Deserializer" else pa.int64()
    assert made(format=name).column_serializer(known).decode_column(pa.array([b"four"])).to_pylist() == [4]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("absent_package:Hex", "'absent_package:Hex' cannot be imported: No module named 'absent_package'"),
        ("needs_more:Hex", "No module named 'a_module_that_is_absent'"),
        ("hexes:Absent", "has no attribute 'Absent'"),
        ("failing:Hex", "RuntimeError: two lines; install its package .* on the driver and every executor"),
        ("hexes:", "write package.module:name"),
        ("hexes:Hex()", "write package.module:name"),
        ("hexes:NUMBER", "is a int: name a serializer, its class, or a function"),
        ("hexs", "known formats: avro, .*, or package.module:name of another serializer"),
    ],
)
def test_what_cannot_be_a_format_is_one_clear_line(counter: Path, place: str, words: str):
    for call in (serializer_for, lambda name: made(format=name)):
        with pytest.raises(UnsupportedFormatError, match=words) as caught:
            call(place)
        assert "\n" not in str(caught.value)


def test_what_a_format_refuses_is_one_clear_line(counter: Path):
    with pytest.raises(SerdeError, match="'hexes:Hex' has no option 'uper'; did you mean 'upper'"):
        serializer_for("hexes:Hex", uper=True)
    with pytest.raises(SerdeError, match="'hexes:function' requires the option 'prefix'"):
        made(format="hexes:function").serializer()
    with pytest.raises(UnsupportedFormatError, match="'hexes:function' returned a NoneType, not a serializer"):
        serializer_for("hexes:function", prefix="")
    with pytest.raises(SerdeError, match="'hexes:broken' cannot be created: KeyError: 'no key'"):
        serializer_for("hexes:broken")


def test_a_process_without_the_package_says_what_to_install(counter: Path, monkeypatch: pytest.MonkeyPatch):
    sent = pickle.dumps(Pickled(serializer_for("hexes:Hex")))
    monkeypatch.setitem(sys.modules, "hexes", None)
    with pytest.raises(UnsupportedFormatError, match=r"module 'hexes' .* install its package on the driver and every"):
        pickle.loads(sent).get()


def test_a_name_in_a_registry_imports_nothing(counter: Path):
    registered = SchemaInfo("Text", SerializationFormat.custom("hexes:Hex"), b"")
    with pytest.raises(
        UnsupportedFormatError, match="custom format 'hexes:Hex'; pass its serializer in custom_formats"
    ):
        event_type(registered)
    assert not counter.exists()
    chosen = event_type(registered, custom_formats={"hexes:Hex": "hexes:Hex"})
    assert chosen.payloads.serialize("t") == b"74"


def test_names_do_not_include_places(counter: Path):
    assert serializer_for("hexes:Hex")
    assert not [name for name in formats() if ":" in name]


@pytest.mark.parametrize(
    ("columns", "value"),
    [
        (pa.schema([("n", pa.int64())]), 5),
        (pa.schema([("n", pa.int64())]), "text"),
        (pa.schema([("n", pa.list_(pa.int64()))]), {"n": 5}),
        (pa.schema([("n", pa.map_(pa.string(), pa.int64()))]), {"n": "text"}),
        (pa.schema([("n", pa.map_(pa.string(), pa.int64()))]), {"n": [1]}),
    ],
    ids=str,
)
def test_a_value_that_is_not_a_record_is_one_malformed_row(columns: pa.Schema, value: object):
    class Fixed:
        def deserialize(self, data: bytes) -> object:
            return value

    errors: list[DeserializationError] = []
    column = ByRow(Fixed(), arrow_type=columns).decode_column(pa.array([b"x"]), on_error=errors.append)
    assert column.null_count == 1
    assert [each.row for each in errors] == [0]


def test_events_are_bytes():
    class Text:
        def serialize(self, value: object) -> str:
            return "text"

    with pytest.raises(SerializationError, match="Text returned a str: return bytes"):
        ByRow(Text()).serialize(1)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([date(2020, 1, 1), datetime(2020, 1, 1, 5)], "dates and times without a zone"),
        ([datetime(2020, 1, 1, 5), datetime(2020, 1, 1, 5, tzinfo=UTC)], "times with a zone and times without a zone"),
    ],
)
def test_inference_changes_no_dates_and_times(values: list[date], words: str):
    events = pa.array([b"0", b"1"])
    with pytest.raises(SchemaError, match=rf"\$\.a\[\] has {words}: set the type of the column"):
        RowInference(lambda data: {"a": [values[int(data)]]}).add(events)


def test_a_format_without_inference_reports_it():
    with pytest.raises(SerdeError, match="'string' cannot infer columns"):
        inference_of("string")
    assert type(inference_of("JSON")) is type(inference_of("json"))
