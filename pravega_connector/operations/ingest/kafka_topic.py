"""Kafka topic: its identity and partitions, the ends of their records, and a reader of one partition at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from pravega_connector.errors import (
    ConfigError,
    ConnectorError,
    IngestError,
    KafkaRefusedError,
    KafkaTopicNotFoundError,
    KafkaUnavailableError,
    SourceChangedError,
)
from pravega_serde.errors import MissingExtraError

SCHEME: Final = "kafka://"
_ADDRESS: Final = re.compile(r"kafka://([^/?#@\s]+)/([A-Za-z0-9._-]{1,249})")
# Seconds of one call. An outage is several failed calls.
_CALL: Final = 10.0
# Seconds of a wait for records, which cannot be interrupted.
_POLL: Final = 0.05
#: Settings that the exactly-once protocol depends on.
_OWN: Final[Mapping[str, object]] = {
    "allow.auto.create.topics": False,
    "auto.offset.reset": "error",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
}
#: Settings that a user may replace. No group is joined; a consumer needs the name of one all the same.
_DEFAULTS: Final[Mapping[str, object]] = {
    "client.id": "pravega-serde",
    "group.id": "pravega-serde-ingest",
    "isolation.level": "read_committed",
    "log_level": 0,  # errors are raised
    # A partition is read while it has records. At its end, this is the time until the consumer reports the end.
    "fetch.wait.max.ms": 10,
}
_REFUSALS: Final = (
    "_AUTHENTICATION",
    "_SSL",
    "CLUSTER_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "SASL_AUTHENTICATION_FAILED",
    "TOPIC_AUTHORIZATION_FAILED",
)
_UNKNOWN: Final = "UNKNOWN_TOPIC_OR_PART"
_PASSING: Final = (
    "_ALL_BROKERS_DOWN",
    "_RESOLVE",
    "_TIMED_OUT",
    "_TIMED_OUT_QUEUE",
    "_TRANSPORT",
    # A partition that was added is not known to each client at once. If it was deleted, so was its topic.
    "_NOENT",
    "_UNKNOWN_PARTITION",
    "_UNKNOWN_TOPIC",
    _UNKNOWN,
)


class KafkaAddress(NamedTuple):
    """Brokers and topic."""

    servers: str
    topic: str

    @classmethod
    def parse(cls, text: str) -> KafkaAddress:
        """Parse ``kafka://host:port,host:port/topic``. Raises ConfigError."""
        match = _ADDRESS.fullmatch(text)
        if match is None:
            raise ConfigError(
                f"invalid Kafka address {text!r}; write kafka://host:port/topic, such as kafka://b1:9092/t"
            )
        return cls(*match.groups())

    def __str__(self) -> str:
        return f"Kafka topic {self.topic} at {self.servers}"


