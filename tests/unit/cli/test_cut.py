"""Stream cuts in and out of every form, without servers; a picture without a stream."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.client import StreamCut, StreamName
from pravega_connector.errors import ConfigError, MalformedStreamCutError
from pravega_connector.operations.monitoring import (
    CUT_FORMS,
    History,
    SegmentLife,
    compare_cuts,
    draw_history,
    parse_time,
    read_cut,
    write_cut,
)
from pravega_connector.wire import SegmentRange, segment_id

NAME = StreamName("s", "t")
ids = st.builds(segment_id, st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
cuts = st.builds(StreamCut, st.just(NAME), st.dictionaries(ids, st.integers(-1, 2**62), min_size=1, max_size=6))


@given(cuts, st.sampled_from(CUT_FORMS))
def test_round_trip(cut: StreamCut, form: str):
    assert read_cut(f"  {write_cut(cut, form)}\n", NAME) == cut


def test_other_forms_are_read():
    cut = StreamCut(NAME, {0: 5, 1 << 32 | 7: 9})
    offset = {"streams": {"s/t": {"0.#epoch.0": 5, "7.#epoch.1": 9}, "s/u": {"0.#epoch.0": 1}}, "version": 1}
    assert read_cut(json.dumps(offset), NAME) == cut
    assert read_cut(f"s/t:0=5,{1 << 32 | 7}=9") == cut
    with pytest.raises(MalformedStreamCutError, match="found s/t, s/u"):
        read_cut(json.dumps(offset))
    with pytest.raises(MalformedStreamCutError, match="expected one of s/other"):
        read_cut(json.dumps(offset), StreamName("s", "other"))


@pytest.mark.parametrize(
    "text", ["", "{", "{}", "[]", '{"a": 1}', '{"s/t": 1}', "s/t:0", "s/t:0=x", "s/t:=1", "t:0=1", "UNBOUNDED", "AAAA"]
)
def test_what_is_not_a_cut(text: str):
    with pytest.raises(MalformedStreamCutError):
        read_cut(text)


def test_a_checkpoint_that_is_none():
    with pytest.raises(ConfigError, match=r"checkpoint .* does not exist"):
        read_cut("checkpoint:/nowhere/at/all")


@given(cuts, st.data())
def test_cuts_of_the_same_segments_are_compared_offline(cut: StreamCut, data: st.DataObject):
    moves = data.draw(st.lists(st.integers(0, 1000), min_size=len(cut.positions), max_size=len(cut.positions)))
    later = StreamCut(NAME, {i: max(at, 0) + move for (i, at), move in zip(cut.positions.items(), moves, strict=True)})
    found = compare_cuts(StreamCut(NAME, {i: max(at, 0) for i, at in cut.positions.items()}), later)
    assert (found.relation, found.bytes) == ("before" if any(moves) else "equal", sum(moves))


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T01:00:01+01:00", 1000),
        # As floats, 1000 times its seconds is less than the whole number.
        ("1965-09-13T20:21:39.226Z", -135_661_100_774),
        ("1969-12-31T23:59:59.9995Z", -1),
    ],
)
def test_times(text: str, millis: int):
    assert parse_time(text) == millis
    with pytest.raises(ConfigError):
        parse_time("yesterday")


@given(st.integers(-(2**40), 2**41))
def test_no_millisecond_of_a_time_is_lost(millis: int):
    assert parse_time((datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)).isoformat()) == millis


def test_a_number_that_is_too_long_for_a_time():
    with pytest.raises(ConfigError, match="invalid time"):
        parse_time("9" * 5000)


def test_a_picture_of_many_epochs_is_well_formed_and_not_endless():
    lives = tuple(
        SegmentLife(SegmentRange(segment_id(i, i), 0.0, 1.0), i, i, "sealed" if i < 1999 else "open", i * 10**6, 0)
        for i in range(2000)
    )
    picture = draw_history(History(StreamName("s", "t"), 0, 1999, lives))
    assert picture.count("<title>") == 2001
    assert len(picture) < 2_000_000
