"""CBOR: the standard's examples, values as rows, and what is written."""

import enum
import math
import pickle
import struct
import subprocess
import sys
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Context, Decimal
from typing import Any

import cbor2
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_serde import DeserializationError, LimitExceededError, MissingExtraError, SchemaError, SerializationError
from pravega_serde.adapters import arrow_type_of, typed
from pravega_serde.cbor import CborSerializer
from pravega_serde.cbor.rows import Inference

ROWS = CborSerializer()
SHORTEST = CborSerializer(deterministic=True)


def tag(number: int, content: Any) -> Any:
    return cbor2.CBORTag(number, content)


def simple(number: int) -> Any:
    return cbor2.CBORSimpleValue(number)


# RFC 8949, appendix A

LETTERS = {letter: letter.upper() for letter in "abcde"}
NESTED = [1, [2, 3], [4, 5]]
FIRST_INSTANT = datetime(2013, 3, 21, 20, 4, tzinfo=UTC)

#: Those in the preferred form, which is written.
PREFERRED: list[tuple[str, Any]] = [
    *((f"{n:02x}", n) for n in (0, 1, 10, 23)),
    ("1818", 24),
    ("1819", 25),
    ("1864", 100),
    ("1903e8", 1000),
    ("1a000f4240", 1000000),
    ("1b000000e8d4a51000", 1000000000000),
    ("1bffffffffffffffff", 18446744073709551615),
    ("c249010000000000000000", 18446744073709551616),
    ("3bffffffffffffffff", -18446744073709551616),
    ("c349010000000000000000", -18446744073709551617),
    ("20", -1),
    ("29", -10),
    ("3863", -100),
    ("3903e7", -1000),
    ("f90000", 0.0),
    ("f98000", -0.0),
    ("f93c00", 1.0),
    ("fb3ff199999999999a", 1.1),
    ("f93e00", 1.5),
    ("f97bff", 65504.0),
    ("fa47c35000", 100000.0),
    ("fa7f7fffff", 3.4028234663852886e38),
    ("fb7e37e43c8800759c", 1.0e300),
    ("f90001", 5.960464477539063e-8),
    ("f90400", 0.00006103515625),
    ("f9c400", -4.0),
    ("fbc010666666666666", -4.1),
    ("f97c00", math.inf),
    ("f97e00", math.nan),
    ("f9fc00", -math.inf),
    ("f4", False),
    ("f5", True),
    ("f6", None),
    ("f7", cbor2.undefined),
    ("f0", simple(16)),
    ("f8ff", simple(255)),
    ("c074323031332d30332d32315432303a30343a30305a", FIRST_INSTANT),
    ("d74401020304", tag(23, b"\x01\x02\x03\x04")),
    ("d818456449455446", tag(24, b"dIETF")),
    ("d82076687474703a2f2f7777772e6578616d706c652e636f6d", tag(32, "http://www.example.com")),
    ("40", b""),
    ("4401020304", b"\x01\x02\x03\x04"),
    ("60", ""),
    ("6161", "a"),
    ("6449455446", "IETF"),
    ("62225c", '"\\'),
    ("62c3bc", "ü"),
    ("63e6b0b4", "水"),
    ("64f0908591", "\U00010151"),
    ("80", []),
    ("83010203", [1, 2, 3]),
    ("8301820203820405", NESTED),
    ("98190102030405060708090a0b0c0d0e0f101112131415161718181819", list(range(1, 26))),
    ("a0", {}),
    ("a201020304", {1: 2, 3: 4}),
    ("a26161016162820203", {"a": 1, "b": [2, 3]}),
    ("826161a161626163", ["a", {"b": "c"}]),
    ("a56161614161626142616361436164614461656145", LETTERS),
]

#: The others, which are read.
OTHERS: list[tuple[str, Any]] = [
    ("fa7f800000", math.inf),
    ("fa7fc00000", math.nan),
    ("faff800000", -math.inf),
    ("fb7ff0000000000000", math.inf),
    ("fb7ff8000000000000", math.nan),
    ("fbfff0000000000000", -math.inf),
    ("c11a514b67b0", FIRST_INSTANT),
    ("c1fb41d452d9ec200000", FIRST_INSTANT + timedelta(milliseconds=500)),
    ("5f42010243030405ff", b"\x01\x02\x03\x04\x05"),
    ("7f657374726561646d696e67ff", "streaming"),
    ("9fff", []),
    ("9f018202039f0405ffff", NESTED),
    ("9f01820203820405ff", NESTED),
    ("83018202039f0405ff", NESTED),
    ("83019f0203ff820405", NESTED),
    ("9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff", list(range(1, 26))),
    ("bf61610161629f0203ffff", {"a": 1, "b": [2, 3]}),
    ("826161bf61626163ff", ["a", {"b": "c"}]),
    ("bf6346756ef563416d7421ff", {"Fun": True, "Amt": -2}),
]


