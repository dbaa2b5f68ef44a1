"""Objects of several classes, JSON text and values with schemas, read from and written to one group."""

import enum
import json
import pickle
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.rpc.error_details_pb2 import RetryInfo

from pravega_serde import (
    DeserializationError,
    FunctionSerializer,
    JsonSerializer,
    SchemaError,
    SerdeError,
    SerializationError,
    WithSchema,
    typed,
)
from pravega_serde.protobuf import protobuf_schema_of
from pravega_serde.registry import (
    SerializationFormat,
    deserializer,
    event_type,
    multi_type_serializer,
    serializer,
    with_schema_serializer,
)

ORDER = {"type": "record", "name": "shop.Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "price", "type": {
        "type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}}]}  # fmt: skip
REFUND = {"type": "object", "properties": {"id": {"type": "integer"}, "amount": {"type": "number"}}}
VISIT = protobuf_schema_of(pa.schema([("page", pa.string()), ("at", pa.int64())]), "shop.Visit")
MAKE: dict[str, Any] = {"create_group": True, "register_schema": True}


@dataclass
class Order:
    id: int
    price: Decimal


@dataclass
class Refund:
    id: int
    amount: Decimal


@dataclass
class Visit:
    page: str
    at: int | None


@dataclass
class Retry:
    retry_delay: timedelta


@dataclass
class Foreign:
    id: int


CLASSES: dict[str, type] = {"shop.Order": Order, "shop.Refund": Refund, "shop.Visit": Visit}
VALUES = [
    Order(1, Decimal("12345678901234567.25")),
    # More digits than a double has.
    Refund(2, Decimal("0.12345678901234567891")),
    Visit("home", 1),
]


@pytest.fixture
def uri(request: pytest.FixtureRequest) -> str:
    return f"mock://{request.node.originalname}"


@pytest.fixture
def events(uri: str) -> list[bytes]:
    """One event of each class and format, in the group ``shop``."""
    writer = typed(
        with_types(uri, {"shop.Order": (ORDER, "avro"), "shop.Refund": (REFUND, "json"), "shop.Visit": (VISIT, None)}),
        CLASSES,
    )
    return [writer.serialize(value) for value in VALUES]


def with_types(uri: str, schemas: dict[str, Any]) -> Any:
    made = {name: event_type(schema, format=wanted, type=name) for name, (schema, wanted) in schemas.items()}
    return multi_type_serializer(uri, group="shop", schemas=made, **MAKE)


def test_each_event_becomes_an_object_of_its_types_class(uri: str, events: list[bytes]) -> None:
    reader = typed(deserializer(uri, group="shop"), CLASSES)
    assert [reader.deserialize(event) for event in events] == VALUES
    # A pickled copy, as in another process.
    copied = pickle.loads(pickle.dumps(reader))
    assert [copied.deserialize(event) for event in events] == VALUES
    assert repr(reader).endswith("{'shop.Order': Order, 'shop.Refund': Refund, 'shop.Visit': Visit})")


def test_a_union_names_its_types_by_their_classes(uri: str, events: list[bytes]) -> None:
    reader: Any = typed(deserializer(uri, group="shop"), Order | Refund | Visit)
    assert [reader.deserialize(event) for event in events] == VALUES


def test_a_type_without_class_is_an_error_or_generic(uri: str, events: list[bytes]) -> None:
    known = {"shop.Order": Order}
    reader = typed(deserializer(uri, group="shop"), known)
    assert reader.deserialize(events[0]) == VALUES[0]
    for _ in range(2):  # also when the type is known
        with pytest.raises(DeserializationError, match=r"type 'shop\.Refund', which has no class here") as caught:
            reader.deserialize(events[1])
    assert caught.value.encoding_id == 1
    generic = typed(deserializer(uri, group="shop"), known, others="generic")
    order, refund, visit = map(generic.deserialize, events)
    assert order == VALUES[0]
    assert (refund.schema.type, refund.value) == ("shop.Refund", {"id": 2, "amount": 0.12345678901234568})
    assert (visit.schema.type, visit.value.page) == ("shop.Visit", "home")
    assert pickle.loads(pickle.dumps(generic)).deserialize(events[1]) == refund


def test_an_event_that_does_not_fit_its_class_names_the_field(uri: str, events: list[bytes]) -> None:
    reader = typed(deserializer(uri, group="shop"), {**CLASSES, "shop.Visit": Foreign})
    with pytest.raises(DeserializationError, match=r"does not fit Foreign.*id"):
        reader.deserialize(events[2])


def test_columns_stay_those_of_the_group(uri: str, events: list[bytes]) -> None:
    reader = typed(deserializer(uri, group="shop"), CLASSES)
    (first, *_) = reader.decode_column(pa.array(events)).to_pylist()
    assert first == {"Order": {"id": 1, "price": VALUES[0].price}, "Refund": None, "Visit": None}  # type: ignore[attr-defined]


def test_the_class_of_a_value_selects_its_type(uri: str) -> None:
    schemas = {"shop.Order": (ORDER, "avro"), "shop.Refund": (REFUND, "json")}
    inner = with_types(uri, schemas)
    both = typed(inner, {"shop.Order": Order, "shop.Refund": Refund})
    event = pickle.loads(pickle.dumps(both)).serialize(VALUES[1])
    assert event.endswith(b'{"id":2,"amount":0.12345678901234567891}')
    assert both.deserialize(event) == VALUES[1]
    with pytest.raises(SerializationError, match="no schema for a value of the type 'Visit'; known: Order, Refund"):
        both.serialize(VALUES[2])  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match=r"the type 'shop\.Refund' has no class here"):
        typed(inner, {"shop.Order": Order})
    with pytest.raises(SchemaError, match="have the same class Order"):
        typed(inner, {"shop.Order": Order, "shop.Refund": Order})


