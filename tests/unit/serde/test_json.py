"""JSON: the text that Jackson writes, read by rows and columns alike."""

import base64
import enum
import json
import math
import struct
import time as clock
import uuid
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_serde import DeserializationError, LimitExceededError, SchemaError, SerializationError, serializer_for
from pravega_serde.json import JsonSerializer
from pravega_serde.json.columns import column_reader
from pravega_serde.json.rows import TypedReader, is_slow, parse, parse_plainly
from pravega_serde.json.write_columns import java_floats
from pravega_serde.json.write_rows import java_float

GOLDEN = Path(__file__).parents[2] / "vectors" / "text_golden.jsonl"
ROWS = JsonSerializer()
UTC_MICROS, LOCAL_MICROS = pa.timestamp("us", "UTC"), pa.timestamp("us")


def golden(kind: str) -> list[dict[str, Any]]:
    with GOLDEN.open(encoding="utf-8") as lines:
        return [vector for vector in map(json.loads, lines) if vector["kind"] == kind]


# Rows against Java

EVERY_CHARACTER = "".join(map(chr, range(0x180)))


class Pairs(dict[Any, Any]):
    """Java's map can have the keys 1 and true, which are one key in Python."""

    def items(self) -> Any:
        return [(1, "int"), (True, "bool"), (2.0, "double"), (-5, "long")]


JAVA_VALUES = [
    EVERY_CHARACTER, "a\u2028\u2029\ufeff\uffff😀/\"\\", None, True, False, 0, -1, -(1 << 63),
    123456789012345678901234567890, 2.0, 1e10, 0.30000000000000004, math.nan, math.inf, -math.inf, -0.0,
    Decimal("1E+3"), Decimal("0.10"), Decimal("1E-10"), Decimal("-12345678901234567890.123"),
    b"\x00\x01\x02\xff", b"", [], {}, [1, None, "x", [1.5]], {"b": 1, "a": None, '😀"': {"x": [True]}}, Pairs(),
]  # fmt: skip


@pytest.mark.parametrize(("vector", "value"), list(zip(golden("json"), JAVA_VALUES, strict=True)))
def test_writes_what_jackson_writes(vector: dict[str, Any], value: Any) -> None:
    assert ROWS.serialize(value) == bytes.fromhex(vector["hex"])


@pytest.mark.parametrize("vector", golden("json"))
def test_reads_what_jackson_wrote(vector: dict[str, Any]) -> None:
    text = bytes.fromhex(vector["hex"])
    assert ROWS.deserialize(text) == json.loads(text)
    assert ROWS.deserialize(text + b"\0\0\0") == json.loads(text)


def doubles() -> list[tuple[float, str]]:
    return [(struct.unpack(">d", bytes.fromhex(v["bits"]))[0], v["text"]) for v in golden("double")]


def floats() -> list[tuple[Any, str]]:
    return [(np.frombuffer(bytes.fromhex(v["bits"]), ">f4").astype(np.float32)[0], v["text"]) for v in golden("float")]


@pytest.mark.parametrize("values", [doubles(), floats()], ids=["double", "float"])
def test_numbers_are_javas(values: list[tuple[Any, str]]) -> None:
    finite = [(value, text) for value, text in values if np.isfinite(value)]
    differing = [(value, text) for value, text in finite if java_float(value) != text]
    # The vectors are Java 17's, which writes some numbers in more digits than Java 19 and later.
    for value, text in differing:
        assert type(value)(text) == value
        assert len(java_float(value)) <= len(text)
    assert len(differing) < len(finite) / 15
    column = pa.array(
        [value for value, _ in finite], pa.float32() if isinstance(finite[0][0], np.float32) else pa.float64()
    )
    assert java_floats(column).to_pylist() == [java_float(value) for value, _ in finite]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_is_read_back(value: float) -> None:
    text = java_float(value)
    assert float(text) == value
    assert "." in text
    assert ("E" in text) == (value != 0 and not 1e-3 <= abs(value) < 1e7)


# Values in Python without a name in Java's JSON


@dataclass
class Point:
    x: int
    y: list[float]


class Colour(enum.Enum):
    RED = 1


ZONE = timezone(timedelta(hours=2))
PYTHON_VALUES = [
    (Point(1, [2.0]), '{"x":1,"y":[2.0]}'),
    ({"c": Colour.RED, Colour.RED: 1}, '{"c":"RED","RED":1}'),
    (uuid.UUID(int=5), '"00000000-0000-0000-0000-000000000005"'),
    (date(2026, 1, 2), '"2026-01-02"'),
    (time(1, 2, 3), '"01:02:03.000000"'),
    (datetime(2026, 1, 2, 3, 4, 5, 6), '"2026-01-02T03:04:05.000006"'),
    (datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=ZONE), '"2026-01-02T01:04:05.000006Z"'),
    ((np.int64(1), np.float64(1e10), np.float32(0.1), np.bool_(True)), "[1,1.0E10,0.1,true]"),
    (OrderedDict(a=bytearray(b"a"), b=memoryview(b"b")), '{"a":"YQ==","b":"Yg=="}'),
    ("\ud83d" + "\ude00", '"\\uD83D\\uDE00"'),
]


