"""Pages of the API reference: the public names of each page, in their order, and the objects that calls return.

Add a new public name to one page. ``tests/checks/test_docs.py`` compares the pages with the public modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["ALIASES", "COUNTERPARTS", "FACTORIES", "MODULES", "PAGES", "TEXT_ONLY", "ApiPage"]

#: Modules whose public names are in the reference.
MODULES: Final = (
    "pravega_connector",
    "pravega_connector.client",
    "pravega_connector.config",
    "pravega_connector.deadletters",
    "pravega_connector.export",
    "pravega_connector.ingest",
    "pravega_connector.local",
    "pravega_connector.metrics",
    "pravega_connector.mirror",
    "pravega_connector.tier",
    "pravega_connector.monitoring",
    "pravega_connector.pipe",
    "pravega_connector.tables",
    "pravega_connector.testing",
    "pravega_serde",
    "pravega_serde.java",
    "pravega_serde.registry",
    "pyspark_pravega",
)
_CONNECTOR: Final = "pravega_connector"
_SERDE: Final = "pravega_serde"


@dataclass(frozen=True)
class ApiPage:
    """One page: its title, its purpose, and its names."""

    title: str
    about: str
    names: Mapping[str, str]
    """Module to import from -> classes and functions, separated by blanks."""
    returned: Mapping[str, str] = field(default_factory=dict)
    """Module -> classes that calls return, and that no public module has."""
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Module -> constant or type -> its meaning."""
    listed: Mapping[str, str] = field(default_factory=dict)
    """Module -> classes that need only one line each."""


