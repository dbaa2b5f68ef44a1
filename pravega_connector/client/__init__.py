"""The Pravega client: streams, stream cuts, writers, readers, transactions and tables, without Spark.

A program starts with :class:`PravegaClient`. The classes of reader groups and of Arrow columns are loaded on first
access, because most programs do not use them.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

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

#: Modules that a Spark worker does not load, by their public names.
_LOADED_ON_USE: Final = {
    "EventColumns": "pravega_connector.reader.event_columns",
    "ExactlyOnceReader": "pravega_connector.exactly_once.group_reader",
    "GroupCheckpoint": "pravega_connector.client.reader_group",
    "GroupEvent": "pravega_connector.reader_groups.delivery",
    "GroupNotification": "pravega_connector.client.reader_group",
    "GroupReader": "pravega_connector.reader_groups.reader",
    "ReaderGroup": "pravega_connector.client.reader_group",
    "RecordBatches": "pravega_connector.reader.splits",
    "SegmentDistribution": "pravega_connector.client.reader_group",
    "StreamsTransaction": "pravega_connector.exactly_once.streams_transaction",
}

if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name not in _LOADED_ON_USE:
            raise unknown_name(__name__, name, sys._getframe(1))
        return getattr(importlib.import_module(_LOADED_ON_USE[name]), name)
