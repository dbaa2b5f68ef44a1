"""Protobuf in Python and Arrow: each kind of field, presence, what is converted and what is refused."""

import threading
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message_factory import GetMessageClass

from pravega_serde import SerializationError
from pravega_serde.protobuf import ProtobufSerializer
from tests.interop.java_proto._descriptors import everything
from tests.unit.serde._arrow import struct
from tests.unit.serde._protobuf import ALL, FIELDS, FLAT, INNER, INSTANT, OLDER, TREE, decimals


def in_arrow(value: Any, convert: Any) -> Any:
    return value if convert is None else convert(value)


@pytest.mark.parametrize(("name", "kind", "values", "convert"), FIELDS, ids=[row[0] for row in FIELDS])
def test_fields(name: str, kind: pa.DataType, values: list[Any], convert: Any) -> None:
    assert ALL.arrow_type.field(name).type == kind
    events = [ALL.serialize({name: value}) for value in values]
    assert [ALL.as_dict(ALL.deserialize(event))[name] for event in events] == values
    # Enough rows for the rounds of the columnar path.
    column = pa.array(events * 40)
    expected = [decimals(in_arrow(value, convert)) for value in values]
    fast = ALL.column_reader.fast(column)
    assert not len(fast.suspects)
    plain = pa.array([ALL.column_reader.plain.read(event) for event in events], ALL.arrow_type)
    for decoded in (ALL.decode_column(column), fast.values, plain):
        decoded.validate(full=True)
        assert decoded.field(name).slice(0, len(values)).to_pylist() == expected
    assert ALL.encode_column(ALL.decode_column(column)).to_pylist() == events * 40
    writer = ALL.column_writer
    stored = writer.stored(ALL.decode_column(column))
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
    with pytest.raises(SerializationError, match="both c_text and c_i32 are set, but choice allows only one"):
        ALL.serialize({"c_text": "x", "c_i32": 5})
    column = pa.array([{"c_text": "x"}, {"c_text": "x", "c_i32": 5}], struct(c_text=pa.string(), c_i32=pa.int32()))
    with pytest.raises(SerializationError, match=r"row 1: .*both c_text and c_i32 are set"):
        ALL.encode_column(column)


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
    inner = GetMessageClass(ALL.message_class.DESCRIPTOR.fields_by_name["inner"].message_type)(a=-5)
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
    assert not len(FLAT.column_reader.fast(column).suspects)
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


# Results for natural values

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
    ({"i33": 1}, r"everything\.Everything has no field 'i33'; omit it or add it to the schema \(field \$\)"),
    ({"inner": {"x": 1}}, r"everything\.Inner has no field 'x'; .* \(field \$\.inner\)"),
    (5, r"invalid message everything\.Everything: 5 \(int\)"),
    ({"inner": 5}, r"invalid message everything\.Inner: 5 \(int\) \(field \$\.inner\)"),
    ({"i32": 1 << 31}, r"invalid int32: 2147483648 \(int\) \(field \$\.i32\)"),
    ({"u32": -1}, "invalid uint32"),
    ({"u64": 1 << 64}, "invalid uint64"),
    ({"i64": 1.0}, "invalid int64"),
    ({"i64": True}, "invalid int64"),
    ({"i64": Decimal("1.5")}, "invalid int64"),
    ({"i64": "5"}, "invalid int64"),
    ({"flag": 1}, "invalid bool"),
    ({"fl": 1e300}, "invalid float"),
    ({"dbl": 10**400}, "invalid double"),
    ({"dbl": True}, "invalid double"),
    ({"text": b"x"}, "invalid string"),
    ({"text": "\ud800"}, "unpaired surrogate"),
    ({"data": "x"}, "invalid bytes"),
    ({"level": "NO"}, r"invalid value of the enum everything\.Level: 'NO' \(str\)"),
    ({"level": 1 << 31}, r"invalid number of everything\.Level"),
    ({"r_i32": 5}, r"invalid list"),
    ({"r_i32": [1, None]}, r"invalid int32: .* \(field \$\.r_i32\[1\]\)"),
    ({"r_inner": [{}, {"packed": ["x"]}]}, r"\(field \$\.r_inner\[1\]\.packed\[0\]\)"),
    ({"m_text": 5}, "invalid mapping"),
    ({"m_text": {5: 1}}, r"invalid string: .* \(field \$\.m_text\[5\]\)"),
    ({"m_text": {"a": None}}, r"invalid int64: .* \(field \$\.m_text\['a'\]\)"),
    ({"m_u64": {1: {"a": "x"}}}, r"\(field \$\.m_u64\[1\]\.a\)"),
    ({"at": datetime(2026, 1, 1)}, "needs a time zone"),
    ({"at": 5}, "invalid datetime"),
    ({"took": 5}, "invalid timedelta"),
    ({"took": timedelta.max}, r"invalid duration: .*10,000 years that Protobuf allows \(field \$\.took\)"),
    ({"took": timedelta(seconds=-315_576_000_000, microseconds=-1)}, "invalid duration"),
    ({"at": datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))}, "is beyond the years 1 to 9999 in UTC"),
    ({"w_i64": "x"}, r"invalid int64: .* \(field \$\.w_i64\)"),
    ({"o_i32": 5, "text": [1] * 100}, r"invalid string: .*\.\.\. \(list\)"),
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