PAGES: Final[Mapping[str, ApiPage]] = {
    "client": ApiPage(
        "Client",
        "Connect to Pravega, create streams, and open writers and readers. For a guide, see [read and write "
        "events](../../client/read-and-write.md).",
        {
            _CONNECTOR: "PravegaClient PravegaConfig",
            f"{_CONNECTOR}.config": "parse_properties",
            _SERDE: "Credential CredentialProvider KeycloakProvider",
        },
        {f"{_CONNECTOR}.core.retry": "Counters"},
        values={f"{_CONNECTOR}.config": {"DEFAULT_CONTROLLER": "Controller URI if nothing else names one."}},
    ),
    "streams": ApiPage(
        "Streams and positions",
        "Configure streams, and keep positions in them. For a guide, see [read and write "
        "events](../../client/read-and-write.md).",
        {
            _CONNECTOR: "StreamName StreamCut ScalingPolicy RetentionPolicy StreamConfig StreamDescription Watermark "
            "TimeWindow EventPointer"
        },
        {f"{_CONNECTOR}.wire": "SegmentRange"},
    ),
    "writer": ApiPage(
        "Writer",
        "Write events outside of transactions. For a guide, see [read and write "
        "events](../../client/read-and-write.md). For routing keys from a field of the events, see [event "
        "routers](routing.md).",
        {_CONNECTOR: "EventWriter"},
    ),
    "reader": ApiPage(
        "Readers",
        "Read a range of events as Arrow columns, follow a stream, and publish the position of a reader. For a guide, "
        "see [read and write events](../../client/read-and-write.md) and [notebooks](../../client/notebooks.md).",
        {_CONNECTOR: "EventColumns RecordBatches EventBatch TailReader ValueReader StreamsReader Subscriber"},
    ),
    "transactions": ApiPage(
        "Transactions",
        "Write events that become visible together. For a guide, see [transactions](../../client/transactions.md).",
        {_CONNECTOR: "TransactionalWriter Transaction TransactionStatus LeaseKeeper StreamsTransaction"},
        {f"{_CONNECTOR}.writer.transactions": "OpenTransaction"},
    ),
    "reader-groups": ApiPage(
        "Reader groups",
        "Share the segments of streams among readers, with checkpoints or exactly-once output. For a guide, see "
        "[reader groups](../../client/reader-groups.md).",
        {
            _CONNECTOR: "ReaderGroup GroupReader GroupEvent GroupCheckpoint ExactlyOnceReader "
            "SegmentDistribution GroupNotification"
        },
    ),
    "asyncio": ApiPage(
        "asyncio",
        "Use the client from coroutines. For a guide, see [asyncio](../../client/asyncio.md). The calls "
        "have the arguments and results of [PravegaClient](client.md#pravegaclient).",
        {_CONNECTOR: "AsyncPravegaClient"},
        {
            f"{_CONNECTOR}.aio.objects": "AsyncEvents AsyncEventWriter AsyncTransactionalWriter AsyncOpenTransaction "
            "AsyncTransaction AsyncLeaseKeeper AsyncTailReader AsyncValueReader",
            f"{_CONNECTOR}.aio.streams_transaction": "AsyncStreamsTransaction",
            f"{_CONNECTOR}.aio.reader_groups": "AsyncReaderGroup AsyncGroupReader AsyncExactlyOnceReader",
            f"{_CONNECTOR}.aio.tables": "AsyncTable",
        },
    ),
    "single-segment": ApiPage(
        "Revisioned streams and shared state",
        "Use a stream of one segment as a log with compare-and-append, or as shared state. For a guide, see [advanced "
        "uses](../../client/advanced.md). To read and write it as "
        "bytes, see [`PravegaClient.byte_reader`](client.md#pravegaclientbyte_reader) and "
        "[`PravegaClient.byte_writer`](client.md#pravegaclientbyte_writer).",
        {_CONNECTOR: "RevisionedStreamClient Revision StateSynchronizer"},
    ),
    "tables": ApiPage(
        "Key-value tables",
        "Keep entries by key, with conditional and atomic updates. For a guide, see [key-value "
        "tables](../../client/key-value-tables.md). To open and create tables, see "
        "[`PravegaClient.table`](client.md#pravegaclienttable) and "
        "[`PravegaClient.create_table`](client.md#pravegaclientcreate_table).",
        {_CONNECTOR: "Table TableEntry Version Put Insert Remove TableConfig TableName"},
    ),
    "spark": ApiPage(
        "Spark",
        "Set up a Spark session, and convert columns of events. For reading and writing streams, see [read and write "
        "streams](../../spark/read-and-write.md). For the options, see [options](../options.md).",
        {
            "pyspark_pravega": "PravegaDataSource read write from_pravega to_pravega pravega_segment_key configure "
            "register_functions register_streams QueryMetrics"
        },
    ),
    "ingest": ApiPage(
        "Ingest",
        "Write files, Kafka topics, or other sources that can be read again, to a stream exactly once. For guides, see "
        "[ingest files](../../tools/ingest.md) and [ingest Kafka topics](../../tools/ingest-kafka.md).",
        {
            f"{_CONNECTOR}.ingest": "ingest plan FileSource FileOptions Settings Sizes IngestSummary IngestPlan "
            "Counts ReplayableSource Chunk Rejected KafkaSource KafkaOptions parse_types parse_kafka_config"
        },
        values={
            f"{_CONNECTOR}.ingest": {
                "VARIANTS": "Ways to divide a source into transactions: see `Sizes.variant`.",
                "RESOLUTIONS": "Outcomes that `ingest` can assume for the open transaction of another run.",
            }
        },
    ),
    "export-and-pipe": ApiPage(
        "Export and pipe",
        "Export events to a file, and write lines of an input as events. For a guide, see [export and "
        "pipe](../../tools/export-and-pipe.md).",
        {
            f"{_CONNECTOR}.export": "export_stream ExportSummary file_format",
            f"{_CONNECTOR}.pipe": "Pipe Input PipeSummary standard_input of_files listening ByJsonField ByPattern",
        },
        values={
            f"{_CONNECTOR}.export": {"FILE_FORMATS": "Formats of exported files."},
            f"{_CONNECTOR}.pipe": {"MAX_UNACKNOWLEDGED": "Most bytes that a pipe has read and that are not durable."},
        },
    ),
    "mirror": ApiPage(
        "Mirror",
        "Copy a stream to another cluster, exactly once. For a guide, see [mirror streams](../../tools/mirror.md).",
        {f"{_CONNECTOR}.mirror": "mirror mirror_status MirrorSettings MirrorSummary MirrorCounts MirrorStatus"},
    ),
    "tier": ApiPage(
        "Tier",
        "Write a stream into a Delta or Iceberg table, exactly once. For a guide, see [streams as Delta and Iceberg "
        "tables](../../tools/tier.md).",
        {
            f"{_CONNECTOR}.tier": "tier tier_status read_table_and_tail spark_table_and_tail TierSettings TierMerge "
            "TierSummary TierCounts TierPosition"
        },
    ),
    "dead-letters": ApiPage(
        "Dead-letter queue",
        "Store malformed records outside of Spark. For the queue of a Spark query, see [dead-letter "
        "queue](../../spark/dead-letter-queue.md).",
        {f"{_CONNECTOR}.deadletters": "StreamLetters FileLetters LetterBox SliceReading letters_of"},
        values={f"{_CONNECTOR}.deadletters": {"LETTER_SCHEMA": "Fields of a dead letter, for Spark's `.schema(…)`."}},
    ),
    "metrics": ApiPage(
        "Metrics",
        "Export the metrics of a process to Prometheus or OpenTelemetry. For the metrics, see "
        "[metrics](../metrics.md).",
        {
            f"{_CONNECTOR}.metrics": "serve_metrics MetricsServer PrometheusCollector export_to_opentelemetry snapshot "
            "attach_if_loaded Instrument"
        },
        values={f"{_CONNECTOR}.metrics": {"INSTRUMENTS": "All metrics by name, as `Instrument` objects."}},
    ),
    "monitoring": ApiPage(
        "Monitoring",
        "Measure the lag of readers and the load of segments, and compare stream cuts. For a guide, see "
        "[monitoring](../../operate/monitoring.md).",
        {
            f"{_CONNECTOR}.monitoring": "stream_lag StreamLag SegmentLag Loss lost_bytes count_events survey Survey "
            "group_view GroupView group_lag StreamWatch StreamView SegmentView scaling_history History SegmentLife "
            "draw_history read_cut write_cut compare_cuts Comparison cuts_of segment_label parse_time"
        },
        values={
            f"{_CONNECTOR}.monitoring": {
                "CUT_FORMS": "Text forms of a stream cut, for `write_cut`.",
                "Relation": "Relation of one stream cut to another: see `Comparison`.",
            }
        },
    ),
    "local-servers": ApiPage(
        "Local servers",
        "Start a real Pravega and schema registry on your machine. For a guide, see [local "
        "server](../../tools/local-server.md).",
        {
            _CONNECTOR: "LocalPravega LocalSchemaRegistry",
            f"{_CONNECTOR}.local": "RegistryUser ServerOptions ClusterOptions ClusterProcess RegistryOptions "
            "start_detached start_detached_registry detached_server detached_registry stop_detached "
            "stop_detached_registry DetachedServer pravega_jars registry_jars",
        },
        values={
            f"{_CONNECTOR}.local": {
                "PRAVEGA_VERSION": "Version of Pravega that the servers run.",
                "REGISTRY_VERSION": "Version of the schema registry that the servers run.",
                "REPOSITORY_VARIABLE": "Environment variable with the address of a Maven repository for the jars.",
            }
        },
    ),
    "test-kit": ApiPage(
        "Test kit",
        "Run Pravega and a schema registry in the process of your tests, and make them fail. For a guide, see [test "
        "kit](../../tools/test-kit.md).",
        {
            f"{_CONNECTOR}.testing": "InProcessPravega Faults InProcessRegistry MemoryRegistry mock_registry "
            "ConfluentMemoryRegistry mock_confluent_registry"
        },
    ),
    "serializers": ApiPage(
        "Serializers",
        "Choose or write the serializer of a stream's events. A serializer both writes and reads (a serde). For a "
        "guide, see [serializers](../../serialization/serializers.md). Other clients use a serializer as a function of "
        "a value, and its attribute `deserializer` as one of an event. Both return None for None.",
        {
            _SERDE: "serializer_for formats typed TypedSerializer Serializer Deserializer FunctionSerializer "
            "UTF8StringSerializer ByteArraySerializer ByteBufferSerializer Enveloped Envelope Framed "
            "ChangeDeserializer RowChange change_type distinct_changes arrow_type_of ColumnSerializer ColumnReader "
            "ColumnWriter PlainPath bisecting per_row"
        },
        values={
            _SERDE: {
                "OnError": "Function that receives the error of each malformed row: see `Serializer.decode_column`."
            }
        },
    ),
    "encryption": ApiPage(
        "Encrypted fields",
        "Encrypt fields of events, and keep their keys. For a guide, see [encrypt "
        "fields](../../serialization/encrypt-fields.md).",
        {_SERDE: "Encrypted DataKeys LocalKeys KeyService ConfluentKeys"},
    ),
    "sniffing": ApiPage(
        "Sniffing",
        "Find the formats, framings and schemas of unknown events. For a guide, see [identify "
        "events](../../tools/sniff.md).",
        {_SERDE: "sniff Sniffed SniffedPart"},
        {f"{_SERDE}.sniffing": "SniffedField SniffedClass SniffedProposal"},
    ),
    "generating": ApiPage(
        "Generated code",
        "Generate classes and schemas for events. For a guide, see [generate code](../../tools/generate.md).",
        {_SERDE: "generate GeneratedCode JavaType"},
    ),
    "routing": ApiPage(
        "Event routers",
        "Take the routing key of an event from a column, a field or a function. A writer accepts a router as `router`.",
        {_SERDE: "EventRouter ByColumn ByField ByConstant ByFunction Unrouted segment_key segment_keys"},
    ),
    "avro": ApiPage(
        "Avro",
        "Write and read Avro events. For a guide, see [Avro](../../serialization/avro.md).",
        {_SERDE: "AvroSerializer avro_schema_of"},
    ),
    "protobuf": ApiPage(
        "Protobuf",
        "Write and read Protobuf events. For a guide, see [Protobuf](../../serialization/protobuf.md).",
        {_SERDE: "ProtobufSerializer protobuf_schema_of"},
    ),
    "json": ApiPage(
        "JSON and CBOR",
        "Write and read JSON or CBOR events. For a guide, see [JSON and CBOR](../../serialization/json-and-cbor.md).",
        {_SERDE: "JsonSerializer json_schema_of CborSerializer"},
    ),
    "java": ApiPage(
        "Java objects",
        "Read and write serialized Java objects without a JVM. For a guide, see [Java "
        "objects](../../serialization/java-objects.md).",
        {
            _SERDE: "JavaSerializer JavaObject ClassDescriptor",
            f"{_SERDE}.java": "load_stream dump_stream Limits Field ProxyDescriptor JavaEnum JavaClass JavaArray "
            "BlockData OwnOrder",
        },
        values={
            f"{_SERDE}.java": {
                "NOT_WRITTEN": "Marker for a field that `writeObject` did not write. Its value may be in the "
                "annotations."
            }
        },
        listed={
            f"{_SERDE}.java": "String Boolean Byte Short Integer Long Float Double Character BigInteger BigDecimal "
            "ByteArray JavaList JavaMap JavaSet JavaKey Copies ListView MapView SetView Date SqlDate SqlTime Timestamp "
            "NanoDatetime NanoTime NanoDuration Period MonthDay Year YearMonth ZoneOffset ZoneRegion"
        },
    ),
    "registry-serializers": ApiPage(
        "Registry serializers",
        "Write and read events whose schemas are in a schema registry. For a guide, see [schema "
        "registry](../../serialization/schema-registry.md).",
        {
            f"{_SERDE}.registry": "serializer deserializer multi_type_serializer with_schema_serializer "
            "RegistrySerializer RegistryDeserializer MultiTypeSerializer WithSchemaSerializer WithSchema "
            "SerializerConfig Codec EventType event_type latest_schema RegistryFormat registry_format part_of "
            "column_names column_schema encoding_ids"
        },
        values={
            f"{_SERDE}.registry": {
                "CODEC_NONE": "Codec that changes nothing.",
                "CODEC_GZIP": "Codec for gzip.",
                "CODEC_SNAPPY": "Codec for a raw Snappy block without a frame, as Java's `snappy` codec.",
                "MAX_DECOMPRESSED_BYTES": "Most bytes of one decompressed event.",
            }
        },
    ),
    "registry-client": ApiPage(
        "Schema registry client",
        "Manage groups and schemas in a schema registry. For a guide, see [schema "
        "registry](../../serialization/schema-registry.md).",
        {
            f"{_SERDE}.registry": "SchemaRegistryClient AsyncSchemaRegistryClient RegistryConfig shared_client "
            "SchemaInfo SerializationFormat GroupProperties Compatibility CompatibilityRule VersionInfo "
            "SchemaWithVersion EncodingInfo CodecType GroupHistoryRecord check_compatibility"
        },
    ),
}

