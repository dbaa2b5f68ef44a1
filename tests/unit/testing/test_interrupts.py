"""A little of what ``python -m tools.interrupts`` does at length."""

from __future__ import annotations

import gc

import pytest

from pravega_connector.reader.tail import TailReader
from tools.interrupts._cases import CASES
from tools.interrupts._run import try_all

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
#: Files whose lines change what a case hands out or writes; without any, those of all files.
FILES = {
    "poll": ["following.py", "tail.py"],
    "iterate": ["following.py", "tail.py"],
    "batches": ["tail.py", "frames.py"],
    "scaled": ["following.py", "tail.py", "lineage.py", "errands.py"],
    "several": ["following.py", "tail.py"],
    "group-poll": ["group_reader.py", "group_member.py"],
    "group-iterate": ["group_reader.py", "group_member.py"],
    "group-columns": ["group_reader.py", "group_member.py"],
    "group-left": ["group_reader.py", "group_member.py", "synchronizer.py"],
    "exactly-once": ["exactly_once.py", "group_reader.py", "runner.py", "state.py"],
    "synchronizer": ["synchronizer.py", "revisioned.py", "appenders.py"],
    "revisions": ["revisioned.py", "appenders.py"],
    "byte-writer": ["byte_stream.py", "appenders.py"],
    "raw-writer": ["byte_stream.py", "appenders.py"],
    "byte-reader": ["byte_stream.py"],
    "ingest": ["ingester.py", "runner.py", "state.py", "content.py"],
}
SAMPLE = 25


@pytest.fixture(autouse=True)
def collected():
    """Sockets that an interrupted call had just opened are closed with their objects, and that warns."""
    yield
    gc.collect()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", FILES)
def test_a_call_that_is_interrupted_loses_and_repeats_nothing(name):
    *_, totals = try_all(name, CASES[name], within=FILES[name], sample=SAMPLE, seed=29)
    assert totals.failures == []
    assert totals.tried >= SAMPLE - 3


@pytest.mark.timeout(300)
def test_what_an_interrupt_loses_is_found(monkeypatch):
    def forget_nothing(reader):
        reader._in_call = False

    monkeypatch.setattr(TailReader, "_restart", forget_nothing)
    *_, totals = try_all("batches", CASES["batches"], within=["tail.py"], sample=SAMPLE, seed=29)
    assert {failure.place.file for failure in totals.failures} == {"pravega_connector/reader/tail.py"}
    assert any("repeated" in failure.what or "lost" in failure.what for failure in totals.failures)