def test_the_standards_examples_are_read() -> None:
    for text, value in PREFERRED + OTHERS:
        read = ROWS.deserialize(bytes.fromhex(text))
        assert repr(read) == repr(value), text
        assert type(read) is type(value), text


def test_the_standards_preferred_examples_are_written() -> None:
    for text, value in PREFERRED:
        assert SHORTEST.serialize(value).hex() == text
        # Floats of finite numbers have eight bytes unless events must be deterministic.
        if not isinstance(value, float) or not math.isfinite(value):
            assert ROWS.serialize(value).hex() == text


# Rows

OTHER_VALUES: list[tuple[str, Any]] = [
    ("c48221196ab3", Decimal("273.15")),
    ("c482211864", Decimal("1.00")),
    ("c482051864", Decimal("1.00E+7")),
    ("c48229c349010000000000000000", Decimal("-1844674407.3709551617")),
    ("d82550000102030405060708090a0b0c0d0e0f", uuid.UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")),
    ("d903ec6a323032342d30322d3239", date(2024, 2, 29)),
    ("d8643901f3", date(1968, 8, 19)),
    ("d864194d48", date(2024, 3, 2)),
    (
        "c07819323032342d30322d32395430323a30303a30302b30323a3030",
        datetime(2024, 2, 29, 2, tzinfo=timezone(timedelta(hours=2))),
    ),
    ("a20102416103", {1: 2, b"a": 3}),
    ("d9d9f701", tag(55799, 1)),
    ("c5820103", tag(5, [1, 3])),
    ("d8236128", tag(35, "(")),
    ("d90102820102", tag(258, [1, 2])),
    ("d90104447f000001", tag(260, b"\x7f\0\0\1")),
    ("c26161", tag(2, "a")),
    ("c482f501", tag(4, [True, 1])),
    ("c48201f5", tag(4, [1, True])),
    ("c48101", tag(4, [1])),
    ("c06161", tag(0, "a")),
    ("c001", tag(0, 1)),
    ("c16161", tag(1, "a")),
    ("c1f97e00", tag(1, math.nan)),
    ("c11b7fffffffffffffff", tag(1, (1 << 63) - 1)),
    ("c073323032342d30322d32395430323a30303a3030", tag(0, "2024-02-29T02:00:00")),
    ("d8254101", tag(37, b"\x01")),
    ("d825820102", tag(37, [1, 2])),
    ("d8641b7fffffffffffffff", tag(100, (1 << 63) - 1)),
    ("d903ec6161", tag(1004, "a")),
    ("c4821b7fffffffffffffff01", tag(4, [(1 << 63) - 1, 1])),
]


@pytest.mark.parametrize(("text", "value"), OTHER_VALUES)
def test_tags_are_values_or_stay_tags(text: str, value: Any) -> None:
    read = ROWS.deserialize(bytes.fromhex(text))
    assert repr(read) == repr(value)
    assert type(read) is type(value)
    assert ROWS.deserialize(ROWS.serialize(read)) == read or read != read or "nan" in repr(read)


def test_a_bignum_that_python_could_not_print_stays_a_tag() -> None:
    digits = b"\x01" * 1025
    assert ROWS.deserialize(cbor2.dumps(tag(2, digits[:-1]))) == int.from_bytes(digits[:-1], "big")
    assert ROWS.deserialize(cbor2.dumps(tag(2, digits))) == tag(2, digits)


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


@dataclass
class Point:
    x: int
    y: Any = None


KEY = uuid.UUID(int=7)


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (Point(1, Point(2)), {"x": 1, "y": {"x": 2, "y": None}}),
        (OrderedDict(a=(1, 2)), {"a": [1, 2]}),
        ({Color.RED: Color.RED, Level.HIGH: Level.HIGH, KEY: KEY}, {"RED": "RED", "HIGH": "HIGH", str(KEY): KEY}),
        ({np.int64(3): 1}, {3: 1}),
        ([np.int64(1), np.float32(1.5), np.bool_(True), np.float64(2)], [1, 1.5, True, 2.0]),
        ([bytearray(b"a"), memoryview(b"b")], [b"a", b"b"]),
        (datetime(2024, 2, 29, 2, tzinfo=timezone(timedelta(hours=2))), tag(0, "2024-02-29T00:00:00Z")),
        (datetime(2024, 2, 29, 2, 0, 0, 5), "2024-02-29T02:00:00.000005"),
        (time(1, 2), "01:02:00.000000"),
        (date(1, 1, 1), tag(1004, "0001-01-01")),
        ([[date(1, 1, 1)]], [[tag(1004, "0001-01-01")]]),
        (tag(99, date(1, 1, 1)), tag(99, tag(1004, "0001-01-01"))),
    ],
)
def test_values_are_written_as_others(value: Any, same: Any) -> None:
    assert ROWS.serialize(value) == cbor2.dumps(same)


