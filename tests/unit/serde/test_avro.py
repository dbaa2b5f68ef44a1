"""Avro: types in Python and Arrow, what is refused and how it is said, limits, and what Java's writers do besides."""

import json
import subprocess
import sys
import time as clock
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pravega_serde import DeserializationError, LimitExceededError, SchemaError, SerializationError
from pravega_serde.avro import AvroSerializer
from pravega_serde.avro._budget import MAX_EMPTY_ITEMS
from pravega_serde.avro._cursor import MAX_THIN_ROUNDS, THIN
from pravega_serde.avro._read_rows import MAX_DEPTH


def record(*fields: tuple[Any, ...], name: str = "R") -> dict[str, Any]:
    entries = [{"name": f[0], "type": f[1], **({"default": f[2]} if len(f) > 2 else {})} for f in fields]
    return {"type": "record", "name": name, "fields": entries}


def logical(kind: Any, what: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": what, **more}


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


ARRAY_OF_INT = {"type": "array", "items": "int"}
LIST = record(("v", "int"), ("next", ["null", "List"]), name="List")
FLAT = record(("id", "long"), ("name", ["null", "string"]), ("score", "double"))
INSTANT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
LOCAL = INSTANT.replace(tzinfo=None)

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
    (logical("bytes", "decimal", precision=40, scale=0), pa.binary(), Decimal(10**39), (10**39).to_bytes(17, "big")),
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


# Schemas


def test_schemas_come_as_text_json_or_file(tmp_path: Path) -> None:
    path = tmp_path / "flat.avsc"
    path.write_text(json.dumps(FLAT))
    kinds = [
        AvroSerializer(given).arrow_type for given in (json.dumps(FLAT), FLAT, path, str(path), f"  {json.dumps(FLAT)}")
    ]
    assert len(set(map(str, kinds))) == 1


BAD_SCHEMAS = [
    ("{", "is not JSON"),
    ("nowhere.avsc", "must be JSON or the path of a .avsc file"),
    (Path("nowhere.avsc"), "neither"),
    (5, "not int"),
    ({"type": "recrd"}, "unknown type 'recrd'"),
    ({"name": "x"}, "lacks 'type'"),
    ({"type": "record", "name": "R"}, "lacks 'fields'"),
    ({"type": "record", "fields": []}, "lacks 'name'"),
    ({"type": "record", "name": "", "fields": []}, "without a name"),
    ({"type": "record", "name": "R", "fields": [5]}, "is no field"),
    ({"type": "record", "name": "R", "namespace": 5, "fields": []}, "is no namespace"),
    (record(("a", "int"), ("a", "int")), "'a' twice"),
    (record(("a", "nope")), "unknown type 'nope'"),
    ({"type": "array"}, "lacks 'items'"),
    ({"type": "map", "values": 5}, "wrong 'values'"),
    ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "symbol twice"),
    ({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}, "not one of its symbols"),
    ({"type": "enum", "name": "E", "symbols": "AB"}, "wrong 'symbols'"),
    ({"type": "fixed", "name": "F", "size": -1}, "is no size"),
    ({"type": "fixed", "name": "F", "size": "4"}, "wrong 'size'"),
    ({"type": "fixed", "name": "F", "size": 4, "aliases": "G"}, "wrong aliases"),
    (["int", "int"], "different types"),
    (["null", ["int"]], "may not hold a union"),
    ([], "different types"),
    (
        record(("a", {"type": "fixed", "name": "F", "size": 1}), ("b", {"type": "fixed", "name": "F", "size": 1})),
        "'F' twice",
    ),
    ({"type": "string", "doc": object()}, "not made of JSON"),
]


