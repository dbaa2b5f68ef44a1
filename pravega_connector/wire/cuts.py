"""Stream cuts: an offset in every segment of a stream, as text and bytes that the Java client reads.

The text is base64 of gzip of ``0:scope/stream:numbers:epochs:offsets`` (StreamCutImpl.asText). The order of the
segments and the bytes of the gzip differ between writers, so compare cuts and never their texts. The bytes are a
VersionedSerializer frame (StreamCutImpl.StreamCutSerializer).
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import InvalidNameError, MalformedStreamCutError
from pravega_connector.notebook import table
from pravega_connector.wire.names import StreamName, segment_epoch, segment_id, segment_number
from pravega_connector.wire.versioned import (
    CompactReader,
    put_compact_int,
    put_compact_long,
    put_compact_signed,
    put_versioned,
)

MAX_CUT_BYTES: Final = 8 * 1024 * 1024  # about 200,000 segments; limit of an unpacked text
UNBOUNDED_TEXT: Final = "UNBOUNDED"  # StreamCut.UNBOUNDED.asText(): no position, so not a cut
FUTURE_OFFSET: Final = -1  # the Java client's offset for a segment that the cut has not reached

_TEXT_VERSION: Final = "0"
_MAX_ID: Final = 2**63 - 1
_MAX_OFFSET: Final = 2**63 - 1
_NUMBER: Final = re.compile(r"\s*([+-]?[0-9]{1,19})\s*", re.ASCII)
_SHOWN_CHARACTERS: Final = 40  # of a text that is not a cut, in its error
# StreamCut.__str__, with an optional space after each comma.
_SHOWN: Final = re.compile(r"([^:/]+/[^:/]+):((?:[0-9]{1,10}\.#epoch\.[0-9]{1,10}=-?[0-9]{1,19}(?:, ?|$))*)")
_GZIP_WBITS: Final = 16 + zlib.MAX_WBITS
_BYTES_VERSION: Final = 1  # the first one with negative offsets


def malformed_cut(reason: str) -> MalformedStreamCutError:
    """Return the error for an invalid stream cut."""
    return MalformedStreamCutError(f"invalid stream cut: {reason}")


@dataclass(frozen=True, slots=True)
class StreamCut(HintedNames):
    """Position in a stream: one offset for each segment that was live at that point.

    Equal and hashable by content. Raises MalformedStreamCutError for ids or offsets that no segment can have.
    """

    stream: StreamName
    """Stream of the positions."""
    positions: Mapping[int, int]
    """Segment id to byte offset in that segment, in the order of the ids; -1 for a segment not reached yet."""

    def __post_init__(self) -> None:
        for segment, offset in self.positions.items():
            if not 0 <= segment <= _MAX_ID or segment_number(segment) >= 2**31:
                raise malformed_cut(f"segment id {segment} is out of range (stream {self.stream})")
            if not FUTURE_OFFSET <= offset <= _MAX_OFFSET:
                raise malformed_cut(f"offset {offset} of segment {segment} is out of range (stream {self.stream})")
        object.__setattr__(self, "positions", MappingProxyType(dict(sorted(self.positions.items()))))

    def __hash__(self) -> int:
        return hash((self.stream, tuple(self.positions.items())))

    def __reduce__(self) -> tuple[Callable[..., StreamCut], tuple[StreamName, dict[int, int]]]:
        return StreamCut, (self.stream, dict(self.positions))  # a mapping proxy cannot be pickled

    def __str__(self) -> str:
        inside = ", ".join(f"{segment_number(s)}.#epoch.{segment_epoch(s)}={o}" for s, o in self.positions.items())
        return f"{self.stream}:{inside}"

    def _repr_html_(self) -> str:
        rows = [(f"{segment_number(s)}.#epoch.{segment_epoch(s)}", o) for s, o in self.positions.items()]
        return table(f"cut of {self.stream}", ["segment", "offset"], rows, len(rows))

    def to_text(self) -> str:
        """Return the text that Java's ``StreamCut.from`` reads.

        The text of a cut without segments is read only by :meth:`from_text`.
        """
        columns = (
            map(segment_number, self.positions),
            map(segment_epoch, self.positions),
            self.positions.values(),
        )
        lists = ":".join(",".join(map(str, column)) for column in columns)
        packer = zlib.compressobj(wbits=_GZIP_WBITS)
        packed = packer.compress(f"{_TEXT_VERSION}:{self.stream}:{lists}".encode()) + packer.flush()
        return base64.b64encode(packed).decode()

    @classmethod
    def from_text(cls, text: str, stream: StreamName | None = None) -> StreamCut:
        """Return the cut of a text from :meth:`to_text`, Java or ``str``. With ``stream``, require that stream.

        Raises MalformedStreamCutError, also for ``UNBOUNDED``, for which callers pass None.
        """
        if not isinstance(text, str):
            raise malformed_cut(f"the text of a cut must be a str, not a {type(text).__name__}")
        shown = _SHOWN.fullmatch(text.strip()) if len(text) <= MAX_CUT_BYTES else None
        cut = _parse_text(_unpack(text)) if shown is None else _parse_shown(shown[1], shown[2])
        if stream is not None and cut.stream != stream:
            raise MalformedStreamCutError(f"the stream cut is of {cut.stream}, not of {stream}")
        return cut

    def to_bytes(self) -> bytes:
        """Return the bytes that Java's ``StreamCut.fromBytes`` reads.

        Raises MalformedStreamCutError for an epoch of at least 2**30 or an offset of at least 2**61, which this format
        cannot represent.
        """
        name = str(self.stream).encode()
        body = bytearray(len(name).to_bytes(2, "big") + name)
        try:
            body += put_compact_int(len(self.positions))
            for segment, offset in self.positions.items():
                body += put_compact_long(segment) + put_compact_signed(offset)
        except ValueError as error:
            raise MalformedStreamCutError(f"the stream cut of {self.stream} cannot be written: {error}") from None
        return put_versioned([bytes(body)], _BYTES_VERSION)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> StreamCut:
        """Return the cut of these bytes.

        Raises MalformedStreamCutError, also for ``UNBOUNDED``, which has no bytes.
        """
        reader = CompactReader(bytes(data))
        if not reader.remaining:
            raise malformed_cut("empty bytes are Java's UNBOUNDED: pass None")
        cut = cls.read(reader)
        if reader.remaining:
            raise malformed_cut(f"{reader.remaining} bytes follow its end")
        return cut

    @classmethod
    def read(cls, reader: CompactReader) -> StreamCut:
        """Read a cut at the reader's position. Raises MalformedStreamCutError."""
        try:
            return _parse_bytes(reader)
        except InvalidNameError as error:
            raise malformed_cut(error.message) from None
        except ValueError as error:
            raise malformed_cut(str(error)) from None


