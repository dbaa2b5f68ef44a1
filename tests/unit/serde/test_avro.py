"""Avro: what values are in Python and in Arrow, errors by row, and what Java's writers do besides."""

import json
import pickle
import uuid
from datetime import date, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pravega_serde import DeserializationError, SerializationError
from pravega_serde.avro import AvroSerializer
from tests.unit.serde._arrow import struct
from tests.unit.serde._avro import ARRAY_OF_INT, FLAT, INSTANT, LOCAL, logical, record

# One value of each type: the schema, its Arrow type, the natural value, and Arrow's (None: the same).
TYPES = [
    ("null", pa.null(), None, None),
    ("boolean", pa.bool_(), True, None),
    ("int", pa.int32(), -5, None),
    ("long", pa.int64(), 1 << 60, None),
    ("float", pa.float32(), 0.5, None),
    ("double", pa.float64(), 0.1, None),
    ("bytes", pa.binary(), b"\xff", None),
    ("string", pa.string(), "ü", None),
    ({"type": "fixed", "name": "F", "size": 2}, pa.binary(), b"ab", None),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, pa.string(), "B", None),
    (ARRAY_OF_INT, pa.list_(pa.field("element", pa.int32())), [1, 2], None),
    ({"type": "map", "values": "long"}, pa.map_(pa.string(), pa.int64()), {"k": 1}, [("k", 1)]),
    (record(("a", "int"), ("b", "string")), struct(a=pa.int32(), b=pa.string()), {"a": 1, "b": "x"}, None),
    (["null", "int"], pa.int32(), 5, None),
    (["string", "null"], pa.string(), "x", None),
    (["int"], pa.int32(), 5, None),
    (
        ["null", "int", "string"],
        struct(member0=pa.int32(), member1=pa.string()),
        "x",
        {"member0": None, "member1": "x"},
    ),
    (logical("int", "date"), pa.date32(), date(2026, 1, 2), None),
    (logical("int", "time-millis"), pa.int32(), time(1, 2, 3, 4000), 3723004),
    (logical("long", "time-micros"), pa.int64(), time(1, 2, 3, 4), 3723000004),
    (logical("long", "timestamp-millis"), pa.timestamp("us", "UTC"), INSTANT.replace(microsecond=678000), None),
    (logical("long", "timestamp-micros"), pa.timestamp("us", "UTC"), INSTANT, None),
    (logical("long", "timestamp-nanos"), pa.int64(), 1_000_000_001, None),
    (logical("long", "local-timestamp-millis"), pa.timestamp("us"), LOCAL.replace(microsecond=678000), None),
    (logical("long", "local-timestamp-micros"), pa.timestamp("us"), LOCAL, None),
    (logical("bytes", "decimal", precision=5, scale=2), pa.decimal128(5, 2), Decimal("-1.50"), None),
    (logical("fixed", "decimal", precision=5, scale=2, name="D", size=4), pa.decimal128(5, 2), Decimal("1.50"), None),
    (logical("bytes", "decimal", precision=40, scale=0), pa.string(), Decimal(10**39), str(10**39)),
    (logical("string", "uuid"), pa.string(), uuid.UUID(int=7), str(uuid.UUID(int=7))),
    (logical("fixed", "uuid", name="U", size=16), pa.binary(), uuid.UUID(int=7), bytes(15) + b"\x07"),
    (logical("fixed", "duration", name="P", size=12), pa.binary(), bytes(12), None),
    (logical("string", "unheard-of"), pa.string(), "x", None),
    (logical("int", "timestamp-millis"), pa.int32(), 5, None),
    (logical("bytes", "decimal", precision=2, scale=3), pa.binary(), b"x", None),
]


@pytest.mark.parametrize(("schema", "kind", "value", "in_arrow"), TYPES, ids=[json.dumps(row[0])[:60] for row in TYPES])
def test_types(schema: Any, kind: pa.DataType, value: Any, in_arrow: Any) -> None:
    serializer = AvroSerializer(schema)
    assert serializer.arrow_type == kind
    event = serializer.serialize(value)
    assert serializer.deserialize(event) == value
    column = serializer.decode_column(pa.array([event]))
    assert column.type == kind
    assert column[0].as_py() == (value if in_arrow is None else in_arrow)
    if value is not None:
        assert serializer.encode_column(column).to_pylist() == [event]


def test_lists_and_maps_are_spelled_as_spark_spells_them() -> None:
    kind = AvroSerializer(record(("l", ARRAY_OF_INT), ("m", {"type": "map", "values": "int"}))).arrow_type
    assert kind.field("l").type.value_field.name == "element"
    assert (kind.field("m").type.key_field.name, kind.field("m").type.item_field.name) == ("key", "value")
    assert all(field.nullable for field in kind)


# Bytes after a datum


