"""Steps of the JVM's JSON decoder, from the type of the columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from pravega_connector.spark.jvm.messages import NotInJvmError
from pravega_serde.columnar.limits import ItemLimit
from pravega_serde.columnar.types import family
from pravega_serde.json import JsonSerializer

Steps = dict[str, Any]


def json_plan(serializer: JsonSerializer) -> Steps:
    """Return the plan for the events of a serializer. Raises NotInJvmError for columns without one."""
    if serializer.schema is not None:
        raise NotInJvmError("a JSON Schema")
    kind = serializer.arrow_type
    return {
        "format": "json",
        "record": pa.types.is_struct(kind),
        "largest": ItemLimit(kind).surely_fits,
        "root": _steps(kind),
    }


def _steps(kind: pa.DataType) -> Steps:
    name = family(kind)
    make = _FORMS.get(name)
    unsigned = name == "integer" and not pa.types.is_signed_integer(kind)
    if make is None or unsigned or (name == "entries" and not pa.types.is_string(kind.key_type)):
        raise NotInJvmError(f"a JSON value of type {kind}")
    return {"op": name} | make(kind)


def _nothing(_: pa.DataType) -> Steps:
    return {}


_FORMS: Final[Mapping[str, Callable[[Any], Steps]]] = {
    **dict.fromkeys(("boolean", "floating", "text", "binary", "date"), _nothing),
    "integer": lambda kind: {"bits": kind.bit_width},
    "decimal": lambda kind: {"precision": kind.precision, "scale": kind.scale},
    "timestamp": lambda kind: {"zoned": kind.tz is not None},
    "items": lambda kind: {"item": _steps(kind.value_type)},
    "entries": lambda kind: {"item": _steps(kind.item_type)},
    "fields": lambda kind: {"fields": [{"name": entry.name, "step": _steps(entry.type)} for entry in kind]},
}
