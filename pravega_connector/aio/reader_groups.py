"""Reader groups for asyncio: those of the plain client, as coroutines.

A reader's call first takes part in the group's protocol, and that work must not stop half done. So a cancelled call
continues in the background, and the next call returns its result: ``asyncio.wait_for`` around a call loses nothing.
Long waits are split, so that the end of a block waits for one part at most.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from pravega_connector.aio.event_loop import run, to_the_end
from pravega_connector.aio.objects import AsyncEvents, Home, Opened, as_coroutine
from pravega_connector.client.reader_group import GroupNotification, ReaderGroup
from pravega_connector.core import arguments
from pravega_connector.core.arguments import Stream
from pravega_connector.errors import ConfigError
from pravega_connector.reader.slices import EventBatch
from pravega_connector.reader_groups.delivery import GroupEvent
from pravega_connector.reader_groups.protocol import GroupConfig, GroupState, Ranged, Segment
from pravega_serde import after_fork

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)
# Longest time in seconds that a cancelled call continues.
_PART: Final = 1.0


class AsyncReaderGroup(Opened[ReaderGroup]):
    """A reader group; see ReaderGroup. It is created or joined when entered, awaited or first used."""

    def reader(self, reader_id: str, serializer: Any = None, *, delay: float = 0.0) -> AsyncGroupReader[Any]:
        """Return a reader that joins the group when it is entered, awaited or first used; see ReaderGroup.reader."""
        return AsyncGroupReader(self._home, lambda: self._group().reader(reader_id, serializer, delay=delay))

    def exactly_once(
        self, reader_id: str, serializer: Any = None, *, to: Stream, **options: Any
    ) -> AsyncExactlyOnceReader[Any]:
        """Return a reader whose output is committed together with its position; see ReaderGroup.exactly_once.

        It joins the group when it is entered, awaited or first used.
        """
        return AsyncExactlyOnceReader(
            self._home, lambda: self._group().exactly_once(reader_id, serializer, to=to, **options)
        )

    def _group(self) -> ReaderGroup:
        if self._made is None:
            self._made = self._make()
        return self._made

    async def state(self) -> GroupState:
        """Return the current state."""
        return await run(lambda group: group.state, await self._core())

    async def config(self) -> GroupConfig:
        """Return the current configuration."""
        return await run(lambda group: group.config, await self._core())

    online_readers = as_coroutine(ReaderGroup.online_readers)
    reader_offline = as_coroutine(ReaderGroup.reader_offline)
    take_silent_offline = as_coroutine(ReaderGroup.take_silent_offline)
    checkpoint = as_coroutine(ReaderGroup.checkpoint)
    stream_cuts = as_coroutine(ReaderGroup.stream_cuts)
    reported_cuts = as_coroutine(ReaderGroup.reported_cuts)
    reset = as_coroutine(ReaderGroup.reset)
    cancel_outstanding_checkpoints = as_coroutine(ReaderGroup.cancel_outstanding_checkpoints)
    segment_distribution = as_coroutine(ReaderGroup.segment_distribution)
    unread_bytes = as_coroutine(ReaderGroup.unread_bytes)
    time_window = as_coroutine(ReaderGroup.time_window)
    update_retention_cut = as_coroutine(ReaderGroup.update_retention_cut)
    delete = as_coroutine(ReaderGroup.delete)

    def watch(self, interval: float = 5.0) -> AsyncEvents[GroupNotification]:
        """Yield the number of segments and readers after each change; see ReaderGroup.watch."""
        return AsyncEvents(self._home, lambda: self._group().watch(interval), at_once=1)

    async def close(self) -> None:
        """Close the connection. The group and its readers are not affected."""
        if self._made is not None:
            await self._end(self._made.close)


class _AsyncReader(Opened[Any], Generic[T]):
    """Common part of AsyncGroupReader and AsyncExactlyOnceReader, whose calls continue after a cancellation."""

    def __init__(self, home: Home, make: Callable[[], Any]) -> None:
        super().__init__(home, make)
        self._part: tuple[str, asyncio.Task[Any]] | None = None
        self._polled = False

    def _after_fork(self) -> None:
        super()._after_fork()
        self._part, self._polled = None, after_fork.inherited(type(self).__name__)

    @property
    def id(self) -> str:
        """Name of the reader in its group."""
        return str(self._known().id)

    @property
    def at_end(self) -> bool:
        """True if the group has read all events up to its end."""
        return bool(self._known().at_end) and self._part is None

    async def poll(self, timeout: float) -> list[GroupEvent[T]]:
        """Return the next events of one segment, or one checkpoint; see ``poll`` of the plain reader."""
        arguments.wait("timeout", timeout)
        return await self._next("poll", timeout) or []

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
        """Leave the group. Other readers resume after the returned events. Durable on return."""
        await self.__aexit__(None, None, None)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._made is not None:
            await to_the_end(self._home.ending, self._leave(kind, error, tb))

    # ---------------------------------------------------------------- inside

    async def _next(self, name: str, timeout: float) -> Any:
        """Return the result of a method of the reader within ``timeout`` seconds, or nothing."""
        self._enter()
        try:
            reader, end = await self._core(), time.monotonic() + timeout
            while True:
                left = max(0.0, end - time.monotonic())
                if self._part is None:
                    part = run(getattr(reader, name), min(left, _PART))
                    self._part = name, asyncio.get_running_loop().create_task(part)
                begun, task = self._part
                if begun != name:
                    raise ConfigError(f"a cancelled {begun} still has a result: call {begun} again")
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

    def _enter(self) -> None:
        if self._polled:
            raise ConfigError("this reader is polled by another task already: use one reader for each task")
        self._polled = True

    async def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        part, self._part = self._part, None
        found = None
        if part is not None:
            await asyncio.wait({part[1]})
            if part[1].cancelled():  # by a program that cancels all tasks of the loop
                kind = kind or asyncio.CancelledError
            elif (failure := part[1].exception()) is not None:
                _log.warning("reader %s: %s", self.id, failure)
            else:
                found = part[1].result()
        if found:
            await self._give_back(found, kind)
            kind = kind or asyncio.CancelledError
        await run(self._known().__exit__, kind, error, tb)

    async def _give_back(self, found: Any, kind: type[BaseException] | None) -> None:
        """Move the reader back before ``found``, which was not returned, so that other readers start there."""


class AsyncGroupReader(_AsyncReader[T]):
    """Reader of a group's events; see GroupReader. Use it from one task at a time.

    The next call returns the events of a cancelled call. A cancelled end of the block continues in the background.
    """

    @property
    def position(self) -> Ranged:
        """Offsets after the events that were returned, or are about to be, in all segments that the reader owns."""
        position: Ranged = self._known().position
        return position

    async def poll_columns(self, timeout: float) -> EventBatch | GroupEvent[T] | None:
        """Return the next events of one segment as columns, or a checkpoint; see GroupReader.poll_columns."""
        arguments.wait("timeout", timeout)
        found: EventBatch | GroupEvent[T] | None = await self._next("poll_columns", timeout)
        return found


class AsyncExactlyOnceReader(_AsyncReader[T]):
    """Reader of a group's events that writes its results exactly once; see ExactlyOnceReader. One task at a time.

    The next ``poll`` returns the events of a cancelled ``poll``; a commit or the end of the block comes after it. A
    cancelled ``write`` has not accepted its event. A cancelled ``commit`` continues, and the next call waits for it and
    raises its error. The end of the block does the same.
    """

    def __init__(self, home: Home, make: Callable[[], Any]) -> None:
        super().__init__(home, make)
        self._work: asyncio.Task[None] | None = None

    def _after_fork(self) -> None:
        super()._after_fork()
        self._work = None

    @property
    def committed(self) -> dict[Segment, int]:
        """Offsets up to which the results of its segments' events are committed; END_OF_SEGMENT for all events."""
        committed: dict[Segment, int] = self._known().committed
        return committed

    async def write(self, value: Any, routing_key: str | None = None, *, key: object = None) -> None:
        """Write an event that results from the returned events; see ExactlyOnceReader.write."""
        reader = await self._core()
        self._enter()
        try:
            await self._rest()
            await self._to_the_end(reader.begin)
            await run(reader.write, value, routing_key, key=key)
        finally:
            self._polled = False

    async def commit(self) -> None:
        """Commit the results of all returned events: readers see them on return. See ExactlyOnceReader."""
        reader = await self._core()
        self._enter()
        try:
            before = _first(await self._rest())
            await self._to_the_end(lambda: reader.commit(before=before))
        finally:
            self._polled = False

    async def __anext__(self) -> GroupEvent[T]:
        try:
            return await super().__anext__()
        except StopAsyncIteration:
            await self.commit()
            raise

    # ---------------------------------------------------------------- inside

    async def _next(self, name: str, timeout: float) -> Any:
        await self._worked()
        return await super()._next(name, timeout)

    async def _rest(self) -> Any:
        """Return the events of a cancelled poll, after all calls in progress have ended."""
        await self._worked()
        if self._part is None:
            return None
        task = self._part[1]
        await asyncio.wait({task})
        return None if task.exception() is not None else task.result()  # an error is the next poll's as well

    async def _to_the_end(self, work: Callable[[], object]) -> None:
        """Do work that a cancellation does not stop; the next call then waits for it."""
        self._work = asyncio.get_running_loop().create_task(_done(work))
        await self._worked()

    async def _worked(self) -> None:
        if self._work is not None:
            await asyncio.wait({self._work})
            work, self._work = self._work, None
            work.result()

    async def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        try:
            await self._worked()
        except (Exception, asyncio.CancelledError) as failure:  # noqa: BLE001 - it drops what it has not committed
            _log.warning("reader %s: %s", self.id, failure)
        await super()._leave(kind, error, tb)

    async def _give_back(self, found: Any, kind: type[BaseException] | None) -> None:
        if kind is None:
            await run(self._known().finish, before=_first(found))


def _first(found: Any) -> Any:
    """Return the first event of a poll's result, or None."""
    return found[0] if isinstance(found, list) and found else found or None


async def _done(work: Callable[[], object]) -> None:
    await run(work)
