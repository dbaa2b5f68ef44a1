"""Ingestion of Kafka topics, from a real broker."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.config import PravegaConfig
from pravega_connector.controller.service import ControllerClient
from pravega_connector.errors import (
    BadRecordError,
    DataLossError,
    KafkaRefusedError,
    KafkaTopicNotFoundError,
    KafkaUnavailableError,
    SourceChangedError,
)
from pravega_connector.operations.cli.root import command_line
from pravega_connector.operations.ingest import IngestSummary, KafkaOptions, KafkaSource, Settings, Sizes, ingest
from pravega_serde import Enveloped, JsonSerializer
from pravega_serde.text import ByteArraySerializer
from tests.support import kafka_clients, pages
from tests.support.kafka import PASSWORD, USER, KafkaBroker, kafka_broker

pytestmark = [pytest.mark.both_servers, pytest.mark.long]
Ingest = Callable[..., IngestSummary]


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with kafka_broker() as started:
        yield started


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def run(broker: KafkaBroker, topic: str, client: PravegaClient, target: StreamName) -> Ingest:
    """``run(options=…, **KafkaOptions)``: one run of the ingestion."""

    def start(options: dict[str, str] | None = None, *, sizes: Sizes | None = None, **kafka: Any) -> IngestSummary:
        source = KafkaSource(broker.url(topic), KafkaOptions(**kafka))
        try:
            return ingest(source, target, client=client, options=options, sizes=sizes)
        finally:
            source.close()

    return start


def test_each_record_is_ingested_once(broker, topic, client, target, steps):
    """Keys become routing keys, and partitions that were added are found."""
    broker.create(topic, 3)
    broker.write(topic, [{"key": f"k{n % 7}", "value": f"{n % 7} {n}"} for n in range(700)])
    summary = ingest(broker.url(topic), target, client=client, sizes=Sizes(records=300))
    assert (summary.counts.events, summary.counts.transactions) == (700, 3)
    broker.add_partitions(topic, 5)
    broker.write(topic, [{"key": f"k{n % 7}", "value": f"{n % 7} {n}"} for n in range(700, 1400)])
    assert ingest(broker.url(topic), target, client=client).counts.events == 700
    assert ingest(broker.url(topic), target, client=client).counts.events == 0
    found: dict[int, list[int]] = defaultdict(list)
    for event in client.read(target):
        key, number = map(int, event.split())
        found[key].append(number)
    assert dict(found) == {key: list(range(key, 1400, 7)) for key in range(7)}
    positions = steps.read().positions
    assert sorted(positions) == [f"kafka:{topic}-{partition}" for partition in range(5)]
    assert sum(offset for _, offset, _ in positions.values()) == 1400


def test_a_column_names_the_stream_and_a_part_is_written_again(broker, topic, client, target, monkeypatch):
    other = StreamName(target.scope, f"{target.stream}-other")
    client.create_stream(other, 2)
    broker.create(topic, 3)
    names = [None, other.stream]
    values = [json.dumps({"number": n, "stream": names[n % 2]}) for n in range(300)]
    broker.write(topic, [{"key": f"k{n % 7}", "value": value} for n, value in enumerate(values)])
    commit, ended = ControllerClient.commit_transaction, list[StreamName]()

    def commit_late(controller: ControllerClient, stream: StreamName, *args: Any, **options: Any) -> Any:
        if stream == other and not ended:
            ended.append(stream)
            controller.abort_transaction(stream, args[0])
        return commit(controller, stream, *args, **options)

    monkeypatch.setattr(ControllerClient, "commit_transaction", commit_late)
    source = KafkaSource(broker.url(topic), KafkaOptions(input={"format": "json"}))
    try:
        summary = ingest(source, target, client=client, target_column="stream", sizes=Sizes(records=100))
    finally:
        source.close()
    assert (summary.counts.events, summary.counts.rewritten, ended) == (300, 1, [other])
    for number, stream in enumerate((target, other)):
        found: dict[int, list[int]] = defaultdict(list)
        for event in client.read(stream):
            assert set(json.loads(event)) == {"number"}
            found[json.loads(event)["number"] % 7].append(json.loads(event)["number"])
        assert dict(found) == {key: [n for n in range(number, 300, 2) if n % 7 == key] for key in found}
        assert sum(map(len, found.values())) == 150


def test_a_run_that_wakes_after_another_one_has_continued_repeats_nothing(broker, topic, client, target, monkeypatch):
    other = StreamName(target.scope, f"{target.stream}-other")
    client.create_stream(other, 2)
    broker.create(topic, 2)
    names = [None, other.stream]
    broker.write(topic, [{"value": json.dumps({"number": n, "stream": names[n % 2]})} for n in range(30)])
    commit, counts = ControllerClient.commit_transaction, list[int]()

    def run() -> None:
        source = KafkaSource(broker.url(topic), KafkaOptions(input={"format": "json"}))
        try:
            options: dict[str, Any] = {"target_column": "stream", "sizes": Sizes(records=6), "takeover_after": 0.0}
            counts.append(ingest(source, target, client=client, **options).counts.rewritten)
        finally:
            source.close()

    def commit_late(controller: ControllerClient, stream: StreamName, *args: Any, **options: Any) -> Any:
        if stream == other:
            monkeypatch.setattr(ControllerClient, "commit_transaction", commit)
            controller.abort_transaction(stream, args[0])
            run()
        return commit(controller, stream, *args, **options)

    monkeypatch.setattr(ControllerClient, "commit_transaction", commit_late)
    run()
    assert counts == [1, 0]
    found = [json.loads(event)["number"] for stream in (target, other) for event in client.read(stream)]
    assert sorted(found) == list(range(30))


def test_aborted_records_are_not_ingested(broker, topic, run, client, target):
    """Open transactions are waited for: their records come in a later run, in their order."""
    broker.create(topic)
    producer = Producer({"bootstrap.servers": broker.servers, "transactional.id": topic})
    producer.init_transactions(30)
    for number, outcome in enumerate((producer.commit_transaction, producer.abort_transaction, None)):
        producer.begin_transaction()
        producer.produce(topic, str(number))
        producer.flush()
        if outcome is not None:
            outcome()
    broker.write(topic, [{"value": "3"}])
    assert run().counts.events == 1
    producer.commit_transaction()
    assert run().counts.events == 2
    assert list(client.read(target)) == [b"0", b"2", b"3"]


def test_keyless_records_keep_the_order_of_their_partition(broker, topic, run, client, target):
    broker.create(topic, 4)
    broker.write(topic, [{"value": f"{n % 4} {n}", "partition": n % 4} for n in range(400)])
    broker.write(topic, [{"key": "", "value": "4 0"}, {"key": b"\xff", "value": "5 0"}, {"key": "gone", "value": None}])
    assert run().counts.events == 403
    events = list(client.read(target))
    for partition in range(4):
        mine = [int(event.split()[1]) for event in events if event.startswith(b"%d " % partition)]
        assert mine == list(range(partition, 400, 4))
    assert events.count(b"") == 1


def test_values_in_another_format(broker, topic, run, client, target, tmp_path):
    broker.create(topic, 2)
    broker.write(topic, [{"key": "a", "value": json.dumps({"id": n, "item": f"tea {n}"})} for n in range(10)])
    assert run({"format": "avro"}, input={"format": "json"}).counts.events == 10
    broker.write(topic, [{"key": "a", "value": value} for value in ("no json", '{"id": 10, "item": "tea 10"}')])
    with pytest.raises(BadRecordError, match=rf"offset 10 of {topic}-\d is malformed") as raised:
        run({"format": "avro"}, input={"format": "json"})
    assert raised.value.code == "PRAVEGA-BAD-RECORD"
    source = KafkaSource(broker.url(topic), KafkaOptions(input={"format": "json"}, reject=True))
    summary = ingest(source, target, client=client, options={"format": "avro"}, dead_letters=tmp_path)
    source.close()
    assert (summary.counts.events, summary.counts.rejected) == (1, 1)
    (letters,) = tmp_path.iterdir()
    assert json.loads(letters.read_text())["text"] == "no json"
    assert len(list(client.read(target))) == 11


def test_values_of_a_confluent_registry(broker, topic, run, client, target, confluent):
    broker.create(topic)
    order = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    with SchemaRegistryClient({"url": confluent}) as registry:
        serialize = AvroSerializer(registry, json.dumps(order))
        values = [serialize({"id": n}, SerializationContext(topic, MessageField.VALUE)) for n in range(3)]
    broker.write(topic, [{"key": "a", "value": value} for value in values])
    assert run(input={"registry": f"confluent+{confluent}"}).counts.events == 3
    assert list(client.read(target)) == [b'{"id":0}', b'{"id":1}', b'{"id":2}']


def test_a_partition_with_a_malformed_value_is_left_out(broker, topic, client, target):
    broker.create(topic, 2)
    broker.write(topic, [{"value": '{"id": 1}', "partition": 1}, {"value": "bad", "partition": 0}])
    source = KafkaSource(broker.url(topic), KafkaOptions(input={"format": "json"}))
    summary = ingest(source, target, client=client, settings=Settings(keep_going=True))
    source.close()
    assert list(summary.failed) == [f"kafka:{topic}-0"]
    assert list(client.read(target)) == [b'{"id":1}']


@pytest.mark.parametrize("format_", ["bytes", "json"])
def test_key_time_and_headers_in_envelopes(broker, topic, run, client, target, format_):
    broker.create(topic)
    headers = [("Trace-Id", b"t7"), ("ce_type", b"order"), ("id", b"9"), ("none", None)]
    broker.write(topic, [{"key": "ann", "value": '{"n": 1}', "headers": headers, "timestamp": 1_700_000_000_123}])
    broker.write(topic, [{"key": "ann", "value": None}])
    given = None if format_ == "bytes" else {"format": format_}
    assert run({"envelope": "cloudevents", "format": format_}, input=given).counts.events == 2
    inner: Any = ByteArraySerializer() if format_ == "bytes" else JsonSerializer()
    first, second = client.read(target, Enveloped(inner))
    assert first.value == (b'{"n": 1}' if format_ == "bytes" else {"n": 1})
    assert (first.key, first.time.timestamp()) == ("ann", 1_700_000_000.123)
    assert first.headers | {"datacontenttype": ""} == {
        "id": f"{topic}-0-0",
        "source": f"kafka:{topic}",
        "type": "order",
        "traceid": "t7",
        "kafkaid": "9",
        "datacontenttype": "",
    }
    assert (second.value, second.headers["type"]) == (None, topic)


def test_deleted_records_are_data_loss(broker, topic, run, client, target, caplog):
    broker.create(topic, 2)
    broker.write(topic, [{"value": str(n), "partition": n % 2} for n in range(20)])
    broker.truncate(topic, 0, 4)
    assert run().counts.events == 16  # nothing was ingested before: the first run begins at the first records
    broker.write(topic, [{"value": str(n), "partition": n % 2} for n in range(20, 40)])
    broker.truncate(topic, 1, 15)
    with pytest.raises(DataLossError, match=r"partition 1, offset 10: the records before offset 15 .*--skip-lost"):
        run()
    with caplog.at_level(logging.WARNING):
        assert run(skip_lost=True).counts.events == 15
    assert "skipped deleted records up to offset 15" in caplog.text
    assert run().counts.events == 0
    broker.add_partitions(topic, 3)
    broker.write(topic, [{"value": str(n), "partition": 2} for n in range(40, 45)])
    broker.truncate(topic, 2, 2)
    with pytest.raises(DataLossError, match="partition 2, offset 0"):
        run()


def test_a_partition_that_was_truncated_whole_is_skipped_once(broker, topic, run, steps, caplog):
    broker.create(topic, 1)
    broker.write(topic, [{"value": str(n)} for n in range(10)])
    run()
    broker.write(topic, [{"value": str(n)} for n in range(10, 20)])
    broker.truncate(topic, 0, 20)
    with pytest.raises(DataLossError, match="offset 10: the records before offset 20"):
        run()
    with caplog.at_level(logging.WARNING):
        assert run(skip_lost=True).counts.events == 0
    assert "skipped deleted records up to offset 20" in caplog.text
    assert [offset for _, offset, _ in steps.read().positions.values()] == [20]
    assert run().counts.events == 0
    broker.write(topic, [{"value": "20"}])
    assert run().counts.events == 1


def test_the_positions_of_an_empty_topic_are_recorded(broker, topic, run):
    broker.create(topic, 2)
    assert run().counts.events == 0
    broker.write(topic, [{"value": str(n), "partition": n % 2} for n in range(10)])
    broker.truncate(topic, 0, 3)
    with pytest.raises(DataLossError, match="partition 0, offset 0: the records before offset 3"):
        run()


def test_a_recreated_topic_is_an_error(broker, topic, run):
    broker.create(topic)
    broker.write(topic, [{"value": "1"}])
    run()
    broker.delete(topic)
    with pytest.raises(KafkaTopicNotFoundError, match=rf"topic {topic} at .* does not exist"):
        run()
    broker.create(topic)
    broker.write(topic, [{"value": "1"}, {"value": "2"}])
    with pytest.raises(SourceChangedError, match=r"was recreated.*--state"):
        run()


def test_security_settings(broker, topic, client, target, steps):
    broker.create(topic)
    broker.write(topic, [{"value": "1"}])
    config = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": USER}
    url = f"kafka://{broker.sasl}/{topic}"
    good, bad = (KafkaSource(url, KafkaOptions(config=config | {"sasl.password": word})) for word in (PASSWORD, "no"))
    assert ingest(good, target, client=client).counts.events == 1
    with pytest.raises(KafkaRefusedError, match="refuses this client") as raised:
        ingest(bad, target, client=client)
    assert raised.value.code == "PRAVEGA-KAFKA-REFUSED"
    with client.revisioned(steps.name) as log:
        assert not any(PASSWORD.encode() in entry for _, entry in log.read_from(log.oldest_revision()))


def test_no_broker(client, target):
    with pytest.raises(KafkaUnavailableError, match="no broker answers") as raised:
        ingest("kafka://127.0.0.1:1/orders", target, client=client)
    assert raised.value.code == "PRAVEGA-KAFKA-UNAVAILABLE"


def test_an_outage_is_waited_for(topic, client, target):
    """A run that follows finds records that were written before and after an outage of the broker."""
    told: list[str] = []
    with kafka_broker() as broker:
        broker.create(topic)
        broker.write(topic, [{"value": "1"}])
        ended, stopped = threading.Event(), RuntimeError("ended by the test")

        def tell(what: str, counts: Any) -> None:
            told.append(what)
            if ended.is_set():
                raise stopped

        def follow() -> None:
            with pytest.raises(RuntimeError, match="ended by the test"):
                ingest(broker.url(topic), target, client=client, settings=Settings(follow=True), on_progress=tell)

        run = threading.Thread(target=follow)
        run.start()
        try:
            with client.follow(target, start="earliest") as reader:
                assert reader.poll(60).events.to_pylist() == [b"1"]
                broker.stop()
                trouble = threading.Event()
                while not any(what.startswith("trouble: ") for what in told):
                    trouble.wait(0.1)
                broker.start()
                broker.write(topic, [{"value": "2"}])
                assert reader.poll(120).events.to_pylist() == [b"2"]
        finally:
            ended.set()
            run.join()
    assert any("no broker answers" in what for what in told)


@pytest.mark.parametrize("writer", kafka_clients.CLIENTS)
@pytest.mark.parametrize("reader", kafka_clients.CLIENTS)
def test_clients_accept_our_serializers_with_a_real_broker(broker, topic, writer, reader):
    values = [{"id": 7}, None, {"id": 8}]
    broker.create(topic)
    kafka_clients.write(writer, broker.servers, topic, values, JsonSerializer())
    assert kafka_clients.read(reader, broker.servers, topic, 3, JsonSerializer().deserializer) == values


@pytest.mark.parametrize("page", ["docs/tools/ingest-kafka.md"])
def test_the_page(broker, follower, page):
    broker.create("orders", 2)
    mine = [block for block in pages.programs() if block.page == page]
    assert len(mine) == 5
    for block in mine:
        text = block.text.replace("localhost:9092", broker.servers)
        follower.run(replace(block, text=text))
    broker.delete("orders")


@pytest.fixture
def command(config: PravegaConfig, target: StreamName) -> Callable[..., Result]:
    def invoke(*arguments: object) -> Result:
        given = [arguments[0], target, "--controller", config.controller, *arguments[1:]]
        return CliRunner().invoke(command_line, ["ingest", *map(str, given)])

    return invoke


def test_the_command(broker, topic, command, tmp_path):
    broker.create(topic, 2)
    broker.write(topic, [{"key": str(n), "value": str(n)} for n in range(20)])
    settings = tmp_path / "kafka.properties"
    settings.write_text(
        "# SASL\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f"sasl.username={USER}\nsasl.password={PASSWORD}\n"
    )
    url = f"kafka://{broker.sasl}/{topic}"
    plan = command(url, "--kafka-config", settings, "--dry-run")
    assert plan.exit_code == 0, plan.output
    assert "to ingest: 2 partitions" in plan.output
    assert json.loads(command(url, "--kafka-config", settings, "--dry-run", "--json").output)["pending"]
    done = command(url, "--kafka-config", settings)
    assert (done.exit_code, done.output) == (0, "20 events in 1 transactions\n")
    refused = command(url, "--kafka-config", settings, "--input", "json", "--keep-going")
    assert refused.exit_code == 0
    missing = command(broker.url("nope"))
    assert missing.exit_code == 4
    assert "PRAVEGA-KAFKA-TOPIC-NOT-FOUND" in missing.output
    mixed = command(url, "--skip-lost", "--format", "json")
    assert mixed.exit_code == 1
    assert "--input" in mixed.output