@pytest.mark.parametrize("zeros", [1, 7, 97])
def test_zero_padding_is_ignored(zeros: int) -> None:
    serializer = AvroSerializer(FLAT)
    value = {"id": 5, "name": "x", "score": 0.0}
    event = serializer.serialize(value) + bytes(zeros)
    assert serializer.deserialize(event) == value
    assert serializer.decode_column(pa.array([event, event])).to_pylist() == [value, value]


def test_other_bytes_behind_a_datum_are_an_error() -> None:
    serializer = AvroSerializer(FLAT)
    event = serializer.serialize({"id": 5, "name": "x", "score": 0.0})
    with pytest.raises(DeserializationError, match="3 bytes follow the value; written with another schema"):
        serializer.deserialize(event + b"\0\0x")
    with pytest.raises(DeserializationError, match=r"row 1"):
        serializer.decode_column(pa.array([event, event + b"x", event]))


# Unions

SMALL = logical("fixed", "decimal", precision=1, scale=0, name="D", size=1)
RECORD_A, RECORD_B = record(("x", "int"), name="n.A"), record(("x", "int"), name="n.B")


@pytest.mark.parametrize(
    ("union", "value", "branch"),
    [
        (["null", RECORD_A, RECORD_B], ("n.B", {"x": 1}), 2),
        (["null", RECORD_A, RECORD_B], ("B", {"x": 1}), 2),
        ([{"type": "map", "values": "int"}, RECORD_A], ("n.A", {"x": 1}), 1),
        (["string", {"type": "enum", "name": "E", "symbols": ["A"]}], ("E", "A"), 1),
        (["bytes", {"type": "fixed", "name": "F", "size": 1}], ("F", b"x"), 1),
        (["int", "long"], ("long", 5), 1),
        (["int", "long"], 1 << 40, 1),
        (["int", "long"], 5, 0),
        (["float", "string"], 5, 0),
        (["double", "int"], 5, 1),
        (["null", "boolean", "int"], True, 1),
        (["int", logical("long", "timestamp-micros")], INSTANT, 1),
        ([logical("string", "uuid"), "bytes"], uuid.UUID(int=1), 0),
        ([SMALL, logical("bytes", "decimal", precision=2, scale=0)], Decimal(10), 1),
        ([SMALL, logical("bytes", "decimal", precision=2, scale=0)], Decimal(9), 1),
        ([RECORD_A, {"type": "map", "values": "string"}], {"x": 1}, 0),
        ([logical("long", "timestamp-millis"), logical("int", "date")], INSTANT, 0),
        ([logical("int", "time-millis"), logical("long", "time-micros")], time(1, 2, 3, 4), 1),
        ([logical("int", "time-millis"), logical("long", "time-micros")], time(1, 2, 3, 4000), 0),
        ([record(("a", "int"), name="P"), record(("a", "int"), ("b", "int", 0), name="Q")], {"a": 1, "b": 2}, 1),
    ],
)
def test_the_branch_of_a_value(union: Any, value: Any, branch: int) -> None:
    serializer = AvroSerializer(union)
    event = serializer.serialize(value)
    assert event[0] == 2 * branch
    again = serializer.deserialize(event)
    if isinstance(value, tuple) and value[0] != "long":
        assert isinstance(again, tuple)
        assert again[1] == value[1]


NAMED_AND_OTHERS = [
    ({"type": "enum", "name": "E", "symbols": ["A"]}, "string", "A"),
    (RECORD_A, {"type": "map", "values": "int"}, {"x": 1}),
    (record(name="Empty"), {"type": "map", "values": RECORD_A}, {}),
    ({"type": "fixed", "name": "F", "size": 2}, "bytes", b"ab"),
    (logical("fixed", "duration", name="D", size=12), "bytes", bytes(12)),
    (logical("fixed", "uuid", name="U", size=16), logical("string", "uuid"), uuid.UUID(int=7)),
    (SMALL, logical("bytes", "decimal", precision=2, scale=0), Decimal(3)),
]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("named", "other", "value"), NAMED_AND_OTHERS)
def test_a_value_that_was_read_is_written_to_the_same_branch(named: Any, other: Any, value: Any, reverse: bool) -> None:
    """Readers label the values of named types only, so a bare value belongs to the other branch."""
    branches = [other, named] if reverse else [named, other]
    serializer = AvroSerializer(["null", *branches])
    for index, branch in enumerate(branches, 1):
        inner = value if branch is named or value != {} else {"k": {"x": 1}}
        event = bytes([2 * index]) + AvroSerializer(branch).serialize(inner)
        found = serializer.deserialize(event)
        assert isinstance(found, tuple) == (branch is named)
        assert serializer.serialize(found) == event


