"""Objects and JSON: what Jackson writes and takes, what is refused and how it is said, and models of Pydantic."""

import dataclasses
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pydantic
import pytest
from hypothesis import given, settings

from pravega_serde import DeserializationError, LimitExceededError
from pravega_serde.adapters import typed
from pravega_serde.java import JavaSerializer
from pravega_serde.json import JsonSerializer
from tests.unit.serde._classes import (
    SOME,
    Line,
    LineModel,
    Order,
    OrderAttrs,
    OrderStruct,
    Side,
    make,
    serializer,
    values,
)


class Trade(pydantic.BaseModel):
    id: int
    side: Side
    at: datetime
    lines: list[LineModel]
    note: str | None = None
    key: UUID


JSON_CLASSES = pytest.mark.parametrize("kind", [Order, OrderStruct, OrderAttrs, Trade])


def test_json_is_what_jackson_writes() -> None:
    assert serializer("json", Order).serialize(make(Order, SOME)) == (
        b'{"id":7,"side":"SELL","at":"2026-01-02T03:04:05.000678Z","day":"2026-01-02","lines":[{"sku":"a","count":2,'
        b'"price":1.100000}],"key":"00000000-0000-0000-0000-000000000005","raw":"/wA=","note":null,"tags":{"x":1}}'
    )


def test_decimals_of_json_keep_their_digits() -> None:
    prices = typed(JsonSerializer(), dict[str, Decimal])
    assert prices.deserialize(b'{"a":0.12345678901234567890123}') == {"a": Decimal("0.12345678901234567890123")}


def test_json_takes_what_javas_writers_put_around_it() -> None:
    assert typed(JsonSerializer(), Line).deserialize(b'\xef\xbb\xbf{"sku":"a","count":1,"price":2}\0\0').price == 2


@JSON_CLASSES
@pytest.mark.parametrize(
    ("event", "place"),
    [
        (
            b'{"id":1,"side":"BUY","at":"2026-01-02T03:04:05Z","day":"2026-01-02","lines":[],"raw":""}',
            r"field \$(\.key)?\)",
        ),
        (b'{"id":"x"}', r"\$\.id"),
        (b'{"id":1,"side":"NO"}', r"\$\.side"),
        (
            b'{"id":1,"side":"BUY","at":"2026-01-02T03:04:05Z","day":"2026-01-02","lines":[{"sku":1}]}',
            r"lines\[0\]\.sku",
        ),
    ],
)
def test_a_bad_event_names_its_field(kind: Any, event: bytes, place: str) -> None:
    with pytest.raises(DeserializationError, match=f"does not fit {kind.__name__}") as caught:
        typed(JsonSerializer(), kind).deserialize(event)
    assert re.search(place, str(caught.value))


@JSON_CLASSES
@pytest.mark.parametrize(
    "event", [b"", b"{", b'{"id":1}x', b"\xff", b'"\xff"', b'{"id":1,"other":"\xff"}', b"[" * 100_000]
)
def test_what_is_not_json_is_reported_as_ever(kind: Any, event: bytes) -> None:
    with pytest.raises(DeserializationError) as expected:
        JsonSerializer().deserialize(event)
    with pytest.raises(DeserializationError) as caught:
        typed(JsonSerializer(), kind).deserialize(event)
    assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("kind", [bytes, datetime, Decimal, Side, UUID])
def test_half_a_character_is_only_text(kind: Any) -> None:
    assert typed(JsonSerializer(), list[str]).deserialize(b'["\\ud800"]') == ["\ud800"]
    with pytest.raises(DeserializationError, match="does not fit"):
        typed(JsonSerializer(), list[kind]).deserialize(b'["\\ud800"]')
    with pytest.raises(DeserializationError, match="does not fit"):
        typed(JavaSerializer(), list[kind]).deserialize(JavaSerializer().serialize(["\ud800"]))


Wide = dataclasses.make_dataclass("Wide", [(f"f{n}", int, dataclasses.field(default=0)) for n in range(100)])


def test_objects_that_take_far_more_than_their_bytes_are_refused() -> None:
    wide = typed(JsonSerializer(), list[Wide])  # type: ignore[valid-type]
    assert len(wide.deserialize(b"[%s{}]" % (b"{}," * 1000))) == 1001
    with pytest.raises(LimitExceededError, match="values of 300004 bytes"):
        wide.deserialize(b"[%s{}]" % (b"{}," * 100_000))
    texts = typed(JsonSerializer(), list[Wide | str])  # type: ignore[valid-type]
    assert texts.deserialize(b'["%s"]' % (b"{" * 500_000)) == ["{" * 500_000]


class Sets(pydantic.BaseModel):
    sides: set[Side]


def test_models_write_sets_as_lists() -> None:
    assert typed(JsonSerializer(), Sets).serialize(Sets(sides={Side.BUY})) == b'{"sides":["BUY"]}'


@given(fields=values())
@settings(max_examples=40, deadline=None)
def test_models_come_back_from_json(fields: dict[str, Any]) -> None:
    value = Trade(**{name: fields[name] for name in Trade.model_fields})
    trades = typed(JsonSerializer(), Trade)
    assert trades.deserialize(trades.serialize(value)) == value


class Strict(pydantic.BaseModel, strict=True, val_json_bytes="base64"):
    at: datetime
    raw: list[bytes]


def test_models_read_json_in_jsons_own_way() -> None:
    strict = typed(JsonSerializer(), Strict)
    value = Strict(at=datetime(2026, 1, 1, tzinfo=UTC), raw=[b"\xff"])
    assert strict.deserialize(strict.serialize(value)) == value
    with pytest.raises(DeserializationError, match=r"raw\[0\]|raw\.0"):
        strict.deserialize(b'{"at":"2026-01-01T00:00:00Z","raw":["!"]}')


class Blob(pydantic.BaseModel):
    raw: list[bytes]


class Bill(pydantic.BaseModel, val_json_bytes="base64"):
    signature: bytes
    sum: Decimal


@dataclasses.dataclass
class Sealed:
    bill: Bill
    raw: bytes


def test_bytes_come_back_from_json_in_any_class_around_or_in_a_model() -> None:
    bill = Bill(signature=b"abcd", sum=Decimal(1))
    for kind, value in (
        (list[Blob], [Blob(raw=[b"\xff", b"abcd"])]),
        (Sealed, Sealed(bill, b"abcd")),
        (pydantic.create_model("Around", sealed=(Sealed, ...)), None),
        (list[Bill | bytes], [bill, b"abcd"]),
    ):
        value = value or kind(sealed=Sealed(bill, b"\xff"))  # type: ignore[operator]
        objects: Any = typed(JsonSerializer(), kind)
        assert objects.deserialize(objects.serialize(value)) == value


def test_models_read_bytes_and_decimals_of_one_event() -> None:
    bills = typed(JsonSerializer(), Bill)
    value = Bill(signature=b"\xff\0", sum=Decimal("0.10000000000000000000001"))
    assert bills.deserialize(bills.serialize(value)) == value
    with pytest.raises(DeserializationError, match=r"invalid Base64.*\$\.signature"):
        bills.deserialize(b'{"signature":"!","sum":1}')


def test_durations_are_text_where_a_format_has_none() -> None:
    durations = typed(JsonSerializer(), list[timedelta])
    assert durations.serialize([timedelta(days=1)]) == b'["P1D"]'
    assert durations.deserialize(b'["PT5S"]') == [timedelta(seconds=5)]