@pytest.mark.parametrize(("value", "text"), PYTHON_VALUES)
def test_writes_pythons_own_types(value: Any, text: str) -> None:
    assert ROWS.serialize(value).decode() == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, {"b": object()}]}, r"object is not supported by JSON \(field \$\.a\[1\]\.b\)"),
        (
            pa.table({"a": [1]}),
            r"a Table is not supported by JSON: write the record batches of a frame with write_batch",
        ),
        ({None: 1}, "cannot be a key"),
        ("\ud800", "unpaired surrogate"),
        ([Decimal("NaN")], r"invalid number NaN \(field \$\[0\]\)"),
    ],
)
def test_what_cannot_be_written_is_named(value: Any, message: str) -> None:
    with pytest.raises(SerializationError, match=message):
        ROWS.serialize(value)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_rows_survive(value: Any) -> None:
    data = ROWS.serialize(value)
    assert ROWS.deserialize(data) == json.loads(data) == value


@given(st.binary() | JSON_VALUES.map(ROWS.serialize), st.data())
def test_bad_text_is_nothing_but_that(text: bytes, data: Any) -> None:
    damaged = bytearray(text)
    for _ in range(data.draw(st.integers(0, 3))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    for size in {len(damaged), data.draw(st.integers(0, len(damaged)))}:
        with suppress(DeserializationError):
            ROWS.deserialize(bytes(damaged[:size]))


@pytest.mark.parametrize(
    "text", [b"NaN", b"[Infinity]", b"1 2", b"{'a':1}", b"", b"\0", b'"\xff"', b"9" * 5000, b"/*c*/1", b"01"]
)
def test_what_jackson_refuses_is_refused(text: bytes) -> None:
    with pytest.raises(DeserializationError, match="not JSON"):
        ROWS.deserialize(text)


@given(st.binary() | JSON_VALUES.map(ROWS.serialize), st.data())
def test_both_ways_to_read_rows_agree(text: bytes, data: Any) -> None:
    damaged = bytearray(text)
    if damaged and data.draw(st.booleans()):
        byte = data.draw(st.integers(0, 255) | st.sampled_from(b'"\\{}[],:0e.-ntu'))
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = byte
    assert shown(parse, bytes(damaged)) == shown(parse_plainly, bytes(damaged))


def shown(read: Any, event: bytes) -> str:
    try:
        return repr(read(event))
    except DeserializationError as error:
        return str(error)


def test_a_byte_order_mark_is_skipped() -> None:
    assert ROWS.deserialize(b"\xef\xbb\xbf[1]") == [1]


def test_nesting_is_bounded() -> None:
    with pytest.raises(LimitExceededError, match="nested"):
        ROWS.deserialize(b"[" * 1_000_000)


# Columns


def one_of_each() -> dict[str, tuple[pa.DataType, Any]]:
    """Arrow type, and the strategy of its values."""
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
    return {
        "null": (pa.null(), st.none()),
        "bool": (pa.bool_(), st.booleans()),
        "int8": (pa.int8(), st.integers(-128, 127)),
        "int32": (pa.int32(), st.integers(-(1 << 31), (1 << 31) - 1)),
        "int64": (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1)),
        "float": (pa.float32(), st.floats(width=32, allow_nan=False)),
        "double": (pa.float64(), st.floats(allow_nan=False)),
        "string": (pa.string(), text),
        "binary": (pa.binary(), st.binary(max_size=8)),
        "date": (pa.date32(), st.dates()),
        "instant": (UTC_MICROS, moments.map(lambda moment: moment.replace(tzinfo=UTC))),
        "local": (LOCAL_MICROS, moments),
        "decimal": (pa.decimal128(12, 3), st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: Decimal(n).scaleb(-3))),
    }


SCALARS = one_of_each()


@st.composite
def types(draw: Any, depth: int = 2) -> tuple[pa.DataType, Any]:
    kinds = [*SCALARS, *(["list", "map", "struct", "struct"] if depth else [])]
    kind = draw(st.sampled_from(kinds))
    if kind in SCALARS:
        return SCALARS[kind]
    if kind == "struct":
        return draw(structs(depth))
    inner, values = draw(types(depth - 1))
    if kind == "list":
        return pa.list_(pa.field("element", inner)), st.lists(st.none() | values, max_size=3)
    entries = st.dictionaries(SCALARS["string"][1], st.none() | values, max_size=3)
    return pa.map_(pa.string(), inner), entries.map(lambda found: list(found.items()))


