"""Serializers from what an application has already: plain functions, and classes of its own.

:func:`typed` makes any serializer give and take objects of a class: a dataclass, msgspec Struct, attrs class, TypedDict
or pydantic model. :class:`FunctionSerializer` makes a serializer of two functions.
"""

from pravega_serde.adapters._arrow import arrow_type_of
from pravega_serde.adapters._functions import FunctionSerializer
from pravega_serde.adapters._typed import TypedSerializer, typed

__all__ = ["FunctionSerializer", "TypedSerializer", "arrow_type_of", "typed"]
