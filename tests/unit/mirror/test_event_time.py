"""Watermarks that a mirror notes again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pravega_connector.errors import StreamNotFoundError
from pravega_connector.operations.mirror import event_time
from pravega_connector.operations.mirror.event_time import EventTime
from pravega_connector.wire import StreamCut, StreamName, Watermark

SOURCE, TARGET = StreamName("scope", "source"), StreamName("scope", "target")
NEVER = 2**63 - 1


class Log:
    """Watermarks of a source whose segment 0 was replaced by 1 and 2."""

    def __init__(self, *marks: Watermark) -> None:
        self.marks = list(marks)

    def read(self) -> list[Watermark]:
        return list(self.marks)

    def offset(self, mark: Watermark, segment_id: int) -> int:
        found = mark.cut.positions.get(segment_id)
        return found if found is not None else NEVER if segment_id == 0 else 0


def mark(low: int, high: int, **positions: int) -> Watermark:
    cut = StreamCut(SOURCE, {int(name[1:]): offset for name, offset in positions.items()})
    return Watermark(low, high, cut, ())


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    monkeypatch.setattr(event_time, "tail_cut", lambda _stores, stream: StreamCut(stream, {7: 100}))
    return []


def times(log: Log, noted: list[tuple[str, int]]) -> EventTime:
    def note_time(writer: str, position: StreamCut, millis: int) -> bool:
        assert position == StreamCut(TARGET, {7: 100})
        noted.append((writer, millis))
        return True

    stores = SimpleNamespace(controller=SimpleNamespace(note_time=note_time))
    found = EventTime(cast("Any", log), cast("Any", stores), TARGET, "copy")
    found.poll()
    return found


def test_both_bounds_are_noted_when_all_segments_have_reached_the_watermark(noted: list[tuple[str, int]]) -> None:
    found = times(Log(mark(10, 12, s1=50, s2=60), mark(20, 25, s1=70, s2=60)), noted)
    assert not found.due({1: 50, 2: 59})
    assert found.due({1: 50, 2: 60})
    found.note({1: 50, 2: 60}, sealed=False)
    assert noted == [("copy-low", 10), ("copy-high", 12)]
    assert not found.due({1: 69, 2: 90})
    found.note({1: 70, 2: 60}, sealed=True)  # nothing can be noted any more
    assert len(noted) == 2
    assert not found.due({1: 99, 2: 99})


def test_a_step_ends_at_the_last_watermark_that_it_reaches(noted: list[tuple[str, int]]) -> None:
    found = times(Log(mark(10, 10, s0=50), mark(20, 20, s0=70), mark(30, 30, s1=40, s2=5)), noted)
    assert found.limits({0: 0}, 10) == {0: 50}  # at least the next one
    assert found.limits({0: 0}, 60) == {0: 50}
    assert found.limits({0: 0}, 70) == {0: 70}
    found.note({0: 70}, sealed=False)
    assert found.limits({0: 70}, 10) == {0: NEVER}  # the segment ends before the watermark
    assert found.limits({1: 0, 2: 0}, 10) == {1: 40, 2: 5}
    found.note({1: 40, 2: 5}, sealed=False)
    assert found.limits({1: 40, 2: 5}, 10) == {}


def test_a_watermark_that_was_passed_before_is_noted_once(noted: list[tuple[str, int]]) -> None:
    found = times(Log(mark(10, 10, s0=50), mark(20, 20, s0=70)), noted)
    assert found.due({1: 1, 2: 1}) is True
    found.note({1: 1, 2: 1}, sealed=False)
    assert noted == [("copy-low", 20), ("copy-high", 20)]


def test_a_source_without_watermarks(noted: list[tuple[str, int]]) -> None:
    class Missing(Log):
        def read(self) -> list[Watermark]:
            raise StreamNotFoundError.of(SOURCE)

    for log in (Log(), Missing()):
        found = times(log, noted)
        assert not found.due({0: 10})
        assert found.limits({0: 10}, 5) == {}
