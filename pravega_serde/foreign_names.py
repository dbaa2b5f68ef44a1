"""Names from other clients of Pravega, Kafka, Pulsar and PySpark, with their counterparts in this project.

Errors use the table, and so do the pages ``docs/reference/names.md`` and ``docs/get-started/from-….md``, which
``python -m tools.pages`` generates. Each text follows "pravega_connector has no StreamManager: ". A text in backticks
is a public name, or an attribute of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_WRITER: Final = "`PravegaClient.writer(stream, serializer)` returns an `EventWriter`"
_READER: Final = "`PravegaClient.read` reads to the current tail, `PravegaClient.follow` continues as events arrive"
_CONSUMER: Final = f"{_READER}; for a consumer group, use `PravegaClient.reader_group`"
_GROUPS: Final = "`PravegaClient.reader_group` creates a `ReaderGroup` or joins it"
_TRANSACTIONS: Final = "`PravegaClient.transactions(stream, serializer)` returns a `TransactionalWriter`"
_BYTES: Final = "`PravegaClient.byte_reader` and `PravegaClient.byte_writer` return file objects"
_CLIENT: Final = "`PravegaClient(controller)` creates writers and readers"
_MANAGE: Final = (
    "`PravegaClient.create_stream`, `PravegaClient.streams`, `PravegaClient.scopes`, `PravegaClient.describe` and "
    "`PravegaClient.delete_stream`"
)
_CONFIG: Final = "use `PravegaConfig` (controller, scope, credentials, TLS) and `PravegaClient(config)`"
_CREDENTIALS: Final = "use `PravegaConfig.with_credentials(username, password)`"
_TABLES: Final = "`PravegaClient.create_table`, `PravegaClient.delete_table`, and `PravegaClient.table` opens one"
_CUT: Final = "positions are `StreamCut` objects, such as `PravegaClient.head` and `PravegaClient.tail` return"
_AVRO: Final = "`AvroSerializer` writes and reads, with `typed` for objects of your class"
_JSON: Final = "`JsonSerializer` writes and reads, with `typed` for objects of your class"
_PROTOBUF: Final = "`ProtobufSerializer` writes and reads"
_STRING: Final = "`UTF8StringSerializer` writes and reads"
_BYTE_ARRAY: Final = "`ByteArraySerializer` writes and reads"
_READ_BY_REGISTRY: Final = "with a schema registry, use `pravega_serde.registry.deserializer`; without one, "
_BY_REGISTRY: Final = "use `pravega_serde.registry.serializer` and `pravega_serde.registry.deserializer`"
_ERRORS: Final = "every error is a `PravegaError`; errors of servers, streams or settings are `ConnectorError`"

#: Where names come from -> names, separated by blanks -> what they are called here.
ELSEWHERE: Final[Mapping[str, Mapping[str, str]]] = {
    "Kafka's clients": {
        "Producer KafkaProducer SerializingProducer": _WRITER,
        "Consumer KafkaConsumer DeserializingConsumer": _CONSUMER,
        "AIOKafkaProducer": "`AsyncPravegaClient.writer(stream, serializer)` returns a writer for asyncio",
        "AIOKafkaConsumer": "`AsyncPravegaClient.follow` continues as events arrive; for a consumer group, use "
        "`AsyncPravegaClient.reader_group`",
        "ConsumerRebalanceListener": "not supported; `GroupReader.position` has the segments of a reader",
        "AdminClient KafkaAdminClient": _MANAGE,
        "NewTopic": "use `PravegaClient.create_stream(stream, segments)`",
        "TopicPartition OffsetAndMetadata": _CUT,
        "ConsumerRecord": "`PravegaClient.read` returns values, `PravegaClient.read_columns` columns with offsets",
        "KafkaError KafkaException": _ERRORS,
        "StringSerializer StringDeserializer": _STRING,
        "AvroDeserializer": _READ_BY_REGISTRY + _AVRO,
        "JSONDeserializer": _READ_BY_REGISTRY + _JSON,
        "ProtobufDeserializer": _READ_BY_REGISTRY + _PROTOBUF,
        "RegisteredSchema": "use `SchemaInfo`",
    },
    "Pulsar's client": {
        "Client": _CLIENT,
        "Producer": _WRITER,
        "Consumer Reader": _CONSUMER,
        "MessageId": _CUT,
        "AuthenticationToken": "use `PravegaConfig.with_token(token)`",
        "AuthenticationBasic": _CREDENTIALS,
        "StringSchema": _STRING,
        "BytesSchema": _BYTE_ARRAY,
        "AvroSchema": _AVRO,
        "JsonSchema": _JSON,
        "ProtobufNativeSchema": _PROTOBUF,
    },
    "Pravega's Java client": {
        "ClientConfig": _CONFIG,
        "Credentials DefaultCredentials": _CREDENTIALS,
        "StreamManager": _MANAGE,
        "StreamConfiguration": "`PravegaClient.create_stream` accepts a `ScalingPolicy` and a `RetentionPolicy`",
        "Stream": "use `StreamName`, or the text 'scope/stream'",
        "ClientFactory EventStreamClientFactory": _CLIENT,
        "EventStreamWriter": _WRITER,
        "EventStreamReader": _CONSUMER,
        "ReaderGroupConfig ReaderGroupManager": _GROUPS,
        "Position": _CUT,
        "TransactionalEventStreamWriter": _TRANSACTIONS,
        "TxnFailedException": "use `TransactionError`",
        "BatchClientFactory": "`PravegaClient.read_columns` reads between two cuts",
        "ByteStreamClientFactory ByteStreamReader ByteStreamWriter": _BYTES,
        "SynchronizerClientFactory": "use `PravegaClient.synchronizer` and `PravegaClient.revisioned`",
        "KeyValueTable KeyValueTableFactory KeyValueTableManager": _TABLES,
        "JavaObjectSerializer": "use `JavaSerializer`",
        "AvroGenericSerializer AvroReflectSerializer": _AVRO,
        "SerializerFactory": _BY_REGISTRY,
        "SchemaRegistryClientConfig": "use `RegistryConfig`",
        "SchemaRegistryClientFactory": "use `SchemaRegistryClient(uri)`",
    },
    "Pravega's Rust client and its Python binding": {
        "ClientFactory": _CLIENT,
        "StreamManager": _MANAGE,
        "StreamScalingPolicy": "use `ScalingPolicy`",
        "StreamRetentionPolicy": "use `RetentionPolicy`",
        "StreamWriter": _WRITER,
        "StreamReader": _READER,
        "StreamReaderGroup StreamReaderGroupConfig": _GROUPS,
        "StreamTxnWriter": _TRANSACTIONS,
        "StreamTransaction": "use `Transaction`",
        "TxnFailedException": "use `TransactionError`",
        "ByteStream": _BYTES,
    },
    "PySpark": {
        "from_avro from_protobuf from_json": "use `from_pravega(column, format)`, which has all formats",
        "to_avro to_protobuf to_json": "use `to_pravega(column, format)`, which has all formats",
        "PravegaSource PravegaSink": "`PravegaDataSource` is both; Spark finds it as format('pravega')",
        "register": "not needed: Spark finds format('pravega') if this package is installed",
    },
    "asyncio": {
        "AsyncClient": "use `AsyncPravegaClient`",
    },
}
