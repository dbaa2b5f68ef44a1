"""Transient failures of the servers, and lasting ones: a store that resumed, deleted streams."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pravega_connector.client import PravegaClient, TransactionalWriter, TransactionStatus
from pravega_connector.core.values import CreatedTransaction
from pravega_connector.errors import (
    ConnectionLostError,
    ConnectorError,
    ControllerUnavailableError,
    NoSuchSegmentError,
    SegmentSealedError,
    StreamNotFoundError,
    StreamSealedError,
)
from pravega_connector.exactly_once.steps.leader import Trouble
from pravega_connector.operations.ingest import IngestSummary, ingest
from pravega_connector.testing.segment_store import Session
from pravega_connector.wire import (
    AuthTokenCheckFailed,
    GetStreamSegmentInfo,
    NoSuchSegment,
    SetupAppend,
    StreamName,
    WrongHost,
)
from pravega_connector.writer.transactions import OpenTransaction
from tests.support.fake_stream import FakeSegmentStore
from tests.unit.ingest._servers import TARGET

Run = Callable[..., IngestSummary]


@pytest.fixture
def run(client: PravegaClient, six_files: Path) -> Run:
    def ingest_all(client: PravegaClient = client) -> IngestSummary:
        return ingest(six_files, TARGET, client=client, options={"routing_key_field": "key"})

    return ingest_all


def no_segment(session: Session, request: Any) -> None:
    """As by a store that was frozen, and whose segments live elsewhere now."""
    session.reply(NoSuchSegment(request.request_id, request.segment, "stack", -1))


def wrong_host(session: Session, request: Any) -> None:
    session.reply(WrongHost(request.request_id, request.segment, "127.0.0.1:1", "stack"))


def token_ended(session: Session, request: Any) -> None:
    session.reply(AuthTokenCheckFailed(request.request_id, "stack", 1))


def nothing(session: Session, request: Any) -> None:
    """As by a store that is frozen from now on."""
    session.deaf = True


@pytest.fixture
def trouble(store: FakeSegmentStore, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """``trouble(answer, part, times)``: connections break when the second step is begun, and then that comes so often.

    It comes for segments whose name has the part, when their writers are set up and when they are looked at. The list
    that is given back has their names.
    """

    def plan(answer: Callable[[Session, Any], None], part: str, times: int) -> list[str]:
        asked: list[str] = []
        begin, begun = TransactionalWriter.begin, []

        def rule(session: Session, request: Any) -> None:
            if part in request.segment and len(asked) < times:
                asked.append(request.segment)
                answer(session, request)
            else:
                store.serve(session, request)

        def arm(self: TransactionalWriter[bytes]) -> OpenTransaction[bytes]:
            begun.append(self)
            if len(begun) == 2:
                store.drop_all()
                store.on(SetupAppend, rule, times=10_000)
                store.on(GetStreamSegmentInfo, rule, times=10_000)
            return begin(self)

        monkeypatch.setattr(TransactionalWriter, "begin", arm)
        return asked

    return plan


@pytest.mark.parametrize("part", ["#transaction", "scope/stream-ingest/"])
@pytest.mark.parametrize(("answer", "times"), [(no_segment, 4), (wrong_host, 4), (token_ended, 4), (nothing, 1)])
def test_it_continues_by_itself(servers, run, trouble, monkeypatch, answer, times, part):
    monkeypatch.setattr("pravega_connector.writer.append_loop._KEEP_ALIVE_SECONDS", 0.2)
    monkeypatch.setattr("pravega_connector.writer.append_loop.SILENCE_SECONDS", 1.0)
    asked = trouble(answer, part, times)
    with servers.client(failover_timeout=6.0) as client:  # an attempt has 2 s
        summary = run(client)
    assert len(asked) == times
    assert summary.counts.events == 30
    assert servers.numbers == list(range(30))


@pytest.fixture
def deny(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """``deny(error, times)``: a flush fails so often, when all is written; with the transactions' statuses then."""

    def patch(error: ConnectorError, times: int, then: Callable[[], object] = lambda: None) -> list[str]:
        flush, denied = OpenTransaction.flush, []

        def denying(self: OpenTransaction[bytes], timeout: float | None = None) -> None:
            flush(self, timeout)
            if len(denied) < times:
                denied.append(self.status().value)
                then()
                raise error

        monkeypatch.setattr(OpenTransaction, "flush", denying)
        return denied

    return patch


