"""A reader group without its readers: create or join it, observe it, checkpoint, reset and delete it.

Requests and their order are those of Java's ``ReaderGroupManagerImpl`` and ``ReaderGroupImpl``.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypedDict, Unpack

from pravega_connector.controller.targets import check_target
from pravega_connector.core import arguments, io
from pravega_connector.core.arguments import Position, Stream, Streams
from pravega_connector.core.connection import ProcessBound
from pravega_connector.core.values import SubscriberId
from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import ConfigError, DeadlineExceededError, ReaderGroupError, ReaderGroupNotFoundError
from pravega_connector.exactly_once.group_reader import ExactlyOnceReader
from pravega_connector.reader.positions import SupportsCuts, cuts_of
from pravega_connector.reader.slices import slices_between
from pravega_connector.reader_groups.member import GroupMember, init_of
from pravega_connector.reader_groups.protocol import (
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
)
from pravega_connector.reader_groups.protocol import administration as managing
from pravega_connector.reader_groups.reader import GroupReader
from pravega_connector.single_segment.synchronizer import StateSynchronizer
from pravega_connector.wire import StreamCut, StreamName
from pravega_connector.wire.names import group_stream

if TYPE_CHECKING:
    from pravega_connector.config import PravegaConfig
    from pravega_connector.reader.watermarks import TimeWindow
    from pravega_connector.stores.segment_stores import SegmentStores
    from pravega_connector.writer.transactions import TransactionalWriter

_log: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 0.5  # between looks for a checkpoint that readers are to take
_RESET_ATTEMPTS: Final = 10
# Times between two updates of a reader after which it may be called silent.
_SILENT_TIMES: Final = 3


class SupportsGroups(SupportsCuts, Protocol):
    """Calls of a client that a reader group uses: see PravegaClient."""

    @property
    def config(self) -> PravegaConfig:
        """Configuration, with the default scope."""

    @property
    def stores(self) -> SegmentStores:
        """Calls to the segment stores."""

    @property
    def transactions(self) -> Callable[..., TransactionalWriter[Any]]:
        """Factory of a transactional writer."""

    def name(self, stream: Stream) -> StreamName:
        """Return the full name of a stream."""

    def time_window(self, position: StreamCut) -> TimeWindow:
        """Return the event times around a position."""


@dataclass(frozen=True, slots=True)
class GroupCheckpoint:
    """A checkpoint that all readers of a group have taken; its bytes are those of Java's ``Checkpoint``."""

    name: str
    cuts: Mapping[StreamName, StreamCut]
    """Where the group was in each stream."""

    def to_bytes(self) -> bytes:
        """Return bytes that Java's ``Checkpoint.fromBytes`` reads."""
        return encode_checkpoint(self.name, self.cuts)

    @classmethod
    def from_bytes(cls, data: bytes) -> GroupCheckpoint:
        """Return the checkpoint in bytes from this client or Java's. Raises DeserializationError."""
        return cls(*decode_checkpoint(data))


@dataclass(frozen=True, slots=True)
class SegmentDistribution:
    """Number of segments of each reader of a group (Java's ``ReaderSegmentDistribution``)."""

    readers: Mapping[str, int]
    """Id of each reader in the group, and the number of its segments."""
    unassigned: int
    """Number of segments that wait for a reader."""

    @property
    def segments(self) -> int:
        """Number of all segments that are read or wait for a reader."""
        return self.unassigned + sum(self.readers.values())


@dataclass(frozen=True, slots=True)
class GroupNotification:
    """Change of a group (Java's ``SegmentNotification`` and ``EndOfDataNotification``)."""

    segments: int
    """Number of segments that are read or wait for a reader."""
    readers: int
    """Number of readers in the group, including failed ones."""
    end_of_data: bool
    """True if the group has read everything up to its end, or sealed streams to their ends."""


class GroupChanges(TypedDict, total=False):
    """Settings of a group that :meth:`ReaderGroup.reset` changes; the others stay."""

    streams: Streams
    """All that the group reads from now on."""
    end: Position | None
    """Where the group ends; None is no end. Without it the streams that it reads still end where they did."""
    retention: str
    """``none``, ``manual``, or ``automatic`` at each checkpoint."""
    checkpoint_interval: float | None
    """Seconds between automatic checkpoints; None is no such checkpoints."""
    refresh: float
    """Seconds between two looks of a reader at the state."""
    max_outstanding: int
    """Largest number of checkpoints in progress."""


