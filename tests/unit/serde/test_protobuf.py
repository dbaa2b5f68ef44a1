"""Protobuf: types in Python and Arrow, presence, what is refused and how it is said, limits, what Java does besides."""

import os
import re
import subprocess
import sys
import threading
import time as clock
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.empty_pb2 import Empty
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.wrappers_pb2 import Int64Value

from pravega_serde import DeserializationError, LimitExceededError, SchemaError, SerializationError
from pravega_serde.protobuf import ProtobufSerializer
from pravega_serde.protobuf._wire import MAX_DEPTH
from tests.interop.java_proto._descriptors import everything, older

ALL = ProtobufSerializer(everything(), message_type="everything.Everything")
FLAT = ProtobufSerializer(everything(), message_type="everything.Flat")
TREE = ProtobufSerializer(everything(), message_type="everything.Tree")
DOCUMENTS = ProtobufSerializer(everything(), message_type="everything.Documents")
OLDER = ProtobufSerializer(older(), message_type="older.Older")

INSTANT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
INNER = {"a": -1, "b": 1 << 63, "packed": [1, 300, -1], "c": None}

UINT64 = pa.decimal128(20, 0)
INNER_TYPE = pa.struct(
    [
        pa.field("a", pa.int32()),
        pa.field("b", UINT64),
        pa.field("packed", pa.list_(pa.field("element", pa.int32()))),
        pa.field("c", pa.string()),
    ]
)


def list_of(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind))


# Of each kind of field: its Arrow type, natural values, and Arrow's where they are others.
FIELDS: list[tuple[str, pa.DataType, list[Any], Any]] = [
    ("i32", pa.int32(), [0, 1, -1, -(1 << 31), (1 << 31) - 1], None),
    ("i64", pa.int64(), [0, -1, -(1 << 63), (1 << 63) - 1], None),
    ("u32", pa.int64(), [0, (1 << 32) - 1], None),
    ("u64", UINT64, [0, 1, (1 << 64) - 1], Decimal),
    ("s32", pa.int32(), [0, -1, -(1 << 31), (1 << 31) - 1], None),
    ("s64", pa.int64(), [0, -1, -(1 << 63), (1 << 63) - 1], None),
    ("f32", pa.int64(), [0, (1 << 32) - 1], None),
    ("f64", UINT64, [0, (1 << 64) - 1], Decimal),
    ("sf32", pa.int32(), [0, -(1 << 31)], None),
    ("sf64", pa.int64(), [0, -(1 << 63)], None),
    ("fl", pa.float32(), [0.0, -0.0, 0.5, float("inf")], None),
    ("dbl", pa.float64(), [0.0, -0.0, 0.1, float("-inf")], None),
    ("flag", pa.bool_(), [False, True], None),
    ("text", pa.string(), ["", "ü", "😀" * 50, "\0"], None),
    ("data", pa.binary(), [b"", b"\xff", bytes(200)], None),
    ("level", pa.string(), ["LOW", "HIGH", "BELOW", "7", "-9"], None),
    ("o_i32", pa.int32(), [None, 0, 5], None),
    ("o_u64", UINT64, [None, 0, 1 << 63], lambda value: None if value is None else Decimal(value)),
    ("o_dbl", pa.float64(), [None, 0.0, 5.0], None),
    ("o_flag", pa.bool_(), [None, False, True], None),
    ("o_text", pa.string(), [None, "", "x"], None),
    ("o_data", pa.binary(), [None, b"", b"x"], None),
    ("o_level", pa.string(), [None, "LOW", "MID", "99"], None),
    ("inner", INNER_TYPE, [None, {"a": 0, "b": 0, "packed": [], "c": None}, INNER], None),
    ("r_i32", list_of(pa.int32()), [[], [0], [1, -1, 300]], None),
    ("r_s64", list_of(pa.int64()), [[], [0], [1, -1, 1 << 62]], None),
    ("r_f32", list_of(pa.int64()), [[], [0], [1, 1 << 31]], None),
    ("r_u64", list_of(UINT64), [[], [1 << 63, 0]], lambda value: [Decimal(item) for item in value]),
    ("r_dbl", list_of(pa.float64()), [[], [0.0, 1.5]], None),
    ("r_flag", list_of(pa.bool_()), [[], [False, True, False]], None),
    ("r_text", list_of(pa.string()), [[], [""], ["", "x", "üü"]], None),
    ("r_data", list_of(pa.binary()), [[], [b"", b"x"]], None),
    ("r_level", list_of(pa.string()), [[], ["LOW", "HIGH", "42"]], None),
    ("r_inner", list_of(INNER_TYPE), [[], [INNER, {"a": 0, "b": 0, "packed": [], "c": ""}]], None),
    ("unpacked", list_of(pa.int32()), [[], [0, -1, 300]], None),
    ("m_text", pa.map_(pa.string(), pa.int64()), [{}, {"": 0, "b": -5}], lambda value: sorted(value.items())),
    ("m_i32", pa.map_(pa.int32(), pa.string()), [{}, {-5: "", 7: "x"}], lambda value: sorted(value.items())),
    ("m_u64", pa.map_(UINT64, INNER_TYPE), [{}, {1 << 63: INNER}], lambda value: list(value.items())),
    ("m_flag", pa.map_(pa.bool_(), pa.string()), [{}, {True: "MID", False: "77"}], lambda v: sorted(v.items())),
    ("at", pa.timestamp("us", "UTC"), [None, INSTANT, datetime(1, 1, 1, tzinfo=UTC)], None),
    ("took", pa.duration("us"), [None, timedelta(0), timedelta(microseconds=-1), timedelta(days=9)], None),
    ("w_i64", pa.int64(), [None, 0, -5], None),
    ("w_text", pa.string(), [None, "", "x"], None),
    ("w_data", pa.binary(), [None, b"", b"x"], None),
    ("w_flag", pa.bool_(), [None, False, True], None),
    ("w_dbl", pa.float64(), [None, 0.0, 1.5], None),
    ("w_u64", UINT64, [None, 0, 1 << 63], lambda value: None if value is None else Decimal(value)),
    ("r_at", list_of(pa.timestamp("us", "UTC")), [[], [INSTANT, INSTANT]], None),
    ("m_took", pa.map_(pa.string(), pa.duration("us")), [{}, {"x": timedelta(1)}], lambda value: list(value.items())),
    ("mask", pa.struct([("paths", list_of(pa.string()))]), [None, {"paths": ["a.b"]}], None),
    ("far", pa.int32(), [0, 5], None),
]


