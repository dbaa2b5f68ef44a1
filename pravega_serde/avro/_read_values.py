"""How single primitive values are read. Reading beyond the end is an IndexError, a struct.error or a MalformedError."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from pravega_serde.avro._values import Converter
from pravega_serde.columnar import MalformedError

__all__ = ["PRIMITIVES", "Read", "converted", "read_fixed", "read_long", "read_string"]

#: A value from the data at a position, and the position behind it.
Read = Callable[[bytes, int], tuple[Any, int]]

_unpack_float: Final = struct.Struct("<f").unpack_from
_unpack_double: Final = struct.Struct("<d").unpack_from


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint of up to 64 bits."""
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value = byte & 0x7F
    shift = 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise MalformedError("a number of more than ten bytes")
    if value >> 64:
        raise MalformedError("a number of more than 64 bits")
    return (value >> 1) ^ -(value & 1), at + 1


def _read_int(data: bytes, at: int) -> tuple[int, int]:
    value, at = read_long(data, at)
    if not -0x80000000 <= value <= 0x7FFFFFFF:
        raise MalformedError(f"{value} is no 32-bit int")
    return value, at


def _read_null(data: bytes, at: int) -> tuple[None, int]:  # noqa: ARG001
    return None, at


def _read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    # Java takes any other byte for false; so much leniency would hide a wrong schema.
    byte = data[at]
    if byte > 1:
        raise MalformedError(f"{byte} is no boolean")
    return byte == 1, at + 1


def _read_float(data: bytes, at: int) -> tuple[float, int]:
    return _unpack_float(data, at)[0], at + 4


def _read_double(data: bytes, at: int) -> tuple[float, int]:
    return _unpack_double(data, at)[0], at + 8


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(data, at)
    end = at + size
    if size < 0 or end > len(data):
        raise MalformedError(f"{size} bytes are announced where {len(data) - at} are left")
    return data[at:end], end


def read_string(data: bytes, at: int) -> tuple[str, int]:
    """A string, after its length in bytes."""
    raw, end = _read_bytes(data, at)
    try:
        return raw.decode(), end
    except UnicodeDecodeError as error:
        raise MalformedError(f"not UTF-8 at byte {error.start} of the string") from error


PRIMITIVES: Final[Mapping[str, Read]] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "int": _read_int,
    "long": read_long,
    "float": _read_float,
    "double": _read_double,
    "bytes": _read_bytes,
    "string": read_string,
}


def read_fixed(size: int) -> Read:
    """Reads so many bytes."""

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size
        if end > len(data):
            raise MalformedError(f"{size} bytes are expected where {len(data) - at} are left")
        return data[at:end], end

    return read


def converted(read_raw: Read, convert: Converter | None) -> Read:
    """Reads, then converts."""
    if convert is None:
        return read_raw

    def read(data: bytes, at: int) -> tuple[Any, int]:
        value, at = read_raw(data, at)
        return convert(value), at

    return read
