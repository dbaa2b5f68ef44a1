"""A segment-level Pravega client in Python: streams, stream cuts, writers, readers. No Spark is needed."""

from connector.client._blocks import MAX_EVENT_SIZE
from connector.client._client import PravegaClient
from connector.client._controller import ControllerClient
from connector.client._cuts import Lineage, tail_cut
from connector.client._lease_keeper import LeaseKeeper
from connector.client._numbered_appender import NumberedAppender
from connector.client._policies import RetentionPolicy, ScalingPolicy, StreamConfig, Successor
from connector.client._reader import EventBatch, SegmentSlice, read_chunks, read_slice, read_slices, slices_between
from connector.client._revisioned import RevisionedStreamClient
from connector.client._revisions import Revision
from connector.client._sealed_lengths import sealed_lengths
from connector.client._shared import has_answered, note_answer, shared_client
from connector.client._stores import SegmentInfo, SegmentStores
from connector.client._subscribers import Subscriber
from connector.client._synchronizer import StateSynchronizer
from connector.client._tail import TailReader
from connector.client._transaction_status import CreatedTransaction, TransactionStatus
from connector.client._transactions import DEFAULT_LEASE, OpenTransaction, Transaction, TransactionalWriter
from connector.client._watermarks import SegmentTimes, TimeWindow, WatermarkLog
from connector.client._writer import EventWriter
from connector.wire import StreamCut, StreamName, Watermark

__all__ = [
    "DEFAULT_LEASE",
    "MAX_EVENT_SIZE",
    "ControllerClient",
    "CreatedTransaction",
    "EventBatch",
    "EventWriter",
    "LeaseKeeper",
    "Lineage",
    "NumberedAppender",
    "OpenTransaction",
    "PravegaClient",
    "RetentionPolicy",
    "Revision",
    "RevisionedStreamClient",
    "ScalingPolicy",
    "SegmentInfo",
    "SegmentSlice",
    "SegmentStores",
    "SegmentTimes",
    "StateSynchronizer",
    "StreamConfig",
    "StreamCut",
    "StreamName",
    "Subscriber",
    "Successor",
    "TailReader",
    "TimeWindow",
    "Transaction",
    "TransactionStatus",
    "TransactionalWriter",
    "Watermark",
    "WatermarkLog",
    "has_answered",
    "note_answer",
    "read_chunks",
    "read_slice",
    "read_slices",
    "sealed_lengths",
    "shared_client",
    "slices_between",
    "tail_cut",
]