def _unpack(text: str) -> str:
    """Return the unpacked text of a cut, at most MAX_CUT_BYTES."""
    stripped = text.strip()
    if stripped == UNBOUNDED_TEXT:
        raise malformed_cut("UNBOUNDED has no positions: pass None")
    if not stripped:
        raise malformed_cut("the text is empty")
    if len(stripped) > MAX_CUT_BYTES:
        raise malformed_cut(f"the text has {len(stripped)} characters; {MAX_CUT_BYTES} are allowed")
    unpacker = zlib.decompressobj(wbits=_GZIP_WBITS)
    try:
        packed = base64.b64decode(stripped + "=" * (-len(stripped) % 4), validate=True)
        unpacked = unpacker.decompress(packed, MAX_CUT_BYTES + 1)
    except (ValueError, zlib.error):
        shown = stripped if len(stripped) <= _SHOWN_CHARACTERS else stripped[:_SHOWN_CHARACTERS] + "…"
        raise malformed_cut(f"{shown!r} is not the text of a cut, or is damaged") from None
    if len(unpacked) > MAX_CUT_BYTES:
        raise malformed_cut(f"it unpacks to more than {MAX_CUT_BYTES} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise malformed_cut("the text was cut short" if not unpacker.eof else "data follows the packed text")
    return unpacked.decode(errors="replace")


def _parse_text(unpacked: str) -> StreamCut:
    fields = unpacked.split(":")
    if len(fields) != 5:
        raise malformed_cut(f"it has {len(fields)} fields instead of version:stream:numbers:epochs:offsets")
    if fields[0] != _TEXT_VERSION:
        raise malformed_cut(f"unknown version {fields[0][:20]!r}, expected {_TEXT_VERSION}")
    numbers, epochs, offsets = (_parse_list(field) for field in fields[2:])
    if not len(numbers) == len(epochs) == len(offsets):
        raise malformed_cut(f"it has {len(numbers)} segment numbers, {len(epochs)} epochs and {len(offsets)} offsets")
    try:
        ids = [segment_id(number, epoch) for number, epoch in zip(numbers, epochs, strict=True)]
        return _build(fields[1], zip(ids, offsets, strict=True))
    except InvalidNameError as error:
        raise malformed_cut(error.message) from None


def _parse_shown(name: str, positions: str) -> StreamCut:
    try:
        pairs = (item.strip().split("=") for item in positions.split(",") if item.strip())
        ids = [(segment.split(".#epoch."), offset) for segment, offset in pairs]
        return _build(name, ((segment_id(int(n), int(e)), int(offset)) for (n, e), offset in ids))
    except InvalidNameError as error:
        raise malformed_cut(error.message) from None


def _parse_list(field: str) -> list[int]:
    """Return the numbers of one list, as ToStringUtils.stringToList reads them. An empty text is an empty list."""
    if not field.strip():
        return []
    return [_parse_number(item) for item in field.split(",")]


def _parse_number(item: str) -> int:
    match = _NUMBER.fullmatch(item)
    if match is None:
        raise malformed_cut(f"invalid number {item[:40]!r}")
    return int(match[1])


def _parse_bytes(reader: CompactReader) -> StreamCut:
    version, (body, *_) = reader.versioned(newest=_BYTES_VERSION)
    name = body.utf()
    read_offset = body.compact_signed if version else body.compact_long
    return _build(name, ((body.compact_long(), read_offset()) for _ in range(body.compact_int())))


def _build(name: str, pairs: Iterable[tuple[int, int]]) -> StreamCut:
    positions: dict[int, int] = {}
    for segment, offset in pairs:
        if segment in positions:
            raise malformed_cut(f"it has segment {segment} twice")
        positions[segment] = offset
    return StreamCut(StreamName.parse(name), positions)
