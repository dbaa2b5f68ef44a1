"""Queries over many streams ask about several at once: the plan and its errors are the same as one after the other."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.controller.service import ControllerClient
from pravega_connector.core import io
from pravega_connector.core.values import STATE_TAG
from pravega_connector.errors import DataLossError, PravegaError, StreamNotFoundError
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.source import streams
from pravega_connector.spark.source.offset_planner import QueryPlan
from pravega_connector.testing import InProcessPravega
from pyspark_pravega import DefaultSource

STREAMS = 16
AT_ONCE = 8
PATTERN = {"stream_pattern": "many/*", "start_stream_cut": "earliest"}
SECONDS = 20


@pytest.fixture(scope="module")
def pravega() -> Iterator[InProcessPravega]:
    with InProcessPravega() as served, served.client() as client:
        client.create_scope("many")
        for number in range(STREAMS):
            client.create_stream(name(number), 1 + number % 3)
            client.write(name(number), b"x" * (1 + number), "bytes")
        yield served


def name(number: int) -> str:
    return f"many/s{number:02}"


def both_ways(monkeypatch: pytest.MonkeyPatch, step: Any) -> list[Any]:
    """Result of a step with streams asked side by side, and one after the other."""
    found = []
    for most in (AT_ONCE, 1):
        monkeypatch.setattr(io, "_STREAMS_AT_ONCE", most)
        try:
            found.append(step())
        except PravegaError as error:
            found.append((type(error), str(error)))
    return found


def options_of(client: PravegaClient, **options: str) -> SourceOptions:
    return parse_options(SourceOptions, {"controller": client.config.controller, **options})


def plan(client: PravegaClient, **options: str) -> QueryPlan:
    return QueryPlan(client, options_of(client, **options))


def partitions(pravega: InProcessPravega, **options: str) -> list[Any]:
    source = DefaultSource({"controller": pravega.uri, **options})
    return [task.slices for task in source.reader(source.schema()).partitions()]


def test_a_batch_has_the_same_tasks(pravega, monkeypatch):
    together, alone = both_ways(monkeypatch, lambda: partitions(pravega, **PATTERN))
    assert together == alone
    assert [piece.stream for task in together for piece in task] == [StreamName.parse(name(n)) for n in range(STREAMS)]


@pytest.mark.parametrize("ends_now", [False, True])
def test_a_micro_batch_has_the_same_offsets(client, monkeypatch, ends_now):
    def offsets() -> list[str]:
        made = plan(client, **PATTERN)
        if ends_now:
            made.end_here()
        first = made.first()
        return [json.dumps(offset.to_json()) for offset in (first, made.next(first))]

    together, alone = both_ways(monkeypatch, offsets)
    assert together == alone
    assert all(name(number) in together[1] for number in range(STREAMS))


def test_this_many_streams_are_asked_about_at_once_and_no_more(pravega, monkeypatch):
    barrier, lock = threading.Barrier(AT_ONCE), threading.Lock()
    under_way, seen = 0, set[int]()
    tail = PravegaClient.tail

    def counted(client: PravegaClient, stream: Any) -> Any:
        nonlocal under_way
        with lock:
            under_way += 1
            seen.add(under_way)
        barrier.wait(SECONDS)
        try:
            return tail(client, stream)
        finally:
            with lock:
                under_way -= 1

    monkeypatch.setattr(PravegaClient, "tail", counted)
    assert len(partitions(pravega, **PATTERN)) >= 1
    assert max(seen) == AT_ONCE


def test_of_missing_streams_the_first_one_is_reported(pravega, client, monkeypatch):
    later_has_failed = threading.Event()
    require = PravegaClient.require_stream

    def late(client: PravegaClient, stream: StreamName) -> None:
        if str(stream) == "many/absent-first" and io._STREAMS_AT_ONCE > 1:
            assert later_has_failed.wait(SECONDS)
        try:
            require(client, stream)
        except StreamNotFoundError:
            later_has_failed.set()
            raise

    monkeypatch.setattr(PravegaClient, "require_stream", late)
    paths = {"path": f"{name(0)}, many/absent-first, {name(1)}, many/absent-second"}
    error = (StreamNotFoundError, str(StreamNotFoundError.of(StreamName.parse("many/absent-first"))))
    assert both_ways(monkeypatch, lambda: partitions(pravega, **paths)) == [error, error]
    assert both_ways(monkeypatch, lambda: plan(client, **paths).first()) == [error, error]


def test_a_stream_that_is_listed_before_its_tag_is_left_out(client, monkeypatch):
    client.create_scope("late")
    client.create_stream("late/orders")
    looked = streams.Streams(client, options_of(client, stream_pattern="late/*"), iter(range(0, 1000, 100)).__next__)
    assert looked.now() == (StreamName("late", "orders"),)
    listed = ControllerClient.list_streams

    def untagged(controller: ControllerClient, scope: str, *, tag: str | None = None) -> list[StreamName]:
        return listed(controller, scope) if tag is None else []

    monkeypatch.setattr(ControllerClient, "list_streams", untagged)
    client.create_stream("late/state", tags=[STATE_TAG])
    client.create_stream("late/more")
    found = (StreamName("late", "more"), StreamName("late", "orders"))
    assert looked.now() == found
    monkeypatch.undo()
    assert looked.now() == found


def test_a_pattern_asks_for_the_tags_of_new_streams_alone(pravega, client):
    looked = streams.Streams(client, options_of(client, **PATTERN), iter(range(0, 1000, 100)).__next__)
    before = pravega.controller.calls.copy()
    for _ in range(3):
        assert len(looked.now()) == STREAMS
    asked = pravega.controller.calls - before
    assert asked["getStreamConfiguration"] == 0
    assert asked["listStreamsInScopeForTag"] == 3, "one a look, however many streams there are"


def test_losses_are_reported_of_the_first_stream_or_of_all(client, monkeypatch):
    client.create_scope("gone")
    for number in range(AT_ONCE):
        client.create_stream(f"gone/s{number}")
        client.write(f"gone/s{number}", b"first", "bytes")
    pattern = PATTERN | {"stream_pattern": "gone/*"}
    first = plan(client, **pattern).first()
    for number in (2, 5):
        client.truncate(f"gone/s{number}", "tail")
        client.write(f"gone/s{number}", b"second", "bytes")

    together, alone = both_ways(monkeypatch, lambda: plan(client, **pattern).next(first))
    assert together == alone
    assert together[0] is DataLossError
    assert "gone/s2" in together[1]

    def passed_over() -> tuple[str, set[StreamName]]:
        made = plan(client, **pattern, fail_on_data_loss="false")
        return json.dumps(made.next(first).to_json()), {loss.stream for loss in made.losses.losses}

    together, alone = both_ways(monkeypatch, passed_over)
    assert together == alone
    assert together[1] == {StreamName("gone", "s2"), StreamName("gone", "s5")}
