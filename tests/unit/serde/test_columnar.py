"""Shared by the columnar paths: isolating bad rows, opening columns, cutting and joining them."""

import random
import re
from collections import Counter
from decimal import Decimal, InvalidOperation
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_serde import DeserializationError, SchemaError, SerializationError, serializer_for
from pravega_serde.columnar import (
    Attempt,
    ByteColumn,
    ColumnReader,
    PlainPath,
    StagedWriter,
    as_binary,
    base,
    bisecting,
    bools_of,
    bounds_of,
    cut,
    decode_rows,
    expand,
    list_items,
    map_entries,
    nothing,
    number_column,
    numbers_of,
    per_row,
    repeated_text,
    select,
    text_column,
    valid_rows,
)
from pravega_serde.columnar.building import build_scalars
from pravega_serde.columnar.digits import inexact_fractions
from pravega_serde.columnar.found import fits_double
from pravega_serde.columnar.pieces import Blob
from tests.unit.serde._protobuf import ALL

EVENTS = st.lists(st.none() | st.binary(max_size=12), max_size=200)


def read_number(data: bytes) -> int:
    try:
        return int(data)
    except ValueError as error:
        raise DeserializationError("no number", field_path="$") from error


PLAIN = PlainPath(read_number, pa.int64())


class Fast:
    """Takes a column of numbers as a whole, or refuses it; counts what it was asked."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, column: pa.BinaryArray) -> pa.Array:
        self.rows += len(column)
        return pa.array([int(value) for value in column.to_pylist()], pa.int64())


@given(st.lists(st.none() | st.sampled_from([b"1", b"22", b"x", b""]), max_size=300))
def test_bad_rows_are_isolated_whatever_the_paths(events: list[bytes | None]) -> None:
    expected = [int(event) if event and event != b"x" else None for event in events]
    bad = [row for row, event in enumerate(events) if event in (b"x", b"")]
    column = pa.array(events, pa.binary())
    piecewise = bisecting(Fast(), refusals=(ValueError,))
    nothing = lambda column: Attempt(pa.nulls(len(column), pa.int64()), np.arange(len(column)))
    for fast in (None, piecewise, nothing):
        errors: list[DeserializationError] = []
        decoded = decode_rows(column, plain=PLAIN, fast=fast, on_error=errors.append)
        assert decoded.to_pylist() == expected
        assert decoded.type == pa.int64()
        assert [error.row for error in errors] == bad
        if bad:
            with pytest.raises(DeserializationError, match="no number") as caught:
                decode_rows(column, plain=PLAIN, fast=fast)
            assert (caught.value.row, caught.value.field_path) == (bad[0], "$")


def test_one_bad_row_costs_a_few_passes() -> None:
    fast = Fast()
    events = [b"1"] * 100_000
    events[70_000] = b"x"
    attempt = bisecting(fast, refusals=(ValueError,))(pa.array(events))
    assert fast.rows < 300_000
    assert len(attempt.suspects) <= 32
    assert 70_000 in attempt.suspects


@given(EVENTS, st.integers(0, 3))
def test_opened_columns_show_their_bytes(events: list[bytes | None], skipped: int) -> None:
    there = [event for event in events if event is not None]
    opened = ByteColumn.of(pa.array(there, pa.binary()).slice(skipped))
    found = [opened.data[start:end].tobytes() for start, end in zip(opened.starts, opened.ends, strict=True)]
    assert found == there[skipped:]
    for end in opened.ends:
        assert opened.words[end + 8] is not None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=50))
def test_cut_gives_the_slices(spans: list[tuple[int, int]]) -> None:
    at, starts, ends = 0, [], []
    for gap, size in spans:
        starts.append(at + gap)
        ends.append(at + gap + size)
        at += gap + size
    data = np.arange(max(at, 1), dtype=np.uint8)
    column = cut(data, np.array(starts, np.int64), np.array(ends, np.int64))
    assert column.to_pylist() == [data[start:end].tobytes() for start, end in zip(starts, ends, strict=True)]


@pytest.mark.parametrize("kind", ["i1", "u2", "i4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("step", [1, 2])
def test_numbers_are_a_column_as_arrow_makes_it(kind: str, step: int) -> None:
    values = np.arange(7).astype(kind)[::step]
    made = number_column(values)
    made.validate(full=True)
    assert made.equals(pa.array(values))
    assert number_column(values[:0]).equals(pa.array(values[:0]))


@pytest.mark.parametrize("text", ["", "a", "ключ"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_repeated_text_is_a_column_as_arrow_makes_it(text: str, count: int) -> None:
    made = repeated_text(text, count)
    made.validate(full=True)
    assert made.equals(pa.array([text] * count, pa.string()))


@given(st.lists(st.booleans(), max_size=50))
def test_expand_puts_values_in_their_places(present: list[bool]) -> None:
    values = pa.array(range(sum(present)), pa.int64())
    spread = expand(values, np.array(present, np.bool_)).to_pylist()
    assert [value is not None for value in spread] == present
    assert [value for value in spread if value is not None] == values.to_pylist()
    assert len(expand(pa.nulls(sum(present)), np.array(present, np.bool_))) == len(present)


NESTED: Any = st.lists(st.none() | st.lists(st.integers(0, 9), max_size=3), max_size=20)


@given(NESTED, st.integers(0, 4))
def test_items_of_sliced_lists_and_maps(rows: list[list[int] | None], skipped: int) -> None:
    expected = [item for row in rows[skipped:] for item in row or []]
    lists = pa.array(rows, pa.list_(pa.int64())).slice(skipped)
    lengths, items = list_items(lists)
    assert (lengths.tolist(), items.to_pylist()) == ([len(row or []) for row in rows[skipped:]], expected)
    pairs = [None if row is None else [(str(item), item) for item in row] for row in rows]
    maps = pa.array(pairs, pa.map_(pa.string(), pa.int64())).slice(skipped)
    lengths, keys, values = map_entries(maps)
    assert lengths.tolist() == [len(row or []) for row in rows[skipped:]]
    assert (keys.to_pylist(), values.to_pylist()) == ([str(item) for item in expected], expected)
    assert bounds_of(lengths)[-1] == len(expected)


def test_null_maps_may_hide_entries() -> None:
    hidden = pa.MapArray.from_arrays(
        pa.array([0, 1, 2]), pa.array(["a", "b"]), pa.array([1, 2]), mask=pa.array([True, False])
    )
    lengths, keys, values = map_entries(hidden)
    assert (lengths.tolist(), keys.to_pylist(), values.to_pylist()) == ([0, 1], ["b"], [2])


KINDS = [
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(1),
]


@pytest.mark.parametrize("kind", [*KINDS, pa.dictionary(pa.int8(), pa.binary())])
def test_events_come_in_every_binary_layout(kind: pa.DataType) -> None:
    column = pa.array([b"a", None, b"b"], pa.binary()).cast(kind)
    assert as_binary(column).to_pylist() == [b"a", None, b"b"]
    assert as_binary(pa.chunked_array([column[:1], column[1:]])).type == pa.binary()


def test_a_column_of_nulls_is_a_column_of_events() -> None:
    assert as_binary(pa.nulls(2)).to_pylist() == [None, None]
    with pytest.raises(SchemaError, match=r"list<.*> cannot contain events"):
        as_binary(pa.array([[1]]))


def test_rows_that_cannot_be_written_are_named() -> None:
    def write(value: int) -> bytes:
        if value > 1:
            raise SerializationError("too much")
        return b"x"

    assert per_row([1, None], write).to_pylist() == [b"x", None]
    with pytest.raises(SerializationError, match="row 2: too much"):
        per_row([1, 1, 2], write)


MAP = '{"type": "record", "name": "R", "fields": [{"name": "m", "type": {"type": "map", "values": "int"}}]}'


@pytest.mark.parametrize("rows", [2, 200])
@pytest.mark.parametrize(
    ("serializer", "name"),
    [
        (serializer_for("json"), "m"),
        (serializer_for("cbor"), "m"),
        (serializer_for("avro", schema=MAP), "m"),
        (ALL, "m_text"),
        (serializer_for("java"), None),
    ],
)
def test_no_format_writes_one_of_two_entries_with_a_key(serializer: Any, name: str | None, rows: int) -> None:
    kind = pa.map_(pa.string(), pa.int32())
    maps = pa.array(
        [[("a", row), ("b", 1)] for row in range(rows)] + [[("b", 1)], [("a", 1), ("b", 2), ("a", 1)]], kind
    )
    column = maps if name is None else pa.StructArray.from_arrays([maps], [name])
    with pytest.raises(SerializationError, match=rf"row {rows + 1}: a map has a key twice: keep one") as raised:
        serializer.encode_column(column)
    assert raised.value.field_path == ("${}" if name is None else f"$.{name}{{}}")
    assert len(serializer.encode_column(column[: rows + 1])) == rows + 1


def test_keys_of_maps_are_compared_by_value() -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 2]), pa.array(["a", "b", "b"]))
    maps = pa.MapArray.from_arrays([0, 2, 4, 4], codes, pa.array(range(4)))
    inside = pa.ListArray.from_arrays([0, 1, 3], maps)
    for serializer in (serializer_for("json"), serializer_for("cbor")):
        assert len(serializer.encode_column(maps)) == 3
        twice = pa.MapArray.from_arrays([0, 0, 4], codes, pa.array(range(4)))
        with pytest.raises(SerializationError, match=r"row 1: a map has a key twice.*field \$\{\}"):
            serializer.encode_column(twice)
        assert len(serializer.encode_column(inside)) == 2
    numbers = pa.array([[(1, 1), (1, 2)]], pa.map_(pa.int64(), pa.int64()))
    with pytest.raises(SerializationError, match=r"field \$\[\]\{\}"):
        serializer.encode_column(pa.ListArray.from_arrays([0, 1], numbers))


def test_columns_of_few_rows_go_by_row() -> None:
    calls = Counter[str]()

    def fast(column: pa.Array) -> Attempt:
        calls["fast"] += 1
        return Attempt(pa.array(map(int, column.to_pylist()), pa.int64()), np.empty(0, np.int64))

    def pieces(column: pa.Array) -> list[Any]:
        calls["pieces"] += 1
        return [Blob(column.cast(pa.string()).cast(pa.binary()))]

    reader = ColumnReader(PLAIN, fast, few=4)
    writer = StagedWriter(
        lowering=lambda kind: lambda column: column,
        pieces=pieces,
        write_row=lambda value: str(value).encode(),
        compiled=None,
        few=4,
    )
    events, values = pa.array([b"1", b"22", b"3", b"4"]), pa.array([1, 22, 3, 4])
    with mock.patch.object(base, "FEW_ROWS", 64):
        assert (reader(events[:3]), writer(values[:3]), calls) == (values[:3], events[:3], Counter())
        assert (reader(events), writer(values)) == (values, events)
        assert calls == Counter(fast=1, pieces=1)
    with mock.patch.object(base, "FEW_ROWS", 2):
        assert (reader(events[:2]), writer(values[:2])) == (values[:2], events[:2])
    assert calls == Counter(fast=2, pieces=2)


@given(st.lists(st.none() | st.booleans(), max_size=40), st.integers(0, 12))
def test_numpy_and_arrow_meet_in_their_buffers(values: list[bool | None], first: int) -> None:
    there = np.array([value is not None for value in values], np.bool_)
    known = np.array([bool(value) for value in values], np.bool_)
    flags, numbers = number_column(known, valid=there), number_column(known.astype(np.int32), valid=there)
    assert flags.to_pylist() == values
    assert numbers.to_pylist() == [None if value is None else int(value) for value in values]
    # Slices begin within a byte of bits.
    assert valid_rows(flags.slice(first)).tolist() == there[first:].tolist()
    assert bools_of(number_column(known).slice(first)).tolist() == known[first:].tolist()
    assert numbers_of(numbers.slice(first))[there[first:]].tolist() == known[first:][there[first:]].tolist()
    rows = np.arange(len(values))[::-1].copy()
    assert select(numbers, rows, valid=there[::-1]).to_pylist() == numbers.to_pylist()[::-1]


def test_constants_need_no_conversion() -> None:
    assert text_column(["a", "", "é"]).equals(pa.array(["a", "", "é"]))
    assert text_column([], pa.binary()).equals(pa.array([], pa.binary()))
    assert nothing(pa.float64()).equals(pa.scalar(None, pa.float64()))


SCALARS = [
    (pa.string(), st.text(max_size=5)),
    (pa.binary(), st.binary(max_size=5)),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.float32(), st.floats(allow_nan=False)),
    *[(kind, st.integers(0, 127)) for kind in (pa.int8(), pa.int64(), pa.uint16(), pa.uint64())],
    (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1)),
    (pa.null(), st.none()),
    (pa.decimal128(4, 2), st.decimals(-9, 9, places=2)),
]


@given(st.data(), st.sampled_from(SCALARS))
def test_python_values_become_what_arrow_makes_of_them(data: st.DataObject, case: tuple[pa.DataType, Any]) -> None:
    kind, value = case
    values = data.draw(st.lists(st.none() | value, max_size=20))
    made = build_scalars(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))


def test_texts_that_are_none_are_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        build_scalars(["\ud800"], pa.string())


_PIECES = (
    "0",
    "1",
    "59",
    ".",
    "e-7",
    "E5",
    "-",
    ",",
    ",",
    "\n",
    " 0.1234567890123456",
    "12345678901234567.5",
    "3.141592653589793",
)


@pytest.mark.parametrize("seed", range(20))
def test_fractions_that_no_double_holds_are_found(seed: int):
    rng = random.Random(seed)
    text = "".join(rng.choice(_PIECES) * rng.choice([1, 1, 2, 9]) for _ in range(3000))
    numbers = re.finditer(r"[0-9.]+", text)
    expected = set()
    for each in numbers:
        with_exponent = len(each[0]) >= 16 and text[each.end() : each.end() + 1] in ("e", "E")
        if not with_exponent and (len(each[0]) < 17 or "." not in each[0]):
            continue
        number = re.match(r"[0-9]*(\.[0-9]+)?([eE][-+]?[0-9]+)?(?![0-9.eE])", text[each.start() :])
        try:
            exact = number is not None and fits_double(Decimal(number[0]))
        except InvalidOperation:
            exact = False
        if not exact:
            expected.add(each.start())
    assert set(inexact_fractions(text.encode()).tolist()) == expected
    assert expected
