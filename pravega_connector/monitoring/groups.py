"""Insight into reader groups: who reads what, and how far the group is behind. Nothing is written to the group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import ReaderGroupError, ReaderGroupNotFoundError
from pravega_connector.monitoring.lag import SegmentLag, StreamLag, note_lag, stream_lag
from pravega_connector.reader.slices import slices_between
from pravega_connector.reader_group_protocol import GroupConfig, GroupState, Segment, by_stream
from pravega_connector.reader_group_protocol.administration import missing_from, told_positions
from pravega_connector.wire import StreamCut, StreamName


@dataclass(frozen=True, slots=True)
class GroupView:
    """A reader group at one moment."""

    scope: str
    name: str
    config: GroupConfig
    state: GroupState | None
    """None for one that has no readers and cannot have any yet: a subscriber."""

    def __str__(self) -> str:
        return f"{self.scope}/{self.name}"

    @property
    def positions(self) -> dict[Segment, int]:
        """Where its readers are, as far as they have told; END_OF_SEGMENT behind the last event of an ended segment."""
        return {} if self.state is None else told_positions(self.state)

    def reader_of(self, segment: Segment) -> str | None:
        """The reader that owns a segment."""
        assigned = {} if self.state is None else self.state.assigned
        return next((reader for reader, owned in assigned.items() if segment in owned), None)

    def to_json(self) -> dict[str, Any]:
        """JSON of the view: cuts as Java's text, segments by their full names, seconds."""
        config = self.config
        value: dict[str, Any] = {
            "group": str(self),
            "id": str(config.id),
            "generation": config.generation,
            "streams": [str(stream) for stream in config.start],
            "start": {str(s): None if bound.cut is None else str(bound.cut) for s, bound in config.start.items()},
            "end": {str(s): str(bound.cut) for s, bound in config.end.items() if bound.cut is not None},
            "checkpoint_interval": config.checkpoint_ms / 1000 if config.checkpoint_ms > 0 else None,
            "refresh": config.refresh_ms / 1000,
            "max_outstanding": config.max_outstanding,
            "retention": config.retention.name.lower(),
        }
        if (state := self.state) is None:
            return value | {"readers": None}
        at, checkpoints = self.positions, state.checkpoints
        return value | {
            "readers": {reader: {str(s): at[s] for s in owned} for reader, owned in sorted(state.assigned.items())},
            "unassigned": {str(segment): offset for segment, offset in state.unassigned.items()},
            "waiting": {
                str(segment): [str(Segment(segment.stream, before)) for before in missing]
                for segment, missing in state.future.items()
            },
            "checkpoints": {name: sorted(checkpoints.waiting[name]) for name in checkpoints.outstanding},
            "last_checkpoint": {str(stream): str(cut) for stream, cut in by_stream(checkpoints.last).items()},
            "at_end": state.is_end_of_data,
        }


def group_view(client: PravegaClient, name: str) -> GroupView:
    """A group as it is now. Raises ReaderGroupNotFoundError."""
    from pravega_connector.client.reader_group import ReaderGroup  # noqa: PLC0415 - lag and watch do without

    found = client.name(name)
    config = client.controller.group_config(found.scope, found.stream)
    if config is None:
        raise ReaderGroupNotFoundError(
            f"there is no reader group {found}: pravega-serde group list shows those of a scope"
        )
    with ReaderGroup(client, found.scope, found.stream) as group:
        try:
            state: GroupState | None = group.state
        except ReaderGroupError:  # nobody has begun it
            state = None
    return GroupView(found.scope, found.stream, config if state is None else state.config, state)


def group_lag(client: PravegaClient, view: GroupView, *, reader: str | None = None) -> list[StreamLag]:
    """Lag of a group in each of its streams, to the stream's end, or to where the group ends.

    It counts from what the readers have told, which they do every few seconds: what they read since is counted as
    well. With the name of a ``reader`` it is also a metric of this process. Raises ReaderGroupError for a group
    without a state.
    """
    if view.state is None:
        raise ReaderGroupError(
            f"reader group {view} has no state, so nobody can tell where it is: it is a subscriber, or not begun"
        )
    positions = view.positions
    positions |= missing_from(positions, _waiting_for(client, view.state))
    cuts = by_stream(positions)
    found = [_lag(client, cuts.get(stream, StreamCut(stream, {})), view.config) for stream in view.config.start]
    if reader is not None:
        for lag in found:
            note_lag(lag, reader)
    return found


def _waiting_for(client: PravegaClient, state: GroupState) -> dict[Segment, tuple[int, ...]]:
    """All predecessors of the segments that wait for some of them: a cut names those too that are read already."""
    found: dict[Segment, tuple[int, ...]] = {}
    for segment, missing in state.future.items():
        for after in client.controller.successors(segment.stream, next(iter(missing))):
            found[Segment(segment.stream, after.range.id)] = tuple(after.predecessors)
    return found


def _lag(client: PravegaClient, cut: StreamCut, config: GroupConfig) -> StreamLag:
    if not cut.positions:  # sealed, and read to its end
        return StreamLag(cut.stream, (), ())
    known, ended = _offsets(client, cut.stream, cut.positions)
    bound = config.end.get(cut.stream)
    if bound is not None and bound.cut is not None:
        pieces = slices_between(client.stores, known, bound.cut, skip_lost=True)
        return StreamLag(
            cut.stream, tuple(SegmentLag(p.stream, p.segment_id, p.start, p.end, None) for p in pieces), ()
        )
    found = stream_lag(client, known)
    # Of what is gone the length may be unknown; that it was read is known.
    losses = tuple(loss for loss in found.losses if loss.deleted or loss.segment_id not in ended)
    return StreamLag(cut.stream, found.segments, losses, found.exists)


def _offsets(client: PravegaClient, stream: StreamName, positions: Mapping[int, int]) -> tuple[StreamCut, set[int]]:
    """A cut with the lengths of the segments that were read to their ends; and which these are."""
    ended = {number for number, at in positions.items() if at < 0}
    infos = client.stores.segment_infos(stream, ended) if ended else {}
    known = {n: at if at >= 0 else infos[n].write_offset if infos[n].exists else 0 for n, at in positions.items()}
    return StreamCut(stream, known), ended
