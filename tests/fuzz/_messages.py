"""Random messages of any Protobuf type."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

__all__ = ["Special", "fill"]

_F: Final = FieldDescriptor

Special = Mapping[str, Callable[[Any, random.Random], None]]


def _integer(bits: int, *, signed: bool) -> Callable[[random.Random], int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return lambda source: source.choice((low, high, 1, min(100, high), max(-1, low)))


_SCALARS: Final[Mapping[int, Callable[[random.Random], Any]]] = {
    _F.CPPTYPE_INT32: _integer(32, signed=True),
    _F.CPPTYPE_INT64: _integer(64, signed=True),
    _F.CPPTYPE_UINT32: _integer(32, signed=False),
    _F.CPPTYPE_UINT64: _integer(64, signed=False),
    _F.CPPTYPE_FLOAT: lambda source: source.choice((0.5, -1e30, float("inf"))),
    _F.CPPTYPE_DOUBLE: lambda source: source.choice((0.1, -1e300, 0.0)),
    _F.CPPTYPE_BOOL: lambda source: source.random() < 0.5,
}


def _scalar(field: Any, source: random.Random) -> Any:
    if field.type == _F.TYPE_BYTES:
        return source.randbytes(source.randrange(5))
    if field.cpp_type == _F.CPPTYPE_STRING:
        return source.choice(("", "a", "ü€😀", "some words " * 3))
    if field.cpp_type == _F.CPPTYPE_ENUM:
        return source.choice([each.number for each in field.enum_type.values])
    return _SCALARS[field.cpp_type](source)


def fill(message: Any, source: random.Random, depth: int, special: Special = MappingProxyType({})) -> None:
    """Set a few fields of a message, and of those in it to a depth; ``special`` fills messages of its names."""
    if message.DESCRIPTOR.full_name in special:
        special[message.DESCRIPTOR.full_name](message, source)
        return
    for field in message.DESCRIPTOR.fields:
        required = getattr(field, "is_required", False)
        if not required and source.random() > (0.25 if depth > 0 else 0.0):
            continue
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            _put(value, field.message_type, source, depth, special)
        elif field.is_repeated:
            for _ in range(source.randrange(4)):
                if field.message_type is None:
                    value.append(_scalar(field, source))
                else:
                    fill(value.add(), source, depth - 1, special)
        elif field.message_type is None:
            setattr(message, field.name, _scalar(field, source))
        else:
            value.SetInParent()
            fill(value, source, depth - 1, special)


def _put(entries: Any, entry: Any, source: random.Random, depth: int, special: Special) -> None:
    key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
    for _ in range(source.randrange(3)):
        if value.message_type is None:
            entries[_scalar(key, source)] = _scalar(value, source)
        else:
            fill(entries[_scalar(key, source)], source, depth - 1, special)
