"""Columns of Google's own types and of proto2's features."""

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.wrappers_pb2 import Int64Value

from pravega_serde import DeserializationError, SchemaError, SerializationError
from pravega_serde.protobuf import ProtobufSerializer
from tests.interop.java_proto._descriptors import older
from tests.unit.serde._arrow import struct
from tests.unit.serde._protobuf import ALL, DOCUMENTS, INSTANT, OLDER

# JSON, and whole events


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
def test_values_that_are_not_json(value: Any) -> None:
    with pytest.raises(SerializationError, match=r"field \$\.(struct|list)"):
        DOCUMENTS.serialize(value)


def test_columns_that_are_not_json() -> None:
    column = pa.array([{"struct": "{"}], struct(struct=pa.string()))
    with pytest.raises(SerializationError, match=r"row 0: .*invalid JSON of a Struct"):
        DOCUMENTS.encode_column(column)


def test_a_number_that_json_does_not_have() -> None:
    event = DOCUMENTS.message_class.FromString(b"\x12\x09\x11" + bytes(6) + b"\xf0\x7f").SerializeToString()
    with pytest.raises(DeserializationError, match=r"invalid JSON.*field \$\.value"):
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


# Times


def test_times_beyond_the_range() -> None:
    event = ALL.message_class(at={"seconds": 1 << 62}).SerializeToString()  # type: ignore[call-arg]
    assert ALL.deserialize(event).at.seconds == 1 << 62
    with pytest.raises(DeserializationError, match=r"beyond the range of microseconds .*field \$\.at"):
        ALL.decode_column(pa.array([event]))
    late = ALL.message_class(at={"seconds": 1 << 40}).SerializeToString()  # type: ignore[call-arg]
    assert ALL.decode_column(pa.array([late])).field("at").cast(pa.int64()).to_pylist() == [(1 << 40) * 1_000_000]
    with pytest.raises(DeserializationError, match="outside the years of Python's datetime"):
        ALL.as_dict(ALL.deserialize(late))


def test_nanoseconds_are_cut_as_java_cuts_them() -> None:
    given = {"at": {"seconds": -1, "nanos": 1999}, "took": {"seconds": -1, "nanos": -1999}}
    event = ALL.message_class(**given).SerializeToString()
    for rows in (1, 40):
        decoded = ALL.decode_column(pa.array([event] * rows))
        assert decoded.field("at").cast(pa.int64()).to_pylist() == [-999_999] * rows
        assert decoded.field("took").cast(pa.int64()).to_pylist() == [-1_000_001] * rows


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
    with pytest.raises(SchemaError, match=r"the required field \$\.id has no column"):
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
    with pytest.raises(SerializationError, match=r"invalid value of the enum older\.Closed: 7 \(int\)"):
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
    with pytest.raises(DeserializationError, match=r"invalid UTF-8 in a key \(at row 0, field \$\.map\)"):
        OLDER.decode_column(pa.array([event]))
