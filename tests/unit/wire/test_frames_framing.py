"""Columns and lists of events into frames."""

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.errors import ColumnTypeError, NullEventError
from pravega_connector.wire import FramedColumn, frame_column, frame_events

MIXED = [b"", b"a", b"\0" * 9, b"bc", b"x" * 300, b""]
ONE_SIZE = [b"abc", b"\0\0\0", b"xyz"]


def framed(events: list[bytes]) -> tuple[bytes, list[int]]:
    """The reference: one frame after the other."""
    frames = [struct.pack(">ii", 0, len(event)) + event for event in events]
    return b"".join(frames), [sum(map(len, frames[: i + 1])) for i in range(len(frames))]


def contents(column: FramedColumn) -> tuple[bytes, list[int]]:
    assert column.ends.dtype == np.int64
    assert column.data.format == "B"
    assert column.data.nbytes == (column.ends[-1] if len(column.ends) else 0)
    return bytes(column.data), column.ends.tolist()


WAYS = {
    "binary": lambda events: frame_column(pa.array(events, pa.binary())),
    "large_binary": lambda events: frame_column(pa.array(events, pa.large_binary())),
    "binary_view": lambda events: frame_column(pa.array(events, pa.binary_view())),
    "dictionary": lambda events: frame_column(pa.array(events, pa.binary()).dictionary_encode()),
    "slice": lambda events: frame_column(pa.array([b"before", *events, b"after"], pa.binary()).slice(1, len(events))),
    "large slice": lambda events: frame_column(pa.array([b"-", *events], pa.large_binary()).slice(1)),
    "slice behind a null": lambda events: frame_column(pa.array([None, *events], pa.binary()).slice(1)),
    "chunked": lambda events: frame_column(pa.chunked_array([events[:2], [], events[2:]], pa.binary())),
    "chunked slices": lambda events: frame_column(pa.chunked_array([[b"-", *events[:1]], events[1:]], pa.binary())[1:]),
    "events": frame_events,
    "many events": lambda events: FramedColumn(
        (many := frame_events(events + [b"more"] * 600)).data[: framed(events)[1][-1] if events else 0],
        many.ends[: len(events)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("events", [MIXED, ONE_SIZE, [b"one"], [b""], [b"", b""], []], ids=lambda e: f"{len(e)}")
def test_every_way_to_frame_gives_the_same(way, events):
    assert contents(way(events)) == framed(events)


@given(st.lists(st.binary(max_size=40), max_size=30), st.sampled_from(sorted(WAYS)))
def test_any_events_can_be_framed(events, way):
    assert contents(WAYS[way](events)) == framed(events)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_strings_are_framed_as_utf8(kind):
    words = ["", "ä", "𝄞 and more", "plain"]
    assert contents(frame_column(pa.array(words, kind))) == framed([word.encode() for word in words])


def test_fixed_sizes_are_framed():
    assert contents(frame_column(pa.array(ONE_SIZE, pa.binary(3)))) == framed(ONE_SIZE)


def test_a_column_without_rows_or_chunks_has_no_frames():
    for column in (pa.nulls(0), pa.chunked_array([], pa.string()), pa.array([], pa.binary())):
        assert contents(frame_column(column)) == (b"", [])


def test_empty_events_need_no_memory():
    buffers = [None, pa.py_buffer(np.zeros(3, np.int32)), pa.py_buffer(b"")]
    assert contents(frame_column(pa.Array.from_buffers(pa.binary(), 2, buffers))) == framed([b"", b""])


@pytest.mark.parametrize(
    ("column", "row"),
    [
        (pa.array([b"a", None, None], pa.binary()), 1),
        (pa.array(["a", "b", None]), 2),
        (pa.array([None, b"a", None]).slice(1), 1),
        (pa.chunked_array([[b"a", b"b"], [b"c", None]]), 3),
        (pa.DictionaryArray.from_arrays([0, 1, 1], pa.array(["a", None])), 1),
        (pa.nulls(2), 0),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_the_first_null_is_named(column, row):
    with pytest.raises(NullEventError, match=rf"row {row} of the column is null"):
        frame_column(column)


@pytest.mark.parametrize("count", [0, 1000])
def test_none_among_events_is_named(count):
    with pytest.raises(NullEventError, match=rf"row {count + 1} "):
        frame_events([b"a"] * count + [b"a", None, b"b"])


@pytest.mark.parametrize("kind", [pa.int64(), pa.bool_(), pa.list_(pa.uint8()), pa.timestamp("us")], ids=str)
def test_other_types_are_refused(kind):
    with pytest.raises(ColumnTypeError, match="cannot contain events"):
        frame_column(pa.nulls(1, kind))


def test_frames_do_not_change_with_the_column():
    data = np.frombuffer(bytearray(b"abcdef"), np.uint8).copy()
    for offsets in ([0, 3, 6], [0, 2, 6]):
        buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(data)]
        framed_column = frame_column(pa.Array.from_buffers(pa.binary(), 2, buffers))
        before = bytes(framed_column.data)
        data += 1
        assert bytes(framed_column.data) == before
