"""A query that has read all there is: what it asks, and how soon it continues."""

import threading
import time
from collections import Counter

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.rows.columns import decoded_fields
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.source.readers import PravegaStreamReader
from pravega_connector.stores import segment_stores
from pravega_connector.testing import InProcessPravega

STREAM = StreamName("s", "x")


@pytest.fixture
def pravega():
    with InProcessPravega() as pravega, PravegaClient(pravega.config) as client:
        client.create_stream(STREAM, 3)
        yield pravega


@pytest.fixture
def client(pravega):
    with PravegaClient(pravega.config) as client:
        yield client


@pytest.fixture
def reader(pravega):
    given = {"controller": pravega.config.controller, "stream": str(STREAM), "start_stream_cut": "earliest"}
    options = parse_options(SourceOptions, given | {"columns": "event"})
    reader = PravegaStreamReader(options, pa.schema(decoded_fields(options, None)), None)
    yield reader
    reader.stop()
    if reader._look is not None:
        reader._look.exception(20)


@pytest.fixture
def looks(monkeypatch):
    """How often the segments were looked at."""
    counted = Counter()
    ask = segment_stores.SegmentStores.segment_infos

    def counting(self, *args, **options):
        counted["looks"] += 1
        return ask(self, *args, **options)

    monkeypatch.setattr(segment_stores.SegmentStores, "segment_infos", counting)
    return counted


def write(client, *values):
    with client.writer(STREAM, "string") as writer:
        for value in values:
            writer.write(value, value)


def polled(reader, position, until):
    """Ask as Spark does, every 10 ms, until there is something or ``until`` reports it; the answers."""
    answers = []
    while not answers or (answers[-1] == position and not until()):
        answers.append(reader.latestOffset(position, None))
        time.sleep(0.01)
    return answers


def next_position(reader, position):
    """The next one, long before a check would have come by itself."""
    end = time.monotonic() + 30
    answers = polled(reader, position, lambda: time.monotonic() > end)
    assert time.monotonic() < end
    return answers[-1]


def test_idle_it_waits_half_a_second_before_each_look(reader, monkeypatch):
    position = reader.initialOffset()
    assert polled(reader, position, lambda: reader._own_plan.is_idle)[-1] == position
    plan = reader._own_plan
    waits, looked, go, look = [], [], threading.Semaphore(0), plan._look
    monkeypatch.setattr(plan, "_look", lambda start: looked.append(start) or look(start))
    monkeypatch.setattr(plan, "_clock", lambda: 0.0)  # a slow machine is not late for its next look

    def wait(self, ends, timeout):
        waits.append((timeout, len(looked)))
        assert go.acquire(timeout=120)
        return False

    monkeypatch.setattr("pravega_connector.reader.tail_notifications.Arrivals.wait", wait)
    for number in range(1, 6):
        polled(reader, position, lambda n=number: len(waits) == n)
        assert reader.latestOffset(position, None) == position, "Spark gets an answer at once"
        go.release()
    _, first = waits[0]
    assert waits == [(0.5, first + number) for number in range(5)], "one look after each wait"
    go.release(10)


def test_an_event_ends_the_wait(reader, client, monkeypatch):
    monkeypatch.setattr("pravega_connector.spark.source.offset_planner._TOLD_PAUSE", 60.0)
    first = position = reader.initialOffset()
    for number in range(5):
        assert polled(reader, position, lambda: reader._own_plan.is_idle)[-1] == position
        timer = threading.Timer(0.05, lambda n=number: write(client, str(n)))
        timer.start()
        position = next_position(reader, position)
        timer.join()
        read = [rows for part in reader.partitions(first, position) for rows in reader.read(part)]
        assert sum(rows.num_rows for rows in read) == number + 1


def test_events_after_a_check_come_at_the_next_trigger(reader, client, eventually, monkeypatch):
    monkeypatch.setattr("pravega_connector.spark.source.offset_planner._TOLD_PAUSE", 0.2)
    position = reader.initialOffset()
    assert polled(reader, position, lambda: reader._own_plan.is_idle)[-1] == position
    eventually(reader._look.done)
    write(client, "between two triggers")
    assert reader.latestOffset(position, None) != position


def test_scaling_ends_the_wait(reader, client, monkeypatch):
    monkeypatch.setattr("pravega_connector.spark.source.offset_planner._TOLD_PAUSE", 60.0)
    write(client, *["before", "it", "is", "scaled"])
    position = polled(reader, reader.initialOffset(), lambda: False)[-1]
    assert polled(reader, position, lambda: reader._own_plan.is_idle)[-1] == position
    client.scale_stream(STREAM, 5)
    write(client, *map(str, range(50)))
    position = next_position(reader, position)
    assert len(position["streams"][str(STREAM)]) == 5


def test_what_is_told_and_not_there_is_not_asked_for_without_a_pause(reader, looks, monkeypatch):
    monkeypatch.setattr("pravega_connector.reader.tail_notifications.Arrivals.wait", lambda *_: True)
    position = reader.initialOffset()
    begin = time.monotonic()
    while time.monotonic() < begin + 1.0:
        assert reader.latestOffset(position, None) == position
    assert looks["looks"] <= 2 * (time.monotonic() - begin) / 0.05 + 2