def in_arrow(value: Any, convert: Any) -> Any:
    return value if convert is None else convert(value)


def decimals(value: Any) -> Any:
    """Arrow's values of an Inner: b is a decimal."""
    if isinstance(value, dict) and "b" in value:
        return {**value, "b": Decimal(value["b"])}
    if isinstance(value, list):
        return [tuple(map(decimals, item)) if isinstance(item, tuple) else decimals(item) for item in value]
    return value


@pytest.mark.parametrize(("name", "kind", "values", "convert"), FIELDS, ids=[row[0] for row in FIELDS])
def test_fields(name: str, kind: pa.DataType, values: list[Any], convert: Any) -> None:
    assert ALL.arrow_type.field(name).type == kind
    events = [ALL.serialize({name: value}) for value in values]
    assert [ALL.as_dict(ALL.deserialize(event))[name] for event in events] == values
    # Enough rows for the rounds of the columnar path.
    column = pa.array(events * 40)
    expected = [decimals(in_arrow(value, convert)) for value in values]
    fast = ALL._columns.fast(column)
    assert not len(fast.suspects)
    plain = pa.array([ALL._columns.plain.read(event) for event in events], ALL.arrow_type)
    for decoded in (ALL.decode_column(column), fast.values, plain):
        decoded.validate(full=True)
        assert decoded.field(name).slice(0, len(values)).to_pylist() == expected
    assert ALL.encode_column(ALL.decode_column(column)).to_pylist() == events * 40
    writer = ALL._column_writer
    stored = writer._lowerings[ALL.arrow_type](ALL.decode_column(column))
    assert writer.fast(stored).to_pylist() == writer.plain(stored).to_pylist() == events * 40


def test_lists_and_maps_are_spelled_as_spark_spells_them() -> None:
    kind = ALL.arrow_type
    assert kind.field("r_i32").type.value_field.name == "element"
    assert (kind.field("m_text").type.key_field.name, kind.field("m_text").type.item_field.name) == ("key", "value")
    assert all(field.nullable for field in kind)


def test_columns_stand_in_the_order_of_declaration() -> None:
    assert [field.name for field in OLDER.arrow_type][:4] == ["id", "text", "plain", "packed"]
    assert ALL.arrow_type[-1].name == "far"


def test_an_empty_event_has_default_values_where_there_is_no_presence() -> None:
    value = ALL.as_dict(ALL.deserialize(b""))
    assert (value["i32"], value["text"], value["level"], value["r_i32"], value["m_text"]) == (0, "", "LOW", [], {})
    absent = {name for name, inner in value.items() if inner is None}
    assert absent == {
        *(name for name in value if name.startswith(("o_", "c_", "w_"))),
        *("inner", "at", "took", "mask", "any"),
    }
    assert ALL.decode_column(pa.array([b""])).field("o_i32").to_pylist() == [None]


# Oneofs


@pytest.mark.parametrize("member", [("c_text", ""), ("c_i32", 0), ("c_inner", INNER), ("c_level", "MID")])
def test_one_of_several(member: tuple[str, Any]) -> None:
    name, given = member
    event = ALL.serialize({name: given})
    value = ALL.as_dict(ALL.deserialize(event))
    assert {key: inner for key, inner in value.items() if key.startswith("c_") and inner is not None} == {name: given}
    decoded = ALL.decode_column(pa.array([event] * 3))
    assert decoded.field(name).to_pylist() == [decimals(given)] * 3
    assert ALL.encode_column(decoded).to_pylist() == [event] * 3