@pytest.mark.parametrize(("schema", "message"), BAD_SCHEMAS, ids=[str(row[0])[:50] for row in BAD_SCHEMAS])
def test_bad_schemas_are_named(schema: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        AvroSerializer(schema)
    assert "\n" not in str(caught.value)


def test_a_schema_nested_without_end_is_an_error() -> None:
    deep: Any = "int"
    for _ in range(63):
        deep = {"type": "array", "items": deep}
    serializer = AvroSerializer(deep)
    assert serializer.decode_column(pa.array([b"\0"])).to_pylist() == [[]]
    with pytest.raises(SchemaError, match="nested more than 64 levels deep"):
        AvroSerializer({"type": "array", "items": deep})
    with pytest.raises(SchemaError, match="is not JSON"):
        AvroSerializer("[" * 100_000)


def test_a_small_schema_cannot_unfold_into_an_enormous_type() -> None:
    fields: list[tuple[Any, ...]] = [("a0", record(("x", "int"), name="L0"))]
    fields += [(f"a{n}", record(("l", f"L{n - 1}"), ("r", f"L{n - 1}"), name=f"L{n}")) for n in range(1, 40)]
    with pytest.raises(SchemaError, match="unfolds into more than 10000 columns"):
        _ = AvroSerializer(record(*fields, name="Top")).arrow_type


def test_names_have_namespaces() -> None:
    inner = {"type": "enum", "name": "E", "symbols": ["A"]}
    schema = {
        "type": "record",
        "name": "R",
        "namespace": "n.s",
        "fields": [{"name": "a", "type": inner}, {"name": "b", "type": "n.s.E"}],
    }
    serializer = AvroSerializer(schema)
    assert serializer.deserialize(serializer.serialize({"a": "A", "b": "A"})) == {"a": "A", "b": "A"}


# What stands behind a datum


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


def test_a_union_of_members_in_columns() -> None:
    serializer = AvroSerializer(["null", "int", "string"])
    column = pa.array([{"member0": 1}, {"member1": "x"}, None], serializer.arrow_type)
    assert serializer.encode_column(column).to_pylist() == [b"\x02\x02", b"\x04\x02x", None]
    both = pa.array([{"member0": 1, "member1": "x"}], serializer.arrow_type)
    with pytest.raises(SerializationError, match=r"row 0: .* 2 members of the union are set"):
        serializer.encode_column(both)
    only = pa.array([{"member1": "x"}], struct(member1=pa.string()))
    assert serializer.encode_column(only).to_pylist() == [b"\x04\x02x"]


# Values that do not fit

REFUSED = [
    ("int", 1 << 31, "no 32-bit int"),
    ("int", 3.0, "is no int"),
    ("int", True, "is no int"),
    ("long", 1 << 63, "no 64-bit long"),
    ("long", "5", "is no long"),
    ("boolean", 1, "is no boolean"),
    ("float", 1e300, "no 32-bit float"),
    ("double", "x", "is no number"),
    ("double", 10**400, "no 64-bit double"),
    ("string", b"x", "is no string"),
    ("string", "\ud800", "surrogate without its partner"),
    ("bytes", "x", "is no bytes"),
    ("null", 0, "is no null"),
    ({"type": "fixed", "name": "F", "size": 2}, b"x", "1 bytes where 2 are needed"),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", "no symbol of E"),
    (ARRAY_OF_INT, 5, "is no array"),
    (ARRAY_OF_INT, [1, "x"], r"field \$\[1\]"),
    ({"type": "map", "values": "int"}, [1], r"is no"),
    (FLAT, {"id": 1, "name": None}, r"no value and no default \(field \$\.score\)"),
    (FLAT, {"id": 1, "name": None, "score": 1.0, "scor": 2}, "R has no field 'scor'; leave it out"),
    (FLAT, 5, "is no record R"),
    (["int", "string"], b"x", "is no member of the union of int, string"),
    (logical("long", "timestamp-micros"), LOCAL, "needs a time zone"),
    (logical("long", "local-timestamp-micros"), INSTANT, "has a time zone"),
    (logical("bytes", "decimal", precision=3, scale=1), Decimal("100"), "more than 2 digits before the point"),
    (logical("bytes", "decimal", precision=3, scale=1), Decimal("0.15"), "more than 1 digits behind the point"),
    (logical("bytes", "decimal", precision=3, scale=1), Decimal("1E+1000000000"), "before the point"),
    (logical("bytes", "decimal", precision=3, scale=1), Decimal("NaN"), "is no decimal"),
    (logical("fixed", "decimal", precision=3, scale=0, name="D", size=1), Decimal(200), "does not fit 1 bytes"),
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
        with pytest.raises(SerializationError, match="is no number"):
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
    (FLAT, struct(id=pa.int64(), name=pa.string()), r"no column for the field \$\.score"),
    (
        FLAT,
        struct(id=pa.int64(), name=pa.string(), score=pa.string()),
        r"string does not fit Avro's double at \$\.score",
    ),
    (
        FLAT,
        struct(id=pa.int64(), name=pa.string(), score=pa.float64(), x=pa.int8()),
        r"\$\.x is there and record R has no such field; drop it",
    ),
    (FLAT, pa.int64(), "record R takes a struct"),
    ("int", pa.int64(), "int64 does not fit Avro's int at"),
    ("long", pa.uint64(), "uint64 does not fit"),
    ("float", pa.float64(), "does not fit Avro's float"),
    ("string", pa.binary(), "does not fit Avro's string"),
    ("bytes", pa.string(), "does not fit Avro's bytes"),
    (logical("long", "timestamp-millis"), pa.timestamp("us"), "needs a time zone"),
    (logical("long", "local-timestamp-millis"), pa.timestamp("us", "UTC"), "must have no time zone"),
    (logical("bytes", "decimal", precision=4, scale=2), pa.float64(), "cast it to decimal"),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.int32(), "it takes strings"),
    (ARRAY_OF_INT, pa.int32(), "does not fit Avro's array"),
    ({"type": "map", "values": "int"}, pa.map_(pa.int32(), pa.int32()), "maps with string keys"),
    (["int", "string"], pa.int32(), "takes a struct of member0, member1"),
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
        r"row 1: .*None \(NoneType\) is no int \(field \$\.a\)",
    ),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.array(["A", "B"]), "row 1: .*no symbol of E"),
    ({"type": "fixed", "name": "F", "size": 2}, pa.array([b"ab", b"abc"]), "row 1: .*3 bytes where 2 are needed"),
    (
        logical("bytes", "decimal", precision=3, scale=1),
        pa.array([Decimal("1.00"), Decimal("1.25")], pa.decimal128(5, 2)),
        "row 1: .*behind the point",
    ),
    (
        logical("fixed", "decimal", precision=9, scale=0, name="D", size=1),
        pa.array([Decimal(1), Decimal(200)], pa.decimal128(9, 0)),
        "row 1: .*does not fit 1 bytes",
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
    assert str(caught.value) == "[PRAVEGA-DESERIALIZATION] not Avro: 9 is no boolean (at row 1, field $.a[1].m['k'])"
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
    assert [error.reason for error in errors] == ["not Avro: not UTF-8 at byte 0 of the string"]


def test_a_timestamp_beyond_pythons_years_is_a_number_in_columns() -> None:
    serializer = AvroSerializer(logical("long", "timestamp-millis"))
    far = AvroSerializer("long").serialize(300_000_000_000_000)
    assert serializer.decode_column(pa.array([far])).cast(pa.int64()).to_pylist() == [300_000_000_000_000_000]
    with pytest.raises(DeserializationError, match="beyond Python's datetime"):
        serializer.deserialize(far)
    beyond = AvroSerializer("long").serialize(1 << 62)
    with pytest.raises(DeserializationError, match="beyond the range of a timestamp"):
        serializer.decode_column(pa.array([far, beyond]))


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
    with pytest.raises(SchemaError, match="contains itself; Arrow cannot hold that"):
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
        with pytest.raises(LimitExceededError, match="items that take no bytes"):
            serializer.deserialize(bomb)
        with pytest.raises(LimitExceededError, match="items that take no bytes"):
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
    with pytest.raises(LimitExceededError, match=r"values of 1048581 bytes take more than 60 MiB of memory"):
        serializer.deserialize(bomb)
    with pytest.raises(LimitExceededError, match="row 1"):
        serializer.decode_column(pa.array([some, bomb]))


def test_the_last_entry_of_a_key_counts() -> None:
    serializer = AvroSerializer({"type": "map", "values": "int"})
    event = b"\4\2a\2\2b\4\2\2a\6\0"
    assert serializer.deserialize(event) == {"a": 3, "b": 2}
    for events in ([event], [event, serializer.serialize({"a": 1}), event]):
        assert serializer.decode_column(pa.array(events))[0].as_py() == [("a", 3), ("b", 2)]


def test_items_of_no_bytes_are_counted_over_the_whole_event() -> None:
    serializer = AvroSerializer({"type": "array", "items": {"type": "array", "items": "null"}})
    inner = AvroSerializer("long").serialize(MAX_EMPTY_ITEMS // 2) + b"\0"
    assert len(serializer.deserialize(b"\x04" + inner * 2 + b"\0")) == 2
    with pytest.raises(LimitExceededError):
        serializer.deserialize(b"\x06" + inner * 3 + b"\0")


@pytest.mark.parametrize("count", [MAX_THIN_ROUNDS - 1, MAX_THIN_ROUNDS, MAX_THIN_ROUNDS + 1, 20 * MAX_THIN_ROUNDS])
@pytest.mark.parametrize("rows", [1, THIN - 1, THIN])
def test_long_arrays_of_few_rows_take_the_plain_path(count: int, rows: int) -> None:
    serializer = AvroSerializer(ARRAY_OF_INT)
    values = [[1], *[list(range(count))] * rows, [2, 3]]
    column = pa.array([serializer.serialize(value) for value in values])
    fast = serializer._columns.fast
    assert fast is not None
    thin = sum(rows + (item < 1) + (item < 2) < THIN for item in range(count))
    assert len(fast(column).suspects) == (rows if thin > MAX_THIN_ROUNDS else 0)
    assert serializer.decode_column(column).to_pylist() == values


def test_arrays_in_arrays_of_one_event_do_not_take_forever() -> None:
    serializer = AvroSerializer({"type": "array", "items": ARRAY_OF_INT})
    event = serializer.serialize([[1] * 500] * 500)
    started = clock.monotonic()
    assert len(serializer.decode_column(pa.array([event, event]))[0]) == 500
    assert clock.monotonic() - started < 5, "a round for each of 250,000 items would take much longer"


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
    with pytest.raises(DeserializationError, match="a number of more than"):
        serializer.deserialize(number)
    with pytest.raises(DeserializationError, match="a number of more than"):
        serializer.decode_column(pa.array([b"\x02", number]))


def test_the_empty_column() -> None:
    serializer = AvroSerializer(FLAT)
    empty = serializer.decode_column(pa.array([], pa.binary()))
    assert (len(empty), empty.type) == (0, serializer.arrow_type)
    assert len(serializer.encode_column(empty)) == 0
    assert serializer.decode_column(pa.chunked_array([], pa.binary())).type == serializer.arrow_type


# The compiled writer


def test_the_compiled_writer_leaves_what_it_does_not_take() -> None:
    serializer = AvroSerializer(FLAT)
    values = [{"id": i, "name": None, "score": 0.5} for i in range(3)]
    column = pa.array(values, serializer.arrow_type)
    writer = serializer._column_writer
    assert writer.compiled(column) is not None
    missing = pa.array([{"id": None, "name": None, "score": 0.5}], serializer.arrow_type)
    assert writer.compiled(missing) is None
    with pytest.raises(SerializationError, match=r"row 0: .*field \$\.id"):
        serializer.encode_column(missing)
    for schema in (
        ARRAY_OF_INT,
        record(("b", "bytes")),
        record(("d", logical("bytes", "decimal", precision=2))),
        record(),
    ):
        assert AvroSerializer(schema)._column_writer._compiled is None


FORKED = """
import os, signal, pyarrow as pa
from pravega_serde.avro import AvroSerializer
serializer = AvroSerializer({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
column = pa.array([{"a": 1}], serializer.arrow_type)
assert serializer._column_writer.compiled(column) is not None
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


def test_an_interrupt_is_not_taken_for_a_panic(monkeypatch: pytest.MonkeyPatch) -> None:
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
