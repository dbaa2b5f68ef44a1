"""Servers that are frozen for longer than a first contact may take: queries continue and report it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from pravega_connector.rows.columns import decoded_fields
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.source.readers import PravegaStreamReader
from pravega_connector.spark.versions import HAS_ADMISSION
from pravega_connector.wire import StreamName
from tests.integration.spark._errors import one_line
from tests.support.jvm import SOON_READY

# tests/unit/spark/test_reader_waits.py has what a query does and tells, test_kit.py a query through faults.
pytestmark = [pytest.mark.long, pytest.mark.real_servers("a process that is stopped")]
FROZEN = 25.0  # s; the first contact may take 15
SOURCE, TARGET, PILE = (StreamName("frozen", name) for name in ("source", "target", "pile"))


@dataclass
class Outcome:
    """Observations while the server was frozen."""

    written: int = 0
    read: list[int] = field(default_factory=list)
    copied: list[int] = field(default_factory=list)
    copied_before: int = 0
    troubles: list[str] = field(default_factory=list)
    answered_in_the_freeze: bool = True
    pile: int = 0
    failures: list[str] = field(default_factory=list)


@contextlib.contextmanager
def writing(client: PravegaClient, stream: StreamName) -> Iterator[list[int]]:
    """Numbers are written all the time; those that are durable."""
    done, numbers = threading.Event(), [0]

    def run() -> None:
        with client.writer(stream) as writer:
            while not done.wait(0.05):
                writer.write(b"%d" % numbers[0])
                writer.flush()
                numbers[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield numbers
    finally:
        done.set()
        thread.join()


@contextlib.contextmanager
def frozen(server: LocalPravega) -> Iterator[None]:
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def await_that(condition: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.1)


def troubles_of(query: StreamingQuery) -> list[str]:
    reports = (json.loads(progress.json)["sources"][0]["latestOffset"] or {} for progress in query.recentProgress)
    return [report["trouble"] for report in reports if "trouble" in report]


@pytest.fixture(scope="module")
def server() -> Iterator[LocalPravega]:
    """Server of this file: a freeze ends the sessions of its ZooKeeper, which other tests would notice."""
    with LocalPravega(heap_mb=1024, cache_mb=512, java_options=SOON_READY) as server:
        yield server


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, server: LocalPravega, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """One freeze, with a query that reads, one that writes, one that has nothing to read, a run that ends with what is
    there, and a writer.
    """
    folder: Path = tmp_path_factory.mktemp("frozen")
    found = Outcome()

    def keep(batch: DataFrame, _number: int) -> None:
        found.read += [int(row.event) for row in batch.collect()]

    with PravegaClient(server.config) as client, contextlib.ExitStack() as queries:
        for stream in (SOURCE, TARGET, PILE):
            client.create_stream(stream, 2)
        with client.writer(PILE) as pile:  # before the idle query: a batch under way would say nothing
            pile.write_column(pa.array([b"x" * 92] * 50))
        reading = spark.readStream.format("pravega").option("controller", server.controller_uri)
        reading = reading.options(start_stream_cut="earliest", columns="event").load(str(SOURCE))
        reader = reading.writeStream.foreachBatch(keep).option("checkpointLocation", str(folder / "reader")).start()
        rows = spark.readStream.format("rate").option("rowsPerSecond", "20").load().selectExpr("string(value) as event")
        idle = spark.readStream.format("pravega").option("controller", server.controller_uri).load(str(PILE))
        looker = idle.writeStream.format("noop").option("checkpointLocation", str(folder / "looker")).start()
        writer = rows.writeStream.format("pravega").option("controller", server.controller_uri)
        writer = writer.option("checkpointLocation", str(folder / "writer")).start(str(TARGET))
        for query in (reader, writer, looker):
            queries.callback(query.stop)
        run = run_to_the_end(server)
        with writing(client, SOURCE) as numbers:
            await_that(lambda: len(found.read) > 20 and count(client, TARGET) > 0 and looker.recentProgress)
            start = run.initialOffset()
            run.prepareForTriggerAvailableNow()
            found.copied_before = count(client, TARGET)
            with frozen(server):
                thawed = time.monotonic() + FROZEN
                answer: Future[dict[str, Any]] = in_thread(lambda: run.latestOffset(start))
                await_that(lambda: time.monotonic() > thawed and (troubles_of(looker) or not HAS_ADMISSION))
                found.troubles = troubles_of(looker)
                found.answered_in_the_freeze = answer.done()
            written = numbers[0]
            [(_, end)] = answer.result(120)["streams"].items()
            found.pile = sum(end.values())
            await_that(lambda: numbers[0] > written + 20 and len(found.read) > written + 20)
            await_that(lambda: count(client, TARGET) > found.copied_before + 20 * FROZEN)
        found.written = numbers[0]
        await_that(lambda: len(found.read) >= found.written)
        await_that(lambda: "trouble" not in (run.reportLatestOffset() or {}))
        found.failures = [str(query.exception()) for query in (reader, writer, looker) if query.exception()]
        queries.close()
        found.copied = settled(client)
    return found


def settled(client: PravegaClient) -> list[int]:
    """Content of the target without gaps, or after 30 s: a commit that is decided can be read a little later."""
    deadline = time.monotonic() + 30
    while True:
        copied = sorted(int(event) for event in client.read(TARGET))
        if copied == list(range(len(copied))) or time.monotonic() > deadline:
            return copied
        time.sleep(0.1)


def run_to_the_end(server: LocalPravega) -> PravegaStreamReader:
    """Planner of a run with AvailableNow."""
    raw = {"controller": server.controller_uri, "stream": str(PILE), "start_stream_cut": "earliest"}
    options = parse_options(SourceOptions, raw)
    return PravegaStreamReader(options, pa.schema(decoded_fields(options, None)), None)


def in_thread(step: Callable[[], Any]) -> Future[Any]:
    outcome: Future[Any] = Future()

    def run() -> None:
        try:
            outcome.set_result(step())
        except Exception as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome


def count(client: PravegaClient, stream: StreamName) -> int:
    return sum(len(batch.offsets) for batch in client.read_columns(stream))


def test_no_query_fails(outcome: Outcome) -> None:
    assert outcome.failures == []


def test_a_query_reads_each_row_once(outcome: Outcome) -> None:
    assert sorted(outcome.read) == list(range(outcome.written))


def test_an_exactly_once_sink_writes_each_row_once(outcome: Outcome) -> None:
    assert outcome.copied == list(range(len(outcome.copied)))
    assert len(outcome.copied) > outcome.copied_before


def test_the_progress_reports_the_outage_while_it_lasts(outcome: Outcome) -> None:
    assert bool(outcome.troubles) == HAS_ADMISSION, "an older Spark has only the offset in its progress"
    assert all("unreachable for" in trouble and "retrying for" in trouble for trouble in outcome.troubles)


def test_a_run_that_ends_with_what_exists_waits_for_it(outcome: Outcome) -> None:
    assert not outcome.answered_in_the_freeze, "no new data would have been the end of the run"
    assert outcome.pile == 50 * 100


def test_a_query_with_a_wrong_address_fails_soon(spark: SparkSession, tmp_path: Path) -> None:
    reading = spark.readStream.format("pravega").schema("event BINARY").option("controller", "tcp://127.0.0.1:1")
    writing = spark.readStream.format("rate").load().selectExpr("string(value) as event").writeStream.format("pravega")
    begin = time.monotonic()
    queries = [
        reading.option("columns", "event").load("a/b").writeStream.format("noop"),
        writing.option("controller", "tcp://127.0.0.1:1").option("path", "a/b"),
    ]
    for number, query in enumerate(queries):
        with pytest.raises(PySparkException) as error:
            query.option("checkpointLocation", str(tmp_path / str(number))).start().awaitTermination(60)
        assert "127.0.0.1:1" in one_line(error, "PRAVEGA-CONTROLLER-UNAVAILABLE")
        took, begin = time.monotonic() - begin, time.monotonic()
        assert took < 25, "15 s is the deadline, the rest is Spark's"
