"""Columns of structs to events of flat objects: primitives, strings and boxes.

An event is joined from pieces, one array of pieces for each part of it. What a piece is depends on the row only where
handles do: the class of a box is written in full where it comes first in its event, and referred to after that.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.java._column_values import BOXES, STRING, Bools, Int64s, natural_type, object_prefix
from pravega_serde.java._constants import BASE_HANDLE, SC_WRITE_METHOD, SHORT_STRING
from pravega_serde.java._decode_objects import class_bytes
from pravega_serde.java._jdk_table import jdk_descriptor
from pravega_serde.java._model import ClassDescriptor
from pravega_serde.java._wire_values import (
    WIRE,
    Bytes,
    RefusedError,
    big_endian,
    cast,
    fixed_rows,
    headed,
    modified_utf8,
)
from pravega_serde.java._writer import Writer

__all__ = ["encode_objects"]

_UNKNOWN: Final = -1
# Bytes and not scalars of Arrow, whose making at the start would load pandas where that is there.
_EMPTY: Final = b""
_NULL: Final = b"\x70"


def encode_objects(descriptor: ClassDescriptor, column: pa.Array) -> pa.BinaryArray | None:
    """Events of a struct column without null rows; None if the class is not flat."""
    if not _is_flat(descriptor):
        return None
    given = {field.name for field in column.type}
    pieces = _Pieces(descriptor, len(column))
    names = iter(descriptor.field_names)
    for owner in descriptor.hierarchy:
        for each in owner.fields:
            name = next(names)
            # The type that is written, whatever the column is read as: NumPy would cut a larger number off.
            child = cast(pc.struct_field(column, name), natural_type(each.type)) if name in given else None
            if each.primitive:
                pieces.primitive(child, each.type)
            elif child is None:
                pieces.constant(b"\x70")
            elif each.type == STRING:
                pieces.string(child)
            else:
                pieces.box(child, each.type)
    return pieces.join()


def _is_flat(descriptor: ClassDescriptor) -> bool:
    return not descriptor.is_external and all(
        not owner.flags & SC_WRITE_METHOD
        and all(each.type in WIRE or each.type == STRING or each.type in BOXES for each in owner.fields)
        for owner in descriptor.hierarchy
    )


class _Pieces:
    """The pieces of all events so far, and the handles that each event has given."""

    def __init__(self, descriptor: ClassDescriptor, count: int) -> None:
        writer = Writer()
        writer.write(descriptor)
        self.count = count
        self.next_handle: Int64s = np.full(count, BASE_HANDLE + writer.handles + 1, np.int64)
        self.classes: dict[str, Int64s] = {}
        self.pieces: list[pa.Array] = []
        self.fixed: list[Bytes] = []
        self.constant(object_prefix(descriptor))

    def constant(self, raw: bytes) -> None:
        """The same bytes in every event."""
        self.fixed.append(np.broadcast_to(np.frombuffer(raw, np.uint8), (self.count, len(raw))))

    def add(self, piece: pa.Array) -> None:
        """A piece of its own length in every event."""
        if self.fixed:
            self.pieces.append(fixed_rows(np.hstack(self.fixed)))
            self.fixed = []
        self.pieces.append(piece)

    def join(self) -> pa.BinaryArray:
        """The events."""
        if self.fixed:
            self.pieces.append(fixed_rows(np.hstack(self.fixed)))
        return pc.binary_join_element_wise(*self.pieces, b"")

    def primitive(self, child: pa.Array | None, code: str) -> None:
        """A primitive field; null, and a column that is not there, are Java's default."""
        if child is None:
            self.constant(bytes(np.dtype(WIRE[code]).itemsize))
        else:
            self.fixed.append(big_endian(_filled(child, code), code))

    def string(self, child: pa.Array) -> None:
        """A string field; RefusedError if a text is too long for the short form."""
        filled = modified_utf8(pc.fill_null(child, "") if child.null_count else child)
        lengths = pc.binary_length(filled).to_numpy(zero_copy_only=False)
        if len(lengths) and int(lengths.max()) > SHORT_STRING:
            raise RefusedError
        heads = headed(b"\x74", lengths, ">u2")
        self.next_handle = self.next_handle + _valid(child)
        self.add(pc.if_else(child.is_null(), _NULL, heads) if child.null_count else heads)
        self.add(filled)

    def box(self, child: pa.Array, signature: str) -> None:
        """A box: null, or its class (in full, or by reference) and its value."""
        descriptor = jdk_descriptor(signature[1:-1].replace("/", "."))
        assert descriptor is not None
        valid = _valid(child)
        self.add(pc.if_else(pa.array(valid), b"\x73", _NULL))
        self._class(descriptor, valid)
        self.next_handle = self.next_handle + valid
        code = BOXES[signature]
        values = fixed_rows(big_endian(_filled(child, code), code))
        self.add(pc.if_else(pa.array(valid), values, _EMPTY) if child.null_count else values)

    def _class(self, descriptor: ClassDescriptor, here: Bools) -> None:
        handle = self.classes.setdefault(descriptor.name, np.full(self.count, _UNKNOWN, np.int64))
        whole = here & (handle == _UNKNOWN)
        self.add(_choice(here & ~whole, fixed_rows(_references(handle))))
        self.add(_choice(whole, class_bytes(descriptor)))
        self.classes[descriptor.name] = np.where(whole, self.next_handle, handle)
        self.next_handle = self.next_handle + whole
        if isinstance(descriptor.super_class, ClassDescriptor):
            self._class(descriptor.super_class, whole)
        else:
            self.add(_choice(whole, _NULL))


def _choice(where: Bools, piece: pa.Array | bytes) -> pa.Array:
    return pc.if_else(pa.array(where), piece, _EMPTY)


def _references(handles: Int64s) -> Bytes:
    rows = np.empty((len(handles), 5), np.uint8)
    rows[:, 0] = 0x71
    rows[:, 1:] = handles.astype(">u4").view(np.uint8).reshape(-1, 4)
    return rows


def _valid(child: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = child.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _filled(child: pa.Array, code: str) -> pa.Array:
    if not child.null_count:
        return child
    return pc.fill_null(child, False if code == "Z" else "\0" if code == "C" else 0)