def test_two_of_several_are_refused() -> None:
    with pytest.raises(SerializationError, match="both c_text and c_i32 are set, of which choice allows one"):
        ALL.serialize({"c_text": "x", "c_i32": 5})
    column = pa.array([{"c_text": "x"}, {"c_text": "x", "c_i32": 5}], struct(c_text=pa.string(), c_i32=pa.int32()))
    with pytest.raises(SerializationError, match=r"row 1: .*both c_text and c_i32 are set"):
        ALL.encode_column(column)


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


def test_the_last_member_that_an_event_has_counts() -> None:
    event = ALL.serialize({"c_text": "x"}) + ALL.serialize({"c_i32": 5})
    (decoded,) = ALL.decode_column(pa.array([event])).to_pylist()
    assert (decoded["c_text"], decoded["c_i32"]) == (None, 5)


# Messages, given and read


def test_messages_of_the_type_are_written_as_they_are() -> None:
    message = FLAT.message_class(id=5, name="x")  # type: ignore[call-arg]
    assert FLAT.serialize(message) == b"\x08\x05\x12\x01x"
    assert FLAT.deserialize(FLAT.serialize(message)) == message


def test_messages_may_stand_inside_mappings() -> None:
    inner = ALL.message_class.DESCRIPTOR.fields_by_name["inner"].message_type._concrete_class(a=-5)
    assert ALL.serialize({"inner": inner, "r_inner": [inner]}) == ALL.serialize(
        {"inner": {"a": -5}, "r_inner": [{"a": -5}]}
    )


def test_any_takes_every_message() -> None:
    mask = FieldMask(paths=["a"])
    packed = AnyMessage()
    packed.Pack(mask)
    event = ALL.serialize({"any": mask})
    assert event == ALL.serialize({"any": packed}) == ALL.serialize(ALL.as_dict(ALL.deserialize(event)))
    assert ALL.as_dict(ALL.deserialize(event))["any"] == {
        "type_url": "type.googleapis.com/google.protobuf.FieldMask",
        "value": mask.SerializeToString(),
    }


def test_unknown_fields_are_kept_by_rows_and_left_out_of_columns() -> None:
    event = FLAT.serialize({"id": 5}) + b"\xa2\x06\x02hi\xa8\x06\x96\x01\xb5\x06abcd\xb1\x06abcdefgh"
    assert FLAT.serialize(FLAT.deserialize(event)) == event
    column = pa.array([event, FLAT.serialize({"id": 6})] * 20)
    assert not len(FLAT._columns.fast(column).suspects)
    assert FLAT.decode_column(column).field("id").to_pylist() == [5, 6] * 20


def test_equal_maps_have_equal_bytes() -> None:
    keys = [f"k{n}" for n in range(50)]
    events = {ALL.serialize({"m_text": dict.fromkeys(order, 1)}) for order in (keys, keys[::-1])}
    assert len(events) == 1
    assert ALL.encode_column(ALL.decode_column(pa.array(list(events)))).to_pylist() == list(events)


def test_maps_stand_in_the_order_of_their_keys_and_the_last_of_equal_ones_counts() -> None:
    event = b"".join(ALL.serialize({"m_text": {key: n}}) for n, key in enumerate(["b", "", "ab", "a", "b"]))
    for rows in (1, 50):
        decoded = ALL.decode_column(pa.array([event] * rows))
        assert decoded.field("m_text").to_pylist() == [[("", 1), ("a", 3), ("ab", 2), ("b", 4)]] * rows


# What natural values become

CONVERTED = [
    ("level", 5, "HIGH"),
    ("level", "HIGH", "HIGH"),
    ("level", 1234, "1234"),
    ("i32", np.int16(5), 5),
    ("i64", Decimal(5), 5),
    ("flag", np.True_, True),
    ("dbl", 5, 5.0),
    ("fl", np.float32(0.5), 0.5),
    ("data", bytearray(b"x"), b"x"),
    ("data", memoryview(b"x"), b"x"),
    ("r_i32", (1, 2), [1, 2]),
    ("m_text", [("a", 1)], {"a": 1}),
    ("at", INSTANT.astimezone(timezone(timedelta(hours=5))), INSTANT),
    ("inner", {}, {"a": 0, "b": 0, "packed": [], "c": None}),
    ("inner", None, None),
]


@pytest.mark.parametrize(("name", "given", "read"), CONVERTED)
def test_conversions(name: str, given: Any, read: Any) -> None:
    assert ALL.as_dict(ALL.deserialize(ALL.serialize({name: given})))[name] == read


