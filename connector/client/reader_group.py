"""A reader group from outside of its readers: it is made or joined, watched, checkpointed, reset and deleted.

What is written, and in which order, is that of Java's ``ReaderGroupManagerImpl`` and ``ReaderGroupImpl``.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from ..errors import ConfigError, DeadlineExceededError, ReaderGroupError, ReaderGroupNotFoundError
from ..groups import (
    AddReader,
    Bound,
    CreateCheckpoint,
    GroupConfig,
    GroupState,
    Init,
    InitSerializer,
    Positions,
    Ranged,
    RemoveReader,
    Retention,
    Segment,
    StateSerializer,
    StateUpdate,
    UpdateDistanceToTail,
    apply,
    by_stream,
    create,
    decode_checkpoint,
    encode_checkpoint,
    group_stream,
)
from ..groups import manager as managing
from ..hints import HintedNames
from ..wire import StreamCut, StreamName
from . import arguments, waiting
from .arguments import Place, Stream, Streams
from .controller_values import SubscriberId
from .group_member import GroupMember, init_of
from .group_reader import GroupReader
from .places import cuts_of
from .slices import slices_between
from .synchronizer import StateSynchronizer

if TYPE_CHECKING:
    from .exactly_once import ExactlyOnceReader
    from .pravega_client import PravegaClient
    from .watermarks import TimeWindow

__all__ = ["GroupCheckpoint", "ReaderGroup", "open_group"]

_log: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 0.5  # between looks for a checkpoint that readers are to take
_RESET_ATTEMPTS: Final = 10
# Times between two updates of a reader after which it may be called silent.
_SILENT_TIMES: Final = 3


@dataclass(frozen=True, slots=True)
class GroupCheckpoint:
    """A checkpoint that all readers of a group have taken; its bytes are those of Java's ``Checkpoint``."""

    name: str
    cuts: Mapping[StreamName, StreamCut]
    """Where the group was in each stream."""

    def to_bytes(self) -> bytes:
        """Bytes that Java's ``Checkpoint.fromBytes`` reads."""
        return encode_checkpoint(self.name, self.cuts)

    @classmethod
    def from_bytes(cls, data: bytes) -> GroupCheckpoint:
        """The checkpoint of bytes that this client or Java's made. Raises DeserializationError."""
        return cls(*decode_checkpoint(data))


def open_group(
    client: PravegaClient,
    name: Stream,
    streams: Streams | None,
    *,
    start: Place | None,
    end: Place | None,
    retention: str,
    checkpoint_interval: float | None,
    refresh: float,
    max_outstanding: int,
) -> ReaderGroup:
    """Make a group, or join the one that there is. See :meth:`PravegaClient.reader_group`."""
    found = client.name(name)
    scope, group = found.scope, found.stream
    if streams is None:
        there = client.controller.group_config(scope, group)
        if there is None:
            raise ReaderGroupNotFoundError(f"there is no reader group {found}: name the streams that it is to read")
        return _opened(client, scope, group, there)
    names = arguments.stream_names(streams, client.config.scope)
    if retention.upper() not in Retention.__members__:
        raise ConfigError(f"argument 'retention' must be 'none', 'manual' or 'automatic', not {retention!r}")
    arguments.seconds("checkpoint_interval", checkpoint_interval)
    arguments.seconds("refresh", refresh, optional=False)
    config = GroupConfig(
        start=_bounds(client, names, start, "start"),
        end={} if end is None else _bounds(client, names, end, "end"),
        checkpoint_ms=-1 if checkpoint_interval is None else round(checkpoint_interval * 1000),
        refresh_ms=round(refresh * 1000),
        max_outstanding=max_outstanding,
        retention=Retention[retention.upper()],
        generation=0,
        id=uuid.uuid4(),
    )
    config.check()
    there = client.controller.create_group(scope, group, config)
    if there.settings != config.settings:
        raise ReaderGroupError(
            f"reader group {found} is there with another configuration: join it without 'streams', or reset it"
        )
    return _opened(client, scope, group, there)


def _bounds(
    client: PravegaClient, streams: list[StreamName], place: Place | None, what: str
) -> dict[StreamName, Bound]:
    if what == "start" and place in (None, "earliest", "head"):  # wherever that is when the group begins
        return {stream: Bound() for stream in streams}
    return {cut.stream: Bound(cut) for cut in cuts_of(client, streams, place, what, default="head")}


