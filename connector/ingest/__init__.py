"""Exactly-once ingestion: files, and whatever else can be read again, into a stream. No Spark is needed.

:func:`ingest` and :func:`plan` are in ``run``. What is ingested: ``replayable`` says what a source gives,
``file_source`` has files as one, ``file_kinds`` and ``lines`` read them. How: ``ingester`` makes step
after step by the protocol of :mod:`connector.steps`; ``feed`` cuts a source into steps, ``encode`` makes events of
records, ``content`` writes them into a step's transaction and bad records beside it. Who: ``takeover`` decides whether
to wait for another run.
"""

from .content import Counts
from .feed import VARIANTS, Sizes
from .file_source import FileOptions, FileSource, parse_types
from .ingester import Settings
from .replayable import Chunk, Rejected, ReplayableSource
from .run import IngestPlan, IngestSummary, ingest, plan
from .takeover import RESOLUTIONS

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
