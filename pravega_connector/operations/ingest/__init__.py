"""Exactly-once ingestion of files, Kafka topics and other replayable sources into a stream, without Spark.

:func:`ingest` and :func:`plan` are in ``run``. For the input, ``replayable`` defines the interface of a source,
``file_source`` implements it for files, and ``file_kinds`` and ``lines`` read them. ``kafka_source`` feeds the steps
with the records of a topic, which ``kafka_topic`` reads and ``kafka_records`` turns into columns. For the steps,
``ingester`` executes step after step with the protocol of :mod:`pravega_connector.exactly_once.steps`. ``feed`` divides
a source into steps, and ``encode`` converts records to events. ``content`` writes the events into the transaction of a
step, and malformed records into separate files.
"""

from typing import TYPE_CHECKING

from pravega_connector.exactly_once.steps.takeover import RESOLUTIONS
from pravega_connector.operations.ingest.content import Counts
from pravega_connector.operations.ingest.feed import VARIANTS, Sizes
from pravega_connector.operations.ingest.file_source import FileOptions, FileSource, parse_types
from pravega_connector.operations.ingest.ingester import Settings
from pravega_connector.operations.ingest.kafka_source import KafkaOptions, KafkaSource
from pravega_connector.operations.ingest.kafka_topic import parse_kafka_config
from pravega_connector.operations.ingest.replayable import Chunk, Rejected, ReplayableSource
from pravega_connector.operations.ingest.run import IngestPlan, IngestSummary, ingest, plan
from pravega_serde.public_names import unknown_names

__all__ = [
    "RESOLUTIONS",
    "VARIANTS",
    "Chunk",
    "Counts",
    "FileOptions",
    "FileSource",
    "IngestPlan",
    "IngestSummary",
    "KafkaOptions",
    "KafkaSource",
    "Rejected",
    "ReplayableSource",
    "Settings",
    "Sizes",
    "ingest",
    "parse_kafka_config",
    "parse_types",
    "plan",
]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__ = unknown_names(__name__)
