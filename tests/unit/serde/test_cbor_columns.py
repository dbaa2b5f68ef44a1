"""CBOR columns: rows and columns agree, what Jackson writes is read, and bad rows are named."""

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import cbor2
import numpy as np
import pyarrow as pa
import pytest

from pravega_serde import DeserializationError, LimitExceededError, SerializationError
from pravega_serde.cbor import CborSerializer

ROWS = CborSerializer()
UTC_MICROS, LOCAL_MICROS = pa.timestamp("us", "UTC"), pa.timestamp("us")
NOON = datetime(2024, 2, 29, 12, 0, 0, 123456)


def tag(number: int, content: Any) -> Any:
    return cbor2.CBORTag(number, content)


def read(kind: pa.DataType, *values: Any) -> list[Any]:
    column = CborSerializer(arrow_type=kind).decode_column(pa.array([cbor2.dumps(value) for value in values]))
    column.validate(full=True)
    return column.to_pylist()


def refused(kind: pa.DataType, value: Any) -> DeserializationError:
    column = pa.array([cbor2.dumps({"a": value}), None, cbor2.dumps({"a": None})] * 10, pa.binary())
    errors: list[DeserializationError] = []
    serializer = CborSerializer(arrow_type=pa.struct([("a", kind)]))
    assert serializer.decode_column(column, on_error=errors.append).null_count == 20
    assert [error.row for error in errors] == list(range(0, 30, 3))
    with pytest.raises(DeserializationError):
        serializer.decode_column(column)
    return errors[0]


# Values by type

