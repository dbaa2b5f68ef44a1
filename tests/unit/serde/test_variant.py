"""VARIANT columns: JSON and CBOR values both ways, compared with Spark's own reader and writer."""

import datetime as dt
import json
import struct
import uuid
from decimal import Decimal, localcontext

import cbor2
import pyarrow as pa
import pytest
from pyspark.sql.types import VariantVal

from pravega_serde import CborSerializer, DeserializationError, JsonSerializer
from pravega_serde.columnar.bad_rows import MalformedError
from pravega_serde.columnar.variant import VARIANT, decode, encode

KIND = pa.struct([("v", VARIANT), ("many", pa.list_(VARIANT)), ("k", pa.int32())])
JSON = JsonSerializer(arrow_type=KIND)
CBOR = CborSerializer(arrow_type=KIND)

#: Texts that come back as they are.
EXACT = [
    "0",
    "-1",
    "127",
    "-128",
    "32768",
    "-2147483649",
    "9007199254740993",
    "-9223372036854775808",
    "9223372036854775808",
    "12345678901234567890123456789012345678",
    "0.1",
    "-2.50",
    "1234567890.123456789",
    "0.12345678901234567890123456789012345678",
    "100000.0",
    "-0.0",
    "true",
    "false",
    '"é\\uD834\\uDD1E"',
    f'"{"x" * 63}"',
    f'"{"x" * 64}"',
    "{}",
    "[]",
    "[[],{}]",
    '{"a":{"b":[1,null,"c"]},"é":1.5}',
]


def no_other(value: object) -> object:
    raise AssertionError(value)


def read(event: bytes) -> list[object]:
    return [
        None if each is None else decode(value=each["value"], names=each["metadata"])
        for each in JSON.decode_column(pa.array([event])).field(0).to_pylist()
    ]


@pytest.mark.parametrize("text", EXACT)
def test_a_json_value_keeps_all_its_digits_in_json_and_cbor(text: str) -> None:
    event = f'{{"v":{text},"many":[{text},null],"k":1}}'.encode()
    column = JSON.decode_column(pa.array([event]))
    assert JSON.encode_column(column).to_pylist() == [event]
    again = CBOR.decode_column(CBOR.encode_column(column))
    assert JSON.encode_column(again).to_pylist() == [event]


@pytest.mark.parametrize("text", EXACT)
def test_spark_reads_what_is_written_and_the_reverse(text: str) -> None:
    plain = json.loads(text, parse_float=Decimal)
    value, names = encode(plain, no_other)
    with localcontext(prec=40):  # Spark's reader rounds to the precision of the context
        assert VariantVal(value, names).toPython() == plain
    spark = VariantVal.parseJson(text)
    assert decode(spark.value, spark.metadata) == plain


@pytest.mark.parametrize("serializer", [JSON, CBOR])
def test_nulls_of_spark_have_null_parts(serializer: JsonSerializer | CborSerializer) -> None:
    parts = [pa.array([None, b"\0"]), pa.array([None, b"\1\0\0"])]
    column = pa.StructArray.from_arrays(parts, fields=list(VARIANT), mask=pa.array([True, False]))
    events = serializer.encode_column(pa.RecordBatch.from_arrays([column], ["v"]))
    assert [serializer.deserialize(event) for event in events.to_pylist()] == [{"v": None}] * 2


def test_large_objects_and_arrays_are_read_by_spark() -> None:
    value = {f"name {i}": ["x" * (i % 70)] * (i % 3) for i in range(300)} | {"list": list(range(70_000))}
    encoded, names = encode(value, no_other)
    assert VariantVal(encoded, names).toPython() == value
    assert decode(encoded, names) == value


def test_a_null_and_an_absent_value_are_null_and_a_null_inside_is_kept() -> None:
    assert read(b'{"v":null}') == read(b'{"k":1}') == [None]
    assert read(b'{"v":[null,{"a":null}]}') == [[None, {"a": None}]]
    assert JSON.encode_column(JSON.decode_column(pa.array([b"{}"]))).to_pylist() == [b'{"v":null,"many":null,"k":null}']


