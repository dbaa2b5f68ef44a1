"""Monitoring of reader groups: the segments of each reader, and the lag of the group.

It writes nothing to the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.client.reader_group import ReaderGroup
from pravega_connector.errors import ReaderGroupError, ReaderGroupNotFoundError
from pravega_connector.lag import SegmentLag, StreamLag, note_lag, stream_lag
from pravega_connector.reader.slices import slices_between
from pravega_connector.reader_groups.protocol import GroupConfig, GroupState, Segment, by_stream
from pravega_connector.reader_groups.protocol.administration import missing_from, told_positions
from pravega_connector.wire import StreamCut, StreamName


@dataclass(frozen=True, slots=True)
class GroupView:
    """State of a reader group at one moment."""

    scope: str
    name: str
    config: GroupConfig
    state: GroupState | None
    """None for a group that cannot have readers yet: a subscriber."""

    def __str__(self) -> str:
        return f"{self.scope}/{self.name}"

    @property
    def positions(self) -> dict[Segment, int]:
        """Positions of the readers, as last reported.

        END_OF_SEGMENT is the position after the last event of a segment that has ended.
        """
        return {} if self.state is None else told_positions(self.state)

    def reader_of(self, segment: Segment) -> str | None:
        """Return the reader that owns a segment."""
        assigned = {} if self.state is None else self.state.assigned
        return next((reader for reader, owned in assigned.items() if segment in owned), None)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of the view: cuts as Java's text, segments by their full names, times in seconds."""
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
    """Return the current state of a group. Raises ReaderGroupNotFoundError."""
    found = client.name(name)
    config = client.controller.group_config(found.scope, found.stream)
    if config is None:
        raise ReaderGroupNotFoundError(
            f"reader group {found} does not exist; pravega-serde group list SCOPE lists the groups of a scope"
        )
    with ReaderGroup(client, found.scope, found.stream) as group:
        try:
            state: GroupState | None = group.state
        except ReaderGroupError:  # the group was not initialized by a reader
            state = None
    return GroupView(found.scope, found.stream, config if state is None else state.config, state)


def group_lag(client: PravegaClient, view: GroupView, *, reader: str | None = None) -> list[StreamLag]:
    """Return the lag of a group in each of its streams, up to the end of the stream or the end of the group.

    The lag counts from the positions that the readers report every few seconds. So events that were read after the last
    report are still counted. If you pass the name of a ``reader``, the lag is also a metric of this process. Raises
    ReaderGroupError for a group without a state.
    """
    if view.state is None:
        raise ReaderGroupError(
            f"reader group {view} has no state and so no position: it is a subscriber, or no reader has joined it"
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
    """Return all predecessors of the segments that wait for some of them.

    A cut also names the predecessors that are already read.
    """
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
    # The length of a deleted segment may be unknown, but it is known that it was read.
    losses = tuple(loss for loss in found.losses if loss.deleted or loss.segment_id not in ended)
    return StreamLag(cut.stream, found.segments, losses, found.exists)


def _offsets(client: PravegaClient, stream: StreamName, positions: Mapping[int, int]) -> tuple[StreamCut, set[int]]:
    """Return a cut with the lengths of the segments that were read to their ends, and the ids of these segments."""
    ended = {number for number, at in positions.items() if at < 0}
    infos = client.stores.segment_infos(stream, ended) if ended else {}
    known = {n: at if at >= 0 else infos[n].write_offset if infos[n].exists else 0 for n, at in positions.items()}
    return StreamCut(stream, known), ended