@st.composite
def structs(draw: Any, depth: int = 3) -> tuple[pa.DataType, Any]:
    names = draw(st.lists(st.sampled_from(["a", "b", "é", 'q"', "\\", "long name", "😀"]), unique=True, max_size=4))
    inner = {name: draw(types(depth - 1)) for name in names}
    kind = pa.struct([pa.field(name, found) for name, (found, _) in inner.items()])
    return kind, st.fixed_dictionaries({name: st.none() | values for name, (_, values) in inner.items()})


@st.composite
def columns(draw: Any) -> pa.Array:
    kind, values = draw(structs())
    return pa.array(draw(st.lists(st.none() | values, max_size=6)), kind)


def as_python(kind: pa.DataType, value: Any) -> Any:
    """The row writer's value for the same text: maps as dicts, float32 as numpy's."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {entry.name: as_python(entry.type, value[entry.name]) for entry in kind}
    if pa.types.is_map(kind):
        return {key: as_python(kind.item_type, inner) for key, inner in value}
    if pa.types.is_list(kind):
        return [as_python(kind.value_type, inner) for inner in value]
    return np.float32(value) if kind == pa.float32() else value


@given(columns())
def test_columns_write_as_rows_do(column: pa.Array) -> None:
    serializer = JsonSerializer(arrow_type=column.type)
    serializer.check_encodable(column.type)
    expected = [
        None if value is None else ROWS.serialize(as_python(column.type, value)) for value in column.to_pylist()
    ]
    assert serializer.encode_column(column).to_pylist() == expected
    assert serializer.encode_column(column.slice(1)).to_pylist() == expected[1:]


@given(columns())
def test_columns_read_what_they_wrote(column: pa.Array) -> None:
    serializer = JsonSerializer(arrow_type=column.type)
    events = serializer.encode_column(column)
    decoded = serializer.decode_column(events)
    decoded.validate(full=True)
    assert decoded.type == column.type
    assert decoded.equals(column)
    plain = TypedReader(column.type)
    by_rows = [None if event is None else plain(event) for event in events.to_pylist()]
    assert pa.array(by_rows, column.type).equals(column)


@given(columns(), st.data())
def test_damaged_events_are_found_alike_by_rows_and_columns(column: pa.Array, data: Any) -> None:
    serializer = JsonSerializer(arrow_type=column.type)
    events = []
    for event in serializer.encode_column(column).drop_null().to_pylist():
        damaged = bytearray(event)
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(
            st.integers(0, 255) | st.sampled_from(b'"\\{}[],:0e.-nt')
        )
        cut = data.draw(st.integers(0, len(event)))
        events += [event, bytes(damaged), event[:cut], event + b"\0\0", event + event, b" " + event + b"\n"]
    assert_alike(serializer, events)


def assert_alike(serializer: JsonSerializer, events: list[bytes]) -> None:
    plain = TypedReader(serializer.arrow_type)
    expected, found = [], {}
    for row, event in enumerate(events):
        try:
            expected.append(plain(event))
        except DeserializationError as error:
            expected.append(None)
            found[row] = error.reason
    errors: list[DeserializationError] = []
    decoded = serializer.decode_column(pa.array(events, pa.binary()), on_error=errors.append)
    decoded.validate(full=True)
    assert {error.row: error.reason for error in errors} == found
    assert str(shown_column(decoded)) == str(shown_column(pa.array(expected, serializer.arrow_type)))


def shown_column(column: pa.Array) -> list[Any]:
    """Values of a column, a struct's timestamps as numbers: Python has none beyond the year 9999."""
    if pa.types.is_struct(column.type):
        # Field by field: Arrow's cast of a struct breaks a map of nulls in it.
        fields = [f.cast(pa.int64()) if pa.types.is_timestamp(f.type) else f for f in column.flatten()]
        rows = zip(*(field.to_pylist() for field in fields), strict=True) if fields else [()] * len(column)
        return [list(row) if there.as_py() else None for row, there in zip(rows, column.is_valid(), strict=True)]
    values: list[Any] = column.to_pylist()
    return values