def open_group(
    client: SupportsGroups,
    name: Stream,
    streams: Streams | None,
    *,
    start: Position | None,
    end: Position | None,
    retention: str,
    checkpoint_interval: float | None,
    refresh: float,
    max_outstanding: int,
) -> ReaderGroup:
    """Create a group or join the existing one. See :meth:`PravegaClient.reader_group`."""
    found = client.name(name)
    scope, group = found.scope, found.stream
    if streams is None:
        there = client.controller.group_config(scope, group)
        if there is None:
            raise ReaderGroupNotFoundError(f"reader group {found} does not exist; pass streams=… to create it")
        return _opened(client, scope, group, there)
    names = arguments.stream_names(streams, client.config.scope)
    settings: GroupChanges = {
        "retention": retention,
        "checkpoint_interval": checkpoint_interval,
        "refresh": refresh,
        "max_outstanding": max_outstanding,
    }
    config = GroupConfig(
        start=_bounds(client, names, start, "start"),
        end=_bounds(client, names, end, "end"),
        generation=0,
        id=uuid.uuid4(),
        **_fields(settings),
    )
    config.check()
    there = client.controller.create_group(scope, group, config)
    if there.settings != config.settings:
        raise ReaderGroupError(
            f"reader group {found} already exists with a different configuration; omit 'streams' to join it, or call "
            "reset(streams=…), which also accepts the other settings, to change it"
        )
    return _opened(client, scope, group, there)


def _bounds(
    client: SupportsGroups, streams: Collection[StreamName], place: Position | None, what: str
) -> dict[StreamName, Bound]:
    # Without an end Java's builder names each stream as well; and the head is wherever it is when the group begins.
    if place is None or (what == "start" and place in ("earliest", "head")):
        return {stream: Bound() for stream in streams}
    return {cut.stream: Bound(cut) for cut in cuts_of(client, list(streams), place, what, default="head")}


def _fields(given: GroupChanges) -> dict[str, Any]:
    """Return the fields of a configuration for the arguments, without streams and positions. Raises ConfigError."""
    fields: dict[str, Any] = {}
    if "retention" in given:
        if (name := str(given["retention"]).upper()) not in Retention.__members__:
            raise ConfigError(
                f"argument 'retention' must be 'none', 'manual' or 'automatic', not {given['retention']!r}"
            )
        fields["retention"] = Retention[name]
    if "checkpoint_interval" in given:
        interval = given["checkpoint_interval"]
        arguments.seconds("checkpoint_interval", interval)
        fields["checkpoint_ms"] = -1 if interval is None else round(interval * 1000)
    if "refresh" in given:
        arguments.seconds("refresh", given["refresh"], optional=False)
        fields["refresh_ms"] = round(given["refresh"] * 1000)
    if "max_outstanding" in given:
        arguments.count("max_outstanding", given["max_outstanding"], 1)
        fields["max_outstanding"] = given["max_outstanding"]
    return fields


def _opened(client: SupportsGroups, scope: str, group: str, config: GroupConfig) -> ReaderGroup:
    opened = ReaderGroup(client, scope, group)
    try:
        # No effect if another client was first.
        if config.generation == 0:
            opened._log.initialize(init_of(client.controller, config))
        opened._fetched()
    except BaseException:
        opened.close()
        raise
    if config.checkpoint_ms <= 0:
        _log.warning(
            "reader group %s/%s has no automatic checkpoints: call checkpoint() regularly, otherwise segments are "
            "not reassigned and the successors of scaled segments are not read",
            scope,
            group,
        )
    return opened


def _is_first(state: GroupState, name: str) -> bool:
    """Return True if nothing must be cleared before a checkpoint."""
    names = list(state.checkpoints.names)
    return name not in names or names[0] == name


_OF_A_READER: Final = "'reader-1'"