REFUSED = [
    ({"i33": 1}, r"everything\.Everything has no field 'i33'; leave it out or add it to the schema \(field \$\)"),
    ({"inner": {"x": 1}}, r"everything\.Inner has no field 'x'; .* \(field \$\.inner\)"),
    (5, r"5 \(int\) is no message everything\.Everything"),
    ({"inner": 5}, r"is no message everything\.Inner \(field \$\.inner\)"),
    ({"i32": 1 << 31}, r"\(int\) is no int32 \(field \$\.i32\)"),
    ({"u32": -1}, "is no uint32"),
    ({"u64": 1 << 64}, "is no uint64"),
    ({"i64": 1.0}, "is no int64"),
    ({"i64": True}, "is no int64"),
    ({"i64": Decimal("1.5")}, "is no int64"),
    ({"i64": "5"}, "is no int64"),
    ({"flag": 1}, "is no bool"),
    ({"fl": 1e300}, "is no float"),
    ({"dbl": 10**400}, "is no double"),
    ({"dbl": True}, "is no double"),
    ({"text": b"x"}, "is no string"),
    ({"text": "\ud800"}, "surrogate without its partner"),
    ({"data": "x"}, "is no bytes"),
    ({"level": "NO"}, r"'NO' \(str\) is no value of the enum everything\.Level"),
    ({"level": 1 << 31}, r"is no number of everything\.Level"),
    ({"r_i32": 5}, r"is no list"),
    ({"r_i32": [1, None]}, r"is no int32 \(field \$\.r_i32\[1\]\)"),
    ({"r_inner": [{}, {"packed": ["x"]}]}, r"\(field \$\.r_inner\[1\]\.packed\[0\]\)"),
    ({"m_text": 5}, "is no mapping"),
    ({"m_text": {5: 1}}, r"is no string \(field \$\.m_text\[5\]\)"),
    ({"m_text": {"a": None}}, r"is no int64 \(field \$\.m_text\['a'\]\)"),
    ({"m_u64": {1: {"a": "x"}}}, r"\(field \$\.m_u64\[1\]\.a\)"),
    ({"at": datetime(2026, 1, 1)}, "needs a time zone"),
    ({"at": 5}, "is no datetime"),
    ({"took": 5}, "is no timedelta"),
    ({"w_i64": "x"}, r"is no int64 \(field \$\.w_i64\)"),
    ({"o_i32": 5, "text": [1] * 100}, r"\.\.\. \(list\) is no string"),
]


@pytest.mark.parametrize(("value", "message"), REFUSED, ids=[str(row[0])[:40] for row in REFUSED])
def test_values_that_do_not_fit(value: Any, message: str) -> None:
    with pytest.raises(SerializationError, match=message) as caught:
        ALL.serialize(value)
    assert "\n" not in str(caught.value)


def test_a_value_that_contains_itself() -> None:
    endless: dict[str, Any] = {"name": "x"}
    endless["children"] = [endless]
    with pytest.raises(SerializationError, match=r"nested too deeply|nested"):
        TREE.serialize(endless)


# JSON


def test_structs_are_json_in_columns_and_python_in_rows() -> None:
    value = {
        "struct": {"b": [1, None, "x"], "a": {"c": True}},
        "value": 1.5,
        "list": [1, {}],
        "values": ["x", None, {"k": []}],
    }
    event = DOCUMENTS.serialize(value)
    assert DOCUMENTS.as_dict(DOCUMENTS.deserialize(event)) == value
    decoded = DOCUMENTS.decode_column(pa.array([event]))
    assert decoded.to_pylist() == [
        {
            "struct": '{"a":{"c":true},"b":[1.0,null,"x"]}',
            "value": "1.5",
            "list": "[1.0,{}]",
            "values": ['"x"', "null", '{"k":[]}'],
        }
    ]
    assert DOCUMENTS.encode_column(decoded).to_pylist() == [event]


@pytest.mark.parametrize("value", [{"struct": [1]}, {"struct": {"a": object()}}, {"list": {"a": 1}}])
def test_values_that_are_no_json(value: Any) -> None:
    with pytest.raises(SerializationError, match=r"field \$\.(struct|list)"):
        DOCUMENTS.serialize(value)


def test_columns_that_are_no_json() -> None:
    column = pa.array([{"struct": "{"}], struct(struct=pa.string()))
    with pytest.raises(SerializationError, match=r"row 0: .*is no JSON of a Struct"):
        DOCUMENTS.encode_column(column)


def test_a_number_that_json_does_not_have() -> None:
    event = DOCUMENTS.message_class.FromString(b"\x12\x09\x11" + bytes(6) + b"\xf0\x7f").SerializeToString()
    with pytest.raises(DeserializationError, match=r"no JSON.*field \$\.value"):
        DOCUMENTS.decode_column(pa.array([event]))


TOP_LEVEL: list[tuple[Any, pa.DataType, Any, Any]] = [
    (Empty, pa.struct([]), {}, {}),
    (Int64Value, pa.int64(), 5, 5),
    (Timestamp, pa.timestamp("us", "UTC"), INSTANT, INSTANT),
    (Struct, pa.string(), {"a": [1.0]}, '{"a":[1.0]}'),
    (Value, pa.string(), "x", '"x"'),
]


