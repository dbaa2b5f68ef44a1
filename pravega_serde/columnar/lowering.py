"""Lowering: columns converted into the one form that a format writes, its *storage*.

Columns come in many Arrow types that mean the same. The types are checked before any data is read. A format walks its
schema and the column's type together, and makes a :data:`Lower` for each place. The parts of that walk that all formats
share are here. The format defines the types that a leaf accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar.arrays import dictionary_values, list_items, list_offsets, map_entries
from pravega_serde.columnar.bad_rows import UNFIT
from pravega_serde.errors import SchemaError, SerializationError

#: Converts a column into storage form.
Lower = Callable[[pa.Array], pa.Array]

#: Returns N rows of a field that the columns lack, in storage form.
Absent = Callable[[int], pa.Array]


def at_path(convert: Lower, path: str) -> Lower:
    """Return a conversion for the column of a field; its :class:`SerializationError` names the field."""

    def run(column: pa.Array) -> pa.Array:
        try:
            return convert(column)
        except SerializationError as error:
            raise SerializationError(error.reason, field_path=error.field_path or path) from error
        except UNFIT as error:
            raise SerializationError(f"a value does not fit: {error}", field_path=path) from error

    return run


def itself(column: pa.Array) -> pa.Array:
    """Return the lowering of a column that is in storage form already."""
    return column


def dictionary_lowering(inner: Lower) -> Lower:
    """Return the lowering of a dictionary; ``inner`` lowers its values."""
    return lambda column: inner(dictionary_values(column))


def null_lowering(target: pa.DataType) -> Lower:
    """Return the lowering of a column of nulls. Writing them decides if nulls are allowed."""
    return lambda column: pa.nulls(len(column), target)


def check_between(numbers: pa.Array, low: int, high: int, refusal: str) -> None:
    """Raise SerializationError with the text ``refusal`` if a number is out of bounds."""
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is not None and (bounds["min"] < low or bounds["max"] > high):
        raise SerializationError(refusal)


def list_lowering(item: Lower, target: pa.DataType) -> Lower:
    """Return the lowering of lists; ``item`` lowers their items."""

    def lower(column: pa.Array) -> pa.Array:
        lengths, items = list_items(column)
        return pa.ListArray.from_arrays(list_offsets(lengths), item(items), type=target, mask=column.is_null())

    return lower


def map_lowering(key: Lower, item: Lower, target: pa.DataType) -> Lower:
    """Return the lowering of maps; ``key`` and ``item`` lower their keys and values."""

    def lower(column: pa.Array) -> pa.Array:
        lengths, keys, values = map_entries(column)
        parts = key(keys), item(values)
        return pa.MapArray.from_arrays(list_offsets(lengths), *parts, type=target, mask=column.is_null())

    return lower


def struct_lowering(
    kind: pa.DataType,
    names: Sequence[str],
    *,
    lower: Callable[[int, pa.DataType, str], Lower],
    absent: Callable[[int, str], Absent],
    path: str,
    owner: str,
) -> Lower:
    """Return the lowering of structs into the fields ``names``, in that order.

    ``lower`` returns the lowering of a field's column, from its index, the column's type and its path. ``absent``
    returns the values of a field without a column, or raises :class:`SchemaError`. A column that is not a field of
    ``owner`` also raises it.
    """
    columns = [entry.name for entry in kind]
    for name in columns:
        if name not in names or columns.count(name) > 1:
            why = " twice" if name in names else f", but {owner} has no such field; drop it"
            raise SchemaError(f"the column {path}.{name} exists{why}")
    parts: list[tuple[int | None, Any]] = []
    for index, name in enumerate(names):
        if name in columns:
            at = columns.index(name)
            parts.append((at, lower(index, kind.field(at).type, f"{path}.{name}")))
        else:
            parts.append((None, absent(index, f"{path}.{name}")))

    def lower_struct(column: pa.Array) -> pa.Array:
        if not parts:
            return pa.array([{} if there else None for there in column.is_valid().to_pylist()], pa.struct([]))
        flat = column.flatten()
        inside = [make(len(column)) if at is None else make(flat[at]) for at, make in parts]
        # A value that does not fit may keep its own type, so that the plain path can name it.
        fields = [pa.field(name, values.type) for name, values in zip(names, inside, strict=True)]
        return pa.StructArray.from_arrays(inside, fields=fields, mask=column.is_null())

    return lower_struct
