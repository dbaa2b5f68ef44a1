"""Column writer: writes all rows at once, for strings, byte arrays, boxes and flat objects.

An event of an object is joined from pieces, with one array of pieces for each part of it. A piece depends on the row
only because of handles: the class of a box is written in full at its first occurrence in an event, and as a reference
after that.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import (
    FallbackError,
    at_path,
    days_of,
    expand,
    list_items,
    list_offsets,
    map_entries,
    time_of_day,
    to_micros,
)
from pravega_serde.columnar.arrays import dictionary_values
from pravega_serde.columnar.types import family
from pravega_serde.errors import SerializationError
from pravega_serde.java.columns import BOXES, STRING, Bools, Int64s, class_bytes, object_prefix
from pravega_serde.java.convert import ColumnType
from pravega_serde.java.jdk_classes import array_descriptor, jdk_descriptor
from pravega_serde.java.model import ClassDescriptor
from pravega_serde.java.protocol import (
    BASE_HANDLE,
    DTYPES,
    SC_WRITE_METHOD,
    SHORT_STRING,
    STRING_EVENT,
    TC_ARRAY,
    TC_NULL,
    TC_OBJECT,
    TC_REFERENCE,
    TC_STRING,
    encode_utf,
)
from pravega_serde.java.types import ARROW
from pravega_serde.java.write_rows import Writer

_Bytes = npt.NDArray[np.uint8]


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the column in the written type. Raises :class:`FallbackError` if a value does not fit."""
    try:
        return column.cast(wanted)
    except pa.ArrowException as error:
        raise FallbackError from error


def _big_endian(values: pa.Array, code: str) -> _Bytes:
    """Return primitive values as Java writes them: rows of bytes."""
    if code == "Z":
        values = values.cast(pa.uint8())
    elif code == "C":
        values = _code_units(values)
    numbers = values.to_numpy(zero_copy_only=False)
    dtype = DTYPES[code]
    raw: _Bytes = numbers.astype(dtype).view(np.uint8).reshape(len(values), dtype.itemsize)
    return raw


def _code_units(values: pa.StringArray) -> pa.Array:
    """Return chars as numbers. A column has few distinct chars, and each is converted once."""
    encoded = values.dictionary_encode()
    units = []
    for text in encoded.dictionary.to_pylist():
        if len(text) != 1 or ord(text) > 0xFFFF:
            raise FallbackError
        units.append(ord(text))
    return pa.array(units, pa.uint16()).take(encoded.indices)


def _fixed_rows(rows: _Bytes) -> pa.BinaryArray:
    """Return rows of equal length as a binary array."""
    count, width = rows.shape
    raw = np.ascontiguousarray(rows)
    return pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(raw)]).cast(pa.binary())


def _headed(prefix: bytes, lengths: npt.NDArray[Any], dtype: str) -> pa.BinaryArray:
    """Return the same prefix and then a length, for each length."""
    raw = lengths.astype(dtype).view(np.uint8).reshape(len(lengths), np.dtype(dtype).itemsize)
    constant = np.frombuffer(prefix, np.uint8)
    return _fixed_rows(np.hstack([np.broadcast_to(constant, (len(lengths), len(constant))), raw]))


def _modified_utf8(values: pa.StringArray) -> pa.BinaryArray:
    """Return the modified UTF-8 of texts.

    It equals their UTF-8, except for texts with NUL or astral characters, which are converted.
    """
    plain = values.view(pa.binary())
    buffer = values.buffers()[2]
    if not len(values) or buffer is None:
        return plain
    ends = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset)
    raw = np.frombuffer(buffer, np.uint8)[ends[0] : ends[-1]]
    if not len(raw) or (int(raw.min()) > 0 and int(raw.max()) < 0xF0):
        return plain
    # Bytes from F0 begin the four bytes of an astral character, which modified UTF-8 writes as two surrogates.
    odd = np.flatnonzero((raw == 0) | (raw >= 0xF0)) + int(ends[0])
    rows = np.unique(np.searchsorted(ends[1:], odd, side="right"))
    converted = pa.array([encode_utf(values[row].as_py()) for row in rows.tolist()], pa.binary())
    places = np.arange(len(values))
    places[rows] = len(values) + np.arange(len(rows))
    return pa.concat_arrays([plain, converted]).take(pa.array(places))


_UNKNOWN: Final = -1
# Bytes instead of Arrow scalars, because creating scalars on import would load pandas if it is installed.
_EMPTY: Final = b""
_NULL: Final = bytes([TC_NULL])