FLAT = pa.struct(
    [
        ("i", pa.int32()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("t", UTC_MICROS),
        ("d", pa.decimal128(5, 2)),
    ]
)
TRICKY = [
    b'{"i":1,"i":2}', b'{"i":1.0}', b'{"i":-0}', b'{"f":-0}', b'{"f":-0.0}',
    b'{"i":1e2}', b'{"i":2147483648}', b'{"i":"1"}', b'{"i":true}',
    b'{"i":01}', b'{"f":1}', b'{"f":1e400}', b'{"f":NaN}', b'{"f":"NaN"}', b'{"f":"-Infinity"}', b'{"f":"x"}',
    b'{"f":1.}', b'{"f":.5}', b'{"f":123456789012345678901234567890}', b'{"f":Inf}', b'{"f":+1}', b'{"f":-1E-7}',
    b'{"f":true}', b'{"s":"\\ud83d\\ude00"}', b'{"s":"\\ud83d"}', b'{"s":"\xff"}', b'{"s":"a\nb"}', b'{"s":1}',
    b'{"s":"\\u0000"}', b'{"s":"\\x"}', b'{"z":"\xff"}', b'{"z":"\\ud800"}', b'{"z":1e999,"i":1}',
    b'{"z":[[[{}]]],"i":1}', b'{"z":NaN}', b'{"\xff":1}', b'{"z":"\\x"}', b'{"t":"2026-01-02T03:04:05Z"}',
    b'{"t":"2026-01-02T03:04:05.123456789Z"}', b'{"t":"2026-01-02 03:04:05.1+01:00"}', b'{"t":1700000000123}',
    b'{"t":"2026-01-02T03:04:05"}', b'{"t":"2026-13-02T03:04:05Z"}', b'{"t":9223372036854775807}', b'{"t":1.5}',
    b'{"t":"\\ud800"}', b'{"d":1.25}', b'{"d":"1.25"}', b'{"d":1.255}', b'{"d":1.250}', b'{"d":1234.5}', b'{"d":1e2}',
    b'{"d":1E1000000000}', b'{"d":1E-1000000000}', b'{"d":0E999999999}', b'{"d":1e99999999999999999999}',
    b'{"d":"NaN"}', b'{"d":"x"}', b'{"d":5}', b'{"d":true}', b"null", b"[1]", b"1", b'"x"', b"true", b"{}", b"", b" ",
    b"{}{}", b'{"i":1}null{"i":2}', b'{"i":1}\0\0', b'\xef\xbb\xbf{"i":3}', b' {"i":1}\r\n',
    b'{ "i" : 1 , "s" : "x" }', b'{"i":1,}', b'{"i":1}x', b'{"i":1', b'{"i":' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"b":true}', b'{"b":"true"}', b'{"b":0}', b'{"i":null,"f":null,"s":null,"b":null,"t":null,"d":null}',
]  # fmt: skip


@pytest.mark.parametrize("event", TRICKY)
def test_both_ways_to_read_rows_agree_on_the_tricky(event: bytes) -> None:
    assert shown(parse, event) == shown(parse_plainly, event)


@pytest.mark.parametrize("event", TRICKY)
def test_rows_and_columns_agree_on_the_tricky(event: bytes) -> None:
    assert_alike(JsonSerializer(arrow_type=FLAT), [event])
    assert_alike(JsonSerializer(arrow_type=FLAT), [b'{"i":7,"s":"good"}', event, b'{"i":8,"b":true}'])


@pytest.mark.parametrize("kind", [FLAT, FLAT.field("i").type, pa.struct(list(FLAT)[:5])], ids=["flat", "int", "short"])
def test_rows_and_columns_agree_on_all_the_tricky_together(kind: pa.DataType) -> None:
    serializer = JsonSerializer(arrow_type=kind)
    assert_alike(serializer, TRICKY)
    assert_alike(serializer, [event for event in TRICKY for _ in range(50)])


# Events of one program share keys and spelling

