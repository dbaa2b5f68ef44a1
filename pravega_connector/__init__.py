"""Import name of the package ``connector`` that nothing else on a machine has.

``connector`` is a name that a user's own module may have: a ``connector.py`` beside a script comes first on the path,
and ours cannot be imported then. So Spark's Python processes find the data source by this name. The code lies in the
folder ``connector``, whose modules import each other relatively, and each is loaded once: ``connector.client`` and
``pravega_connector.client`` are one module.

The public names are listed here for both, and there once more for type checkers.
"""

from pathlib import Path
from typing import TYPE_CHECKING

__path__ = [str(Path(__file__).parents[1] / "connector")]

if TYPE_CHECKING:
    from connector import *  # noqa: F403 - listed there
else:
    from pravega_connector import errors
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "checkpoint": "",
            "client": (
                "AsyncPravegaClient EventBatch EventColumns EventWriter ExactlyOnceReader GroupCheckpoint GroupEvent "
                "GroupReader LeaseKeeper PravegaClient ReaderGroup RetentionPolicy Revision RevisionedStreamClient "
                "ScalingPolicy StateSynchronizer StreamConfig StreamCut StreamDescription StreamName "
                "StreamsReader Subscriber TailReader TimeWindow Transaction TransactionalWriter TransactionStatus "
                "ValueReader Watermark"
            ),
            "config": "PravegaConfig",
            "data_source": "PravegaDataSource",
            "errors": " ".join(["PravegaError", *errors.__all__]),
            "export": "ExportSummary export_stream",
            "functions": "from_pravega pravega_segment_key to_pravega",
            "ingest": "",
            "insight": "",
            "local": "LocalPravega LocalSchemaRegistry",
            "metrics": "serve_metrics",
            "pipe": "",
        },
    )
