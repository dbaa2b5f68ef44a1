"""Numbers of a wider type in a narrower column, one by one: each fits exactly, or its event is a bad record.

A query keeps its columns while its stream's schemas go on. A field that was an int and becomes a long is no reason to
lose events: most of its values are still ints. Avro's resolution refuses the pair of schemas, and Java with it, so
events are read as the wider type first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from pravega_serde.avro.resolve import match_fields
from pravega_serde.avro.schema import Array, Map, Primitive, Record, Type, Union, kind_of
from pravega_serde.columnar.arrays import Int64s
from pravega_serde.errors import DeserializationError
from pravega_serde.serializer import OnError

__all__ = ["narrowed", "widened"]

#: The reader's number -> what a writer may have instead: the promotions of Avro, backwards.
_WIDER: Final = {"int": ("long", "float", "double"), "long": ("float", "double"), "float": ("double",)}


def widened(writer: Type, reader: Type) -> Type:
    """The reader's schema with the writer's numbers where its own are narrower; ``reader`` itself if none are."""
    if isinstance(writer, Union):
        for branch in writer.branches:
            reader = widened(branch, reader)
        return reader
    if isinstance(reader, Union):
        return _widened_union(writer, reader)
    if isinstance(writer, Primitive):
        plain = isinstance(reader, Primitive) and reader.logical is None and writer.logical is None
        return writer if plain and writer.name in _WIDER.get(kind_of(reader), ()) else reader
    if isinstance(writer, Array) and isinstance(reader, Array):
        items = widened(writer.items, reader.items)
        return reader if items is reader.items else Array(items)
    if isinstance(writer, Map) and isinstance(reader, Map):
        values = widened(writer.values, reader.values)
        return reader if values is reader.values else Map(values)
    return _widened_record(writer, reader) if isinstance(writer, Record) and isinstance(reader, Record) else reader


def _widened_union(writer: Type, reader: Union) -> Union:
    """With one branch widened, if none takes what was written as it is, or promoted."""
    kinds = {kind_of(branch) for branch in reader.branches}
    if isinstance(writer, Primitive) and {writer.name, *_WIDER.get(writer.name, ())} & kinds:
        return reader
    for place, branch in enumerate(reader.branches):
        made = widened(writer, branch)
        if made is not branch:
            return Union((*reader.branches[:place], made, *reader.branches[place + 1 :]))
    return reader


def _widened_record(writer: Record, reader: Record) -> Record:
    slots = match_fields(writer, reader)
    fields = list(reader.fields)
    for entry in writer.fields:
        if (slot := slots.get(entry.name)) is not None:
            fields[slot] = replace(fields[slot], type=widened(entry.type, fields[slot].type))
    changed = any(new.type is not old.type for new, old in zip(fields, reader.fields, strict=True))
    return replace(reader, fields=tuple(fields)) if changed else reader


def narrowed(column: pa.Array, kind: pa.DataType, on_error: OnError) -> pa.Array:
    """The column in a type of the same shape with narrower numbers; rows with a number that does not fit are null."""
    lost = dict[int, DeserializationError]()
    for path, reason, rows in _misfits(column, kind, "$"):
        for row in rows.tolist():
            lost.setdefault(row, DeserializationError(reason, field_path=path, row=row))
    if lost:
        place = np.arange(len(column))
        place[list(lost)] = -1
        column = column.take(pa.array(place, mask=place < 0))
        for row in sorted(lost):
            on_error(lost[row])
    return column.cast(kind, safe=False)


def _misfits(column: pa.Array, kind: pa.DataType, path: str) -> Iterator[tuple[str, str, Int64s]]:
    """Rows with a number that is none of ``kind``, where, and why."""
    if column.type == kind or not len(column):
        return
    if pa.types.is_struct(kind):
        for member, inner in zip(column.flatten(), kind, strict=True):
            yield from _misfits(member, inner.type, f"{path}.{inner.name}")
    elif pa.types.is_map(kind):
        yield from _inside(column, column.items, kind.item_type, f"{path}{{}}")
    elif pa.types.is_list(kind):
        yield from _inside(column, column.values, kind.value_type, f"{path}[]")
    else:
        yield path, f"the value does not fit the column: {column.type} -> {kind}", _inexact(column, kind)


def _inside(column: pa.Array, items: pa.Array, kind: pa.DataType, path: str) -> Iterator[tuple[str, str, Int64s]]:
    """As :func:`_misfits`, of the items of lists or maps."""
    offsets = column.offsets.to_numpy()
    owner = np.repeat(np.arange(len(column)), np.diff(offsets))
    there = column.is_valid().to_numpy(zero_copy_only=False)
    for place, reason, rows in _misfits(items.slice(offsets[0], len(owner)), kind, path):
        owners = np.unique(owner[rows])
        yield place, reason, owners[there[owners]]


def _inexact(column: pa.Array, kind: pa.DataType) -> Int64s:
    """Rows whose number changes with the type."""
    there = column.is_valid().to_numpy(zero_copy_only=False)
    values = column.fill_null(0).to_numpy()
    narrow = kind.to_pandas_dtype()
    with np.errstate(all="ignore"):
        same = values.astype(narrow).astype(values.dtype) == values
    if np.issubdtype(narrow, np.integer):
        # Beyond its range a cast gives what the processor likes, perhaps what turns into the same float again.
        same &= (values >= np.iinfo(narrow).min) & (values < float(np.iinfo(narrow).max) + 1)
    else:
        same |= np.isnan(values)
    return np.flatnonzero(there & ~same)
