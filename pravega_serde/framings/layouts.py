"""Bytes of the framings: each opens one event or a whole column, and puts a payload into a frame.

| framing | frame |
|---|---|
| aws-glue | 03, 00 or 05 for zlib, UUID of a schema version (16 bytes), payload |
| azure | 00000000 (may be absent), schema id as 32 hex digits, payload |
| delimited | length as a varint, payload: ``writeDelimitedTo`` of Protobuf |
| grpc | 00 or 01 for compressed, length of 4 bytes, payload |
| gzip, zlib | the compressed payload |
"""

from __future__ import annotations

import re
import uuid
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar.arrays import cut
from pravega_serde.columnar.bad_rows import per_row
from pravega_serde.errors import DeserializationError, LimitExceededError, SerdeError
from pravega_serde.registry.codecs import CODEC_GZIP, MAX_DECOMPRESSED_BYTES
from pravega_serde.registry.header import bytes_of, with_header

_INT32_MAX: Final = (1 << 31) - 1
_GLUE: Final = 18
_AZURE: Final = 36
_GZIP: Final = b"\x1f\x8b"
_HEX: Final = re.compile(rb"[0-9a-fA-F]{32}")


class RefusedError(Exception):
    """A column that must be opened event by event."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A framing. ``header`` is that of an id, if the framing has one, as text for an error otherwise."""

    name: str
    open: Callable[[bytes], bytes]
    """Payload of one event. Raises DeserializationError."""
    open_column: Callable[[pa.BinaryArray], pa.BinaryArray]
    """Payloads of events without nulls. Raises RefusedError or DeserializationError."""
    frame: Callable[[bytes], bytes]
    """Event of a payload, after the header."""
    header: Callable[[str], bytes] | None = None

    def frame_column(self, header: bytes, payloads: pa.BinaryArray) -> pa.BinaryArray:
        """Return the events of payloads. A null stays null."""
        if self.header is not None:
            return with_header(header, payloads)
        return per_row(payloads.to_pylist(), self.frame)


def inflated(data: bytes) -> bytes:
    """Return the payload of one zlib stream. Raises DeserializationError, LimitExceededError."""
    stream = zlib.decompressobj()
    try:
        payload = stream.decompress(data, MAX_DECOMPRESSED_BYTES + 1)
    except zlib.error as error:
        raise DeserializationError(f"not a zlib stream: {error}") from error
    if len(payload) > MAX_DECOMPRESSED_BYTES:
        raise LimitExceededError(f"an event decompresses into more than {MAX_DECOMPRESSED_BYTES} bytes")
    if not stream.eof or stream.unused_data:
        raise DeserializationError("a zlib stream ends too early, or has bytes after its end")
    return payload


def _gunzipped(data: bytes) -> bytes:
    if not data.startswith(_GZIP):
        raise DeserializationError(f"not a gzip member: the event begins with {data[:2].hex()}")
    return CODEC_GZIP.unpack(data, {})


def _each(open_one: Callable[[bytes], bytes]) -> Callable[[pa.BinaryArray], pa.BinaryArray]:
    """Return an opening of columns for compressed events: their decompression is a call for each."""
    return lambda column: pa.array(map(open_one, column.to_pylist()), pa.binary(), size=len(column))


# ---- AWS Glue ----


def _open_glue(event: bytes) -> bytes:
    if len(event) < _GLUE or event[0] != 3 or event[1] not in (0, 5):
        raise DeserializationError(
            f"no header of AWS Glue: the event begins with {event[:2].hex() or 'nothing'}, not 0300 or 0305"
        )
    return inflated(event[_GLUE:]) if event[1] else event[_GLUE:]


def _open_glue_column(column: pa.BinaryArray) -> pa.BinaryArray:
    shortest = pc.min(pc.binary_length(column)).as_py() or 0
    if shortest >= _GLUE and pc.all(pc.starts_with(column, pattern=b"\x03\x00")).as_py():
        return pc.binary_slice(column, _GLUE, _INT32_MAX)
    return _each(_open_glue)(column)


def _glue_header(version: str) -> bytes:
    try:
        return b"\x03\x00" + uuid.UUID(version).bytes
    except ValueError:
        raise SerdeError(f"invalid id {version!r}: for aws-glue it is the UUID of a schema version") from None


