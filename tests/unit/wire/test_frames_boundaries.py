"""Where event frames begin and end: every way to walk them finds what the plain walk finds."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_connector.errors import ProtocolError
from pravega_connector.wire import frame_walk as boundaries
from pravega_connector.wire import walk_frames
from tests.support.each import each_case


def frame(event: bytes) -> bytes:
    return b"\0\0\0\0" + len(event).to_bytes(4, "big") + event


def plain_walk(chunk: bytes, start: int = 0) -> list[int]:
    """The reference: one header after the other."""
    found = [start]
    while found[-1] + 8 <= len(chunk):
        found.append(found[-1] + 8 + int.from_bytes(chunk[found[-1] + 4 : found[-1] + 8], "big"))
    return found


def text(rng: random.Random, low: int, high: int) -> bytes:
    return rng.randbytes(rng.randint(low, high)).replace(b"\0", b"x")


def with_zeros(rng: random.Random, low: int, high: int, share: float) -> bytes:
    event = text(rng, low, high)
    if rng.random() > share:
        return event
    at = rng.randrange(len(event) + 1)
    return (event[:at] + bytes(rng.randint(1, 12)) + event[at:])[: max(high, 1)]


def like_headers(rng: random.Random, low: int, high: int) -> bytes:
    """A payload full of what looks like frames."""
    return b"".join(frame(text(rng, 0, 30)) for _ in range(1 + rng.randint(low, high) // 20))


SHAPES = {
    "one size": lambda rng: text(rng, 100, 100),
    "one size, all zeros": lambda rng: bytes(100),
    "one large size": lambda rng: text(rng, 3000, 3000),
    "empty": lambda rng: b"",
    "short": lambda rng: text(rng, 1, 40),
    "medium": lambda rng: text(rng, 60, 140),
    "medium, few zeros": lambda rng: with_zeros(rng, 60, 140, 0.03),
    "medium, some zeros": lambda rng: with_zeros(rng, 60, 140, 0.3),
    "medium, many zeros": lambda rng: with_zeros(rng, 60, 140, 1.0),
    "nearly all zeros": lambda rng: bytes(rng.randint(0, 200)),
    "some empty": lambda rng: text(rng, 1, 40) if rng.random() < 0.98 else b"",
    "some longer than a byte counts": lambda rng: text(rng, 60, 140) if rng.random() < 0.99 else text(rng, 200, 700),
    "middling": lambda rng: text(rng, 100, 500),
    "middling, some zeros": lambda rng: with_zeros(rng, 100, 500, 0.3),
    "middling, some empty or large": lambda rng: text(rng, *rng.choice([(100, 400)] * 60 + [(0, 0), (66_000, 66_000)])),
    "around 255": lambda rng: text(rng, 250, 260),
    "long": lambda rng: text(rng, 100, 1000),
    "runs of one size": lambda rng: text(rng, *[rng.choice((30, 31))] * 2),
    "zero words of numbers": lambda rng: b"".join(rng.randrange(99).to_bytes(8, "big") for _ in range(10)),
    "frames inside": lambda rng: like_headers(rng, 0, 200),
    "rarely frames inside": lambda rng: text(rng, 20, 200) if rng.random() < 0.98 else like_headers(rng, 0, 150),
    "ends in zeros": lambda rng: text(rng, 20, 90) + bytes(rng.randint(0, 9)),
}


def events_of(shape: str, size: int, seed: int = 1) -> list[bytes]:
    rng = random.Random(seed)
    events: list[bytes] = []
    while size > 0:
        events.append(SHAPES[shape](rng))
        size -= 8 + len(events[-1])
    return events


@pytest.fixture
def small_windows(monkeypatch):
    """The windows of a long chunk, on a short one."""
    monkeypatch.setattr(boundaries, "_WINDOW", 6000)
    monkeypatch.setattr(boundaries, "_MIN_WINDOW", 200)
    monkeypatch.setattr(boundaries, "_MIN_RUN", 4)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("alignment", range(4))
def test_every_shape_is_walked_like_the_plain_way(shape, alignment):
    chunk = b"".join(map(frame, events_of(shape, 100_000)))
    shifted = memoryview(bytearray(alignment) + chunk)[alignment:]
    assert walk_frames(shifted).tolist() == plain_walk(chunk)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_walked_in_windows(shape, small_windows):
    for seed in range(5):
        chunk = b"".join(map(frame, events_of(shape, 30_000, seed)))
        assert walk_frames(chunk).tolist() == plain_walk(chunk)
        for cut in (1, 7, 8, 9, 50):
            assert walk_frames(chunk[:-cut]).tolist() == plain_walk(chunk[:-cut])


@given(st.lists(st.tuples(st.sampled_from(sorted(SHAPES)), st.integers(1, 9000)), max_size=6), st.randoms())
@settings(deadline=None, max_examples=150)
def test_mixtures_of_shapes_are_walked_like_the_plain_way(mixture, rng):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boundaries, "_WINDOW", rng.choice((3000, 1 << 20)))
        patch.setattr(boundaries, "_MIN_WINDOW", 200)
        events = [event for shape, size in mixture for event in events_of(shape, size, rng.randrange(10**9))]
        lead = rng.randbytes(rng.randrange(9))
        chunk = lead + b"".join(map(frame, events))
        chunk = chunk[: rng.randint(len(lead), len(chunk))]
        assert walk_frames(chunk, len(lead)).tolist() == plain_walk(chunk, len(lead))


def counting(monkeypatch, name: str) -> list[int]:
    """How far each call of a way to walk has moved the position."""
    moves: list[int] = []
    way = getattr(boundaries._Walk, name)

    def counted(self, *args):
        before = self.position
        result = way(self, *args)
        moves.append(self.position - before)
        return result

    monkeypatch.setattr(boundaries._Walk, name, counted)
    return moves


@pytest.mark.parametrize(
    ("shape", "way"),
    [
        ("one size", "run_of"),
        ("one size, all zeros", "run_of"),
        ("one large size", "run_of"),
        ("empty", "run_of"),
        ("short", "guess"),
        ("medium", "guess"),
        ("medium, few zeros", "guess"),
        ("ends in zeros", "guess"),
        ("medium, many zeros", "guess"),
        ("nearly all zeros", "step"),
        ("around 255", "guess"),
        ("middling", "guess"),
        ("middling, some zeros", "guess"),
        ("long", "step"),
    ],
)
def test_the_way_is_chosen_by_the_data(shape, way, monkeypatch):
    chunk = b"".join(map(frame, events_of(shape, 200_000)))
    moves = counting(monkeypatch, way)
    walk_frames(chunk)
    assert sum(moves) > 0.7 * len(chunk)


# Boundaries


def test_an_empty_chunk_has_one_boundary():
    assert walk_frames(b"").tolist() == [0]
    assert walk_frames(b"", 0).dtype == np.int64


def test_the_last_boundary_may_lie_beyond_the_chunk():
    chunk = frame(b"abc") + frame(b"x" * 1000)[:8]
    assert walk_frames(chunk).tolist() == [0, 11, 11 + 1008]
    assert walk_frames(chunk[:-1]).tolist() == [0, 11]


def test_a_walk_can_begin_anywhere():
    chunk = frame(b"abc") + frame(b"de")
    assert walk_frames(chunk, 11).tolist() == [11, 21]
    assert walk_frames(chunk, 21).tolist() == [21]
    assert walk_frames(chunk, 99).tolist() == [99]


# Bytes without a frame

BAD_HEADERS = {
    "padding": b"\xff\xff\xff\xff\0\0\0\3",  # WireCommandType.PADDING never reaches a segment; Java's reader refuses it
    "another type": b"\0\0\0\1\0\0\0\3",
    "text": b"abcdefgh",
    "negative length": b"\0\0\0\0\xff\xff\xff\xff",
    "too long": b"\0\0\0\0\x7f\xff\xff\xff",
    "a little too long": (boundaries.MAX_READABLE_EVENT + 1).to_bytes(8, "big"),
}


@pytest.mark.parametrize("size", [300, 40_000])
def test_a_bad_header_is_refused_at_its_offset(size):
    def check(chunk):
        before, bad, after = chunk
        with pytest.raises(ProtocolError) as caught:
            walk_frames(before + bad + after, offset=10_000_000, segment="s/t/0.#epoch.0")
        assert f"at offset {10_000_000 + len(before)} of segment s/t/0.#epoch.0 " in str(caught.value)

    def cases():
        for shape in [*SHAPES, None]:
            before = b"".join(map(frame, events_of(shape, size))) if shape else b""
            after = b"".join(map(frame, events_of(shape or "medium", size, 2)))
            yield from ((f"{shape}, {name}", (before, bad, after)) for name, bad in BAD_HEADERS.items())

    assert len(SHAPES) == 22
    each_case(cases(), check)


@pytest.mark.parametrize("shape", ["one size", "medium", "ends in zeros", "around 255", "middling"])
@pytest.mark.parametrize("byte", range(4))
def test_a_header_of_another_type_is_refused_wherever_it_stands(shape, byte):
    chunk = bytearray(b"".join(map(frame, events_of(shape, 20_000))))
    for start in plain_walk(chunk)[1:-1:7]:
        chunk[start + byte] = 1
        with pytest.raises(ProtocolError, match=f"no event begins at offset {start} "):
            walk_frames(chunk)
        chunk[start + byte] = 0


@pytest.mark.parametrize(("shape", "unseen"), [("medium", 300), ("middling", 70_000)])
def test_false_headers_that_lead_from_one_event_into_another_are_not_followed(shape, unseen):
    before, after = events_of(shape, 20_000), events_of(shape, 80_000, 2)
    for place in range(4):
        # Both events are too long for the guess, which sees but the header in the first one, and where that leads to.
        first = b"x" * (unseen - 200 + place) + frame(b"")[:7] + b"\xfa" + b"x" * 200
        second = b"x" * (250 - 200 - 8) + frame(b"")[:7] + b"\x50" + b"x" * unseen
        chunk = b"".join(map(frame, [*before, first, second, *after]))
        assert walk_frames(chunk).tolist() == plain_walk(chunk)


@pytest.mark.parametrize("shape", ["one size", "medium", "middling", "short", "long", "runs of one size"])
def test_an_event_over_the_limit_is_refused(shape, small_windows):
    events = events_of(shape, 20_000)
    chunk = b"".join(map(frame, events))
    longest = max(map(len, events))
    assert len(walk_frames(chunk, max_event_size=longest)) == len(events) + 1
    first = plain_walk(chunk)[next(i for i, event in enumerate(events) if len(event) == longest)]
    with pytest.raises(ProtocolError, match=f"at offset {first} claims {longest} bytes; the limit is {longest - 1}"):
        walk_frames(chunk, max_event_size=longest - 1)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("padding", "type -1, not 0"),
        ("another type", "type 1, not 0"),
        ("negative length", "claims -1 bytes"),
        ("too long", f"claims {2**31 - 1} bytes; the limit is {boundaries.MAX_READABLE_EVENT}"),
    ],
)
def test_a_refusal_reports_what_was_found(bad, words):
    with pytest.raises(ProtocolError, match=words):
        walk_frames(frame(b"abc") + BAD_HEADERS[bad])


@given(st.binary(max_size=300), st.integers(0, 20))
def test_any_bytes_are_walked_or_refused(data, start):
    try:
        found = walk_frames(data, start, max_event_size=100)
    except ProtocolError:
        return
    assert found.tolist() == plain_walk(data, start)