def _opened(client: PravegaClient, scope: str, group: str, config: GroupConfig) -> ReaderGroup:
    opened = ReaderGroup(client, scope, group)
    try:
        # No effect if somebody was first.
        if config.generation == 0:
            opened._log.initialize(init_of(client.controller, config))
        opened._fetched()
    except BaseException:
        opened.close()
        raise
    if config.checkpoint_ms <= 0:
        _log.warning(
            "reader group %s/%s has no automatic checkpoints: without others no segment changes its reader, and what "
            "follows a scaled segment is not read",
            scope,
            group,
        )
    return opened


def _is_first(state: GroupState, name: str) -> bool:
    """Whether there is nothing to clear before a checkpoint."""
    names = list(state.checkpoints.names)
    return name not in names or names[0] == name


class ReaderGroup(HintedNames):
    """A reader group. Thread safe but for its readers, which are made with :meth:`reader`. Context manager."""

    def __init__(self, client: PravegaClient, scope: str, group: str) -> None:
        """Opens a group that has a state; :meth:`PravegaClient.reader_group` makes one."""
        self.scope, self.name = scope, group
        self._client, self._controller = client, client.controller
        self._heard: dict[str, float] = {}  # when (monotonic) an update of a reader was seen last
        self._log: StateSynchronizer[GroupState, Init | GroupState, StateUpdate] = StateSynchronizer(
            client.stores,
            group_stream(scope, group),
            create=create,
            apply=self._applied,
            init_serializer=InitSerializer(),
            update_serializer=StateSerializer(),
        )

    def __repr__(self) -> str:
        return f"ReaderGroup({self.scope}/{self.name})"

    # ---------------------------------------------------------------- readers

    def reader(self, reader_id: str, serializer: Any = None, *, delay: float = 0.0) -> GroupReader[Any]:
        """A reader that comes into the group; without a serializer the events are bytes.

        It takes segments after ``delay`` seconds, up to twice that. Raises ReaderOnlineError.
        """
        arguments.wait("delay", delay)
        chosen = arguments.serializer_of(serializer, "deserialize")
        member = GroupMember(self._client.stores, self.scope, self.name, reader_id, delay=delay)
        try:
            return GroupReader(self._client.stores, member, chosen)
        except BaseException:
            member.close()
            raise

    def exactly_once(
        self,
        reader_id: str,
        serializer: Any = None,
        *,
        to: Stream,
        output: Any = None,
        interval: float = 0.1,
        lease: float = 30.0,
        delay: float = 0.0,
        **options: Any,
    ) -> ExactlyOnceReader[Any]:
        """A reader whose output becomes visible, in the stream ``to``, together with its position: each event once.

        ``serializer`` is for the events that are read, ``output`` for those that are written; ``options`` are those of
        :meth:`PravegaClient.transactions`. A transaction holds ``interval`` seconds of work; nobody else's lasts longer
        than ``lease`` seconds when its process has died. All readers of the group must be of this kind: of others the
        ledger (the stream ``<group>-positions``) knows nothing. Raises ReaderOnlineError.
        """
        from .exactly_once import ExactlyOnceReader  # noqa: PLC0415 - most readers have no output of this kind

        arguments.wait("delay", delay)
        arguments.wait("interval", interval)
        chosen = arguments.serializer_of(serializer, "deserialize")
        target = self._client.require_stream(to)
        writer = self._client.transactions(target, output, lease=lease, **options)
        return ExactlyOnceReader(
            self._client,
            self.scope,
            self.name,
            reader_id,
            serializer=chosen,
            writer=writer,
            interval=interval,
            delay=delay,
        )

    @property
    def state(self) -> GroupState:
        """The state as it is now: configuration, readers with their segments, checkpoints."""
        return self._fetched()

    @property
    def config(self) -> GroupConfig:
        """The configuration, as the state has it now."""
        return self._fetched().config

    def online_readers(self) -> list[str]:
        """Ids of the readers in the group, sorted; those among them that have died stay until they are taken out."""
        return sorted(self._fetched().assigned)

    def reader_offline(self, reader_id: str, position: Ranged | Positions | None = None) -> bool:
        """Take a reader out of the group; False if it was not in it. Durable on return.

        Others read on from its position, or without one from its last checkpoint.
        """
        at = position.positions if isinstance(position, Ranged) else position
        self._fetched()
        return bool(self._log.update_state(lambda state: managing.take_offline(state, reader_id, at)))

    def take_silent_offline(self, silence: float) -> list[str]:
        """Take out the readers of which nothing was heard for ``silence`` seconds; their ids. Durable on return.

        Call it again and again: it counts from when this object saw a reader's last update, or the reader first. One
        that is called writes an update every (readers + 1) seconds, Java's too; one that lives and is not called for so
        long is taken out as well, and what it read since its last checkpoint comes again. Raises ConfigError for a
        silence of less than three such times.
        """
        arguments.seconds("silence", silence, optional=False)
        self._fetched()

        def offline(state: GroupState) -> list[StateUpdate]:
            now = time.monotonic()
            least = _SILENT_TIMES * (state.readers + 1)
            if silence < least:
                raise ConfigError(
                    f"reader group {self.scope}/{self.name} has {state.readers} readers, which tell of themselves "
                    f"every {state.readers + 1} s: a silence of {silence:g} s says nothing, {least} s are the least"
                )
            dead = [r for r in state.assigned if now - self._heard.setdefault(r, now) >= silence]
            return [update for reader in dead for update in managing.take_offline(state, reader)]

        taken = self._log.update_state(offline)
        for gone in self._heard.keys() - self._known().assigned.keys():
            del self._heard[gone]
        return [update.reader for update in taken if isinstance(update, RemoveReader)]

    # ---------------------------------------------------------------- checkpoints and cuts

    def checkpoint(self, name: str, timeout: float = 60.0) -> GroupCheckpoint:
        """Have all readers take a checkpoint, and wait until they have.

        Raises ReaderGroupError if too many are under way or a later one was faster, DeadlineExceededError.
        """
        arguments.seconds("timeout", timeout, optional=False)
        self._fetched()
        self._log.update_state(lambda state: managing.begin_checkpoint(state, name))
        return GroupCheckpoint(name, by_stream(self._taken(name, timeout)))

    def stream_cuts(self, timeout: float = 60.0) -> dict[StreamName, StreamCut]:
        """Where the readers are, by a checkpoint that their users do not see. Raises what :meth:`checkpoint` does."""
        arguments.seconds("timeout", timeout, optional=False)
        name = managing.silent_name(os.urandom(32))
        self._log.update_state_unconditionally([CreateCheckpoint(name)])  # its name is nobody else's
        return by_stream(self._taken(name, timeout))

    def _taken(self, name: str, timeout: float) -> Positions:
        end = time.monotonic() + timeout
        while (positions := managing.checkpoint_positions(self._fetched(), name)) is None:
            left = end - time.monotonic()
            if left <= 0:
                raise DeadlineExceededError(
                    f"reader group {self.scope}/{self.name}: its readers have not all taken checkpoint {name} within "
                    f"{timeout:g} s; take those offline that have died"
                )
            waiting.sleep(min(_LOOK_SECONDS, left))
        self._log.update_state(lambda state: [] if _is_first(state, name) else managing.clear_before(name))
        return positions

    def reset(self, to: GroupCheckpoint | Place | Mapping[StreamName, StreamCut] | None = None) -> None:
        """Have the group begin again at a checkpoint or a place, else at its last checkpoint; its readers are offline.

        A place is one as in :meth:`PravegaClient.read`, for all streams, or a list of cuts; a stream of which it has
        none begins where the group was told to begin last. What :meth:`stream_cuts` gave will do. Without a place and
        any checkpoint the group begins where it began first. Durable on return. Raises ReaderGroupError,
        MalformedStreamCutError, TimeUnknownError, ConfigError.
        """
        cuts = self._cuts_of(to)
        for _ in range(_RESET_ATTEMPTS):
            config = self._fetched().config
            if strange := cuts.keys() - config.start.keys():
                raise ReaderGroupError(
                    f"reader group {self.scope}/{self.name} does not read {', '.join(map(str, sorted(strange)))}"
                )
            wanted = replace(config, start={**config.start, **{s: Bound(cut) for s, cut in cuts.items()}})
            self._log.update_state(partial(managing.announce_change, seen=config))
            changed = self._controller.update_group(self.scope, self.name, wanted)
            now = changed or self._controller.group_config(self.scope, self.name)
            if now is None:
                raise ReaderGroupError(f"there is no reader group {self.scope}/{self.name} any more")
            init = init_of(self._controller, now)
            begin = dict(init.start.positions)
            begin |= managing.missing_from(begin, self._predecessors(cuts))
            self._log.update_state(partial(managing.reset, config=now, start=Ranged.of(begin), end=init.end))
            if changed is not None:
                return
        raise ReaderGroupError(f"reader group {self.scope}/{self.name} is being reset by others all the time")

    def _cuts_of(self, to: Any) -> dict[StreamName, StreamCut]:
        if to is None:
            return managing.last_cuts(self._fetched())
        if isinstance(to, GroupCheckpoint | Mapping):
            return dict(to.cuts if isinstance(to, GroupCheckpoint) else to)
        if not isinstance(to, str):
            return arguments.own_cuts(to, "to")
        streams = list(self._fetched().config.start)
        return {cut.stream: cut for cut in cuts_of(self._client, streams, to, "to", default="head")}

    def _predecessors(self, cuts: Mapping[StreamName, StreamCut]) -> dict[Segment, tuple[int, ...]]:
        return {
            Segment(stream, after.range.id): tuple(after.predecessors)
            for stream, cut in cuts.items()
            for number in cut.positions
            for after in self._controller.successors(stream, number)
        }

    def unread_bytes(self) -> int:
        """Number of bytes between the last checkpoint and the ends of the streams, or of the group."""
        state = self._fetched()
        total = 0
        for stream, cut in by_stream(managing.unread_since(state)).items():
            infos = self._client.stores.segment_infos(stream, [n for n, at in cut.positions.items() if at < 0])
            known = {n: infos[n].write_offset if at < 0 else at for n, at in cut.positions.items()}
            bound = state.config.end.get(stream, Bound()).cut
            end = self._client.tail(stream) if bound is None else bound
            pieces = slices_between(self._client.stores, StreamCut(stream, known), end, skip_lost=True)
            total += sum(piece.end - piece.start for piece in pieces)
        return total

    def time_window(self, stream: Stream) -> TimeWindow:
        """Event times around where the slowest reader of a stream is, as ``getCurrentTimeWindow`` of Java's readers.

        Readers of both languages tell their positions every few seconds; events that were taken since may be later.
        Raises ReaderGroupError for a stream that the group does not read.
        """
        name = self._client.name(stream)
        told = self._fetched().last_read_of(name).positions
        if not told:
            raise ReaderGroupError(
                f"reader group {self.scope}/{self.name} reads nothing of stream {name}, or no longer"
            )
        return self._client.time_window(by_stream(told)[name])

    def update_retention_cut(self, cuts: Iterable[StreamCut]) -> None:
        """Let the streams be truncated up to these cuts. Raises ReaderGroupError unless retention is manual."""
        config = self._fetched().config
        if config.retention is not Retention.MANUAL:
            raise ReaderGroupError(
                f"reader group {self.scope}/{self.name} was not made with retention='manual': its cuts are not yours "
                "to publish"
            )
        subscriber = SubscriberId(self.name, str(config.id), config.generation)
        for cut in cuts:
            self._controller.update_subscriber(subscriber, cut, scope=self.scope)

    def delete(self) -> bool:
        """Delete the group, its state included; False if it is gone already. Its readers fail then."""
        config = self._controller.group_config(self.scope, self.name)
        self.close()
        return config is not None and self._controller.delete_group(self.scope, self.name, config)

    def close(self) -> None:
        """Close the connection; the group and its readers go on."""
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _applied(self, state: GroupState, update: StateUpdate) -> GroupState:
        if isinstance(update, AddReader | UpdateDistanceToTail):
            self._heard[update.reader] = time.monotonic()
        return apply(state, update)

    def _fetched(self) -> GroupState:
        self._log.fetch_updates()
        return self._known()

    def _known(self) -> GroupState:
        state = self._log.state
        if state is None:
            raise ReaderGroupError(
                f"reader group {self.scope}/{self.name} has no state yet: whoever made it has not begun it"
            )
        return state
