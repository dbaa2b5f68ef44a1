"""Avro object container files: header, blocks, and the bytes of each record, without decoding the records.

The decoders of :class:`~pravega_serde.avro.AvroSerializer` then read the records like events. All codecs of the Avro
specification are supported. Sizes in a file are claims: no memory is reserved for bytes that the file does not have.
"""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_serde.avro.resolve import min_size, resolve
from pravega_serde.avro.rows import WRONG, read_block, read_long
from pravega_serde.avro.schema import Array, Enum, Fixed, Map, Primitive, Record, Type, Union
from pravega_serde.columnar import MalformedError
from pravega_serde.errors import DeserializationError

_MAGIC: Final = b"Obj\x01"
_SYNC: Final = 16
_PIECE: Final = 1 << 20
#: Maximum bytes of a block, compressed or not; Java's writers have the same limit.
_MAX_BLOCK: Final = 1 << 30
_MAX_METADATA: Final = 64 << 20
#: Maximum records without bytes in a block. Otherwise a few bytes could claim any number of them.
_MAX_EMPTY: Final = 1 << 20

#: Function of data and the position of a value in it. It returns the position after the value.
Skip = Callable[[bytes, int], int]


def _invalid(reason: str) -> DeserializationError:
    return DeserializationError(f"invalid Avro file: {reason}")


@dataclass(frozen=True, slots=True)
class Block:
    """Block of a file, still compressed."""

    count: int
    """Number of records."""
    size: int
    """Bytes in the file."""
    stored: bytes
    codec: str

    def data(self) -> bytes:
        """Return the decompressed bytes. Raises DeserializationError."""
        try:
            data = _CODECS[self.codec](self.stored)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
            raise _invalid(f"a damaged block ({self.codec}): {error}") from error
        if len(data) > _MAX_BLOCK:
            raise _invalid(f"a block of more than {_MAX_BLOCK} bytes")
        return data


