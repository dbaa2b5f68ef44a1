"""What an event tells of a class beyond its fields' declared types: enums, classes of objects inside, elements.

A class descriptor says that a field is a ``com.example.Color`` or a ``java.util.List``, not that the one is an enum and
what the other holds. The value in a sample does, as far as it is not null or empty.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final

from pravega_serde.java import _boxes as box
from pravega_serde.java import _temporal as temporal
from pravega_serde.java._containers import JavaArray, JavaList, JavaMap, JavaSet
from pravega_serde.java._model import ClassDescriptor, JavaEnum, JavaObject

__all__ = ["Shape", "shape_of"]

_DEEPEST: Final = 32
"""Objects in each other that a sample is looked into; columns of that depth are of no use."""

_SCALARS: Final[dict[type[Any], str]] = {
    str: "Ljava/lang/String;",
    box.String: "Ljava/lang/String;",
    bool: "Ljava/lang/Boolean;",
    box.Boolean: "Ljava/lang/Boolean;",
    int: "Ljava/lang/Integer;",
    box.Integer: "Ljava/lang/Integer;",
    box.Long: "Ljava/lang/Long;",
    box.Short: "Ljava/lang/Short;",
    box.Byte: "Ljava/lang/Byte;",
    box.BigInteger: "Ljava/math/BigInteger;",
    float: "Ljava/lang/Double;",
    box.Double: "Ljava/lang/Double;",
    box.Float: "Ljava/lang/Float;",
    box.Character: "Ljava/lang/Character;",
    decimal.Decimal: "Ljava/math/BigDecimal;",
    box.BigDecimal: "Ljava/math/BigDecimal;",
    uuid.UUID: "Ljava/util/UUID;",
    bytes: "[B",
    box.ByteArray: "[B",
    temporal.Date: "Ljava/util/Date;",
    temporal.Timestamp: "Ljava/sql/Timestamp;",
    dt.date: "Ljava/time/LocalDate;",
    dt.time: "Ljava/time/LocalTime;",
    temporal.NanoTime: "Ljava/time/LocalTime;",
    dt.timedelta: "Ljava/time/Duration;",
    temporal.NanoDuration: "Ljava/time/Duration;",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is known of a value."""

    scalar: str = ""
    """Signature of a class that is one value of Python: a box, a date, ...; empty for the others."""
    descriptor: ClassDescriptor | None = None
    """Class of an object or an enum's constant."""
    fields: Mapping[str, Shape | None] = field(default_factory=dict)
    """Those of an object, by name."""
    container: type[Any] | None = None
    """``JavaList``, ``JavaSet``, ``JavaArray``, ``JavaMap``, or ``list`` and ``dict`` of other classes."""
    container_class: str | ClassDescriptor | None = None
    """What the container has to know of its Java class."""
    element: Shape | None = None
    """Of a collection's elements, or a map's values."""
    key: Shape | None = None
    """Of a map's keys."""

    @property
    def is_enum(self) -> bool:
        """Whether it is an enum's constant."""
        return self.descriptor is not None and self.descriptor.is_enum


def shape_of(value: Any, depth: int = 0) -> Shape | None:
    """What a value tells; None where that is nothing: for null, and for what has no form in columns."""
    if value is None or depth > _DEEPEST:
        return None
    if isinstance(value, JavaEnum):
        return Shape(descriptor=value.descriptor)
    if isinstance(value, JavaObject):
        if not isinstance(value.descriptor, ClassDescriptor):
            return None
        return Shape(
            descriptor=value.descriptor,
            fields={name: shape_of(inner, depth + 1) for name, inner in value.fields.items()},
        )
    scalar = _scalar(value)
    return Shape(scalar=scalar) if scalar else _container(value, depth)


def _scalar(value: Any) -> str:
    if type(value) in (dt.datetime, temporal.NanoDatetime):
        if value.tzinfo is None:
            return "Ljava/time/LocalDateTime;"
        return "Ljava/time/Instant;" if value.tzinfo is dt.UTC else ""
    return _SCALARS.get(type(value), "")


def _container(value: Any, depth: int) -> Shape | None:
    if isinstance(value, Mapping):
        kind = JavaMap if isinstance(value, JavaMap) else dict
        return Shape(
            container=kind,
            container_class=value.java_class if isinstance(value, JavaMap) else None,
            key=_first(value.keys(), depth),
            element=_first(value.values(), depth),
        )
    if isinstance(value, (JavaList, JavaSet)):
        return Shape(container=type(value), container_class=value.java_class, element=_first(value, depth))
    if isinstance(value, JavaArray):
        return Shape(container=JavaArray, container_class=value.descriptor, element=_first(value, depth))
    if isinstance(value, (Sequence, Set)):
        return Shape(container=list, element=_first(value, depth))
    return None


def _first(values: Iterable[Any], depth: int) -> Shape | None:
    """The shape of the elements: of the first that tells something."""
    return next((shape for shape in (shape_of(each, depth + 1) for each in values) if shape is not None), None)
