"""Random schemas and values for the decoders of the JVM reader."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
from google.protobuf import timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as F

from pravega_serde.avro import AvroSerializer
from pravega_serde.java import JavaSerializer
from pravega_serde.json import JsonSerializer
from pravega_serde.protobuf import ProtobufSerializer
from pravega_serde.text import ByteArraySerializer, UTF8StringSerializer
from tests.fuzz._messages import fill
from tests.fuzz._target import Target

_DEEPEST: Final = 3
_TEXTS: Final = ("", "a", "a longer text than eight bytes", "ü€😀", "\0", "x" * 70, "null", '"\\/')
_EVENTS: Final = 60


class _Avro:
    """Random Avro schema; each named type has its own name."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._names = 0

    def record(self, depth: int = 0) -> dict[str, Any]:
        fields = [{"name": f"f{i}", "type": self.type(depth + 1)} for i in range(self._chance.randrange(1, 6))]
        return {"type": "record", "name": self._name(), "fields": fields}

    def _name(self) -> str:
        self._names += 1
        return f"N{self._names}"

    def type(self, depth: int) -> Any:
        chance = self._chance
        if depth < _DEEPEST and chance.random() < 0.4:
            return chance.choice(
                (
                    lambda: self.record(depth),
                    lambda: {"type": "array", "items": self.type(depth + 1)},
                    lambda: {"type": "map", "values": self.type(depth + 1)},
                    lambda: chance.sample(["null", self.type(_DEEPEST)], 2),
                    lambda: ["null", self.record(depth + 1)],
                    lambda: chance.sample(["null", "int", "string", {"type": "array", "items": "long"}], 3),
                )
            )()
        return chance.choice(
            (
                *("boolean", "int", "long", "float", "double", "string", "bytes"),
                {"type": "fixed", "name": self._name(), "size": chance.randrange(1, 20)},
                {"type": "enum", "name": self._name(), "symbols": ["A", "B", "LONGER"]},
                {"type": "bytes", "logicalType": "decimal", "precision": chance.choice([4, 18, 19, 38]), "scale": 2},
                {"type": "int", "logicalType": "date"},
                {"type": "long", "logicalType": "timestamp-millis"},
                {"type": "long", "logicalType": "timestamp-micros"},
                {"type": "long", "logicalType": "local-timestamp-micros"},
            )
        )

    def value(self, kind: Any) -> bytes:
        """Return the bytes of a random value."""
        chance = self._chance
        if isinstance(kind, list):
            branch = chance.randrange(len(kind))
            return _zigzag(branch) + self.value(kind[branch])
        name = kind["type"] if isinstance(kind, dict) else kind
        match name:
            case "record":
                return b"".join(self.value(each["type"]) for each in kind["fields"])
            case "array" | "map":
                return self._items(kind)
            case "enum":
                return _zigzag(chance.randrange(3))
            case "fixed":
                return chance.randbytes(kind["size"])
            case "null":
                return b""
            case "boolean":
                return chance.choice((b"\0", b"\1"))
            case "float" | "double":
                return chance.randbytes(4 if name == "float" else 8)
            case "int":
                return _zigzag(chance.randrange(-(2**31), 2**31) >> chance.randrange(31))
            case "long":
                return _zigzag(chance.randrange(-(2**63), 2**63) >> chance.randrange(63))
        if name == "bytes" and isinstance(kind, dict):
            most = 10 ** kind["precision"] - 1
            number = chance.choice([0, most, -most, chance.randrange(-most, most + 1)])
            data = number.to_bytes(chance.choice([(number.bit_length() + 8) // 8, 17]), "big", signed=True)
        else:
            data = chance.choice(_TEXTS).encode()
        return _zigzag(len(data)) + data

    def _items(self, kind: dict[str, Any]) -> bytes:
        chance, out = self._chance, b""
        for _ in range(chance.randrange(3)):
            count = chance.randrange(1, 5)
            items = b""
            for _ in range(count):
                if kind["type"] == "map":
                    key = chance.choice(_TEXTS).encode()
                    items += _zigzag(len(key)) + key
                items += self.value(kind.get("items", kind.get("values")))
            out += _zigzag(-count) + _zigzag(len(items)) if chance.random() < 0.3 else _zigzag(count)
            out += items
        return out + b"\0"


def _zigzag(number: int) -> bytes:
    value, out = (number << 1) ^ (number >> 63), bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _avro(chance: random.Random) -> Target:
    make = _Avro(chance)
    schema = make.record() if chance.random() < 0.9 else make.type(0)
    corpus = [make.value(schema) + b"\0" * (chance.random() < 0.02) for _ in range(_EVENTS)]
    return Target(name=f"avro {schema}", serializer=AvroSerializer(schema), corpus=corpus)


class _Json:
    """Random columns, and events in JSON that mostly fit them."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def struct(self, depth: int = 0) -> pa.DataType:
        names = self._chance.sample(
            ["id", "name", "ü", "a b", "x" * 20, "f0", "f1", "f2"], self._chance.randrange(1, 7)
        )
        return pa.struct([pa.field(name, self.type(depth + 1)) for name in names])

    def type(self, depth: int) -> pa.DataType:
        chance = self._chance
        if depth < _DEEPEST and chance.random() < 0.35:
            return chance.choice(
                (
                    lambda: self.struct(depth),
                    lambda: pa.list_(pa.field("element", self.type(depth + 1))),
                    lambda: pa.map_(pa.string(), self.type(depth + 1)),
                )
            )()
        precision = chance.choice([2, 9, 18, 19, 38])
        return chance.choice(
            (
                *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.float64()),
                *(pa.string(), pa.string(), pa.binary(), pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us")),
                pa.decimal128(precision, chance.choice([0, 2, precision])),
            )
        )

    def value(self, kind: pa.DataType) -> str:
        """Return the text of a random value."""
        chance, t = self._chance, pa.types
        if chance.random() < 0.06:
            return "null"
        if chance.random() < 0.01:
            return chance.choice(_JSON_VALUES)
        if t.is_struct(kind):
            fields = [f for f in kind if chance.random() < 0.9]
            if chance.random() < 0.3:
                chance.shuffle(fields)
            members = [f"{self.blank()}{_text(f.name)}{self.blank()}:{self.value(f.type)}" for f in fields]
            if chance.random() < 0.3:
                members.insert(0, f'"more":{chance.choice(_JSON_VALUES)}')
            return "{" + ",".join(members) + self.blank() + "}"
        if t.is_list(kind):
            return "[" + ",".join(self.value(kind.value_type) for _ in range(chance.randrange(4))) + self.blank() + "]"
        if t.is_map(kind):
            keys = chance.choices(_TEXTS, k=chance.randrange(4))
            return "{" + ",".join(f"{_text(key)}:{self.value(kind.item_type)}" for key in keys) + "}"
        return self.blank() + self._leaf(kind) + self.blank()

    def blank(self) -> str:
        return self._chance.choice(["", "", "", "", " ", "\n\t", "\r "])

    def _leaf(self, kind: pa.DataType) -> str:
        chance, t = self._chance, pa.types
        if t.is_boolean(kind):
            return chance.choice(("true", "false"))
        if t.is_integer(kind):
            size = kind.bit_width
            return str(chance.randrange(-(1 << size - 1), 1 << size - 1) >> chance.randrange(size))
        if t.is_floating(kind):
            return chance.choice(
                (repr(chance.random()), repr(chance.uniform(-1e9, 1e9)), "-0.0", "0", "-0", "1e400", "12")
            )
        if t.is_decimal(kind):
            whole, part = chance.randrange(10 ** max(kind.precision - kind.scale, 0)), chance.randrange(10**kind.scale)
            number = f"{'-' * chance.randrange(2)}{whole}" + (f".{part:0{kind.scale}}" if kind.scale else "")
            return chance.choice((number, number, f'"{number}"', f"{whole}e1"))
        if t.is_binary(kind):
            return _text(base64.b64encode(chance.randbytes(chance.randrange(9))).decode())
        if t.is_date(kind):
            return chance.choice(('"2024-02-29"', '"0001-01-01"', '"2023-02-29"', "[2024,1,2]", '"1969-12-31"'))
        if t.is_timestamp(kind):
            zone = chance.choice(("Z", "+02:00", "-11:30", "+0200")) if kind.tz or chance.random() < 0.05 else ""
            fraction = chance.choice(("", ".5", ".123456", ".1234567", ".000001"))
            day = chance.choice(("2024-02-29", "1969-12-31", "9999-12-31"))
            time = f"{day}{chance.choice('T t')}23:59:0{chance.randrange(9)}"
            return chance.choice(
                (f'"{time}{fraction}{zone}"', str(chance.randrange(-(10**14), 10**14)), "1700000000.25")
            )
        return _text(chance.choice(_TEXTS))


_JSON_VALUES: Final = (
    *(
        '{"a":[1,{"b":null}]}',
        "[[],{}]",
        '"text \\u00fc\\ud83d\\ude00"',
        '"\\ud800"',
        "1e5",
        "-0",
        "1.50",
        "true",
        "NaN",
    ),
    *("123456789012345678901234567890", '"\\/\\n"', "null"),
)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=len(value) % 2 == 0)


def _json(chance: random.Random) -> Target:
    make = _Json(chance)
    kind = make.struct()
    corpus = [make.value(kind).encode() for _ in range(_EVENTS)]
    return Target(name=f"json {kind}", serializer=JsonSerializer(arrow_type=kind), corpus=corpus)


_KINDS: Final = tuple(range(1, 19))
_OUTSIDE: Final = ("Timestamp", "Int32Value", "StringValue", "DoubleValue", "UInt64Value", "BoolValue")


class _Protobuf:
    """Random message types of one file."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._set = FileDescriptorSet()
        for module in (timestamp_pb2, wrappers_pb2):
            module.DESCRIPTOR.CopyToProto(self._set.file.add())
        syntax = chance.choice(("proto2", "proto3", "proto3"))
        self._file = self._set.file.add(name="random.proto", package="r", syntax=syntax)
        self._file.dependency.extend(each.name for each in self._set.file[:2])
        colors = self._file.enum_type.add(name="Color")
        for number, name in enumerate(("NONE", "RED", "BLUE")):
            colors.value.add(name=name, number=number * 100 if number else 0)
        self.message("M0", 0)

    def message(self, name: str, depth: int) -> str:
        chance = self._chance
        made = self._file.message_type.add(name=name)
        numbers = chance.sample([*range(1, 20), 127, 128, 5000], chance.randrange(1, 8))
        choice = chance.random() < 0.3 and bool(made.oneof_decl.add(name="choice"))
        for index, number in enumerate(numbers):
            field = made.field.add(name=f"f{index}", number=number, label=chance.choice((1, 1, 3)))
            field.type = chance.choice([kind for kind in _KINDS if kind != F.TYPE_GROUP])
            if index and chance.random() < 0.15:
                self._map(made, field, depth)
                continue
            if choice and (index == 0 or (field.label == F.LABEL_OPTIONAL and chance.random() < 0.5)):
                field.label, field.oneof_index = F.LABEL_OPTIONAL, 0
            if field.type == F.TYPE_ENUM:
                field.type_name = ".r.Color"
            elif field.type == F.TYPE_MESSAGE:
                own = depth < _DEEPEST and chance.random() < 0.6
                inner = f".r.{self.message(f'{name}_{index}', depth + 1)}" if own else ""
                field.type_name = inner or f".google.protobuf.{chance.choice(_OUTSIDE)}"
        return name

    def _map(self, made: DescriptorProto, field: F, depth: int) -> None:
        """Make a field a map."""
        chance = self._chance
        entry = made.nested_type.add(name=f"F{field.name[1:]}Entry")
        entry.options.map_entry = True
        key = entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL)
        key.type = chance.choice(
            (F.TYPE_STRING, F.TYPE_STRING, F.TYPE_INT32, F.TYPE_UINT64, F.TYPE_BOOL, F.TYPE_FIXED32)
        )
        value = entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL)
        value.type = chance.choice((F.TYPE_STRING, F.TYPE_SINT64, F.TYPE_DOUBLE, F.TYPE_ENUM, F.TYPE_MESSAGE))
        if value.type == F.TYPE_ENUM:
            value.type_name = ".r.Color"
        elif value.type == F.TYPE_MESSAGE:
            value.type_name = f".r.{self.message(f'{made.name}{field.name}', depth + 2)}"
        field.type, field.label = F.TYPE_MESSAGE, F.LABEL_REPEATED
        field.type_name = f".r.{made.name}.{entry.name}"

    def target(self) -> Target:
        serializer = ProtobufSerializer(self._set, message_type="r.M0")
        corpus = []
        for _ in range(_EVENTS):
            message = serializer.message_class()
            fill(message, self._chance, 4)
            corpus.append(message.SerializeToString())
        return Target(name=f"protobuf {self._file}"[:1500], serializer=serializer, corpus=corpus)


def _string(chance: random.Random) -> Target:
    serializer = chance.choice((UTF8StringSerializer(), UTF8StringSerializer(), ByteArraySerializer()))
    corpus = [text.encode() for text in _long_texts(chance)]
    return Target(name=str(serializer), serializer=serializer, corpus=corpus)


def _java(chance: random.Random) -> Target:
    serializer = JavaSerializer("java.lang.String")
    corpus = [serializer.serialize(text) for text in _long_texts(chance)]
    return Target(name=str(serializer), serializer=serializer, corpus=corpus)


def _long_texts(chance: random.Random) -> list[str]:
    return ["".join(chance.choices(_TEXTS, k=chance.randrange(9))) for _ in range(_EVENTS)]


#: Return a target with a random schema and events of it.
RANDOM: Final[Mapping[str, Callable[[random.Random], Target]]] = {
    "avro": _avro,
    "java": _java,
    "json": _json,
    "protobuf": lambda chance: _Protobuf(chance).target(),
    "string": _string,
}
