"""Streams of bytes without events in them, as files: what Java's ``ByteStreamClient`` writes and reads.

Such a stream has one segment. Its bytes stand there as they were written, and offsets are those of Java's
``ByteStreamReader.getOffset``; nothing in a stream says which kind it is.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Generator
from typing import TYPE_CHECKING, Final

from pravega_connector.core.deadline import Deadline, Looks
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
# Seconds between two looks for more bytes, at most.
_LONGEST_PAUSE: Final = 1.0
# Methods of a buffered file that use the buffer.
_USES: Final = (
    *("peek", "read", "read1", "readinto", "readinto1", "readline", "readlines"),
    *("flush", "seek", "tell", "truncate", "write", "writelines"),
)


def _not_of_bytes(stream: StreamName, segments: int) -> ConfigError:
    return ConfigError(f"stream {stream} has {segments} segments; a stream of bytes has one")


class _Buffered:
    """Buffer of a byte stream. In a forked child its methods raise, instead of handing out or taking bytes there."""

    def _after_fork(self) -> None:
        # The buffer has a lock inside of it, which another thread may have held.
        refused = after_fork.inherited("file of a byte stream")
        vars(self).update(dict.fromkeys(_USES, refused), close=refused.close)


class ByteReader(_Buffered, io.BufferedReader):
    """Bytes of a stream as a file to read."""

    def __init__(self, raw: RawByteReader) -> None:
        super().__init__(raw, BUFFER_SIZE)
        after_fork.register(self)


class ByteWriter(_Buffered, io.BufferedWriter):
    """Stream of bytes as a file to append to."""

    def __init__(self, raw: RawByteWriter) -> None:
        super().__init__(raw, BUFFER_SIZE)
        after_fork.register(self)


class RawByteReader(io.RawIOBase):
    """Reads the bytes of a stream of one segment. Positions are offsets in the stream. Not thread safe.

    At the end of what is written it waits up to ``wait`` seconds for more; then that is the end of the file, until
    more is written. A sealed stream has no more.
    """

    def __init__(self, stores: SegmentStores, stream: StreamName, start: int | None, wait: float) -> None:
        """``start`` is the offset to begin at, the stream's head if None. Raises StreamNotFoundError, ConfigError."""
        positions = stores.controller.head_cut(stream).positions
        if len(positions) != 1:
            raise _not_of_bytes(stream, len(positions))
        (self._id,) = positions
        self._stores, self._stream, self._wait = stores, stream, wait
        self._calls = SegmentCalls(stores, stream, self._id)
        # Asked of the segment: Java's truncateDataBefore does not tell the controller.
        self._position = self._calls.info().start_offset if start is None else start
        self._chunks: Generator[memoryview, None, None] | None = None
        self._chunk = memoryview(b"")
        self._in_call = False  # True between two calls: the last one was interrupted
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._chunk = self._calls = after_fork.inherited(f"byte reader of stream {self._stream}")

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Offset of the next byte."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to an offset, which may lie beyond the end. Raises ValueError for one before the start of the stream."""
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
        """Read bytes that follow each other, at least one unless the end is reached; how many.

        Raises DataLossError where they were truncated away, ConnectorErrors when the servers stay away.
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
        """Number of bytes that were copied from the position on; 0 at the end of the bytes."""
        while not len(self._chunk):
            if not self._next_chunk():
                return 0
        count = min(len(wanted), len(self._chunk))
        wanted[:count] = self._chunk[:count]
        self._chunk = self._chunk[count:]
        return count

    def _next_chunk(self) -> bool:
        """Fetch the next chunk. Returns False at the end of the bytes."""
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
        """Wait for bytes beyond the position, or for the time limit. Returns the end offset."""
        looks = Looks(Deadline(self._wait), longest=_LONGEST_PAUSE, to_the_end=True)
        while True:
            info = self._calls.info()
            if self._position < info.start_offset:
                error = SegmentTruncatedError("truncated", start_offset=info.start_offset)
                raise data_loss(self._stream, self._id, self._position, error)
            if info.write_offset > self._position or info.sealed or not looks.again():
                return info.write_offset

    def _drop(self) -> None:
        self._chunk = memoryview(b"")
        if self._chunks is not None:
            self._chunks.close()
            self._chunks = None

    def close(self) -> None:
        """Give the connection back."""
        if not self.closed:
            self._drop()
        super().close()


class _RawAppend(_Append):
    """An append of bytes without an event's header."""

    __slots__ = ()

    def data(self) -> bytes:
        return self.event


class _RawAppender(SegmentAppender):
    """Appends bytes as they are."""

    def begin(self, data: bytes) -> _RawAppend:
        """An append that :meth:`finish` carries out."""
        self._number += 1
        return _RawAppend(data, None, self._number)

    def finish(self, append: _RawAppend) -> None:
        """Return when the bytes are durable, once however often it is called. Raises OutcomeUnknownError."""
        with self._lock:
            if not append.done:
                self._resolve(append)


class RawByteWriter(io.RawIOBase):
    """Appends bytes to a stream of one segment. Not thread safe.

    What ``write`` returned for is durable. Several writers' pieces of up to a mebibyte each stand one after the other.
    """

    def __init__(self, stores: SegmentStores, stream: StreamName) -> None:
        """Raises StreamNotFoundError, StreamSealedError, ConfigError for a stream of several segments."""
        segments = stores.controller.current_segments(stream)
        if not segments:
            raise StreamSealedError.of(stream)
        if len(segments) != 1:
            raise _not_of_bytes(stream, len(segments))
        self._stream = stream
        self._calls = SegmentCalls(stores, stream, segments[0].id)
        self._appender = _RawAppender(stores, stream, segments[0].id)
        self._doubtful: _RawAppend | None = None  # the last one, unless its caller was told that it is durable

    def _dealloc_warn(self, source: object) -> None:
        """Warn of a file that is collected unclosed: it calls this, as with ``FileIO``, and then flushes its bytes."""
        text = f"unclosed file that appends to stream {self._stream}; use it in a 'with' block"
        warnings.warn(text, ResourceWarning, stacklevel=2, source=source)

    def writable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Current end offset of the stream, with the bytes of all writers."""
        return self._calls.info().write_offset

    def write(self, data: Buffer, /) -> int:
        """Append up to a mebibyte; how many bytes, durable then.

        Raises OutcomeUnknownError when that could not be learned in time: the same bytes again (as a buffered writer's
        ``flush`` gives them) go on with the same append, so they are there once. StreamSealedError, ConnectorErrors.
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
        """Truncate the stream: readers find nothing before that offset any more."""
        if offset > (end := self.tell()):
            raise ConfigError(f"cannot truncate at offset {offset}: the stream ends at offset {end}")
        self._calls.truncate(offset)

    def close(self) -> None:
        """Close the connection."""
        if not self.closed:
            self._appender.close()
        super().close()
