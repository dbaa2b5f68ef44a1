"""A segment-level Pravega client in Python, Spark's source and sink on it, and the tools around them.

Each public name is loaded on first access. The package ``connector`` offers the same names under a shorter name.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.aio import AsyncPravegaClient as AsyncPravegaClient
    from pravega_connector.client import *  # declared in that module alone
    from pravega_connector.config import PravegaConfig as PravegaConfig
    from pravega_connector.errors import *  # declared in that module alone
    from pravega_connector.local import LocalPravega as LocalPravega
    from pravega_connector.local import LocalSchemaRegistry as LocalSchemaRegistry
    from pravega_connector.metrics import serve_metrics as serve_metrics
    from pravega_connector.operations.export import ExportSummary as ExportSummary
    from pravega_connector.operations.export import export_stream as export_stream
    from pravega_connector.spark.data_source import PravegaDataSource as PravegaDataSource
    from pravega_connector.spark.functions import from_pravega as from_pravega
    from pravega_connector.spark.functions import pravega_segment_key as pravega_segment_key
    from pravega_connector.spark.functions import to_pravega as to_pravega
    from pravega_connector.tables import Insert as Insert
    from pravega_connector.tables import Put as Put
    from pravega_connector.tables import Remove as Remove
    from pravega_connector.tables import Table as Table
    from pravega_connector.tables import TableConfig as TableConfig
    from pravega_connector.tables import TableEntry as TableEntry
    from pravega_connector.tables import TableName as TableName
    from pravega_connector.tables import Version as Version
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
                "EventBatch EventColumns EventPointer EventWriter ExactlyOnceReader GroupCheckpoint GroupEvent "
                "GroupNotification GroupReader LeaseKeeper PravegaClient ReaderGroup RecordBatches RetentionPolicy "
                "Revision RevisionedStreamClient ScalingPolicy SegmentDistribution StateSynchronizer StreamConfig "
                "StreamCut StreamDescription StreamName StreamsReader StreamsTransaction Subscriber TailReader "
                "TimeWindow Transaction TransactionalWriter TransactionStatus ValueReader Watermark"
            ),
            "config": "PravegaConfig",
            "spark.data_source": "PravegaDataSource",
            "errors": " ".join(["PravegaError", *errors.__all__]),
            "export": "ExportSummary export_stream",
            "spark.functions": "from_pravega pravega_segment_key to_pravega",
            "ingest": "",
            "mirror": "",
            "monitoring": "",
            "pipe": "",
            "tier": "",
            "local": "LocalPravega LocalSchemaRegistry",
            "metrics": "serve_metrics",
            "tables": "Insert Put Remove Table TableConfig TableEntry TableName Version",
        },
    )
