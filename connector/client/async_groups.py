"""Reader groups for asyncio: those of the plain client, as coroutines.

A call of a reader takes part in its group before it reads, and what it began there cannot be left half done. So a
cancellation does not stop it: it goes on in the background, and the next call gets what it brings; ``asyncio.wait_for``
around a call loses nothing. Calls that wait long do so in parts, so that the end of a block waits for a part at most.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from ..errors import ConfigError
from ..groups import GroupConfig, GroupState, Ranged
from . import arguments
from .async_objects import Home, Opened, as_coroutine
from .event_loop import run, to_the_end
from .group_reader import GroupEvent, GroupReader
from .reader_group import ReaderGroup
from .slices import EventBatch

__all__ = ["AsyncGroupReader", "AsyncReaderGroup"]

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)
# Seconds for which a call that was cancelled goes on at most.
_PART: Final = 1.0


class AsyncReaderGroup(Opened[ReaderGroup]):
    """A reader group; see ReaderGroup. It is made or joined when it is entered, awaited, or first used."""

    def reader(self, reader_id: str, serializer: Any = None, *, delay: float = 0.0) -> AsyncGroupReader[Any]:
        """A reader that comes into the group when it is entered, awaited, or first used; see ReaderGroup.reader."""
        return AsyncGroupReader(self._home, lambda: self._group().reader(reader_id, serializer, delay=delay))

    def _group(self) -> ReaderGroup:
        if self._made is None:
            self._made = self._make()
        return self._made

    async def state(self) -> GroupState:
        """The state as it is now."""
        return await run(lambda group: group.state, await self._core())

    async def config(self) -> GroupConfig:
        """The configuration, as the state has it now."""
        return await run(lambda group: group.config, await self._core())

    online_readers = as_coroutine(ReaderGroup.online_readers)
    reader_offline = as_coroutine(ReaderGroup.reader_offline)
    take_silent_offline = as_coroutine(ReaderGroup.take_silent_offline)
    checkpoint = as_coroutine(ReaderGroup.checkpoint)
    stream_cuts = as_coroutine(ReaderGroup.stream_cuts)
    reset = as_coroutine(ReaderGroup.reset)
    unread_bytes = as_coroutine(ReaderGroup.unread_bytes)
    update_retention_cut = as_coroutine(ReaderGroup.update_retention_cut)
    delete = as_coroutine(ReaderGroup.delete)

    async def close(self) -> None:
        """Close the connection; the group and its readers go on."""
        if self._made is not None:
            await run(self._made.close)


class AsyncGroupReader(Opened[GroupReader[T]], Generic[T]):
    """Reads what a group gives it; see GroupReader. One task at a time.

    What a cancelled call brings is not handed out, and the next call gives it. The end of the block, once begun, goes
    on in the background when it is cancelled.
    """

    def __init__(self, home: Home, make: Callable[[], GroupReader[T]]) -> None:
        super().__init__(home, make)
        self._part: tuple[str, asyncio.Task[Any]] | None = None
        self._polled = False

    @property
    def id(self) -> str:
        """Name of the reader in its group."""
        return self._known().id

    @property
    def position(self) -> Ranged:
        """Offsets behind what was handed out, or is about to be, in all segments that it owns."""
        return self._known().position

    @property
    def at_end(self) -> bool:
        """Whether the group has read all there is."""
        return self._known().at_end and self._part is None

    async def poll(self, timeout: float) -> list[GroupEvent[T]]:
        """The next events, all of one segment, or one checkpoint; see GroupReader.poll."""
        arguments.wait("timeout", timeout)
        return await self._next("poll", timeout) or []

    async def poll_columns(self, timeout: float) -> EventBatch | GroupEvent[T] | None:
        """The next events of one segment as columns, or a checkpoint; see GroupReader.poll_columns."""
        arguments.wait("timeout", timeout)
        found: EventBatch | GroupEvent[T] | None = await self._next("poll_columns", timeout)
        return found

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> GroupEvent[T]:
        reader = await self._core()
        while not self.at_end:
            found: GroupEvent[T] | None = await self._next("next_event", reader.timeout)
            if found is not None:
                return found
        raise StopAsyncIteration

    async def close(self) -> None:
        """Leave the group: others go on behind what was handed out. Durable on return."""
        await self.__aexit__(None, None, None)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._made is not None:
            await to_the_end(self._home.ending, self._leave(kind, error, tb))

    # ---------------------------------------------------------------- inside

    async def _next(self, name: str, timeout: float) -> Any:
        """What a method of the reader gives within so many seconds; nothing if it gives nothing."""
        if self._polled:
            raise ConfigError("this reader is polled by another task already: use one reader for each task")
        self._polled = True
        try:
            reader, end = await self._core(), time.monotonic() + timeout
            while True:
                left = max(0.0, end - time.monotonic())
                if self._part is None:
                    part = run(getattr(reader, name), min(left, _PART))
                    self._part = name, asyncio.get_running_loop().create_task(part)
                begun, task = self._part
                if begun != name:
                    raise ConfigError(f"a {begun} that was cancelled has not given what it brings: call {begun} again")
                done, _ = await asyncio.wait({task}, timeout=max(left, 0.001))
                if done:
                    self._part = None
                    found = task.result()
                    if found is not None and not (isinstance(found, list) and not found):
                        return found
                if time.monotonic() >= end or (self._part is None and reader.at_end):
                    return None
        finally:
            self._polled = False

    async def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        part, self._part = self._part, None
        if part is not None:
            await asyncio.wait({part[1]})
            if (failure := part[1].exception()) is not None:
                _log.warning("reader %s: %s", self.id, failure)
            elif part[1].result():  # was not handed out: others are to begin before it
                kind = kind or asyncio.CancelledError
        await run(self._known().__exit__, kind, error, tb)
