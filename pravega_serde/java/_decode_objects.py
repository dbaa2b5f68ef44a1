"""Columns of flat objects: one NumPy operation moves the cursors of all events over one field.

The descriptor at the start of an event is the same bytes in every event of a class, so it is compared, not parsed;
behind it stand the fields in a fixed order. An event that differs in anything is left to the reader of single events.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import Attempt, ByteColumn, FastPath
from pravega_serde.java._column_values import (
    BOXES,
    STRING,
    WIDTH,
    Bools,
    Int64s,
    array_of,
    arrow_of,
    matches,
    numbers_at,
    object_prefix,
    text_of,
    u16_at,
    u32_at,
)
from pravega_serde.java._constants import (
    BASE_HANDLE,
    SC_WRITE_METHOD,
    STREAM_HEADER,
    TC_NULL,
    TC_OBJECT,
    TC_REFERENCE,
    TC_STRING,
)
from pravega_serde.java._jdk_table import jdk_descriptor
from pravega_serde.java._model import ClassDescriptor, Field
from pravega_serde.java._writer import Writer

__all__ = ["class_bytes", "object_path"]

_UNKNOWN: Final = -1
"""Handle of a class or string that an event has not had yet."""


class _Walk:
    """The cursors of all events of a column, and what each event has numbered so far."""

    def __init__(self, column: ByteColumn, prefix: bytes, handles: int) -> None:
        self.column = column
        self.good: Bools = (column.ends - column.starts >= len(prefix)) & matches(column, column.starts, prefix)
        self.at: Int64s = np.where(self.good, column.starts + len(prefix), column.starts)
        self.next_handle: Int64s = np.full(len(column.starts), BASE_HANDLE + handles, np.int64)
        self.classes: dict[str, Int64s] = {}
        self.strings: list[tuple[Int64s, Int64s, Int64s]] = []

    def move(self, size: int | Int64s) -> None:
        """Move all cursors; one that leaves its event makes the event a suspect."""
        moved = self.at + size
        self.good &= moved <= self.column.ends
        self.at = np.where(self.good, moved, self.column.starts)

    def require(self, condition: Bools) -> None:
        """Events for which this is false are suspects."""
        self.good &= condition
        self.at = np.where(self.good, self.at, self.column.starts)

    def token(self) -> npt.NDArray[np.uint8]:
        """The byte at each cursor."""
        return self.column.data[self.at]


@dataclass(frozen=True, slots=True)
class _Slices:
    """A string field of all events: where its text is, and which are null."""

    starts: Int64s
    ends: Int64s
    null: Bools


def _walk_string(walk: _Walk) -> _Slices:
    """Moves over a string field: a string, null, or a reference to a string field before it."""
    token = walk.token()
    new, null = token == TC_STRING, token == TC_NULL
    starts = walk.at + 3
    ends = starts + np.where(new, u16_at(walk.column, walk.at + 1), 0)
    # Java writes a string that comes again in the same object as a reference to it.
    referred = token == TC_REFERENCE
    size = np.where(new, ends - walk.at, np.where(null, 1, 5))
    known = new | null
    if referred.any():
        target = u32_at(walk.column, walk.at + 1)
        for handle, first, last in walk.strings:
            found = referred & (handle == target)
            starts, ends = np.where(found, first, starts), np.where(found, last, ends)
            known |= found
    walk.strings.append((np.where(new, walk.next_handle, _UNKNOWN), starts, ends))
    walk.next_handle = walk.next_handle + new
    walk.require(known)
    walk.move(size)
    return _Slices(starts, ends, null)


def _walk_class(walk: _Walk, descriptor: ClassDescriptor, here: Bools) -> None:
    """Moves the events of ``here`` over a class descriptor: whole, or a reference to its handle."""
    handle = walk.classes.setdefault(descriptor.name, np.full(len(here), _UNKNOWN, np.int64))
    token = walk.token()
    referred = here & (token == TC_REFERENCE)
    whole = here & ~referred
    raw = class_bytes(descriptor)
    matched = np.where(referred, u32_at(walk.column, walk.at + 1) == handle, matches(walk.column, walk.at, raw))
    walk.require(~here | matched)
    walk.classes[descriptor.name] = np.where(whole, walk.next_handle, handle)
    walk.next_handle = walk.next_handle + whole
    walk.move(np.where(referred, 5, np.where(whole, len(raw), 0)))
    # Number is the superclass of all numeric boxes, so its handle depends on which of them came first.
    if isinstance(descriptor.super_class, ClassDescriptor):
        _walk_class(walk, descriptor.super_class, whole)
    else:
        walk.require(~whole | (walk.token() == TC_NULL))
        walk.move(whole.astype(np.int64))


@functools.cache
def class_bytes(descriptor: ClassDescriptor) -> bytes:
    """A class descriptor of primitive fields up to its superclass."""
    return object_prefix(
        ClassDescriptor(descriptor.name, descriptor.serial_version_uid, descriptor.flags, descriptor.fields)
    )[len(STREAM_HEADER) + 1 : -1]


def _walk_box(walk: _Walk, signature: str) -> tuple[Int64s, Bools]:
    """Moves over a box: null, or an object whose class may have come before. Returns positions of the values."""
    token = walk.token()
    null = token == TC_NULL
    here = token == TC_OBJECT
    walk.require(null | here)
    walk.move(1)
    descriptor = jdk_descriptor(signature[1:-1].replace("/", "."))
    assert descriptor is not None
    _walk_class(walk, descriptor, here & walk.good)
    walk.next_handle = walk.next_handle + here
    at = walk.at
    walk.move(np.where(here, WIDTH[BOXES[signature]], 0))
    return at, null


def object_path(descriptor: ClassDescriptor, arrow_type: pa.DataType) -> FastPath | None:
    """The decoder of flat objects: primitives, strings and boxes only."""
    steps = _compile(descriptor, arrow_type)
    if steps is None:
        return None
    writer = Writer()
    writer.write(descriptor)
    handles = writer.handles
    prefix = object_prefix(descriptor)

    def decode(events: pa.BinaryArray) -> Attempt:
        column = ByteColumn.of(events)
        walk = _Walk(column, prefix, handles + 1)
        parts: dict[str, Callable[[Bools], pa.Array]] = {}
        for step in steps:
            step(walk, parts)
        # Bytes after the object are legal, and rare: the reader of single events ignores them.
        walk.require(walk.at == column.ends)
        bad = ~walk.good
        children = [parts[each.name](bad) for each in arrow_type]
        return Attempt(pa.StructArray.from_arrays(children, fields=list(arrow_type)), np.flatnonzero(bad))

    return decode


_Step = Callable[[_Walk, dict[str, Callable[[Bools], pa.Array]]], None]


def _compile(descriptor: ClassDescriptor, arrow_type: pa.DataType) -> list[_Step] | None:
    """The steps over the fields of a class in stream order; None if one is not flat, or has another Arrow type."""
    names = iter(descriptor.field_names)
    wanted = {each.name: each.type for each in arrow_type} if pa.types.is_struct(arrow_type) else {}
    if not wanted or descriptor.is_external or any(owner.flags & SC_WRITE_METHOD for owner in descriptor.hierarchy):
        return None
    steps: list[_Step] = []
    for owner in descriptor.hierarchy:
        for each in owner.fields:
            name = next(names)
            code = each.type if each.primitive else BOXES.get(each.type)
            natural = pa.string() if each.type == STRING else arrow_of(code) if code else None
            if natural is None or wanted.pop(name, natural) != natural:
                return None
            steps.append(_step(name, each, code))
    return None if wanted else steps


def _step(name: str, each: Field, code: str | None) -> _Step:
    if each.primitive:
        return functools.partial(_primitive_step, name, each.type)
    if code is None:
        return functools.partial(_string_step, name)
    return functools.partial(_box_step, name, each.type, code)


def _primitive_step(name: str, code: str, walk: _Walk, parts: dict[str, Callable[[Bools], pa.Array]]) -> None:
    column, at = walk.column, walk.at
    parts[name] = lambda bad: array_of(numbers_at(column, at, code), code, bad)
    walk.move(WIDTH[code])


def _string_step(name: str, walk: _Walk, parts: dict[str, Callable[[Bools], pa.Array]]) -> None:
    column = walk.column
    slices = _walk_string(walk)

    def make(bad: Bools) -> pa.Array:
        empty = bad | slices.null
        ends = np.where(empty, column.ends, slices.ends)
        values = text_of(column, np.where(empty, column.ends, slices.starts), ends, bad)
        return _with_nulls(values, slices.null)

    parts[name] = make


def _box_step(name: str, box: str, code: str, walk: _Walk, parts: dict[str, Callable[[Bools], pa.Array]]) -> None:
    column = walk.column
    at, null = _walk_box(walk, box)
    parts[name] = lambda bad: _with_nulls(array_of(numbers_at(column, at, code), code, bad), null)


def _with_nulls(values: pa.Array, null: Bools) -> pa.Array:
    if not null.any():
        return values
    return pc.if_else(pa.array(null), pa.scalar(None, values.type), values)
