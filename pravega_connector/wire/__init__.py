"""Pravega's wire protocol without I/O.

- ``names``: streams and segments.
- ``cuts`` and ``pointers``: stream cuts and event pointers as Java writes them.
- ``table_lists``: keys, entries and versions of key-value tables in messages.
- ``messages``: each message of the segment store's protocol, declared once. ``codec`` encodes and decodes them.
- ``replies``: the replies that belong to a request.
- ``append_session`` and ``range_read``: the two exchanges with a segment that need more than one request.
- ``frames``: columns of events to a segment's bytes. ``frame_parser`` reads these, ``frame_walk`` finds the boundaries.
- ``versioned``: Java's VersionedSerializer.
- ``internal_records``: Pravega's own records in that form, such as watermarks and lengths of sealed segments.
"""

from pravega_connector.wire import messages
from pravega_connector.wire.append_session import AppendSession, AppendState, Block
from pravega_connector.wire.codec import MAX_FRAME_SIZE, MessageDecoder, decode, encode, parse_header
from pravega_connector.wire.cuts import StreamCut
from pravega_connector.wire.frame_parser import EventColumn, FrameParser, ReceiveBuffer
from pravega_connector.wire.frame_walk import EVENT_HEADER_SIZE, MAX_READABLE_EVENT, walk_frames
from pravega_connector.wire.frames import FramedColumn, frame_column, frame_events
from pravega_connector.wire.internal_records import (
    MARK_PREFIX,
    SCOPES_TABLE,
    TABLES,
    Watermark,
    decode_sealed_lengths,
    decode_watermark,
    mark_stream,
    metadata_table,
    read_table,
    sealed_key,
    streams_table,
)
from pravega_connector.wire.messages import *  # a message is declared only in its module
from pravega_connector.wire.names import (
    SegmentRange,
    StreamName,
    TableName,
    parse_segment_name,
    segment_epoch,
    segment_id,
    segment_name,
    segment_number,
    split_transaction,
    table_of,
    transaction_segment_name,
    validate_scope_name,
)
from pravega_connector.wire.pointers import EventPointer
from pravega_connector.wire.range_read import READ_CHUNK, RangeRead
from pravega_connector.wire.replies import answers
from pravega_connector.wire.table_lists import ANY_VERSION, NO_ENTRY, WireEntry, WireKey, entry_size, key_size

__all__ = [
    "ANY_VERSION",
    "EVENT_HEADER_SIZE",
    "MARK_PREFIX",
    "MAX_FRAME_SIZE",
    "MAX_READABLE_EVENT",
    "NO_ENTRY",
    "READ_CHUNK",
    "SCOPES_TABLE",
    "TABLES",
    "AppendSession",
    "AppendState",
    "Block",
    "EventColumn",
    "EventPointer",
    "FrameParser",
    "FramedColumn",
    "MessageDecoder",
    "RangeRead",
    "ReceiveBuffer",
    "SegmentRange",
    "StreamCut",
    "StreamName",
    "TableName",
    "Watermark",
    "WireEntry",
    "WireKey",
    "answers",
    "decode",
    "decode_sealed_lengths",
    "decode_watermark",
    "encode",
    "entry_size",
    "frame_column",
    "frame_events",
    "key_size",
    "mark_stream",
    "metadata_table",
    "parse_header",
    "parse_segment_name",
    "read_table",
    "sealed_key",
    "segment_epoch",
    "segment_id",
    "segment_name",
    "segment_number",
    "split_transaction",
    "streams_table",
    "table_of",
    "transaction_segment_name",
    "validate_scope_name",
    "walk_frames",
]
__all__ += messages.__all__
