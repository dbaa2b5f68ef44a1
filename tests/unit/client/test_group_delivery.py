"""Delivery of a group's events one by one, in lists and in columns: each once, in order, at its offset."""

import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import pravega_connector
from pravega_connector.client import PravegaClient
from pravega_connector.reader.slices import EventBatch
from pravega_connector.reader_groups.delivery import MAX_EVENTS, GroupEvent
from pravega_connector.reader_groups.protocol import Segment
from pravega_connector.reader_groups.reader import GroupReader
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import StreamName
from pravega_serde.errors import DeserializationError

#: Events of the stream, which arrive in one batch.
COUNT = 3000
BAD = 700
FOLDER = str(Path(pravega_connector.__file__).parent) + "/"


@pytest.fixture(scope="module")
def client() -> Iterator[PravegaClient]:
    with InProcessPravega() as pravega, pravega.client() as client:
        client.create_scope("d")
        client.create_stream("d/s", 1)
        with client.writer("d/s") as writer:
            writer.write_column(pa.array([b"%d" % number for number in range(COUNT)]))
        yield client


@pytest.fixture(scope="module")
def offsets(client: PravegaClient) -> list[int]:
    return [offset for batch in client.read_columns("d/s") for offset in batch.offsets.tolist()]


@pytest.fixture
def join(client: PravegaClient) -> Iterator[Callable[..., GroupReader[Any]]]:
    """Return a reader of a new group, which owns the segment."""
    with ExitStack() as stack:

        def join(serializer: Any = None) -> GroupReader[Any]:
            name = f"d/{uuid.uuid4().hex}"
            group = stack.enter_context(client.reader_group(name, "d/s", checkpoint_interval=None, refresh=0.1))
            return stack.enter_context(group.reader("r", serializer))

        yield join


def numbers(events: list[GroupEvent[Any]]) -> list[int]:
    return [int(event.value) for event in events]


def one(reader: GroupReader[Any]) -> GroupEvent[Any]:
    while (event := reader.next_event(1.0)) is None:
        pass
    return event


def several(reader: GroupReader[Any]) -> list[GroupEvent[Any]]:
    while not (events := reader.poll(1.0)):
        pass
    return events


def test_a_list_has_a_limit_and_events_have_their_offsets(join, offsets):
    reader, seen = join(), list[GroupEvent[Any]]()
    while len(seen) < COUNT:
        seen += (events := reader.poll(1.0))
        assert len(events) <= MAX_EVENTS
    assert numbers(seen) == list(range(COUNT))
    assert [event.offset for event in seen] == offsets
    assert {event.segment for event in seen} == {Segment(StreamName("d", "s"), 0)}
    assert type(seen[0]) is GroupEvent
    assert type(seen[0].offset) is int
    assert not seen[0].is_checkpoint


def test_all_ways_to_read_continue_after_each_other(client, join, offsets):
    reader, segment, seen = join("string"), Segment(StreamName("d", "s"), 0), list[int]()

    def check() -> None:
        assert seen == list(range(len(seen)))
        at = offsets[len(seen)] if len(seen) < COUNT else client.tail("d/s").positions[0]
        assert reader.position.positions == {segment: at}

    for _ in range(2):
        for _ in range(3):
            seen.append(int(one(reader).value or ""))
            check()
        seen += numbers(several(reader))
        check()
        for event in reader:
            seen.append(int(event.value or ""))
            check()
            if len(seen) % 7 == 0:
                break
    reader.take_back()
    seen.pop()
    check()
    while (batch := reader.poll_columns(1.0)) is None:
        pass
    assert isinstance(batch, EventBatch)
    assert batch.offsets[0] == offsets[len(seen)]
    seen += map(int, batch.events.to_pylist())
    check()
    assert len(seen) == COUNT


class Picky:
    """Serializer that refuses one event, as long as it has an error."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error

    def deserialize(self, data: bytes) -> int:
        if int(data) == BAD and self.error is not None:
            raise self.error
        return int(data)


@pytest.mark.parametrize("take", [several, lambda reader: [one(reader)]], ids=["lists", "one by one"])
def test_a_malformed_event_is_one_error_after_all_events_before_it(join, offsets, take):
    reader, seen = join(Picky(DeserializationError("malformed"))), list[int]()
    while len(seen) < BAD:
        seen += numbers(take(reader))
    with pytest.raises(DeserializationError, match=str(offsets[BAD])):
        take(reader)
    while len(seen) < COUNT - 1:
        seen += numbers(take(reader))
    assert seen == [number for number in range(COUNT) if number != BAD]


@pytest.mark.parametrize("take", [several, lambda reader: [one(reader)]], ids=["lists", "one by one"])
def test_an_event_waits_while_its_serializer_fails(join, take):
    serializer = Picky(ValueError("not now"))
    reader, seen = join(serializer), list[int]()
    while len(seen) < BAD:
        seen += numbers(take(reader))
    for _ in range(2):
        with pytest.raises(ValueError, match="not now"):
            take(reader)
    serializer.error = None
    while len(seen) < COUNT:
        seen += numbers(take(reader))
    assert seen == list(range(COUNT))


def test_a_checkpoint_is_delivered_between_events_that_were_decoded_together(client):
    with (
        client.reader_group(f"d/{uuid.uuid4().hex}", "d/s", checkpoint_interval=None, refresh=0.1) as group,
        group.reader("r") as reader,
        ThreadPoolExecutor(1) as pool,
    ):
        seen = [one(reader)]
        taking = pool.submit(group.checkpoint, "mine", 60.0)
        before = 0
        for event in reader:
            if event.is_checkpoint:
                before = len(seen)
                assert event.checkpoint == "mine"
            else:
                seen.append(event)
                if not before:
                    time.sleep(0.002)  # a caller that takes its time
            if len(seen) == COUNT:
                break
        assert 0 < before < COUNT
        assert numbers(seen) == list(range(COUNT))
        (cut,) = taking.result().cuts.values()
        assert cut.positions == {0: seen[before].offset}


@contextmanager
def calls() -> Iterator[list[int]]:
    """Count the calls of the connector's functions in this thread until the block ends."""
    count = [0]

    def profile(frame: FrameType, event: str, _: object) -> None:
        count[0] += event == "call" and frame.f_code.co_filename.startswith(FOLDER)

    sys.setprofile(profile)
    try:
        yield count
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("serializer", [None, "json"])
def test_what_a_list_costs_depends_on_lists_not_on_events(join, serializer):
    reader = join(serializer)
    seen = len(several(reader))
    with calls() as counted:
        while seen + MAX_EVENTS < COUNT:  # the rest of the batch
            seen += len(several(reader))
    assert counted[0] < 100 * COUNT / MAX_EVENTS + COUNT * (serializer is not None)


def test_an_event_costs_two_calls_in_a_loop(join):
    reader = join()
    one(reader)
    with calls() as counted:
        for event in reader:
            if event.value == b"%d" % (COUNT - 1):
                break
    assert counted[0] < 3 * COUNT  # the generator is resumed, and takes an event
