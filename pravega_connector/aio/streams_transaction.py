"""Transactions over several streams for asyncio."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from pravega_connector.aio.event_loop import run
from pravega_connector.aio.objects import Opened, as_coroutine
from pravega_connector.exactly_once.streams_transaction import StreamsTransaction
from pravega_connector.wire import StreamName

# Events that a transaction takes before it lets other tasks run.
_WRITES: Final = 256


class AsyncStreamsTransaction(Opened[StreamsTransaction[Any]]):
    """Transaction over several streams; see StreamsTransaction. As a context manager it commits, or aborts on an error.

    You can repeat a cancelled ``commit``. A cancelled end of the block continues in the background.
    """

    _taken = 0

    @property
    def version(self) -> int:
        """Number of the transaction, by its application."""
        return self._known().version

    async def write(self, stream: StreamName | str, value: Any, routing_key: str | None = None) -> None:
        """Write one event to one of the streams. See StreamsTransaction.write."""
        transaction = self._made or await self._core()
        self._taken += 1
        if not self._taken % _WRITES:
            await asyncio.sleep(0)
        await run(transaction.write, stream, value, routing_key)

    write_column = as_coroutine(StreamsTransaction.write_column)
    flush = as_coroutine(StreamsTransaction.flush)
    ping = as_coroutine(StreamsTransaction.ping)
    commit = as_coroutine(StreamsTransaction.commit)
    abort = as_coroutine(StreamsTransaction.abort)
