"""Names and ids of streams and segments."""

import contextlib
import pickle
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.errors import InvalidNameError
from pravega_connector.wire import (
    SegmentRange,
    StreamName,
    parse_segment_name,
    segment_epoch,
    segment_id,
    segment_name,
    segment_number,
    split_transaction,
    transaction_segment_name,
    validate_scope_name,
)

names = st.from_regex(r"_?[A-Za-z0-9.\-]{1,40}", fullmatch=True)
streams = st.builds(StreamName, names, names)
java_ints = st.integers(0, 2**31 - 1)


@pytest.mark.parametrize("name", ["a", "A-1.b", "_system", "_MARKclicks", "_RGgroup-1", "0", "-", "x" * 255])
def test_names_that_servers_have_are_accepted(name):
    stream = StreamName("scope", name)
    assert str(stream) == f"scope/{name}"
    assert StreamName.parse(f"scope/{name}") == stream
    assert validate_scope_name(name) == name


@pytest.mark.parametrize("name", ["", "_", "__a", "a_b", "a b", "a/b", "ä", "٣", "a\n", "a:b", "x" * 256, "*", "a#b"])
def test_names_that_no_server_takes_are_refused(name):
    with pytest.raises(InvalidNameError, match="stream"):
        StreamName("scope", name)
    with pytest.raises(InvalidNameError, match="scope"):
        validate_scope_name(name)


def test_a_name_that_is_not_text_is_refused():
    with pytest.raises(InvalidNameError, match="NoneType"):
        StreamName("scope", None)


@pytest.mark.parametrize("text", ["", "stream", "/stream", "scope/", "a/b/c", "scope stream"])
def test_text_that_is_not_a_stream_is_refused(text):
    with pytest.raises(InvalidNameError):
        StreamName.parse(text)


def test_a_refusal_is_one_line_and_names_the_name():
    with pytest.raises(InvalidNameError) as caught:
        StreamName("scope", "two\nlines")
    assert str(caught.value).startswith("[PRAVEGA-INVALID-NAME] ")
    assert "\n" not in str(caught.value)
    assert "two" in str(caught.value)


def test_streams_are_ordered_hashable_and_survive_pickling():
    first, second = StreamName("a", "z"), StreamName("b", "a")
    assert sorted([second, first]) == [first, second]
    assert pickle.loads(pickle.dumps(first)) == first
    assert len({first, StreamName("a", "z")}) == 1


@pytest.mark.parametrize(
    ("stream", "internal"), [("s/t", False), ("s/_MARKt", True), ("_system/t", True), ("s/t.RG-x", False)]
)
def test_internal_streams_are_told_apart(stream, internal):
    assert StreamName.parse(stream).is_internal is internal


@given(java_ints, java_ints)
def test_ids_hold_number_and_epoch(number, epoch):
    packed = segment_id(number, epoch)
    assert packed == epoch << 32 | number
    assert (segment_number(packed), segment_epoch(packed)) == (number, epoch)


@pytest.mark.parametrize(("number", "epoch"), [(-1, 0), (0, -1), (2**31, 0), (0, 2**31)])
def test_ids_that_java_cannot_hold_are_refused(number, epoch):
    with pytest.raises(InvalidNameError):
        segment_id(number, epoch)


def test_segment_names_are_those_of_the_server():
    assert segment_name(StreamName("s", "t"), 3 << 32 | 7) == "s/t/7.#epoch.3"


@given(streams, java_ints, java_ints)
def test_segment_names_can_be_parsed(stream, number, epoch):
    packed = segment_id(number, epoch)
    assert parse_segment_name(segment_name(stream, packed)) == (stream, packed)


@given(streams, java_ints, st.uuids())
def test_transaction_segments_are_those_of_their_parent(stream, number, transaction):
    parent = segment_name(stream, number)
    name = transaction_segment_name(parent, transaction)
    assert split_transaction(name) == (parent, transaction)
    assert parse_segment_name(name) == (stream, number)


def test_transaction_segment_names_are_those_of_java():
    # String.format("%016x%016x") of the two longs; a negative long shows its two's complement.
    transaction = uuid.UUID(int=(5 << 32) << 64 | 2**64 - 1)
    assert transaction_segment_name("s/t/0.#epoch.0", transaction) == (
        "s/t/0.#epoch.0#transaction.0000000500000000ffffffffffffffff"
    )


def test_an_ordinary_segment_has_no_transaction():
    assert split_transaction("s/t/0.#epoch.0") == ("s/t/0.#epoch.0", None)


def test_a_segment_name_without_epoch_is_of_epoch_0():
    assert parse_segment_name("s/t/5") == (StreamName("s", "t"), 5)


@pytest.mark.parametrize(
    "name",
    ["", "s/t", "s/t/", "s/t/x.#epoch.0", "s/t/0.#epoch.", "s/t/0.#epoch.0/", "s/t/0.#epoch.0x", "s/t/-1.#epoch.0",
     "s/t/9999999999.#epoch.0", "s/t/0.#epoch.0#transaction.12", "s/t/0.#epoch.0#transient.00", "a b/t/0.#epoch.0",
     "_system/containers/metadata_0/x"],
)  # fmt: skip
def test_other_segments_are_refused(name):
    with pytest.raises(InvalidNameError):
        parse_segment_name(name)


@given(st.text(max_size=60), st.sampled_from([StreamName.parse, parse_segment_name]))
def test_any_text_is_parsed_or_refused(text, parse):
    with contextlib.suppress(InvalidNameError):
        assert parse(text)


def test_segment_ranges_are_values():
    assert SegmentRange(1, 0.0, 0.5) == SegmentRange(id=1, low=0.0, high=0.5)
