"""The fastest JSON path takes exactly what the plain one takes, and gives the same values."""

import json
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pravega_serde import DeserializationError
from pravega_serde.json import JsonSerializer
from pravega_serde.json._read_rows import TypedReader
from pravega_serde.json._scalars import FRONT, Texts, booleans, doubles, integers
from pravega_serde.json._shapes import MAX_SHAPES, shape_reader

RANDOM = settings(suppress_health_check=list(HealthCheck), deadline=None)

INNER = pa.struct([("x", pa.int32()), ("y", pa.string())])
KIND = pa.struct(
    [
        ("i", pa.int64()),
        ("j", pa.int8()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("b", pa.bool_()),
        ("s", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("in", INNER),
        ("n", pa.null()),
    ]
)
#: The same with timestamps as numbers: Python has none beyond its year 9999.
SHOWN = pa.struct([pa.field(entry.name, pa.int64() if entry.name == "t" else entry.type) for entry in KIND])
SERIALIZER = JsonSerializer(arrow_type=KIND)
SHAPES = shape_reader(KIND)
assert SHAPES is not None

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


@st.composite
def events(draw: Any) -> list[bytes]:
    """Events that mostly share their keys and spelling, as those of one program do."""
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


def shown(column: pa.Array) -> list[Any]:
    values: list[Any] = column.cast(SHOWN).to_pylist()
    return values


def plainly(event: bytes) -> Any:
    try:
        return shown(pa.array([TypedReader(KIND)(event)], KIND))[0]
    except DeserializationError:
        return DeserializationError


@RANDOM
@given(events())
def test_takes_only_what_is_valid_and_gives_the_same(found: list[bytes]) -> None:
    attempt = SHAPES(pa.array(found))
    attempt.values.validate(full=True)
    assert len(attempt.values) == len(found)
    suspects = set(attempt.suspects.tolist())
    for row, (event, value) in enumerate(zip(found, shown(attempt.values), strict=True)):
        if row not in suspects:
            assert str(value) == str(plainly(event)), event


@RANDOM
@given(events())
def test_all_paths_together_are_the_plain_one(found: list[bytes]) -> None:
    errors: list[DeserializationError] = []
    decoded = shown(SERIALIZER.decode_column(pa.array(found), on_error=errors.append))
    expected = [plainly(event) for event in found]
    assert [error.row for error in errors] == [
        row for row, value in enumerate(expected) if value is DeserializationError
    ]
    assert str(decoded) == str([None if value is DeserializationError else value for value in expected])


@RANDOM
@given(events(), st.data())
def test_damage_is_seen(found: list[bytes], data: Any) -> None:
    damaged = []
    for event in found:
        changed = bytearray(event)
        changed[data.draw(st.integers(0, len(event) - 1))] = data.draw(
            st.integers(0, 255) | st.sampled_from(b'"{}:,01.-')
        )
        damaged += [event, bytes(changed), event[: data.draw(st.integers(0, len(event)))]]
    attempt = SHAPES(pa.array(damaged))
    suspects = set(attempt.suspects.tolist())
    for row, (event, value) in enumerate(zip(damaged, shown(attempt.values), strict=True)):
        if row not in suspects:
            assert str(value) == str(plainly(event)), event


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_takes_whole_columns(separators: tuple[str, str]) -> None:
    values = [
        {"i": i, "d": i / 7, "s": f"row {i}", "b": i % 2 == 0, "in": {"x": -i, "y": "ü"}, "more": i}
        for i in range(40_000)
    ]
    column = pa.array([json.dumps(value, separators=separators, ensure_ascii=False) for value in values]).cast(
        pa.binary()
    )
    attempt = SHAPES(column)
    assert len(attempt.suspects) == 0
    assert [value["d"] for value in attempt.values.to_pylist()] == [value["d"] for value in values]
    assert attempt.values[39_999]["in"].as_py() == {"x": -39_999, "y": "ü"}


def test_a_few_shapes_may_be_mixed() -> None:
    texts = [json.dumps({"s": None if i % 3 == 0 else "x", ("i" if i % 2 else "j"): 1}) for i in range(600)]
    random.Random(1).shuffle(texts)
    assert len(SHAPES(pa.array(texts).cast(pa.binary())).suspects) == 0
    many = [json.dumps({f"k{i % 20}": 1, "i": 1}) for i in range(600)]
    left = SHAPES(pa.array(many).cast(pa.binary())).suspects
    assert len(left) == 600 - 30 * MAX_SHAPES


def test_one_strange_event_does_not_cost_the_others_their_shape() -> None:
    texts = [b'{"i":[1]}', b"[]", b"nonsense", *[b'{"i":%d}' % i for i in range(100)]]
    assert SHAPES(pa.array(texts)).suspects.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.struct([]), pa.struct([("l", pa.list_(pa.int8()))]), pa.struct([("d", pa.decimal128(4))])]
)
def test_other_types_have_no_shapes(kind: pa.DataType) -> None:
    assert shape_reader(kind) is None


def test_objects_that_nobody_wants_may_be_nested_deeply() -> None:
    event = b'{"i":1,"z":' + b'{"z":' * 450 + b"1" + b"}" * 450 + b"}"
    assert SERIALIZER.decode_column(pa.array([event, event]))[0].as_py()["i"] == 1


# The readers of slots


def texts_of(values: list[str]) -> Texts:
    joined = "".join(f"{value}\x00" for value in values).encode()
    data = np.frombuffer(bytes(FRONT) + joined + bytes(24), np.uint8)
    ends = np.cumsum([len(value) + 1 for value in values]) + FRONT - 1
    starts = ends - [len(value) for value in values]
    words = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    return Texts(data, words, starts, ends)


def is_json(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if text == text.strip() else None


@given(st.lists(st.from_regex(r"-?[0-9]{0,22}", fullmatch=True) | st.integers().map(str), min_size=1))
def test_integers(values: list[str]) -> None:
    numbers, good = integers(texts_of(values))
    for text, number, valid in zip(values, numbers.tolist(), good.tolist(), strict=True):
        expected = is_json(text)
        assert valid == (expected is not None and -(1 << 63) <= expected < 1 << 63), text
        assert not valid or number == expected


@given(
    st.lists(
        st.from_regex(r"-?[0-9]{0,20}(\.[0-9]{0,20})?", fullmatch=True)
        | st.floats(allow_nan=False, allow_infinity=False).map(repr)
        | st.floats(-1000, 1000).map(repr)
        | st.text("0123456789.-eE", max_size=24),
        min_size=1,
    )
)
def test_doubles(values: list[str]) -> None:
    numbers, good = doubles(texts_of(values))
    for text, number, valid in zip(values, numbers.tolist(), good.tolist(), strict=True):
        expected = is_json(text)
        if valid:
            assert expected is not None, text
            assert repr(number) == repr(float(expected)), text
        elif expected is not None:
            # What it leaves to the others: exponents, and more digits than it counts.
            assert "e" in text.lower() or any(len(part) > 19 for part in text.lstrip("-").split("."))


@pytest.mark.parametrize("word", ["true", "false", "null", "", "tru", "truex", "falsy", "t"])
def test_booleans(word: str) -> None:
    values, good = booleans(texts_of([word, "true"]))
    assert good.tolist() == [word in ("true", "false"), True]
    assert values.tolist() == [word == "true", True]