READ: list[tuple[pa.DataType, Any, Any]] = [
    (pa.null(), None, None),
    (pa.bool_(), True, True),
    (pa.int8(), -128, -128),
    (pa.uint64(), 2**64 - 1, 2**64 - 1),
    (pa.int64(), tag(2, b"\x05"), 5),
    (pa.int64(), cbor2.undefined, None),
    (pa.string(), "ü", "ü"),
    (pa.float64(), 2, 2.0),
    (pa.float64(), 2**70, 2.0**70),
    (pa.float64(), Decimal("2.5"), 2.5),
    (pa.float32(), 0.1, 0.10000000149011612),
    (pa.float64(), tag(2, b"\xff" * 1000), float("inf")),
    (pa.binary(), b"\xff", b"\xff"),
    (pa.string(), tag(37, bytes(16)), "00000000-0000-0000-0000-000000000000"),
    (pa.binary(), tag(37, bytes(16)), bytes(16)),
    (pa.string(), tag(32, "http://x"), "http://x"),
    (pa.string(), tag(35, "("), "("),
    (pa.decimal128(9, 2), Decimal("1.5"), Decimal("1.50")),
    (pa.decimal128(9, 2), 7, Decimal("7.00")),
    (pa.decimal128(9, 2), Decimal("1.5000"), Decimal("1.50")),
    (pa.decimal128(9, 2), Decimal("1E+3"), Decimal("1000.00")),
    (pa.date32(), tag(1004, "2024-02-29"), date(2024, 2, 29)),
    (pa.date32(), tag(100, 1), date(1970, 1, 2)),
    (pa.date32(), "2024-02-29", date(2024, 2, 29)),
    (pa.date32(), [2024, 2, 29], date(2024, 2, 29)),
    (UTC_MICROS, tag(0, "2024-02-29T12:00:00.123456Z"), NOON.replace(tzinfo=UTC)),
    (UTC_MICROS, tag(0, "2024-02-29T14:00:00.123456789+02:00"), NOON.replace(tzinfo=UTC)),
    (UTC_MICROS, "2024-02-29T12:00:00.123456Z", NOON.replace(tzinfo=UTC)),
    (UTC_MICROS, tag(1, 1709208000), NOON.replace(microsecond=0, tzinfo=UTC)),
    (UTC_MICROS, tag(1, 1709208000.123456), NOON.replace(tzinfo=UTC)),
    (UTC_MICROS, tag(1, -0.5), datetime(1969, 12, 31, 23, 59, 59, 500000, UTC)),
    (UTC_MICROS, 1709208000123, NOON.replace(microsecond=123000, tzinfo=UTC)),
    (UTC_MICROS, Decimal("1709208000.123456789"), NOON.replace(tzinfo=UTC)),
    (UTC_MICROS, Decimal("-0.0000001"), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
    (UTC_MICROS, Decimal("-1E-2000000000"), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
    (UTC_MICROS, Decimal("0E+2000000000"), datetime(1970, 1, 1, tzinfo=UTC)),
    (LOCAL_MICROS, "2024-02-29T12:00:00.123456", NOON),
    (LOCAL_MICROS, [2024, 2, 29, 12, 0, 0, 123456789], NOON),
    (LOCAL_MICROS, [2024, 2, 29, 12, 0], datetime(2024, 2, 29, 12)),
    (pa.list_(pa.int8()), [1, None], [1, None]),
    (pa.list_(pa.int8()), tag(258, [1]), [1]),
    (pa.list_(pa.int8()), [], []),
    (pa.map_(pa.string(), pa.int8()), {"a": 1}, [("a", 1)]),
    (pa.map_(pa.int64(), pa.int8()), {-5: 1}, [(-5, 1)]),
    (pa.map_(pa.binary(), pa.int8()), {b"k": 1}, [(b"k", 1)]),
    (pa.struct([("a", pa.int8())]), {"a": 1, "b": 2, 3: 4}, {"a": 1}),
    (pa.struct([("a", pa.int8())]), {}, {"a": None}),
    (pa.struct([]), {"a": 1}, {}),
]


def test_values_are_read_alone_and_among_others() -> None:
    for kind, value, wanted in READ:
        assert read(kind, value) == [wanted], (kind, value)
        assert read(kind, None, value, *[None] * 30, value) == [None, wanted, *[None] * 30, wanted]
        assert read(pa.list_(kind), [value, None], [], None) == [[wanted, None], [], None]


REFUSED: list[tuple[pa.DataType, Any, str]] = [
    (pa.null(), 1, "an integer where null"),
    (pa.bool_(), 1, "an integer where a boolean"),
    (pa.int8(), True, "a boolean where an integer"),
    (pa.int8(), 128, "beyond the range of int8"),
    (pa.uint8(), -1, "beyond"),
    (pa.int64(), 2**63, "beyond"),
    (pa.int64(), 1.0, "a float where"),
    (pa.int64(), "1", "a text where an integer"),
    (pa.int64(), cbor2.CBORSimpleValue(1), "a simple value"),
    (pa.int64(), tag(2, "a"), "tag 2 where"),
    (pa.int64(), tag(1, 5), "tag 1 where an integer"),
    (pa.float64(), "1", "a text where a number"),
    (pa.float64(), False, "a boolean"),
    (pa.string(), b"a", "a byte string where a text"),
    (pa.string(), 1, "an integer where a text"),
    (pa.string(), tag(37, b"a"), "not of 16 bytes"),
    (pa.string(), tag(37, "a" * 16), "not of 16 bytes"),
    (pa.binary(), "a", "a text where a byte string"),
    (pa.decimal128(4, 2), 1.5, "a float where a decimal"),
    (pa.decimal128(4, 2), "1.5", "a text"),
    (pa.decimal128(4, 2), 100, "does not fit"),
    (pa.decimal128(4, 2), Decimal("1.001"), "does not fit"),
    (pa.decimal128(4, 2), Decimal("1E+2000000000"), "does not fit"),
    (pa.decimal128(4, 2), tag(2, b"\xff" * 2000), "tag 2 where"),
    (pa.date32(), 5, "an integer where a date"),
    (pa.date32(), "2024-02-30", "not a date in ISO 8601"),
    (pa.date32(), tag(0, "2024-02-29"), "tag 0 where a date"),
    (pa.date32(), tag(100, 2**31), "beyond the range"),
    (pa.date32(), tag(100, 1.0), "tag 100"),
    (pa.date32(), [2024, 2], "an array where a date"),
    (pa.date32(), [2024, 2, 30], "invalid parts of a date"),
    (pa.date32(), [2024, 2, True], "an array where"),
    (pa.date32(), [2**80, 1, 1], "invalid parts"),
    (UTC_MICROS, tag(0, "x"), "not a timestamp in ISO 8601 with its zone"),
    (UTC_MICROS, "2024-02-29T12:00:00", "with its zone"),
    (LOCAL_MICROS, "2024-02-29T12:00:00Z", "without a zone"),
    (UTC_MICROS, tag(0, 1), "tag 0"),
    (UTC_MICROS, tag(1, "1"), "tag 1"),
    (UTC_MICROS, tag(1, float("nan")), "beyond the range of a timestamp"),
    (UTC_MICROS, tag(1, float("inf")), "beyond"),
    (UTC_MICROS, tag(1, 2**63), "beyond"),
    (UTC_MICROS, 2**62, "beyond"),
    (UTC_MICROS, Decimal("1E+2000000000"), "beyond"),
    (UTC_MICROS, 1.5, "a float where a timestamp"),
    (UTC_MICROS, [2024, 2, 29, 12, 0], "an array where a timestamp"),
    (LOCAL_MICROS, [2024, 2, 29, 12, 61], "invalid parts"),
    (LOCAL_MICROS, [2024, 2, 29], "an array where"),
    (pa.list_(pa.int8()), {"a": 1}, "a map where an array"),
    (pa.map_(pa.string(), pa.int8()), [1], "an array where a map"),
    (pa.map_(pa.string(), pa.int8()), {1: 1}, "an integer where a text"),
    (pa.struct([]), 1, "an integer where a map"),
]


def test_other_values_are_refused_with_their_place() -> None:
    for kind, value, reason in REFUSED:
        error = refused(kind, value)
        assert reason in str(error), (kind, value)
        assert (error.field_path or "").startswith("$.a"), (kind, value)


def test_the_place_of_a_bad_value_is_reported() -> None:
    kind = pa.struct([("l", pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.int8()))])))])
    serializer = CborSerializer(arrow_type=kind)
    with pytest.raises(DeserializationError) as caught:
        serializer.decode_column(pa.array([cbor2.dumps({"l": [{}, {"m": {"k": "x"}}]})]))
    assert (caught.value.row, caught.value.field_path) == (0, "$.l[1].m['k']")


