"""Operations on a group from outside of its readers, as functions of its state.

They return updates to write or values to show, and do no I/O. :meth:`StateSynchronizer.update_state` calls the
functions that return updates, and calls them again if another process wrote first. (Java: ``ReaderGroupImpl``.)
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from pravega_connector.errors import ReaderGroupError
from pravega_connector.reader_groups.protocol.state import (
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
from pravega_connector.reader_groups.protocol.updates import (
    ClearCheckpointsBefore,
    CreateCheckpoint,
    Init,
    RemoveOutstandingCheckpoints,
    RemoveReader,
    StateUpdate,
    UpdatingConfig,
)
from pravega_connector.wire import StreamCut, StreamName


def take_offline(state: GroupState, reader: str, position: Positions | None = None) -> list[StateUpdate]:
    """Return the updates that remove a reader; empty if it is not online.

    Its segments are read again from ``position``, or from the reader's last checkpoint if ``position`` is None.
    """
    return [RemoveReader(reader, position or {})] if reader in state.assigned else []


def begin_checkpoint(state: GroupState, name: str) -> list[StateUpdate]:
    """Return the updates that begin a checkpoint; empty if it has begun.

    Raises ReaderGroupError if too many checkpoints are outstanding.
    """
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
    """Return the name of a checkpoint that readers take without notifying the user."""
    return base64.b64encode(random).decode() + SILENT


def checkpoint_positions(state: GroupState, name: str) -> Positions | None:
    """Return the positions of a complete checkpoint; None while readers have not taken it.

    Raises ReaderGroupError for an abandoned checkpoint: a later one has begun, or the group was reset.
    """
    positions = state.checkpoints.positions.get(name)
    if positions is None:
        raise ReaderGroupError(
            f"checkpoint {name} was given up: a later one has begun, or the group was reset; begin another one"
        )
    return positions if state.checkpoints.is_complete(name) else None


def clear_before(name: str) -> list[StateUpdate]:
    """Return the updates that drop earlier checkpoints, after a checkpoint was taken."""
    return [ClearCheckpointsBefore(name)]


def cancel_checkpoints(state: GroupState) -> list[StateUpdate]:
    """Return the updates that drop the outstanding checkpoints; empty if there are none."""
    return [RemoveOutstandingCheckpoints()] if state.checkpoints.outstanding else []


def last_cuts(state: GroupState) -> dict[StreamName, StreamCut]:
    """Return the stream cuts of the last complete checkpoint; empty if there is none."""
    return by_stream(state.checkpoints.last)


def missing_from(positions: Positions, predecessors: Mapping[Segment, tuple[int, ...]]) -> dict[Segment, int]:
    """Return segments to add, as read to their ends, so that a group can restart at a checkpoint's positions.

    ``predecessors`` has the predecessors of each segment that follows a segment of the checkpoint. A checkpoint omits
    segments that were completed before it. If such a segment has a successor that also waits for another one, a group
    that begins there would wait forever.
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
    """Return the configuration with which a group restarts: ``config`` with other streams and ``settings``.

    ``settings`` are fields of the configuration. Each stream begins at its cut in ``at``, otherwise at the ``last``
    checkpoint, otherwise at its configured start. A new stream begins at its head. Without ``streams``, the group reads
    the same streams. Without ``end``, the streams that it still reads keep their ends. Cuts of other streams are
    ignored. Raises ConfigError for a configuration that Java's clients refuse.
    """
    read = config.start if streams is None else streams
    cuts = {**last, **at}
    start = {stream: Bound(cuts[stream]) if stream in cuts else config.start.get(stream, Bound()) for stream in read}
    ends = {stream: config.end.get(stream, Bound()) for stream in start} if end is None else end
    changed = replace(config, start=start, end=ends, **settings)
    changed.check()
    return changed


def announce_change(state: GroupState, seen: GroupConfig) -> list[StateUpdate]:
    """Return the updates to write before the controller is asked to change the configuration.

    The list is empty if the configuration is no longer ``seen``.
    """
    return [UpdatingConfig(updating=True)] if state.config == seen and not state.updating else []


def reset(state: GroupState, config: GroupConfig, start: Ranged, end: Positions) -> list[StateUpdate]:
    """Return the updates that restart the group with the controller's configuration; empty if it has restarted."""
    return [Init(config, start, end)] if state.config.generation < config.generation else []


def told_positions(state: GroupState) -> dict[Segment, int]:
    """Return the readers' positions as last reported.

    For a segment without a reader, it is the offset at which the next reader begins.
    """
    return dict(state.unassigned) | {
        segment: _later(at, state.last_read.get(segment, at))
        for owned in state.assigned.values()
        for segment, at in owned.items()
    }


def _later(one: int, other: int) -> int:
    return END_OF_SEGMENT if END_OF_SEGMENT in (one, other) else max(one, other)


def unread_since(state: GroupState) -> Positions:
    """Return the positions after which data is unread: the last checkpoint, or the acquired offsets."""
    return state.checkpoints.last or state.positions