# ---- Azure ----


def _open_azure(event: bytes) -> bytes:
    start = 4 if event.startswith(b"\0\0\0\0") else 0
    if _HEX.match(event, start) is None:
        raise DeserializationError("no header of Azure's schema registry: 32 hex digits are missing")
    return event[start + 32 :]


def _open_azure_column(column: pa.BinaryArray) -> pa.BinaryArray:
    if not pc.all(pc.starts_with(column, pattern=b"\0\0\0\0")).as_py():
        return _each(_open_azure)(column)
    ids = pc.unique(pc.binary_slice(column, 4, _AZURE))
    if not all(_HEX.fullmatch(each) for each in ids.to_pylist()):
        raise RefusedError
    return pc.binary_slice(column, _AZURE, _INT32_MAX)


def _azure_header(schema_id: str) -> bytes:
    if _HEX.fullmatch(schema_id.encode()) is None:
        raise SerdeError(f"invalid id {schema_id!r}: for azure it is a schema id of 32 hex digits")
    return b"\0\0\0\0" + schema_id.encode()


# ---- lengths ----


def _open_grpc(event: bytes) -> bytes:
    if len(event) < 5 or event[0] > 1 or int.from_bytes(event[1:5], "big") != len(event) - 5:
        raise DeserializationError("not one gRPC message: its first byte is a flag, the next 4 are the length")
    if not event[0]:
        return event[5:]
    return _gunzipped(event[5:]) if event[5:].startswith(_GZIP) else inflated(event[5:])


def _open_grpc_column(column: pa.BinaryArray) -> pa.BinaryArray:
    data, starts, ends = bytes_of(column)
    if (ends - starts < 5).any():
        raise RefusedError
    if data[starts].any():
        return _each(_open_grpc)(column)
    length = np.zeros(len(starts), np.int64)
    for at in range(1, 5):
        length = length << 8 | data[starts + at]
    if not np.array_equal(length, ends - starts - 5):
        raise RefusedError
    return cut(data, starts + 5, ends)


def _frame_grpc(payload: bytes) -> bytes:
    return b"\0" + len(payload).to_bytes(4, "big") + payload


def _open_delimited(event: bytes) -> bytes:
    length = at = 0
    while at < min(len(event), 5):
        length |= (event[at] & 0x7F) << 7 * at
        at += 1
        if event[at - 1] < 0x80:
            if length == len(event) - at:
                return event[at:]
            break
    raise DeserializationError("not one delimited message: its length is not the number of bytes after it")


def _open_delimited_column(column: pa.BinaryArray) -> pa.BinaryArray:
    data, starts, ends = bytes_of(column)
    sizes = ends - starts
    if not (sizes > 0).all():
        raise RefusedError
    # The number of bytes of the length follows from the size, because writers use the shortest varint.
    width = np.ones(len(sizes), np.int64)
    for at in range(1, 5):
        width += sizes > (1 << 7 * at) + at - 1
    length = sizes - width
    for at in range(5):
        rows = width > at
        more = np.where(width[rows] > at + 1, 0x80, 0)
        if (data[starts[rows] + at] != ((length[rows] >> 7 * at) & 0x7F | more)).any():
            raise RefusedError
    return cut(data, starts + width, ends)


def _frame_delimited(payload: bytes) -> bytes:
    length, rest = bytearray(), len(payload)
    while rest > 0x7F:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*length, rest)) + payload


#: Every framing, by its name.
LAYOUTS: Final[Mapping[str, Layout]] = {
    each.name: each
    for each in (
        Layout("aws-glue", _open_glue, _open_glue_column, bytes, _glue_header),
        Layout("azure", _open_azure, _open_azure_column, bytes, _azure_header),
        Layout("delimited", _open_delimited, _open_delimited_column, _frame_delimited),
        Layout("grpc", _open_grpc, _open_grpc_column, _frame_grpc),
        Layout("gzip", _gunzipped, _each(_gunzipped), CODEC_GZIP.pack),
        Layout("zlib", inflated, _each(inflated), zlib.compress),
    )
}
