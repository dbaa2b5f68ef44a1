"""Tasks of a read: which slices share a task, and the partition by which Spark passes a task to an executor."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.reader.watermarks import SegmentTimes
from pravega_connector.spark.pickling import Exchanged
from pravega_connector.spark.versions import InputPartition
from pravega_connector.stores.segment_stores import SegmentPlace
from pravega_connector.wire import SegmentRange

#: Bytes of several segments that one task reads. Reading less takes less time than the start of a Spark task.
TASK_BYTES: Final = 256 * 1024
# Cost of a request to a segment, in bytes, so that a task has at most 16 segments.
_SEGMENT_BYTES: Final = 16 * 1024


@dataclass(frozen=True)
class SlicesPartition(Exchanged, InputPartition):  # type: ignore[misc]
    """Ranges of segments that one task reads, one after the other.

    ``times`` are the event times along each range. ``places`` are the segment stores of the segments, as known to the
    driver. So a new process neither calls the controller nor loads gRPC. ``stop`` is the offset from which a filter
    rejects all events. ``owned`` has the routing keys of each segment, if the task filters events by their keys.
    """

    slices: tuple[SegmentSlice, ...]
    times: tuple[SegmentTimes, ...]
    places: tuple[SegmentPlace | None, ...]
    stop: int | None = None
    owned: tuple[SegmentRange, ...] = ()


def partitions_of(
    client: PravegaClient | None,
    slices: Sequence[SegmentSlice],
    times: Iterable[SegmentTimes],
    task_bytes: int,
    *,
    stop: int | None = None,
    owned: Callable[[SegmentSlice], SegmentRange] | None = None,
) -> list[InputPartition]:
    """Return the partitions of slices, in order. ``client``, if not None, may know their segment stores.

    ``owned`` returns the routing keys of a segment, if tasks filter events by their keys.
    """

    def place(piece: SegmentSlice) -> SegmentPlace | None:
        return None if client is None else client.stores.known_place(piece.stream, piece.segment_id)

    along = iter(times)
    return [
        SlicesPartition(
            tuple(task),
            tuple(itertools.islice(along, len(task))),
            tuple(place(piece) for piece in task),
            stop,
            () if owned is None else tuple(map(owned, task)),
        )
        for task in shared_tasks(slices, task_bytes)
    ]


def shared_tasks(slices: Iterable[SegmentSlice], task_bytes: int) -> list[list[SegmentSlice]]:
    """Return the slices of each task, in order: small neighbors share a task.

    If ``task_bytes`` is 0, each slice has its own task.
    """
    tasks: list[list[SegmentSlice]] = []
    room = 0
    for piece in slices:
        size = piece.end - piece.start + _SEGMENT_BYTES
        if tasks and size <= room:
            tasks[-1].append(piece)
        else:
            tasks.append([piece])
            room = task_bytes
        room -= size
    return tasks
