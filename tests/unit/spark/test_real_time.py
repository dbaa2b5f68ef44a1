"""Batches of Spark's real-time mode, planned without Spark."""

import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.errors import ConfigError, DataLossError
from pravega_connector.rows.columns import decoded_fields
from pravega_connector.rows.offsets import Offset
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.source.offset_planner import OPEN_END
from pravega_connector.spark.source.real_time import RealTimeReader
from pravega_connector.testing import InProcessPravega

STREAM = StreamName("real", "time")
SIZE = 108  # of an event, with its header


@pytest.fixture
def pravega() -> Iterator[InProcessPravega]:
    with InProcessPravega() as server:
        yield server


@pytest.fixture
def client(pravega: InProcessPravega) -> Iterator[PravegaClient]:
    with pravega.client() as client:
        client.create_stream(STREAM, 3)
        with client.writer(STREAM) as writer:
            for number in range(30):
                writer.write(bytes(100), routing_key=str(number))
        yield client


@pytest.fixture
def reader(pravega: InProcessPravega, client: PravegaClient) -> RealTimeReader:
    return reader_of(pravega)


def reader_of(pravega: InProcessPravega, **given: str) -> RealTimeReader:
    raw = {"controller": pravega.uri, "stream": str(STREAM), "start_stream_cut": "earliest"} | given
    options = parse_options(SourceOptions, raw)
    return RealTimeReader(options, pa.schema(decoded_fields(options, None)), None)


def slices(tasks: Any) -> list[Any]:
    return sorted(itertools.chain.from_iterable(task.slices for task in tasks), key=lambda piece: piece.segment_id)


def test_segments_share_the_task_slots(reader: RealTimeReader) -> None:
    start = reader.initialOffset()
    for slots, expected in ((1, [3]), (2, [2, 1]), (8, [1, 1, 1])):
        tasks = reader.follow(start, slots)
        assert [len(task.slices) for task in tasks] == expected
        assert [(piece.start, piece.end) for piece in slices(tasks)] == [(0, OPEN_END)] * 3


def test_the_end_of_a_batch_is_where_its_tasks_have_stopped(reader: RealTimeReader, client: PravegaClient) -> None:
    start = reader.initialOffset()
    tasks = reader.follow(start, 2)
    assert reader.end_of_followed([]) == start, "a task that reports nothing has read nothing"
    end = reader.end_of_followed([[str(STREAM), 0, SIZE], [str(STREAM), 2, 2 * SIZE]])
    assert Offset.from_json(end).cuts[STREAM].positions == {0: SIZE, 1: 0, 2: 2 * SIZE}
    ranges = [(piece.segment_id, piece.start, piece.end) for piece in slices(reader.partitions(start, end))]
    assert ranges == [(0, 0, SIZE), (2, 0, 2 * SIZE)], "a micro-batch would read the same"
    assert [piece.start for piece in slices(reader.follow(end, 2))] == [SIZE, 0, 2 * SIZE]
    assert len(tasks) == 2


def test_successors_follow_in_the_next_batch(reader: RealTimeReader, client: PravegaClient) -> None:
    start = reader.initialOffset()
    tail = client.tail(STREAM).positions
    reader.follow(start, 4)
    client.scale_stream(STREAM, 6)
    end = reader.end_of_followed([[str(STREAM), segment, at] for segment, at in tail.items()])
    successors = set(client.tail(STREAM).positions)
    assert not successors & tail.keys()
    assert [piece.segment_id for piece in slices(reader.follow(end, 4))] == sorted(successors)
    following = reader.end_of_followed([[str(STREAM), segment, 0] for segment in successors])
    assert slices(reader.partitions(end, following)) == []


def test_a_sealed_stream_has_one_task_that_waits(reader: RealTimeReader, client: PravegaClient) -> None:
    client.seal_stream(STREAM)
    end = Offset({STREAM: client.tail(STREAM)}).to_json()
    (task,) = reader.follow(end, 4)
    assert task.slices == ()
    assert reader.end_of_followed([]) == end


def test_lost_data_is_an_error_or_skipped(pravega: InProcessPravega, client: PravegaClient) -> None:
    strict, lenient = reader_of(pravega), reader_of(pravega, fail_on_data_loss="false")
    start = strict.initialOffset()
    client.truncate(STREAM, client.tail(STREAM))
    with pytest.raises(DataLossError):
        strict.follow(start, 1)
    assert {piece.segment_id: piece.start for piece in slices(lenient.follow(start, 1))} == client.tail(
        STREAM
    ).positions
    end = lenient.end_of_followed([])
    assert Offset.from_json(end).cuts[STREAM] == client.tail(STREAM)
    assert slices(lenient.partitions(start, end)) == []


def test_event_times_are_refused(pravega: InProcessPravega, client: PravegaClient) -> None:
    reader_of(pravega).prepare_for_real_time()
    with pytest.raises(ConfigError, match="event_time_low"):
        reader_of(pravega, columns="event,event_time_low").prepare_for_real_time()
