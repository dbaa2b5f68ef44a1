"""Output of the Avro writer: values and columns that fit, and how those are refused that do not."""

import io
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from pravega_serde import SchemaError, SerializationError
from pravega_serde.avro import AvroSerializer
from tests.unit.serde._arrow import struct
from tests.unit.serde._avro import ARRAY_OF_INT, FLAT, INSTANT, LOCAL, logical, record

# Values that do not fit

REFUSED = [
    ("int", 1 << 31, "invalid 32-bit int"),
    ("int", 3.0, "invalid int"),
    ("int", True, "invalid int"),
    ("long", 1 << 63, "invalid 64-bit long"),
    ("long", "5", "invalid long"),
    ("boolean", 1, "invalid boolean"),
    ("float", 1e300, "invalid 32-bit float"),
    ("double", "x", "invalid number"),
    ("double", 10**400, "invalid 64-bit double"),
    ("string", b"x", "invalid string"),
    ("string", "\ud800", "unpaired surrogate"),
    ("bytes", "x", "invalid bytes"),
    ("null", 0, "invalid null"),
    ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, "x", "invalid UUID"),
    ({"type": "fixed", "name": "F", "size": 2}, b"x", "1 bytes, but 2 are required"),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", "invalid symbol of E"),
    (ARRAY_OF_INT, 5, "invalid array"),
    (ARRAY_OF_INT, [1, "x"], r"field \$\[1\]"),
    ({"type": "map", "values": "int"}, [1], "invalid entry|invalid map"),
    (FLAT, {"id": 1, "name": None}, r"no value and no default \(field \$\.score\)"),
    (FLAT, {"id": 1, "name": None, "score": 1.0, "scor": 2}, "R has no field 'scor'; omit it"),
    (FLAT, 5, "invalid record R"),
    (["int", "string"], b"x", "invalid member of the union of int, string"),
    (logical("long", "timestamp-micros"), LOCAL, "needs a time zone"),
    (logical("long", "local-timestamp-micros"), INSTANT, "has a time zone"),
    (logical("bytes", "decimal", precision=3, scale=1), Decimal("100"), "more than 2 digits before the point"),
    (logical("bytes", "decimal", precision=3, scale=1), Decimal("0.15"), "more than 1 digits after the point"),
    (logical("bytes", "decimal", precision=3, scale=1), Decimal("1E+1000000000"), "before the point"),
    (logical("bytes", "decimal", precision=3, scale=1), Decimal("NaN"), "invalid decimal"),
    (logical("fixed", "decimal", precision=2, scale=0, name="D", size=1), Decimal(200), "digits before the point"),
]


@pytest.mark.parametrize(
    ("schema", "value", "message"), REFUSED, ids=[f"{str(r[0])[:30]}:{str(r[1])[:20]}" for r in REFUSED]
)
def test_values_that_do_not_fit_are_named(schema: Any, value: Any, message: str) -> None:
    with pytest.raises(SerializationError, match=message) as caught:
        AvroSerializer(schema).serialize(value)
    assert "\n" not in str(caught.value)


@dataclass
class Reading:
    id: int
    name: str | None
    score: Any


@pytest.mark.parametrize("score", [1.5, np.float32(1.5), Decimal("1.5")])
def test_objects_and_other_numbers_are_taken(score: Any) -> None:
    serializer = AvroSerializer(FLAT)
    if isinstance(score, Decimal):
        with pytest.raises(SerializationError, match="invalid number"):
            serializer.serialize(Reading(1, "x", score))
    else:
        event = serializer.serialize(Reading(np.int64(1), "x", score))  # type: ignore[arg-type]
        assert serializer.deserialize(event) == {"id": 1, "name": "x", "score": 1.5}


def test_defaults_fill_what_is_missing() -> None:
    serializer = AvroSerializer(
        record(("a", "int", 7), ("b", ["null", "string"], None), ("c", {"type": "array", "items": "int"}, [1]))
    )
    assert serializer.deserialize(serializer.serialize({})) == {"a": 7, "b": None, "c": [1]}
    column = pa.array([{"b": "x"}], struct(b=pa.string()))
    events = serializer.encode_column(column)
    assert serializer.deserialize(events[0].as_py()) == {"a": 7, "b": "x", "c": [1]}