@pytest.mark.parametrize(("message", "kind", "value", "in_column"), TOP_LEVEL, ids=[str(row[1]) for row in TOP_LEVEL])
def test_googles_types_may_be_whole_events(message: Any, kind: pa.DataType, value: Any, in_column: Any) -> None:
    serializer = ProtobufSerializer(message)
    assert serializer.arrow_type == kind
    event = serializer.serialize(value)
    assert serializer.as_dict(serializer.deserialize(event)) == value
    decoded = serializer.decode_column(pa.array([event, None, event]))
    assert decoded.to_pylist() == [in_column, None, in_column]
    assert serializer.encode_column(decoded).to_pylist() == [event, None, event]


# proto2


def test_proto2_keeps_presence() -> None:
    event = OLDER.serialize({"id": 0, "part": {"x": 5, "y": ["a"]}, "closed": "B", "all": ["A", 2], "map": {"k": "v"}})
    value = OLDER.as_dict(OLDER.deserialize(event))
    assert (value["id"], value["text"], value["part"]) == (0, None, {"x": 5, "y": ["a"]})
    decoded = OLDER.decode_column(pa.array([event]))
    assert decoded.to_pylist()[0]["part"] == {"x": 5, "y": ["a"]}
    assert OLDER.encode_column(decoded).to_pylist() == [event]


def test_required_fields_must_be_there() -> None:
    with pytest.raises(SerializationError, match="required fields are missing: id"):
        OLDER.serialize({})
    with pytest.raises(DeserializationError, match="required fields are missing: id"):
        OLDER.deserialize(b"")
    with pytest.raises(DeserializationError, match="row 1"):
        OLDER.decode_column(pa.array([b"\x08\x01", b""]))
    with pytest.raises(SchemaError, match=r"no column for the required field \$\.id"):
        OLDER.check_encodable(struct(text=pa.string()))
    with pytest.raises(SerializationError, match=r"row 1: .*required fields are missing: id"):
        OLDER.encode_column(pa.array([{"id": 1}, {"id": None}], struct(id=pa.int32())))
    holder = ProtobufSerializer(older(), message_type="older.Holder")
    with pytest.raises(DeserializationError, match=r"required fields are missing: olders\[0\]\.id"):
        holder.deserialize(b"\x0a\x00")


def test_closed_enums_put_unknown_numbers_aside() -> None:
    event = b"\x08\x01\x30\x07\x38\x01\x38\x09\x38\x02"
    for rows in (1, 40):
        decoded = OLDER.decode_column(pa.array([event] * rows)).to_pylist()[-1]
        assert (decoded["closed"], decoded["all"]) == (None, ["A", "B"])
    with pytest.raises(SerializationError, match=r"7 \(int\) is no value of the enum older\.Closed"):
        OLDER.serialize({"id": 1, "closed": 7})


def test_extensions_are_kept() -> None:
    event = b"\x08\x01\xa0\x06\x05"
    assert OLDER.serialize(OLDER.deserialize(event)) == event
    assert OLDER.decode_column(pa.array([event])).field("id").to_pylist() == [1]
    with pytest.raises(DeserializationError, match="ends inside a number"):
        OLDER.decode_column(pa.array([event[:-1]]))


def test_strings_of_proto2_may_be_wrong_and_are_replaced_as_java_does() -> None:
    event = b"\x08\x01\x12\x03a\xed\xa0"
    assert OLDER.as_dict(OLDER.deserialize(event))["text"] == "a\ufffd"
    assert OLDER.decode_column(pa.array([event])).field("text").to_pylist() == ["a\ufffd"]


def test_keys_of_proto2_must_be_utf8_to_be_read_as_values() -> None:
    event = b"\x08\x01\x42\x05\x0a\x01\xff\x12\x00"
    assert OLDER.serialize(OLDER.deserialize(event)) == event
    with pytest.raises(DeserializationError, match=r"a key that is not UTF-8 \(at row 0, field \$\.map\)"):
        OLDER.decode_column(pa.array([event]))


# Events that are none

MALFORMED = [
    (b"\x08", "the event ends inside a number (byte 1)", "$"),
    (b"\x08" + b"\xff" * 11, "a number of more than ten bytes (byte 1)", "$"),
    (b"\x72\x05ab", "5 bytes announced at byte 2, and only 2 left", "$"),
    (b"\x72\x01\xff", "a string that is not UTF-8: invalid start byte at its byte 0", "$.text"),
    (b"\x0e", "field 1 has the wire type 6, which is none (byte 0)", "$"),
    (b"\xfc\x7f", "field 2047 has the end of a group that did not start (byte 1)", "$"),
    (b"\xfb\x7f\x08\x01", "the group of field 2047 does not end", "$"),
    (b"\x72" + b"\x80" * 5 + b"\0", "a tag or length of 6 bytes, more than 5 (byte 1)", "$"),
    (b"\x88" + b"\x80" * 4 + b"\0\1", "a tag or length of 6 bytes, more than 5 (byte 0)", "$"),
    (b"\x00\x01", "0 is no field number (byte 0)", "$"),
    (b"\x08\x01\x00\x00\x01", "0 is no field number (byte 2)", "$"),
    (b"\xaa\x02\x01\x08", "the event ends inside a number (byte 4)", "$.inner"),
    (b"\xca\x03\x00\xca\x03\x01\x08", "the event ends inside a number (byte 7)", "$.r_inner[1]"),
    (b"\xca\x02\x01\x80", "the event ends inside a number (byte 3)", "$.r_i32[0]"),
    (b"\x82\x03\x03abc", "3 bytes of packed numbers of 8 bytes each", "$.r_f64[0]"),
    (b"\xb2\x03\x01\xff", "a string that is not UTF-8", "$.r_text[0]"),
    (b"\xea\x03\x04\x0a\x02\xff\xff", "a string that is not UTF-8", "$.m_text[0].key"),
]


