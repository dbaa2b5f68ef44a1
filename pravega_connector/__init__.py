"""A segment-level Pravega client in Python, Spark's source and sink on it, and the tools around them.

Each public name is loaded on first access. The package ``connector`` offers the same names under a shorter name.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.aio import AsyncPravegaClient as AsyncPravegaClient
    from pravega_connector.client import EventBatch as EventBatch
    from pravega_connector.client import EventColumns as EventColumns
    from pravega_connector.client import EventWriter as EventWriter
    from pravega_connector.client import ExactlyOnceReader as ExactlyOnceReader
    from pravega_connector.client import GroupCheckpoint as GroupCheckpoint
    from pravega_connector.client import GroupEvent as GroupEvent
    from pravega_connector.client import GroupReader as GroupReader
    from pravega_connector.client import LeaseKeeper as LeaseKeeper
    from pravega_connector.client import PravegaClient as PravegaClient
    from pravega_connector.client import ReaderGroup as ReaderGroup
    from pravega_connector.client import RetentionPolicy as RetentionPolicy
    from pravega_connector.client import Revision as Revision
    from pravega_connector.client import RevisionedStreamClient as RevisionedStreamClient
    from pravega_connector.client import ScalingPolicy as ScalingPolicy
    from pravega_connector.client import StateSynchronizer as StateSynchronizer
    from pravega_connector.client import StreamConfig as StreamConfig
    from pravega_connector.client import StreamCut as StreamCut
    from pravega_connector.client import StreamDescription as StreamDescription
    from pravega_connector.client import StreamName as StreamName
    from pravega_connector.client import StreamsReader as StreamsReader
    from pravega_connector.client import Subscriber as Subscriber
    from pravega_connector.client import TailReader as TailReader
    from pravega_connector.client import TimeWindow as TimeWindow
    from pravega_connector.client import Transaction as Transaction
    from pravega_connector.client import TransactionalWriter as TransactionalWriter
    from pravega_connector.client import TransactionStatus as TransactionStatus
    from pravega_connector.client import ValueReader as ValueReader
    from pravega_connector.client import Watermark as Watermark
    from pravega_connector.config import PravegaConfig as PravegaConfig
    from pravega_connector.errors import *  # noqa: F403 - an error is declared in its module alone
    from pravega_connector.export import ExportSummary as ExportSummary
    from pravega_connector.export import export_stream as export_stream
    from pravega_connector.local import LocalPravega as LocalPravega
    from pravega_connector.local import LocalSchemaRegistry as LocalSchemaRegistry
    from pravega_connector.metrics import serve_metrics as serve_metrics
    from pravega_connector.spark.data_source import PravegaDataSource as PravegaDataSource
    from pravega_connector.spark.functions import from_pravega as from_pravega
    from pravega_connector.spark.functions import pravega_segment_key as pravega_segment_key
    from pravega_connector.spark.functions import to_pravega as to_pravega
    from pravega_serde.errors import PravegaError as PravegaError
else:
    from pravega_connector import errors
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "aio": "AsyncPravegaClient",
            "checkpoint": "",
            "client": (
                "EventBatch EventColumns EventWriter ExactlyOnceReader GroupCheckpoint GroupEvent "
                "GroupReader LeaseKeeper PravegaClient ReaderGroup RetentionPolicy Revision RevisionedStreamClient "
                "ScalingPolicy StateSynchronizer StreamConfig StreamCut StreamDescription StreamName "
                "StreamsReader Subscriber TailReader TimeWindow Transaction TransactionalWriter TransactionStatus "
                "ValueReader Watermark"
            ),
            "config": "PravegaConfig",
            "spark.data_source": "PravegaDataSource",
            "errors": " ".join(["PravegaError", *errors.__all__]),
            "export": "ExportSummary export_stream",
            "spark.functions": "from_pravega pravega_segment_key to_pravega",
            "ingest": "",
            "monitoring": "",
            "local": "LocalPravega LocalSchemaRegistry",
            "metrics": "serve_metrics",
            "pipe": "",
        },
    )