def test_times_before_1970_are_rounded_down() -> None:
    moment = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=timezone(timedelta(hours=1)))
    serializer = AvroSerializer(logical("long", "timestamp-millis"))
    event = serializer.serialize(moment)
    assert serializer.deserialize(event) == moment.replace(microsecond=999000)
    nanos = pa.array([-3_600_000_000_001], pa.timestamp("ns", "UTC"))
    assert serializer.encode_column(nanos).to_pylist() == [AvroSerializer("long").serialize(-3_600_001)]


# Columns that do not fit

MISFITS = [
    (FLAT, struct(id=pa.int64(), name=pa.string()), r"the field \$\.score has no column"),
    (
        FLAT,
        struct(id=pa.int64(), name=pa.string(), score=pa.string()),
        r"string does not fit Avro's double \(at \$\.score\)",
    ),
    (
        FLAT,
        struct(id=pa.int64(), name=pa.string(), score=pa.float64(), x=pa.int8()),
        r"\$\.x exists, but record R has no such field; drop it",
    ),
    (FLAT, pa.int64(), "record R requires a struct"),
    ("int", pa.int64(), r"int64 does not fit Avro's int \(at"),
    ("long", pa.uint64(), "uint64 does not fit"),
    ("float", pa.float64(), "does not fit Avro's float"),
    ("string", pa.binary(), "does not fit Avro's string"),
    ("bytes", pa.string(), "does not fit Avro's bytes"),
    (logical("long", "timestamp-millis"), pa.timestamp("us"), "needs a time zone"),
    (logical("long", "local-timestamp-millis"), pa.timestamp("us", "UTC"), "must have no time zone"),
    (logical("bytes", "decimal", precision=4, scale=2), pa.float64(), "cast it to decimal"),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.int32(), "it requires strings"),
    (ARRAY_OF_INT, pa.int32(), "does not fit Avro's array"),
    ({"type": "map", "values": "int"}, pa.map_(pa.int32(), pa.int32()), "maps with string keys"),
    (["int", "string"], pa.int32(), "requires a struct of member0, member1"),
]


@pytest.mark.parametrize(("schema", "kind", "message"), MISFITS, ids=[f"{str(r[0])[:30]}:{r[1]}" for r in MISFITS])
def test_columns_that_do_not_fit_are_found_without_data(schema: Any, kind: pa.DataType, message: str) -> None:
    serializer = AvroSerializer(schema)
    with pytest.raises(SchemaError, match=message):
        serializer.check_encodable(kind)
    with pytest.raises(SchemaError, match=message):
        serializer.encode_column(pa.nulls(1, kind))


FITS = [
    ("long", pa.array([1, -1], pa.int8()), [b"\x02", b"\x01"]),
    ("int", pa.array([1, None], pa.uint16()), [b"\x02", None]),
    ("double", pa.array([1], pa.int32()), [b"\0\0\0\0\0\0\xf0?"]),
    ("string", pa.array(["a", "b"]).dictionary_encode(), [b"\x02a", b"\x02b"]),
    ("string", pa.array(["a"], pa.large_string()), [b"\x02a"]),
    ("bytes", pa.array([b"a"], pa.binary(1)), [b"\x02a"]),
    (logical("int", "date"), pa.array([1], pa.int32()), [b"\x02"]),
    (logical("int", "date"), pa.array([86_400_000], pa.date64()), [b"\x02"]),
    (logical("long", "timestamp-millis"), pa.array([1], pa.timestamp("s", "Europe/Berlin")), [b"\xd0\x0f"]),
    (logical("long", "timestamp-millis"), pa.array([1], pa.int64()), [b"\x02"]),
    (logical("long", "timestamp-micros"), pa.array([1], pa.int64()), [b"\x02"]),
    (logical("long", "time-micros"), pa.array([1], pa.time64("us")), [b"\x02"]),
    (logical("int", "time-millis"), pa.array([1], pa.time32("s")), [b"\xd0\x0f"]),
    (
        logical("bytes", "decimal", precision=5, scale=2),
        pa.array([Decimal("1.5")], pa.decimal128(3, 1)),
        [b"\x04\x00\x96"],
    ),
    (ARRAY_OF_INT, pa.array([[1], []], pa.large_list(pa.int8())), [b"\x02\x02\x00", b"\x00"]),
    (ARRAY_OF_INT, pa.array([[1, 2]], pa.list_(pa.int8(), 2)), [b"\x04\x02\x04\x00"]),
    (["null", "long"], pa.nulls(1), [None]),
]


