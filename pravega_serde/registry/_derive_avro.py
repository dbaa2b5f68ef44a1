"""Avro schemas that follow from Arrow ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from pravega_serde.columnar import is_text
from pravega_serde.errors import SchemaError
from pravega_serde.registry._avro_text import avro_text

__all__ = ["avro_schema_of"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def avro_schema_of(schema: pa.Schema, name: str) -> str:
    """The Avro schema of a record called ``name`` (with its namespace before it) with the columns as fields.

    | Arrow | Avro |
    |---|---|
    | bool | boolean |
    | integers of up to 32 bits, but uint32 | int |
    | uint32, int64 | long |
    | float16, float32; float64 | float; double |
    | string, binary of any kind | string, bytes |
    | fixed_size_binary(n) | fixed of n bytes |
    | decimal(p, s) | bytes with the logical type decimal |
    | date; time | date; time-millis of seconds and milliseconds, time-micros of others |
    | timestamp with a time zone | timestamp-millis of seconds and milliseconds, timestamp-micros of others |
    | timestamp without | the same with ``local-`` before it |
    | list, map with string keys | array, map |
    | struct | record, named after its field, in the namespace of the record around it (as Spark's ``to_avro`` does) |
    | dictionary | as its values |
    | a nullable field, item or value | a union of the type and null; a field has the default null |

    Nanoseconds are rounded down to microseconds when they are written. Raises :class:`SchemaError` for types that Avro
    does not have (uint64 and durations among them), and for names that are none in Avro.
    """
    return avro_text(_record(list(schema), name, "$"))


def _record(fields: list[pa.Field], name: str, path: str) -> dict[str, Any]:
    for part in name.split("."):
        _check_name(part, path)
    space, _, last = name.rpartition(".")
    made = [_field(field, name, f"{path}.{field.name}") for field in fields]
    return {"type": "record", "name": last, "namespace": space, "fields": made}


def _check_name(name: str, path: str) -> None:
    if not _NAME.fullmatch(name):
        raise SchemaError(f"{name!r} is no name in Avro (at {path}): letters, digits and _ only; rename it")


def _field(field: pa.Field, space: str, path: str) -> dict[str, Any]:
    _check_name(field.name, path)
    default = {"default": None} if field.nullable else {}
    return {"name": field.name, "type": _optional(field, f"{space}.{field.name}", path), **default}


def _optional(field: pa.Field, name: str, path: str) -> Any:
    schema = _of(field.type, name, path)
    return ["null", schema] if field.nullable and schema != "null" else schema


def _of(kind: pa.DataType, name: str, path: str) -> Any:
    for fits, build in _BUILDERS:
        if fits(kind):
            return build(kind, name, path)
    raise SchemaError(f"a column of type {kind} has no form in Avro (at {path}); cast it")


_Build = Callable[[pa.DataType, str, str], Any]


def _constant(schema: Any) -> _Build:
    return lambda _, __, ___: schema


def _logical(base: str, logical: str) -> dict[str, str]:
    return {"type": base, "logicalType": logical}


def _decimal(kind: pa.DataType, name: str, path: str) -> Any:  # noqa: ARG001
    if kind.scale < 0 or kind.precision > 38:
        raise SchemaError(f"a column of type {kind} has no form that Spark and Java share (at {path}); cast it")
    return {**_logical("bytes", "decimal"), "precision": kind.precision, "scale": kind.scale}


def _timestamp(kind: pa.DataType, name: str, path: str) -> Any:  # noqa: ARG001
    unit = "millis" if kind.unit in ("s", "ms") else "micros"
    return _logical("long", f"{'local-' if kind.tz is None else ''}timestamp-{unit}")


def _map(kind: pa.MapType, name: str, path: str) -> Any:
    if not is_text(kind.key_type):
        raise SchemaError(f"a map whose keys are of type {kind.key_type} has no form in Avro (at {path}); cast them")
    return {"type": "map", "values": _optional(kind.item_field, name, f"{path}{{}}")}


def _fixed(kind: pa.DataType, name: str, path: str) -> Any:  # noqa: ARG001
    space, _, last = name.rpartition(".")
    return {"type": "fixed", "name": last, "namespace": space, "size": kind.byte_width}


_t = pa.types
_SMALL: Final = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16())
_BUILDERS: Final[tuple[tuple[Callable[[pa.DataType], bool], _Build], ...]] = (
    (_t.is_dictionary, lambda kind, name, path: _of(kind.value_type, name, path)),
    (_t.is_null, _constant("null")),
    (_t.is_boolean, _constant("boolean")),
    (lambda kind: kind in _SMALL, _constant("int")),
    (lambda kind: kind in (pa.uint32(), pa.int64()), _constant("long")),
    (_t.is_float64, _constant("double")),
    (_t.is_floating, _constant("float")),
    (_t.is_decimal, _decimal),
    (is_text, _constant("string")),
    (_t.is_fixed_size_binary, _fixed),
    (lambda kind: _t.is_binary(kind) or _t.is_large_binary(kind) or _t.is_binary_view(kind), _constant("bytes")),
    (_t.is_date, _constant(_logical("int", "date"))),
    (_t.is_time32, _constant(_logical("int", "time-millis"))),
    (_t.is_time64, _constant(_logical("long", "time-micros"))),
    (_t.is_timestamp, _timestamp),
    (_t.is_map, _map),
    (_t.is_struct, lambda kind, name, path: _record(list(kind), name, path)),
    (
        lambda kind: _t.is_list(kind) or _t.is_large_list(kind) or _t.is_fixed_size_list(kind),
        lambda kind, name, path: {"type": "array", "items": _optional(kind.value_field, name, f"{path}[]")},
    ),
)
