"""Numbers of variable width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.wire.versioned import (
    COMPACT_INT_MAX,
    COMPACT_LONG_MAX,
    COMPACT_SIGNED_MAX,
    CompactReader,
    put_compact_int,
    put_compact_long,
    put_compact_signed,
    put_versioned,
)

KINDS = [
    (put_compact_int, CompactReader.compact_int, 0, COMPACT_INT_MAX),
    (put_compact_long, CompactReader.compact_long, 0, COMPACT_LONG_MAX),
    (put_compact_signed, CompactReader.compact_signed, ~COMPACT_SIGNED_MAX, COMPACT_SIGNED_MAX),
]


@pytest.mark.parametrize(
    ("put", "value", "written"),
    [
        (put_compact_int, 0, "00"),
        (put_compact_int, 0x7F, "7f"),
        (put_compact_int, 0x80, "8080"),
        (put_compact_int, 0x3FFF, "bfff"),
        (put_compact_int, 0x4000, "c0004000"),
        (put_compact_long, 0x3F, "3f"),
        (put_compact_long, 0x40, "4040"),
        (put_compact_long, 0x3FFF, "7fff"),
        (put_compact_long, 0x4000, "80004000"),
        (put_compact_long, 0x3FFF_FFFF, "bfffffff"),
        (put_compact_long, 0x4000_0000, "c000000040000000"),
        (put_compact_signed, 0x1F, "1f"),
        (put_compact_signed, -1, "80"),
        (put_compact_signed, -0x20, "9f"),
        (put_compact_signed, -0x21, "a020"),
        (put_compact_signed, 0x20, "2020"),
        (put_compact_signed, 0x2000, "40002000"),
        (put_compact_signed, 0x2000_0000, "6000000020000000"),
        (put_compact_signed, ~0x2000_0000, "e000000020000000"),
    ],
)
def test_numbers_are_written_as_java_writes_them(put, value, written):
    assert put(value).hex() == written


@given(st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind), st.integers(kind[2], kind[3]))))
def test_numbers_survive(case):
    (put, get, _, _), value = case
    reader = CompactReader(put(value))
    assert get(reader) == value
    assert reader.remaining == 0


@pytest.mark.parametrize(("put", "get", "low", "high"), KINDS)
def test_numbers_out_of_range_are_refused(put, get, low, high):
    for value in (low - 1, high + 1):
        with pytest.raises(ValueError, match=str(value)):
            put(value)
    for value in (low, high):
        assert get(CompactReader(put(value))) == value


@pytest.mark.parametrize(("put", "get", "low", "high"), KINDS)
def test_numbers_cut_short_are_refused(put, get, low, high):
    for end in range(len(put(high))):
        with pytest.raises(ValueError, match="missing at its end"):
            get(CompactReader(put(high)[:end]))


@given(st.lists(st.binary(max_size=5), min_size=1, max_size=5), st.integers(0, 3))
def test_frames_keep_all_their_revisions(bodies, version):
    reader = CompactReader(put_versioned(bodies, version) + b"next")
    found, revisions = reader.versioned(newest=3)
    assert (found, [body.take(body.remaining) for body in revisions]) == (version, bodies)
    assert reader.take(reader.remaining) == b"next"


@pytest.mark.parametrize(
    "data",
    [
        "01000100000000",  # another format
        "00040100000000",  # a later version
        "000000",  # no revision
        "00008000",  # too many
        "00000101000000000",  # a revision left out
        "0000020000000000",  # the second one missing
        "00000100000000ff",  # longer than what exists
    ],
)
def test_other_bytes_are_not_frames(data):
    with pytest.raises(ValueError, match=r"unknown|missing|expected"):
        CompactReader(bytes.fromhex(data[: len(data) // 2 * 2])).versioned(newest=3)
