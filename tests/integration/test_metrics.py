"""Metrics against a real server: what was done is what is counted, in every way to see it."""

import math
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.parser import text_string_to_metric_families

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.metrics import export_to_opentelemetry, serve_metrics
from pravega_connector.operations.cli.root import command_line
from pravega_connector.operations.ingest import FileOptions, FileSource, ingest
from pravega_connector.operations.monitoring import stream_lag
from pravega_connector.wire import StreamName
from pravega_serde import AvroSerializer
from pravega_serde.errors import DeserializationError
from tests.integration._events import SIZE, write_events
from tests.support.measured import fetched, of_stream, value
from tests.support.proxy import Proxy, read_all

SENT, SENT_BYTES = "messaging.client.sent.messages", "pravega.client.sent.size"
CONSUMED, CONSUMED_BYTES = "messaging.client.consumed.messages", "pravega.client.consumed.size"
DURATION = "messaging.client.operation.duration"
# Seconds until a command serves what a test waits for.
SOON = 120


@pytest.fixture
def stream(client: PravegaClient, stream_name: StreamName) -> StreamName:
    client.create_stream(stream_name, 3)
    return stream_name


@pytest.fixture
def collected() -> Iterator[Callable[[str, StreamName], float]]:
    """``collected(name, stream)``: a metric of a stream as OpenTelemetry's reader has it."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    export_to_opentelemetry(provider)

    def look(name: str, stream: StreamName) -> float:
        data = reader.get_metrics_data()
        assert data is not None
        (metric,) = [each for each in data.resource_metrics[0].scope_metrics[0].metrics if each.name == name]
        points = [p for p in metric.data.data_points if p.attributes["messaging.destination.name"] == str(stream)]
        return sum(getattr(point, "count", None) or point.value for point in points)

    yield look
    provider.shutdown()


def served(text: str, name: str, stream: StreamName, **labels: str) -> float:
    """A metric of a stream as an endpoint's text has it; NaN where it has none."""
    wanted = {"messaging_destination_name": str(stream), **labels}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == name and wanted.items() <= sample.labels.items():
                return sample.value
    return float("nan")


def size(events: list[bytes]) -> int:
    return sum(len(event) + 8 for event in events)


# ---- the client ----


def test_events_and_bytes_are_those_written_and_read(client, stream, collected):
    events = [b"event %d" % i for i in range(3000)]
    with serve_metrics(0) as server, client.writer(stream) as writer:
        for n, event in enumerate(events[:1000]):
            writer.write(event, routing_key=str(n))
        writer.flush()
        writer.write_column(pa.array(events[1000:]), pa.array([str(n % 9) for n in range(2000)]))
        writer.flush()
        assert len(list(client.read(stream))) == 3000
        text = fetched(server.url)
    for name, number in ((SENT, 3000), (CONSUMED, 3000), (SENT_BYTES, size(events)), (CONSUMED_BYTES, size(events))):
        assert of_stream(name, stream) == number
        assert collected(name, stream) == number
        underlined = name.replace(".", "_") + ("_bytes_total" if name.endswith("size") else "_total")
        assert served(text, underlined, stream) == number
    # The writer's end found nothing to flush; nor does a flush of what has become durable before it.
    flushes = of_stream(DURATION, stream, messaging__operation__name="flush")
    assert 1 <= flushes <= 2
    assert collected(DURATION, stream) == flushes
    assert served(text, "messaging_client_operation_duration_seconds_count", stream) == flushes


def test_a_reader_that_follows_counts_what_came(client, stream):
    events = [b"%d" % i for i in range(500)]
    with client.writer(stream) as writer:
        writer.write_column(pa.array(events), pa.array([str(n) for n in range(500)]))
    with client.follow(stream, start="earliest") as reader:
        found = 0
        while found < 500:
            batch = reader.poll(60)
            assert batch is not None
            found += len(batch.events)
    assert of_stream(CONSUMED, stream) == 500
    assert of_stream(CONSUMED_BYTES, stream) == size(events)


def test_events_of_a_sealed_segment_and_large_ones_count_once(client, stream):
    events = [b"before", bytes(9 << 20), b"after", b"last"]
    with client.writer(stream, max_event_size=16 << 20) as writer:
        writer.write(events[0], routing_key="k")
        writer.flush()
        current = client.controller.current_segments(stream)
        client.controller.scale_stream(stream, [each.id for each in current], [(0.0, 0.2), (0.2, 0.6), (0.6, 1.0)])
        for event in events[1:]:
            writer.write(event, routing_key="k")
    assert list(client.read(stream)) == events
    assert of_stream(SENT, stream) == 4
    assert of_stream(SENT_BYTES, stream) == size(events)


