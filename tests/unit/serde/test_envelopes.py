"""Events in envelopes: rows and columns have the same bytes and values, and malformed events are found."""

import datetime as dt
import json
import pickle
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from pravega_serde import (
    AvroSerializer,
    ByteArraySerializer,
    DeserializationError,
    Envelope,
    Enveloped,
    JsonSerializer,
    LimitExceededError,
    SchemaError,
    SerdeError,
    SerializationError,
    UTF8StringSerializer,
    typed,
)
from pravega_serde.format_table import ENVELOPES

ORDER = pa.struct([("item", pa.string()), ("cups", pa.int32())])
NOON = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
DEFAULTS = {"source": "/shop", "type": "order"}
MINIMAL = {"specversion": "1.0", "id": "1", "source": "/", "type": "t"}


@dataclass
class Order:
    item: str


def orders(envelope: str = "cloudevents") -> Enveloped[Any]:
    return Enveloped(JsonSerializer(arrow_type=ORDER), envelope, **DEFAULTS)


def some_envelopes(count: int) -> list[Envelope[Any]]:
    rng = random.Random(35)
    header_sets: list[Mapping[str, str]] = [
        {},
        {"id": 'i"ü😀\n'},
        {"source": "/other", "ext1": ""},
        {"type": "x", "dataschema": "http://a/b", "subject": "s"},
        {"datacontenttype": "application/vnd.shop+json"},
    ]
    return [
        Envelope(
            None if rng.random() < 0.1 else {"item": rng.choice(["tea", 'mi"lk', ""]), "cups": number},
            rng.choice([None, "", "ann", "bøb"]),
            rng.choice(
                [None, NOON, NOON.replace(year=1, microsecond=7), NOON.astimezone(dt.timezone(dt.timedelta(hours=2)))]
            ),
            {} if not number else rng.choice(header_sets),
        )
        for number in range(count)
    ]


def struct_of(envelopes: list[Envelope[Any]], kind: pa.DataType) -> pa.Array:
    names = ("value", "key", "time")
    rows = [{**{name: getattr(each, name) for name in names}, "headers": [*each.headers.items()]} for each in envelopes]
    return pa.array(rows, kind)


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_rows_and_columns_are_the_same(envelope: str) -> None:
    serializer = orders(envelope)
    given = some_envelopes(300)
    events = [serializer.serialize(each) for each in given]
    column = struct_of(given, serializer.arrow_type)
    assert serializer.encode_column(column).to_pylist() == events
    read = [serializer.deserialize(event) for event in events]
    assert [(each.value, each.key, each.time) for each in read] == [(each.value, each.key, each.time) for each in given]
    assert all(each.headers.items() >= want.headers.items() for each, want in zip(read, given, strict=True))
    decoded = serializer.decode_column(pa.array([None, *events]).slice(1))
    assert decoded.type == serializer.arrow_type
    assert decoded.equals(struct_of(read, serializer.arrow_type))
    copied = pickle.loads(pickle.dumps(serializer))
    assert copied.serialize(given[0]) == events[0]
    assert repr(copied) == repr(serializer)


@pytest.mark.parametrize("envelope", ENVELOPES)
@pytest.mark.parametrize(
    ("inner", "values"),
    [
        (UTF8StringSerializer(), ["", 'ü"\n', "{}"]),
        (ByteArraySerializer(), [b"", b"\xff\0", b"{}"]),
        (AvroSerializer("long"), [1, -5]),
    ],
)
def test_data_of_any_serializer(envelope: str, inner: Any, values: list[Any]) -> None:
    serializer = Enveloped(inner, envelope, **DEFAULTS)
    events = [serializer.serialize(Envelope(value)) for value in values]
    assert [serializer.deserialize(event).value for event in events] == values
    assert serializer.decode_column(pa.array(events)).field("value").to_pylist() == values
    assert (
        serializer.encode_column(struct_of([Envelope(value) for value in values], serializer.arrow_type)).to_pylist()
        == events
    )


def test_objects_of_a_class() -> None:
    serializer = Enveloped(typed(JsonSerializer(), Order), **DEFAULTS)
    event = serializer.serialize(Envelope(Order("tea")))
    assert json.loads(event)["data"] == {"item": "tea"}
    assert serializer.deserialize(event).value == Order("tea")


def test_the_id_of_an_event_without_one_is_its_content() -> None:
    serializer = orders()
    first, again, other = (serializer.deserialize(serializer.serialize(Envelope({"cups": n}))) for n in (1, 1, 2))
    assert first.headers["id"] == again.headers["id"] != other.headers["id"]
    by_key = {orders().deserialize(orders().serialize(Envelope({"cups": 1}, key))).headers["id"] for key in ("a", "b")}
    assert len(by_key) == 2