@pytest.mark.parametrize(
    "number", [(1 << 72) - 1, 1 << 71, -(1 << 71) - 1, 1 << 65, (1 << 2000) - 1, -(1 << 64) - 1, 1 << 64]
)
def test_bignums_have_room_for_the_sign_that_jackson_takes(number: int) -> None:
    for value in (
        number,
        {"a": [number, 5, "ü"]},
        Decimal(number).scaleb(-3, Context(prec=999)),
        [Decimal(number), Decimal("1.0"), True],
    ):
        event = ROWS.serialize(value)
        assert ROWS.deserialize(event) == value
        assert cbor2.loads(event) == value
        assert cbor2.loads(SHORTEST.serialize(value)) == value
    content = ROWS.serialize(number)[1:]
    assert int.from_bytes(cbor2.loads(content), "big", signed=True) in (number, -1 - number)
    assert SHORTEST.serialize(number) == cbor2.dumps(number)


def nested(depth: int) -> Any:
    value: Any = []
    for level in range(depth - 1):
        value = [value] if level % 2 else {"a": value}
    return value


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"a": [1, {2}]}, "$.a[1]", "a set is not supported by CBOR"),
        ({"a": object()}, "$.a", "a object is not supported"),
        ({"a": {1.5: 1}}, "$.a.1.5", "cannot be a key"),
        ({True: 1}, "$.True", "cannot be a key"),
        ({"a": {2**64: 1}}, f"$.a.{2**64}", "cannot be a key"),
        ({Color.RED: 1, "RED": 2}, "$.RED", "exists twice"),
        ({"a": ["x", "\ud800"]}, "$.a[1]", "surrogate"),
        ({"\ud800": 1}, "$.\ud800", "surrogate"),
        (Point(1, tag(9, "\ud800")), "$.y", "surrogate"),
        (CYCLE, "$" + "[0]" * 398, "nested more than 398 levels deep"),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "$", "beyond the years"),
    ],
)
def test_a_value_without_form_is_named(value: Any, path: str, reason: str) -> None:
    with pytest.raises(SerializationError, match=reason) as caught:
        ROWS.serialize(value)
    assert caught.value.field_path == path


def test_what_is_written_deepest_is_read() -> None:
    value = nested(398)
    assert ROWS.deserialize(ROWS.serialize(value)) == value
    # cbor2 would end the process.
    for deep in (nested(399), nested(60_000)):
        with pytest.raises(SerializationError, match="nested more than 398"):
            ROWS.serialize(deep)


def test_deterministic_events_do_not_depend_on_the_order_of_keys() -> None:
    one, two = {"b": 1, "aa": 2, "a": 1.0, 10: [1.5]}, {10: [1.5], "a": 1.0, "aa": 2, "b": 1}
    assert SHORTEST.serialize(one) == SHORTEST.serialize(two) == bytes.fromhex("a40a81f93e006161f93c0061620162616102")
    assert ROWS.serialize(one) != ROWS.serialize(two)
    column = pa.array([{"b": 1, "a": 1.0}])
    assert SHORTEST.encode_column(column)[0].as_py() == SHORTEST.serialize({"a": 1.0, "b": 1})
    again = pickle.loads(pickle.dumps(SHORTEST))
    assert again.serialize(one) == SHORTEST.serialize(two)
    assert repr(again) == "CborSerializer(deterministic=True)"


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.uuids()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.datetimes(timezones=st.just(UTC))
    | st.dates()
)
KEYS = st.text() | st.integers(-(2**64), 2**64 - 1) | st.binary()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner))