# Output

KIND = pa.schema(
    [
        ("id", pa.int64()),
        ("big", pa.uint64()),
        ("name", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float32()),
        ("ok", pa.bool_()),
        ("data", pa.binary()),
        ("price", pa.decimal128(20, 3)),
        ("day", pa.date32()),
        ("at", UTC_MICROS),
        ("local", LOCAL_MICROS),
        ("tags", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.list_(pa.decimal128(5, 2)))),
        ("n", pa.map_(pa.int32(), pa.date32())),
        ("s", pa.struct([("u", pa.int8()), ("v", pa.list_(pa.struct([("w", UTC_MICROS)])))])),
        ("no", pa.null()),
    ]
)


def record(source: random.Random) -> dict[str, Any]:
    moment = datetime(1 + source.randrange(9998), 2, 3, 4, 5, 6, source.choice([0, 0, 1, 120000]))
    values = {
        "id": source.choice([0, -1, 23, 24, 255, 256, 65536, 2**32, -(2**63), 2**63 - 1]),
        "big": source.choice([0, 2**64 - 1]),
        "name": source.choice(["", "ü€😀", "x" * 300]),
        "x": source.choice([0.0, -1.5, 1e300, float("inf")]),
        "y": source.choice([0.5, 65536.0]),
        "ok": source.random() < 0.5,
        "data": source.randbytes(source.randrange(300)),
        "price": Decimal(source.randrange(-(10**9), 10**9)).scaleb(-3),
        "day": moment.date(),
        "at": moment.replace(tzinfo=UTC),
        "local": moment,
        "tags": ["a", None, "b"][: source.randrange(4)],
        "m": [(f"k{n}", [Decimal("1.25"), None]) for n in range(source.randrange(3))],
        "n": [(n * 300, date(1, 1, 1)) for n in range(source.randrange(3))],
        "s": {"u": 1, "v": [None, {"w": moment.replace(tzinfo=UTC)}]},
    }
    return {name: None if source.random() < 0.2 else value for name, value in values.items()} | {"no": None}