#: Class -> the calls or attributes that return it, if users do not construct it.
FACTORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "Counters": ("PravegaClient.counters",),
    "StreamConfig": ("StreamDescription.config",),
    "StreamDescription": ("PravegaClient.describe",),
    "SegmentRange": ("StreamDescription.segments", "PravegaClient.scale_stream"),
    "Watermark": ("PravegaClient.watermarks",),
    "TimeWindow": ("PravegaClient.time_window", "ReaderGroup.time_window"),
    "GeneratedCode": ("generate",),
    "Sniffed": ("sniff",),
    "SniffedClass": ("SniffedPart.class_infos",),
    "SniffedField": ("SniffedPart.fields",),
    "SniffedPart": ("Sniffed.parts",),
    "SniffedProposal": ("SniffedPart.proposal",),
    "EventWriter": ("PravegaClient.writer",),
    "EventColumns": ("PravegaClient.read_columns",),
    "RecordBatches": ("EventColumns.record_batches",),
    "EventBatch": ("TailReader.poll", "StreamsReader.poll", "GroupReader.poll_columns"),
    "TailReader": ("PravegaClient.follow",),
    "ValueReader": ("PravegaClient.follow",),
    "StreamsReader": ("PravegaClient.follow",),
    "Subscriber": ("PravegaClient.subscriber",),
    "TransactionalWriter": ("PravegaClient.transactions",),
    "OpenTransaction": ("TransactionalWriter.begin",),
    "Transaction": ("PravegaClient.transaction",),
    "TransactionStatus": ("Transaction.status",),
    "StreamsTransaction": ("PravegaClient.transaction_over",),
    "ReaderGroup": ("PravegaClient.reader_group",),
    "GroupReader": ("ReaderGroup.reader",),
    "GroupEvent": ("GroupReader.poll", "GroupReader.next_event"),
    "GroupCheckpoint": ("ReaderGroup.checkpoint",),
    "ExactlyOnceReader": ("ReaderGroup.exactly_once",),
    "AsyncEvents": ("AsyncPravegaClient.read", "AsyncPravegaClient.streams"),
    "AsyncEventWriter": ("AsyncPravegaClient.writer",),
    "AsyncTransactionalWriter": ("AsyncPravegaClient.transactions",),
    "AsyncOpenTransaction": ("AsyncTransactionalWriter.begin",),
    "AsyncTransaction": ("AsyncPravegaClient.transaction",),
    "AsyncStreamsTransaction": ("AsyncPravegaClient.transaction_over",),
    "AsyncTailReader": ("AsyncPravegaClient.follow",),
    "AsyncValueReader": ("AsyncPravegaClient.follow",),
    "AsyncReaderGroup": ("AsyncPravegaClient.reader_group",),
    "AsyncGroupReader": ("AsyncReaderGroup.reader",),
    "AsyncExactlyOnceReader": ("AsyncReaderGroup.exactly_once",),
    "RevisionedStreamClient": ("PravegaClient.revisioned",),
    "Revision": ("RevisionedStreamClient.latest_revision", "RevisionedStreamClient.read_from"),
    "StateSynchronizer": ("PravegaClient.synchronizer",),
    "IngestSummary": ("ingest",),
    "IngestPlan": ("plan",),
    "Counts": ("IngestSummary.counts",),
    "MirrorSummary": ("mirror",),
    "MirrorCounts": ("MirrorSummary.counts",),
    "MirrorStatus": ("mirror_status",),
    "TierSummary": ("tier",),
    "TierCounts": ("TierSummary.counts",),
    "TierPosition": ("TierSummary.position", "tier_status"),
    "ExportSummary": ("export_stream",),
    "PipeSummary": ("Pipe.run",),
    "MetricsServer": ("serve_metrics",),
    "StreamLag": ("stream_lag", "group_lag"),
    "SegmentLag": ("StreamLag.segments",),
    "Loss": ("StreamLag.losses",),
    "Survey": ("survey",),
    "GroupView": ("group_view",),
    "StreamView": ("StreamWatch.look",),
    "SegmentView": ("StreamView.segments",),
    "History": ("scaling_history",),
    "SegmentLife": ("History.segments",),
    "Comparison": ("compare_cuts",),
    "DetachedServer": ("start_detached", "start_detached_registry", "detached_server", "detached_registry"),
    "Faults": ("InProcessPravega.faults",),
    "TypedSerializer": ("typed",),
    "RegistrySerializer": ("serializer",),
    "RegistryDeserializer": ("deserializer",),
    "MultiTypeSerializer": ("multi_type_serializer",),
    "WithSchemaSerializer": ("with_schema_serializer",),
    "EventType": ("event_type",),
    "VersionInfo": ("SchemaRegistryClient.add_schema",),
    "SchemaWithVersion": ("SchemaRegistryClient.latest_schemas",),
    "EncodingInfo": ("SchemaRegistryClient.encoding_info",),
    "GroupHistoryRecord": ("SchemaRegistryClient.history",),
}

