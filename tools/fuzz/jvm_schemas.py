"""Random schemas and values for the decoders of the JVM reader."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from pravega_serde.avro import AvroSerializer
from tools.fuzz._target import Target

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


#: Return a target with a random schema and events of it.
RANDOM: Final[Mapping[str, Callable[[random.Random], Target]]] = {"avro": _avro}