def test_one_class_reads_and_writes_one_type(uri: str) -> None:
    writer: Any = serializer(uri, group="shop", schema=VISIT, **MAKE)
    visits = typed(writer, Visit)
    assert visits.deserialize(visits.serialize(Visit("cart", None))) == Visit("cart", None)
    with pytest.raises(SerializationError, match="expected a Visit, not a Order"):
        visits.serialize(VALUES[0])  # type: ignore[arg-type]


class Rights(enum.Flag):
    READ = 1


INVALID: list[tuple[Any, dict[str, Any], str]] = [
    ({}, {}, "at least one class"),
    (Order, {"others": "generic"}, "requires the names of the types: pass {'type name': Order}"),
    ({"shop.Order": Order, "shop.Refund": Rights}, {}, "Rights is a Flag"),
    (Order | Refund | int, {}, "classes with different names"),
    (Order, {"java_classes": {}}, "for the Java format"),
]


@pytest.mark.parametrize(("kind", "more", "reason"), INVALID)
def test_an_invalid_combination_is_refused_at_once(uri: str, kind: Any, more: dict[str, Any], reason: str) -> None:
    serializer(uri, group="shop", schema=ORDER, format="avro", **MAKE)
    with pytest.raises(SchemaError, match=reason):
        typed(deserializer(uri, group="shop"), kind, **more)


def test_several_classes_require_a_registry() -> None:
    with pytest.raises(SchemaError, match="several classes require a registry's serializer"):
        typed(JsonSerializer(), {"shop.Order": Order})
    with pytest.raises(SchemaError, match="several classes require a registry's serializer"):
        typed(JsonSerializer(), Order, others="generic")  # type: ignore[call-overload]


def test_plain_values_of_several_types(uri: str, events: list[bytes]) -> None:
    reader = typed(deserializer(uri, group="shop"), {"shop.Order": Order, "shop.Refund": dict[str, Decimal]})  # type: ignore[dict-item]
    assert reader.deserialize(events[1]) == {"id": 2, "amount": VALUES[1].amount}  # type: ignore[comparison-overlap]


