"""Pravega's wire protocol without any input or output: names, stream cuts, event frames."""

from connector.wire._boundaries import MAX_EVENT_SIZE, walk_frames
from connector.wire._cuts import StreamCut
from connector.wire._framing import FramedColumn, frame_column, frame_events
from connector.wire._names import (
    SegmentRange,
    StreamName,
    parse_segment_name,
    segment_epoch,
    segment_id,
    segment_name,
    segment_number,
    split_transaction,
    transaction_segment_name,
    validate_scope_name,
)
from connector.wire._parsing import EventColumn, FrameParser

__all__ = [
    "MAX_EVENT_SIZE",
    "EventColumn",
    "FrameParser",
    "FramedColumn",
    "SegmentRange",
    "StreamCut",
    "StreamName",
    "frame_column",
    "frame_events",
    "parse_segment_name",
    "segment_epoch",
    "segment_id",
    "segment_name",
    "segment_number",
    "split_transaction",
    "transaction_segment_name",
    "validate_scope_name",
    "walk_frames",
]
