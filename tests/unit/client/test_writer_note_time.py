"""Writers that note the clock's time themselves."""

import threading
import time

import pytest

from pravega_connector.errors import ConfigError, ControllerUnavailableError
from pravega_connector.testing.requests import Append
from pravega_connector.writer import append_loop
from tests.support.fake_stream import FakeStream

SECONDS = 20


@pytest.fixture
def notes(monkeypatch):
    """Notes of (writer id, offset in segment 0, milliseconds), and an event that is set by each."""
    monkeypatch.setattr(append_loop, "NOTE_SECONDS", 0.05)
    noted, came = [], threading.Event()

    def note_time(stream, writer_id, position, millis):
        noted.append((writer_id, position.positions[0], millis))
        came.set()
        if len(noted) == 1:
            raise ControllerUnavailableError("the first one fails")
        return True

    monkeypatch.setattr(FakeStream, "note_time", note_time, raising=False)
    monkeypatch.setattr(FakeStream, "remove_writer", lambda *_, **__: noted.append("removed"), raising=False)
    return noted, came


def next_note(notes):
    noted, came = notes
    came.clear()
    assert came.wait(SECONDS)
    return noted[-1]


def test_the_time_is_noted_regularly_until_the_writer_is_closed(client, stream, notes):
    begun = int(time.time() * 1000)
    with client.writer(stream.name, writer_id="w", automatically_note_time=True) as writer:
        for _ in range(3):  # the first one fails
            _, offset, first = next_note(notes)
        assert (offset, begun <= first <= time.time() * 1000) == (0, True)
        writer.write(b"12345678")
        writer.flush()
        next_note(notes)
        writer_id, offset, second = next_note(notes)
        assert (writer_id, offset, second > first) == ("w", 16, True)
        with pytest.raises(ConfigError, match="notes the time itself"):
            writer.note_time(1)
    assert notes[0][-1] == "removed"


def test_a_time_is_noted_only_after_the_events_before_it_are_durable(client, stream, store, notes):
    held, release, sent = threading.Event(), threading.Event(), []

    def hold(session, request):
        sent.append(time.time() * 1000)
        held.set()
        assert release.wait(SECONDS)
        store.serve(session, request)

    store.on(Append, hold)
    with client.writer(stream.name, automatically_note_time=True) as writer:
        writer.write(b"a")
        assert held.wait(SECONDS)
        known = len(notes[0])
        assert all(millis <= sent[0] for _, _, millis in notes[0])
        release.set()
        writer.flush()
        while len(notes[0]) < known + 3:
            next_note(notes)
    after = [note for note in notes[0] if note != "removed" and note[2] > sent[0]]
    assert after
    assert {offset for _, offset, _ in after} == {9}