def test_every_event_is_json_text(uri: str, events: list[bytes]) -> None:
    reader = deserializer(uri, group="shop", values="json")
    assert [reader.deserialize(event) for event in events] == [
        '{"id":1,"price":12345678901234567.25}',
        '{"id":2,"amount":0.12345678901234567891}',
        '{"page":"home","at":1}',
    ]
    found = pickle.loads(pickle.dumps(reader)).deserialize_with_schema(events[1])
    assert (found.schema.type, json.loads(found.value)["id"]) == ("shop.Refund", 2)
    assert deserializer(uri, group="shop", values="plain").deserialize(events[2]) == {"page": "home", "at": 1}
    # Columns are the same.
    assert reader.decode_column(pa.array(events)).to_pylist()[2]["Visit"]["page"] == "home"
    with pytest.raises(SchemaError, match="omit values"):
        typed(reader, CLASSES)
    with pytest.raises(DeserializationError, match="not JSON") as caught:
        reader.deserialize(events[1][:-1])
    assert caught.value.encoding_id == 1


def test_a_value_without_json_text_is_a_malformed_record(uri: str) -> None:
    point = SerializationFormat.custom("point")
    formats = {"custom_formats": {"point": lambda _: FunctionSerializer(bytes, lambda event: complex(event.decode()))}}
    event = serializer(uri, group="shop", schema=b"", format=point, **MAKE, **formats).serialize(b"1j")
    assert deserializer(uri, group="shop", **formats).deserialize(event) == 1j
    with pytest.raises(DeserializationError, match="cannot write as JSON: a complex is not supported") as caught:
        deserializer(uri, group="shop", values="json", **formats).deserialize(event)
    assert caught.value.encoding_id == 0


def test_durations_are_iso_text(uri: str) -> None:
    writer: Any = serializer(uri, group="retries", schema=RetryInfo, **MAKE)
    event = writer.serialize({"retry_delay": timedelta(minutes=1.5)})
    assert deserializer(uri, group="retries", values="json").deserialize(event) == '{"retry_delay":"PT90S"}'
    assert typed(deserializer(uri, group="retries"), {"google.rpc.RetryInfo": Retry}).deserialize(event) == Retry(
        timedelta(seconds=90)
    )


def test_values_can_carry_their_schema(uri: str, events: list[bytes]) -> None:
    reader = deserializer(uri, group="shop", values="with_schema")
    found = [reader.deserialize(event) for event in events]
    assert [each.schema.type for each in found] == list(CLASSES)
    assert found[1].value["id"] == 2
    # Values are written again unchanged.
    again = with_schema_serializer(uri, group="shop")
    assert [again.serialize(each) for each in found[::2]] == events[::2]
    with pytest.raises(
        SerdeError, match="invalid form of values 'text'; known forms: natural, plain, json, with_schema"
    ):
        deserializer(uri, group="shop", values="text")  # type: ignore[arg-type]


def test_events_without_header_have_all_forms(uri: str) -> None:
    settings: dict[str, Any] = {"group": "bare", "write_encoding_header": False}
    writer = serializer(uri, schema=REFUND, format="json", type="shop.Refund", **MAKE, **settings)
    event = writer.serialize({"id": 2, "amount": Decimal("0.5")})
    assert event == b'{"id":2,"amount":0.5}'
    assert deserializer(uri, values="json", **settings).deserialize(event) == '{"id":2,"amount":0.5}'
    assert typed(deserializer(uri, **settings), {"shop.Refund": Refund}).deserialize(event) == Refund(2, Decimal("0.5"))
    found = deserializer(uri, values="with_schema", **settings).deserialize(event)
    assert isinstance(found, WithSchema)
    assert found.schema.type == "shop.Refund"
