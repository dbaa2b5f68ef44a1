"""Objects and Java's streams: classes that are described, values that remember their type, and limits."""

from datetime import datetime, time
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pytest

from pravega_serde import DeserializationError, LimitExceededError, SchemaError, SerializationError
from pravega_serde.adapters import typed
from pravega_serde.java import ClassDescriptor, Copies, JavaArray, JavaList, JavaSerializer, Long, NanoDatetime
from pravega_serde.java.jdk_classes import jdk_descriptor
from pravega_serde.json import JsonSerializer
from tests.unit.serde._classes import JAVA_LINE, JAVA_ORDER, SOME, Base, Line, Node, Order, Renamed, make


def test_classes_of_java_are_for_the_java_format() -> None:
    with pytest.raises(SchemaError, match="are for the Java format"):
        typed(JsonSerializer(), Line, java_classes={Line: JAVA_LINE})


class TestJava:
    def test_an_unknown_class_is_named(self) -> None:
        with pytest.raises(SerializationError, match=r"class of Side is unknown.*java_classes"):
            typed(JavaSerializer(JAVA_ORDER), Order).serialize(make(Order, SOME))

    def test_a_class_without_such_a_field_is_refused(self) -> None:
        with pytest.raises(SchemaError, match=r"com\.example\.Line has no serializable field 'id'"):
            typed(JavaSerializer(), Order, java_classes={Order: JAVA_LINE})

    def test_a_type_without_fields_is_refused(self) -> None:
        with pytest.raises(SchemaError, match="Base has no fields"):
            typed(JavaSerializer(), Order, java_classes={Base: JAVA_LINE})

    def test_fields_that_the_class_lacks_are_javas_defaults(self) -> None:
        wide = ClassDescriptor.of("Wide", 1, {"orderId": "long", "more": "int", "text": "java.lang.String"})
        renamed = typed(JavaSerializer(wide), Renamed)
        assert JavaSerializer().deserialize(renamed.serialize(Renamed(3))).fields == {
            "more": 0,
            "orderId": 3,
            "text": None,
        }

    def test_an_object_of_another_class_is_refused(self) -> None:
        event = JavaSerializer().serialize(JAVA_LINE.new(sku="a", count=1))
        other = ClassDescriptor.of("com.example.Other", 1, {"sku": "java.lang.String"})
        with pytest.raises(DeserializationError, match=r"holds com\.example\.Line, not com\.example\.Other"):
            typed(JavaSerializer(other), msgspec.defstruct("Other", [("sku", str)])).deserialize(event)

    def test_an_object_of_a_subclass_will_do(self) -> None:
        below = ClassDescriptor.of("com.example.Below", 1, {"more": "int"}, JAVA_LINE)
        event = JavaSerializer().serialize(below.new(sku="a", count=1, price=Decimal(2)))
        assert typed(JavaSerializer(JAVA_LINE), Line).deserialize(event) == Line("a", 1, Decimal(2))

    @pytest.mark.parametrize(
        ("value", "kind", "plain"),
        [
            (Long(5), int, 5),
            (JavaList([1, 2], "java.util.LinkedList"), list[int], [1, 2]),
            (JavaArray(["a"], ClassDescriptor("[Ljava.lang.String;", 0)), list[str], ["a"]),
            (NanoDatetime.of(datetime(2026, 1, 1), 5), datetime, datetime(2026, 1, 1)),
            ({1: "a"}, dict[int, str], {1: "a"}),
            ({"a", "b"}, set[str], {"a", "b"}),
            (time(1, 2), time, time(1, 2)),
            (b"\1", bytes, b"\1"),
            (True, bool, True),
            (2.5, float, 2.5),
            (None, int | None, None),
        ],
    )
    def test_values_that_remember_their_type_become_plain(self, value: Any, kind: Any, plain: Any) -> None:
        made = typed(JavaSerializer(), kind).deserialize(JavaSerializer().serialize(value))
        assert made == plain
        assert type(made) is type(plain)

    def test_arrays_of_primitives_are_lists(self) -> None:
        serialize = JavaSerializer().serialize
        assert typed(JavaSerializer(), list[int]).deserialize(serialize(np.arange(3))) == [0, 1, 2]
        chars = np.array([65, 66], np.uint16)
        assert typed(JavaSerializer(), list[str]).deserialize(serialize(chars)) == ["A", "B"]

    def test_shared_lists_cannot_multiply(self) -> None:
        shared: Any = ["x"] * 10
        for _ in range(12):
            shared = [shared] * 10
        with pytest.raises(LimitExceededError, match="shared objects unfold"):
            typed(JavaSerializer(), list[Any]).deserialize(JavaSerializer().serialize(shared))

    def test_copies_beyond_all_bounds_are_refused(self) -> None:
        copies = jdk_descriptor("java.util.Collections$CopiesList")
        assert copies is not None
        few = Copies(copies, [2, "x"])
        assert typed(JavaSerializer(), list[str]).deserialize(JavaSerializer().serialize(few)) == ["x", "x"]
        huge = Copies(copies, [(1 << 31) - 1, "x"])
        with pytest.raises(LimitExceededError):
            typed(JavaSerializer(), list[str]).deserialize(JavaSerializer().serialize(huge))

    def test_deep_objects_are_refused(self) -> None:
        node = ClassDescriptor.of("Node", 1, {"next": "Node"})
        deep = node.new()
        for _ in range(5000):
            deep = node.new(next=deep)
        with pytest.raises(LimitExceededError):
            typed(JavaSerializer(), Node).deserialize(JavaSerializer().serialize(deep))