@given(VALUES)
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read(value: Any) -> None:
    read = ROWS.deserialize(ROWS.serialize(value))
    if "nan" not in repr(value).lower():
        assert read == value or "-0" in repr(value)
    assert ROWS.serialize(read) == ROWS.serialize(value)


# Refused input

BAD: list[tuple[str, str]] = [
    ("", "truncated at byte 0"),
    ("ff", "a break outside .* at byte 0"),
    ("8201ff", "a break outside .* at byte 2"),
    ("a101ff", "a break"),
    ("a1ff01", "a break"),
    ("c1ff", "a break"),
    ("bf01ff", "a break outside .* at byte 2"),
    ("0000", "1 bytes after the value, from byte 1 on"),
    ("f6f6", "after the value"),
    ("80ff", "bytes after the value"),
    ("f6" + "50" + "00" * 16, "after the value"),
    ("8201", "truncated at byte 2|an array of 2 items"),
    ("9f", "truncated"),
    ("bf6161", "truncated"),
    ("18", "truncated"),
    ("1b00000000", "truncated"),
    ("f9", "truncated"),
    ("c1", "truncated"),
    ("7f6161", "truncated"),
    ("5f", "truncated"),
    ("6261", "a text of 2 bytes, from byte 1 on: 1 remain"),
    ("814200", "a byte string of 2 bytes, from byte 2 on"),
    ("9bffffffffffffffff", "an array of 18446744073709551615 items, at byte 0: 0 bytes"),
    ("9b7fffffffffffffff00", "an array of"),
    ("bb7fffffffffffffff00", "a map of"),
    ("5b7fffffffffffffff00", "a byte string of"),
    ("7b7fffffffffffffff00", "a text of"),
    ("5f5a7fffffff00ff", "a byte string of"),
    ("1c", "a reserved head, at byte 0"),
    ("5d", "a reserved head"),
    ("9e", "reserved"),
    ("bc", "reserved"),
    ("dc", "reserved"),
    ("fc", "reserved"),
    ("fd", "reserved"),
    ("fe", "reserved"),
    ("f800", "reserved"),
    ("f81f", "reserved"),
    ("1f", "reserved"),
    ("3f", "reserved"),
    ("df00", "reserved"),
    ("5f6161ff", "no part of a byte string, at byte 1"),
    ("7f4161ff", "no part of a text"),
    ("7f7f6161ffff", "no part"),
    ("5f00ff", "no part"),
    ("61ff", "invalid UTF-8 at byte 1"),
    ("7f61c361bcff", "invalid UTF-8 at byte 2"),
    ("63eda080", "invalid UTF-8"),
    ("64f4908080", "invalid UTF-8"),
    ("a161ff00", "invalid UTF-8 at byte 2"),
    ("a201020103", "Duplicate map key: 1"),
    ("a2616101616102", "Duplicate map key: 'a'"),
    ("bf616101616102ff", "Duplicate"),
    ("a1810102", "an array as a key of a map, at byte 1"),
    ("a1a000", "a map as a key"),
    ("a1f500", "a simple value as a key"),
    ("a1f93c0000", "a simple value as a key"),
    ("a1f600", "a simple value"),
    ("a1c2410100", "a tag as a key"),
    ("a1c0616100", "a tag as a key"),
    ("a1d820616100", "a tag as a key"),
    ("a1c482010100", "a tag as a key"),
    ("d81c80", r"tag 28 \(shared value\), at byte 0"),
    ("82d81c80d81d00", "tag 28"),
    ("d81d00", "tag 29"),
    ("d9010083636161616161d81900", "tag 256"),
    ("d81900", r"tag 25 \(string reference\)"),
]


@pytest.mark.parametrize(("text", "reason"), BAD)
def test_malformed_events_are_refused_with_their_place(text: str, reason: str) -> None:
    event = bytes.fromhex(text)
    with pytest.raises(DeserializationError, match=reason):
        ROWS.deserialize(event)
    # Among good ones, before and behind, in a column that ignores what it holds.
    serializer = CborSerializer(arrow_type=pa.struct([("other", pa.null())]))
    good = bytes.fromhex("a1656f74686572f6")
    errors: list[DeserializationError] = []
    read = serializer.decode_column(pa.array([good, event, good] * 30, pa.binary()), on_error=errors.append)
    assert [error.row for error in errors] == list(range(1, 90, 3))
    assert read.to_pylist() == [{"other": None}, None, {"other": None}] * 30