@pytest.mark.parametrize(("event", "reason", "path"), MALFORMED, ids=[row[0].hex() for row in MALFORMED])
def test_malformed_events_are_named(event: bytes, reason: str, path: str) -> None:
    with pytest.raises(DeserializationError, match=re.escape(reason)) as caught:
        ALL.deserialize(event)
    assert (caught.value.field_path, caught.value.code) == (path, "PRAVEGA-DESERIALIZATION")
    assert "everything.Everything" in str(caught.value)
    assert "\n" not in str(caught.value)
    errors: list[DeserializationError] = []
    good = ALL.serialize({"i32": 5})
    decoded = ALL.decode_column(pa.array([good, event, None, good]), on_error=errors.append)
    assert decoded.is_valid().to_pylist() == [True, False, False, True]
    assert [(error.row, error.field_path, error.reason) for error in errors] == [(1, path, caught.value.reason)]


def test_a_wrong_string_is_found_where_another_one_follows() -> None:
    event = b"\x72\x01\xff" + ALL.serialize({"text": "x", "i32": 5})
    for rows in (1, 50):
        errors: list[DeserializationError] = []
        ALL.decode_column(pa.array([event] * rows), on_error=errors.append)
        assert len(errors) == rows


@pytest.mark.parametrize("zeros", [1, 7, 97])
@pytest.mark.parametrize("value", [{"id": 5, "name": "x", "ok": True}, {}, {"name": "\0\0"}])
def test_zero_padding_is_cut_off(zeros: int, value: dict[str, Any]) -> None:
    event = FLAT.serialize(value)
    assert FLAT.serialize(FLAT.deserialize(event + bytes(zeros))) == event
    column = pa.array([event + bytes(zeros), event] * 20)
    assert not len(FLAT._columns.fast(column).suspects)
    assert FLAT.encode_column(FLAT.decode_column(column)).to_pylist() == [event] * 40


def test_padding_inside_a_message_is_no_padding() -> None:
    event = ALL.serialize({"inner": {"a": 1}})
    wrong = event[:2] + bytes([event[2] + 2]) + event[3:] + b"\0\0"
    with pytest.raises(DeserializationError, match=r"0 is no field number"):
        ALL.deserialize(wrong)
    with pytest.raises(DeserializationError, match=r"0 is no field number"):
        ALL.decode_column(pa.array([wrong]))


def test_times_beyond_the_range() -> None:
    event = ALL.message_class(at={"seconds": 1 << 62}).SerializeToString()  # type: ignore[call-arg]
    assert ALL.deserialize(event).at.seconds == 1 << 62
    with pytest.raises(DeserializationError, match=r"beyond the range of microseconds .*field \$\.at"):
        ALL.decode_column(pa.array([event]))
    late = ALL.message_class(at={"seconds": 1 << 40}).SerializeToString()  # type: ignore[call-arg]
    assert ALL.decode_column(pa.array([late])).field("at").cast(pa.int64()).to_pylist() == [(1 << 40) * 1_000_000]
    with pytest.raises(DeserializationError, match="beyond the years"):
        ALL.as_dict(ALL.deserialize(late))


def test_nanoseconds_are_cut_as_java_cuts_them() -> None:
    given = {"at": {"seconds": -1, "nanos": 1999}, "took": {"seconds": -1, "nanos": -1999}}
    event = ALL.message_class(**given).SerializeToString()
    for rows in (1, 40):
        decoded = ALL.decode_column(pa.array([event] * rows))
        assert decoded.field("at").cast(pa.int64()).to_pylist() == [-999_999] * rows
        assert decoded.field("took").cast(pa.int64()).to_pylist() == [-1_000_001] * rows


# Limits


def tree(depth: int) -> bytes:
    event = b""
    for _ in range(depth):
        size = len(event)
        event = b"\x12" + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + event
    return event


def test_depth() -> None:
    TREE.deserialize(tree(MAX_DEPTH))
    with pytest.raises(LimitExceededError, match="nested more than 100 levels deep"):
        TREE.deserialize(tree(MAX_DEPTH + 1))