def test_reconnects_are_counted_and_no_event_twice(config, client, stream_name):
    client.create_stream(stream_name)
    events = [b"%08d" % i for i in range(4000)]
    before = {name: value(f"pravega.client.{name}") for name in ("reconnects", "retries")}
    with Proxy(client.controller.endpoint(stream_name, 0)) as proxy, PravegaClient(config) as other:
        with proxy.between(other), other.writer(stream_name) as writer:
            for at in range(0, 4000, 1000):
                proxy.cut_after(8000)
                writer.write_column(pa.array(events[at : at + 1000]))
                writer.flush()
        assert proxy.cuts == 4
        counted = other.counters.as_dict()
    assert counted["reconnects"] >= 4
    assert {name: value(f"pravega.client.{name}") - before[name] for name in before} == {
        name: counted[name] for name in before
    }
    assert read_all(config, stream_name) == events
    assert of_stream(SENT, stream_name) == 4000
    assert of_stream(SENT_BYTES, stream_name) == size(events)


def transactions(stream: StreamName) -> dict[str, int]:
    outcomes = ("begun", "committed", "aborted")
    found = {each: of_stream("pravega.transactions", stream, pravega__outcome=each) for each in outcomes}
    return found | {"open": of_stream("pravega.transaction.open", stream)}


