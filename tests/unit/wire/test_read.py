"""Reading a range against a server that answers short, late and in any order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.errors import MalformedStreamCutError, UnexpectedReplyError
from pravega_connector.testing.requests import RequestDecoder
from pravega_connector.wire import (
    AuthTokenCheckFailed,
    Hello,
    NoSuchSegment,
    RangeRead,
    ReadSegment,
    SegmentRead,
    SegmentTruncated,
)

SEGMENT = "s/t/0.#epoch.0"
CONTENT = bytes(i * 31 % 251 for i in range(400))


def asked(wire: bytes) -> list[ReadSegment]:
    return [r for r in RequestDecoder().feed(wire) if isinstance(r, ReadSegment)]


def answer(request: ReadSegment, size: int | None = None, *, end: bool = False) -> SegmentRead:
    size = request.length if size is None else size
    data = memoryview(CONTENT)[request.offset : request.offset + size]
    return SegmentRead(request.segment, request.offset, False, end, data, request.request_id)


@given(
    bounds=st.tuples(st.integers(0, len(CONTENT)), st.integers(0, len(CONTENT))),
    chunk=st.integers(1, 90),
    depth=st.integers(1, 4),
    seed=st.integers(0, 2**32),
)
def test_every_byte_comes_once_and_in_order_whatever_the_server_does(bounds, chunk, depth, seed):
    start, end = sorted(bounds)
    chance = random.Random(seed)
    plan = RangeRead(SEGMENT, start, end, chunk=chunk, depth=depth)
    under_way: list[ReadSegment] = []
    found = b""
    while not plan.done:
        # Sometimes several answers are taken before the next requests go out.
        if not under_way or chance.random() < 0.6:
            under_way += asked(plan.requests("token"))
        assert under_way, "nothing is done, and nothing is asked for"
        assert len(under_way) <= depth
        if chance.random() < 0.05:
            plan.restart()
            under_way.clear()
            continue
        request = under_way.pop(chance.randrange(len(under_way)))
        assert request.length <= chunk
        assert start <= request.offset < request.offset + request.length <= end
        for offset, part in plan.receive(answer(request, chance.randint(0, request.length))):
            assert offset == start + len(found)
            found += part
        assert plan.position == start + len(found)
    assert found == CONTENT[start:end]
    assert plan.requests("token") == b""


def test_two_short_answers_in_a_row_do_not_block_each_other():
    plan = RangeRead(SEGMENT, 0, 20, chunk=10, depth=2)
    first, second = asked(plan.requests(""))
    plan.receive(answer(first, 4))
    plan.receive(answer(second, 4))
    (rest,) = asked(plan.requests(""))
    assert (rest.offset, rest.length) == (4, 6)


def test_requests_are_pipelined_up_to_the_depth_and_never_past_the_end():
    plan = RangeRead(SEGMENT, 5, 38, chunk=10, depth=3)
    requests = asked(plan.requests("secret"))
    assert [(r.offset, r.length) for r in requests] == [(5, 10), (15, 10), (25, 10)]
    assert {(r.segment, r.token) for r in requests} == {(SEGMENT, "secret")}
    plan.receive(answer(requests[0]))
    assert [(r.offset, r.length) for r in asked(plan.requests(""))] == [(35, 3)]


@pytest.mark.parametrize("rest", [1, 7])
def test_what_the_server_sends_beyond_a_request_of_few_bytes_is_left_out(rest):
    plan = RangeRead(SEGMENT, 0, 10 + rest, chunk=10, depth=2)
    first, last = asked(plan.requests(""))
    assert last.length == rest
    more = SegmentRead(SEGMENT, 10, False, False, memoryview(CONTENT)[10:18], last.request_id)
    assert plan.receive(more) == []
    assert b"".join(part for _, part in plan.receive(answer(first))) == CONTENT[: 10 + rest]
    assert plan.done


def test_an_empty_range_asks_for_nothing():
    plan = RangeRead(SEGMENT, 7, 7)
    assert plan.done
    assert plan.requests("") == b""


def test_an_answer_kept_for_later_does_not_hold_the_receive_buffer():
    plan = RangeRead(SEGMENT, 0, 20, chunk=10, depth=2)
    first, second = asked(plan.requests(""))
    buffer = bytearray(CONTENT[10:20])
    early = SegmentRead(SEGMENT, second.offset, False, False, memoryview(buffer), second.request_id)
    assert plan.receive(early) == []
    buffer[:] = bytes(10)
    assert b"".join(part for _, part in plan.receive(answer(first))) == CONTENT[:20]


@pytest.mark.parametrize(
    ("segment", "offset", "size", "request_id"),
    [(SEGMENT, 3, 1, 3), (SEGMENT, 0, 11, 0), (SEGMENT, 30, 0, 30), (SEGMENT, 0, 10, 10), ("s/t/1.#epoch.0", 0, 10, 0)],
)
def test_an_answer_to_another_request_is_an_error(segment, offset, size, request_id):
    plan = RangeRead(SEGMENT, 0, 20, chunk=10, depth=2)
    plan.requests("")
    with pytest.raises(UnexpectedReplyError, match=rf"s/t/0\.#epoch\.0.*offset {offset}"):
        plan.receive(SegmentRead(segment, offset, False, False, memoryview(bytes(size)), request_id))
    assert plan.position == 0


def test_a_refusal_of_another_request_is_an_error():
    plan = RangeRead(SEGMENT, 20, 40, chunk=10, depth=1)
    plan.requests("")
    plan.check(NoSuchSegment(20, SEGMENT, "", -1))
    plan.check(AuthTokenCheckFailed(20, "", 1))
    for reply in (
        NoSuchSegment(20, "s/t/1.#epoch.0", "", -1),
        NoSuchSegment(30, SEGMENT, "", -1),
        SegmentTruncated(20, SEGMENT),
        Hello(),
    ):
        with pytest.raises(UnexpectedReplyError):
            plan.check(reply)


def test_an_answer_given_twice_is_an_error():
    plan = RangeRead(SEGMENT, 0, 20, chunk=10, depth=2)
    request = asked(plan.requests(""))[0]
    plan.receive(answer(request))
    with pytest.raises(UnexpectedReplyError):
        plan.receive(answer(request))


@pytest.mark.parametrize("size", [0, 4])
def test_a_segment_that_ends_before_the_range_is_an_error_and_not_asked_for_ever(size):
    plan = RangeRead(SEGMENT, 0, 20, chunk=10, depth=1)
    (request,) = asked(plan.requests(""))
    with pytest.raises(MalformedStreamCutError, match=rf"ends at offset {size}.*20"):
        plan.receive(answer(request, size, end=True))