def test_a_union_of_members_in_columns() -> None:
    serializer = AvroSerializer(["null", "int", "string"])
    column = pa.array([{"member0": 1}, {"member1": "x"}, None], serializer.arrow_type)
    assert serializer.encode_column(column).to_pylist() == [b"\x02\x02", b"\x04\x02x", None]
    both = pa.array([{"member0": 1, "member1": "x"}], serializer.arrow_type)
    with pytest.raises(SerializationError, match=r"row 0: .* 2 members of the union are set"):
        serializer.encode_column(both)
    only = pa.array([{"member1": "x"}], struct(member1=pa.string()))
    assert serializer.encode_column(only).to_pylist() == [b"\x04\x02x"]


def test_a_batch_is_a_column_of_records() -> None:
    serializer = AvroSerializer(FLAT)
    batch = pa.record_batch({"score": [1.0, 2.0], "id": [1, 2], "name": ["a", None]})
    events = serializer.encode_column(batch)
    assert [serializer.deserialize(event) for event in events.to_pylist()] == [
        {"id": 1, "name": "a", "score": 1.0},
        {"id": 2, "name": None, "score": 2.0},
    ]
    assert serializer.encode_column(batch.slice(1)).to_pylist() == events.to_pylist()[1:]


# Bad events


def test_errors_name_row_and_field() -> None:
    serializer = AvroSerializer(
        record(("a", {"type": "array", "items": record(("m", {"type": "map", "values": "boolean"}), name="I")}))
    )
    good = serializer.serialize({"a": [{"m": {}}, {"m": {"k": True}}]})
    bad = good.replace(b"\x02k\x01", b"\x02k\x09")
    with pytest.raises(DeserializationError) as caught:
        serializer.decode_column(pa.array([good, bad]))
    assert (caught.value.row, caught.value.field_path) == (1, "$.a[1].m['k']")
    assert (
        str(caught.value) == "[PRAVEGA-DESERIALIZATION] invalid Avro: invalid boolean 9 (at row 1, field $.a[1].m['k'])"
    )
    at = caught.value.at(scope="s", stream="t", segment_id=3, offset=99)
    assert str(at).endswith("(at stream s/t, segment 3, offset 99, field $.a[1].m['k'])")


def test_errors_are_handed_over_in_order_and_nulls_kept() -> None:
    serializer = AvroSerializer(FLAT)
    good = serializer.serialize({"id": 1, "name": "x", "score": 0.5})
    errors: list[DeserializationError] = []
    events = [good, None, b"", good, b"{}", None, good[:5], good]
    decoded = serializer.decode_column(pa.array(events, pa.binary()), on_error=errors.append)
    assert [error.row for error in errors] == [2, 4, 6]
    assert [value is None for value in decoded.to_pylist()] == [False, True, True, False, True, True, True, False]


def test_invalid_utf8_is_found_among_good_rows() -> None:
    serializer = AvroSerializer(record(("s", "string")))
    events = [b"\x04ok", b"\x04\xff\xfe", b"\x04\xc3\xbc"]
    errors: list[DeserializationError] = []
    assert serializer.decode_column(pa.array(events), on_error=errors.append).to_pylist() == [
        {"s": "ok"},
        None,
        {"s": "ü"},
    ]
    assert [error.reason for error in errors] == ["invalid Avro: invalid UTF-8 at byte 0 of the string"]


def test_a_timestamp_beyond_pythons_years_is_a_number_in_columns() -> None:
    serializer = AvroSerializer(logical("long", "timestamp-millis"))
    far = AvroSerializer("long").serialize(300_000_000_000_000)
    assert serializer.decode_column(pa.array([far])).cast(pa.int64()).to_pylist() == [300_000_000_000_000_000]
    with pytest.raises(DeserializationError, match="outside the range of Python's datetime"):
        serializer.deserialize(far)
    beyond = AvroSerializer("long").serialize(1 << 62)
    with pytest.raises(DeserializationError, match="beyond the range of a timestamp"):
        serializer.decode_column(pa.array([far, beyond]))


def test_the_last_entry_of_a_key_counts() -> None:
    serializer = AvroSerializer({"type": "map", "values": "int"})
    event = b"\4\2a\2\2b\4\2\2a\6\0"
    assert serializer.deserialize(event) == {"a": 3, "b": 2}
    for events in ([event], [event, serializer.serialize({"a": 1}), event]):
        assert serializer.decode_column(pa.array(events))[0].as_py() == [("a", 3), ("b", 2)]


def test_the_empty_column() -> None:
    serializer = AvroSerializer(FLAT)
    empty = serializer.decode_column(pa.array([], pa.binary()))
    assert (len(empty), empty.type) == (0, serializer.arrow_type)
    assert len(serializer.encode_column(empty)) == 0
    assert serializer.decode_column(pa.chunked_array([], pa.binary())).type == serializer.arrow_type


