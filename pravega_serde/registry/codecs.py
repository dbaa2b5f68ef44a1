"""Codecs of event payloads: compression, or an encoding that the user provides.

Names and bytes are those of Java's ``Codecs``. Java's writers compress their whole buffer, so zeros follow the
decompressed payload. Every format here ignores such zeros. The codecs here add none.
"""

from __future__ import annotations

import importlib
import inspect
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from pravega_serde.errors import (
    DeserializationError,
    LimitExceededError,
    MissingExtraError,
    SerdeError,
    SerializationError,
    UnsupportedCodecError,
)
from pravega_serde.registry.contract import CodecType

try:
    import cramjam
except ImportError:
    _snappy_block = None
else:
    _snappy_block = cramjam.snappy

#: Decompressed size limit of one event: 8 times Pravega's largest event (``Serializer.MAX_EVENT_SIZE``).
MAX_DECOMPRESSED_BYTES: Final = 64 * 1024 * 1024

#: The header that GZIPOutputStream writes since JDK 16: no name, no time, an unknown system.
_GZIP_HEADER: Final = bytes.fromhex("1f8b08000000000000ff")
_GZIP_MAGIC: Final = _GZIP_HEADER[:2]
_GZIP_WINDOW: Final = zlib.MAX_WBITS + 16
_GZIP_TRAILER: Final = struct.Struct("<II")

#: Java's writers create one member. Each member costs a copy of the bytes after it.
_MAX_GZIP_MEMBERS: Final = 64

#: A copy of three bytes yields at most 64. A block that claims more is rejected before memory is allocated.
_SNAPPY_EXPANSION: Final = 64


@dataclass(frozen=True, slots=True)
class Codec:
    """Codec with functions that ``encode`` a payload into its stored form and ``decode`` it.

    ``encode`` accepts bytes; ``decode`` accepts bytes and properties. Raises :class:`SerdeError` if a function cannot
    be called like that. ``properties`` are registered with the name, and ``decode`` receives those that the group has.
    Both functions must be importable if a serializer is pickled (Spark can also pickle others). An exception in
    ``decode`` becomes a DeserializationError, one in ``encode`` a SerializationError.
    """

    name: str
    encode: Callable[[bytes], bytes]
    decode: Callable[[bytes, Mapping[str, str]], bytes]
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_call(self.name, "encode", self.encode, b"")
        _check_call(self.name, "decode", self.decode, b"", {})

    @property
    def type(self) -> CodecType:
        """Codec type as the registry stores it."""
        return CodecType(self.name, dict(self.properties))

    def pack(self, payload: bytes) -> bytes:
        """Return the stored form of a payload. Raises :class:`SerializationError` if the codec fails."""
        try:
            return self.encode(payload)
        except MissingExtraError:
            raise
        except Exception as error:
            raise SerializationError(f"the codec {self.name!r} cannot encode the event: {error}") from error

    def unpack(self, stored: bytes, properties: Mapping[str, str]) -> bytes:
        """Return the payload of a stored form.

        Raises :class:`DeserializationError` for invalid data, :class:`LimitExceededError` for more than
        ``MAX_DECOMPRESSED_BYTES``.
        """
        try:
            payload = self.decode(stored, properties)
        except (DeserializationError, MissingExtraError):
            raise
        except Exception as error:
            raise DeserializationError(f"the codec {self.name!r} cannot decode the event: {error}") from error
        if len(payload) > MAX_DECOMPRESSED_BYTES:
            raise _too_large()
        return payload


def _check_call(name: str, which: str, function: object, *arguments: object) -> None:
    if not callable(function):
        raise SerdeError(f"invalid codec {name!r}: its {which} is {function!r:.80}, which cannot be called")
    try:
        signature = inspect.signature(function)
    except ValueError:  # some functions in C have no signature
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        wanted = "encode(payload)" if which == "encode" else "decode(stored, properties)"
        raise SerdeError(f"invalid codec {name!r}: it is called as {wanted}, but {error}") from error


def _too_large() -> LimitExceededError:
    return LimitExceededError(f"an event decompresses into more than {MAX_DECOMPRESSED_BYTES} bytes")


def _same(payload: bytes) -> bytes:
    return payload


def _unwrapped(stored: bytes, properties: Mapping[str, str]) -> bytes:
    return stored


def _gzip(payload: bytes) -> bytes:
    body = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION, zlib.DEFLATED, -zlib.MAX_WBITS)
    trailer = _GZIP_TRAILER.pack(zlib.crc32(payload), len(payload) & 0xFFFFFFFF)
    return b"".join((_GZIP_HEADER, body.compress(payload), body.flush(), trailer))


def _gunzip(stored: bytes, properties: Mapping[str, str]) -> bytes:
    """Decompress all consecutive members, as GZIPInputStream does. Bytes after the last member are ignored."""
    payload = b""
    for _ in range(_MAX_GZIP_MEMBERS):
        member = zlib.decompressobj(_GZIP_WINDOW)
        payload += member.decompress(stored, MAX_DECOMPRESSED_BYTES + 1 - len(payload))
        if len(payload) > MAX_DECOMPRESSED_BYTES:
            raise _too_large()
        if not member.eof:
            raise DeserializationError("a gzip event ends too early")
        stored = member.unused_data
        if stored[:2] != _GZIP_MAGIC:
            return payload
    raise LimitExceededError(f"a gzip event has more than {_MAX_GZIP_MEMBERS} members")


def _snappy(payload: bytes) -> bytes:
    if _snappy_block is None:
        raise _without_cramjam()
    return bytes(_snappy_block.compress_raw(payload))


def _unsnap(stored: bytes, properties: Mapping[str, str]) -> bytes:
    if _snappy_block is None:
        raise _without_cramjam()
    length = _snappy_block.decompress_raw_len(stored)
    if length > len(stored) * _SNAPPY_EXPANSION:
        raise DeserializationError(f"{len(stored)} bytes of snappy cannot decompress into {length}")
    if length > MAX_DECOMPRESSED_BYTES:
        raise _too_large()
    return bytes(_snappy_block.decompress_raw(stored))


def _without_cramjam() -> MissingExtraError:
    return MissingExtraError("cramjam", "registry", purpose="the codec snappy")


CODEC_NONE: Final = Codec("", _same, _unwrapped)
CODEC_GZIP: Final = Codec("application/x-gzip", _gzip, _gunzip)
#: Despite its name, Java's form is a raw block without a frame.
CODEC_SNAPPY: Final = Codec("application/x-snappy-framed", _snappy, _unsnap)

_SHORT: Final = {"none": CODEC_NONE, "": CODEC_NONE, "gzip": CODEC_GZIP, "snappy": CODEC_SNAPPY}


def codec_named(codec: Codec | str | None) -> Codec:
    """Return a codec by its short name (``none``, ``gzip``, ``snappy``), or the user's: ``package.module:name``."""
    if isinstance(codec, Codec):
        return codec
    if codec is not None and ":" in codec:
        return _imported(codec.strip())
    found = _SHORT.get((codec or "").strip().lower())
    if found is None:
        raise UnsupportedCodecError(
            f"unknown codec {codec!r}; known: none, gzip, snappy, or a custom Codec, as package.module:name"
        )
    return found


def _imported(place: str) -> Codec:
    module, _, name = place.partition(":")
    try:
        found: Any = attrgetter(name)(importlib.import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise UnsupportedCodecError(f"the codec {place!r} cannot be imported: {error}") from error
    if not isinstance(found, Codec):
        raise UnsupportedCodecError(f"{place!r} is {found!r:.80}, not a pravega_serde.registry.Codec")
    return found