BOMBS = [
    ("r_inner", ALL, b"\xca\x03\x00"),
    ("m_u64", ALL, b"\xfa\x03\x02\x12\x00"),
    ("c_inner", ALL, b"\xca\x04\x00"),
    ("children", TREE, b"\x12\x00"),
    ("named", TREE, b"\x1a\x02\x12\x00"),
    ("values", DOCUMENTS, b"\x22\x00"),
    ("unknown", FLAT, b"\xa2\x06\x00"),
    ("group", OLDER, b"\x2b\x2c"),
    ("flags", ALL, b"\xaa\x03\x80\x80\x04" + bytes(1 << 16)),
    ("levels", ALL, b"\xc2\x03\x80\x80\x04" + b"\x4d" * (1 << 16)),
    ("u64", ALL, b"\xe2\x02\xfc\xff\x3f" + b"\x05" * ((1 << 20) - 4)),
    ("texts", ALL, b"\xb2\x03\x00"),
    ("unpacked", ALL, b"\xd0\x03\x05"),
]


#: Reads each bomb in every way, and prints how far memory grew, in MiB, and the longest time, in seconds.
MEASURE = """
import pyarrow as pa
from pravega_serde import SerdeError
from tests.fuzz._measure import Meter, settle
from tests.unit.serde.test_protobuf import ALL, BOMBS

ALL.decode_column(pa.array([b""] * 100))
grown = longest = 0.0
for _, serializer, unit in BOMBS:
    event = unit * ((1 << 20) // len(unit))
    for read in (
        lambda: serializer.as_dict(serializer.deserialize(event)),
        lambda: serializer.decode_column(pa.array([event])),
    ):
        settle()
        meter = Meter()
        try:
            read()
        except SerdeError:
            pass
        grown, longest = max(grown, meter.mebibytes()), max(longest, meter.seconds())
print(grown, longest)
"""


