"""Planning a stream of many segments and epochs: time, size of the offsets, calls to the controller."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.reader.slices import slices_between
from pravega_connector.rows.offsets import Offset
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.source.offset_planner import QueryPlan
from pravega_connector.testing.requests import frame
from tests.support.fake_stream import FakeSegmentStore, FakeStream

__all__ = [
    "Measured",
    "all_at_once",
    "counted",
    "epoch_after_epoch",
    "many_epochs",
    "one_batch_query",
    "through_empty_ones",
]

_EVENTS = frame(b"x" * 92) * 3
_WIDTH = 5


@dataclass(frozen=True)
class Measured:
    """Cost of planning: seconds for all batches, the largest offset's bytes, calls to the controller.

    ``cpu`` is the process's time, with the fake servers in it; on a busy machine it says more.
    """

    segments: int
    batches: int
    seconds: float
    cpu: float
    offset_bytes: int
    calls: int

    def __str__(self) -> str:
        per = self.cpu / self.segments * 1e6
        return (
            f"{self.segments:>7,} segments  {self.batches:>5,} batches  {self.seconds:8.3f} s  CPU {self.cpu:8.3f} s, "
            f"{per:6.0f} µs a segment"
            f"  {self.offset_bytes:>9,} B largest offset  {self.calls:>7,} controller calls"
        )


@contextmanager
def many_epochs(
    segments: int, width: int = _WIDTH, *, empty: bool = False
) -> Iterator[tuple[FakeStream, PravegaClient]]:
    """A stream whose ``width`` segments were replaced until it had had this many; three events in each, or none."""
    with FakeSegmentStore() as store:
        stream = FakeStream(store, segments=width)
        bounds = [i / width for i in range(width + 1)]
        made = [r.id for r in stream.ranges]
        while True:
            for number in made:
                store.append(stream.segment(number), b"" if empty else _EVENTS)
            if len(store.segments) >= segments:
                break
            made = stream.scale(made, *bounds)
        stream.asked.clear()
        with stream.client(timeout=60.0) as client:
            yield stream, client


def plan_of(client: PravegaClient, stream: StreamName, **options: str) -> QueryPlan:
    given = {"path": str(stream), "start_stream_cut": "earliest", "controller": "tcp://127.0.0.1:1"}
    return QueryPlan(client, parse_options(SourceOptions, given | options))


def _run(plan: QueryPlan) -> Iterator[Offset]:
    """The ends of all batches, each through text, as in a checkpoint."""
    position = plan.first()
    yield position
    while (end := plan.next(position)) is not position:
        yield end
        position = Offset.from_json(json.loads(json.dumps(end.to_json())))


def _measure(stream: FakeStream, segments: int, ends: Iterator[Offset]) -> Measured:
    begin, cpu, largest, batches = time.perf_counter(), time.process_time(), 0, -1
    for end in ends:
        largest, batches = max(largest, len(json.dumps(end.to_json()))), batches + 1
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return Measured(segments, batches, seconds, cpu, largest, stream.asked.total())


def epoch_after_epoch(segments: int) -> Measured:
    """A streaming query from the head to the tail: a batch for each epoch."""
    with many_epochs(segments) as (stream, client):
        plan = plan_of(client, stream.name)
        plan.end_here()
        return _measure(stream, segments, _run(plan))


def through_empty_ones(segments: int) -> Measured:
    """One batch that passes all epochs, which hold nothing."""
    with many_epochs(segments, empty=True) as (stream, client):
        return _measure(stream, segments, _run(plan_of(client, stream.name)))


def all_at_once(segments: int, **options: str) -> Measured:
    """A stream that has this many segments in one epoch."""
    with many_epochs(segments, segments) as (stream, client):
        return _measure(stream, segments, _run(plan_of(client, stream.name, **options)))


def one_batch_query(segments: int) -> Measured:
    """The slices of a batch query from head to tail."""
    with many_epochs(segments) as (stream, client):
        begin, cpu = time.perf_counter(), time.process_time()
        slices = slices_between(client.stores, client.head(stream.name), client.tail(stream.name))
        assert len(slices) == len(stream.store.segments)
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        return Measured(segments, 1, seconds, cpu, 0, stream.asked.total())


@contextmanager
def counted(client: PravegaClient) -> Iterator[Callable[[], int]]:
    """Count the calls that go to a real controller."""
    channel = client.controller._channel
    call, calls = channel.call, 0

    def counting(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        return call(*arguments)  # type: ignore[arg-type]

    channel.call = counting  # type: ignore[method-assign,assignment]
    try:
        yield lambda: calls
    finally:
        channel.call = call  # type: ignore[method-assign]
