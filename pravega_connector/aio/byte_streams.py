"""Byte streams for asyncio, around the plain client's files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pravega_connector.aio.event_loop import run
from pravega_connector.aio.objects import Opened, as_coroutine
from pravega_connector.single_segment.byte_stream import ByteReader, ByteWriter

if TYPE_CHECKING:
    from typing_extensions import Buffer


class AsyncByteReader(Opened[ByteReader]):
    """Bytes of a stream; see PravegaClient.byte_reader. Use it from one task at a time.

    A cancelled ``read`` may have moved the position: ``seek`` to where you want to continue.
    """

    async def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, or all up to the end. At the end, it waits as the reader was opened to do."""
        return await run((await self._core()).read, size)

    async def readline(self) -> bytes:
        """Return the bytes up to the end of the line, or up to the end of the stream."""
        return await run((await self._core()).readline)

    async def seek(self, offset: int) -> int:
        """Move to an offset, and return it."""
        return await run((await self._core()).seek, offset)

    async def tell(self) -> int:
        """Return the offset of the next byte."""
        return await run((await self._core()).tell)

    head = as_coroutine(ByteReader.head)
    tail = as_coroutine(ByteReader.tail)
    available = as_coroutine(ByteReader.available)

    async def close(self) -> None:
        """Close the connection."""
        if self._made is not None:
            await self._end(self._made.close)


class AsyncByteWriter(Opened[ByteWriter]):
    """Stream to append bytes to; see PravegaClient.byte_writer. Use it from one task at a time.

    A cancelled ``flush`` or ``close`` may have written a part of the bytes.
    """

    async def write(self, data: Buffer) -> int:
        """Append bytes, and return their number. They are durable after ``flush`` or ``close``."""
        return await run((await self._core()).write, data)

    async def flush(self) -> None:
        """Return when all bytes written before are durable."""
        await run((await self._core()).flush)

    head = as_coroutine(ByteWriter.head)
    tail = as_coroutine(ByteWriter.tail)
    drop_before = as_coroutine(ByteWriter.drop_before)

    async def close(self) -> None:
        """Flush, and close the connection."""
        if self._made is not None:
            await self._end(self._made.close)
