"""Columns of Java events: the same values and bytes as the rows, for all contents."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import pickle
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_serde import DeserializationError, SchemaError, SerializationError, Serializer
from pravega_serde.java import ClassDescriptor, JavaArray, JavaEnum, JavaList, JavaObject, JavaSerializer, Long

ANY = JavaSerializer()
LINES = (Path(__file__).parents[2] / "vectors/java_serializer.jsonl").read_text().splitlines()
EVENTS = {vector["case"]: bytes.fromhex(vector["hex"]) for vector in map(json.loads, LINES) if "hex" in vector}
BASE = ClassDescriptor.of("com.example.Base", 1, {"id": "long", "label": "java.lang.String"})
FLAT = ClassDescriptor.of(
    "com.example.Flat",
    -5,
    {
        "b": "byte", "c": "char", "d": "double", "f": "float", "i": "int", "s": "short", "z": "boolean",
        "name": "java.lang.String", "level": "java.lang.Integer", "limit": "java.lang.Double",
        "more": "java.lang.Integer", "yes": "java.lang.Boolean", "grade": "java.lang.Character",
    },
    BASE,
)  # fmt: skip
BITS = {"b": 8, "s": 16, "i": 32, "id": 64, "level": 32, "more": 32}
CHARS = st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])
TEXTS = st.none() | st.text(max_size=6) | st.sampled_from(["\0", "\U0001f600", "\u00e9", "x" * 300])
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for name, bits in BITS.items()},
    "c": CHARS,
    "d": st.floats(allow_nan=False),
    "f": st.floats(width=32, allow_nan=False),
    "z": st.booleans(),
    "name": TEXTS,
    "label": TEXTS,
    "limit": st.none() | st.floats(allow_nan=False),
    "yes": st.none() | st.booleans(),
    "grade": st.none() | CHARS,
}
FIELDS["level"] = st.none() | FIELDS["level"]
FIELDS["more"] = st.none() | FIELDS["more"]
ROWS = st.lists(st.none() | st.fixed_dictionaries(FIELDS), max_size=8)


def test_the_protocol_is_followed() -> None:
    public = {member for member in vars(Serializer) if not member.startswith("_")}
    assert public <= set(dir(JavaSerializer))


@given(ROWS)
@settings(deadline=None)
def test_flat_objects_both_ways(rows: list[dict[str, Any] | None]) -> None:
    serializer = JavaSerializer(FLAT)
    column = pa.array(rows, serializer.arrow_type)
    events = serializer.encode_column(column)
    given = [row and {name: value for name, value in row.items() if value is not None} for row in rows]
    plain = [None if row is None else ANY.serialize(FLAT.new(**row)) for row in given]
    # Java would refer to a string that comes twice in one object; both forms are the same object to it.
    for event, expected in zip(events.to_pylist(), plain, strict=True):
        assert (event is None) == (expected is None)
        assert event is None or ANY.deserialize(event).fields == ANY.deserialize(expected).fields
    assert serializer.decode_column(events).to_pylist() == column.to_pylist()
    assert serializer.decode_column(pa.array(plain, pa.binary())).to_pylist() == column.to_pylist()


def suspects(serializer: JavaSerializer, events: pa.Array) -> list[int]:
    """Rows that the fast path leaves to the plain one."""
    assert serializer.column_reader.fast is not None
    return serializer.column_reader.fast(events).suspects.tolist()


def test_the_fast_ways_are_taken() -> None:
    serializer = JavaSerializer(FLAT)
    row = dict.fromkeys(FIELDS) | {"b": 1, "c": "x", "d": 0.5, "f": 2.0, "i": 3, "s": 4, "z": True, "id": 5}
    column = pa.array(
        [row, row | {"name": "\U0001f600"}, row | {"level": 1, "more": 2, "limit": 0.25}], serializer.arrow_type
    )
    with mock.patch.object(JavaSerializer, "serialize", side_effect=AssertionError):
        events = serializer.encode_column(column)
    assert suspects(serializer, events) == [1]
    text = JavaSerializer("java.lang.String")
    assert suspects(text, text.encode_column(pa.array(["a", "\u00e9\ud55c", "\0"]))) == [2]


def test_a_string_that_comes_twice_is_one_object_in_java() -> None:
    made = FLAT.new(name="twice")
    made["label"] = made["name"]
    serializer = JavaSerializer(FLAT)
    event = ANY.serialize(made)
    assert b"twice" in event.replace(b"twice", b"", 1) or event.count(b"twice") == 1
    assert suspects(serializer, pa.array([event])) == []
    (row,) = serializer.decode_column(pa.array([event])).to_pylist()
    assert (row["name"], row["label"]) == ("twice", "twice")


SCALARS: list[tuple[str, pa.Array]] = [
    ("java.lang.String", pa.array(["", "a\0\U0001f600", None, "x" * 70_000])),
    ("java.lang.Boolean", pa.array([True, None, False])),
    ("java.lang.Byte", pa.array([-128, None], pa.int8())),
    ("java.lang.Short", pa.array([-32768, 1], pa.int16())),
    ("java.lang.Integer", pa.array([2**31 - 1, None], pa.int32())),
    ("java.lang.Long", pa.array([None, -(2**63)], pa.int64())),
    ("java.lang.Float", pa.array([1.5, None], pa.float32())),
    ("java.lang.Double", pa.array([-0.0, 1e300])),
    ("java.lang.Character", pa.array(["x", "\u20ac", None])),
    ("byte[]", pa.array([b"", b"\0\xff", None])),
    ("java.math.BigDecimal", pa.array([decimal.Decimal("1.5"), None], pa.decimal128(38, 18))),
    ("java.math.BigInteger", pa.array([decimal.Decimal(10**30), None], pa.decimal128(38, 0))),
    ("java.util.Date", pa.array([dt.datetime(2020, 1, 2, 3, 4, 5, 6000)], pa.timestamp("us", "UTC"))),
    ("java.time.Instant", pa.array([dt.datetime(1960, 1, 2, 3, 4, 5, 6)], pa.timestamp("us", "UTC"))),
    ("java.time.LocalDateTime", pa.array([dt.datetime(2020, 1, 2), None], pa.timestamp("us"))),
    ("java.time.LocalDate", pa.array([dt.date(2020, 1, 2)])),
    ("java.time.LocalTime", pa.array([dt.time(1, 2, 3, 4)])),
    ("java.time.Duration", pa.array([dt.timedelta(-1)], pa.duration("us"))),
    ("java.util.UUID", pa.array(["123e4567-e89b-12d3-a456-426614174000", None])),
    ("int[]", pa.array([[1, 2], [], None], pa.list_(pa.field("element", pa.int32())))),
    ("java.lang.String[]", pa.array([["a", None]], pa.list_(pa.field("element", pa.string())))),
]


@pytest.mark.parametrize(("name", "column"), SCALARS, ids=[name for name, _ in SCALARS])
def test_one_value_an_event(name: str, column: pa.Array) -> None:
    serializer = JavaSerializer(name)
    assert serializer.arrow_type == column.type
    serializer.check_encodable(column.type)
    events = serializer.encode_column(column)
    assert [event is None for event in events.to_pylist()] == [value is None for value in column.to_pylist()]
    assert serializer.decode_column(events).equals(column)
    copied = pickle.loads(pickle.dumps(serializer))
    assert copied.encode_column(column[1:]).equals(events[1:])


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.int64(), pa.int16(), pa.binary(), pa.bool_(), pa.float32(), pa.date32()]
)
def test_natural_types_need_no_java_type(kind: pa.DataType) -> None:
    column = pa.nulls(2, kind)
    assert ANY.encode_column(column).to_pylist() == [None, None]
    ANY.check_encodable(kind)


def test_lists_and_maps_of_natural_values() -> None:
    column = pa.array([[("k", [1, None])]], pa.map_(pa.string(), pa.list_(pa.int64())))
    (event,) = ANY.encode_column(column).to_pylist()
    value = ANY.deserialize(event)
    assert value == {"k": [1, None]}
    assert type(value["k"][0]) is Long
    typed = JavaSerializer(arrow_type=column.type)
    assert typed.decode_column(pa.array([event])).equals(column)


def test_what_cannot_be_is_said_before_any_data() -> None:
    with pytest.raises(SchemaError, match="set the type of the column"):
        _ = ANY.arrow_type
    with pytest.raises(SchemaError, match="cannot compute the serialVersionUID"):
        ANY.check_encodable(pa.struct({"a": pa.int32()}))
    with pytest.raises(SchemaError, match="has no field 'nope'"):
        JavaSerializer(FLAT).check_encodable(pa.struct({"nope": pa.int32()}))
    with pytest.raises(SchemaError, match="cannot be converted to"):
        JavaSerializer(FLAT).check_encodable(pa.struct({"i": pa.list_(pa.int32())}))
    with pytest.raises(SchemaError, match="has no known Arrow type"):
        JavaSerializer("com.example.Unknown")
    with pytest.raises(SchemaError, match="set arrow_type="):
        _ = JavaSerializer(ClassDescriptor.of("a.B", 1, {"color": "a.Color"})).arrow_type
    with pytest.raises(SchemaError, match="not an object"):
        JavaSerializer(sample="aced000570")


def test_errors_name_the_row() -> None:
    with pytest.raises(SerializationError, match=r"row 1: .*does not fit"):
        JavaSerializer("java.lang.Short").encode_column(pa.array([1, 2**40]))
    events = pa.array([EVENTS["int_42"], EVENTS["str_ascii"], EVENTS["sensor_1"], b"junk"])
    errors: list[DeserializationError] = []
    values = JavaSerializer("java.lang.Integer").decode_column(events, on_error=errors.append)
    assert values.to_pylist() == [42, None, None, None]
    assert [error.row for error in errors] == [1, 2, 3]
    with pytest.raises(DeserializationError, match=r"row 0"):
        JavaSerializer(sample=EVENTS["sensor_1"]).decode_column(events)
    with pytest.raises(DeserializationError, match="surrogate"):
        JavaSerializer("java.lang.String").decode_column(pa.array([ANY.serialize("\ud800")]))
    for number in (decimal.Decimal("1E-20"), decimal.Decimal("1E+25")):
        with pytest.raises(DeserializationError, match=r"does not fit into decimal128\(38, 18\): too many digits"):
            JavaSerializer("java.math.BigDecimal").decode_column(pa.array([ANY.serialize(number)]))


def test_a_struct_of_chosen_fields() -> None:
    chosen = pa.struct(
        {
            "name": pa.string(),
            "color": pa.string(),
            "ints": pa.list_(pa.int64()),
            "map": pa.map_(pa.string(), pa.int64()),
        }
    )
    fields = dict(ANY.deserialize(EVENTS["alltypes_1"]).fields)
    columns = {name: kind for name, kind in zip(chosen.names, chosen.fields, strict=True) if name in fields}
    serializer = JavaSerializer(sample=EVENTS["alltypes_1"], arrow_type=pa.struct(list(columns.values())))
    (row,) = serializer.decode_column(pa.array([EVENTS["alltypes_1"]])).to_pylist()
    assert row == {"color": "GREEN", "ints": [1, -1, 0], "map": [("k1", 1), ("n", None)]}


def test_subclasses_are_objects_of_their_class() -> None:
    base = JavaSerializer(BASE)
    event = ANY.serialize(FLAT.new(id=7, label="l"))
    assert base.decode_column(pa.array([event])).to_pylist() == [{"id": 7, "label": "l"}]
    other = ANY.serialize(JavaObject(ClassDescriptor.of("com.example.Other", 1)))
    with pytest.raises(DeserializationError, match=r"holds com\.example\.Other, not com\.example\.Base"):
        base.decode_column(pa.array([other]))


def test_shared_lists_do_not_multiply() -> None:
    level: list[Any] = [1] * 300
    for _ in range(3):
        level = [level] * 300
    kind = pa.int64()
    for _ in range(4):
        kind = pa.list_(kind)
    with pytest.raises(DeserializationError, match="shared lists unfold"):
        JavaSerializer(arrow_type=kind).decode_column(pa.array([ANY.serialize(level)]))


def test_slices_and_chunks() -> None:
    serializer = JavaSerializer("java.lang.Integer")
    column = pa.array(np.arange(100, dtype=np.int32))
    events = serializer.encode_column(column)
    assert serializer.decode_column(events[10:20]).equals(column[10:20])
    assert serializer.decode_column(pa.chunked_array([events[:50], events[50:]])).equals(column)
    assert serializer.encode_column(column[50:]).equals(events[50:])


# Values outside Arrow or Python


FAR = dt.timedelta(days=200_000_000)
TASK = ClassDescriptor.of("com.example.Task", 3, {"id": "int", "takes": "java.time.Duration"})


def test_a_value_that_arrow_cannot_hold_is_a_bad_row_like_any_other() -> None:
    durations = JavaSerializer("java.time.Duration")
    events = pa.array([ANY.serialize(dt.timedelta(1)), ANY.serialize(FAR), b"junk", ANY.serialize(dt.timedelta(2))])
    errors: list[DeserializationError] = []
    values = durations.decode_column(events, on_error=errors.append)
    assert values.to_pylist() == [dt.timedelta(1), None, None, dt.timedelta(2)]
    assert [error.row for error in errors] == [1, 2]
    with pytest.raises(DeserializationError, match=r"200000000 days.*row 1"):
        durations.decode_column(events)


def test_the_place_of_such_a_value_is_reported() -> None:
    tasks = JavaSerializer(TASK)
    events = pa.array([ANY.serialize(TASK.new(id=1, takes=FAR)), ANY.serialize(TASK.new(id=2))])
    errors: list[DeserializationError] = []
    assert tasks.decode_column(events, on_error=errors.append).to_pylist() == [None, {"id": 2, "takes": None}]
    assert [(error.row, error.field_path) for error in errors] == [(0, "$.takes")]
    lists = JavaSerializer(arrow_type=pa.list_(pa.duration("us")))
    with pytest.raises(DeserializationError) as caught:
        lists.decode_column(pa.array([ANY.serialize([]), ANY.serialize([dt.timedelta(1), FAR])]))
    assert (caught.value.row, caught.value.field_path) == (1, "$[1]")


@pytest.mark.parametrize(
    "name",
    ["java.util.Date", "java.sql.Timestamp", "java.time.Instant", "java.time.LocalDateTime", "java.time.LocalDate"],
)
@pytest.mark.parametrize("seconds", [253_402_300_800, -62_135_596_801], ids=["year 10000", "year 0"])
def test_times_beyond_pythons_calendar_are_refused_with_their_row(name: str, seconds: int) -> None:
    serializer = JavaSerializer(name)
    kind = serializer.arrow_type
    number = seconds // 86_400 if pa.types.is_date(kind) else seconds * 1_000_000
    column = pa.array([0, number], pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)
    with pytest.raises(SerializationError, match=r"row 1: a time beyond the years 1 to 9999") as caught:
        serializer.encode_column(column)
    assert (caught.value.row, caught.value.field_path) == (1, "$")


def test_nanoseconds_are_rounded_down_whatever_the_class() -> None:
    column = pa.array([1_999], pa.timestamp("ns", "America/New_York"))
    for name in ("java.time.Instant", "java.sql.Timestamp"):
        events = JavaSerializer(name).encode_column(column)
        assert JavaSerializer(name).decode_column(events).cast(pa.int64()).to_pylist() == [1]
    value = ANY.deserialize(ANY.encode_column(column)[0].as_py())
    assert value == dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC)
    assert value.tzinfo is dt.UTC  # an Instant, with any zone of the column


def test_a_number_that_the_field_cannot_hold_is_refused_though_the_column_type_could() -> None:
    pair = ClassDescriptor.of("com.example.Pair", 1, {"i": "int", "boxed": "java.lang.Integer"})
    serializer = JavaSerializer(pair, arrow_type=pa.struct([("i", pa.int64()), ("boxed", pa.int64())]))
    good = pa.array([{"i": 1, "boxed": 2}], serializer.arrow_type)
    assert serializer.decode_column(serializer.encode_column(good)).equals(good)
    for name in ("i", "boxed"):
        with pytest.raises(SerializationError, match="row 1"):
            serializer.encode_column(pa.array([{"i": 1}, {name: 1 << 40}], serializer.arrow_type))
    with pytest.raises(SerializationError, match="row 0"):
        JavaSerializer("java.lang.Integer", arrow_type=pa.int64()).encode_column(pa.array([1 << 40]))


def test_bytes_are_not_a_string_and_numbers_not_a_date() -> None:
    named = ClassDescriptor.of("com.example.Named", 1, {"name": "java.lang.String", "at": "java.util.Date"})
    serializer = JavaSerializer(named)
    with pytest.raises(SerializationError, match="row 0"):
        serializer.encode_column(pa.array([{"name": b"\xff"}], pa.struct([("name", pa.large_binary())])))
    events = serializer.encode_column(pa.array([{"at": 1_000_000}]))
    assert type(ANY.deserialize(events[0].as_py())["at"]).__name__ == "Date"


# Samples


COLOR = ClassDescriptor("com.example.Color", 0, 0x12, (), ClassDescriptor("java.lang.Enum", 0, 0x12))
LINE = ClassDescriptor.of("com.example.Line", 1, {"count": "int", "color": "com.example.Color"})
CART = ClassDescriptor.of(
    "com.example.Cart",
    1,
    {
        "id": "int", "color": "com.example.Color", "first": "com.example.Line", "lines": "java.util.List",
        "seen": "java.util.Set", "by_name": "java.util.Map", "any": "java.lang.Object", "all": "com.example.Color[]",
        "queue": "java.util.LinkedList",
    },
)  # fmt: skip


def _cart() -> bytes:
    red, blue = JavaEnum(COLOR, "RED"), JavaEnum(COLOR, "BLUE")
    value = CART.new(
        id=1,
        color=red,
        first=LINE.new(count=1, color=red),
        lines=[LINE.new(count=2, color=blue)],
        seen={blue},
        by_name={"k": red},
        any=Long(7),
        all=JavaArray([red], ClassDescriptor("[Lcom.example.Color;", 5)),
        queue=JavaList(["a"], "java.util.LinkedList"),
    )
    return ANY.serialize(value)


def test_a_sample_reports_what_the_class_does_not() -> None:
    serializer = pickle.loads(pickle.dumps(JavaSerializer(sample=_cart())))
    line = {"count": 2, "color": "BLUE"}
    rows = [
        {
            "id": 2, "color": "BLUE", "first": line, "lines": [line, None, line], "seen": ["RED", "BLUE"],
            "by_name": [("a", "RED"), ("b", None)], "any": 9, "all": ["RED", None], "queue": ["x"],
        },
        dict.fromkeys(CART.field_names) | {"id": 3},
    ]  # fmt: skip
    column = pa.array(rows, serializer.arrow_type)
    serializer.check_encodable(column.type)
    events = serializer.encode_column(column)
    assert [
        sorted(each["seen"]) if each["seen"] else None for each in serializer.decode_column(events).to_pylist()
    ] == [["BLUE", "RED"], None]
    value = ANY.deserialize(events[0].as_py())
    assert value["color"] == JavaEnum(COLOR, "BLUE")
    assert value["first"]["color"] == JavaEnum(COLOR, "BLUE")
    assert [None if each is None else each.class_name for each in value["lines"]] == [LINE.name, None, LINE.name]
    assert set(value["seen"]) == {JavaEnum(COLOR, "RED"), JavaEnum(COLOR, "BLUE")}
    assert value["by_name"] == {"a": JavaEnum(COLOR, "RED"), "b": None}
    assert (type(value["any"]), value["any"]) == (Long, 9)
    assert value["all"].java_class == "[Lcom.example.Color;"
    assert value["queue"].java_class == "java.util.LinkedList"


def test_what_a_sample_does_not_tell_is_asked_for_only_where_it_is_written() -> None:
    empty = JavaSerializer(sample=ANY.serialize(CART.new(id=1)))
    (event,) = empty.encode_column(pa.array([{"id": 5}], pa.struct([("id", pa.int32())]))).to_pylist()
    assert ANY.deserialize(event)["id"] == 5
    with pytest.raises(SchemaError, match=r"type com\.example\.Color of .*Cart\.color.*neither null nor empty"):
        empty.check_encodable(pa.struct([("color", pa.string())]))
    # A string in place of a constant would be an event that Java cannot read.
    with pytest.raises(SchemaError, match=r"com\.example\.Cart\.color.*only an event defines"):
        JavaSerializer(CART, arrow_type=pa.struct([("color", pa.string())])).encode_column(pa.array([{"color": "RED"}]))


def test_a_row_that_is_a_dict_is_an_object_of_the_class_as_in_a_column() -> None:
    serializer = JavaSerializer(sample=_cart())
    rows: list[dict[str, Any]] = [
        {"id": 2, "color": "BLUE", "lines": [{"count": 2, "color": "RED"}]},
        {"id": 3, "color": None, "lines": []},
        {"id": 4},
    ]
    for row in rows:
        wanted = pa.struct([each for each in serializer.arrow_type if each.name in row])
        (event,) = serializer.encode_column(pa.array([row], wanted)).to_pylist()
        assert serializer.serialize(row) == event
        assert ANY.deserialize(event).class_name == CART.name
    assert JavaSerializer(sample=ANY.serialize(CART.new(id=1))).serialize({"id": 4}) == serializer.serialize({"id": 4})
    with pytest.raises(SchemaError, match="colour"):
        serializer.serialize({"colour": "RED"})
    assert ANY.deserialize(ANY.serialize({"id": 4})) == {"id": 4}, "no class is known: a map"


def test_a_row_with_a_map_is_written_as_in_a_column() -> None:
    bag = ClassDescriptor.of("com.example.Bag", 5, {"id": "int", "prices": "java.util.Map", "tags": "java.util.List"})
    sample = ANY.serialize(bag.new(id=1, prices={"tea": 1.5}, tags=["a"]))
    serializer = JavaSerializer(sample=sample)
    row = {"id": 2, "prices": {"e0": 0.25, "milk": None}, "tags": ["x", "y"]}
    kind = serializer.arrow_type
    (event,) = serializer.encode_column(pa.array([{**row, "prices": list(row["prices"].items())}], kind)).to_pylist()
    assert serializer.serialize(row) == event
    assert ANY.deserialize(event)["prices"] == {"e0": 0.25, "milk": None}
    for wrong in ({"tags": "xy"}, {"tags": {"x": 1}}, {"prices": "ab"}, {"prices": ["ab"]}):
        with pytest.raises(SerializationError, match=next(iter(wrong))):
            serializer.serialize({**row, **wrong})


@pytest.mark.parametrize("value", ["RED", 5, {"name": "RED"}])
def test_a_field_of_an_own_class_takes_no_value_that_java_could_not_put_there(value: Any) -> None:
    with pytest.raises(SerializationError, match=r"com/example/Color.*JavaEnum"):
        ANY.serialize(CART.new(id=1, color=value))
    with pytest.raises(SerializationError, match=r"com/example/Color.*JavaEnum"):
        ANY.serialize(JavaArray([value], ClassDescriptor("[Lcom.example.Color;", 5)))
    assert ANY.deserialize(ANY.serialize(JavaArray(["RED", 5], ClassDescriptor("[Ljava.lang.Object;", 5)))) == [
        "RED",
        5,
    ]


@pytest.mark.parametrize("wrong", [str, dict, 5, JavaSerializer])
def test_what_is_not_a_class_is_said_when_the_serializer_is_made(wrong: Any) -> None:
    with pytest.raises(SchemaError, match="invalid java_type"):
        JavaSerializer(wrong)


def test_what_is_not_a_sample_is_said_when_the_serializer_is_made() -> None:
    with pytest.raises(SchemaError, match="invalid sample"):
        JavaSerializer(sample="not hex")