WHOLE = ["0", "5", "-1", "127", "-128", "128", "1234567", "12345678", "123456789", "1234567890123456"]
WHOLE += ["12345678901234567", "9223372036854775807", "-9223372036854775808", "9223372036854775808"]
WHOLE += ["99999999999999999999", "-0", "007", "-", "+1"]
POINTED = ["0.5", "-0.0", "1.25", "123456.789", "0.1", "3.141592653589793", "0.30000000000000004", "9007199254740993.0"]
POINTED += ["1.", ".5", "-.5", "1.2.3", "1e5", "1E-5", "12345678901234567890.5", "0.00000000000000000001", "00.5"]
WORDS = ["true", "false", "null", "True", "nul", "nulll", "tru"]
TEXTS = [
    '""',
    '"a"',
    '"ü€😀"',
    '"\\n"',
    '"{}"',
    '",\\"x\\":"',
    '"a,b:c"',
    '"true"',
    f'"{"x" * 40}"',
    '"a\tb"',
    '"\\u0041"',
]
TIMES = ['"2026-01-02T03:04:05Z"', '"2026-01-02T03:04:05.123456789Z"', '"2026-01-02"', '"x"', "1700000000123", "null"]
OTHER = ["{}", "[]", "[1]", '{"x":1,"y":"z"}', '{"y":null}', '{"x":true}', '{"q":{"r":1}}']
TOKENS = [*WHOLE, *POINTED, *WORDS, *TEXTS, *TIMES, *OTHER]
LIKELY = {
    "i": WHOLE, "j": WHOLE, "d": POINTED + WHOLE, "f": POINTED, "b": WORDS, "s": TEXTS, "t": TIMES, "day": TIMES,
    "in": OTHER, "n": ["null", "1"], "unknown": TOKENS,
}  # fmt: skip
SENSOR = pa.struct(
    [
        ("i", pa.int64()),
        ("j", pa.int8()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("b", pa.bool_()),
        ("s", pa.string()),
        ("t", UTC_MICROS),
        ("day", pa.date32()),
        ("in", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("n", pa.null()),
    ]
)


@st.composite
def events_of_one_program(draw: Any) -> list[bytes]:
    names = draw(st.lists(st.sampled_from(sorted(LIKELY)), unique=True, max_size=6))
    comma, colon = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,", "\t:")]))
    found = []
    for _ in range(draw(st.integers(1, 6))):
        here = names if draw(st.integers(0, 4)) else draw(st.permutations(names))
        pairs = []
        for name in here:
            pool = TOKENS if draw(st.integers(0, 9)) == 0 else LIKELY[name]
            pairs.append(f'"{name}"{colon}{draw(st.sampled_from(pool))}')
        text = "{" + comma.join(pairs) + "}"
        found.append(text.encode() + bytes(draw(st.sampled_from([0, 0, 0, 3]))))
    return found


@given(events_of_one_program(), st.data())
def test_rows_and_columns_agree_on_events_of_one_program(found: list[bytes], data: Any) -> None:
    damaged = []
    for event in found:
        changed = bytearray(event)
        changed[data.draw(st.integers(0, len(event) - 1))] = data.draw(
            st.integers(0, 255) | st.sampled_from(b'"{}:,01.-')
        )
        damaged += [event, bytes(changed), event[: data.draw(st.integers(0, len(event)))]]
    serializer = JsonSerializer(arrow_type=SENSOR)
    assert_alike(serializer, found)
    assert_alike(serializer, damaged)


def test_objects_outside_the_type_may_be_nested_deeply() -> None:
    event = b'{"i":1,"z":' + b'{"z":' * 450 + b"1" + b"}" * 450 + b"}"
    decoded = JsonSerializer(arrow_type=SENSOR).decode_column(pa.array([event, event]))
    assert [value["i"] for value in decoded.to_pylist()] == [1, 1]


@pytest.mark.parametrize("width", [64, 65, 300])
def test_wide_structs_have_each_value_in_its_column(width: int) -> None:
    serializer = JsonSerializer(arrow_type=pa.struct([(f"c{n}", pa.int64()) for n in range(width)]))
    rows = [{f"c{n}": row * width + n for n in range(width) if n % 7 or row % 2} for row in range(100)]
    values = serializer.decode_column(pa.array([json.dumps(row).encode() for row in rows], pa.binary()))
    values.validate(full=True)
    assert values.to_pylist() == [{f"c{n}": row.get(f"c{n}") for n in range(width)} for row in rows]


def test_many_rows_with_a_few_bad_ones() -> None:
    events = [f'{{"i":{i},"s":"row {i}"}}'.encode() for i in range(5000)]
    for bad in (0, 17, 2500, 4999):
        events[bad] = b"{bad"
    errors: list[DeserializationError] = []
    decoded = JsonSerializer(arrow_type=FLAT).decode_column(pa.array(events), on_error=errors.append)
    assert [error.row for error in errors] == [0, 17, 2500, 4999]
    assert [row for row, value in enumerate(decoded) if value.as_py() is None] == [0, 17, 2500, 4999]
    assert decoded[4998]["s"].as_py() == "row 4998"
    with pytest.raises(DeserializationError, match=r"not JSON: .* \(at row 17\)"):
        JsonSerializer(arrow_type=FLAT).decode_column(pa.array([b"{}", *events[1:]]))


@pytest.mark.parametrize("bad", [b"{bad", b'{"s":"\xff"}', b'{"i":"1"}', b"[" * 5000])
def test_columns_leave_only_bad_events_to_the_plain_path(bad: bytes) -> None:
    read = column_reader(FLAT)
    assert read is not None
    events = [bad if i % 7 == 0 else f'{{"i":{i}}}'.encode() for i in range(10_000)]
    attempt = read(pa.array(events))
    assert attempt.suspects.tolist() == list(range(0, 10_000, 7))
    assert [value["i"] for value in attempt.values.to_pylist()[1:7]] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "number", [b"7" * 5000, b"-" + b"7" * 5000, b"1e99999999999999999999", b"1e-99999999999999999999"]
)
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.decimal128(10, 2), UTC_MICROS])
def test_rows_and_columns_skip_numbers_that_python_refuses(kind: pa.DataType, number: bytes) -> None:
    serializer = JsonSerializer(arrow_type=pa.struct([("a", kind), ("b", pa.float64())]))
    event = b'{"a":1,"b":%b,"x":[%b]}' % (number, number)
    one = serializer.decode_column(pa.array([event]))[0].as_py()
    assert one["a"] == serializer.decode_column(pa.array([b'{"a":1}']))[0].as_py()["a"]
    assert one["b"] == float(number)
    assert serializer.decode_column(pa.array([event] * 1000)).to_pylist() == [one] * 1000


