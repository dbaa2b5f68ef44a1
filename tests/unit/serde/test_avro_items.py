"""Items of Avro's lists and maps by column: found in rounds or by walks, whichever they are read the same."""

import math
from decimal import Decimal
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from pravega_serde import DeserializationError
from pravega_serde.avro import AvroSerializer, items, items_vector
from pravega_serde.avro.schema import MAX_NESTING
from pravega_serde.columnar import PlainPath, decode_rows
from tests.unit.serde._avro import logical, record

#: All rows in rounds, as it is, all rows by walks.
ROUNDS = pytest.mark.parametrize("round_costs", [0, items_vector._ROUND, 1 << 40])


def array(kind: Any) -> Any:
    return {"type": "array", "items": kind}


def table(kind: Any) -> Any:
    return {"type": "map", "values": kind}


COLOUR = {"type": "enum", "name": "Colour", "symbols": [f"C{n}" for n in range(100)]}
POINT = record(("x", "double"), ("at", "float"), ("ok", "boolean"), name="Point")
ITEM = record(
    ("head", "double"),
    ("name", "string"),
    ("price", "double"),
    ("fine", "boolean"),
    ("count", "long"),
    ("nothing", "null"),
    ("note", ["null", "string"]),
    ("colour", COLOUR),
    ("point", POINT),
    ("maybe", ["null", "Point"]),
    ("either", ["null", "int", "string", array("int")]),
    ("inner", array(array("string"))),
    ("by_name", table(["null", "double"])),
    ("cost", logical("bytes", "decimal", precision=9, scale=2)),
    name="Item",
)
ORDER = record(("id", "long"), ("items", array(ITEM)), ("prices", array("double")), ("counts", table("int")))


def item(number: int) -> dict[str, Any]:
    point = {"x": number / 4, "at": 0.5, "ok": number % 2 == 0}
    return {
        "head": number / 8,
        "name": "n" * (number * 7 % 150),
        "price": 1.5,
        "fine": True,
        "count": (-3) ** (number % 40),
        "nothing": None,
        "note": f"note {number}" if number % 3 else None,
        "colour": f"C{number % 100}",
        "point": point,
        "maybe": point if number % 5 else None,
        "either": [None, number, "text", [number] * (number % 4)][number % 4],
        "inner": [["a"] * (n % 3) for n in range(number % 4)],
        "by_name": {f"k{n}": None if n % 2 else float(n) for n in range(number % 3)},
        "cost": Decimal(number).scaleb(-2),
    }


def order(number: int, length: int) -> dict[str, Any]:
    counts = {f"key {n}": n for n in range(length % 7)}
    return {"id": number, "items": [item(n) for n in range(length)], "prices": [0.5] * length, "counts": counts}


def by_row(serializer: AvroSerializer, column: pa.Array, errors: list[DeserializationError]) -> pa.Array:
    plain = serializer.column_reader.plain
    return decode_rows(column, plain=PlainPath(plain.read, plain.arrow_type), on_error=errors.append)


def by_column(serializer: AvroSerializer, column: pa.Array, errors: list[DeserializationError]) -> pa.Array:
    reader = serializer.column_reader
    assert reader.fast is not None
    return decode_rows(column, plain=reader.plain, fast=reader.fast, on_error=errors.append)


@ROUNDS
def test_lists_of_all_lengths_are_read_as_by_row(round_costs: int) -> None:
    serializer = AvroSerializer(ORDER)
    lengths = [0, 1, 2, 0, 300, 3, 1, 70, 0]
    column = pa.array([serializer.serialize(order(row, length)) for row, length in enumerate(lengths)])
    with mock.patch.object(items_vector, "_ROUND", round_costs):
        reader = serializer.column_reader
        assert reader.fast is not None
        found = reader.fast(column)
    found.values.validate(full=True)
    assert not len(found.suspects)
    assert found.values.equals(by_row(serializer, column, []))


