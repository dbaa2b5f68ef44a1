"""The forms of values in Python: boxes, containers, dates, records; and what cannot be written."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import pickle
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_serde import DeserializationError, SerializationError, java
from pravega_serde.java import ClassDescriptor, JavaObject, JavaSerializer, dump_stream, load_stream
from pravega_serde.java.hashing import java_hash, map_capacity, set_capacity
from pravega_serde.java.jdk_classes import array_descriptor, jdk_descriptor
from pravega_serde.java.protocol import _code_units, decode_utf, encode_utf, from_units
from tests.unit.java._strategies import texts, values

SERIALIZER = JavaSerializer()


def again(value: Any) -> Any:
    return SERIALIZER.deserialize(SERIALIZER.serialize(value))


@given(values)
@settings(max_examples=150, deadline=None)
def test_what_was_read_is_written_as_the_same_bytes(value: Any) -> None:
    event = SERIALIZER.serialize(value)
    assert SERIALIZER.serialize(SERIALIZER.deserialize(event)) == event


@given(values)
@settings(max_examples=60, deadline=None)
def test_every_cut_of_random_values_is_an_error(value: Any) -> None:
    event = SERIALIZER.serialize(value)
    for size in {*range(0, len(event), max(1, len(event) // 50)), len(event) - 1}:
        with pytest.raises(DeserializationError):
            SERIALIZER.deserialize(event[:size])


@given(values)
@settings(max_examples=100, deadline=None)
def test_the_quick_ways_of_single_boxes_are_the_long_ones(value: Any) -> None:
    event = dump_stream([value])
    assert SERIALIZER.serialize(value) == event
    (found,) = load_stream(event)
    assert type(SERIALIZER.deserialize(event)) is type(found)
    assert dump_stream([SERIALIZER.deserialize(event)]) == dump_stream([found])


@given(texts)
def test_modified_utf8_is_lossless(text: str) -> None:
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    raw = encode_utf(text)
    assert b"\0" not in raw
    assert max(raw, default=0) < 0xF0
    assert decode_utf(raw) == joined


@given(st.binary(max_size=30))
def test_modified_utf8_reads_as_java_or_fails(raw: bytes) -> None:
    """Both ways through the decoder, the quick one and Java's own loop, agree."""
    results: list[str | None] = []
    for decode in (decode_utf, lambda data: from_units(_code_units(data))):
        try:
            results.append(decode(raw))
        except DeserializationError:
            results.append(None)
    assert results[0] == results[1]


def test_records_show_what_is_short() -> None:
    color = ClassDescriptor("a.Color", 0, 0x12, (), ClassDescriptor("java.lang.Enum", 0, 0x12))
    types = {"id": "long", "text": "java.lang.String", "color": "a.Color", "tags": "java.util.List", "next": "a.Node"}
    node = ClassDescriptor.of("a.Node", 1, types)
    assert {each.source_type for each in node.fields} == set(types.values())
    assert ClassDescriptor.of("a.B", 1, {"x": "int[][]", "y": "a.B[]"}).fields[0].source_type == "int[][]"
    made = node.new(id=7, text="x" * 1000, color=java.JavaEnum(color, "RED"), tags=["a"])
    made["next"] = made
    shown = repr(again(made))
    assert shown.startswith("<JavaObject a.Node (id=7, ")
    assert "color=RED" in shown
    assert "tags=…" in shown
    assert "next=<a.Node>" in shown
    assert len(shown) < 200
    assert "0x" in repr(node.new(id=10**6000))  # Python makes no text of it


def test_boxes_remember_their_class() -> None:
    for value in (java.Byte(1), java.Short(1), java.Long(1), java.Float(0.1), java.Character("x"), java.BigInteger(1)):
        assert type(again(value)) is type(value)
        assert again(value) == value
    assert type(again(1)) is int
    assert type(again(2**40)) is java.Long
    assert type(again(2**70)) is java.BigInteger
    assert type(again(True)) is bool
    assert java.Float(0.1) != 0.1


