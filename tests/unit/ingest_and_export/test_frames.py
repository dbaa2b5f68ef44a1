"""Cutting bytes into lines does not depend on how they come."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.operations.pipe import LineFrames


def cut(data, places):
    """The data in pieces."""
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(bounds)]


def fed(frames, pieces):
    return [event for piece in pieces for event in frames.feed(piece)] + frames.finish()


lines = st.lists(st.binary(max_size=50).map(lambda b: b.replace(b"\n", b"")), max_size=30)
places = st.lists(st.integers(0, 2000), max_size=20)


@given(lines, places)
def test_lines_come_out_as_they_went_in(events, at):
    data = b"".join(event + b"\n" for event in events)
    assert fed(LineFrames(100), cut(data, at)) == events


@given(lines.filter(lambda events: events and events[-1]), places)
def test_a_last_line_without_newline_is_an_event(events, at):
    assert fed(LineFrames(100), cut(b"\n".join(events), at)) == events


@given(st.integers(0, 500), places)
def test_a_line_that_is_too_long_ends_the_input_and_not_what_came_before(more, at):
    frames, events = LineFrames(100), []
    for piece in cut(b"one\ntwo\n" + b"x" * (101 + more) + b"\nlost\n", at):
        events += frames.feed(piece)
        if frames.broken:
            break
    assert events == [b"one", b"two"]
    assert "over the limit of 100 bytes" in str(frames.broken)


def test_an_endless_line_is_not_kept():
    frames = LineFrames(1000)
    fed_bytes = 0
    while frames.broken is None:
        frames.feed(b"x" * 100)
        fed_bytes += 100
    assert fed_bytes == 1100