def test_columns_have_times_as_text_and_as_numbers() -> None:
    read = column_reader(FLAT)
    assert read is not None
    texts = [b'{"t":"1970-01-01T00:00:00.001Z"}', b'{"t":1}', b"{}", b'{"t":null}']
    attempt = read(pa.array(texts * 100))
    assert len(attempt.suspects) == 0
    moment = datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)
    assert [value["t"] for value in attempt.values.to_pylist()] == [moment, moment, None, None] * 100


def test_errors_name_the_field() -> None:
    kind = pa.struct([("a", pa.list_(pa.struct([("b", pa.map_(pa.string(), pa.int32()))])))])
    with pytest.raises(DeserializationError) as caught:
        JsonSerializer(arrow_type=kind).decode_column(pa.array([b'{"a":[{},{"b":{"k":"x"}}]}']))
    assert caught.value.field_path == "$.a[1].b['k']"
    assert str(caught.value) == (
        "[PRAVEGA-DESERIALIZATION] invalid value: a string where an integer is expected (at row 0, field $.a[1].b['k'])"
    )


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.string(), pa.list_(pa.field("element", pa.int32())), pa.map_(pa.string(), pa.bool_())]
)
def test_events_need_not_be_objects(kind: pa.DataType) -> None:
    values = {pa.int64(): [1, None], pa.string(): ["x", None]}.get(kind, [[], None])
    column = pa.array(values, kind)
    serializer = JsonSerializer(arrow_type=kind)
    assert serializer.decode_column(serializer.encode_column(column)).equals(column)


def test_a_schema_is_a_struct() -> None:
    serializer = JsonSerializer(arrow_type=pa.schema([("a", pa.int64())]))
    assert serializer.arrow_type == pa.struct([("a", pa.int64())])
    batch = pa.record_batch({"a": [1, 2]})
    assert serializer.encode_column(batch).to_pylist() == [b'{"a":1}', b'{"a":2}']


@pytest.mark.parametrize("columns", [{"a": pa.int64()}, "a BIGINT", pa.table({"a": [1]})])
@pytest.mark.parametrize("format_name", ["json", "cbor"])
def test_columns_are_a_schema_or_a_type(format_name: str, columns: object) -> None:
    with pytest.raises(
        SchemaError, match=rf"arrow_type must be a .*, not a {type(columns).__name__}: pyarrow.schema\(…\)"
    ):
        serializer_for(format_name, arrow_type=columns)


def test_columns_cannot_be_decoded_into_nothing() -> None:
    with pytest.raises(SchemaError, match=r"pass a pyarrow.Schema to serializer_for\('json', arrow_type=…\)"):
        ROWS.decode_column(pa.array([b"{}"]))
    assert ROWS.encode_column(pa.array([{"a": 1}])).to_pylist() == [b'{"a":1}']


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.time64("us"), pa.timestamp("ms"), pa.map_(pa.int32(), pa.int32()), pa.duration("us")]
)
def test_types_that_are_not_read(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"\$\.x"):
        JsonSerializer(arrow_type=pa.struct([("x", kind)]))


@pytest.mark.parametrize(
    "kind", [pa.duration("us"), pa.map_(pa.float64(), pa.int32()), pa.struct([pa.field("a", pa.int8())] * 2)]
)
def test_types_that_are_not_written(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"\$\.x"):
        ROWS.check_encodable(pa.struct([("x", kind)]))