class Container:
    """Reader of one open file, from its header on."""

    def __init__(self, file: Any) -> None:
        """Read the header. Raises DeserializationError for an invalid one."""
        self._bytes = _Bytes(file)
        if self._bytes.take(len(_MAGIC), "the header") != _MAGIC:
            raise _invalid("it does not begin with 'Obj' and 1")
        self.metadata = self._metadata()
        """Values by name, including the schema and the codec."""
        self._sync = self._bytes.take(_SYNC, "the header")
        self.schema = self._schema()
        """Parsed JSON of the schema, or the name of a primitive type."""
        self._codec = self.metadata.get("avro.codec", b"null").decode("latin-1")
        if self._codec not in _CODECS:
            raise _invalid(f"unknown codec {self._codec[:40]!r}; known codecs: {', '.join(_CODECS)}")

    def _metadata(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        left = _MAX_METADATA
        while count := self._bytes.long("the header"):
            if count < 0:
                self._bytes.long("the header")
            for _ in range(abs(count)):
                entry = []
                for _ in range(2):
                    size = self._bytes.long("the header")
                    left -= size + 1
                    if size < 0 or left < 0:
                        raise _invalid(f"a value of {size} bytes in the header")
                    entry.append(self._bytes.take(size, "the header"))
                found[entry[0].decode(errors="replace")] = entry[1]
        return found

    def _schema(self) -> Any:
        try:
            text = self.metadata["avro.schema"].decode("utf-8-sig").strip()
            # Old writers have the bare name of a primitive type.
            return text if text.isidentifier() else json.loads(text)
        except KeyError:
            raise _invalid("its header has no schema") from None
        except (ValueError, RecursionError) as error:
            raise _invalid(f"the schema in its header is not JSON: {error}") from error

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks. Raises DeserializationError for a damaged or truncated file."""
        while not self._bytes.at_end():
            count, size = self._bytes.long("a block"), self._bytes.long("a block")
            if count < 0 or not 0 <= size <= _MAX_BLOCK:
                raise _invalid(f"a block of {count} records and {size} bytes")
            stored = self._bytes.take(size, "a block")
            if self._bytes.take(_SYNC, "a block") != self._sync:
                raise _invalid("a damaged block: its end is not marked")
            yield Block(count, size, stored, self._codec)


class _Bytes:
    """Bytes of a file, read in pieces."""

    def __init__(self, file: Any) -> None:
        self._file, self._held, self._at = file, b"", 0

    def take(self, size: int, what: str) -> bytes:
        """Return the next bytes, all of them."""
        end = self._at + size
        if end > len(self._held):
            self._fill(size, what)
            end = size
        data = self._held[self._at : end]
        self._at = end
        return data

    def _fill(self, size: int, what: str) -> None:
        parts = [self._held[self._at :]]
        missing = size - len(parts[0])
        while missing > 0:
            part = self._file.read(_PIECE)
            if not part:
                raise _invalid(f"{what} is truncated")
            parts.append(part)
            missing -= len(part)
        self._held, self._at = b"".join(parts), 0

    def at_end(self) -> bool:
        if self._at == len(self._held):
            self._held, self._at = self._file.read(_PIECE), 0
        return not self._held

    def long(self, what: str) -> int:
        number = b""
        while not number or (number[-1] > 0x7F and len(number) < 10):
            number += self.take(1, what)
        try:
            return read_long(number + b"\0", 0)[0]
        except MalformedError as error:
            raise _invalid(error.reason) from error


# ---- codecs ----


def _inflate(stored: bytes) -> bytes:
    unpacked = zlib.decompressobj(-zlib.MAX_WBITS)
    data = unpacked.decompress(stored, _MAX_BLOCK + 1)
    if not unpacked.eof and len(data) <= _MAX_BLOCK:
        raise ValueError("the data ends too early")
    return data


def _bzip2(stored: bytes) -> bytes:
    return bz2.BZ2Decompressor().decompress(stored, _MAX_BLOCK + 1)


def _xz(stored: bytes) -> bytes:
    return lzma.LZMADecompressor().decompress(stored, _MAX_BLOCK + 1)


def _zstandard(stored: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(stored), "zstd") as unpacked:
        return bytes(unpacked.read(_MAX_BLOCK + 1))


def _snappy(stored: bytes) -> bytes:
    """Decompress a raw block, which is followed by the checksum of its data."""
    size = shift = at = 0
    while at < min(5, len(stored)):
        size |= (stored[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if stored[at - 1] < 0x80:
            break
    # A block of n bytes holds at most 64 bytes for three of them.
    if len(stored) < 5 or size > min(_MAX_BLOCK, 32 * len(stored)):
        raise ValueError(f"{len(stored)} bytes cannot hold {size}")
    data = bytes(pa.Codec("snappy").decompress(stored[:-4], size)) if size else b""
    if zlib.crc32(data) != int.from_bytes(stored[-4:], "big"):
        raise ValueError("the checksum differs")
    return data


_CODECS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "null": lambda stored: stored,
    "deflate": _inflate,
    "bzip2": _bzip2,
    "snappy": _snappy,
    "xz": _xz,
    "zstandard": _zstandard,
}


# ---- records of a block ----


class RecordBounds:
    """Finder of the records in a block, compiled from their schema."""

    def __init__(self, schema: Type) -> None:
        self._skip = _Compiler().compile(schema)

    def column(self, block: Block, first: int = 0) -> pa.BinaryArray:
        """Return the records of a block from number ``first``. Raises DeserializationError for a damaged block."""
        data, skip = block.data(), self._skip
        if block.count > len(data) + _MAX_EMPTY:
            raise _invalid(f"a block of {block.count} records in {len(data)} bytes")
        ends = [0]
        at = 0
        try:
            for _ in range(block.count):
                at = skip(data, at)
                ends.append(at)
            if at > len(data):
                raise IndexError
        except (*WRONG, RecursionError) as error:
            reason = error.reason if isinstance(error, MalformedError) else "it ends too early, or nests too deeply"
            raise _invalid(f"a damaged block: record {len(ends) - 1} of {block.count}: {reason}") from error
        if at != len(data):
            raise _invalid(f"a damaged block: {len(data) - at} bytes follow its records")
        offsets = pa.py_buffer(np.array(ends, np.int32))
        return pa.Array.from_buffers(pa.binary(), block.count, [None, offsets, pa.py_buffer(data)]).slice(first)


class _Compiler:
    """Compiler of types to functions that skip a value. A record inside itself refers to its own function."""

    def __init__(self) -> None:
        self._records: dict[int, list[Skip]] = {}

    def compile(self, schema: Type) -> Skip:
        return _BUILDERS[type(schema)](self, schema)

    def _array(self, schema: Array) -> Skip:
        return _items(self.compile(schema.items), empty=min_size(resolve(schema.items)) == 0)

    def _map(self, schema: Map) -> Skip:
        value = self.compile(schema.values)
        return _items(lambda data, at: value(data, _skip_bytes(data, at)), empty=False)

    def _union(self, schema: Union) -> Skip:
        return _union([self.compile(branch) for branch in schema.branches])

    def _record(self, schema: Record) -> Skip:
        known = self._records.get(id(schema))
        if known is None:
            known = self._records[id(schema)] = []
            known += [self.compile(entry.type) for entry in schema.fields]
        return _fields(known)


def _fields(skips: list[Skip]) -> Skip:
    def skip(data: bytes, at: int) -> int:
        for each in skips:
            at = each(data, at)
        return at

    return skip


def _fixed(size: int) -> Skip:
    return lambda _, at: at + size  # the caller checks the end


def _skip_long(data: bytes, at: int) -> int:
    while data[at] > 0x7F:
        at += 1
    return at + 1


def _skip_bytes(data: bytes, at: int) -> int:
    size = data[at]
    if size > 0x7F:
        size, at = read_long(data, at)
        at -= 1
    elif size & 1:
        size = -1
    else:
        size >>= 1
    if size < 0:
        raise MalformedError("a negative length")
    return at + 1 + size


def _union(branches: list[Skip]) -> Skip:
    count = len(branches)

    def skip(data: bytes, at: int) -> int:
        index, at = (data[at] >> 1, at + 1) if data[at] < 0x80 and not data[at] & 1 else read_long(data, at)
        if not 0 <= index < count:
            raise MalformedError(f"the union has no branch {index}")
        return branches[index](data, at)

    return skip


def _items(item: Skip, *, empty: bool) -> Skip:
    def skip(data: bytes, at: int) -> int:
        while True:
            count, at = read_block(data, at)
            if not count:
                return at
            if count > len(data) and not empty:
                raise IndexError
            for _ in range(0 if empty else count):
                at = item(data, at)

    return skip


_PRIMITIVES: Final[Mapping[str, Skip]] = {
    "null": _fixed(0),
    "boolean": _fixed(1),
    "int": _skip_long,
    "long": _skip_long,
    "float": _fixed(4),
    "double": _fixed(8),
    "bytes": _skip_bytes,
    "string": _skip_bytes,
}

_BUILDERS: Final[Mapping[type, Callable[[_Compiler, Any], Skip]]] = {
    Array: _Compiler._array,
    Enum: lambda _, __: _skip_long,
    Fixed: lambda _, schema: _fixed(schema.size),
    Map: _Compiler._map,
    Primitive: lambda _, schema: _PRIMITIVES[schema.name],
    Record: _Compiler._record,
    Union: _Compiler._union,
}
