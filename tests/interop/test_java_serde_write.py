"""Java's deserializer reads Python's bytes as equal objects."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
import zoneinfo
from collections import deque
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pravega_serde import java
from pravega_serde.java import ClassDescriptor, JavaSerializer
from tests.interop._java_values import JavaValues
from tests.unit.java._matching import assert_matches
from tests.unit.java._strategies import values

SERIALIZER = JavaSerializer()
ANIMAL = ClassDescriptor.of("Model$Animal", 1, {"legs": "int", "name": "java.lang.String", "shared": "long"})
DOG = ClassDescriptor.of(
    "Model$Dog", -2, {"good": "boolean", "grade": "char", "shared": "long", "friend": "Model$Animal"}, ANIMAL
)
SHAPE = ClassDescriptor("Model$Shape", 0, 0x12, (), ClassDescriptor("java.lang.Enum", 0, 0x12))
CIRCLE, SQUARE = java.JavaEnum(SHAPE, "CIRCLE"), java.JavaEnum(SHAPE, "SQUARE")
# A record's UID is not compared by Java, so 0 will do.
POINT = ClassDescriptor.of("Model$Point", 0, {"x": "int", "y": "double", "label": "java.lang.String"})


@pytest.fixture(scope="module")
def java_values(tmp_path_factory: pytest.TempPathFactory) -> JavaValues:
    return JavaValues(tmp_path_factory.mktemp("java_serde"))


@pytest.fixture(scope="module")
def money(java_values: JavaValues) -> ClassDescriptor:
    """Learned from a stream: its serialVersionUID is one that only a JVM can compute for some classes."""
    event = next(event for event in java_values.generate() if event["case"] == "money_empty")
    return SERIALIZER.learn(bytes.fromhex(event["hex"]))


def agree(java_values: JavaValues, written: list[Any]) -> None:
    answers = java_values.verify([SERIALIZER.serialize(value) for value in written])
    assert len(answers) == len(written)
    for value, answer in zip(written, answers, strict=True):
        assert "error" not in answer, f"{value!r}: {answer['error']}"
        try:
            assert_matches(answer["value"], value)
        except AssertionError as error:
            raise AssertionError(f"{value!r} became {answer['value']}: {error}") from error


def collect(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """Random values, to be verified by one JVM together."""
    found: list[Any] = []

    @settings(max_examples=count, database=None, phases=[Phase.generate])
    @given(strategy)
    def keep(value: Any) -> None:
        found.append(value)

    keep()
    return found


def every_kind() -> list[Any]:
    shared = ["shared"]
    cyclic: list[Any] = [1]
    cyclic.append(cyclic)
    dog = DOG.new(legs=4, name="Rex", good=True, grade="\u20ac", shared=7)
    dog["friend"] = dog
    return [
        *(0, 1, -1, 127, 128, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**400),
        *(0.0, -0.0, float("inf"), float("nan"), 5e-324, 1.7976931348623157e308),
        *("", "a", "\0", "\u00e9", "\u20ac", "\U0001f600", "\ud800", "\udc00x", "x" * 65535, "\u00e9" * 40000),
        *(True, False, None, b"", b"\x00\xff", bytearray(b"abc"), memoryview(b"xyz")),
        *(java.Byte(-128), java.Short(32767), java.Long(5), java.Float(0.1)),
        *(java.Character("\uffff"), java.BigInteger(-129)),
        *(decimal.Decimal(text) for text in ("0", "-1.50", "1E+30", "123456789.000000001", "0.00")),
        uuid.UUID(int=2**128 - 1),
        dt.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=zoneinfo.ZoneInfo("UTC")),
        dt.time(0), dt.time(23, 59, 59), dt.timedelta(0), dt.date.min, dt.date.max,
        [], [[]], (1, "x"), {}, {"k": {"k": {}}}, set(), {1, 2, 3}, frozenset("ab"), deque([1, 2]),
        [shared, shared], cyclic, {i: str(i) for i in range(1000)}, {str(i) for i in range(500)},
        {"a": 1, None: 2, 2.5: 3, uuid.UUID(int=5): 4, 10**30: 5},
        np.array([1, 2], "i4"), np.array([[1, 2]])[0], np.array([True]), np.float32(1.5), np.int64(7), np.int8(-1),
        java.JavaArray(["a", None], java.JavaArray(["x"]).descriptor),
        CIRCLE, [SQUARE, SQUARE, CIRCLE],
        java.JavaMap({CIRCLE: 1}, "java.util.EnumMap"), java.JavaSet([SQUARE], "java.util.EnumSet"),
        java.JavaList([None], "java.util.ImmutableCollections$ListN", {"nulls": True}),
        java.JavaSet(["only"], "java.util.ImmutableCollections$SetN"),
        java.JavaMap({"k": 1}, "java.util.ImmutableCollections$MapN"),
        java.JavaList([], "java.util.Collections$EmptyList"), java.JavaSet([1], "java.util.Collections$SingletonSet"),
        java.JavaMap({"k": "v"}, "java.util.Collections$SingletonMap"),
        java.JavaMap({"b": 1, "a": 2}, "java.util.Properties"),
        java.SetView.of("java.util.Collections$UnmodifiableSet", {1, 2}),
        java.JavaList([3, 1, 2], "java.util.PriorityQueue"),
        dog, [dog, dog], POINT.new(x=-1, y=0.5, label="p"), ANIMAL.new(),
    ]  # fmt: skip


def test_every_kind_of_value(java_values: JavaValues) -> None:
    agree(java_values, [value for value in every_kind() if not isinstance(value, (bytearray, memoryview, np.generic))])


def test_buffers_and_numpy_scalars_are_bytes_and_boxes(java_values: JavaValues) -> None:
    written = [
        bytearray(b"abc"),
        memoryview(b"xyz"),
        np.float32(1.5),
        np.int64(7),
        np.int8(-1),
        np.bool_(True),
        np.float64(2),
    ]
    expected = [b"abc", b"xyz", java.Float(1.5), java.Long(7), java.Byte(-1), True, 2.0]
    for value, answer in zip(
        expected, java_values.verify([SERIALIZER.serialize(value) for value in written]), strict=True
    ):
        assert_matches(answer["value"], value)


def test_random_values(java_values: JavaValues) -> None:
    written = collect(values, 500)
    assert len(written) >= 400
    agree(java_values, written)


def test_random_columns(java_values: JavaValues) -> None:
    columns = {
        "java.lang.String": pa.array(collect(st.text(max_size=20), 100), pa.string()),
        "java.lang.Long": pa.array(collect(st.integers(-(2**63), 2**63 - 1), 50), pa.int64()),
        "java.lang.Boolean": pa.array([True, False]),
        "java.lang.Float": pa.array([0.5, float("nan")], pa.float32()),
        "java.lang.Short": pa.array([-5, 7], pa.int16()),
        "byte[]": pa.array(collect(st.binary(max_size=20), 30), pa.binary()),
    }
    for name, column in columns.items():
        serializer = JavaSerializer(name)
        events = serializer.encode_column(column)
        assert serializer.decode_column(events).equals(column) or name.endswith("Float")
        answers = java_values.verify(events.to_pylist())
        for event, answer in zip(events.to_pylist(), answers, strict=True):
            assert answer["identical"], answer
            assert_matches(answer["value"], SERIALIZER.deserialize(event))


def test_flat_objects_from_a_column(java_values: JavaValues) -> None:
    table = pa.table({"x": [1, -2, 3], "y": [0.5, None, float("inf")], "label": ["a", None, "\U0001f600"]})
    serializer = JavaSerializer(POINT)
    for rows in (table.slice(0, 2), table):  # the second one has text that is written by row
        events = serializer.encode_column(rows.to_batches()[0]).to_pylist()
        for answer, row in zip(java_values.verify(events), rows.to_pylist(), strict=True):
            found = {name: field and field["v"] for name, field in answer["value"]["f"].items()}
            assert found == {
                "x": row["x"],
                "y": {None: "0.0", 0.5: "0.5"}.get(row["y"], "Infinity"),
                "label": row["label"],
            }


def test_values_take_the_declared_type_of_their_field(java_values: JavaValues, money: ClassDescriptor) -> None:
    at = dt.datetime(2020, 1, 2, 3, 4, 5, 6000, tzinfo=dt.UTC)
    made = money.new(
        cents=5, count=6, rate=1, paid=True, small=7, tiny=-8, ratio=0.25, grade="g", currency="EUR", exact=12, when=at,
        at=at.astimezone(zoneinfo.ZoneInfo("Europe/Paris")), raw=b"\1", days=[1, 2], tags=["x", None],
        history=[java.Long(1)], more={"k": []},
    )  # fmt: skip
    (answer,) = java_values.verify([SERIALIZER.serialize(made)])
    assert "error" not in answer, answer
    fields = answer["value"]["f"]
    types = {name: field["t"].rpartition(".")[2] for name, field in fields.items()}
    assert types == {
        "cents": "Long", "count": "Integer", "rate": "Double", "paid": "Boolean", "small": "Short", "tiny": "Byte",
        "ratio": "Float", "grade": "Character", "currency": "String", "exact": "BigDecimal", "when": "Date",
        "at": "Instant", "raw": "byte[]", "days": "int[]", "tags": "String[]", "history": "ArrayList",
        "more": "HashMap",
    }  # fmt: skip
    assert (fields["cents"]["v"], fields["at"]["v"], fields["when"]["millis"]) == (
        5,
        "2020-01-02T03:04:05.006Z",
        1577934245006,
    )


def test_a_stream_that_java_cannot_know_the_class_of_is_javas_error(java_values: JavaValues) -> None:
    unknown = ClassDescriptor.of("com.example.NotHere", 1)
    wrong = ClassDescriptor.of("Model$Animal", 99, {"legs": "int"})
    for made, reason in ((unknown.new(), "ClassNotFound"), (wrong.new(), "InvalidClass")):
        (answer,) = java_values.verify([SERIALIZER.serialize(made)])
        assert reason in answer["error"]