def test_headers_of_a_read_event_are_written_again() -> None:
    event = json.dumps(
        {**MINIMAL, "n": 5, "flag": True, "nothing": None, "data": "tea", "time": "2026-05-01t12:00:00.1234567Z"}
    )
    serializer = Enveloped(JsonSerializer())
    read = serializer.deserialize(event.encode())
    assert read.headers == {"id": "1", "source": "/", "type": "t", "n": "5", "flag": "true"}
    assert (read.value, read.time) == ("tea", NOON.replace(microsecond=123456))
    again = serializer.deserialize(serializer.serialize(read))
    assert (again.value, again.time) == (read.value, read.time)
    assert again.headers == {**read.headers, "datacontenttype": "application/json"}
    column = Enveloped(JsonSerializer(arrow_type=pa.string())).decode_column(pa.array([event.encode()] * 100))
    assert {json.dumps(dict(headers)) for headers in column.field("headers").to_pylist()} == {
        json.dumps(dict(read.headers))
    }


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("", "not JSON|Input data"),
        ("[]", "Expected `object`"),
        ({**MINIMAL, "specversion": "0.3"}, 'specversion is "0.3"'),
        ({"id": "1", "source": "/", "type": "t"}, "specversion is null"),
        ({**MINIMAL, "id": ""}, "requires the attribute 'id'"),
        ({name: MINIMAL[name] for name in ("specversion", "id", "type")}, "requires the attribute 'source'"),
        ({**MINIMAL, "time": "yesterday"}, "'yesterday' is not a time"),
        ({**MINIMAL, "time": "2026-05-01T12:00:00"}, "is not a time"),
        ({**MINIMAL, "ext": {}}, "Expected"),
        ({**MINIMAL, "ext": 1.5}, "Expected"),
        ({**MINIMAL, "data": 1, "data_base64": "aGk="}, "both data and data_base64"),
        ({**MINIMAL, "data_base64": "?"}, "Invalid base64|base64"),
        ({**MINIMAL, "datacontenttype": "text/plain", "data": 5}, "Expected `str`"),
        ({**MINIMAL, "data": {"item": 5}}, "item"),
    ],
)
def test_malformed_events(event: Any, reason: str) -> None:
    data = event if isinstance(event, str) else json.dumps(event)
    good = json.dumps({**MINIMAL, "data": {"item": "tea", "cups": 1}}).encode()
    serializer = orders()
    errors: list[DeserializationError] = []
    column = pa.array([good, data.encode(), good] * 30)
    values = serializer.decode_column(column, on_error=errors.append)
    assert [error.row for error in errors] == list(range(1, 90, 3))
    assert values.is_valid().to_pylist() == [True, False, True] * 30
    with pytest.raises(DeserializationError, match=reason) as raised:
        serializer.decode_column(column)
    assert raised.value.row == 1
    assert str(errors[0]) == str(raised.value)
    if "data" not in reason and "item" not in reason:
        with pytest.raises(DeserializationError, match=reason):
            serializer.deserialize(data.encode())


def test_the_error_of_the_data_has_its_path() -> None:
    event = json.dumps({**MINIMAL, "data": {"item": "tea", "cups": "two"}}).encode()
    with pytest.raises(DeserializationError) as raised:
        orders().decode_column(pa.array([event]))
    assert raised.value.field_path == "$.data.cups"


@pytest.mark.parametrize("envelope", ["cloudevents+avro", "cloudevents+protobuf"])
def test_malformed_binary_events(envelope: str) -> None:
    serializer = orders(envelope)
    good = serializer.serialize(Envelope({"item": "tea", "cups": 1}))
    events = [good, good[:-1], b"\xff" * 9, good.replace(b"1.0", b"0.3"), good] * 20
    errors: list[DeserializationError] = []
    values = serializer.decode_column(pa.array(events), on_error=errors.append)
    assert values.is_valid().to_pylist() == [True, False, False, False, True] * 20
    assert [error.row for error in errors] == [row for row in range(100) if row % 5 in (1, 2, 3)]
    for event in events[1:4]:
        with pytest.raises(DeserializationError):
            serializer.deserialize(event)


@pytest.mark.parametrize("seconds", [253_402_300_800, -62_167_219_201, 2**62, 2**63 - 1])
@pytest.mark.parametrize("name", ["time", "late"])
def test_a_time_out_of_range_is_a_malformed_record(name: str, seconds: int) -> None:
    serializer = orders("cloudevents+protobuf")
    good = serializer.serialize(Envelope({"item": "tea", "cups": 1}))

    def member(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2, len(data)]) + data

    def at(seconds: int, nanos: int = 0) -> bytes:
        when = member(7, Timestamp(seconds=seconds, nanos=nanos).SerializeToString())
        return good + member(5, member(1, name.encode()) + member(2, when))

    with pytest.raises(DeserializationError, match="time"):
        serializer.deserialize(at(seconds))
    errors: list[DeserializationError] = []
    values = serializer.decode_column(pa.array([good, at(seconds), at(5, -1)] * 50), on_error=errors.append)
    assert values.is_valid().to_pylist() == [True, False, True] * 50
    assert [error.row for error in errors] == list(range(1, 150, 3))
    assert values[2].as_py() == serializer.decode_column(pa.array([at(5, -1)] * 100))[0].as_py()


