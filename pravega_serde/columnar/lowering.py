"""Lowering: columns brought into the one form that a format writes, its *storage*.

Columns come in many Arrow types that mean the same. Which types fit is decided before any data is touched: a format
walks its schema and the column's type together, and makes a :data:`Lower` of each place. The parts of that walk that
all formats share are here; what a leaf takes is the format's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar.arrays import list_items, list_offsets, map_entries
from pravega_serde.columnar.bad_rows import UNFIT
from pravega_serde.errors import SchemaError, SerializationError

#: Brings a column into storage form.
Lower = Callable[[pa.Array], pa.Array]

#: So many rows of a field that the columns lack, in storage form.
Absent = Callable[[int], pa.Array]


def at_path(convert: Lower, path: str) -> Lower:
    """Conversion of the column of a field, which its :class:`SerializationError` names."""

    def run(column: pa.Array) -> pa.Array:
        try:
            return convert(column)
        except SerializationError as error:
            raise SerializationError(error.reason, field_path=error.field_path or path) from error
        except UNFIT as error:
            raise SerializationError(f"a value does not fit: {error}", field_path=path) from error

    return run


def no_form(kind: pa.DataType, form: str, path: str, advice: str = "cast it") -> SchemaError:
    """Error of a column whose type a format cannot hold."""
    return SchemaError(f"a column of type {kind} has no form in {form} (at {path}); {advice}")


def itself(column: pa.Array) -> pa.Array:
    """Lowering of a column that is in storage form already."""
    return column


def dictionary_lowering(inner: Lower) -> Lower:
    """Lowering of a dictionary whose values ``inner`` takes."""
    return lambda column: inner(column.dictionary_decode())


def null_lowering(target: pa.DataType) -> Lower:
    """Lowering of a column of nulls. Whether they may stand there is seen when they are written."""
    return lambda column: pa.nulls(len(column), target)


def check_between(numbers: pa.Array, low: int, high: int, refusal: str) -> None:
    """Raise SerializationError with the text ``refusal`` if a number is out of bounds."""
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is not None and (bounds["min"] < low or bounds["max"] > high):
        raise SerializationError(refusal)


def fits_64_bits(kind: pa.DataType) -> bool:
    """Whether a signed 64-bit integer holds all values of a type."""
    return bool(pa.types.is_integer(kind)) and kind != pa.uint64()


def is_any_list(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's list types, views apart."""
    t = pa.types
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def list_lowering(item: Lower, target: pa.DataType) -> Lower:
    """Lowering of lists, whose items ``item`` takes."""

    def lower(column: pa.Array) -> pa.Array:
        lengths, items = list_items(column)
        return pa.ListArray.from_arrays(list_offsets(lengths), item(items), type=target, mask=column.is_null())

    return lower


def map_lowering(key: Lower, item: Lower, target: pa.DataType) -> Lower:
    """Lowering of maps, whose keys and values ``key`` and ``item`` take."""

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
    what: str,
) -> Lower:
    """Lowering of structs into the fields ``names``, in that order.

    ``lower`` makes that of a field's column, from its index, the column's type and its path; ``absent`` gives the
    values of a field without column, or raises :class:`SchemaError`. So does a column that is no field of ``what``.
    """
    columns = [entry.name for entry in kind]
    for name in columns:
        if name not in names or columns.count(name) > 1:
            why = "twice" if name in names else f"and {what} has no such field; drop it"
            raise SchemaError(f"the column {path}.{name} is there {why}")
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
        # A value that does not fit can have kept its own type, for the plain path to name it.
        fields = [pa.field(name, values.type) for name, values in zip(names, inside, strict=True)]
        return pa.StructArray.from_arrays(inside, fields=fields, mask=column.is_null())

    return lower_struct
