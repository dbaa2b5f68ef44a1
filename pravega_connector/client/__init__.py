"""The Pravega client: streams, stream cuts, writers, readers, transactions and tables, without Spark.

A program starts with :class:`PravegaClient`. The classes of reader groups and of Arrow columns are loaded on first
access, because most programs do not use them.
"""

import sys
from typing import TYPE_CHECKING, Any

from pravega_connector.client.administration import StreamDescription
from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.core.values import RetentionPolicy, ScalingPolicy, StreamConfig, TransactionStatus
from pravega_connector.reader.slices import EventBatch
from pravega_connector.reader.stream_reader import StreamsReader, ValueReader
from pravega_connector.reader.tail import TailReader
from pravega_connector.reader.watermarks import TimeWindow
from pravega_connector.reader_groups.subscriber import Subscriber
from pravega_connector.single_segment.revisioned import Revision, RevisionedStreamClient
from pravega_connector.single_segment.synchronizer import StateSynchronizer
from pravega_connector.wire import EventPointer, StreamCut, StreamName, Watermark
from pravega_connector.writer.event_writer import EventWriter
from pravega_connector.writer.transactions import LeaseKeeper, Transaction, TransactionalWriter
from pravega_serde.public_names import unknown_name

if TYPE_CHECKING:
    from pravega_connector.client.reader_group import GroupCheckpoint as GroupCheckpoint
    from pravega_connector.client.reader_group import GroupNotification as GroupNotification
    from pravega_connector.client.reader_group import ReaderGroup as ReaderGroup
    from pravega_connector.client.reader_group import SegmentDistribution as SegmentDistribution
    from pravega_connector.exactly_once.group_reader import ExactlyOnceReader as ExactlyOnceReader
    from pravega_connector.exactly_once.streams_transaction import StreamsTransaction as StreamsTransaction
    from pravega_connector.reader.event_columns import EventColumns as EventColumns
    from pravega_connector.reader.splits import RecordBatches as RecordBatches
    from pravega_connector.reader_groups.delivery import GroupEvent as GroupEvent
    from pravega_connector.reader_groups.reader import GroupReader as GroupReader

__all__ = [
    "EventBatch",
    "EventColumns",
    "EventPointer",
    "EventWriter",
    "ExactlyOnceReader",
    "GroupCheckpoint",
    "GroupEvent",
    "GroupNotification",
    "GroupReader",
    "LeaseKeeper",
    "PravegaClient",
    "ReaderGroup",
    "RecordBatches",
    "RetentionPolicy",
    "Revision",
    "RevisionedStreamClient",
    "ScalingPolicy",
    "SegmentDistribution",
    "StateSynchronizer",
    "StreamConfig",
    "StreamCut",
    "StreamDescription",
    "StreamName",
    "StreamsReader",
    "StreamsTransaction",
    "Subscriber",
    "TailReader",
    "TimeWindow",
    "Transaction",
    "TransactionStatus",
    "TransactionalWriter",
    "ValueReader",
    "Watermark",
]

if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name == "EventColumns":
            from pravega_connector.reader import event_columns as module  # noqa: PLC0415
        elif name == "RecordBatches":
            from pravega_connector.reader import splits as module  # noqa: PLC0415
        elif name == "ExactlyOnceReader":
            from pravega_connector.exactly_once import group_reader as module  # noqa: PLC0415
        elif name == "StreamsTransaction":
            from pravega_connector.exactly_once import streams_transaction as module  # noqa: PLC0415
        elif name == "GroupEvent":
            from pravega_connector.reader_groups import delivery as module  # noqa: PLC0415
        elif name == "GroupReader":
            from pravega_connector.reader_groups import reader as module  # noqa: PLC0415
        elif name in ("GroupCheckpoint", "GroupNotification", "ReaderGroup", "SegmentDistribution"):
            from pravega_connector.client import reader_group as module  # noqa: PLC0415
        else:
            raise unknown_name(__name__, name, sys._getframe(1))
        return getattr(module, name)
