"""Watermarks as the controller writes them."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.wire import (
    SegmentRange,
    StreamCut,
    StreamName,
    Watermark,
    decode_watermark,
    mark_stream,
    segment_id,
)
from pravega_connector.wire.versioned import put_compact_int
from pravega_serde.errors import DeserializationError

STREAM = StreamName("s", "t")
# Bytes that a controller of Pravega 0.13 wrote for a stream of two segments; only the first had events.
WRITTEN = bytes.fromhex(
    "000001000000006100000000000003e800000000000003e802"
    "0000010000000018000000000000000000000000000000003fe00000000000000000000000000009"
    "000001000000001800000000000000013fe00000000000003ff00000000000000000000000000000"
)
longs = st.integers(-(2**63), 2**63 - 1)
entries = st.dictionaries(
    st.builds(segment_id, st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)),
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(-1, 2**63 - 1)),
    min_size=1,
    max_size=300,
)


def frame(body: bytes, *more: bytes) -> bytes:
    """A value of format and version 0, with revisions; the first is known."""
    revisions = b"".join(bytes((n,)) + struct.pack(">i", len(b)) + b for n, b in enumerate((body, *more)))
    return bytes((0, 0, 1 + len(more))) + revisions


def encoded(low: int, high: int, segments: dict[int, tuple[float, float, int]]) -> bytes:
    pairs = (frame(struct.pack(">qdd", i, *bounds)) + struct.pack(">q", at) for i, (*bounds, at) in segments.items())
    return frame(struct.pack(">qq", low, high) + put_compact_int(len(segments)) + b"".join(pairs))


def test_what_a_server_wrote() -> None:
    assert decode_watermark(WRITTEN, STREAM) == Watermark(
        1000, 1000, StreamCut(STREAM, {0: 9, 1: 0}), (SegmentRange(0, 0.0, 0.5), SegmentRange(1, 0.5, 1.0))
    )
    assert encoded(1000, 1000, {0: (0.0, 0.5, 9), 1: (0.5, 1.0, 0)}) == WRITTEN
    assert mark_stream(STREAM) == StreamName("s", "_MARKt")


@given(longs, longs, entries)
def test_everything_that_was_written_comes_back(one, other, segments) -> None:
    low, high = sorted((one, other))
    mark = decode_watermark(encoded(low, high, segments), STREAM)
    assert (mark.low, mark.high) == (low, high)
    # Java's writers say -1 of a segment that they have not written to.
    assert mark.cut == StreamCut(STREAM, {i: max(0, at) for i, (_, _, at) in segments.items()})
    assert mark.ranges == tuple(SegmentRange(i, *bounds) for i, (*bounds, _) in sorted(segments.items()))


def test_later_revisions_are_passed_over() -> None:
    body = WRITTEN[8:]
    assert decode_watermark(frame(body, b"of a later version"), STREAM) == decode_watermark(WRITTEN, STREAM)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        WRITTEN[:-1],
        b"\x00\x01" + WRITTEN[2:],
        b"\x00\x00\x00",
        encoded(2, 1, {0: (0, 1, 0)}),
        encoded(1, 2, {}),
        encoded(1, 2, {-1: (0, 1, 0)}),
        encoded(1, 2, {2**31: (0, 1, 0)}),
    ],
)
def test_anything_else_is_an_error_that_names_the_stream(data) -> None:
    with pytest.raises(DeserializationError, match="invalid watermark of stream s/t"):
        decode_watermark(data, STREAM)


@given(st.binary(max_size=200) | st.tuples(st.integers(0, len(WRITTEN) - 1), st.integers(0, 255)))
def test_no_bytes_raise_anything_else(data) -> None:
    if isinstance(data, tuple):
        place, value = data
        data = WRITTEN[:place] + bytes((value,)) + WRITTEN[place + 1 :]
    try:
        decode_watermark(data, STREAM)
    except DeserializationError:
        pass
