"""Storage: the one Arrow form from which a message type is written, and the conversion of columns into it.

It has the Arrow types of ``plan``, with two differences. Timestamps and durations are numbers of microseconds. Structs
have all of a message's fields, in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import pyarrow as pa

from pravega_serde.columnar import Lower, at_path, is_text, to_micros
from pravega_serde.columnar.lowering import (
    Absent,
    dictionary_lowering,
    itself,
    list_lowering,
    map_lowering,
    null_lowering,
    struct_lowering,
)
from pravega_serde.columnar.types import fits_bits, is_any_list, is_family, misfit
from pravega_serde.errors import SchemaError
from pravega_serde.protobuf.declared import wire_column
from pravega_serde.protobuf.plan import LEAVES, FieldPlan, MessagePlan, wire_type


def storage_type(message: MessagePlan) -> pa.DataType:
    """Return the Arrow type from which a message's columns are written."""
    if message.shape == "message":
        return pa.struct([pa.field(f.name, _storage(f)) for f in message.fields])
    if message.shape == "wrapper":
        return LEAVES[message.fields[0].kind]
    return pa.string() if message.shape == "json" else pa.int64()


def _storage(field: FieldPlan) -> pa.DataType:
    if field.label == "map":
        assert field.message is not None
        key, item = field.message.fields
        return pa.map_(LEAVES[key.kind], _single(item))
    return pa.list_(pa.field("element", _single(field))) if field.label == "repeated" else _single(field)


def _single(field: FieldPlan) -> pa.DataType:
    return LEAVES[field.kind] if field.message is None else storage_type(field.message)


def lowering(message: MessagePlan, kind: pa.DataType) -> Lower:
    """Return the lowering of columns of a type; raise :class:`SchemaError` if the type does not fit."""
    # Columns of types without times already have this form when they are read.
    return itself if kind == storage_type(message) == wire_type(message) else _message(message, kind, "$")


def _message(message: MessagePlan, kind: pa.DataType, path: str) -> Lower:
    if is_family(kind, "dictionary"):
        return dictionary_lowering(_message(message, kind.value_type, path))
    if is_family(kind, "null"):
        return null_lowering(storage_type(message))
    if message.shape == "message":
        return _struct(message, kind, path)
    if message.shape == "wrapper":
        return _leaf(message.fields[0], kind, path)
    return _SHAPES[message.shape](message, kind, path)


def _item(field: FieldPlan, kind: pa.DataType, path: str) -> Lower:
    if field.declared is not None:
        if is_family(kind, "dictionary"):
            return dictionary_lowering(_item(field, kind.value_type, path))
        conversion = wire_column(field.declared, kind)
        if conversion is not None:
            convert, wire = conversion
            lower = _own_item(field, wire, path)
            return at_path(lambda column: lower(convert(column)), path)
    return _own_item(field, kind, path)


def _own_item(field: FieldPlan, kind: pa.DataType, path: str) -> Lower:
    return _leaf(field, kind, path) if field.message is None else _message(field.message, kind, path)


def _leaf(field: FieldPlan, kind: pa.DataType, path: str) -> Lower:
    if is_family(kind, "dictionary"):
        return dictionary_lowering(_leaf(field, kind.value_type, path))
    target = LEAVES[field.kind]
    if not is_family(kind, "null") and not _TAKES[field.kind](kind):
        raise misfit(kind, f"Protobuf's {field.kind}", path)
    return itself if kind == target else at_path(lambda column: column.cast(target), path)


def _fits_32(kind: pa.DataType) -> bool:
    return fits_bits(kind, 32)


def _fits_64(kind: pa.DataType) -> bool:
    return fits_bits(kind, 64)


def _is_unsigned(kind: pa.DataType) -> bool:
    return is_family(kind, "integer") or (is_family(kind, "decimal") and kind.scale == 0 and kind.precision < 21)


_TAKES: Final[Mapping[str, Callable[[pa.DataType], bool]]] = {
    "bool": lambda kind: is_family(kind, "boolean"),
    "bytes": lambda kind: is_family(kind, "binary", "null"),
    "double": lambda kind: is_family(kind, "floating") or _fits_32(kind),
    "enum": lambda kind: is_text(kind) or _fits_32(kind),
    "fixed32": _fits_64,
    "fixed64": _is_unsigned,
    "float": lambda kind: kind in (pa.float16(), pa.float32()),
    "int32": _fits_32,
    "int64": _fits_64,
    "sfixed32": _fits_32,
    "sfixed64": _fits_64,
    "sint32": _fits_32,
    "sint64": _fits_64,
    "string": is_text,
    "uint32": _fits_64,
    "uint64": _is_unsigned,
}


def _timestamp(message: MessagePlan, kind: pa.DataType, path: str) -> Lower:
    if not is_family(kind, "timestamp") or kind.tz is None:
        raise misfit(kind, f"Protobuf's {message.name}", path, "it requires timestamps with a time zone")
    return at_path(lambda column: to_micros(column, kind.unit, noun="time"), path)


def _duration(message: MessagePlan, kind: pa.DataType, path: str) -> Lower:
    if not is_family(kind, "duration"):
        raise misfit(kind, f"Protobuf's {message.name}", path, "it requires durations")
    return at_path(lambda column: to_micros(column, kind.unit, noun="time"), path)


def _json(message: MessagePlan, kind: pa.DataType, path: str) -> Lower:
    if not is_text(kind):
        raise misfit(kind, f"Protobuf's {message.name}", path, "it requires strings of JSON")
    return lambda column: column.cast(pa.string())


_SHAPES: Final[Mapping[str, Callable[[MessagePlan, pa.DataType, str], Lower]]] = {
    "duration": _duration,
    "json": _json,
    "timestamp": _timestamp,
}


def _struct(message: MessagePlan, kind: pa.DataType, path: str) -> Lower:
    if not is_family(kind, "fields"):
        raise misfit(kind, f"Protobuf's message {message.name}", path, "it requires a struct, or a record batch")
    fields = message.fields

    def absent(index: int, path: str) -> Absent:
        if fields[index].label == "required":
            raise SchemaError(f"the required field {path} has no column")
        return partial(pa.nulls, type=_storage(fields[index]))

    return struct_lowering(
        kind,
        [field.name for field in fields],
        lower=lambda index, inner, path: _field(fields[index], inner, path),
        absent=absent,
        path=path,
        owner=message.name,
    )


def _field(field: FieldPlan, kind: pa.DataType, path: str) -> Lower:
    if field.label not in ("repeated", "map"):
        return _item(field, kind, path)
    if is_family(kind, "null"):
        return null_lowering(_storage(field))
    return _list(field, kind, path) if field.label == "repeated" else _map(field, kind, path)


def _list(field: FieldPlan, kind: pa.DataType, path: str) -> Lower:
    if not is_any_list(kind):
        raise misfit(kind, f"Protobuf's repeated {field.kind}", path, "it requires a list")
    return list_lowering(_item(field, kind.value_type, f"{path}[]"), _storage(field))


def _map(field: FieldPlan, kind: pa.DataType, path: str) -> Lower:
    assert field.message is not None
    key, item = field.message.fields
    if not is_family(kind, "entries"):
        raise misfit(kind, "Protobuf's map", path, "it requires a map")
    lower_key = _leaf(key, kind.key_type, f"{path}{{}}.key")
    return map_lowering(lower_key, _item(item, kind.item_type, f"{path}{{}}"), _storage(field))
