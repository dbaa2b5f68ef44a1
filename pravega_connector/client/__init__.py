"""A segment-level Pravega client in Python: streams, stream cuts, writers, readers. No Spark is needed.

What lives where, from the bottom up. ``deadline`` has how long a call and its attempts may take, ``health`` the
attempts themselves and what is told of trouble. The controller, which is loaded with the first call to it:
``grpc_environment`` is set before, ``rpc`` is the gRPC channel, ``controller_values`` and
``controller_methods`` are what is said over it, ``controller`` has all calls. The segment stores: ``connection``, and
``stores``, which knows where segments live and asks about them. Reading: ``slices`` between two places, ``tail`` as
events arrive, ``lineage`` from a segment to what follows it, ``watermarks`` for places by time. Writing: ``events`` are
cut to blocks, which ``append_loop`` brings to the segments that ``destinations`` names; ``event_writer`` and
``transactions`` are the two ways to it. Both sides send ``errands`` where a server may keep them waiting. Streams of
one segment: ``appenders`` have certain outcomes, on which ``revisioned``, ``synchronizer`` and ``byte_stream`` stand,
and ``subscriber`` and ``group_member``, a reader's place in its group, as well. ``pravega_client`` is the way in for
programs: its calls check what they get by ``arguments`` and ``places``, ``administration`` has those about scopes and
streams, ``following`` puts ``tail`` readers together. ``shared`` keeps one client for a process.
All that blocks goes through ``waiting``; in an ``event_loop`` it waits there, for the coroutines of
``async_client`` and of the ``async_objects`` that it makes.
"""

from typing import TYPE_CHECKING, Any

from pravega_connector.client import grpc_environment  # noqa: F401 - it has its effect when it is imported
from pravega_connector.client.administration import StreamDescription
from pravega_connector.client.appenders import NumberedAppender
from pravega_connector.client.controller_values import (
    STATE_TAG,
    CreatedTransaction,
    RetentionPolicy,
    ScalingPolicy,
    StreamConfig,
    Successor,
    TransactionStatus,
)
from pravega_connector.client.event_columns import EventColumns
from pravega_connector.client.event_writer import EventWriter
from pravega_connector.client.events import MAX_EVENT_SIZE
from pravega_connector.client.following import StreamsReader, ValueReader
from pravega_connector.client.lineage import Lineage, sealed_lengths, tail_cut
from pravega_connector.client.places import parse_place, parse_time, valid_cut
from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.client.revisioned import Revision, RevisionedStreamClient
from pravega_connector.client.shared import has_answered, note_answer, shared_client
from pravega_connector.client.slices import (
    EventBatch,
    SegmentSlice,
    read_chunks,
    read_slice,
    read_slices,
    slices_between,
)
from pravega_connector.client.stores import SegmentInfo, SegmentPlace, SegmentStores
from pravega_connector.client.subscriber import Subscriber
from pravega_connector.client.synchronizer import StateSynchronizer
from pravega_connector.client.tail import TailReader
from pravega_connector.client.transactions import (
    DEFAULT_LEASE,
    LeaseKeeper,
    OpenTransaction,
    Transaction,
    TransactionalWriter,
)
from pravega_connector.client.watermarks import SegmentTimes, TimeWindow, WatermarkLog
from pravega_connector.wire import StreamCut, StreamName, Watermark

if TYPE_CHECKING:
    from pravega_connector.client.arrivals import Arrivals as Arrivals
    from pravega_connector.client.async_client import AsyncPravegaClient as AsyncPravegaClient
    from pravega_connector.client.async_objects import AsyncLeaseKeeper as AsyncLeaseKeeper
    from pravega_connector.client.controller import CommitWatch as CommitWatch
    from pravega_connector.client.controller import ControllerClient as ControllerClient
    from pravega_connector.client.exactly_once import ExactlyOnceReader as ExactlyOnceReader
    from pravega_connector.client.group_reader import GroupEvent as GroupEvent
    from pravega_connector.client.group_reader import GroupReader as GroupReader
    from pravega_connector.client.reader_group import GroupCheckpoint as GroupCheckpoint
    from pravega_connector.client.reader_group import ReaderGroup as ReaderGroup

__all__ = [
    "DEFAULT_LEASE",
    "MAX_EVENT_SIZE",
    "STATE_TAG",
    "Arrivals",
    "AsyncLeaseKeeper",
    "AsyncPravegaClient",
    "CommitWatch",
    "ControllerClient",
    "CreatedTransaction",
    "EventBatch",
    "EventColumns",
    "EventWriter",
    "ExactlyOnceReader",
    "GroupCheckpoint",
    "GroupEvent",
    "GroupReader",
    "LeaseKeeper",
    "Lineage",
    "NumberedAppender",
    "OpenTransaction",
    "PravegaClient",
    "ReaderGroup",
    "RetentionPolicy",
    "Revision",
    "RevisionedStreamClient",
    "ScalingPolicy",
    "SegmentInfo",
    "SegmentPlace",
    "SegmentSlice",
    "SegmentStores",
    "SegmentTimes",
    "StateSynchronizer",
    "StreamConfig",
    "StreamCut",
    "StreamDescription",
    "StreamName",
    "StreamsReader",
    "Subscriber",
    "Successor",
    "TailReader",
    "TimeWindow",
    "Transaction",
    "TransactionStatus",
    "TransactionalWriter",
    "ValueReader",
    "Watermark",
    "WatermarkLog",
    "has_answered",
    "note_answer",
    "parse_place",
    "parse_time",
    "read_chunks",
    "read_slice",
    "read_slices",
    "sealed_lengths",
    "shared_client",
    "slices_between",
    "tail_cut",
    "valid_cut",
]

if not TYPE_CHECKING:  # a type checker would take any name for known

    def __getattr__(name: str) -> Any:
        if name == "Arrivals":
            from pravega_connector.client import arrivals  # noqa: PLC0415 - for those who plan streaming queries

            return arrivals.Arrivals
        if name in ("CommitWatch", "ControllerClient"):
            from pravega_connector.client import controller  # noqa: PLC0415 - gRPC is loaded with the first call, not before

            return getattr(controller, name)
        if name == "ExactlyOnceReader":
            from pravega_connector.client import exactly_once  # noqa: PLC0415 - most clients have no group

            return exactly_once.ExactlyOnceReader
        if name in ("GroupEvent", "GroupReader"):
            from pravega_connector.client import group_reader  # noqa: PLC0415 - most clients have no group

            return getattr(group_reader, name)
        if name in ("GroupCheckpoint", "ReaderGroup"):
            from pravega_connector.client import reader_group  # noqa: PLC0415 - most clients have no group

            return getattr(reader_group, name)
        if name not in ("AsyncLeaseKeeper", "AsyncPravegaClient"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from pravega_connector.client import async_client, async_objects  # noqa: PLC0415 - for programs with an event loop, which have greenlet

        return getattr(async_objects if name == "AsyncLeaseKeeper" else async_client, name)
