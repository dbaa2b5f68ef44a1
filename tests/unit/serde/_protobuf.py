"""Serializers of the tests' messages, values of each kind of field, and events that are none."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from pravega_serde.protobuf import ProtobufSerializer
from tests.interop.java_proto._descriptors import everything, older
from tests.unit.serde._arrow import list_of

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


def decimals(value: Any) -> Any:
    """Arrow's values of an Inner: b is a decimal."""
    if isinstance(value, dict) and "b" in value:
        return {**value, "b": Decimal(value["b"])}
    if isinstance(value, list):
        return [tuple(map(decimals, item)) if isinstance(item, tuple) else decimals(item) for item in value]
    return value


# Events that are none: the bytes, what is said, the field.
MALFORMED = [
    (b"\x08", "the event ends inside a number (byte 1)", "$"),
    (b"\x08" + b"\xff" * 11, "invalid number: more than ten bytes (byte 1)", "$"),
    (b"\x72\x05ab", "5 bytes announced at byte 2, only 2 left", "$"),
    (b"\x72\x01\xff", "invalid UTF-8 at byte 0 of the string", "$.text"),
    (b"\x0e", "invalid wire type 6 in field 1 (byte 0)", "$"),
    (b"\xfc\x7f", "end of a group that did not start in field 2047 (byte 1)", "$"),
    (b"\xfb\x7f\x08\x01", "the group of field 2047 does not end", "$"),
    (b"\x72" + b"\x80" * 5 + b"\0", "invalid tag or length: 6 bytes, more than 5 (byte 1)", "$"),
    (b"\x88" + b"\x80" * 4 + b"\0\1", "invalid tag or length: 6 bytes, more than 5 (byte 0)", "$"),
    (b"\x00\x01", "invalid field number 0 (byte 0)", "$"),
    (b"\x08\x01\x00\x00\x01", "invalid field number 0 (byte 2)", "$"),
    (b"\xaa\x02\x01\x08", "the event ends inside a number (byte 4)", "$.inner"),
    (b"\xca\x03\x00\xca\x03\x01\x08", "the event ends inside a number (byte 7)", "$.r_inner[1]"),
    (b"\xca\x02\x01\x80", "the event ends inside a number (byte 3)", "$.r_i32[0]"),
    (b"\x82\x03\x03abc", "invalid packed numbers: 3 bytes, 8 each", "$.r_f64[0]"),
    (b"\xb2\x03\x01\xff", "invalid UTF-8", "$.r_text[0]"),
    (b"\xea\x03\x04\x0a\x02\xff\xff", "invalid UTF-8", "$.m_text[0].key"),
]