# Values that a logical type does not hold: bad by row and by column alike

_UUID = "123E4567-e89b-12d3-a456-426614174000"
BAD_LOGICAL = [
    (logical("int", "time-millis"), "int", 86_400_000),
    (logical("int", "time-millis"), "int", -1),
    (logical("long", "time-micros"), "long", 86_400_000_000),
    (logical("long", "time-micros"), "long", -(2**63)),
    (logical("string", "uuid"), "string", "{123e4567-e89b-12d3-a456-426614174000}"),
    (logical("string", "uuid"), "string", "123e4567e89b12d3a456426614174000"),
    (logical("string", "uuid"), "string", "1-1-1-1-1"),
    (logical("string", "uuid"), "string", _UUID + "\n"),
    (logical("bytes", "decimal", precision=4, scale=2), "bytes", b""),
    (logical("bytes", "decimal", precision=4, scale=2), "bytes", (10_000).to_bytes(2, "big")),
    (logical("bytes", "decimal", precision=40, scale=2), "bytes", b""),
    (logical("bytes", "decimal", precision=40, scale=2), "bytes", (10**40).to_bytes(17, "big")),
    (
        logical("fixed", "decimal", name="F", size=20, precision=40),
        {"type": "fixed", "name": "F", "size": 20},
        b"\x7f" * 20,
    ),
]


@pytest.mark.parametrize(
    ("kind", "plain", "value"), BAD_LOGICAL, ids=[f"{k['logicalType']} {v!r:.40}" for k, _, v in BAD_LOGICAL]
)
def test_rows_and_columns_refuse_the_same_values(kind: Any, plain: Any, value: Any) -> None:
    event = AvroSerializer(record(("x", plain))).serialize({"x": value})
    serializer = AvroSerializer(record(("x", kind)))
    with pytest.raises(DeserializationError) as caught:
        serializer.deserialize(event)
    assert caught.value.field_path == "$.x"
    with pytest.raises(DeserializationError) as caught:
        serializer.decode_column(pa.array([None, event], pa.binary()))
    assert (caught.value.row, caught.value.field_path) == (1, "$.x")
    # Skipped values are not checked, by row or by column.
    over = AvroSerializer(record(("x", kind)), reader_schema=READS_OVER)
    assert over.deserialize(event) == {"y": 1}
    assert over.decode_column(pa.array([event])).to_pylist() == [{"y": 1}]


READS_OVER = {"type": "record", "name": "R", "fields": [{"name": "y", "type": "int", "default": 1}]}


def test_the_text_of_a_uuid_is_given_back_as_it_was() -> None:
    serializer = AvroSerializer(record(("x", logical("string", "uuid"))))
    event = AvroSerializer(record(("x", "string"))).serialize({"x": _UUID})
    value = serializer.deserialize(event)
    assert value == {"x": uuid.UUID(_UUID)}
    assert hash(value["x"]) == hash(uuid.UUID(_UUID))
    assert str(value["x"]) == _UUID
    assert serializer.serialize(pickle.loads(pickle.dumps(value))) == event
    column = serializer.decode_column(pa.array([event]))
    assert column.to_pylist() == [{"x": _UUID}]
    assert serializer.encode_column(column).to_pylist() == [event]


def test_a_long_decimal_is_text_in_columns() -> None:
    serializer = AvroSerializer(record(("x", logical("bytes", "decimal", precision=40, scale=2))))
    numbers = [Decimal((sign, (9,) * digits, -2)) for sign in (0, 1) for digits in (1, 38, 40)]
    events = [serializer.serialize({"x": number}) for number in numbers]
    column = serializer.decode_column(pa.array(events))
    assert column.field("x").to_pylist() == [format(number, "f") for number in numbers]
    assert serializer.encode_column(column).to_pylist() == events
    other = pa.StructArray.from_arrays([pa.array(numbers, pa.decimal256(60, 5))], ["x"])
    assert serializer.encode_column(other).to_pylist() == events


@pytest.mark.parametrize("text", ["1.005", "9" * 39, "NaN", "x", ""])
def test_a_text_that_is_not_the_decimal_of_its_schema_is_refused(text: str) -> None:
    serializer = AvroSerializer(record(("x", logical("bytes", "decimal", precision=40, scale=2))))
    with pytest.raises(SerializationError) as caught:
        serializer.encode_column(pa.array([{"x": "0"}, {"x": text}]))
    assert (caught.value.row, caught.value.field_path) == (1, "$.x")


def test_a_signalling_nan_is_promoted_without_a_word() -> None:
    promoted = AvroSerializer('"float"', reader_schema='"double"')
    (value,) = promoted.decode_column(pa.array([b"\x00\x00\xa0\x7f"])).to_pylist()
    assert value != value
