"""Positions and times from watermarks."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.client import StreamCut, TimeWindow, Watermark
from pravega_connector.errors import TimeUnknownError
from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.reader.watermarks import WatermarkLog, _last_before
from pravega_connector.wire import SegmentRange, StreamName, segment_id
from tests.support.fake_stream import FakeStream

STREAM = StreamName("scope", "stream")
# A stream that was split and merged again: 0 in two halves, then one of three thirds.
WHOLE, LEFT, RIGHT, LAST = 0, segment_id(1, 1), segment_id(2, 1), segment_id(3, 2)
RANGES = {
    WHOLE: SegmentRange(WHOLE, 0.0, 1.0),
    LEFT: SegmentRange(LEFT, 0.0, 0.5),
    RIGHT: SegmentRange(RIGHT, 0.5, 1.0),
    LAST: SegmentRange(LAST, 0.0, 1.0),
}


def mark(low: int, high: int, cut: dict[int, int]) -> Watermark:
    return Watermark(low, high, StreamCut(STREAM, cut), tuple(RANGES[i] for i in sorted(cut)))


MARKS = [
    mark(10, 12, {WHOLE: 100}),
    mark(20, 25, {WHOLE: 200}),
    mark(30, 30, {LEFT: 50, RIGHT: 0}),
    mark(40, 44, {LEFT: 50, RIGHT: 70}),
    mark(50, 50, {LAST: 10}),
]


@pytest.fixture
def log(stream: FakeStream, client) -> WatermarkLog:
    found = WatermarkLog(client.stores, stream.name)
    found._ranges = dict(RANGES)
    return found


@pytest.mark.parametrize(
    ("position", "window"),
    [
        ({WHOLE: 0}, (None, 12)),
        ({WHOLE: 99}, (None, 12)),
        ({WHOLE: 100}, (10, 25)),
        ({WHOLE: 250}, (20, 30)),
        ({LEFT: 0, RIGHT: 0}, (20, 30)),
        # Behind the third in one half and before it in the other: it is not passed, and tells the bound only if no
        # later one is ahead in both.
        ({LEFT: 49, RIGHT: 60}, (20, 44)),
        ({LEFT: 50, RIGHT: 69}, (30, 44)),
        ({LEFT: 60, RIGHT: 70}, (40, 50)),
        ({LAST: 9}, (40, 50)),
        ({LAST: 10}, (50, None)),
        ({LEFT: -1, RIGHT: 0}, (20, 30)),
    ],
)
def test_the_window_at_a_position(log, position, window) -> None:
    assert log.window(StreamCut(STREAM, position), MARKS) == TimeWindow(*window)


def test_no_watermarks_give_no_window(log) -> None:
    assert log.window(StreamCut(STREAM, {WHOLE: 5}), []) == TimeWindow(None, None)


@pytest.mark.parametrize("segment", list(RANGES))
@pytest.mark.parametrize(("start", "end"), [(0, 300), (50, 120), (100, 200), (199, 201), (60, 61)])
@pytest.mark.parametrize("count", range(len(MARKS) + 1))
def test_the_bounds_along_a_segment_are_the_windows_of_its_places(log, segment, start, end, count) -> None:
    offsets = np.arange(start, end)
    times = log.along(SegmentSlice(STREAM, segment, start, end), MARKS[:count])
    assert len(times.places) <= count
    windows = [log.window(StreamCut(STREAM, {segment: int(at)}), MARKS[:count]) for at in offsets]
    assert times.low(offsets).to_pylist() == [window.low for window in windows]
    assert times.high(offsets).to_pylist() == [window.high for window in windows]


# ---------------------------------------------------------------- times


@dataclass
class Stream:
    """A stream of one segment, writers that keep their word, and a controller that waits for all of them."""

    events: list[int] = field(default_factory=list)  # their times
    now: dict[int, int] = field(default_factory=dict)  # writer -> its time
    noted: dict[int, tuple[int, int]] = field(default_factory=dict)  # writer -> (time, place) that it noted last
    closed: set[int] = field(default_factory=set)
    marks: list[Watermark] = field(default_factory=list)

    def write(self, writer: int, step: int) -> None:
        """Write an event of any time from what the writer has noted on."""
        if writer not in self.noted or writer in self.closed:
            self.note(writer, step)
        self.events.append(self.noted[writer][0] + step)
        self.now[writer] = max(self.now[writer], self.events[-1])

    def note(self, writer: int, step: int) -> None:
        """Note the writer's time; one that begins is not behind the others."""
        self.closed.discard(writer)
        self.now[writer] = self.now.get(writer, max(self._low, 0)) + step
        self.noted[writer] = self.now[writer], len(self.events)

    def close(self, writer: int, _step: int) -> None:
        """Note a last time, and be waited for no longer.

        It is later than the last watermark's: of a writer that leaves without having got beyond that the controller
        forgets the place as well.
        """
        self.note(writer, 0)
        self.note(writer, max(0, self._low + 1 - self.now[writer]))
        self.closed.add(writer)

    def look(self, _writer: int, _step: int) -> None:
        """Make a watermark as PeriodicWatermarking does."""
        behind = {writer for writer, (time, _) in self.noted.items() if time <= self._low}
        for writer in behind & self.closed:
            del self.noted[writer], self.now[writer]
        if behind - self.closed or not self.noted:
            return
        times, places = zip(*self.noted.values(), strict=True)
        place = max(*places, self.marks[-1].cut.positions[WHOLE] if self.marks else 0)
        self.marks.append(mark(min(times), max(times), {WHOLE: place}))

    @property
    def _low(self) -> int:
        return self.marks[-1].low if self.marks else -1