def test_values_that_do_not_fit_are_refused() -> None:
    wrong: list[Any] = [
        java.Byte(128),
        java.Long(2**63),
        java.Character("xy"),
        decimal.Decimal("NaN"),
        object(),
        np.array([[1, 2]]),
        np.array([1], "u4"),
        java.JavaList([], "java.util.NoSuchList"),
        java.JavaMap({}, "java.util.ArrayList"),
        java.JavaList([None], "java.util.concurrent.ConcurrentLinkedQueue"),
        java.JavaMap({}, "java.util.EnumMap"),
        java.JavaList([1, 2], "java.util.Collections$SingletonList"),
        java.JavaList([], "java.util.concurrent.LinkedBlockingQueue"),
        java.Date(2020, 1, 1, microsecond=1, tzinfo=dt.UTC),
        dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=20))),
    ]
    for value in wrong:
        with pytest.raises(SerializationError):
            SERIALIZER.serialize(value)
    with pytest.raises(SerializationError, match="cannot compute a class's serialVersionUID"):
        SERIALIZER.serialize(object())


def test_records_by_name() -> None:
    base = ClassDescriptor.of("a.Base", 1, {"x": "int", "text": "java.lang.String"})
    descriptor = ClassDescriptor.of("a.Sub", 2, {"x": "long", "tags": "java.lang.String[]", "c": "char"}, base)
    made = descriptor.new(x=5, tags=["a", None], c="\u20ac")
    made["a.Base.x"] = 7
    found = again(made)
    assert type(found) is JavaObject
    assert (found["x"], found["a.Base.x"], found["text"], found["c"]) == (5, 7, None, "\u20ac")
    assert found.fields == {"a.Base.x": 7, "text": None, "c": "\u20ac", "x": 5, "tags": ["a", None]}
    assert found.descriptor == descriptor
    assert "tags" in found
    assert list(found) == ["a.Base.x", "text", "c", "x", "tags"]
    assert dict(found) == found.fields
    with pytest.raises(SerializationError, match=r"no serializable field 'nope'; it has .*tags"):
        descriptor.new(nope=1)
    with pytest.raises(SerializationError, match=r"field x of a\.Sub is of Java's type long"):
        SERIALIZER.serialize(descriptor.new(x=2**63))
    with pytest.raises(SerializationError, match=r"2 fields of a\.Base"):
        SERIALIZER.serialize(JavaObject(base, [1]))
    with pytest.raises(SerializationError, match="not a Java long"):
        ClassDescriptor("a.B", 2**63)


def test_signatures() -> None:
    types = {"a": "int", "b": "java.lang.String", "c": "long[][]", "d": "a.B$C[]"}
    fields = ClassDescriptor.of("a.B", 1, types).fields
    assert [each.type for each in fields] == ["I", "Ljava/lang/String;", "[[J", "[La/B$C;"]


def test_keys_that_python_confuses_are_kept_apart() -> None:
    keys = [1, java.Long(1), 1.0, True, java.JavaKey([1]), java.JavaKey(np.array([1])), "a", java.Character("a")]
    stream = java.JavaMap({java.JavaKey(key): at for at, key in enumerate(keys)}, "java.util.LinkedHashMap")
    found = again(stream)
    assert list(found.values()) == list(range(len(keys)))
    assert found[1] == 0
    unwrapped = [key.value if isinstance(key, java.JavaKey) else key for key in found]
    assert [type(key) for key in unwrapped] == [int, java.Long, float, bool, list, np.ndarray, str, java.Character]
    assert SERIALIZER.serialize(found) == SERIALIZER.serialize(stream)


def test_sets_keep_the_order_of_the_stream() -> None:
    found = again(java.JavaSet(["z", "a", "m"], "java.util.LinkedHashSet"))
    assert found == {"a", "m", "z"}
    assert found.in_order() == ["z", "a", "m"]
    found.add("b")
    found.discard("a")
    assert again(found).in_order() == ["z", "m", "b"]


def test_views_are_what_they_wrap() -> None:
    inner = [1, 2]
    view = again(java.ListView.of("java.util.Collections$UnmodifiableList", inner))
    assert view == inner
    assert view[1] == 2
    assert list(view) == view.inner == view.target == inner
    mapping = again(java.MapView.of("java.util.Collections$UnmodifiableMap", {"k": 1}))
    assert (mapping["k"], dict(mapping), list(mapping.values())) == (1, {"k": 1}, [1])
    assert mapping == {"k": 1}
    elements = again(java.SetView.of("java.util.Collections$UnmodifiableSet", {1}))
    assert elements == {1}
    assert elements | {2} == {1, 2}
    copies = again(java.Copies(_copies_class(), [10**9, "x"]))
    assert (len(copies), copies[5], copies[10:12], "x" in copies) == (10**9, "x", ["x", "x"], True)


