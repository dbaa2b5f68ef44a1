"""Classes whose ``writeObject`` does not begin with ``defaultWriteObject``: streams do not report it."""

from __future__ import annotations

import pickle

import pytest

from pravega_serde import DeserializationError, SchemaError
from pravega_serde.java import (
    NOT_WRITTEN,
    BlockData,
    ClassDescriptor,
    JavaObject,
    JavaSerializer,
    OwnOrder,
    dump_stream,
)

ANY = JavaSerializer()
MAP = ClassDescriptor.of("com.example.OwnMap", 1, {"entries": "java.util.Map", "size": "java.lang.Object"}, flags=3)
COUNTED = ClassDescriptor.of("com.example.Counted", 1, {"count": "int", "name": "java.lang.String"}, flags=3)
SUB = ClassDescriptor.of("com.example.Sub", 1, {"id": "long"}, COUNTED)


def _event(value: JavaObject) -> bytes:
    return dump_stream([value])


@pytest.mark.parametrize("notes", [(BlockData(b"\0\0\0\1"), "k", "v"), ()], ids=["data", "nothing"])
def test_fields_that_are_not_written_are_seen_by_the_next_byte(notes: tuple[object, ...]) -> None:
    event = _event(JavaObject(MAP, [None, None], [OwnOrder(notes, None)]))
    value = ANY.deserialize(event)
    assert value.data == [NOT_WRITTEN, NOT_WRITTEN]
    assert value.annotations == (notes,)
    assert ANY.serialize(value) == event
    assert ANY.serialize(pickle.loads(pickle.dumps(value))) == event


def test_an_event_that_cannot_be_read_with_the_fields_is_read_without() -> None:
    # As fields the first four bytes are a number, and what follows is not an object.
    event = _event(JavaObject(SUB, [0, None, 7], [OwnOrder((BlockData(b"\1\2\3"), "x"), None)]))
    value = ANY.deserialize(event)
    assert (value["count"], value["name"], value["id"]) == (NOT_WRITTEN, NOT_WRITTEN, 7)
    assert value.annotations == ((BlockData(b"\1\2\3"), "x"),)
    assert ANY.serialize(value) == event
    with pytest.raises(DeserializationError):
        ANY.deserialize(event[:-3])


def test_the_usual_order_is_not_touched() -> None:
    event = _event(JavaObject(SUB, [5, "n", 7], [(BlockData(b"\1"),)]))
    value = ANY.deserialize(event)
    assert value.data == [5, "n", 7]
    assert ANY.serialize(value) == event


def test_what_a_class_writes_before_its_fields_has_to_be_said() -> None:
    event = _event(JavaObject(SUB, [5, "n", 7], [OwnOrder((BlockData(b"\0\0\0\1"), "before", BlockData(b"z")), 2)]))
    said = pickle.loads(pickle.dumps(JavaSerializer(write_object={"com.example.Counted": 2})))
    value = said.deserialize(event)
    assert value.data == [5, "n", 7]
    assert value.annotations == ((BlockData(b"\0\0\0\1"), "before", BlockData(b"z")),)
    assert said.serialize(value) == event
    never = JavaSerializer(write_object={"com.example.Counted": None})
    alone = _event(JavaObject(SUB, [0, None, 7], [OwnOrder((BlockData(b"\1\2\3\4\5"),), None)]))
    assert never.deserialize(alone)["count"] is NOT_WRITTEN


def test_a_field_that_is_not_there_is_a_bad_value_of_a_column() -> None:
    import pyarrow as pa

    event = _event(JavaObject(SUB, [0, None, 7], [OwnOrder((BlockData(b"\1\2\3"), "x"), None)]))
    columns = JavaSerializer(SUB, arrow_type=pa.struct([("id", pa.int64()), ("count", pa.int32())]))
    with pytest.raises(DeserializationError) as caught:
        columns.decode_column(pa.array([event]))
    assert (caught.value.row, caught.value.field_path) == (0, "$.count")
    only = JavaSerializer(SUB, arrow_type=pa.struct([("id", pa.int64())]))
    assert only.decode_column(pa.array([event])).to_pylist() == [{"id": 7}]


@pytest.mark.parametrize("wrong", [{"a.B": -1}, {"a.B": "x"}, {5: None}])
def test_wrong_orders_are_refused(wrong: dict[object, object]) -> None:
    with pytest.raises(SchemaError, match="invalid write_object"):
        JavaSerializer(write_object=wrong)  # type: ignore[arg-type]