@arguments.hinted
class ReaderGroup(HintedNames, ProcessBound):
    """A reader group. Thread safe, unlike its readers (:meth:`reader`). Context manager."""

    def __init__(self, client: SupportsGroups, scope: str, group: str) -> None:
        """Opens a group that has a state; :meth:`PravegaClient.reader_group` creates one."""
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
        """Return a reader that joins the group. Without a serializer, the events are bytes.

        It acquires segments after ``delay`` to twice ``delay`` seconds. Raises ReaderOnlineError.
        """
        arguments.instance("reader_id", reader_id, str, _OF_A_READER, optional=False)
        arguments.wait("delay", delay)
        chosen = arguments.serializer_of(serializer, "deserialize")
        member = GroupMember(self._client.stores, self.scope, self.name, reader_id, delay=delay)
        try:
            return GroupReader(self._client.stores, member, chosen)
        except BaseException:
            member.give_up()
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
        """Return a reader whose output to the stream ``to`` is committed together with its position, each event once.

        ``serializer`` is for the events that are read, ``output`` for those that are written. ``options`` are those of
        :meth:`PravegaClient.transactions`. A transaction holds ``interval`` seconds of work. The transaction of a
        failed process expires after at most ``lease`` seconds. All readers of the group must be of this kind, because
        the ledger (the stream ``<group>-positions``) has no positions of other readers. Raises ReaderOnlineError, and
        InvalidNameError for an output that has no events, such as a ledger.
        """
        arguments.instance("reader_id", reader_id, str, _OF_A_READER, optional=False)
        arguments.wait("delay", delay)
        arguments.wait("interval", interval)
        chosen = arguments.serializer_of(serializer, "deserialize")
        target = self._client.require_stream(to)
        check_target(self._client.controller, target)
        writer = self._client.transactions(target, output, lease=lease, **options)
        return ExactlyOnceReader(
            self._client.stores,
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
        """Return the current state: configuration, readers with their segments, checkpoints."""
        return self._fetched()

    @property
    def config(self) -> GroupConfig:
        """Return the current configuration."""
        return self._fetched().config

    def online_readers(self) -> list[str]:
        """Return the ids of the readers in the group, sorted.

        A failed reader stays in the group until it is removed.
        """
        return sorted(self._fetched().assigned)

    def reader_offline(self, reader_id: str, position: Ranged | Positions | None = None) -> bool:
        """Remove a reader from the group. Return False if it was not in the group. Durable on return.

        The other readers resume from its position, or without one from its last checkpoint.
        """
        arguments.instance("reader_id", reader_id, str, _OF_A_READER, optional=False)
        at = position.positions if isinstance(position, Ranged) else position
        self._fetched()
        return bool(self._log.update_state(lambda state: managing.take_offline(state, reader_id, at)))

    def take_silent_offline(self, silence: float) -> list[str]:
        """Remove the readers without an update for ``silence`` seconds, and return their ids. Durable on return.

        Call it repeatedly: the time counts from when this object saw a reader's last update, or first saw the reader. A
        reader that is polled writes an update every (readers + 1) seconds, also in Java. A reader that is alive but not
        polled for ``silence`` seconds is removed too, and its events since its last checkpoint are read again. Raises
        ConfigError for a silence of less than three such times.
        """
        arguments.seconds("silence", silence, optional=False)
        self._fetched()

        def offline(state: GroupState) -> list[StateUpdate]:
            now = time.monotonic()
            least = _SILENT_TIMES * (state.readers + 1)
            if silence < least:
                raise ConfigError(
                    f"reader group {self.scope}/{self.name} has {state.readers} readers, which publish their "
                    f"positions every {state.readers + 1} s: a silence of {silence:g} s is too short; use {least} s "
                    "or more"
                )
            dead = [r for r in state.assigned if now - self._heard.setdefault(r, now) >= silence]
            return [update for reader in dead for update in managing.take_offline(state, reader)]

        taken = self._log.update_state(offline)
        for gone in self._heard.keys() - self._known().assigned.keys():
            del self._heard[gone]
        return [update.reader for update in taken if isinstance(update, RemoveReader)]

    # ---------------------------------------------------------------- checkpoints and cuts

    def checkpoint(self, name: str, timeout: float = 60.0) -> GroupCheckpoint:
        """Let all readers take a checkpoint, and wait for it.

        Raises DeadlineExceededError, or ReaderGroupError if too many checkpoints are in progress or a later one
        finished first.
        """
        arguments.instance("name", name, str, "'before-the-upgrade'", optional=False)
        arguments.seconds("timeout", timeout, optional=False)
        self._fetched()
        self._log.update_state(lambda state: managing.begin_checkpoint(state, name))
        return GroupCheckpoint(name, by_stream(self._taken(name, timeout)))

    def stream_cuts(self, timeout: float = 60.0) -> dict[StreamName, StreamCut]:
        """Return the readers' positions with a checkpoint that their users do not see. Raises as :meth:`checkpoint`."""
        arguments.seconds("timeout", timeout, optional=False)
        name = managing.silent_name(os.urandom(32))
        self._log.update_state_unconditionally([CreateCheckpoint(name)])  # its name is unique
        return by_stream(self._taken(name, timeout))

    def reported_cuts(self) -> dict[StreamName, StreamCut]:
        """Return the positions that the readers have last reported, without waiting for them.

        Readers of both languages report every few seconds, so later events may have been read. A stream that was read
        to its end is missing. Java's counterpart is ``getStreamCuts``, which returns the positions at which the readers
        acquired their segments.
        """
        return self._cuts_at(managing.told_positions(self._fetched()))

    def _cuts_at(self, positions: Positions) -> dict[StreamName, StreamCut]:
        """Return positions as cuts, with the end offset of each segment that was read completely."""
        found = {}
        for stream, cut in by_stream(positions).items():
            infos = self._client.stores.segment_infos(stream, [n for n, at in cut.positions.items() if at < 0])
            known = {n: infos[n].write_offset if at < 0 else at for n, at in cut.positions.items()}
            found[stream] = StreamCut(stream, known)
        return found

    def _taken(self, name: str, timeout: float) -> Positions:
        end = time.monotonic() + timeout
        while (positions := managing.checkpoint_positions(self._fetched(), name)) is None:
            left = end - time.monotonic()
            if left <= 0:
                raise DeadlineExceededError(
                    f"reader group {self.scope}/{self.name}: not all readers reached checkpoint {name!r} within "
                    f"{timeout:g} s; remove failed readers with reader_offline(reader_id)"
                )
            io.sleep(min(_LOOK_SECONDS, left))
        self._log.update_state(lambda state: [] if _is_first(state, name) else managing.clear_before(name))
        return positions

    def reset(
        self,
        to: GroupCheckpoint | Position | Mapping[StreamName, StreamCut] | None = None,
        **changes: Unpack[GroupChanges],
    ) -> None:
        """Restart the group at a checkpoint or a position, by default at its last checkpoint. Its readers go offline.

        A position is that of :meth:`PravegaClient.read` for all streams, a list of cuts, or the result of
        :meth:`stream_cuts`. A stream without a cut starts at the last checkpoint, without a checkpoint at the last
        configured start, and a new stream at its head.

        ``changes`` are other settings of :meth:`PravegaClient.reader_group`: ``streams``, ``end``, ``retention``,
        ``checkpoint_interval``, ``refresh``, ``max_outstanding`` (:class:`GroupChanges`). Other settings stay, and cuts
        of streams that the group no longer reads are ignored. Durable on return. Raises ReaderGroupError,
        StreamNotFoundError, MalformedStreamCutError, TimeUnknownError, ConfigError.
        """
        arguments.only("reset", changes, ("to", *GroupChanges.__annotations__))
        fields, streams = _fields(changes), self._streams_of(changes)
        before = self._fetched()
        read = before.config.start.keys() if streams is None else streams
        cuts, last = self._cuts_of(to, read), managing.last_cuts(before)
        ends = _bounds(self._client, read, changes["end"], "end") if "end" in changes else None
        for _ in range(_RESET_ATTEMPTS):
            config = self._fetched().config
            wanted = managing.changed_config(config, streams=streams, at=cuts, last=last, end=ends, **fields)
            if strange := cuts.keys() - wanted.start.keys() - config.start.keys():
                raise ReaderGroupError(
                    f"reader group {self.scope}/{self.name} does not read {', '.join(map(str, sorted(strange)))}"
                )
            # What cannot be is an error before anything is changed.
            self._check_left(config, wanted)
            start, end = self._begin_and_end(wanted)
            self._log.update_state(partial(managing.announce_change, seen=config))
            changed = self._controller.update_group(self.scope, self.name, wanted)
            now = changed or self._controller.group_config(self.scope, self.name)
            if now is None:
                raise ReaderGroupError(f"reader group {self.scope}/{self.name} was deleted")
            if changed is None:
                start, end = self._begin_and_end(now)
            self._log.update_state(partial(managing.reset, config=now, start=start, end=end))
            if changed is not None:
                return
        raise ReaderGroupError(
            f"reader group {self.scope}/{self.name} could not be reset: other processes keep resetting it"
        )

    def _streams_of(self, changes: GroupChanges) -> list[StreamName] | None:
        if "streams" not in changes:
            return None
        names = arguments.stream_names(changes["streams"], self._client.config.scope)
        return [self._client.require_stream(name) for name in names]

    def _cuts_of(self, to: Any, streams: Collection[StreamName]) -> dict[StreamName, StreamCut]:
        if to is None:
            return {}
        if isinstance(to, GroupCheckpoint | Mapping):
            return dict(to.cuts if isinstance(to, GroupCheckpoint) else to)
        if not isinstance(to, str):
            return arguments.own_cuts(to, "to")
        return {cut.stream: cut for cut in cuts_of(self._client, list(streams), to, "to", default="head")}

    def _check_left(self, config: GroupConfig, wanted: GroupConfig) -> None:
        """Raise ReaderGroupError for a stream without its subscriber: the server would search for it forever."""
        if config.retention is Retention.NONE:
            return
        kept = () if wanted.retention is Retention.NONE else wanted.start.keys()
        group = f"{self.scope}/{self.name}"
        for stream in config.start.keys() - kept:
            if not self._controller.stream_exists(stream) or group not in self._controller.subscribers(stream):
                raise ReaderGroupError(
                    f"reader group {group} cannot leave stream {stream}, which was deleted: with retention, remove a "
                    "stream from the group before you delete it; create a group with another name"
                )

    def _begin_and_end(self, config: GroupConfig) -> tuple[Ranged, Positions]:
        """Return the start and the end positions of a group with a configuration."""
        init = init_of(self._controller, config)
        begin = dict(init.start.positions)
        predecessors = {
            Segment(stream, after.range.id): tuple(after.predecessors)
            for stream, bound in config.start.items()
            if bound.cut is not None
            for number in bound.cut.positions
            for after in self._controller.successors(stream, number)
        }
        return Ranged.of(begin | managing.missing_from(begin, predecessors)), init.end

    def cancel_outstanding_checkpoints(self) -> None:
        """Give up all checkpoints that some readers have not taken yet, for example because a reader has failed.

        A :meth:`checkpoint` that waits for one of them raises ReaderGroupError. Durable on return.
        """
        self._fetched()
        self._log.update_state(managing.cancel_checkpoints)

    def segment_distribution(self) -> SegmentDistribution:
        """Return the number of segments of each reader, and of the segments without a reader."""
        state = self._fetched()
        return SegmentDistribution({r: len(owned) for r, owned in state.assigned.items()}, len(state.unassigned))

    def watch(self, interval: float = 5.0) -> Iterator[GroupNotification]:
        """Yield the number of segments and readers, first at once, and then after each change.

        The state is polled every ``interval`` seconds. The iterator ends after a notification with ``end_of_data``.
        Scale your readers with the number of segments, because a reader without a segment is idle.
        """
        arguments.seconds("interval", interval, optional=False)
        return self._notifications(interval)

    def _notifications(self, interval: float) -> Iterator[GroupNotification]:
        before: GroupNotification | None = None
        while True:
            state = self._fetched()
            found = GroupNotification(state.segments, state.readers, state.is_end_of_data)
            if found != before:
                before = found
                yield found
                if found.end_of_data:
                    return
                continue  # the caller may have taken longer than the interval
            io.sleep(interval)

    def unread_bytes(self) -> int:
        """Return the number of bytes between the last checkpoint and the ends of the streams or of the group."""
        state = self._fetched()
        total = 0
        for stream, cut in self._cuts_at(managing.unread_since(state)).items():
            bound = state.config.end.get(stream, Bound()).cut
            end = self._client.tail(stream) if bound is None else bound
            pieces = slices_between(self._client.stores, cut, end, skip_lost=True)
            total += sum(piece.end - piece.start for piece in pieces)
        return total

    def time_window(self, stream: Stream) -> TimeWindow:
        """Return the event times around the slowest reader of a stream, as Java's ``getCurrentTimeWindow`` does.

        Readers of both languages publish their positions every few seconds, so later events may have been read. Raises
        ReaderGroupError for a stream that the group does not read.
        """
        name = self._client.name(stream)
        told = self._fetched().last_read_of(name).positions
        if not told:
            raise ReaderGroupError(f"reader group {self.scope}/{self.name} does not read stream {name}")
        return self._client.time_window(by_stream(told)[name])

    def update_retention_cut(self, cuts: Iterable[StreamCut]) -> None:
        """Allow the truncation of the streams up to these cuts. Raises ReaderGroupError unless retention is manual."""
        config = self._fetched().config
        if config.retention is not Retention.MANUAL:
            raise ReaderGroupError(
                f"reader group {self.scope}/{self.name} was not created with retention='manual': it does not accept "
                "cuts from a program"
            )
        subscriber = SubscriberId(self.name, str(config.id), config.generation)
        for cut in cuts:
            self._controller.update_subscriber(subscriber, cut, scope=self.scope)

    def delete(self) -> bool:
        """Delete the group and its state. Return False if it does not exist. Its readers fail after that."""
        config = self._controller.group_config(self.scope, self.name)
        self.close()
        return config is not None and self._controller.delete_group(self.scope, self.name, config)

    def close(self) -> None:
        """Close the connection. The group and its readers are not affected."""
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
                f"reader group {self.scope}/{self.name} has no state yet: the process that creates it has not "
                "initialized it"
            )
        return state
