"""``mirror``: copy the events of a stream to another cluster, exactly once and in order per routing key."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.controller.targets import check_target, target_of
from pravega_connector.core.arguments import Position
from pravega_connector.errors import StepsStateError, StreamNotFoundError
from pravega_connector.exactly_once.steps import Life, StepLog
from pravega_connector.exactly_once.steps.takeover import Resolution, resolutions, this_run
from pravega_connector.lag import StreamLag, stream_lag
from pravega_connector.operations.mirror.circle import check_no_circle, check_not_itself, mirror_id
from pravega_connector.operations.mirror.copier import Copier, MirrorCounts, MirrorSettings, positions_of
from pravega_connector.operations.mirror.destination import Destination
from pravega_connector.operations.mirror.source import Source
from pravega_connector.reader.positions import cuts_of, valid_cut
from pravega_connector.wire import StreamCut, StreamName

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """Position of a mirror."""

    source: StreamCut | None
    """Cut of the source after the mirrored events; None before the first step."""
    destination: StreamCut | None
    """Cut of the destination after the same events; None while a step is open."""
    lag: StreamLag | None
    """Events of the source after the cut; None before the first step."""
    aligned: bool
    """True if the destination's segments have the key ranges of the source's segments at the cut."""


@dataclass(frozen=True, slots=True)
class MirrorSummary:
    """Outcome of one run."""

    counts: MirrorCounts
    sealed: bool
    """True if the source is sealed, and the destination has all its events."""


def mirror(
    source: StreamName | str,
    destination: StreamName | str,
    *,
    source_client: PravegaClient | PravegaConfig | None = None,
    destination_client: PravegaClient | PravegaConfig | None = None,
    name: str = "mirror",
    start: Position | None = None,
    settings: MirrorSettings | None = None,
    takeover_after: float | None = None,
    resolve: Mapping[UUID, Resolution] | Mapping[str, Resolution] | None = None,
    on_progress: Callable[[str, MirrorCounts], None] = lambda _what, _counts: None,
) -> MirrorSummary:
    """Copy the events of a stream that the destination does not have yet, each once, in order per routing key.

    The destination is created if it does not exist. ``name`` identifies the mirror: its state is the stream
    ``<destination>-<name>`` next to the destination. A run resumes where the last run of this name ended. ``start`` is
    a position in the source for the first run, by default its head. After ``takeover_after`` seconds without a step, a
    run takes over from another one, by default after its lease. ``resolve`` has the operator's decision about
    each transaction that the servers have forgotten, by its id. ``on_progress`` is called with the current activity and
    the counts so far.

    On return, all events are durable and committed. Raises StreamNotFoundError, StreamSealedError, DataLossError,
    StepUndecidedError, StepsStateError, ConfigError, MalformedStreamCutError, and the errors of the clients.
    """
    settings, resolution = settings or MirrorSettings(), resolutions(resolve)
    with _streams(source, destination, source_client, destination_client, name) as streams:
        found = Source(streams.source_client.stores, streams.source, skip_lost=settings.skip_lost)
        begin = streams.start(start)
        streams.check()
        streams.create_target()
        with this_run() as me, streams.open_steps(found) as steps:
            copier = Copier(
                (streams.source_client, streams.target_client),
                found,
                streams.target,
                begin,
                steps=steps,
                me=me,
                settings=settings,
                takeover_after=takeover_after,
                resolution=resolution,
                on_progress=on_progress,
            )
            copier.run()
    return MirrorSummary(copier.counts, copier.sealed)


def mirror_status(
    source: StreamName | str,
    destination: StreamName | str,
    *,
    source_client: PravegaClient | PravegaConfig | None = None,
    destination_client: PravegaClient | PravegaConfig | None = None,
    name: str = "mirror",
) -> MirrorStatus:
    """Return the position of a mirror, and its lag. Nothing is written.

    Raises StreamNotFoundError if a stream does not exist, or if no mirror of this name has run, and StepsStateError.
    """
    with _streams(source, destination, source_client, destination_client, name) as streams:
        streams.source_client.require_stream(streams.source)
        for stream in (streams.target, streams.state):
            streams.target_client.require_stream(stream)
        found = Source(streams.source_client.stores, streams.source)
        with streams.open_steps(found) as steps:
            state = steps.read()
            positions, revision, is_open = positions_of(state.positions), steps.revision, bool(state.steps)
            if not positions:
                return MirrorStatus(None, None, None, aligned=False)
            tail = None if is_open else streams.target_client.tail(streams.target)
            steps.read()
            if steps.revision != revision:  # a step has begun: its events may be before the tail
                tail = None
        cut, ranges = StreamCut(streams.source, positions), [found.lineage.range_of(i) for i in positions]
        aligned = Destination(streams.target_client.stores, streams.target).is_aligned(ranges)
        return MirrorStatus(cut, tail, stream_lag(streams.source_client, cut), aligned)


@dataclass(frozen=True)
class _Streams:
    """Streams of a mirror, and the clients of their clusters."""

    source_client: PravegaClient
    target_client: PravegaClient
    source: StreamName
    target: StreamName
    state: StreamName

    def start(self, place: Position | None) -> StreamCut:
        """Return the cut at a position in the source."""
        (cut,) = cuts_of(self.source_client, [self.source], place, "start", default="earliest")
        return cut if place is None else valid_cut(self.source_client, cut)

    def check(self) -> None:
        """Raise ConfigError for a mirror of a stream to itself, and for a new mirror that closes a circle.

        Raises InvalidNameError for a destination that has no events, such as a ledger.
        """
        check_target(self.target_client.controller, self.target)
        sides = self.source_client, self.source, self.target_client, self.target
        check_not_itself(*sides)
        if not self.target_client.controller.stream_exists(self.state):
            check_no_circle(*sides)

    def create_target(self) -> None:
        """Create the destination with the settings of the source, unless it exists.

        Raises StreamNotFoundError if it was deleted.
        """
        controller = self.target_client.controller
        if controller.stream_exists(self.target):
            return
        if controller.stream_exists(self.state):
            raise StreamNotFoundError(
                f"stream {self.target} was deleted, but the state of its mirror exists: use another name for it, or "
                f"delete stream {self.state}"
            )
        config = self.source_client.controller.stream_config(self.source)
        Destination(self.target_client.stores, self.target).create(config)
        _log.info("stream %s was created", self.target)

    def open_steps(self, source: Source) -> StepLog:
        """Open the log of the mirror. Raises StepsStateError for the log of another one."""
        own = mirror_id(source.identity, target_of(self.target_client.controller, self.target))
        steps = StepLog(self.target_client.stores, self.state, Life(own))
        if steps.life.id != own:
            steps.close()
            raise StepsStateError(
                f"stream {self.state} keeps the state of the {steps.life.id}, not of the {own}: the numbers differ if "
                "a stream was recreated; use another name for the mirror"
            )
        return steps


@contextmanager
def _streams(
    source: StreamName | str,
    destination: StreamName | str,
    source_client: PravegaClient | PravegaConfig | None,
    destination_client: PravegaClient | PravegaConfig | None,
    name: str,
) -> Iterator[_Streams]:
    """Yield the streams of a mirror. The end of the block closes the clients that were created for it."""
    with ExitStack() as stack:

        def client_of(given: PravegaClient | PravegaConfig | None) -> PravegaClient:
            return given if isinstance(given, PravegaClient) else stack.enter_context(PravegaClient(given))

        origin, client = client_of(source_client), client_of(destination_client)
        target = client.name(destination)
        state = StreamName(target.scope, f"{target.stream}-{name}")
        yield _Streams(origin, client, origin.name(source), target, state)
