"""Serializers of own classes in each format, and small classes of each kind."""

import dataclasses
from typing import Any

import msgspec
import pydantic

from pravega_serde import AvroSerializer, ProtobufSerializer, avro_schema_of, protobuf_schema_of, typed
from pravega_serde.cbor import CborSerializer
from pravega_serde.json import JsonSerializer

FORMATS: dict[str, Any] = {
    "json": lambda _: JsonSerializer(),
    "cbor": lambda _: CborSerializer(),
    "avro": lambda kind: AvroSerializer(avro_schema_of(kind, "shop.Event")),
    "protobuf": lambda kind: ProtobufSerializer(protobuf_schema_of(kind, "shop.Event")),
}


def again(format_name: str, kind: Any, value: Any) -> Any:
    """Return what is read of a written value."""
    objects: Any = typed(FORMATS[format_name](kind), kind)
    return objects.deserialize(objects.serialize(value))


def one(kind: Any, default: Any = dataclasses.MISSING) -> Any:
    return dataclasses.make_dataclass("One", [("field", kind, dataclasses.field(default=default))])


def model(name: str, **fields: Any) -> Any:
    return pydantic.create_model(name, **dict[str, Any]({field: (kind, ...) for field, kind in fields.items()}))


@dataclasses.dataclass
class Plain:
    number: int


class Positioned(msgspec.Struct, array_like=True):
    number: int


class Root(pydantic.RootModel[list[int]]):
    pass


class Whole(pydantic.BaseModel):
    number: int

    @pydantic.model_serializer
    def whole(self) -> dict[str, str]:
        return {"other": "x"}
