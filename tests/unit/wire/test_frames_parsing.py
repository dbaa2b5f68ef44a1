"""The bytes of a segment, fed piece by piece, into columns of events."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_connector.errors import ProtocolError
from pravega_connector.wire import MAX_READABLE_EVENT, FrameParser, ReceiveBuffer, frame_events, walk_frames
from pravega_connector.wire import frame_parser as parsing

ONE_SIZE = [bytes([n]) * 100 for n in range(1, 250)] * 4
SHORT = [b"x" * (n * 7 % 80) + b"." for n in range(2000)]
MIXED = [b"x" * (n * 37 % 400) for n in range(500)]
LARGE = [b"a", bytes(300_000), b"", b"b" * 70_000, b"c"]


def parse(parser: FrameParser, data: bytes, sizes: list[int], room: int | None = None) -> tuple[list[bytes], list[int]]:
    """Feed the data in pieces of these sizes, again and again, from one buffer; the events and their offsets.

    With ``room`` it is a buffer of received messages, which may be written to, with this many bytes before each piece.
    """
    memory = bytearray(max(sizes)) if room is None else ReceiveBuffer(room + max(sizes))
    buffer = memoryview(memory)[room or 0 :]
    columns, position, turn = [], 0, 0
    while position < len(data):
        piece = buffer[: min(sizes[turn % len(sizes)], len(data) - position)]
        piece[:] = data[position : position + len(piece)]
        columns.append(parser.feed(piece))
        position, turn = position + len(piece), turn + 1
    memory[:] = b"\xaa" * len(memory)  # columns must not look into the buffer, which is used for something else now
    found = [column for column in columns if column is not None]
    for column in found:
        column.payload.validate(full=True)
        assert column.payload.type == pa.binary()
        assert column.payload.null_count == 0
        assert len(column.payload) == len(column.offsets) > 0
        assert column.offsets.dtype == np.int64
    payloads = [event for column in found for event in column.payload.to_pylist()]
    return payloads, [offset for column in found for offset in column.offsets.tolist()]


def starts(events: list[bytes], first: int) -> list[int]:
    found = [first]
    for event in events:
        found.append(found[-1] + 8 + len(event))
    return found[:-1]


@pytest.mark.parametrize("events", [ONE_SIZE, SHORT, MIXED, LARGE, [b""] * 3000, [b""], []], ids=lambda e: f"{len(e)}")
@pytest.mark.parametrize("sizes", [[1 << 20], [1 << 16], [5003], [700, 13, 8, 7, 9, 100], [1, 2, 3]], ids=str)
@pytest.mark.parametrize("room", [None, 0, 50, ReceiveBuffer.ROOM])
def test_any_pieces_give_the_events_and_their_offsets(events, sizes, room):
    data = bytes(frame_events(events).data)[: min(200_000, 3000 * max(sizes))]
    parser = FrameParser(1000)
    payloads, offsets = parse(parser, data, sizes, room)
    whole = len(payloads)
    assert payloads == events[:whole]
    assert offsets == starts(events, 1000)[:whole]
    consumed = sum(8 + len(event) for event in payloads)
    assert parser.offset == 1000 + consumed
    assert parser.pending == len(data) - consumed
    assert whole == len(events) or parser.pending < 8 + len(events[whole])


@given(
    st.lists(st.one_of(st.binary(max_size=20), st.binary(max_size=400), st.integers(0, 300).map(bytes)), max_size=80),
    st.lists(st.integers(1, 600), min_size=1, max_size=8),
    st.integers(0, 2**62),
    st.none() | st.integers(0, 500),
)
@settings(deadline=None)
def test_any_events_survive_any_cutting(events, sizes, offset, room):
    parser = FrameParser(offset)
    assert parse(parser, bytes(frame_events(events).data), sizes, room) == (events, starts(events, offset))
    assert parser.pending == 0
    parser.finish()


@given(st.binary(max_size=200), st.lists(st.integers(1, 50), min_size=1, max_size=5))
def test_any_bytes_are_events_or_a_protocol_error(data, sizes):
    parser = FrameParser(max_event_size=50)
    try:
        payloads, _ = parse(parser, data, sizes)
    except ProtocolError:
        return
    assert data.startswith(bytes(frame_events(payloads).data))
    assert parser.pending <= 50 + 7


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_column_does_not_look_into_the_piece(kind):
    data = bytearray(frame_events([b"abc", b"defg"]).data)
    parser = FrameParser()
    column = parser.feed(kind(data))
    data[:] = bytes(len(data))
    assert column.payload.to_pylist() == [b"abc", b"defg"]
    data += b"a bytearray may grow again when nobody looks into it"


def test_a_received_piece_is_not_copied_behind_the_start_of_its_event():
    data = frame_events([bytes([n]) * 1000 for n in range(100)]).data
    parser, sizes = FrameParser(), []

    class Carry(bytearray):
        def __iadd__(self, more):
            sizes.append(len(more))
            return super().__iadd__(more)

    parser._carry = Carry()
    memory = memoryview(ReceiveBuffer(ReceiveBuffer.ROOM + 50_000))
    piece = memory[ReceiveBuffer.ROOM :]
    events = []
    for start in range(0, len(data), 50_000):
        rest = data[start : start + 50_000]
        piece[: len(rest)] = rest
        events += parser.feed(piece[: len(rest)]).payload.to_pylist()
    assert events == [bytes([n]) * 1000 for n in range(100)]
    assert max(sizes) < 1008, "only what is left of an event is kept"


def test_a_piece_without_a_whole_event_gives_nothing():
    parser = FrameParser(5)
    assert parser.feed(b"") is None
    data = bytes(frame_events([b"abc"]).data)
    assert [parser.feed(data[i : i + 1]) for i in range(10)] == [None] * 10
    assert parser.pending == 10
    assert parser.offset == 5
    assert parser.feed(data[10:]).offsets.tolist() == [5]


def test_an_incomplete_event_is_not_looked_at_again(monkeypatch):
    walks = []
    monkeypatch.setattr(parsing, "walk_frames", lambda data, **kw: walks.append(len(data)) or walk_frames(data, **kw))
    data = frame_events([b"a", bytes(5000)]).data
    parser = FrameParser()
    for start in range(0, len(data), 100):
        parser.feed(data[start : start + 100])
    assert walks == [100, len(data) - 9]


# Limits and errors


def test_bytes_without_an_event_are_refused_with_their_place():
    parser = FrameParser(1000, segment="s/t/0.#epoch.0")
    assert parser.feed(frame_events([b"abc"]).data) is not None
    assert parser.feed(b"no") is None
    with pytest.raises(ProtocolError, match=r"offset 1011 of segment s/t/0\.#epoch\.0 "):
        parser.feed(b" event")


def test_padding_is_refused_as_the_java_reader_does():
    # EventSegmentReaderImpl takes nothing but events; the server strips padding from appends (AppendDecoder).
    with pytest.raises(ProtocolError, match="type -1, not 0"):
        FrameParser().feed(b"\xff\xff\xff\xff\0\0\0\0")


def test_an_event_over_the_limit_is_refused_by_its_header():
    parser = FrameParser(7, max_event_size=99)
    assert len(parser.feed(frame_events([b"x" * 99]).data).payload) == 1
    with pytest.raises(ProtocolError, match="offset 114 claims 100 bytes; the limit is 99"):
        parser.feed(frame_events([b"x" * 100]).data[:8])


def test_events_as_large_as_java_writes_are_taken():
    assert MAX_READABLE_EVENT > 8 * 1024 * 1024  # Serializer.MAX_EVENT_SIZE, which large events exceed
    event = bytes(20 * 1024 * 1024)
    parser = FrameParser()
    assert parse(parser, bytes(frame_events([b"a", event, b"b"]).data), [1 << 20]) == (
        [b"a", event, b"b"],
        [0, 9, 17 + len(event)],
    )


def test_an_unfinished_event_is_refused_at_the_end():
    parser = FrameParser(3, segment="s/t/0.#epoch.0")
    parser.finish()
    parser.feed(b"\0\0")
    with pytest.raises(ProtocolError, match=r"inside the event at offset 3 of segment s/t/0\.#epoch\.0"):
        parser.finish()


def test_more_than_a_column_holds_is_refused(monkeypatch):
    monkeypatch.setattr(parsing, "MAX_CHUNK", 1000)
    with pytest.raises(ValueError, match="too large for one column"):
        FrameParser().feed(frame_events(MIXED).data)