@pytest.mark.parametrize("deterministic", [False, True])
def test_rows_and_columns_give_the_same_bytes(deterministic: bool) -> None:
    source = random.Random(7)
    serializer = CborSerializer(arrow_type=KIND, deterministic=deterministic)
    records = [record(source) for _ in range(300)]
    column = pa.array([*records, None], serializer.arrow_type)
    events = serializer.encode_column(column)
    assert events.null_count == 1
    maps = ("m", "n")
    by_row = [{**each, **{name: None if each[name] is None else dict(each[name]) for name in maps}} for each in records]
    for value in by_row:
        value["price"] = None if value["price"] is None else value["price"].quantize(Decimal("0.001"))
    assert events.to_pylist()[:-1] == [serializer.serialize(value) for value in by_row]
    assert serializer.decode_column(events).equals(column)
    assert serializer.encode_column(column.slice(5, 7)).equals(events.slice(5, 7))
    for few in (0, 1, 3):
        assert serializer.decode_column(events.slice(2, few)).equals(column.slice(2, few))


def test_types_that_mean_the_same_are_written_alike() -> None:
    moments = pa.array([0, 1_500_000_000], pa.timestamp("ns", "Europe/Berlin"))
    column = pa.StructArray.from_arrays(
        [
            pa.array(["a", "b"]).dictionary_encode(),
            pa.array(["a", None], pa.large_string()),
            pa.array([b"ab", b"cd"], pa.binary(2)),
            moments,
            pa.array([0, 86_400_000], pa.date64()),
            pa.array([1, 2], pa.time32("s")),
            pa.array([[1], None], pa.large_list(pa.int8())),
            pa.array([[1, 2], None], pa.list_(pa.int8(), 2)),
            pa.array([np.float16(0.5), None], pa.float16()),
        ],
        names=list("abcdefghi"),
    )
    first, second = map(cbor2.loads, ROWS.encode_column(column).to_pylist())
    assert first == {
        "a": "a",
        "b": "a",
        "c": b"ab",
        "d": datetime(1970, 1, 1, tzinfo=UTC),
        "e": date(1970, 1, 1),
        "f": "00:00:01.000000",
        "g": [1],
        "h": [1, 2],
        "i": 0.5,
    }
    assert second["d"] == datetime(1970, 1, 1, 0, 0, 1, 500000, UTC)
    assert [second[name] for name in "bghi"] == [None] * 4


def test_a_value_that_cannot_be_written_is_named() -> None:
    kind = pa.struct([("l", pa.list_(pa.struct([("at", UTC_MICROS)])))])
    good, bad = {"l": [{"at": 0}]}, {"l": [{"at": 0}, {"at": 2**62}]}
    with pytest.raises(SerializationError, match="beyond the years 1 to 9999") as caught:
        ROWS.encode_column(pa.array([good, None, bad], kind))
    assert (caught.value.row, caught.value.field_path) == (2, "$.l[].at")


# Limits


@pytest.mark.parametrize("item", [b"\xf6", b"\xa0"])
def test_items_that_are_records_are_limited_by_their_memory(item: bytes) -> None:
    wide = pa.struct([(f"c{index}", pa.int64()) for index in range(100)])
    event = b"\x9f" + item * 60_000 + b"\xff"
    with pytest.raises(LimitExceededError, match="use more than 16 MiB"):
        CborSerializer(arrow_type=pa.list_(wide)).decode_column(pa.array([event]))
    in_map = b"\xbf" + b"".join(cbor2.dumps(str(n)) + item for n in range(60_000)) + b"\xff"
    with pytest.raises(LimitExceededError):
        CborSerializer(arrow_type=pa.map_(pa.string(), wide)).decode_column(pa.array([in_map]))
    assert len(CborSerializer(arrow_type=pa.list_(wide)).decode_column(pa.array([b"\x81" + item]))[0]) == 1


def test_large_events_among_small_ones() -> None:
    serializer = CborSerializer(arrow_type=pa.struct([("id", pa.int64()), ("text", pa.string())]))
    values = [{"id": n, "text": "x" * (300_000 if n % 40 == 7 else 5)} for n in range(120)]
    events = serializer.encode_column(pa.array(values, serializer.arrow_type))
    assert serializer.decode_column(events).to_pylist() == values
