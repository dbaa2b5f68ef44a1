"""An interrupt, at any line of a caller of a writer: accepted events are in the stream once."""

import linecache
import sys
from types import FrameType

import pyarrow as pa
import pytest

from pravega_connector.core import io
from pravega_connector.writer import append_loop, event_writer, inbox, transactions

CALLERS = {module.__file__ for module in (append_loop, event_writer, inbox, transactions, io)}


class Interrupt:
    """Raises KeyboardInterrupt at the line number ``at``, of those that the present thread executes in CALLERS."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.where = ""

    def __enter__(self):
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: object):
        if frame.f_code.co_filename not in CALLERS:
            return None
        if event == "line" and not self.where:
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            # The line of a with comes again when its block is left. No signal is handled between the two.
            if not line.startswith("with "):
                self.left -= 1
                if not self.left:
                    self.where = f"{frame.f_code.co_qualname}: {line}"
                    raise KeyboardInterrupt
        return self._trace


class Calls:
    """Calls that note what they wrote, and what they may have written before an interrupt."""

    def __init__(self) -> None:
        self.accepted: list[bytes] = []
        self.open: list[bytes] = []

    def write(self, call, events: list[bytes]) -> None:
        try:
            call()
        except KeyboardInterrupt:
            self.open += events
        else:
            self.accepted += events

    def check(self, found: list[bytes], where: str) -> None:
        assert sorted(found) == found, where
        assert len(set(found)) == len(found), where
        assert set(self.accepted) <= set(found) <= {*self.accepted, *self.open}, where


def interrupted(run) -> int:
    """Run with an interrupt at the first line, the second one and so on; return how many lines there were."""
    at = 0
    while True:
        at += 1
        interrupt = Interrupt(at)
        run(interrupt)
        if not interrupt.where:
            return at - 1


@pytest.fixture
def small_rows(monkeypatch):
    monkeypatch.setattr(event_writer, "_ROW_VALUES", 6)


@pytest.mark.usefixtures("small_rows")
def test_an_interrupt_loses_and_repeats_no_event_of_a_writer(client, stream, store):
    def run(interrupt):
        events = store.segments[stream.segment(0)].events
        before, calls = len(events), Calls()
        writer = client.writer(stream.name, timeout=10, max_in_flight=100)
        with interrupt:
            for each in (b"a", b"b", b"c", b"d", b"e"):
                calls.write(lambda event=each: writer.write(event, "key"), [each])
            calls.write(lambda: writer.write_column(pa.array([b"f", b"g"])), [b"f", b"g"])
            calls.write(lambda: writer.write(b"h"), [b"h"])
            calls.write(writer.flush, [])
            calls.write(lambda: writer.write(b"i"), [b"i"])
            calls.write(writer.close, [])
        writer.close()
        calls.check(store.segments[stream.segment(0)].events[before:], interrupt.where)

    assert interrupted(run) > 100


@pytest.mark.usefixtures("small_rows")
def test_an_interrupted_transaction_commits_all_accepted_events(client, stream):
    found_before: list[bytes] = []

    def run(interrupt):
        calls = Calls()
        transaction = client.transactions(stream.name).begin()
        with interrupt:
            for each in (b"a", b"b", b"c", b"d"):
                calls.write(lambda event=each: transaction.write(event), [each])
            calls.write(transaction.commit, [])
        transaction.commit()
        found = list(client.read(stream.name))
        calls.check(found[len(found_before) :], interrupt.where)
        found_before[:] = found

    assert interrupted(run) > 50