def _copies_class() -> ClassDescriptor:
    found = jdk_descriptor("java.util.Collections$CopiesList")
    assert found is not None
    return found


def test_one_object_stays_one_object() -> None:
    shared = ["x"]
    first, second, third = again([shared, shared, ["x"]])
    assert first is second
    assert first is not third
    ones = again([java.Integer(5), java.Integer(5)])
    assert ones == [5, 5]
    assert type(ones[0]) is int
    assert type(ones[1]) is java.Integer
    itself = again((cycle := {}, cycle.update(me=cycle))[0])
    assert itself["me"] is itself


def test_dates_are_exact() -> None:
    at = java.NanoDatetime.of(dt.datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC), 234)
    assert again(at) == at
    assert again(at) != dt.datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)
    assert again(at).nanosecond == 678901234
    assert isinstance(again(at), dt.datetime)
    for value in (at, java.NanoTime.of(dt.time(1), 5), java.NanoDuration.of(dt.timedelta(1), 7), java.ZoneOffset(3600)):
        assert pickle.loads(pickle.dumps(value)) == value == again(value)
    zone = java.ZoneRegion("Europe/Paris", java.ZoneOffset(7200))
    found = again(dt.datetime(2020, 7, 1, 12, tzinfo=zone))
    assert found.utcoffset() == dt.timedelta(hours=2)
    assert found.tzname() == "Europe/Paris"
    assert java.ZoneOffset(-3661).id == "-01:01:01"


def test_what_is_public_can_be_pickled() -> None:
    descriptor = ClassDescriptor.of("a.B", 1, {"x": "int", "y": "java.lang.Object"})
    color = ClassDescriptor("a.Color", 0, 0x12, (), ClassDescriptor("java.lang.Enum", 0, 0x12))
    values = [
        java.Byte(1), java.Short(2), java.Integer(3), java.Long(4), java.BigInteger(5), java.Float(0.5),
        java.Double(1.5), java.Boolean(1), java.Character("c"), java.String("s"), java.ByteArray(b"b"),
        java.BigDecimal.of(decimal.Decimal("1.5"), java.BigInteger(15)),
        java.JavaArray(["a"]), java.JavaList(["a"], "java.util.LinkedList"),
        java.JavaMap({"k": 1}, "java.util.LinkedHashMap", {"accessOrder": True}),
        java.JavaSet(["z", "a", "m"], "java.util.LinkedHashSet"), java.JavaKey(5),
        java.ListView.of("java.util.Collections$UnmodifiableList", [1]),
        java.SetView.of("java.util.Collections$UnmodifiableSet", {1}),
        java.MapView.of("java.util.Collections$UnmodifiableMap", {"k": 1}),
        java.Copies(_copies_class(), [3, "x"]),
        java.Date(2020, 1, 1, tzinfo=dt.UTC), java.SqlDate(2020, 1, 1, tzinfo=dt.UTC),
        java.SqlTime(1970, 1, 1, 5, tzinfo=dt.UTC),
        java.Timestamp.of(dt.datetime(2020, 1, 1, tzinfo=dt.UTC), 7),
        java.ZoneRegion("Europe/Paris"), java.Year(2020), java.YearMonth(2020, 2), java.MonthDay(2, 29),
        java.Period(1, 2, 3), JavaObject(descriptor, [1, None]), java.JavaEnum(color, "RED"), java.JavaClass(color),
    ]  # fmt: skip
    for value in values:
        copied = pickle.loads(pickle.dumps(value))
        assert type(copied) is type(value)
        assert SERIALIZER.serialize(copied) == SERIALIZER.serialize(value), value
    for thing in (java.Limits(depth=3), java.Field("x", "I"), java.NOT_WRITTEN, java.BlockData(b"x")):
        assert pickle.loads(pickle.dumps(thing)) == thing