def _encode_objects(descriptor: ClassDescriptor, column: pa.Array) -> pa.BinaryArray:
    """Return the events of a struct column without null rows. Raises FallbackError if the class is not flat."""
    if not _is_flat(descriptor):
        raise FallbackError
    given = {field.name for field in column.type}
    pieces = _Pieces(descriptor, len(column))
    names = iter(descriptor.field_names)
    for owner in descriptor.hierarchy:
        for each in owner.fields:
            name = next(names)
            # Cast to the written type, because NumPy would truncate a larger number.
            child = _cast(pc.struct_field(column, name), ARROW[each.type]) if name in given else None
            if each.primitive:
                pieces.primitive(child, each.type)
            elif child is None:
                pieces.constant(_NULL)
            elif each.type == STRING:
                pieces.string(child)
            else:
                pieces.box(child, each.type)
    return pieces.join()


def _is_flat(descriptor: ClassDescriptor) -> bool:
    return not descriptor.is_external and all(
        not owner.flags & SC_WRITE_METHOD
        and all(each.type in DTYPES or each.type == STRING or each.type in BOXES for each in owner.fields)
        for owner in descriptor.hierarchy
    )


class _Pieces:
    """Pieces of all events so far, and the handles that each event has assigned."""

    def __init__(self, descriptor: ClassDescriptor, count: int) -> None:
        writer = Writer()
        writer.write(descriptor)
        self.count = count
        self.next_handle: Int64s = np.full(count, BASE_HANDLE + writer.handles + 1, np.int64)
        self.classes: dict[str, Int64s] = {}
        self.pieces: list[pa.Array] = []
        self.fixed: list[_Bytes] = []
        self.constant(object_prefix(descriptor))

    def constant(self, raw: bytes) -> None:
        """Add the same bytes to every event."""
        self.fixed.append(np.broadcast_to(np.frombuffer(raw, np.uint8), (self.count, len(raw))))

    def add(self, piece: pa.Array) -> None:
        """Add a piece with a separate length in every event."""
        if self.fixed:
            self.pieces.append(_fixed_rows(np.hstack(self.fixed)))
            self.fixed = []
        self.pieces.append(piece)

    def join(self) -> pa.BinaryArray:
        """Return the events of all pieces."""
        if self.fixed:
            self.pieces.append(_fixed_rows(np.hstack(self.fixed)))
        return pc.binary_join_element_wise(*self.pieces, b"")

    def primitive(self, child: pa.Array | None, code: str) -> None:
        """Add a primitive field. Nulls, and a missing column, become Java's default."""
        if child is None:
            self.constant(bytes(DTYPES[code].itemsize))
        else:
            self.fixed.append(_big_endian(_filled(child, code), code))

    def string(self, child: pa.Array) -> None:
        """Add a string field. Raises :class:`FallbackError` if a text is too long for TC_STRING."""
        filled = _modified_utf8(pc.fill_null(child, "") if child.null_count else child)
        lengths = pc.binary_length(filled).to_numpy(zero_copy_only=False)
        if len(lengths) and int(lengths.max()) > SHORT_STRING:
            raise FallbackError
        heads = _headed(bytes([TC_STRING]), lengths, ">u2")
        self.next_handle = self.next_handle + _valid(child)
        self.add(pc.if_else(child.is_null(), _NULL, heads) if child.null_count else heads)
        self.add(filled)

    def box(self, child: pa.Array, signature: str) -> None:
        """Add a box: null, or an object of its class (in full, or as a reference) with its value."""
        descriptor = jdk_descriptor(signature[1:-1].replace("/", "."))
        assert descriptor is not None
        valid = _valid(child)
        self.add(pc.if_else(pa.array(valid), bytes([TC_OBJECT]), _NULL))
        self._class(descriptor, valid)
        self.next_handle = self.next_handle + valid
        code = BOXES[signature]
        values = _fixed_rows(_big_endian(_filled(child, code), code))
        self.add(pc.if_else(pa.array(valid), values, _EMPTY) if child.null_count else values)

    def _class(self, descriptor: ClassDescriptor, here: Bools) -> None:
        handle = self.classes.setdefault(descriptor.name, np.full(self.count, _UNKNOWN, np.int64))
        whole = here & (handle == _UNKNOWN)
        self.add(_choice(here & ~whole, _fixed_rows(_references(handle))))
        self.add(_choice(whole, class_bytes(descriptor)))
        self.classes[descriptor.name] = np.where(whole, self.next_handle, handle)
        self.next_handle = self.next_handle + whole
        if isinstance(descriptor.super_class, ClassDescriptor):
            self._class(descriptor.super_class, whole)
        else:
            self.add(_choice(whole, _NULL))


def _choice(where: Bools, piece: pa.Array | bytes) -> pa.Array:
    return pc.if_else(pa.array(where), piece, _EMPTY)


def _references(handles: Int64s) -> _Bytes:
    rows = np.empty((len(handles), 5), np.uint8)
    rows[:, 0] = TC_REFERENCE
    rows[:, 1:] = handles.astype(">u4").view(np.uint8).reshape(-1, 4)
    return rows


