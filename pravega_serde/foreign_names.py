"""Names from other clients of Pravega, Kafka, Pulsar and PySpark, with their counterparts in this project.

Errors use the table, and so do the pages ``docs/reference/names.md`` and ``docs/get-started/from-….md``, which
``python -m tools.pages`` generates. Each text follows "pravega_connector has no StreamManager: ". A text in backticks
is a public name, or an attribute of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_WRITER: Final = "`PravegaClient.writer(stream, serializer)` makes an `EventWriter`"
_READER: Final = "`PravegaClient.read` reads to the current tail, `PravegaClient.follow` continues as events arrive"
_CONSUMER: Final = f"{_READER}; processes that share the work are readers of a `PravegaClient.reader_group`"
_GROUPS: Final = "`PravegaClient.reader_group` makes a `ReaderGroup`, or joins the one that there is"
_TRANSACTIONS: Final = "`PravegaClient.transactions(stream, serializer)` makes a `TransactionalWriter`"
_BYTES: Final = "`PravegaClient.byte_reader` and `PravegaClient.byte_writer` give file objects"
_CLIENT: Final = "a `PravegaClient(controller)` makes writers and readers itself"
_MANAGE: Final = (
    "`PravegaClient.create_stream`, `PravegaClient.streams`, `PravegaClient.scopes`, `PravegaClient.describe` and "
    "`PravegaClient.delete_stream`"
)
_CONFIG: Final = "use `PravegaConfig` (controller, scope, credentials, TLS) and `PravegaClient(config)`"
_CREDENTIALS: Final = "use `PravegaConfig.with_credentials(username, password)`"
_NO_TABLES: Final = "key-value tables are not supported; `PravegaClient.synchronizer` shares a state between processes"
_CUT: Final = "positions are `StreamCut` objects; `PravegaClient.head` and `PravegaClient.tail` give those of the ends"
_AVRO: Final = "`AvroSerializer` writes and reads; `typed` makes it one of objects of a class"
_JSON: Final = "`JsonSerializer` writes and reads; `typed` makes it one of objects of a class"
_PROTOBUF: Final = "`ProtobufSerializer` writes and reads"
_STRING: Final = "`UTF8StringSerializer` writes and reads"
_BYTE_ARRAY: Final = "`ByteArraySerializer` writes and reads"
_READ_BY_REGISTRY: Final = "with a schema registry, use `pravega_serde.registry.deserializer`; without one, "
_BY_REGISTRY: Final = "use `pravega_serde.registry.serializer` and `pravega_serde.registry.deserializer`"
_ERRORS: Final = "every error is a `PravegaError`, one of servers, streams or settings a `ConnectorError`"

#: Where names come from -> names, separated by blanks -> what they are called here.
ELSEWHERE: Final[Mapping[str, Mapping[str, str]]] = {
    "Kafka's clients": {
        "Producer KafkaProducer SerializingProducer": _WRITER,
        "Consumer KafkaConsumer DeserializingConsumer": _CONSUMER,
        "AIOKafkaProducer": "`AsyncPravegaClient.writer(stream, serializer)` makes a writer for asyncio",
        "AIOKafkaConsumer": "`AsyncPravegaClient.follow` continues as events arrive; processes that share the work are "
        "readers of an `AsyncPravegaClient.reader_group`",
        "ConsumerRebalanceListener": "there is none; `GroupReader.position` has the segments that a reader owns",
        "AdminClient KafkaAdminClient": _MANAGE,
        "NewTopic": "use `PravegaClient.create_stream(stream, segments)`",
        "TopicPartition OffsetAndMetadata": _CUT,
        "ConsumerRecord": "`PravegaClient.read` gives values, `PravegaClient.read_columns` columns with their offsets",
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
        "StreamConfiguration": "`PravegaClient.create_stream` takes a `ScalingPolicy` and a `RetentionPolicy`",
        "Stream": "use `StreamName`, or the text 'scope/stream'",
        "ClientFactory EventStreamClientFactory": _CLIENT,
        "EventStreamWriter": _WRITER,
        "EventStreamReader": _CONSUMER,
        "ReaderGroupConfig ReaderGroupManager": _GROUPS,
        "Position EventPointer": _CUT,
        "TransactionalEventStreamWriter": _TRANSACTIONS,
        "TxnFailedException": "use `TransactionError`",
        "BatchClientFactory": "`PravegaClient.read_columns` reads between two cuts",
        "ByteStreamClientFactory ByteStreamReader ByteStreamWriter": _BYTES,
        "SynchronizerClientFactory": "use `PravegaClient.synchronizer` and `PravegaClient.revisioned`",
        "KeyValueTable KeyValueTableFactory KeyValueTableManager": _NO_TABLES,
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
        "from_avro from_protobuf from_json": "`from_pravega(column, format)` has all formats",
        "to_avro to_protobuf to_json": "`to_pravega(column, format)` has all formats",
        "PravegaSource PravegaSink": "`PravegaDataSource` is both; Spark finds it as format('pravega')",
        "register": "nothing is to be registered: Spark finds format('pravega') where this package is installed",
    },
    "asyncio": {
        "AsyncClient": "use `AsyncPravegaClient`",
    },
}
