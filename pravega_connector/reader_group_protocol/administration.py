"""What is done to a group from outside of its readers, as functions of its state: what to write, and what it shows.

They do no I/O: :meth:`StateSynchronizer.update_state` takes the former as they are, and calls them again whenever
somebody else was faster. (Java: ``ReaderGroupImpl``.)
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from pravega_connector.errors import ReaderGroupError
from pravega_connector.reader_group_protocol.state import (
    END_OF_SEGMENT,
    SILENT,
    Bound,
    GroupConfig,
    GroupState,
    Positions,
    Ranged,
    Segment,
    by_stream,
)
from pravega_connector.reader_group_protocol.updates import (
    ClearCheckpointsBefore,
    CreateCheckpoint,
    Init,
    RemoveReader,
    StateUpdate,
    UpdatingConfig,
)
from pravega_connector.wire import StreamCut, StreamName


def take_offline(state: GroupState, reader: str, position: Positions | None = None) -> list[StateUpdate]:
    """Updates that take a reader offline; none if it is not online.

    Its segments are read again from ``position``, or where it is None from the reader's last checkpoint.
    """
    return [RemoveReader(reader, position or {})] if reader in state.assigned else []


def begin_checkpoint(state: GroupState, name: str) -> list[StateUpdate]:
    """Updates that begin a checkpoint; none if it has begun. Raises ReaderGroupError if too many are under way."""
    if name in state.checkpoints.positions:
        return []
    most = state.config.max_outstanding
    if len(under_way := state.checkpoints.outstanding) >= most:
        raise ReaderGroupError(
            f"checkpoint {name} cannot begin: {len(under_way)} are under way ({', '.join(under_way[:3])}), and the "
            f"group allows {most}; wait until its readers have taken them"
        )
    return [CreateCheckpoint(name)]


def silent_name(random: bytes) -> str:
    """Name of a checkpoint that readers take without a word to the user."""
    return base64.b64encode(random).decode() + SILENT


def checkpoint_positions(state: GroupState, name: str) -> Positions | None:
    """Positions of a checkpoint that is complete; None while readers have not taken it.

    Raises ReaderGroupError for one that was given up: a later one has begun, or the group was reset.
    """
    positions = state.checkpoints.positions.get(name)
    if positions is None:
        raise ReaderGroupError(
            f"checkpoint {name} was given up: a later one has begun, or the group was reset; begin another one"
        )
    return positions if state.checkpoints.is_complete(name) else None


def clear_before(name: str) -> list[StateUpdate]:
    """Updates after a checkpoint was taken: earlier ones are needed no more."""
    return [ClearCheckpointsBefore(name)]


def last_cuts(state: GroupState) -> dict[StreamName, StreamCut]:
    """Cuts of the last complete checkpoint; empty if there is none."""
    return by_stream(state.checkpoints.last)


def missing_from(positions: Positions, predecessors: Mapping[Segment, tuple[int, ...]]) -> dict[Segment, int]:
    """Segments to add, as read to their ends, so that a group can begin again at positions of a checkpoint.

    ``predecessors`` has those of all segments that follow one of the checkpoint's. A checkpoint leaves out what was
    completed before it; where such a segment has a successor that waits for another one, a group that begins there
    would wait for it for ever.
    """
    needed = {
        Segment(successor.stream, before)
        for successor, ids in predecessors.items()
        if any(Segment(successor.stream, id_) in positions for id_ in ids) and successor not in positions
        for before in ids
    }
    return {segment: -1 for segment in sorted(needed) if segment not in positions}


def changed_config(
    config: GroupConfig,
    *,
    streams: Collection[StreamName] | None = None,
    at: Mapping[StreamName, StreamCut],
    last: Mapping[StreamName, StreamCut],
    end: Mapping[StreamName, Bound] | None = None,
    **settings: Any,
) -> GroupConfig:
    """Configuration with which a group begins again: ``config`` with other ``settings``, its fields, and streams.

    Each stream begins at its cut ``at``; else at the ``last`` checkpoint; else where it was told to begin before, a new
    one at its head. Without ``streams`` the group reads the same; without ``end`` those that it reads still end where
    they did. Cuts of others are left out. Raises ConfigError for one that Java's clients do not take.
    """
    read = config.start if streams is None else streams
    cuts = {**last, **at}
    start = {stream: Bound(cuts[stream]) if stream in cuts else config.start.get(stream, Bound()) for stream in read}
    ends = {stream: config.end.get(stream, Bound()) for stream in start} if end is None else end
    changed = replace(config, start=start, end=ends, **settings)
    changed.check()
    return changed


def announce_change(state: GroupState, seen: GroupConfig) -> list[StateUpdate]:
    """Updates before the controller is asked for another configuration; none if it is not the one that was seen."""
    return [UpdatingConfig(updating=True)] if state.config == seen and not state.updating else []


def reset(state: GroupState, config: GroupConfig, start: Ranged, end: Positions) -> list[StateUpdate]:
    """Updates that begin the group again, as the controller has it; none if it has begun so already."""
    return [Init(config, start, end)] if state.config.generation < config.generation else []


def told_positions(state: GroupState) -> dict[Segment, int]:
    """Where the readers are, as far as they have told; what has no reader is where the next one begins."""
    return dict(state.unassigned) | {
        segment: _later(at, state.last_read.get(segment, at))
        for owned in state.assigned.values()
        for segment, at in owned.items()
    }


def _later(one: int, other: int) -> int:
    return END_OF_SEGMENT if END_OF_SEGMENT in (one, other) else max(one, other)


def unread_since(state: GroupState) -> Positions:
    """Positions from which on data counts as unread: the last checkpoint, or where the segments were acquired."""
    return state.checkpoints.last or state.positions
