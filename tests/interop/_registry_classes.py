"""Classes of the values of ``_registry_values``, by the names of their registered types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

__all__ = ["CLASSES", "as_object"]


@dataclass
class Sensor:
    id: int
    name: str
    temp: float
    count: int
    ok: bool
    note: str | None


@dataclass
class Pulse:
    at: int
    beats: list[int]


@dataclass
class User:
    name: str
    age: int
    score: float | None
    tags: list[str]
    counts: dict[str, int]
    active: bool


@dataclass
class Order:
    orderId: int
    user: User
    items: list[str]


@dataclass
class Money:
    currency_code: str
    units: int
    nanos: int


@dataclass
class ErrorInfo:
    reason: str
    domain: str
    metadata: dict[str, str]


CLASSES: Final[dict[str, type]] = {
    "com.example.avro.Sensor": Sensor,
    "com.example.avro.Pulse": Pulse,
    "Values$User": User,
    "Values$Order": Order,
    "google.type.Money": Money,
    "google.rpc.ErrorInfo": ErrorInfo,
}


def as_object(value: Mapping[str, Any]) -> Any:
    """The object of a value: its fields are from one class."""
    kind = next(kind for kind in CLASSES.values() if set(kind.__annotations__) == value.keys())
    return msgspec.convert(value, kind)