NO_SEGMENT = NoSuchSegmentError("segment 7 is not there")


@pytest.mark.parametrize("error", [NO_SEGMENT, SegmentSealedError("sealed"), ConnectionLostError("lost")])
def test_a_step_whose_transaction_is_open_is_done_again(servers, run, deny, caplog, error):
    denied = deny(error, 3)
    with caplog.at_level(logging.INFO, "pravega_connector.operations.ingest"):
        summary = run()
    assert denied == ["open"] * 3
    assert summary.counts.redone == 3
    assert servers.numbers == list(range(30))
    assert [record.getMessage() for record in caplog.records] == [
        f"ingestion into scope/stream: retrying a step: {error.message}"
    ]


def test_a_stream_that_was_deleted(servers, run, deny):
    denied = deny(NO_SEGMENT, 10**9, lambda: setattr(servers.target, "exists", False))
    with pytest.raises(StreamNotFoundError, match="stream scope/stream does not exist"):
        run()
    assert len(denied) == 1


def test_a_stream_that_was_sealed(servers, run, deny):
    denied = deny(StreamSealedError("stream scope/stream is sealed"), 10**9, servers.target.seal_all)
    with pytest.raises(StreamSealedError):
        run()
    assert len(denied) == 1


def test_a_sealed_stream_that_the_controller_knows_to_be_open(servers, run, deny):
    denied = deny(StreamSealedError("stream scope/stream is sealed"), 1)
    run()
    assert len(denied) == 1
    assert servers.numbers == list(range(30))


def test_time_runs_out(servers, run, deny):
    """It counts from the last success, and names the last reason."""
    deny(NO_SEGMENT, 10**9)
    began = time.monotonic()
    out = pytest.raises(NoSuchSegmentError, match="segment 7 is not there")
    with out, servers.client(failover_timeout=1.2) as impatient:
        run(impatient)
    assert time.monotonic() - began >= 1.2
    assert servers.numbers == []


def test_a_transaction_whose_begin_got_no_answer(servers, run, monkeypatch):
    """It is unknown: it has no events, and ends with its lease."""
    create, orphans = servers.create_transaction, []

    def lossy(stream: StreamName, lease_ms: int) -> CreatedTransaction:
        created = create(stream, lease_ms)
        if len(orphans) < 2:
            orphans.append(created.id)
            raise ControllerUnavailableError("no controller answered")
        return created

    monkeypatch.setattr(servers, "create_transaction", lossy)
    assert run().counts.transactions == 6
    assert servers.numbers == list(range(30))
    assert not set(orphans) & set(servers.committed)


def test_a_transaction_that_the_controller_does_not_find_at_first(servers, run, deny, monkeypatch):
    """It reads its records from segments, too."""
    monkeypatch.setattr("pravega_connector.exactly_once.steps.log._UNKNOWN_PAUSE", 0.01)
    status, unknown = servers.transaction_status, []

    def blind(stream: StreamName, transaction: uuid.UUID, **options: Any) -> TransactionStatus:
        if denied and len(unknown) < 2:
            unknown.append(transaction)
            return TransactionStatus.UNKNOWN
        return status(stream, transaction, **options)

    denied = deny(NO_SEGMENT, 1)
    monkeypatch.setattr(servers, "transaction_status", blind)
    run()
    assert len(unknown) == 2
    assert servers.numbers == list(range(30))


def test_the_log_reports_a_standstill(monkeypatch, caplog):
    now = [1000.0]
    monkeypatch.setattr("pravega_connector.operations.ingest.ingester.time.monotonic", lambda: now[0])
    trouble = Trouble(f"ingestion into {TARGET}", 60.0, logging.getLogger("pravega_connector.operations.ingest"))
    with caplog.at_level(logging.INFO, "pravega_connector.operations.ingest"):
        for second in range(60):
            now[0] = 1000.0 + second
            assert trouble.note("no answer")
        trouble.is_over()
        now[0] += 59.0
        assert trouble.note("no answer")
        now[0] += 1.0
        assert not trouble.note("no answer")
    assert [record.getMessage() for record in caplog.records] == [
        "ingestion into scope/stream: no progress for 10 s, retrying for 50 s more; last error: no answer",
        "ingestion into scope/stream: no progress for 40 s, retrying for 20 s more; last error: no answer",
        "ingestion into scope/stream: recovered after 59 s",
        "ingestion into scope/stream: no progress for 59 s, retrying for 1 s more; last error: no answer",
    ]
