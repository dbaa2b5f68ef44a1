"""Serializers from what an application has already: plain functions, and classes of its own.

:mod:`~pravega_serde.adapters.objects` makes any serializer give and take objects of a class: a dataclass, msgspec
Struct, attrs class, TypedDict or pydantic model. :mod:`~pravega_serde.adapters.classes` looks into classes and gives
the Arrow type that follows from one, :mod:`~pravega_serde.adapters.conversion` makes plain values of their objects and
objects of plain values. :mod:`~pravega_serde.adapters.functions` makes a serializer of two functions.
"""

from pravega_serde.adapters.classes import arrow_type_of
from pravega_serde.adapters.functions import FunctionSerializer
from pravega_serde.adapters.objects import TypedSerializer, typed

__all__ = ["FunctionSerializer", "TypedSerializer", "arrow_type_of", "typed"]