@pytest.mark.parametrize(
    ("text", "value"), [("1E5", 1e5), ("1.5e-3", Decimal("0.0015")), ("1e300", 1e300), ("5E-324", 5e-324)]
)
def test_numbers_with_an_exponent(text: str, value: object) -> None:
    assert read(b'{"v":%b}' % text.encode()) == [value]


@pytest.mark.parametrize("text", ["1e400", "1" * 39, "0." + "1" * 39, "1.00000000000000000001e30", "1E-400"])
def test_a_number_that_a_variant_does_not_hold_is_malformed(text: str) -> None:
    with pytest.raises(DeserializationError, match=r"more digits than the 38 .*at row 0, field \$\.v\.a\[1\]"):
        JSON.decode_column(pa.array([b'{"v":{"a":[0,%b]}}' % text.encode()]))


def test_what_json_does_not_have_is_written_as_by_other_columns() -> None:
    values = {
        "instant": dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC),
        "local": dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
        "day": dt.date(1, 1, 1),
        "raw": b"\0\xff",
    }
    column = pa.array([{"v": dict(zip(("value", "metadata"), encode(values, no_other), strict=True))}], KIND)
    (event,) = JSON.encode_column(column).to_pylist()
    assert json.loads(event)["v"] == {
        "day": "0001-01-01",
        "instant": "2026-01-01T12:00:00.000000Z",
        "local": "9999-12-31T23:59:59.999999",
        "raw": "AP8=",
    }
    again = CBOR.decode_column(CBOR.encode_column(column)).field(0)[0].as_py()
    # A local time is a text in CBOR.
    assert decode(again["value"], again["metadata"]) == values | {"local": "9999-12-31T23:59:59.999999"}


def test_spark_types_that_only_its_writer_has() -> None:
    names = b"\1\0\0"
    assert decode(bytes([14 << 2]) + struct.pack("<f", 0.1), names) == 0.1
    identity = uuid.uuid4()
    assert decode(bytes([20 << 2]) + identity.bytes, names) == identity


def test_cbor_values() -> None:
    identity = uuid.uuid4()
    value = {"undefined": cbor2.undefined, "id": identity, "raw": b"\1", "n": 2**70, "d": Decimal("1.10"), "t": True}
    event = cbor2.dumps({"v": value | {"day": cbor2.CBORTag(1004, "2026-01-01")}})
    found = CBOR.decode_column(pa.array([event])).field(0)[0].as_py()
    assert decode(found["value"], found["metadata"]) == {
        **value,
        "undefined": None,
        "id": str(identity),
        "day": dt.date(2026, 1, 1),
    }
    far = [(0, "0001-01-01T00:00:00+05:00"), (1, -62135596801), (100, -(10**9)), (1004, "0000-01-01")]
    for wrong in ({1: 2}, {"a": cbor2.CBORSimpleValue(99)}, *(cbor2.CBORTag(*each) for each in far)):
        with pytest.raises(DeserializationError, match="row 0"):
            CBOR.decode_column(pa.array([cbor2.dumps({"v": wrong})]))


def test_damaged_variants_are_malformed() -> None:
    value, names = encode({"a": [1, "x" * 100, 2.5], "b": Decimal("1.5")}, no_other)
    for end in range(len(value)):
        with pytest.raises(MalformedError):
            decode(value[:end], names)
    for end in range(len(names) - 1):
        with pytest.raises(MalformedError):
            decode(value, names[:end])


def test_a_value_over_the_limits_is_malformed() -> None:
    with pytest.raises(MalformedError, match="over the 16 MiB"):
        encode("x" * (17 << 20), no_other)
    deep: object = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(MalformedError, match="deep"):
        encode(deep, no_other)
