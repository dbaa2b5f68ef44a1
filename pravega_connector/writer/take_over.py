"""Completion of blocks that a writer outside this process has sent, in whole, in part, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from pravega_connector.core.deadline import Deadline
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import SegmentRange
from pravega_connector.writer.append_loop import AppendLoop
from pravega_connector.writer.event_writer import MAX_IN_FLIGHT
from pravega_connector.writer.inbox import Blocks, Inbox
from pravega_connector.writer.routing import Destination, Routes


def complete(
    stores: SegmentStores,
    destination: Destination,
    ranges: Sequence[SegmentRange],
    blocks: Blocks,
    deadline: Deadline,
) -> None:
    """Return when the segments have the events of all blocks, once each.

    ``ranges`` are the segments that the other writer knew. Each block has its ``sender``, and the blocks of a segment
    are all that the segment may lack, in order. Raises the errors of a flush.
    """
    inbox = Inbox(Routes(destination.stream, ranges))
    with inbox.lock:
        inbox.hand_over(blocks)
    loop = AppendLoop(stores, destination, inbox, max_in_flight=MAX_IN_FLIGHT)
    try:
        loop.flush(deadline)
    finally:
        loop.close()