def test_transactions_are_counted_from_their_begin_to_their_end(client, stream):
    transactional = client.transactions(stream, lease=30)
    first, second = transactional.begin(), transactional.begin()
    first.write(b"first")
    second.write(b"second")
    assert transactions(stream) == {"begun": 2, "committed": 0, "aborted": 0, "open": 2}
    first.commit()
    assert transactions(stream) == {"begun": 2, "committed": 1, "aborted": 0, "open": 1}
    second.abort()
    second.abort()
    assert transactions(stream) == {"begun": 2, "committed": 1, "aborted": 2, "open": 0}
    with pytest.raises(ZeroDivisionError), transactional.begin() as third:
        third.write(b"third", routing_key=str(1 // 0))
    assert transactions(stream) == {"begun": 3, "committed": 1, "aborted": 3, "open": 0}
    assert of_stream(DURATION, stream, messaging__operation__name="commit") == 1
    assert of_stream(SENT, stream) >= 1


def test_events_that_cannot_be_decoded_are_counted(client, stream):
    bad = "pravega.bad_records"
    with client.writer(stream) as writer:
        for event in (b"\x02", b"\xff", b"\x04"):
            writer.write(event, routing_key="one")
    numbers = AvroSerializer('"long"')
    with pytest.raises(DeserializationError):
        list(client.read(stream, numbers))
    assert of_stream(bad, stream, pravega__component="client") == 1
    with pytest.raises(DeserializationError):
        client.read_columns(stream, numbers).to_arrow()
    assert of_stream(bad, stream) == 2
    errors: list[DeserializationError] = []
    client.read_columns(stream, numbers, on_error=errors.append).to_arrow()
    assert (len(errors), of_stream(bad, stream)) == (1, 3)
    with client.follow(stream, numbers, start="earliest") as reader:
        assert reader.poll(60) == [1]
        with pytest.raises(DeserializationError):
            reader.poll(60)
        assert reader.poll(60) == [2]
    assert of_stream(bad, stream) == 4


def test_the_lag_of_a_named_reader_is_shown_as_long_as_it_has_one(client, stream):
    head = client.head(stream)
    middle = write_events(client, stream, 30)
    write_events(client, stream, 20)

    def looked() -> tuple[float, ...]:
        """(lag, missing) after another look; NaN if it is not shown."""
        stream_lag(client, head, reader="me")
        names = ("pravega_consumer_lag_bytes", "pravega_consumer_missing_bytes")
        with serve_metrics(0) as server:
            text = fetched(server.url)
        return tuple(served(text, name, stream, messaging_consumer_group_name="me") for name in names)

    assert looked() == (50 * SIZE, 0)
    client.truncate(stream, middle)
    assert looked() == (20 * SIZE, 30 * SIZE)
    client.delete_stream(stream)
    assert math.isnan(looked()[0])


# ---- the ingester ----


def test_an_ingestion_counts_what_is_committed(client, stream, tmp_path):
    (tmp_path / "data").mkdir()
    for number in range(3):
        lines = "".join(f"{number},{n}\n" for n in range(100))
        (tmp_path / "data" / f"{number}.csv").write_text(f"file,n\n{lines}one too few\n")
    source = FileSource([tmp_path / "data"], FileOptions(reject=True))
    summary = ingest(source, stream, client=client, dead_letters=tmp_path / "letters")
    assert (summary.counts.events, summary.counts.rejected) == (300, 3)
    assert of_stream("pravega.ingest.events", stream) == 300
    assert of_stream("pravega.ingest.read.size", stream) == summary.counts.bytes
    assert of_stream("pravega.ingest.sources", stream) == 3
    assert of_stream("pravega.ingest.pending", stream) == 0
    assert of_stream("pravega.ingest.steps", stream, pravega__outcome="committed") == summary.counts.transactions
    assert of_stream("pravega.bad_records", stream, pravega__component="ingest") == 3
    assert transactions(stream)["committed"] == summary.counts.transactions
    assert transactions(stream)["open"] == 0
    assert of_stream(SENT, stream) == 300


# ---- the commands ----

Started = Callable[..., tuple[subprocess.Popen[bytes], str]]


@pytest.fixture
def started(start_process, config: PravegaConfig) -> Started:
    """``started(*arguments)``: a command that serves metrics, and where."""

    def start(*arguments: object) -> tuple[subprocess.Popen[bytes], str]:
        given = ["-c", "from pravega_connector.operations.cli import main; main()", *arguments, "--metrics-port", "0"]
        process = start_process(
            given, {"PRAVEGA_CONTROLLER_URI": config.controller}, stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        line = process.stderr.readline().decode()
        found = re.fullmatch(r"metrics at (http://127\.0\.0\.1:\d+/metrics)\n", line)
        assert found is not None, line + process.stderr.read().decode()
        return process, found[1]

    return start


def awaited(url: str, expected: float, name: str, stream: StreamName, **labels: str) -> str:
    """The endpoint's text once a metric has a value."""
    end = time.monotonic() + SOON
    while (got := served(text := fetched(url), name, stream, **labels)) != expected:
        assert time.monotonic() < end, f"{name} is {got}, not {expected}"
        time.sleep(0.1)
    return text


@pytest.mark.long
def test_the_ingester_serves_its_metrics_while_it_follows(started, stream, tmp_path):
    (tmp_path / "0.jsonl").write_text('{"n": 1}\n' * 50)
    process, url = started("ingest", tmp_path, stream, "--follow", "--settle", "0")
    text = awaited(url, 50, "pravega_ingest_events_total", stream)
    assert served(text, "messaging_client_sent_messages_total", stream) == 50
    (tmp_path / "1.jsonl").write_text('{"n": 2}\n' * 25)
    awaited(url, 75, "pravega_ingest_events_total", stream)
    process.send_signal(signal.SIGTERM)
    assert process.wait(SOON) == 128 + signal.SIGTERM


def test_write_serves_its_metrics(started, stream):
    process, url = started("write", stream)
    process.stdin.write(b"one\ntwo\n")
    process.stdin.flush()
    text = awaited(url, 2, "messaging_client_sent_messages_total", stream)
    assert served(text, "pravega_client_sent_size_bytes_total", stream) == 3 + 3 + 2 * 8
    process.stdin.close()
    process.stdin = None
    assert process.wait(SOON) == 0


def test_lag_is_exported_until_it_is_stopped(started, client, stream, tmp_path):
    (tmp_path / "mine").write_text(client.head(stream).to_text())
    process, url = started("lag", tmp_path / "mine", "--interval", "0.2")
    labels = {"messaging_consumer_group_name": str(tmp_path / "mine")}
    awaited(url, 0, "pravega_consumer_lag_bytes", stream, **labels)
    with client.writer(stream) as writer:
        writer.write(b"1234")
    awaited(url, 12, "pravega_consumer_lag_bytes", stream, **labels)
    (tmp_path / "mine").write_text(client.tail(stream).to_text())
    awaited(url, 0, "pravega_consumer_lag_bytes", stream, **labels)
    (tmp_path / "mine").write_text("no cut")
    while served(fetched(url), "pravega_consumer_lag_bytes", stream, **labels) == 0:  # an old number is not served
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(SOON) == 128 + signal.SIGTERM
    assert "[PRAVEGA-MALFORMED-STREAM-CUT]" in process.stderr.read().decode()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["lag", "-", "--metrics-port", "0"], "--metrics-port polls the stream cut again"),
        (["lag", "x", "--metrics-port", "0", "--json"], "--metrics-port serves the lag in bytes"),
        (["group", "lag", "x/y", "--metrics-port", "0", "--max-bytes", "1"], "--metrics-port serves the lag in bytes"),
        (["lag", "x", "--interval", "1"], "--interval requires --metrics-port"),
        (["group", "lag", "x/y", "--interval", "1"], "--interval requires --metrics-port"),
        (["lag", "x", "--reader", "y"], "--reader requires --metrics-port"),
        (["lag", "x", "--metrics-port", "70000"], "70000 is not in the range 0<=x<=65535"),
    ],
)
def test_what_makes_no_sense_is_said(arguments, text):
    result = CliRunner().invoke(command_line, arguments)
    assert (result.exit_code, text in result.output) == (2, True)


# ---- the page ----

PAGE = Path(__file__).parents[2] / "docs" / "reference/metrics.md"


@pytest.mark.parametrize("line", re.findall(r"^pravega-serde .*$", PAGE.read_text(), re.MULTILINE))
def test_the_commands_of_the_page_are_commands(line):
    name, *arguments = shlex.split(line)[1:]
    command = command_line.get_command(click.Context(command_line), name)
    assert command is not None
    assert command.make_context(name, arguments).params["metrics_port"] == 9464
