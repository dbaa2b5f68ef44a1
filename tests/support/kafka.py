"""A real Kafka broker in KRaft mode, from Maven Central. It can be stopped, and started again with its data."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from pravega_connector.local.jars import JarSet, ensure_jars
from pravega_connector.local.jvm import find_java
from pravega_connector.local.launch import HOST, NotReadyError, check_log
from pravega_connector.local.process import SupervisedProcess
from pravega_connector.tcp_ports import free_ports

__all__ = ["PASSWORD", "USER", "KafkaBroker", "kafka_broker"]

_JARS: Final = JarSet.load("kafka", "4.1.2", Path(__file__).parent)
_CLUSTER_ID: Final = "cHJhdmVnYS1zZXJkZS10ZQ"
_START_SECONDS: Final = 240.0
_CALL_SECONDS: Final = 120.0
#: User and password of the listener with SASL.
USER: Final = "reader"
PASSWORD: Final = "s3cr3t-w0rd"


class KafkaBroker:
    """One broker, which is also the controller. ``folder`` has its configuration, log and data."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._process = folder, None
        self._plain, self._sasl, controller = free_ports(3)
        self._admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.servers},SASL_PLAINTEXT://{self.sasl},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.servers},SASL_PLAINTEXT://{self.sasl}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                f'{module} required username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
            ),
            "log.dirs": folder / "data",
            "num.network.threads": 2,
            "num.io.threads": 2,
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
            # The tests write records with old timestamps, which the default of a week deletes at some moment.
            "log.retention.ms": -1,
        }
        self._properties = folder / "server.properties"
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    @property
    def servers(self) -> str:
        """Address without security."""
        return f"{HOST}:{self._plain}"

    @property
    def sasl(self) -> str:
        """Address with SASL/PLAIN."""
        return f"{HOST}:{self._sasl}"

    def url(self, topic: str) -> str:
        """Return the address of a topic, as ``ingest`` accepts it."""
        return f"kafka://{self.servers}/{topic}"

    # ---- the process

    def format(self) -> None:
        """Format the folder of the data."""
        words = ["format", "--cluster-id", _CLUSTER_ID, "--config", str(self._properties)]
        subprocess.run(self._java("kafka.tools.StorageTool", *words), check=True, timeout=_START_SECONDS)

    def start(self) -> None:
        """Start the broker, and wait until it answers."""
        log = self._folder / "server.log"
        with log.open("wb") as output:
            self._process = SupervisedProcess(self._java("kafka.Kafka", str(self._properties)), output=output)
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            check_log("the Kafka broker", log, self._process.exit_code())
            try:
                self._admin.list_topics(timeout=1.0)
            except KafkaException:
                time.sleep(0.05)
            else:
                return
        raise NotReadyError(f"the Kafka broker was not ready in time; see {log}")

    def stop(self) -> None:
        """Stop the broker; its data stays."""
        if self._process is not None:
            self._process.close()

    def _java(self, *words: str) -> list[str]:
        flags = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        classes = os.path.join(ensure_jars(_JARS), "*")
        return [str(find_java().path), *flags, "-cp", classes, *words]

    # ---- topics

    def create(self, topic: str, partitions: int = 1, **config: str) -> None:
        """Create a topic. Names in ``config`` have underscores instead of dots."""
        wanted = {name.replace("_", "."): value for name, value in config.items()}
        self._done(self._admin.create_topics([NewTopic(topic, partitions, 1, config=wanted)]))

    def delete(self, topic: str) -> None:
        self._done(self._admin.delete_topics([topic]))

    def add_partitions(self, topic: str, total: int) -> None:
        """Add partitions, and wait until clients can write to them."""
        self._done(self._admin.create_partitions([NewPartitions(topic, total)]))
        deadline = time.monotonic() + _CALL_SECONDS
        while len(self._admin.list_topics(topic, timeout=_CALL_SECONDS).topics[topic].partitions) < total:
            assert time.monotonic() < deadline, f"topic {topic} does not get {total} partitions"
            time.sleep(0.02)

    def truncate(self, topic: str, partition: int, offset: int) -> None:
        """Delete the records before an offset, as retention does."""
        admin = AdminClient({"bootstrap.servers": self.servers})  # one that knows partitions that were just added
        self._done(admin.delete_records([TopicPartition(topic, partition, offset)]))

    def write(self, topic: str, records: Iterable[Mapping[str, Any]], **config: object) -> None:
        """Write records, which are arguments of ``Producer.produce``; durable on return."""
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5, **config})
        failed: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failed.append(error)

        for record in records:
            producer.produce(topic, on_delivery=on_delivery, **record)
        waiting = producer.flush(_CALL_SECONDS)
        assert (waiting, failed) == (0, [])

    @staticmethod
    def _done(futures: Mapping[Any, Any]) -> None:
        for future in futures.values():
            future.result(_CALL_SECONDS)


@contextmanager
def kafka_broker() -> Iterator[KafkaBroker]:
    """Yield a broker that ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="kafka-"))
    try:
        broker = KafkaBroker(folder)
        broker.format()
        broker.start()
        try:
            yield broker
        finally:
            broker.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
