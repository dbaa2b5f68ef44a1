"""The Arrow type that follows from a class."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from pravega_serde.adapters._members import members_of, name_of
from pravega_serde.errors import SchemaError

__all__ = ["arrow_type_of"]

_SCALARS: Final[dict[Any, pa.DataType]] = {
    bool: pa.bool_(),
    bytes: pa.binary(),
    date: pa.date32(),
    datetime: pa.timestamp("us", "UTC"),
    # The precision and scale that Spark's own encoders have for it.
    Decimal: pa.decimal128(38, 18),
    float: pa.float64(),
    int: pa.int64(),
    str: pa.string(),
    time: pa.time64("us"),
    timedelta: pa.duration("us"),
    type(None): pa.null(),
    UUID: pa.string(),
}


def arrow_type_of(kind: Any) -> pa.DataType:
    """The Arrow type of a class: what ``JsonSerializer(arrow_type=...)`` reads its events' columns as.

    ``int`` is int64, ``datetime`` a timestamp in UTC, ``Decimal`` decimal128(38, 18), an enum a string; Optional adds
    nothing, since every column can be null. :class:`SchemaError` for what has no such type: a union of several types,
    a class that contains itself.
    """
    return _type_of(kind, ())


def _type_of(kind: Any, inside: tuple[Any, ...]) -> pa.DataType:
    if kind in inside:
        raise SchemaError(f"{name_of(kind)} contains itself, which an Arrow type cannot")
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _type_of(arguments[0], inside)
    if origin in (typing.Union, types.UnionType):
        return _union(kind, inside)
    members = members_of(kind)
    if members is not None:
        return pa.struct([(member.name, _type_of(member.type, (*inside, kind))) for member in members])
    if isinstance(origin, type):
        return _container(kind, origin, [each for each in arguments if each is not Ellipsis], inside)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return pa.string()
    if kind not in _SCALARS:
        raise SchemaError(f"no Arrow type follows from {name_of(kind)}; write the type of the columns yourself")
    return _SCALARS[kind]


def _union(kind: Any, inside: tuple[Any, ...]) -> pa.DataType:
    others = [each for each in typing.get_args(kind) if each is not type(None)]
    if len(others) != 1:
        raise SchemaError(f"no single Arrow type follows from {kind}")
    return _type_of(others[0], inside)


def _container(kind: Any, origin: type, arguments: list[Any], inside: tuple[Any, ...]) -> pa.DataType:
    if issubclass(origin, Mapping) and len(arguments) == 2:
        return pa.map_(_type_of(arguments[0], inside), _type_of(arguments[1], inside))
    if issubclass(origin, Iterable) and len(arguments) == 1:
        return pa.list_(pa.field("element", _type_of(arguments[0], inside)))
    raise SchemaError(f"no Arrow type follows from {kind}")
