"""Exactly-once ingestion: files, and whatever else can be read again, into a stream. No Spark is needed."""

from connector.ingest.content import Counts
from connector.ingest.feed import VARIANTS, Sizes
from connector.ingest.file_source import FileOptions, FileSource, parse_types
from connector.ingest.ingester import Settings
from connector.ingest.journal import IngestState
from connector.ingest.referee import RESOLUTIONS
from connector.ingest.replayable import Chunk, Rejected, ReplayableSource
from connector.ingest.run import IngestPlan, IngestSummary, ingest, plan

__all__ = [
    "RESOLUTIONS",
    "VARIANTS",
    "Chunk",
    "Counts",
    "FileOptions",
    "FileSource",
    "IngestPlan",
    "IngestState",
    "IngestSummary",
    "Rejected",
    "ReplayableSource",
    "Settings",
    "Sizes",
    "ingest",
    "parse_types",
    "plan",
]