actions = st.tuples(
    st.sampled_from([Stream.write, Stream.note, Stream.look, Stream.write, Stream.note, Stream.close]),
    st.integers(0, 2),
    st.integers(0, 9),
)


@given(st.lists(actions, max_size=60), st.integers(0, 120))
def test_nothing_of_a_time_or_later_lies_before_the_cut_for_it(done, millis) -> None:
    stream = Stream()
    for action, writer, step in done:
        action(stream, writer, step)
    found = _last_before(stream.marks, millis)
    before = found.cut.positions[WHOLE] if found else 0
    assert all(time < millis for time in stream.events[:before])
    for at in stream.marks:
        assert all(time >= at.low for time in stream.events[at.cut.positions[WHOLE] :])


def test_the_watermark_before_the_last_earlier_one_is_treated_as_a_single_writer() -> None:
    marks = [mark(10 * n, 10 * n, {WHOLE: n}) for n in range(1, 6)]
    assert [_last_before(marks, millis) for millis in (5, 10, 11, 20, 21, 35, 99)] == [
        *[None] * 4,
        marks[0],
        marks[1],
        marks[3],
    ]


class Marked(WatermarkLog):
    """A log that has been read."""

    def read(self) -> list[Watermark]:
        return self.marks

    marks: list[Watermark]


@pytest.fixture
def marked(stream: FakeStream, store, client) -> Marked:
    log = client._watermarks[stream.name] = Marked(client.stores, stream.name)
    log.marks = [mark(10 * n, 10 * n, {WHOLE: 100 * n}) for n in range(1, 6)]
    store.segments[stream.segment(WHOLE)].data.extend(bytes(600))
    return log


def test_ends_and_starts(client, stream, marked) -> None:
    def at(millis: int, *, end: bool = False) -> int:
        return client.cut_at(stream.name, millis, end=end).positions[WHOLE]

    assert [at(millis) for millis in (0, 20, 21, 30, 31, 1000)] == [0, 0, 100, 100, 200, 400]
    assert [at(millis, end=True) for millis in (0, 10, 11, 50)] == [100, 100, 200, 500]
    with pytest.raises(TimeUnknownError, match=r"1970-01-01T00:00:00\.051000.* yet: .*reached .*\(50 ms\)"):
        at(51, end=True)


def test_what_was_truncated_begins_at_the_head(client, stream, store, marked) -> None:
    store.segments[stream.segment(WHOLE)].start = 150
    stream.head = {WHOLE: 150}
    assert client.cut_at(stream.name, 25).positions == {WHOLE: 150}
    assert client.cut_at(stream.name, 35).positions == {WHOLE: 200}
    assert client.cut_at(stream.name, 5, end=True).positions == {WHOLE: 150}


def test_a_stream_without_watermarks_reports_it(client, stream, marked) -> None:
    marked.marks = []
    for end in (False, True):
        with pytest.raises(TimeUnknownError, match=r"no watermarks.*called note_time.*'earliest' or a stream cut"):
            client.cut_at(stream.name, 2**63 - 1, end=end)