WRITTEN = [
    (pa.array(["a", "b", "a"]).dictionary_encode(), b'{"x":"a"}'),
    (pa.array([1, None], pa.uint64()), b'{"x":1}'),
    (pa.array(np.array([1.5], np.float16)), b'{"x":1.5}'),
    (pa.array(["ü"], pa.large_string()), '{"x":"ü"}'.encode()),
    (pa.array([b"a"], pa.large_binary()), b'{"x":"YQ=="}'),
    (pa.array([86_400_000], pa.date64()), b'{"x":"1970-01-02"}'),
    (pa.array([1], pa.time32("s")), b'{"x":"00:00:01.000000"}'),
    (pa.array([1999], pa.timestamp("ns", "America/New_York")), b'{"x":"1970-01-01T00:00:00.000001Z"}'),
    (pa.array([-1], pa.timestamp("ns")), b'{"x":"1969-12-31T23:59:59.999999"}'),
    (pa.array([253402300799], pa.timestamp("s")), b'{"x":"9999-12-31T23:59:59.000000"}'),
    (pa.array([253402300799], pa.timestamp("s", "America/New_York")), b'{"x":"9999-12-31T23:59:59.000000Z"}'),
    (pa.array([-719_528], pa.int32()).cast(pa.date32()), b'{"x":"0000-01-01"}'),
    (pa.array(["a"], pa.string_view()), b'{"x":"a"}'),
    (pa.array(np.array([0x7FA00000], np.uint32).view(np.float32)), b'{"x":"NaN"}'),
    (pa.array([[1, 2]], pa.large_list(pa.int8())), b'{"x":[1,2]}'),
    (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), b'{"x":[1,2]}'),
    (pa.array([[(1, True)]], pa.map_(pa.int8(), pa.bool_())), b'{"x":{"1":true}}'),
    (pa.array([math.nan]), b'{"x":"NaN"}'),
    (pa.array([Decimal("0.0000001")], pa.decimal128(9, 7)), b'{"x":1E-7}'),
    (pa.nulls(1), b'{"x":null}'),
]


@pytest.mark.parametrize(("column", "text"), WRITTEN)
def test_writes_other_arrow_types(column: pa.Array, text: bytes) -> None:
    assert ROWS.encode_column(pa.record_batch({"x": column}))[0].as_py() == text


def test_repeated_names_are_refused() -> None:
    with pytest.raises(SchemaError, match="twice"):
        ROWS.check_encodable(pa.struct([pa.field("a", pa.int8()), pa.field("a", pa.int8())]))


@pytest.mark.parametrize("number", [b"1e300", b"5e-324", b"1.7976931348623157e308", b"-1E+299"])
def test_long_events_of_extreme_numbers_take_no_longer_than_others(number: bytes) -> None:
    event = b"[%s0]" % ((number + b",") * ((1 << 20) // (len(number) + 1) - 1))
    assert is_slow(event)
    expected = parse_plainly(event)
    started = clock.process_time()
    assert ROWS.deserialize(event) == expected
    numbers = JsonSerializer(arrow_type=pa.list_(pa.float64())).decode_column(pa.array([event, b"[1]"]))
    assert clock.process_time() - started < 1.5
    assert numbers.to_pylist() == [expected, [1]]


WIDE = pa.struct([(f"f{n}", pa.int64()) for n in range(100)])


@pytest.mark.parametrize("kind", [pa.list_(WIDE), pa.map_(pa.string(), WIDE)])
@pytest.mark.parametrize("item", [{}, None])
def test_items_that_take_far_more_than_their_bytes_are_refused(kind: pa.DataType, item: Any) -> None:
    serializer = JsonSerializer(arrow_type=kind)
    few, many = (
        json.dumps([item] * count if pa.types.is_list(kind) else {f"{n}": item for n in range(count)}).encode()
        for count in (1000, 80_000)
    )
    errors: list[DeserializationError] = []
    values = serializer.decode_column(pa.array([few, many, few]), on_error=errors.append)
    assert values.is_null().to_pylist() == [False, True, False]
    (error,) = errors
    assert isinstance(error, LimitExceededError)
    assert "use more than" in error.reason


def test_braces_in_text_are_not_objects() -> None:
    kind = pa.struct([("text", pa.string()), ("items", pa.list_(WIDE))])
    event = b'{"text":"%s","items":[{}]}' % (b"{" * 500_000)
    (value,) = JsonSerializer(arrow_type=kind).decode_column(pa.array([event])).to_pylist()
    assert len(value["text"]) == 500_000


@pytest.mark.parametrize(("text", "fits"), [("1" * 500_000, False), ("1." + "0" * 500_000, True), ("0.0001", False)])
def test_long_decimals_are_looked_at_once(text: str, fits: bool) -> None:
    serializer = JsonSerializer(arrow_type=pa.list_(pa.decimal128(9, 2)))
    started = clock.process_time()
    errors: list[DeserializationError] = []
    values = serializer.decode_column(pa.array([f"[{text}]"]), on_error=errors.append)
    assert clock.process_time() - started < 1
    assert (values.to_pylist() == [[Decimal("1.00")]]) is fits
    assert bool(errors) is not fits


# Beyond ISO 8601, and deep


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 253_402_300_800], pa.timestamp("s")),
        pa.array([0, 2**63 - 1], pa.timestamp("us", "UTC")),
        pa.array([0, 2**63 - 1], pa.timestamp("s")),
        pa.array([0, -62_167_219_201], pa.timestamp("s", "America/New_York")),
        pa.array([0, 2_932_897], pa.int32()).cast(pa.date32()),
        pa.array([0, -719_529], pa.int32()).cast(pa.date32()),
        pa.Array.from_buffers(pa.time64("us"), 2, [None, pa.py_buffer(np.array([0, 86_400_000_000]))]),
    ],
    ids=lambda column: str(column.type),
)
def test_times_that_iso_8601_has_not_are_refused_with_their_row(column: pa.Array) -> None:
    with pytest.raises(SerializationError) as caught:
        ROWS.encode_column(pa.record_batch({"x": column}))
    assert (caught.value.row, caught.value.field_path) == (1, "$.x")


