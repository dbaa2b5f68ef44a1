"""Compressed payloads, decompressed up to the size of the largest event that is examined."""

from __future__ import annotations

import zlib
from typing import Any, Final

from pravega_serde.errors import DeserializationError, MissingExtraError
from pravega_serde.registry.codecs import CODEC_SNAPPY
from pravega_serde.sniffing.sample import MAX_EVENT

_GZIP: Final = b"\x1f\x8b\x08"


def gunzipped(data: bytes) -> bytes | None:
    """Return the payload of a gzip event, empty if it exceeds ``MAX_EVENT``; None for other or damaged events."""
    return _inflated(data, zlib.decompressobj(zlib.MAX_WBITS + 16)) if data.startswith(_GZIP) else None


def inflated(data: bytes) -> bytes | None:
    """Return the payload of a zlib event, as :func:`gunzipped` does."""
    return _inflated(data, zlib.decompressobj()) if _has_zlib_header(data) else None


def is_compressed(data: bytes) -> bool:
    """Return True if an event begins as gzip and zlib do."""
    return data.startswith(_GZIP) or _has_zlib_header(data)


def _has_zlib_header(data: bytes) -> bool:
    return len(data) >= 8 and data[0] & 0x8F == 8 and int.from_bytes(data[:2], "big") % 31 == 0


def _inflated(data: bytes, stream: Any) -> bytes | None:
    try:
        payload: bytes = stream.decompress(data, MAX_EVENT + 1)
    except zlib.error:
        return None
    if len(payload) > MAX_EVENT:
        return b""
    return payload if stream.eof else None


def unsnapped(data: bytes) -> bytes | None:
    """Return the payload of a raw snappy block; None for other events, for large ones and without cramjam."""
    size = _declared_size(data)
    if not 0 < size <= MAX_EVENT:
        return None
    try:
        payload = CODEC_SNAPPY.unpack(data, {})
    except (DeserializationError, MissingExtraError):
        return None
    return payload if len(payload) == size else None


def _declared_size(data: bytes) -> int:
    size = 0
    for at, byte in enumerate(data[:4]):
        size |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            return size
    return 0