@ROUNDS
def test_bytes_changed_inside_items_make_the_same_rows_bad(round_costs: int) -> None:
    serializer = AvroSerializer(ORDER)
    good = serializer.serialize(order(1, 5))
    changed = [good[:at] + bytes([byte]) + good[at + 1 :] for at in range(len(good)) for byte in (0, 1, 2, 0x7F, 0xFF)]
    cut = [good[:at] for at in range(len(good))]
    column = pa.array([good, *changed, *cut, good])
    errors: list[DeserializationError] = []
    plain_errors: list[DeserializationError] = []
    with mock.patch.object(items_vector, "_ROUND", round_costs):
        values = by_column(serializer, column, errors)
    values.validate(full=True)
    assert repr(values.to_pylist()) == repr(by_row(serializer, column, plain_errors).to_pylist())  # some are NaN
    assert [(error.row, str(error)) for error in errors] == [(error.row, str(error)) for error in plain_errors]
    assert len(cut) < len(errors) < len(column)


@ROUNDS
def test_blocks_of_lists_in_lists_may_say_their_size(round_costs: int) -> None:
    serializer = AvroSerializer(array(array("int")))
    inner = b"\x03\x04\x02\x04" + b"\x02\x06" + b"\x00"  # two items of a block with its size, then one without
    events = [b"\x01\x0e" + inner + b"\x04" + inner * 2 + b"\x00", b"\0", b"\2\0\0"]
    with mock.patch.object(items_vector, "_ROUND", round_costs):
        values = by_column(serializer, pa.array(events), [])
    assert values.to_pylist() == [[[1, 2, 3]] * 3, [], [[]]]


@ROUNDS
def test_items_are_found_in_all_blocks_and_read_piece_by_piece(round_costs: int) -> None:
    serializer = AvroSerializer(array(record(("name", "string"), ("note", ["null", "string"]))))
    block = serializer.serialize([{"name": "n" * n, "note": "text" if n % 2 else None} for n in (3, 70, 5)])[:-1]
    events = [block * (row % 4) + b"\0" for row in range(40)] + [block * 2, block + b"\2", block[:-1]]
    errors: list[DeserializationError] = []
    plain_errors: list[DeserializationError] = []
    with mock.patch.object(items_vector, "_ROUND", round_costs), mock.patch.object(items, "_AT_ONCE", 7):
        values = by_column(serializer, pa.array(events), errors)
    values.validate(full=True)
    assert values.equals(by_row(serializer, pa.array(events), plain_errors))
    assert [str(error) for error in errors] == [str(error) for error in plain_errors]
    assert len(errors) == 3


def test_branches_beyond_one_byte_are_walked() -> None:
    members = [{"type": "fixed", "name": f"F{n}", "size": n} for n in range(70)]
    serializer = AvroSerializer(array(record(("any", ["null", *members]), ("behind", "string"))))
    rows = [[{"any": (f"F{n}", b"x" * n), "behind": "b"} for n in range(70)]] * 3
    column = pa.array([serializer.serialize(row) for row in rows])
    with mock.patch.object(items_vector, "_ROUND", 1 << 40):
        reader = serializer.column_reader
        assert reader.fast is not None
        found = reader.fast(column)
    assert not len(found.suspects)
    assert found.values.equals(by_row(serializer, column, []))


def test_long_lists_of_few_rows_are_read_at_once() -> None:
    serializer = AvroSerializer(array("int"))
    values = [[1], [*range(100_000)], [2, 3]]
    reader = serializer.column_reader
    assert reader.fast is not None
    with mock.patch.object(items.ItemReader, "_read", autospec=True, side_effect=items.ItemReader._read) as read:
        found = reader.fast(pa.array([serializer.serialize(value) for value in values]))
    assert read.call_count == math.ceil(100_003 / items._AT_ONCE)
    assert not len(found.suspects)
    assert found.values.to_pylist() == values


def test_lists_in_lists_have_any_depth_that_a_schema_has() -> None:
    kind: Any = "int"
    for _ in range(MAX_NESTING - 1):
        kind = array(kind)
    serializer = AvroSerializer(kind)
    event = b"\2" * (MAX_NESTING - 2) + b"\6" + b"\0" * 3 + b"\0" * (MAX_NESTING - 1)
    column = pa.array([event] * 100)
    errors: list[DeserializationError] = []
    assert by_column(serializer, column, errors).equals(by_row(serializer, column, []))
    assert not errors
