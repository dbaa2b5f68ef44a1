"""Default values: JSON in the schema, by rules of its own."""

from __future__ import annotations

from typing import Any, Final

from pravega_serde.avro._model import MISSING, Array, Fixed, Map, Primitive, Record, Type, Union, kind_of, label_of
from pravega_serde.avro._values import natural_converter
from pravega_serde.columnar import MalformedError

__all__ = ["default_value"]


def default_value(schema: Type, default: Any) -> Any:
    """The natural value that a default stands for. What does not fit is left for the writer to refuse."""
    if isinstance(schema, Union):
        return _of_union(schema, default)
    if isinstance(schema, Record) and isinstance(default, dict):
        given = {entry.name: default.get(entry.name, entry.default) for entry in schema.fields}
        return {
            entry.name: default_value(entry.type, given[entry.name])
            for entry in schema.fields
            if given[entry.name] is not MISSING
        }
    if isinstance(schema, Array) and isinstance(default, list):
        return [default_value(schema.items, item) for item in default]
    if isinstance(schema, Map) and isinstance(default, dict):
        return {key: default_value(schema.values, value) for key, value in default.items()}
    if isinstance(schema, Primitive | Fixed) and isinstance(default, str):
        return _of_text(schema, default)
    return default


def _of_union(schema: Union, default: Any) -> Any:
    """The first branch that could mean it: before Avro 1.12 only the first of all."""
    labelled = sum(label_of(branch) != "null" for branch in schema.branches) > 1
    for branch in schema.branches:
        if _may_be(branch, default):
            value = default_value(branch, default)
            return (label_of(branch), value) if labelled and value is not None else value
    raise MalformedError(f"the default {default!r} belongs to no branch of its union")


def _of_text(schema: Primitive | Fixed, default: str) -> Any:
    """Bytes are written as text, a character for each byte."""
    if isinstance(schema, Primitive) and schema.name != "bytes":
        return default
    try:
        data = default.encode("latin-1")
    except UnicodeEncodeError:
        raise MalformedError(f"the default {default!r} is no text of bytes") from None
    convert = natural_converter(schema) if schema.logical and schema.logical.name == "decimal" else None
    return convert(data) if convert else data


def _may_be(branch: Type, default: Any) -> bool:
    """Whether JSON of this kind can be the default of a branch."""
    if isinstance(default, bool):
        # Asked first: Python's bool is an int.
        return kind_of(branch) == "boolean"
    return isinstance(default, _JSON_KINDS.get(kind_of(branch), str))


_JSON_KINDS: Final[dict[str, Any]] = {
    "array": list,
    "boolean": bool,
    "double": int | float,
    "float": int | float,
    "int": int,
    "long": int,
    "map": dict,
    "null": type(None),
    "record": dict,
}
