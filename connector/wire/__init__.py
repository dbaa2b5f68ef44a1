"""Pravega's wire protocol without any input or output: names, stream cuts, event frames."""

from connector.wire._cuts import StreamCut
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

__all__ = [
    "SegmentRange",
    "StreamCut",
    "StreamName",
    "parse_segment_name",
    "segment_epoch",
    "segment_id",
    "segment_name",
    "segment_number",
    "split_transaction",
    "transaction_segment_name",
    "validate_scope_name",
]
