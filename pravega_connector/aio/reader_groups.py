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

from pravega_connector.aio.event_loop import run, to_the_end
from pravega_connector.aio.objects import Home, Opened, as_coroutine
from pravega_connector.client.reader_group import ReaderGroup
from pravega_connector.core import arguments
from pravega_connector.core.arguments import Stream
from pravega_connector.errors import ConfigError
from pravega_connector.reader.slices import EventBatch
from pravega_connector.reader_group_protocol import GroupConfig, GroupState, Ranged, Segment
from pravega_connector.reader_groups.reader import GroupEvent
from pravega_serde import after_fork

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)
# Seconds for which a call that was cancelled goes on at most.
_PART: Final = 1.0


class AsyncReaderGroup(Opened[ReaderGroup]):
    """A reader group; see ReaderGroup. It is made or joined when it is entered, awaited, or first used."""

    def reader(self, reader_id: str, serializer: Any = None, *, delay: float = 0.0) -> AsyncGroupReader[Any]:
        """A reader that comes into the group when it is entered, awaited, or first used; see ReaderGroup.reader."""
        return AsyncGroupReader(self._home, lambda: self._group().reader(reader_id, serializer, delay=delay))

    def exactly_once(
        self, reader_id: str, serializer: Any = None, *, to: Stream, **options: Any
    ) -> AsyncExactlyOnceReader[Any]:
        """A reader whose output becomes visible together with its position; see ReaderGroup.exactly_once.

        It comes into the group when it is entered, awaited, or first used.
        """
        return AsyncExactlyOnceReader(
            self._home, lambda: self._group().exactly_once(reader_id, serializer, to=to, **options)
        )

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
    time_window = as_coroutine(ReaderGroup.time_window)
    update_retention_cut = as_coroutine(ReaderGroup.update_retention_cut)
    delete = as_coroutine(ReaderGroup.delete)

    async def close(self) -> None:
        """Close the connection; the group and its readers go on."""
        if self._made is not None:
            await run(self._made.close)


class _AsyncReader(Opened[Any], Generic[T]):
    """What GroupReader and ExactlyOnceReader have in common, whose calls go on when they are cancelled."""

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
        """Whether the group has read all there is."""
        return bool(self._known().at_end) and self._part is None

    async def poll(self, timeout: float) -> list[GroupEvent[T]]:
        """The next events, all of one segment, or one checkpoint; see the ``poll`` of the plain reader."""
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
            if (failure := part[1].exception()) is not None:
                _log.warning("reader %s: %s", self.id, failure)
            else:
                found = part[1].result()
        if found:
            await self._give_back(found, kind)
            kind = kind or asyncio.CancelledError
        await run(self._known().__exit__, kind, error, tb)

    async def _give_back(self, found: Any, kind: type[BaseException] | None) -> None:
        """Do what is to be done before others begin at ``found``, which was not handed out."""


class AsyncGroupReader(_AsyncReader[T]):
    """Reads what a group gives it; see GroupReader. One task at a time.

    What a cancelled call brings is not handed out, and the next call gives it. The end of the block, once begun, goes
    on in the background when it is cancelled.
    """

    @property
    def position(self) -> Ranged:
        """Offsets behind what was handed out, or is about to be, in all segments that it owns."""
        position: Ranged = self._known().position
        return position

    async def poll_columns(self, timeout: float) -> EventBatch | GroupEvent[T] | None:
        """The next events of one segment as columns, or a checkpoint; see GroupReader.poll_columns."""
        arguments.wait("timeout", timeout)
        found: EventBatch | GroupEvent[T] | None = await self._next("poll_columns", timeout)
        return found


class AsyncExactlyOnceReader(_AsyncReader[T]):
    """Reads events of a group, and writes what becomes of them exactly once; see ExactlyOnceReader. One task at a time.

    What a cancelled ``poll`` brings the next one gives: a commit in between ends before it, and so does the end of the
    block. A cancelled ``write`` has not taken its event. A ``commit`` that is cancelled goes on; the next call waits
    for it, and raises its error. So does the end of the block, once begun.
    """

    def __init__(self, home: Home, make: Callable[[], Any]) -> None:
        super().__init__(home, make)
        self._work: asyncio.Task[None] | None = None

    def _after_fork(self) -> None:
        super()._after_fork()
        self._work = None

    @property
    def committed(self) -> dict[Segment, int]:
        """Offsets up to which the events of its segments are in the output; END_OF_SEGMENT for all of them."""
        committed: dict[Segment, int] = self._known().committed
        return committed

    async def write(self, value: Any, routing_key: str | None = None, *, key: object = None) -> None:
        """Write an event that comes of those handed out; see ExactlyOnceReader.write."""
        reader = await self._core()
        self._enter()
        try:
            await self._rest()
            await self._to_the_end(reader.begin)
            await run(reader.write, value, routing_key, key=key)
        finally:
            self._polled = False

    async def commit(self) -> None:
        """Have all that was handed out count as processed: its output is visible on return; as ExactlyOnceReader."""
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
        """What a cancelled poll brought, which the next one gives; waits until nothing is under way any more."""
        await self._worked()
        if self._part is None:
            return None
        task = self._part[1]
        await asyncio.wait({task})
        return None if task.exception() is not None else task.result()  # an error is the next poll's as well

    async def _to_the_end(self, work: Callable[[], object]) -> None:
        """Do what a cancellation does not stop; the next call waits for it then."""
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
        except Exception as failure:  # noqa: BLE001 - the reader has failed, and drops what it has not committed
            _log.warning("reader %s: %s", self.id, failure)
        await super()._leave(kind, error, tb)

    async def _give_back(self, found: Any, kind: type[BaseException] | None) -> None:
        if kind is None:
            await run(self._known().finish, before=_first(found))


def _first(found: Any) -> Any:
    """The first event of what a poll brought, if it brought any."""
    return found[0] if isinstance(found, list) and found else found or None


async def _done(work: Callable[[], object]) -> None:
    await run(work)
