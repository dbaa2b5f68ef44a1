"""Serializers from plain functions or from an application's own classes, and serializers in other libraries.

- :mod:`~pravega_serde.adapters.objects` wraps any serializer so that it reads and writes objects of a class: a
  dataclass, msgspec Struct, attrs class, TypedDict or pydantic model.
- :mod:`~pravega_serde.adapters.java_objects` converts objects to Java objects and back.
- :mod:`~pravega_serde.adapters.classes` inspects classes and derives an Arrow type from a class.
- :mod:`~pravega_serde.adapters.conversion` converts objects to plain values and back.
- :mod:`~pravega_serde.adapters.exact_classes` refuses objects of subclasses inside a value.
- :mod:`~pravega_serde.adapters.forms` finds the fields and types of a class.
  :mod:`~pravega_serde.adapters.avro_schemas` and :mod:`~pravega_serde.adapters.protobuf_schemas` write them as schemas.
- :mod:`~pravega_serde.adapters.shapes` converts plain values to the shape that these schemas require, and back.
- :mod:`~pravega_serde.adapters.functions` creates a serializer from two functions.
- :mod:`~pravega_serde.adapters.polars`, :mod:`~pravega_serde.adapters.duckdb` and
  :mod:`~pravega_serde.adapters.pandas` use serializers on columns of these libraries. Programs import them by name,
  because each imports its library.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_serde.adapters.classes import arrow_type_of as arrow_type_of
    from pravega_serde.adapters.functions import FunctionSerializer as FunctionSerializer
    from pravega_serde.adapters.java_objects import JavaType as JavaType
    from pravega_serde.adapters.objects import TypedSerializer as TypedSerializer
    from pravega_serde.adapters.objects import typed as typed
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "classes": "arrow_type_of",
            "functions": "FunctionSerializer",
            "java_objects": "JavaType",
            "objects": "TypedSerializer typed",
        },
    )