def test_an_event_cannot_take_bytes_of_the_next() -> None:
    serializer = CborSerializer(arrow_type=pa.int64())
    first, second = bytes.fromhex("8201"), bytes.fromhex("0203")
    errors: list[DeserializationError] = []
    serializer.decode_column(pa.array([first, second] * 20, pa.binary()), on_error=errors.append)
    assert [error.row for error in errors] == list(range(40))


@pytest.mark.parametrize("between", ["5f", "ff", "c6", "d823", "81", "9f", "a1"])
def test_bytes_between_two_events_belong_to_none(between: str) -> None:
    serializer = CborSerializer(arrow_type=pa.int64())
    one, more = b"\x01", bytes.fromhex(between)
    for events in ([one + more, one], [one, more + one], [one + more, b"\xff" + one]):
        errors: list[DeserializationError] = []
        read = serializer.decode_column(pa.array(events * 20, pa.binary()), on_error=errors.append)
        # A tag before a number is one whose content counts.
        good = {one, more + one} if more in (b"\xc6", b"\xd8\x23") else {one}
        assert [error.row for error in errors] == [row for row, event in enumerate(events * 20) if event not in good]
        assert read.null_count == len(errors)


def test_depth_is_limited() -> None:
    for head, end in ((b"\x81", b"\x00"), (b"\xa1\x60", b"\x00"), (b"\xc6", b"\x00"), (b"\x9f", b"\xff")):
        closed = end if end != b"\xff" else b"\xff" * 400
        ROWS.deserialize(head * 400 + closed)
        with pytest.raises(LimitExceededError, match="nested more than 400 levels deep"):
            ROWS.deserialize(head * 401 + (closed if end != b"\xff" else b"\xff" * 401))
        with pytest.raises(LimitExceededError):
            ROWS.deserialize(head * 400_000)


@pytest.mark.parametrize("item", ["80", "a0", "a160a0", "8180"])
def test_memory_is_limited(item: str) -> None:
    event = b"\x9f" + bytes.fromhex(item) * (1_000_000 // (len(item) // 2)) + b"\xff"
    with pytest.raises(LimitExceededError, match="use more than 48 MiB"):
        ROWS.deserialize(event)


def test_honest_large_events_are_read() -> None:
    for value in (
        [{"id": n, "x": n / 7, "name": f"sensor {n}", "ok": True} for n in range(25_000)],
        [n / 7 for n in range(150_000)],
        [Decimal(n).scaleb(-2) for n in range(100_000)],
        ["a"] * 600_000,
        ["水" * 30_000] * 10,
        {n: {"a": n, "b": None} for n in range(80_000)},
        b"\x81" * 2_000_000,
    ):
        event = ROWS.serialize(value)
        assert len(event) > 600_000
        assert ROWS.deserialize(event) == value


def test_keys_of_one_hash_take_no_time() -> None:
    # As Python's tuples, or long integers, they would be compared with each other.
    numbers = b"".join(cbor2.dumps((2**61 - 1) * (n + 1) << 64) + b"\xf6" for n in range(40_000))
    with pytest.raises(DeserializationError, match="a tag as a key"):
        ROWS.deserialize(b"\xbf" + numbers + b"\xff")
    with pytest.raises(DeserializationError, match="an array as a key"):
        ROWS.deserialize(b"\xbf" + b"".join(b"\x81" + cbor2.dumps(n) + b"\xf6" for n in range(40_000)) + b"\xff")


# Classes, and what is missing


@dataclass
class Order:
    id: int
    price: Decimal
    at: datetime
    key: uuid.UUID
    data: bytes
    day: date
    tags: dict[str, list[float]]
    color: str | None = None


def test_objects_of_a_class() -> None:
    orders = typed(CborSerializer(arrow_type=arrow_type_of(Order)), Order)
    order = Order(1, Decimal("2.50"), FIRST_INSTANT, KEY, b"\x00", date(2024, 2, 29), {"a": [1.5]})
    event = orders.serialize(order)
    assert orders.deserialize(event) == order
    assert orders.decode_column(pa.array([event]))[0]["price"].as_py() == Decimal("2.50")
    with pytest.raises(DeserializationError) as caught:
        orders.deserialize(ROWS.serialize({"id": "one"}))
    assert caught.value.field_path == "$.id"


@dataclass
class Defaults:
    a: int = 0
    b: int = 0
    c: int = 0


def test_objects_of_empty_maps_are_limited() -> None:
    many = typed(CborSerializer(), list[Defaults])
    assert many.deserialize(b"\x83\xa0\xa0\xa0") == [Defaults()] * 3
    event = b"\x9f" + b"\xa0" * 500_000 + b"\xff"
    assert len(ROWS.deserialize(event)) == 500_000
    with pytest.raises(LimitExceededError, match="use more than 32 MiB"):
        many.deserialize(event)
    honest = [Defaults(n, n + 1, n + 2) for n in range(60_000)]
    assert many.deserialize(many.serialize(honest)) == honest


def test_tags_of_large_events_are_limited() -> None:
    with pytest.raises(LimitExceededError, match="more than one tag for 4 bytes"):
        ROWS.deserialize(b"\x9f" + b"\xc6\x00" * 400_000 + b"\xff")
    assert len(ROWS.deserialize(b"\x9f" + b"\xc6\x00" * 100_000 + b"\xff")) == 100_000


def test_without_cbor2_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['cbor2'] = None\n"
        "from pravega_serde import MissingExtraError\nfrom pravega_serde.cbor import CborSerializer\n"
        "try:\n    CborSerializer()\nexcept MissingExtraError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        "the CBOR format needs the package 'cbor2'; install it with: pip install 'pravega-serde[cbor]'" in done.stdout
    )
    assert MissingExtraError("cbor2", "cbor", purpose="x").extra == "cbor"


