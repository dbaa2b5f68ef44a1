"""Exactly-once ingestion: files, and whatever else can be read again, into a stream. No Spark is needed."""

from connector.ingest._content import Counts
from connector.ingest._feed import VARIANTS, Sizes
from connector.ingest._files import FileOptions, FileSource
from connector.ingest._ingester import Settings
from connector.ingest._referee import RESOLUTIONS
from connector.ingest._run import IngestPlan, IngestSummary, ingest, plan
from connector.ingest._source import Chunk, Rejected, ReplayableSource
from connector.ingest._state import IngestState
from connector.ingest._types import parse_types

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
