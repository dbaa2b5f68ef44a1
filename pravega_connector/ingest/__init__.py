"""Exactly-once ingestion: files, and whatever else can be read again, into a stream. No Spark is needed.

:func:`ingest` and :func:`plan` are in ``run``. What is ingested: ``replayable`` says what a source gives,
``file_source`` has files as one, ``file_kinds`` and ``lines`` read them. How: ``ingester`` makes step
after step by the protocol of :mod:`pravega_connector.exactly_once.steps`; ``feed`` cuts a source into steps, ``encode``
makes events of records, ``content`` writes them into a step's transaction and bad records beside it. Who: ``takeover``
decides whether to wait for another run.
"""

from pravega_connector.ingest.content import Counts
from pravega_connector.ingest.feed import VARIANTS, Sizes
from pravega_connector.ingest.file_source import FileOptions, FileSource, parse_types
from pravega_connector.ingest.ingester import Settings
from pravega_connector.ingest.replayable import Chunk, Rejected, ReplayableSource
from pravega_connector.ingest.run import IngestPlan, IngestSummary, ingest, plan
from pravega_connector.ingest.takeover import RESOLUTIONS

__all__ = [
    "RESOLUTIONS",
    "VARIANTS",
    "Chunk",
    "Counts",
    "FileOptions",
    "FileSource",
    "IngestPlan",
    "IngestSummary",
    "Rejected",
    "ReplayableSource",
    "Settings",
    "Sizes",
    "ingest",
    "parse_types",
    "plan",
]