def test_the_last_hours_of_9999_in_a_western_zone_are_beyond_it_in_utc() -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-5)))
    with pytest.raises(SerializationError, match=r"beyond the years 1 to 9999 in UTC \(field \$\.at\)"):
        ROWS.serialize({"at": last})


@pytest.mark.parametrize(
    "text", [b"[" * 500 + b"]" * 500, b'{"a":' * 450 + b"1" + b"}" * 450, b'[1,{"a":[],"b":' * 250 + b"0" + b"}]" * 250]
)
def test_what_is_read_however_deep_is_written(text: bytes) -> None:
    assert ROWS.serialize(ROWS.deserialize(text)) == text


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append({"again": value})
    with pytest.raises(SerializationError, match="nested too deeply, or contains itself"):
        ROWS.serialize(value)
    deep: Any = object()
    for _ in range(700):
        deep = [deep]
    with pytest.raises(SerializationError, match="object is not supported by JSON") as caught:
        ROWS.serialize(deep)
    assert str(caught.value.field_path).startswith("$[0][0]")


LOCAL, DAY = pa.timestamp("us"), pa.date32()
UTC_TIME = pa.timestamp("us", "UTC")
#: JSON of Jackson 2 with its default settings, and of other writers of RFC 3339: type, text, and value or reason.
JACKSON: list[tuple[pa.DataType, str, Any]] = [
    (UTC_TIME, "1777636800.123456789", datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)),
    (UTC_TIME, "1777636800.0", datetime(2026, 5, 1, 12, tzinfo=UTC)),
    (UTC_TIME, "-0.000001", datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    (UTC_TIME, "253402300799.999999999", datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    (UTC_TIME, "1777636800000", datetime(2026, 5, 1, 12, tzinfo=UTC)),
    (UTC_TIME, '"2026-05-01t12:00:00.5z"', datetime(2026, 5, 1, 12, 0, 0, 500000, tzinfo=UTC)),
    (UTC_TIME, '"2026-05-01t14:00:00+02:00"', datetime(2026, 5, 1, 12, tzinfo=UTC)),
    (UTC_TIME, "1e40", "beyond the range"),
    (UTC_TIME, "[2026,5,1,12,0]", "an array where a timestamp"),
    (LOCAL, "[2026,5,1,12,0]", datetime(2026, 5, 1, 12)),
    (LOCAL, "[2026,5,1,12,0,7,123456789]", datetime(2026, 5, 1, 12, 0, 7, 123456)),
    (LOCAL, '"2026-05-01t12:00:00"', datetime(2026, 5, 1, 12)),
    (LOCAL, "1777636800.5", "a number where a timestamp"),
    (LOCAL, "[2026,13,1,12,0]", "invalid parts of a timestamp"),
    (DAY, "[2026,5,1]", date(2026, 5, 1)),
    (DAY, "[2026,2,30]", "invalid parts of a date"),
    (DAY, "[2026,5]", "an array where a date"),
    (DAY, '[2026,5,"1"]', "an array where a date"),
    (DAY, "20000", "a number where a date"),
    (pa.binary(), json.dumps(base64.encodebytes(bytes(100)).decode()), bytes(100)),
    (pa.binary(), '"AAE=\\r\\n"', b"\0\1"),
    (pa.binary(), '"AA\\u0000E="', "invalid Base64"),
]


@pytest.mark.parametrize(("kind", "text", "expected"), JACKSON)
@pytest.mark.parametrize("count", [1, 100])
def test_columns_of_jacksons_default_forms(kind: pa.DataType, text: str, expected: Any, count: int) -> None:
    serializer = JsonSerializer(arrow_type=pa.schema([("x", kind), ("n", pa.float64())]))
    events = pa.array([f'{{"x":{text},"n":0.1}}'.encode(), b'{"x":null}'] * count, pa.binary())
    if isinstance(expected, str):
        with pytest.raises(DeserializationError, match=expected):
            serializer.decode_column(events)
    else:
        assert (
            serializer.decode_column(events).to_pylist() == [{"x": expected, "n": 0.1}, {"x": None, "n": None}] * count
        )
