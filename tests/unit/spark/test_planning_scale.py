"""Planning grows with the number of segments and no faster; polling asks the controller next to nothing."""

import json
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from pravega_connector.client import StreamName
from pravega_connector.reader.tail_notifications import Arrivals
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.source.offset_planner import QueryPlan
from tests.support.planning import (
    Measured,
    all_at_once,
    epoch_after_epoch,
    many_epochs,
    one_batch_query,
    plan_of,
    through_empty_ones,
)

LIMITED = {"max_bytes_per_trigger": "50000"}


@pytest.mark.parametrize("shape", [epoch_after_epoch, through_empty_ones, all_at_once, one_batch_query])
def test_calls_and_offsets_grow_with_the_segments(shape: Callable[[int], Measured]):
    small, large = shape(50), shape(200)
    # Calls are what cannot be disturbed by other work on the machine; the command measures seconds.
    assert large.calls <= 4 * small.calls + 10
    assert large.calls <= 2 * 200 + 10, "where each segment is, and what follows it"
    assert large.offset_bytes <= 4.5 * small.offset_bytes
    if shape is epoch_after_epoch:
        assert large.batches == 200 / 5
        assert large.offset_bytes < 300, "five segments are all that an offset ever names"


class Clock:
    """A clock that the test moves; what waits for it continues at once."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def polled(plan: QueryPlan, clock: Clock, seconds: float) -> None:
    """Ask for the latest offset every 10 ms, as Spark does, and wait as long as that takes."""
    position = plan.first()
    end = plan.next(position)
    while end is not position:
        position, end = end, plan.next(end)
    end = clock.now + seconds
    while clock.now < end:
        clock.now += 0.01
        assert plan.next(position) is position


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()

    def sleep(seconds: float) -> None:
        clock.now += seconds

    def wait(self: Arrivals, ends: object, timeout: float) -> bool | None:
        clock.now += timeout
        return False if ends else None

    monkeypatch.setattr(Arrivals, "wait", wait)
    # Only the planner's: other threads of the test run sleep, too.
    monkeypatch.setattr(
        "pravega_connector.spark.source.offset_planner.time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic)
    )
    return clock


def idle_plan(client, clock: Clock, **options: str) -> QueryPlan:
    given = {"start_stream_cut": "earliest", "controller": "tcp://127.0.0.1:1"} | options
    return QueryPlan(client, parse_options(SourceOptions, given), clock)


def test_idle_polling_asks_the_controller_nothing(clock: Clock):
    with many_epochs(50) as (stream, client):
        plan = idle_plan(client, clock, path=str(stream.name))
        polled(plan, clock, 1)
        before = stream.asked.total()
        store_before = len(stream.store.requests)
        begin = clock.now
        polled(plan, clock, 5)
        assert stream.asked.total() - before <= 2, "what the second first() asks, and nothing after it"
        looks = (len(stream.store.requests) - store_before) / 5
        assert looks <= (clock.now - begin) / 0.5 + 30, "two looks a second, and the way back from the head"


def test_a_sealed_stream_costs_one_call_a_second(clock: Clock):
    with many_epochs(40, 20) as (stream, client):
        stream.seal_all()
        plan = idle_plan(client, clock, path=str(stream.name))
        polled(plan, clock, 1)
        before, begin = stream.asked.total(), clock.now
        polled(plan, clock, 5)
        assert stream.asked.total() - before <= clock.now - begin + 3


def test_a_pattern_costs_its_scopes_lists_at_each_interval(clock: Clock):
    with many_epochs(10) as (stream, client):
        asked, tagged = [], []

        def list_streams(scope: str, *, internal: bool = False, tag: str | None = None) -> list[StreamName]:
            (asked if tag is None else tagged).append(scope)
            return [stream.name] if tag is None else []

        client.controller.list_streams = list_streams
        options = {"stream_pattern": "scope/*, other/*", "discovery_interval_ms": "1000"}
        plan = idle_plan(client, clock, **options)
        begin = clock.now
        polled(plan, clock, 5)
        assert 2 * 4 <= len(asked) <= 2 * (clock.now - begin + 1)
        assert len(tagged) == len(asked)


def test_a_limit_reads_no_more_of_a_wide_stream_than_it_admits():
    measured = all_at_once(300, **LIMITED)
    assert measured.batches == pytest.approx(300 * 300 / 50_000, abs=1)


def test_a_plan_can_be_made_from_any_offset_of_another():
    with many_epochs(60) as (stream, client):
        plan = plan_of(client, stream.name)
        position = plan.first()
        for _ in range(5):
            position = plan.next(position)
        again = plan_of(client, stream.name)
        assert json.dumps(again.next(position).to_json()) == json.dumps(plan.next(position).to_json())