def _valid(child: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = child.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _filled(child: pa.Array, code: str) -> pa.Array:
    if not child.null_count:
        return child
    return pc.fill_null(child, False if code == "Z" else "\0" if code == "C" else 0)


def encode_fast(kind: ColumnType, column: pa.Array) -> pa.BinaryArray:
    """Return the events of a column, written at once.

    Raises :class:`FallbackError` if rows must be written one by one.
    """
    if column.null_count == 0:
        return _encode(kind, column)
    present = column.is_valid()
    return expand(_encode(kind, column.filter(present)), present.to_numpy(zero_copy_only=False))


def lowered(column: pa.Array, target: pa.DataType, path: str = "$") -> pa.Array:
    """Return a column in the types from which Java's values are created, as far as Python has them.

    Structs keep their fields, decimals their scale. Raises :class:`SerializationError` with the field of a value that
    does not fit: outside Python's calendar, or outside the day.
    """
    kind, name = column.type, family(column.type)
    if name == "dictionary":
        return lowered(dictionary_values(column), target, path)
    if name == "fields":
        parts = [
            lowered(part, target.field(field.name).type, f"{path}.{field.name}")
            for part, field in zip(column.flatten(), kind, strict=True)
        ]
        fields = [pa.field(field.name, part.type) for part, field in zip(parts, kind, strict=True)]
        if not fields:
            return column
        return pa.StructArray.from_arrays(parts, fields=fields, mask=column.is_null())
    if name == "items":
        lengths, items = list_items(column)
        inside = lowered(items, target.value_type, f"{path}[]")
        return pa.ListArray.from_arrays(list_offsets(lengths), inside, mask=column.is_null())
    if name == "entries":
        lengths, keys, values = map_entries(column)
        key, item = lowered(keys, target.key_type, f"{path}{{}}"), lowered(values, target.item_type, f"{path}{{}}")
        made = pa.map_(key.type, item.type)
        return pa.MapArray.from_arrays(list_offsets(lengths), key, item, type=made, mask=column.is_null())
    return at_path(lambda values: _lowered_leaf(values, target), path)(column)


def _lowered_leaf(column: pa.Array, target: pa.DataType) -> pa.Array:
    kind, name = column.type, family(target)
    same = family(kind) == name
    if name == "timestamp":
        micros = to_micros(column, kind.unit, noun="timestamp") if same else column
        made = micros.cast(pa.timestamp("us", target.tz and "UTC"))
        _check_years(made.cast(pa.int64()), 86_400_000_000)
        return made
    if name == "date":
        made = days_of(column) if same else column.cast(pa.date32())
        _check_years(made.cast(pa.int32()), 1)
        return made
    if name == "time":
        return time_of_day(column if same else column.cast(target))
    if name == "duration" and same:
        return to_micros(column, kind.unit, noun="duration").cast(pa.duration("us"))
    # A decimal is written with its own digits.
    return column if kind == target or (name == "decimal" and same) else column.cast(target)


#: First and last day of Python's calendar, counted from 1970.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896


def _check_years(numbers: pa.Array, per_day: int) -> None:
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is not None and not (
        _FIRST_DAY * per_day <= bounds["min"] <= bounds["max"] < (_LAST_DAY + 1) * per_day
    ):
        msg = "a time beyond the years 1 to 9999"
        raise SerializationError(msg)


def _encode(kind: ColumnType, column: pa.Array) -> pa.BinaryArray:
    java_type = kind.java_type
    if isinstance(java_type, ClassDescriptor):
        return _encode_objects(java_type, column)
    if java_type in BOXES:
        return _boxes(_cast(column, ARROW[java_type]), java_type, BOXES[java_type])
    if java_type in (STRING, "[B"):
        return _variable(_cast(column, ARROW[java_type]), text=java_type == STRING)
    raise FallbackError


def _boxes(values: pa.Array, signature: str, code: str) -> pa.BinaryArray:
    descriptor = jdk_descriptor(signature[1:-1].replace("/", "."))
    assert descriptor is not None
    prefix = np.frombuffer(object_prefix(descriptor), np.uint8)
    return _fixed_rows(np.hstack([np.broadcast_to(prefix, (len(values), len(prefix))), _big_endian(values, code)]))


def _variable(values: pa.Array, *, text: bool) -> pa.BinaryArray:
    values = _modified_utf8(values) if text else values
    lengths = pc.binary_length(values).to_numpy(zero_copy_only=False)
    if text and len(lengths) and int(lengths.max()) > SHORT_STRING:
        raise FallbackError
    prefix = STRING_EVENT if text else object_prefix(array_descriptor("[B"), TC_ARRAY)
    heads = _headed(prefix, lengths, ">u2" if text else ">u4")
    return pc.binary_join_element_wise(heads, values, b"")
