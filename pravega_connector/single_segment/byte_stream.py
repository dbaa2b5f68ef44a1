"""Byte streams without events, as files, compatible with Java's ``ByteStreamClient``.

A byte stream has one segment, which holds the bytes as they were written. Offsets are those of Java's
``ByteStreamReader.getOffset``. Nothing in a stream marks it as a byte stream.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Generator
from typing import TYPE_CHECKING, Final

from pravega_connector.core import arguments
from pravega_connector.core.deadline import Deadline, Polls
from pravega_connector.errors import ConfigError, OutcomeUnknownError, SegmentTruncatedError, StreamSealedError
from pravega_connector.reader.slices import SegmentSlice, data_loss, read_chunks
from pravega_connector.single_segment.conditional_append import SegmentAppender, _Append
from pravega_connector.stores.segment_stores import SegmentCalls, SegmentStores
from pravega_connector.wire import StreamName
from pravega_serde import after_fork

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: Bytes of one append, and of a reader's buffer. Larger appends are not faster.
BUFFER_SIZE: Final = 1 << 20
# Most seconds between two polls for more bytes.
_LONGEST_PAUSE: Final = 1.0
# Methods of a buffered file that use the buffer.
_USES: Final = (
    *("peek", "read", "read1", "readinto", "readinto1", "readline", "readlines"),
    *("flush", "seek", "tell", "truncate", "write", "writelines"),
)


def _not_of_bytes(stream: StreamName, segments: int) -> ConfigError:
    return ConfigError(f"stream {stream} has {segments} segments; a byte stream must have one segment")


class _Buffered:
    """Buffer of a byte stream. In a forked child, its methods raise instead of returning or accepting bytes."""

    def _after_fork(self) -> None:
        # The buffer has an internal lock, which another thread may have held.
        refused = after_fork.inherited("file of a byte stream")
        vars(self).update(dict.fromkeys(_USES, refused), close=refused.close)


class ByteReader(_Buffered, io.BufferedReader):
    """Bytes of a stream as a file to read."""

    raw: RawByteReader

    def __init__(self, raw: RawByteReader) -> None:
        super().__init__(raw, BUFFER_SIZE)
        after_fork.register(self)

    def head(self) -> int:
        """Return the offset of the first byte that the stream still has (Java's ``fetchHeadOffset``)."""
        return self.raw.head()

    def tail(self) -> int:
        """Return the offset after the last byte at this moment (Java's ``fetchTailOffset``)."""
        return self.raw.tail()

    def available(self) -> int:
        """Return the number of bytes that can be read now without waiting for more (Java's ``available``)."""
        return max(0, self.raw.tail() - self.tell())


class ByteWriter(_Buffered, io.BufferedWriter):
    """Stream of bytes as a file to append to."""

    raw: RawByteWriter

    def __init__(self, raw: RawByteWriter) -> None:
        super().__init__(raw, BUFFER_SIZE)
        after_fork.register(self)

    def head(self) -> int:
        """Return the offset of the first byte that the stream still has (Java's ``fetchHeadOffset``)."""
        return self.raw.head()

    def tail(self) -> int:
        """Return the offset after the last durable byte of all writers (Java's ``fetchTailOffset``)."""
        return self.raw.tell()

    def drop_before(self, offset: int) -> None:
        """Truncate the stream: readers no longer find bytes before ``offset`` (Java's ``truncateDataBefore``)."""
        self.raw.drop_before(offset)


class RawByteReader(io.RawIOBase):
    """Reader of the bytes of a stream with one segment. Positions are offsets in the stream. Not thread safe.

    At the end of the written bytes, it waits up to ``wait`` seconds for more. Then it reports the end of the file,
    until more bytes are written. A sealed stream has no more.
    """

    def __init__(self, stores: SegmentStores, stream: StreamName, start: int | None, wait: float) -> None:
        """Open the stream at the offset ``start``, or at its head if None.

        Raises StreamNotFoundError, ConfigError.
        """
        positions = stores.controller.head_cut(stream).positions
        if len(positions) != 1:
            raise _not_of_bytes(stream, len(positions))
        (self._id,) = positions
        self._stores, self._stream, self._wait = stores, stream, wait
        self._calls = SegmentCalls(stores, stream, self._id)
        # From the segment: Java's truncateDataBefore does not notify the controller.
        self._position = self._calls.info().start_offset if start is None else start
        self._chunks: Generator[memoryview, None, None] | None = None
        self._chunk = memoryview(b"")
        self._in_call = False  # True between two calls if the last one was interrupted
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._chunk = self._calls = after_fork.inherited(f"byte reader of stream {self._stream}")

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return self._position

    def head(self) -> int:
        """Return the offset of the first byte that the stream still has."""
        return self._calls.info().start_offset

    def tail(self) -> int:
        """Return the offset after the last byte."""
        return self._calls.info().write_offset

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to an offset, which may be after the end, and return it.

        Raises ValueError for an offset before the start of the stream.
        """
        if whence not in (io.SEEK_SET, io.SEEK_CUR, io.SEEK_END):
            raise ValueError(f"invalid whence: 0, 1 or 2 is expected, not {whence}")
        base = 0 if whence == io.SEEK_SET else self._position
        target = (self._calls.info().write_offset if whence == io.SEEK_END else base) + offset
        if target < 0:
            raise ValueError(f"invalid offset: {target} is before the start of the stream")
        self._drop()
        before = self._position
        try:
            self._position = target
            return target
        except BaseException:
            self._position = before
            raise

    def readinto(self, buffer: Buffer, /) -> int:
        """Read consecutive bytes and return their number. It is 0 only at the end.

        Raises DataLossError if the bytes were truncated away, ConnectorErrors if the servers stay unavailable.
        """
        wanted = memoryview(buffer).cast("B")
        if not len(wanted):
            return 0
        if self._in_call:
            self._drop()
        self._in_call = True
        try:
            count = self._copy(wanted)
        except Exception:
            self._drop()
            self._in_call = False
            raise
        before = self._position
        try:
            self._position, self._in_call = before + count, False
            return count
        except BaseException:
            self._position, self._in_call = before, True
            raise

    def _copy(self, wanted: memoryview) -> int:
        """Copy bytes from the position on and return their number; 0 at the end of the bytes."""
        while not len(self._chunk):
            if not self._next_chunk():
                return 0
        count = min(len(wanted), len(self._chunk))
        wanted[:count] = self._chunk[:count]
        self._chunk = self._chunk[count:]
        return count

    def _next_chunk(self) -> bool:
        """Fetch the next chunk. Return False at the end of the bytes."""
        if self._chunks is None:
            end = self._await_end()
            if end <= self._position:
                return False
            self._chunks = read_chunks(self._stores, SegmentSlice(self._stream, self._id, self._position, end))
        chunk = next(self._chunks, None)
        if chunk is None:
            self._drop()
        else:
            self._chunk = chunk
        return True

    def _await_end(self) -> int:
        """Wait for bytes after the position, or for the time limit. Return the end offset."""
        polls = Polls(Deadline(self._wait), longest=_LONGEST_PAUSE, to_the_end=True)
        while True:
            info = self._calls.info()
            if self._position < info.start_offset:
                error = SegmentTruncatedError("truncated", start_offset=info.start_offset)
                raise data_loss(self._stream, self._id, self._position, error)
            if info.write_offset > self._position or info.sealed or not polls.again():
                return info.write_offset

    def _drop(self) -> None:
        self._chunk = memoryview(b"")
        if self._chunks is not None:
            self._chunks.close()
            self._chunks = None

    def close(self) -> None:
        """Return the connection to the pool."""
        if not self.closed:
            self._drop()
        super().close()


class _RawAppend(_Append):
    """Append of bytes without an event header."""

    __slots__ = ()

    def data(self) -> bytes:
        return self.event


class _RawAppender(SegmentAppender):
    """Appender of bytes without event headers."""

    def begin(self, data: bytes) -> _RawAppend:
        """Return an append that :meth:`finish` carries out."""
        self._number += 1
        return _RawAppend(data, None, self._number)

    def finish(self, append: _RawAppend) -> None:
        """Return when the bytes are durable. Repeated calls append them once. Raises OutcomeUnknownError."""
        with self._lock:
            if not append.done:
                self._resolve(append)


class RawByteWriter(io.RawIOBase):
    """Appender of bytes to a stream with one segment. Not thread safe.

    Bytes are durable when ``write`` returns. Pieces of several writers, each up to a mebibyte, are stored one after the
    other and do not mix.
    """

    def __init__(self, stores: SegmentStores, stream: StreamName) -> None:
        """Open the stream.

        Raises StreamNotFoundError, StreamSealedError, ConfigError for a stream of several segments.
        """
        segments = stores.controller.current_segments(stream)
        if not segments:
            raise StreamSealedError.of(stream)
        if len(segments) != 1:
            raise _not_of_bytes(stream, len(segments))
        self._stream = stream
        self._calls = SegmentCalls(stores, stream, segments[0].id)
        self._appender = _RawAppender(stores, stream, segments[0].id)
        self._doubtful: _RawAppend | None = None  # the last append, until its ``write`` has returned

    def _dealloc_warn(self, source: object) -> None:
        """Warn about a file that is garbage collected unclosed.

        The file calls this, as with ``FileIO``, and then flushes its bytes.
        """
        text = f"unclosed file that appends to stream {self._stream}; use it in a 'with' block"
        warnings.warn(text, ResourceWarning, stacklevel=2, source=source)

    def writable(self) -> bool:
        """Return True."""
        return True

    def head(self) -> int:
        """Return the offset of the first byte that the stream still has."""
        return self._calls.info().start_offset

    def tell(self) -> int:
        """Return the current end offset of the stream, including the bytes of all writers."""
        return self._calls.info().write_offset

    def write(self, data: Buffer, /) -> int:
        """Append up to a mebibyte and return the number of bytes, which are then durable.

        Raises OutcomeUnknownError if the outcome could not be determined in time. If you then write the same bytes
        again, the same append continues, so the stream has them once. The ``flush`` of a buffered writer does this.
        Raises StreamSealedError, ConnectorErrors.
        """
        view = memoryview(data).cast("B")
        if not len(view):
            return 0
        append = self._doubtful
        if append is None or view[: len(append.event)] != append.event:
            append = self._doubtful = self._appender.begin(bytes(view[:BUFFER_SIZE]))
        try:
            self._appender.finish(append)
        except OutcomeUnknownError:
            raise
        except Exception:
            self._doubtful = None
            raise
        try:
            self._doubtful = None
            return len(append.event)
        except BaseException:
            self._doubtful = append
            raise

    def drop_before(self, offset: int) -> None:
        """Truncate the stream: readers no longer find bytes before ``offset``."""
        arguments.count("offset", offset, optional=False)
        if offset > (end := self.tell()):
            raise ConfigError(f"cannot truncate at offset {offset}: the stream ends at offset {end}")
        self._calls.truncate(offset)

    def close(self) -> None:
        """Close the connection."""
        if not self.closed:
            self._appender.close()
        super().close()