def parse_kafka_config(text: str) -> dict[str, str]:
    """Parse lines ``name=value``, as in a properties file of a Kafka client. Raises ConfigError."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise ConfigError(f"line {number} of the Kafka configuration is not name=value")  # it may have a secret
        found[name.strip()] = value.strip()
    return found


class Identity(NamedTuple):
    """Id of a topic, which a recreated topic does not have, and its partitions."""

    id: str
    partitions: tuple[int, ...]


def check_id(address: KafkaAddress, topic_id: str, ingested: str) -> None:
    """Raise SourceChangedError if the topic at an address has another id than the ingested one: it was recreated."""
    if topic_id != ingested:
        raise SourceChangedError(
            f"{address} was recreated, or is of another cluster: its id is {topic_id}, but the ingested topic has "
            f"{ingested}. To ingest it from its start, set another stream for the state (--state)"
        )


class OutOfRangeError(Exception):
    """The offset to read from does not exist."""


class KafkaTopic:
    """Client of one topic. Not thread safe."""

    def __init__(self, address: KafkaAddress, config: Mapping[str, object]) -> None:
        """Set up; nothing is sent. Raises ConfigError for invalid settings, MissingExtraError."""
        try:
            import confluent_kafka.admin  # noqa: PLC0415 - an optional package
        except ImportError as error:
            raise MissingExtraError("confluent-kafka", "kafka", purpose="ingestion from Kafka") from error
        if fixed := sorted({"bootstrap.servers", *_OWN} & config.keys()):
            raise ConfigError(f"the Kafka setting {fixed[0]!r} cannot be changed: remove it")
        self._kafka, self._admin_module, self._address = confluent_kafka, confluent_kafka.admin, address
        self._failure: Any = None  # last error that librdkafka reported apart from a call
        wanted = {**_DEFAULTS, **config, **_OWN, "bootstrap.servers": address.servers, "error_cb": self._note}
        try:
            self._consumer = confluent_kafka.Consumer(wanted)
            self._admin = confluent_kafka.admin.AdminClient(wanted)
        except (confluent_kafka.KafkaException, TypeError, ValueError) as error:
            detail = error.args[0].str() if isinstance(error, confluent_kafka.KafkaException) else error
            raise ConfigError(f"invalid Kafka configuration: {detail}") from None
        level = str(wanted["isolation.level"]).upper()
        self._isolation = confluent_kafka.IsolationLevel[level]
        self._at: tuple[int, int] | None = None  # partition that is read, and the next offset

    def identity(self) -> Identity:
        """Return the id and the partitions.

        Raises KafkaTopicNotFoundError, KafkaUnavailableError, KafkaRefusedError.
        """
        topics = self._kafka.TopicCollection([self._address.topic])
        described = self._admin.describe_topics(topics, request_timeout=_CALL)[self._address.topic]
        found = self._result(described, missing=_UNKNOWN)
        return Identity(str(found.topic_id), tuple(sorted(each.id for each in found.partitions)))

    def first_offsets(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return the offset of the first record of each partition."""
        return self._offsets(partitions, self._admin_module.OffsetSpec.earliest())

    def end_offsets(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return the offset after the last committed record of each partition."""
        return self._offsets(partitions, self._admin_module.OffsetSpec.latest())

    def read(self, partition: int, offset: int, count: int) -> tuple[list[Any], int]:
        """Return about ``count`` messages or none, and the offset to continue at; the offset may skip some numbers.

        Raises OutOfRangeError, KafkaUnavailableError, KafkaTopicNotFoundError, KafkaRefusedError.
        """
        if self._at != (partition, offset):
            self._consumer.assign([self._kafka.TopicPartition(self._address.topic, partition, offset)])
        self._at = None
        messages = []
        for message in self._consumer.consume(count, timeout=_POLL):
            if (error := message.error()) is None:
                messages.append(message)
                offset = message.offset() + 1
            elif error.code() == self._kafka.KafkaError._PARTITION_EOF:
                offset = max(offset, message.offset())
            elif error.code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:
                raise OutOfRangeError
            else:
                raise self._error(error)
        self._at = partition, offset
        if messages:
            self._failure = None
        return messages, offset

    @property
    def is_down(self) -> bool:
        """True if librdkafka has lost or was refused all connections since the last answer."""
        return self._failure is not None and self._failure.name() in ("_ALL_BROKERS_DOWN", *_REFUSALS)

    def pause(self) -> None:
        """Fetch nothing until the next read."""
        self._consumer.unassign()
        self._at = None

    def close(self) -> None:
        """Close the connections."""
        with suppress(RuntimeError, self._kafka.KafkaException):
            self._consumer.close()

    # ---------------------------------------------------------------- inside

    def _offsets(self, partitions: Iterable[int], spec: Any) -> dict[int, int]:
        wanted = {self._kafka.TopicPartition(self._address.topic, each): spec for each in partitions}
        if not wanted:
            return {}
        found = self._admin.list_offsets(wanted, isolation_level=self._isolation, request_timeout=_CALL)
        return {place.partition: self._result(future).offset for place, future in found.items()}

    def _result(self, future: Any, *, missing: str = "") -> Any:
        try:
            found = future.result(2 * _CALL)
        except self._kafka.KafkaException as error:
            if error.args[0].name() == missing:
                raise KafkaTopicNotFoundError(f"{self._address} does not exist: check its name and brokers") from None
            raise self._error(error.args[0]) from None
        self._failure = None
        return found

    def _note(self, error: Any) -> None:
        if self._failure is None or self._failure.name() not in _REFUSALS:
            self._failure = error

    def _error(self, error: Any) -> ConnectorError:
        """Return the error of this project for one of librdkafka. A time-out has the cause that it reported before."""
        if error.name() in _PASSING:
            self._admin.poll(0)
            self._consumer.poll(0)
            self._at = None  # it may have returned a message
            error, self._failure = self._failure or error, None
        name, text = error.name(), error.str()
        if name in _REFUSALS:
            return KafkaRefusedError(f"{self._address}: the broker refuses this client: {text}; check its settings")
        if name in _PASSING or error.retriable():
            return KafkaUnavailableError(f"{self._address}: no broker answers: {text}; check address and brokers")
        return IngestError(f"{self._address}: {text}")