#: Class for asyncio -> the class with the descriptions of its calls.
COUNTERPARTS: Final[Mapping[str, str]] = {
    f"Async{name}": name
    for name in [
        "PravegaClient",
        "EventWriter",
        "TransactionalWriter",
        "OpenTransaction",
        "Transaction",
        "StreamsTransaction",
        "LeaseKeeper",
        "TailReader",
        "ValueReader",
        "ReaderGroup",
        "GroupReader",
        "ExactlyOnceReader",
        "Table",
        "SchemaRegistryClient",
    ]
}

#: Classes whose methods Spark calls, and users do not.
TEXT_ONLY: Final = frozenset({"PravegaDataSource", "QueryMetrics"})

#: Types in signatures -> their module.
ALIASES: Final[Mapping[str, str]] = {
    "Stream": f"{_CONNECTOR}.core.arguments",
    "Streams": f"{_CONNECTOR}.core.arguments",
    "NamedTable": f"{_CONNECTOR}.core.arguments",
    "Position": f"{_CONNECTOR}.core.arguments",
    "IfExists": f"{_CONNECTOR}.core.arguments",
    "SupportsSerialize": f"{_CONNECTOR}.core.events",
    "SupportsDeserialize": f"{_CONNECTOR}.core.events",
    "SupportsBoth": f"{_CONNECTOR}.single_segment.revisioned",
}