def test_no_event_takes_far_more_memory_than_its_own_size() -> None:
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run([sys.executable, "-c", MEASURE], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    grown, longest = map(float, done.stdout.split())
    assert 1 < grown < 64
    assert longest < 5, "a second, with room for busy machines"


def test_an_event_that_expands_too_much_is_refused() -> None:
    with pytest.raises(LimitExceededError, match="an event of 1048575 bytes would take more than 64 MiB, 64 bytes"):
        ALL._columns.plain.read(b"\xca\x03\x00" * 349_525)
    errors: list[DeserializationError] = []
    ALL.decode_column(pa.array([b"\xca\x03\x00" * 349_525, b""]), on_error=errors.append)
    assert [(error.row, error.code) for error in errors] == [(0, "PRAVEGA-LIMIT-EXCEEDED")]


def test_large_events_with_content_are_read() -> None:
    value = {"r_inner": [{"a": 1, "b": n, "packed": [n] * 20, "c": "content " * 5} for n in range(5000)]}
    event = ALL.serialize(value)
    assert len(event) > 400_000
    assert len(ALL.decode_column(pa.array([event])).field("r_inner")[0]) == 5000


def test_fields_in_a_hostile_order_take_no_time() -> None:
    event = b"".join(FLAT.serialize({name: 1}) for name in ("ts", "id")) * 20_000
    began = clock.process_time()
    assert FLAT.decode_column(pa.array([event] * 3)).field("id").to_pylist() == [1, 1, 1]
    assert clock.process_time() - began < 5


# Columns to write

TAKEN = [
    ("i32", pa.int8(), [1]),
    ("i32", pa.uint16(), [1]),
    ("i64", pa.uint32(), [1]),
    ("u32", pa.int64(), [1]),
    ("u32", pa.uint32(), [1 << 31]),
    ("u64", pa.uint64(), [1 << 63]),
    ("u64", pa.int32(), [5]),
    ("fl", pa.float16(), [0.5]),
    ("dbl", pa.int32(), [5]),
    ("dbl", pa.float32(), [0.5]),
    ("text", pa.large_string(), ["x"]),
    ("text", pa.dictionary(pa.int8(), pa.string()), ["x"]),
    ("data", pa.large_binary(), [b"x"]),
    ("data", pa.binary(2), [b"xx"]),
    ("level", pa.dictionary(pa.int32(), pa.string()), ["MID"]),
    ("level", pa.int32(), [5]),
    ("level", pa.string(), ["17"]),
    ("r_i32", pa.large_list(pa.int32()), [[1]]),
    ("r_i32", pa.list_(pa.int32(), 2), [[1, 2]]),
    ("r_i32", pa.null(), [None]),
    ("m_text", pa.map_(pa.large_string(), pa.int32()), [[("a", 1)]]),
    ("at", pa.timestamp("s", "Europe/Berlin"), [5]),
    ("at", pa.timestamp("ns", "UTC"), [5999]),
    ("took", pa.duration("ms"), [-1500]),
    ("w_i64", pa.int16(), [0]),
    ("inner", struct(a=pa.int8()), [{"a": 5}]),
    ("inner", pa.null(), [None]),
]


@pytest.mark.parametrize(("name", "kind", "values"), TAKEN, ids=[f"{row[0]} {row[1]}" for row in TAKEN])
def test_column_types_that_are_taken(name: str, kind: pa.DataType, values: list[Any]) -> None:
    column = pa.StructArray.from_arrays([pa.array([*values, None], kind)], names=[name])
    ALL.check_encodable(column.type)
    writer = ALL._column_writer
    events = ALL.encode_column(column)
    assert events.to_pylist() == writer.plain(writer._lowerings[column.type](column)).to_pylist()
    assert events[1].as_py() == b""
    assert (events[0].as_py() == b"") == (values == [None])


MISFITS = [
    (struct(i32=pa.int64()), r"a column of type int64 does not fit Protobuf's int32 at \$\.i32; cast the column"),
    (struct(i64=pa.uint64()), "int64"),
    (struct(fl=pa.float64()), "float"),
    (struct(text=pa.binary()), "string"),
    (struct(data=pa.string()), "bytes"),
    (struct(u64=pa.decimal128(38, 0)), "uint64"),
    (struct(at=pa.timestamp("us")), r"takes timestamps with a time zone"),
    (struct(took=pa.int64()), "takes durations"),
    (struct(r_i32=pa.int32()), "takes a list"),
    (struct(r_i32=pa.list_(pa.string())), r"at \$\.r_i32\[\]"),
    (struct(m_text=pa.list_(pa.int64())), "takes a map"),
    (struct(m_text=pa.map_(pa.int32(), pa.int64())), r"at \$\.m_text\{\}\.key"),
    (struct(inner=pa.int32()), "takes a struct"),
    (struct(inner=struct(z=pa.int32())), r"the column \$\.inner\.z is there and everything\.Inner has no such field"),
    (pa.struct([("i32", pa.int32()), ("i32", pa.int32())]), r"the column \$\.i32 is there twice"),
    (pa.int32(), "takes a struct, or a record batch"),
]


@pytest.mark.parametrize(("kind", "message"), MISFITS, ids=[str(row[0])[:40] for row in MISFITS])
def test_column_types_that_do_not_fit(kind: pa.DataType, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        ALL.check_encodable(kind)


UNWRITABLE = [
    (struct(u32=pa.int64()), {"u32": 1 << 32}, r"row 1: .* is no uint32 \(field \$\.u32\)"),
    (struct(u64=pa.int64()), {"u64": -1}, r"row 1: .* is no uint64"),
    (struct(level=pa.string()), {"level": "NO"}, r"row 1: .* is no value of the enum"),
    (struct(r_i32=pa.list_(pa.int32())), {"r_i32": [1, None]}, r"row 1: .*None \(NoneType\) is no int32.*r_i32\[1\]"),
    (struct(m_text=pa.map_(pa.string(), pa.int64())), {"m_text": [("a", None)]}, r"row 1: .*m_text\['a'\]"),
]


@pytest.mark.parametrize(("kind", "value", "message"), UNWRITABLE)
def test_rows_that_cannot_be_written_are_named(kind: pa.DataType, value: Any, message: str) -> None:
    with pytest.raises(SerializationError, match=message):
        ALL.encode_column(pa.array([{}, value], kind))


def test_batches_slices_nulls_and_nothing() -> None:
    column = FLAT.decode_column(pa.array([FLAT.serialize({"id": n, "name": f"n{n}"}) for n in range(10)]))
    events = FLAT.encode_column(column)
    assert FLAT.encode_column(pa.RecordBatch.from_struct_array(column)).equals(events)
    assert FLAT.encode_column(column.slice(3, 4)).equals(events.slice(3, 4))
    with_null = pa.concat_arrays([column, pa.nulls(1, column.type)])
    assert FLAT.encode_column(with_null).to_pylist() == [*events.to_pylist(), None]
    assert FLAT.encode_column(column.slice(0, 0)).to_pylist() == []
    assert FLAT.decode_column(pa.array([], pa.binary())).type == FLAT.arrow_type
    assert FLAT.decode_column(pa.array([None, events[0].as_py()], pa.large_binary())).null_count == 1


WITHOUT_PTARS = """
import sys
sys.modules["ptars"] = None
from tests.unit.serde.test_protobuf import FLAT
column = FLAT.decode_column(FLAT.encode_column(FLAT.decode_column(__import__("pyarrow").array([b"\\x08\\x05"] * 3))))
assert FLAT._column_writer._compiled is None
print(column.field("id").to_pylist())
"""


def test_ptars_is_not_needed() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PTARS], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "[5, 5, 5]\n", done.stderr
    assert FLAT._column_writer._compiled is not None


def test_threads_share_a_serializer() -> None:
    event = FLAT.serialize({"id": 7, "name": "x"})
    found: list[Any] = []

    def use() -> None:
        fresh = ProtobufSerializer(everything(), message_type="everything.Flat")
        for serializer in (FLAT, fresh):
            found.extend(serializer.decode_column(pa.array([event] * 100)).field("id").to_pylist())

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [7] * 800
