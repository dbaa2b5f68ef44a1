"""Hostile Avro events: bounded in depth, items and memory, on both paths."""

import time as clock
from typing import Any

import pyarrow as pa
import pytest

from pravega_serde import DeserializationError, LimitExceededError, SchemaError, SerializationError
from pravega_serde.avro import AvroSerializer
from pravega_serde.avro.rows import MAX_DEPTH, MAX_EMPTY_ITEMS
from tests.unit.serde._avro import ARRAY_OF_INT, LIST, record

# Limits


def test_records_inside_themselves_are_bounded() -> None:
    serializer = AvroSerializer(LIST)
    deepest: Any = None
    for value in range(MAX_DEPTH):
        deepest = {"v": value, "next": deepest}
    assert serializer.deserialize(serializer.serialize(deepest)) == deepest
    with pytest.raises(LimitExceededError, match="List inside itself more than 200 times"):
        serializer.deserialize(b"\x02\x02" * 500_000 + b"\x00\x00")
    endless: dict[str, Any] = {"v": 1}
    endless["next"] = endless
    with pytest.raises(SerializationError, match="contains itself"):
        serializer.serialize(endless)
    with pytest.raises(SchemaError, match="contains itself, which Arrow does not support"):
        serializer.decode_column(pa.array([b""]))
    with pytest.raises(SchemaError, match="contains itself"):
        serializer.check_encodable(pa.int64())


@pytest.mark.parametrize(
    "items",
    ["null", {"type": "fixed", "name": "F", "size": 0}, record(name="Empty"), record(("n", "null"), name="Nulls")],
)
def test_items_of_no_bytes_are_bounded(items: Any) -> None:
    serializer = AvroSerializer({"type": "array", "items": items})
    long = AvroSerializer("long")
    some = long.serialize(1000) + b"\0"
    assert len(serializer.deserialize(some)) == 1000
    assert len(serializer.decode_column(pa.array([some]))[0]) == 1000
    for count in (MAX_EMPTY_ITEMS + 1, (1 << 63) - 1):
        bomb = long.serialize(count) + b"\0"
        with pytest.raises(LimitExceededError, match="items without bytes"):
            serializer.deserialize(bomb)
        with pytest.raises(LimitExceededError, match="items without bytes"):
            serializer.decode_column(pa.array([some, bomb]))


def test_values_far_larger_than_their_event_are_refused() -> None:
    point = record(("ok", "boolean"), name="Point")
    serializer = AvroSerializer({"type": "array", "items": point})
    long = AvroSerializer("long")
    count = 1 << 17
    some = long.serialize(count) + b"\1" * count + b"\0"
    assert len(serializer.deserialize(some)) == count
    count = 1 << 20
    bomb = long.serialize(count) + b"\1" * count + b"\0"
    with pytest.raises(LimitExceededError, match=r"values of 1048581 bytes use more than 60 MiB of memory"):
        serializer.deserialize(bomb)
    with pytest.raises(LimitExceededError, match="row 1"):
        serializer.decode_column(pa.array([some, bomb]))


def test_items_of_no_bytes_are_counted_over_the_whole_event() -> None:
    serializer = AvroSerializer({"type": "array", "items": {"type": "array", "items": "null"}})
    inner = AvroSerializer("long").serialize(MAX_EMPTY_ITEMS // 2) + b"\0"
    assert len(serializer.deserialize(b"\x04" + inner * 2 + b"\0")) == 2
    with pytest.raises(LimitExceededError):
        serializer.deserialize(b"\x06" + inner * 3 + b"\0")


def test_values_in_lists_of_lists_are_counted_over_the_whole_event() -> None:
    many = record(*((f"f{n}", "long", 0) for n in range(100)), name="Point")
    lists = {"type": "array", "items": {"type": "array", "items": record(("ok", "boolean"), name="Point")}}
    serializer = AvroSerializer(lists, reader_schema={"type": "array", "items": {"type": "array", "items": many}})
    inner = AvroSerializer("long").serialize(64) + b"\1" * 64 + b"\0"
    small, large = (AvroSerializer("long").serialize(n) + inner * n + b"\0" for n in (10, 1 << 12))
    assert len(serializer.decode_column(pa.array([small]))[0]) == 10
    with pytest.raises(LimitExceededError, match="row 1"):
        serializer.decode_column(pa.array([small, large]))


def test_arrays_in_arrays_of_one_event_do_not_take_forever() -> None:
    serializer = AvroSerializer({"type": "array", "items": ARRAY_OF_INT})
    event = serializer.serialize([[1] * 500] * 500)
    started = clock.process_time()
    assert len(serializer.decode_column(pa.array([event, event]))[0]) == 500
    assert clock.process_time() - started < 5, "a round for each of 250,000 items would take much longer"


def test_blocks_may_be_many_and_say_their_size() -> None:
    serializer = AvroSerializer(ARRAY_OF_INT)
    sized = b"\x01\x02\x0a" + b"\x03\x04\x0c\x0e" + b"\x02\x10" + b"\x00"
    for read in (serializer.deserialize, lambda data: serializer.decode_column(pa.array([data, b"\0"]))[0].as_py()):
        assert read(sized) == [5, 6, 7, 8]


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x01"])
def test_announced_lengths_allocate_nothing(length: bytes) -> None:
    for schema in ("bytes", "string", ARRAY_OF_INT, {"type": "map", "values": "int"}):
        serializer = AvroSerializer(schema)
        with pytest.raises(DeserializationError):
            serializer.deserialize(length + b"abc")
        with pytest.raises(DeserializationError):
            serializer.decode_column(pa.array([length + b"abc"]))


@pytest.mark.parametrize("number", [b"\x80" * 10 + b"\x01", b"\xff" * 9 + b"\x02", b"\x80" * 9 + b"\x7f"])
def test_numbers_of_more_than_64_bits_are_errors(number: bytes) -> None:
    serializer = AvroSerializer("long")
    with pytest.raises(DeserializationError, match="invalid number: more than"):
        serializer.deserialize(number)
    with pytest.raises(DeserializationError, match="invalid number: more than"):
        serializer.decode_column(pa.array([b"\x02", number]))