def test_types_that_cbor_has_not() -> None:
    with pytest.raises(SchemaError, match=r"pass a pyarrow.Schema to serializer_for\('cbor', arrow_type=…\)"):
        _ = ROWS.arrow_type
    for kind in (
        pa.duration("us"),
        pa.time64("us"),
        pa.map_(pa.float64(), pa.int64()),
        pa.float16(),
        pa.timestamp("ms"),
    ):
        with pytest.raises(SchemaError):
            CborSerializer(arrow_type=pa.struct([("a", kind)]))
    for kind in (pa.duration("us"), pa.map_(pa.float64(), pa.int64()), pa.map_(pa.bool_(), pa.int64())):
        with pytest.raises(SchemaError, match="not supported by CBOR"):
            ROWS.check_encodable(pa.struct([("a", kind)]))
    with pytest.raises(SchemaError, match="exists twice"):
        ROWS.check_encodable(pa.struct([("a", pa.int64()), ("a", pa.int64())]))


def test_floats_have_eight_bytes() -> None:
    assert ROWS.serialize(1.5) == b"\xfb" + struct.pack(">d", 1.5)


def test_columns_that_events_have_together() -> None:
    write = CborSerializer().serialize
    events = [{"id": 1, "tags": ["x"], "in": {"a": None}}, {"id": 2.5, "raw": b"x", "in": {"b": "y"}}]
    inference = Inference()
    for event in [*map(write, events), write([1]), b"\xff", None]:
        inference.add(pa.array([event], pa.binary()))
    assert {field.name: str(field.type) for field in inference.schema()} == {
        "id": "double",
        "tags": "list<item: string>",
        "in": "struct<a: null, b: string>",
        "raw": "binary",
    }


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([{"a": 1}, {"a": "x"}], r"\$\.a has values without a common type"),
        ([{1: 2}], "int"),
        ([{"b": 1, "a": 2**64}], r"\$\.a has the integer 18446744073709551616, .*; pass decimal\(38, 0\) as its type"),
        ([{"b": [{"a": [1, -(2**70)]}]}], r"\$\.b\[\]\.a\[\] has the integer -1180591620717411303424, which int64"),
        ([{"a": 2**2000}], r"\$\.a has the integer of 2001 bits"),
    ],
)
def test_events_without_columns_in_common(events: list[Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Inference().add(pa.array(list(map(CborSerializer().serialize, events)), pa.binary()))


def test_large_integers_have_a_column_of_decimals() -> None:
    kind = pa.struct([("a", pa.decimal128(38, 0))])
    events = pa.array([CborSerializer().serialize({"a": number}) for number in (2**64, -(2**70))], pa.binary())
    read = CborSerializer(arrow_type=kind).decode_column(events)
    assert [int(row["a"]) for row in read.to_pylist()] == [2**64, -(2**70)]
