"""A little of what ``python -m tests.interrupts`` does at length."""

from __future__ import annotations

import gc

import pytest

from pravega_connector.reader.tail import TailReader
from tests.interrupts import _cases
from tests.interrupts._cases import CASES
from tests.interrupts._run import try_all

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
#: Files whose lines change the output of a case; without any, all files.
FILES = {
    "poll": ["stream_reader.py", "tail.py"],
    "iterate": ["stream_reader.py", "tail.py"],
    "batches": ["tail.py", "frames.py"],
    "scaled": ["stream_reader.py", "tail.py", "segments.py", "background.py"],
    "several": ["stream_reader.py", "tail.py"],
    "group-poll": ["groups/reader.py", "member.py"],
    "group-iterate": ["groups/reader.py", "member.py"],
    "group-columns": ["groups/reader.py", "member.py"],
    "group-left": ["groups/reader.py", "member.py", "synchronizer.py"],
    "exactly-once": ["group_reader.py", "groups/reader.py", "runner.py", "state.py"],
    "synchronizer": ["synchronizer.py", "revisioned.py", "conditional_append.py"],
    "revisions": ["revisioned.py", "conditional_append.py"],
    "table": ["tables/table.py", "tables/requests.py"],
    "byte-writer": ["byte_stream.py", "conditional_append.py"],
    "raw-writer": ["byte_stream.py", "conditional_append.py"],
    "byte-reader": ["byte_stream.py"],
    "ingest": ["ingester.py", "runner.py", "state.py", "content.py"],
}
#: Lines that are tried of each case: a few, and more of them in the long test. Some cases share most lines with others.
FEW, MORE = 5, 25
ALIKE = ("iterate", "several", "group-iterate", "group-columns", "raw-writer")


@pytest.fixture(autouse=True)
def collected():
    """Sockets that an interrupted call had just opened are closed with their objects, and that warns."""
    yield
    gc.collect()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "sample"),
    [
        *((name, FEW) for name in FILES if name not in ALIKE),
        *(pytest.param(name, MORE, marks=pytest.mark.long) for name in FILES),
    ],
)
def test_a_call_that_is_interrupted_loses_and_repeats_nothing(name, sample):
    *_, totals = try_all(name, CASES[name], within=FILES[name], sample=sample, seed=29)
    assert totals.failures == []
    assert totals.tried >= sample - 3


@pytest.mark.timeout(300)
def test_what_an_interrupt_loses_is_found(monkeypatch):
    def forget_nothing(reader):
        reader._in_call = False

    monkeypatch.setattr(TailReader, "_restart", forget_nothing)
    monkeypatch.setattr(_cases, "_SOON", 0.5)  # a lost event is awaited that long
    found = (
        failure
        for totals in try_all("batches", CASES["batches"], within=["tail.py"], sample=MORE, seed=29)
        for failure in totals.failures
        if "repeated" in failure.what or "lost" in failure.what
    )
    assert next(found).place.file == "pravega_connector/reader/tail.py"