@pytest.mark.parametrize(("schema", "column", "events"), FITS, ids=[f"{str(r[0])[:30]}:{r[1].type}" for r in FITS])
def test_columns_of_other_types_are_taken(schema: Any, column: pa.Array, events: list[Any]) -> None:
    assert AvroSerializer(schema).encode_column(column).to_pylist() == events


BAD_VALUES = [
    (
        record(("a", "int")),
        pa.array([{"a": 1}, {"a": None}]).cast(struct(a=pa.int32())),
        r"row 1: .*invalid int: None \(NoneType\) \(field \$\.a\)",
    ),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.array(["A", "B"]), "row 1: .*invalid symbol of E"),
    ({"type": "fixed", "name": "F", "size": 2}, pa.array([b"ab", b"abc"]), "row 1: .*3 bytes, but 2 are required"),
    (
        logical("bytes", "decimal", precision=3, scale=1),
        pa.array([Decimal("1.00"), Decimal("1.25")], pa.decimal128(5, 2)),
        "row 1: .*after the point",
    ),
    (
        logical("fixed", "decimal", precision=2, scale=0, name="D", size=1),
        pa.array([Decimal(1), Decimal(200)], pa.decimal128(9, 0)),
        "row 1: .*digits before the point",
    ),
    (ARRAY_OF_INT, pa.array([[1], [2, None]], pa.list_(pa.int32())), r"row 1: .*field \$\[1\]"),
    (
        ["int", "string"],
        pa.array([{"member0": 1}, {"member0": None}], struct(member0=pa.int32(), member1=pa.string())),
        "row 1: .*0 members",
    ),
]


@pytest.mark.parametrize(("schema", "column", "message"), BAD_VALUES, ids=[str(r[0])[:50] for r in BAD_VALUES])
def test_values_in_columns_that_do_not_fit_are_named(schema: Any, column: pa.Array, message: str) -> None:
    with pytest.raises(SerializationError, match=message):
        AvroSerializer(schema).encode_column(column)


# The compiled writer


def test_the_compiled_writer_leaves_what_it_does_not_take() -> None:
    serializer = AvroSerializer(FLAT)
    values = [{"id": i, "name": None, "score": 0.5} for i in range(3)]
    column = pa.array(values, serializer.arrow_type)
    writer = serializer.column_writer
    assert writer.compiled(column) is not None
    missing = pa.array([{"id": None, "name": None, "score": 0.5}], serializer.arrow_type)
    assert writer.compiled(missing) is None
    with pytest.raises(SerializationError, match=r"row 0: .*field \$\.id"):
        serializer.encode_column(missing)
    for schema in (
        ARRAY_OF_INT,
        record(),
        record(("a", {"type": "array", "items": record(name="Empty")})),
        record(("u", ["int", "string"])),
        record(("m", {"type": "map", "values": "bytes"})),
        record(("b", "bytes")),
        record(("d", logical("bytes", "decimal", precision=2))),
    ):
        assert AvroSerializer(schema).column_writer._compiled is None


FORKED = """
import os, signal, pyarrow as pa
from pravega_serde.avro import AvroSerializer
serializer = AvroSerializer({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
column = pa.array([{"a": 1}], serializer.arrow_type)
assert serializer.column_writer.compiled(column) is not None
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if serializer.encode_column(column).to_pylist() == [b"\\x02"] else 1)
raise SystemExit(os.waitpid(child, 0)[1])
"""


def test_a_forked_child_does_not_wait_for_its_parents_threads() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=True, timeout=60)