def test_large_attributes_are_refused_before_they_use_memory() -> None:
    many = json.dumps({**MINIMAL, **{f"a{number}": 1 for number in range(9000)}}).encode()
    large_data = json.dumps({**MINIMAL, "data": {"item": "x" * 200_000, "cups": 1}}).encode()
    serializer = orders()
    errors: list[DeserializationError] = []
    values = serializer.decode_column(pa.array([many, large_data] * 40), on_error=errors.append)
    assert values.is_valid().to_pylist() == [False, True] * 40
    assert {type(error) for error in errors} == {LimitExceededError}
    with pytest.raises(LimitExceededError, match="more than 64 KiB"):
        serializer.deserialize(many)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"cups": 1}, "expected an Envelope"),
        (Envelope({"cups": 1}, headers={"Trace": "1"}), "invalid header 'Trace'"),
        (Envelope({"cups": 1}, headers={"data": "1"}), "invalid header 'data'"),
        (Envelope({"cups": 1}, headers={"partitionkey": "1"}), "is the key of the envelope"),
        (Envelope({"cups": 1}, headers={"time": "1"}), "is the time of the envelope"),
        (Envelope({"cups": 1}, headers={"n": 1}), "'n' must be text, not int"),  # type: ignore[dict-item]
        (Envelope({"cups": 1}, key=5), "'key' must be text, not int"),  # type: ignore[arg-type]
        (Envelope({"cups": 1}, time=NOON.replace(tzinfo=None)), "a datetime with a time zone"),
        (Envelope({"cups": object()}), "not supported by JSON"),
    ],
)
def test_values_that_cannot_be_written(value: Any, words: str) -> None:
    with pytest.raises(SerializationError, match=words):
        orders().serialize(value)


def test_source_and_type_are_required() -> None:
    serializer = Enveloped(JsonSerializer(arrow_type=ORDER), source="/shop")
    with pytest.raises(SerializationError, match="requires the attribute 'type'"):
        serializer.serialize(Envelope({"cups": 1}))
    good = {"value": {"cups": 1}, "headers": [("type", "t")]}
    kind = pa.struct([("value", ORDER), ("headers", pa.map_(pa.string(), pa.string()))])
    with pytest.raises(SerializationError, match=r"row 1.*'type'"):
        serializer.encode_column(pa.array([good, {"value": {"cups": 1}}], kind))


def test_data_that_contradicts_its_content_type() -> None:
    serializer = Enveloped(UTF8StringSerializer(), **DEFAULTS)
    json_text = {"datacontenttype": "application/json"}
    assert json.loads(serializer.serialize(Envelope('{"a": 1}', headers=json_text)))["data"] == {"a": 1}
    with pytest.raises(SerializationError, match="the content type is JSON, but the data is not"):
        serializer.serialize(Envelope("tea", headers=json_text))
    with pytest.raises(SerializationError, match="row 1"):
        serializer.encode_column(struct_of([Envelope("1"), Envelope("tea", headers=json_text)], serializer.arrow_type))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (ORDER, "columns 'value', 'key', 'time' and 'headers'"),
        (pa.struct([("value", ORDER), ("cups", pa.int32())]), "no column 'cups'"),
        (pa.struct([("value", ORDER), ("key", pa.int32())]), "'key' of an envelope is int32, not string"),
        (pa.struct([("value", ORDER), ("time", pa.timestamp("us"))]), "'time'"),
        (pa.struct([("value", ORDER), ("headers", pa.map_(pa.string(), pa.int32()))]), "'headers'"),
        (pa.struct([("value", pa.duration("s"))]), "JSON"),
    ],
)
def test_columns_that_cannot_be_written(kind: pa.DataType, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        orders().check_encodable(kind)


def test_columns_without_nulls_and_null_rows() -> None:
    serializer = orders()
    rows = pa.array([{"value": {"cups": 1}}, None, {"value": None}], pa.struct([("value", ORDER)]))
    events = serializer.encode_column(rows)
    assert events.is_valid().to_pylist() == [True, False, True]
    decoded = serializer.decode_column(events)
    assert decoded.is_valid().to_pylist() == [True, False, True]
    assert decoded.field("value").to_pylist()[2] is None
    assert serializer.encode_column(rows.slice(0, 0)).to_pylist() == []
    assert serializer.decode_column(pa.array([], pa.binary())).type == serializer.arrow_type


def test_an_unknown_envelope_names_the_known_ones() -> None:
    with pytest.raises(SerdeError, match=r"'cloudevent'.*did you mean 'cloudevents'"):
        Enveloped(JsonSerializer(), "cloudevent")