def test_hashes_are_javas() -> None:
    known: list[tuple[Any, int]] = [
        ("", 0), ("hello", 99162322), (True, 1231), (False, 1237),
        (-1, 2**32 - 1), (java.Long(-1), 0), (1.5, 1073217536), (java.Float(1.5), 1069547520), (None, 0),
        (java.Character("A"), 65), (uuid.UUID(int=1), 1), (java.BigInteger(-(2**64)), 2**32 - 961),
    ]  # fmt: skip
    for value, expected in known:
        assert java_hash(value) == expected, value
    assert java_hash(object()) is None
    long_text = "\u00e9\U0001f600" * 50
    by_hand = 0
    for unit in np.frombuffer(long_text.encode("utf-16-le"), "<u2").tolist():
        by_hand = (by_hand * 31 + unit) & 0xFFFFFFFF
    assert java_hash(long_text) == by_hand
    assert [map_capacity(size, 0.75) for size in (0, 1, 11, 12, 23, 24)] == [16, 16, 16, 32, 32, 64]
    assert [set_capacity(size, 0.75) for size in (0, 1, 2, 3, 4, 6, 7)] == [1, 2, 4, 4, 8, 8, 16]


def test_array_classes_have_the_uid_of_the_jvm() -> None:
    assert array_descriptor("[I").serial_version_uid == 5600894804908749477
    assert array_descriptor("[Ljava.lang.String;").serial_version_uid == -5921575005990323385


def test_subclasses_of_natural_types() -> None:
    class Name(str):
        __slots__ = ()

    class Level(enum.IntEnum):
        HIGH = 3

    assert again(Name("x")) == "x"
    assert again(Level.HIGH) == again(enum.Enum("E", "HIGH").HIGH) == "HIGH"
    assert again(np.float64(0.5)) == 0.5
    assert type(again(np.int64(1))) is java.Long


class TestWrittenObjects:
    KIND = ClassDescriptor.of("a.B", 1, {"at": "long", "grade": "char", "ok": "boolean", "note": "java.lang.String"})

    @pytest.mark.parametrize(
        ("field", "value"), [("at", 1 << 63), ("at", "x"), ("at", None), ("grade", "ab"), ("grade", 5), ("at", 1.5)]
    )
    def test_a_primitive_that_does_not_fit_is_named(self, field: str, value: Any) -> None:
        with pytest.raises(SerializationError, match=rf"field {field} of a\.B .* cannot contain {value!r}"):
            SERIALIZER.serialize(self.KIND.new(**{field: value}))

    def test_fields_out_of_order_are_refused(self) -> None:
        fields = (java.Field("note", "Ljava/lang/String;"), java.Field("at", "J"))
        with pytest.raises(SerializationError, match=r"illegal field order in a\.B"):
            SERIALIZER.serialize(ClassDescriptor("a.B", 1, fields=fields).new(at=1))

    def test_a_descriptor_that_was_used_can_be_pickled(self) -> None:
        event = SERIALIZER.serialize(self.KIND.new(at=5, note="x"))
        made = SERIALIZER.deserialize(event)
        assert pickle.loads(pickle.dumps(made.descriptor)) == self.KIND == pickle.loads(pickle.dumps(self.KIND))
        assert pickle.loads(pickle.dumps(JavaSerializer(self.KIND))).serialize(made) == event
        proxy = java.ProxyDescriptor(("a.I",), self.KIND)
        assert pickle.loads(pickle.dumps(proxy)) == proxy

    def test_one_object_in_two_fields_is_written_once(self) -> None:
        pair = ClassDescriptor.of("a.Pair", 1, {"a": "java.lang.Long", "b": "java.lang.Long", "c": "java.lang.Object"})
        number, text = java.Long(700), "t" * 50
        once = SERIALIZER.serialize(pair.new(a=number, b=number, c=[text, text]))
        twice = SERIALIZER.serialize(pair.new(a=number, b=java.Long(700), c=[text, java.String(text)]))
        assert len(once) < len(twice)
        again_once, again_twice = SERIALIZER.deserialize(once), SERIALIZER.deserialize(twice)
        assert again_once["a"] is again_once["b"]
        assert again_twice["a"] == again_twice["b"]
        assert again_twice["a"] is not again_twice["b"]
        assert SERIALIZER.serialize(again_once) == once
        assert SERIALIZER.serialize(again_twice) == twice
