"""The offset's JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import ConfigError
from connector.source._offsets import from_offset, to_offset
from connector.wire import StreamCut, StreamName, segment_id

words = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
names = st.builds(StreamName, words, words)
ids = st.builds(segment_id, st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
positions = st.dictionaries(ids, st.integers(0, 2**62), min_size=1)
cuts = st.builds(StreamCut, names, positions)


@given(st.lists(cuts, max_size=4, unique_by=lambda cut: cut.stream))
def test_round_trip_through_text(several: list[StreamCut]):
    by_stream = {cut.stream: cut for cut in several}
    assert from_offset(json.loads(json.dumps(to_offset(by_stream)))) == by_stream


@given(cuts)
def test_the_same_position_is_always_the_same_text(cut: StreamCut):
    turned = StreamCut(cut.stream, dict(reversed(cut.positions.items())))
    text = json.dumps(to_offset({cut.stream: cut}))
    assert json.dumps(to_offset({cut.stream: turned})) == text
    assert text == json.dumps(json.loads(text), sort_keys=True)


@pytest.mark.parametrize(
    "offset",
    [
        {},
        {"version": 2, "streams": {}},
        {"version": 1},
        {"version": 1, "streams": {"no-slash": {}}},
        {"version": 1, "streams": {"a/b": {"x": 1}}},
        {"version": 1, "streams": {"a/b": {"0.#epoch.0": "x"}}},
        {"version": 1, "streams": {"a/b": {"0.#epoch.0": -5}}},
        {"version": 1, "streams": []},
    ],
)
def test_refuses_what_it_did_not_write(offset: dict[str, object]):
    with pytest.raises(ConfigError, match="checkpoint"):
        from_offset(offset)