@pytest.mark.parametrize(
    "panic", [ValueError("join error"), type("PanicException", (BaseException,), {})("not implemented")]
)
def test_the_compiled_writers_panics_do_not_escape(monkeypatch: pytest.MonkeyPatch, panic: BaseException) -> None:
    def fail(*_: Any) -> None:
        raise panic

    serializer = AvroSerializer(FLAT)
    column = pa.array([{"id": 1, "name": "x", "score": 0.5}], serializer.arrow_type)
    serializer.check_encodable(column.type)
    monkeypatch.setattr("pyruhvro.serialize_record_batch", fail)
    assert serializer.encode_column(column).to_pylist() == [serializer.serialize({"id": 1, "name": "x", "score": 0.5})]


def test_an_interrupt_is_not_treated_as_a_panic(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    serializer = AvroSerializer(FLAT)
    column = pa.array([{"id": 1, "name": "x", "score": 0.5}], serializer.arrow_type)
    monkeypatch.setattr("pyruhvro.serialize_record_batch", interrupt)
    with pytest.raises(KeyboardInterrupt):
        serializer.encode_column(column)


def test_long_columns_are_written_in_passes() -> None:
    serializer = AvroSerializer(ARRAY_OF_INT)
    column = pa.array([[i] for i in range(40_000)], serializer.arrow_type)
    events = serializer.encode_column(column)
    assert len(events) == 40_000
    assert serializer.decode_column(events).equals(column)


# Which branch a number takes, and what logical types do not hold


@pytest.mark.parametrize("value", [0.1, 1e300, -0.0, 2**40 + 0.5])
@pytest.mark.parametrize("union", [["float", "double"], ["null", "float", "string", "double"], ["double", "float"]])
def test_a_float_of_python_is_a_double_where_the_union_has_one(union: list[str], value: float) -> None:
    serializer = AvroSerializer(record(("x", union)))
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(record(("x", union))), {"x": value})
    event = serializer.serialize({"x": value})
    assert event == out.getvalue()
    assert serializer.deserialize(event) == {"x": value}
    double = [branch for branch in union if branch != "null"].index("double")
    column = pa.array(
        [{"x": {f"member{double}": value}}], pa.struct([("x", pa.struct([(f"member{double}", pa.float64())]))])
    )
    assert serializer.encode_column(column).to_pylist() == [event]
    assert len(serializer.serialize({"x": ("float", 0.5)})) == 5


UNREADABLE = [
    ({"type": "int", "logicalType": "time-millis"}, 86_400_000, pa.array([0, 86_400_000], pa.int32())),
    ({"type": "int", "logicalType": "time-millis"}, -1, pa.array([0, -1], pa.int8())),
    ({"type": "long", "logicalType": "time-micros"}, 86_400_000_000, pa.array([0, 86_400_000_000])),
    ({"type": "string", "logicalType": "uuid"}, "x", pa.array(["123e4567-e89b-12d3-a456-426614174000", "x"])),
]


@pytest.mark.parametrize(
    ("kind", "value", "column"), UNREADABLE, ids=[f"{kind['logicalType']} {value}" for kind, value, _ in UNREADABLE]
)
def test_what_could_not_be_read_is_not_written(kind: Any, value: Any, column: pa.Array) -> None:
    serializer = AvroSerializer(record(("x", kind)))
    with pytest.raises(SerializationError) as caught:
        serializer.serialize({"x": value})
    assert caught.value.field_path == "$.x"
    with pytest.raises(SerializationError) as caught:
        serializer.encode_column(pa.record_batch({"x": column}))
    assert (caught.value.row, caught.value.field_path) == (1, "$.x")


def test_times_beyond_the_range_name_their_row() -> None:
    serializer = AvroSerializer(record(("x", {"type": "long", "logicalType": "timestamp-micros"})))
    with pytest.raises(SerializationError) as caught:
        serializer.encode_column(pa.record_batch({"x": pa.array([0, 1, 2**62], pa.timestamp("s", "UTC"))}))
    assert (caught.value.row, caught.value.field_path) == (2, "$.x")
