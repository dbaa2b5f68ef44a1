"""The driver of a streaming query while servers do not answer."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient, StreamCut
from pravega_connector.errors import DeadlineExceededError
from pravega_connector.rows.columns import decoded_fields
from pravega_connector.rows.offsets import Offset
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.source import readers
from pravega_connector.spark.source.readers import PravegaStreamReader
from pravega_connector.wire import StreamName

NAME = StreamName("s", "t")
TROUBLE = "stream s/t: unreachable for 12 s, retrying for 288 s more; last error: no answer"


def at(place: int) -> Offset:
    return Offset({NAME: StreamCut(NAME, {0: place})})


class Plan:
    """Finds the end where it is; while it is held it finds nothing, as in an outage."""

    losses = None
    is_idle = False

    def __init__(self) -> None:
        self.end: Offset | BaseException = at(0)
        self.looks = 0
        self.flows = threading.Event()
        self.flows.set()

    def first(self) -> Offset:
        return at(0)

    def end_here(self) -> None:
        pass

    def next(self, start: Offset) -> Offset:
        self.looks += 1
        self.flows.wait()
        if isinstance(self.end, BaseException):
            raise self.end
        return start if self.end == start else replace(self.end)


class Client(PravegaClient):
    """A client without a connection, with the faults of the test."""

    told: str | None = None

    @property
    def trouble(self) -> str | None:
        return self.told


@pytest.fixture
def client() -> Client:
    return Client("tcp://127.0.0.1:1")


@pytest.fixture
def plan() -> Plan:
    return Plan()


@pytest.fixture
def reader(plan: Plan, client: Client, monkeypatch: pytest.MonkeyPatch) -> PravegaStreamReader:
    """A reader with such a plan, whose report is the position that it was asked for."""
    monkeypatch.setattr(readers, "client_of", lambda *_, **__: client)
    monkeypatch.setattr(readers, "_ANSWER_WITHIN", 0.3)
    monkeypatch.setattr(readers, "_POLL", 0.02)
    monkeypatch.setattr(readers, "note_answer", lambda _: None)
    options = parse_options(SourceOptions, {"path": str(NAME)})
    reader = PravegaStreamReader(options, pa.schema(decoded_fields(options, None)), None)
    reader._own_plan = plan
    monkeypatch.setattr(readers.Progress, "measure", measure)
    return reader


def measure(self: Any, end: dict[StreamName, StreamCut]) -> None:
    self._report = {"streams": {str(name): dict(cut.positions) for name, cut in end.items()}}


def in_background(reader: PravegaStreamReader, start: dict[str, Any]) -> Future[dict[str, Any]]:
    return ThreadPoolExecutor(1).submit(reader.latestOffset, start, None)


def test_a_query_that_asks_often_learns_of_an_outage_while_it_lasts(reader, plan, client) -> None:
    start = reader.initialOffset()
    for _ in range(2):
        assert reader.latestOffset(start, None) == start
    plan.flows.clear()
    plan.end, client.told = at(10), TROUBLE
    for _ in range(2):
        assert reader.latestOffset(start, None) is start, "nothing new, as far as anybody knows"
        assert reader.reportLatestOffset() == {"streams": {"s/t": {0: 0}}, "trouble": TROUBLE}
    assert plan.looks == 3, "one look goes on all the while"
    plan.flows.set()
    client.told = None
    assert reader.latestOffset(start, None) == at(10).to_json()
    assert reader.reportLatestOffset() == {"streams": {"s/t": {0: 10}}}


@pytest.mark.parametrize("why", ["available now", "first look", "asked rarely", "slow, no trouble"])
def test_it_waits_where_nothing_new_would_be_wrong_or_late(reader, plan, client, monkeypatch, why: str) -> None:
    start = reader.initialOffset()
    if why == "available now":
        reader.prepareForTriggerAvailableNow()
    if why == "asked rarely":
        monkeypatch.setattr(readers, "_ASKED_AGAIN_WITHIN", 0.0)
    if why != "first look":
        for _ in range(2):
            reader.latestOffset(start, None)
    plan.flows.clear()
    plan.end, client.told = at(10), None if why == "slow, no trouble" else TROUBLE
    answer = in_background(reader, start)
    assert not wait([answer], 1.0).done
    plan.flows.set()
    assert answer.result(120) == at(10).to_json()


def test_an_outage_that_lasts_too_long_ends_the_query(reader, plan, client) -> None:
    start = reader.initialOffset()
    for _ in range(2):
        reader.latestOffset(start, None)
    plan.flows.clear()
    plan.end, client.told = DeadlineExceededError("not within 300 s"), TROUBLE
    assert reader.latestOffset(start, None) is start
    plan.flows.set()
    with pytest.raises(DeadlineExceededError):
        reader.latestOffset(start, None)


def test_a_restarted_query_continues(reader, plan, client, monkeypatch) -> None:
    """It has a position to start from: its servers existed once."""
    calls: list[bool] = []

    def client_of(_: SourceOptions, *, service: bool = False) -> Client:
        calls.append(service)
        return client

    monkeypatch.setattr(readers, "client_of", client_of)
    plan.end = at(10)
    assert reader.latestOffset(at(5).to_json(), None) == at(10).to_json()
    assert True in calls


def test_the_report_waits_neither_for_a_check_nor_for_long(reader, plan, client, monkeypatch) -> None:
    """Spark's thread asks for it between two batches: what blocks it there is not told of."""
    start = reader.initialOffset()
    reader.latestOffset(start, None)
    answered = threading.Event()

    def stuck(self: Any, end: Any) -> None:
        answered.wait()
        measure(self, end)

    monkeypatch.setattr(readers.Progress, "measure", stuck)
    client.told = TROUBLE
    told = {"streams": {"s/t": {0: 0}}, "trouble": TROUBLE}
    assert reader.reportLatestOffset() == told, "in some seconds"
    assert reader.reportLatestOffset() == told
    plan.flows.clear()
    plan.is_idle = True
    assert reader.latestOffset(start, None) is start
    assert reader.reportLatestOffset() == told, "at once: the look will measure"
    answered.set()
    plan.flows.set()


def test_the_lag_is_known_from_the_replay_of_a_batch_on(reader) -> None:
    reader.partitions(at(0).to_json(), at(10).to_json())
    assert reader.reportLatestOffset() == {"streams": {"s/t": {0: 10}}}
