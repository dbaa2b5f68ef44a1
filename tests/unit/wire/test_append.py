"""The appending session against a model of the server: every event arrives once and in order, through all faults."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pravega_connector.errors import UnexpectedReplyError
from pravega_connector.testing.requests import Append, RequestDecoder, frame, split_events
from pravega_connector.wire import AppendSession, AppendSetup, AppendState, Block, DataAppended, SetupAppend

NEVER_WROTE = -(2**63)
WRITER = b"w" * 16
WINDOW = 120


def block_of(events: list[bytes], *, large: bool = False) -> Block:
    frames = [frame(event) for event in events]
    return Block(
        memoryview(b"".join(frames)), np.cumsum([len(f) for f in frames]), np.linspace(0, 0.9, len(frames)), large
    )


@dataclass
class Segment:
    """A segment in the server. Numbers are the only writer's."""

    log: list[bytes] = field(default_factory=list)
    last_number: int = NEVER_WROTE
    sealed: bool = False


@dataclass
class Wire:
    """A connection as the server sees it: requests that travel, replies that travel, and the number it expects next."""

    segment: Segment
    decoder: RequestDecoder = field(default_factory=RequestDecoder)
    requests: deque[Append | SetupAppend] = field(default_factory=deque)
    replies: deque[AppendSetup | DataAppended | str] = field(default_factory=deque)
    previous: int | None = None
    closed: bool = False

    def serve_one(self) -> None:
        """Answer a request as a server does, which does not recognise repeated events."""
        request = self.requests.popleft()
        segment = self.segment
        if isinstance(request, SetupAppend):
            self.previous = segment.last_number
            self.replies.append(AppendSetup(request.request_id, request.segment, WRITER, self.previous))
        elif self.previous is None:  # the set-up was undone by a refusal: the connection is reset, replies are lost
            self.replies = deque(["closed"])
            self.closed = True
            self.requests.clear()
        elif segment.sealed:
            self.replies.append("sealed")
            self.previous = None
        elif self.previous != segment.last_number:
            self.replies.append("closed")  # InvalidEventNumber
            self.closed = True
            self.requests.clear()
        else:
            segment.log += split_events(request.data)
            acknowledgement = DataAppended(WRITER, request.last_event_number, self.previous, request.request_id, 0)
            self.previous = segment.last_number = request.last_event_number
            self.replies.append(acknowledgement)


class Appending(RuleBasedStateMachine):
    """One writer, a chain of segments, connections that are cut with requests and replies under way."""

    @initialize()
    def begin(self) -> None:
        self.written: list[bytes] = []
        self.segments = [Segment()]
        self.session = self._session()
        self.wire: Wire | None = None
        self.zombies: list[Wire] = []  # cut for the client, but the server still has requests of them

    def _session(self) -> AppendSession:
        return AppendSession(f"s/t/{len(self.segments)}.#epoch.0", WRITER, window=WINDOW)

    # ---------------------------------------------------------------- the program

    @rule(sizes=st.lists(st.integers(0, 30), min_size=1, max_size=4), large=st.booleans())
    def write(self, sizes: list[int], large: bool) -> None:
        events = [b"%d:" % (len(self.written) + i) + bytes(size) for i, size in enumerate(sizes)]
        events = events[:1] if large else events
        self.written += events
        self.session.enqueue(block_of(events, large=large))

    # ---------------------------------------------------------------- the client's loop

    @precondition(lambda self: self.session.state in (AppendState.IDLE, AppendState.SEALED))
    @rule()
    def set_up(self) -> None:
        if self.wire is None:
            self.wire = Wire(self.segments[-1])
        self._send(self.session.setup(1, ""))

    @precondition(lambda self: self.wire is not None and self.session.state is AppendState.READY)
    @rule()
    def send(self) -> None:
        assert self.wire is not None
        for buffer in self.session.to_send(2):
            self._send(bytes(buffer))
        in_flight = [r for r in self.wire.requests if isinstance(r, Append)]
        assert len(in_flight) <= 1 or sum(len(r.data) for r in in_flight) <= WINDOW

    def _send(self, data: bytes) -> None:
        assert self.wire is not None
        self.wire.requests += self.wire.decoder.feed(data)

    @precondition(lambda self: self.wire is not None and self.wire.replies)
    @rule()
    def receive(self) -> None:
        assert self.wire is not None
        reply = self.wire.replies.popleft()
        if reply == "closed":
            self._cut()
        elif reply == "sealed":
            self.session.sealed()
        elif isinstance(reply, AppendSetup | DataAppended):
            self.session.receive(reply)
            if self.session.state is AppendState.DONE:
                self._go_on_with_successor()

    @precondition(lambda self: self.session.due_large_block() is not None)
    @rule()
    def merge_large_event(self) -> None:
        """A large event goes over its own connection and is durable in one step."""
        block = self.session.due_large_block()
        assert block is not None
        if self.segments[-1].sealed:
            self.session.sealed()
            return
        self.segments[-1].log += split_events(bytes(block.data))
        assert self.session.large_block_done()[0] is block

    def _go_on_with_successor(self) -> None:
        left = self.session.take_unacknowledged()
        assert not self.session.unacknowledged
        self.segments.append(Segment())
        self.session, self.wire = self._session(), None
        for block in left:
            for _, part in block.split(np.zeros(len(block.ends), np.int64)):
                self.session.enqueue(part)

    # ---------------------------------------------------------------- the server and the network

    @precondition(lambda self: self.wire is not None and self.wire.requests)
    @rule(count=st.integers(1, 4))
    def serve(self, count: int) -> None:
        assert self.wire is not None
        for _ in range(min(count, len(self.wire.requests))):
            if self.wire.requests:
                self.wire.serve_one()

    @rule()
    def seal(self) -> None:
        self.segments[-1].sealed = True

    @precondition(lambda self: self.wire is not None)
    @rule()
    def cut(self) -> None:
        self._cut()

    def _cut(self) -> None:
        assert self.wire is not None
        self.zombies.append(self.wire)
        self.wire = None
        self.session.disconnected()

    @precondition(lambda self: any(zombie.requests for zombie in self.zombies))
    @rule(data=st.data())
    def serve_what_a_cut_connection_left(self, data: st.DataObject) -> None:
        zombie = data.draw(st.sampled_from([z for z in self.zombies if z.requests]))
        zombie.serve_one()

    # ---------------------------------------------------------------- what must hold

    @invariant()
    def nothing_is_lost_repeated_or_swapped(self) -> None:
        durable = [event for segment in self.segments for event in segment.log]
        assert durable == self.written[: len(durable)]

    def teardown(self) -> None:
        for _ in range(10 * len(self.written) + 20):
            if self.session.state in (AppendState.IDLE, AppendState.SEALED):
                self.set_up()
            if self.session.state is AppendState.READY and self.wire is not None:
                self.send()
            while self.wire is not None and self.wire.requests:
                self.wire.serve_one()
            while self.wire is not None and self.wire.replies:
                self.receive()
            if self.session.due_large_block() is not None:
                self.merge_large_event()
            if not self.session.unacknowledged:
                break
        assert not self.session.unacknowledged
        assert [event for segment in self.segments for event in segment.log] == self.written


TestAppending = Appending.TestCase
TestAppending.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def ready(*blocks: Block, window: int = 1 << 20) -> AppendSession:
    session = AppendSession("s/t/0.#epoch.0", WRITER, window=window)
    for block in blocks:
        session.enqueue(block)
    session.setup(1, "")
    session.receive(AppendSetup(1, session.segment, WRITER, NEVER_WROTE))
    return session


def sent(session: AppendSession) -> list[Append]:
    requests = RequestDecoder().feed(b"".join(bytes(buffer) for buffer in session.to_send(5)))
    return [request for request in requests if isinstance(request, Append)]


def numbers(blocks: list[Block]) -> list[int]:
    """Numbers of the last events of blocks."""
    return [block.last_number for block in blocks]


def test_a_set_up_binds_the_writer_to_its_segment():
    session = AppendSession("s/t/0.#epoch.0", WRITER, window=100)
    assert RequestDecoder().feed(session.setup(7, "token")) == [SetupAppend(7, WRITER, "s/t/0.#epoch.0", "token")]


def test_nothing_is_sent_before_the_set_up_is_answered():
    session = AppendSession("s/t/0.#epoch.0", WRITER, window=100)
    session.enqueue(block_of([b"a"]))
    assert sent(session) == []
    session.setup(1, "")
    assert sent(session) == []


def test_numbers_count_the_events_of_the_segment():
    session = ready(block_of([b"a", b"b"]), block_of([b""]))
    assert [(r.event_count, r.last_event_number) for r in sent(session)] == [(2, 2), (1, 3)]
    session.enqueue(block_of([b"c", b"d", b"e"]))
    assert [r.last_event_number for r in sent(session)] == [6]


def test_an_acknowledgement_covers_all_blocks_before_it_and_makes_room():
    session = ready(*(block_of([bytes(32)]) for _ in range(4)), window=80)
    assert len(sent(session)) == 2
    assert numbers(session.receive(DataAppended(WRITER, 2, 0, 5, 80))) == [1, 2]
    assert len(sent(session)) == 2
    assert numbers(session.receive(DataAppended(WRITER, 4, 2, 5, 160))) == [3, 4]
    assert not session.unacknowledged


def test_one_block_over_the_window_is_sent_alone():
    session = ready(block_of([bytes(200)]), block_of([b"x"]), window=100)
    assert [len(r.data) for r in sent(session)] == [208]
    session.receive(DataAppended(WRITER, 1, 0, 5, 208))
    assert [len(r.data) for r in sent(session)] == [9]


def test_after_a_lost_connection_only_what_is_not_durable_is_sent_again():
    session = ready(block_of([b"a"]), block_of([b"b"]), block_of([b"c"]))
    assert len(sent(session)) == 3
    session.disconnected()
    session.setup(2, "")
    assert numbers(session.receive(AppendSetup(2, session.segment, WRITER, 2))) == [1, 2]
    assert [split_events(r.data) for r in sent(session)] == [[b"c"]]


def test_the_first_block_after_a_lost_connection_goes_alone_until_it_is_acknowledged():
    """The server may have dropped the connection because of a seal; one refusal gets through, several do not."""
    session = ready(*(block_of([b"%d" % i]) for i in range(4)))
    assert len(sent(session)) == 4
    session.disconnected()
    session.setup(2, "")
    session.receive(AppendSetup(2, session.segment, WRITER, 1))
    assert [split_events(r.data) for r in sent(session)] == [[b"1"]]
    assert sent(session) == []
    session.receive(DataAppended(WRITER, 2, 1, 5, 18))
    assert [split_events(r.data) for r in sent(session)] == [[b"2"], [b"3"]]


def test_a_large_block_waits_for_those_before_it_and_holds_back_those_after_it():
    session = ready(block_of([b"a"]), block_of([b"large"], large=True), block_of([b"b"]))
    assert [split_events(r.data) for r in sent(session)] == [[b"a"]]
    assert session.due_large_block() is None
    session.receive(DataAppended(WRITER, 1, 0, 5, 9))
    assert session.due_large_block() is not None
    assert sent(session) == []
    session.large_block_done()
    assert [r.last_event_number for r in sent(session)] == [3]


def test_an_answer_out_of_place_is_an_error_that_names_the_segment():
    session = ready(block_of([b"a"]))
    with pytest.raises(UnexpectedReplyError, match=r"AppendSetup.*s/t/0\.#epoch\.0.*READY"):
        session.receive(AppendSetup(1, session.segment, WRITER, NEVER_WROTE))


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(DataAppended(WRITER, 4, 0, 5, 0), id="events that were not sent"),
        pytest.param(DataAppended(WRITER, 1, 0, 5, 0), id="part of a block"),
        pytest.param(DataAppended(WRITER, 2, 0, 6, 0), id="another request"),
        pytest.param(DataAppended(WRITER, 0, 0, 5, 0), id="nothing"),
    ],
)
def test_an_acknowledgement_of_what_was_not_sent_is_an_error_and_makes_nothing_durable(reply):
    session = ready(block_of([b"a", b"b"]), block_of([bytes(40)] * 2), window=50)
    assert [r.last_event_number for r in sent(session)] == [2]
    with pytest.raises(UnexpectedReplyError, match=rf"DataAppended for event {reply.event_number}"):
        session.receive(reply)
    assert numbers(session.take_unacknowledged()) == [2, 4]


@pytest.mark.parametrize(
    ("request_id", "segment", "number"),
    [(2, "s/t/0.#epoch.0", 4), (2, "s/t/0.#epoch.0", 1), (1, "s/t/0.#epoch.0", 2), (2, "s/t/1.#epoch.0", 2)],
)
def test_a_set_up_that_acknowledges_what_was_not_sent_is_an_error(request_id, segment, number):
    session = ready(block_of([b"a", b"b"]), block_of([bytes(40)] * 2), window=50)
    assert [r.last_event_number for r in sent(session)] == [2]
    session.disconnected()
    session.setup(2, "")
    with pytest.raises(UnexpectedReplyError, match=f"AppendSetup for event {number}"):
        session.receive(AppendSetup(request_id, segment, WRITER, number))
    assert numbers(session.take_unacknowledged()) == [2, 4]


def test_an_acknowledgement_that_comes_twice_is_an_error():
    session = ready(block_of([b"a"]), block_of([b"b"]))
    assert len(sent(session)) == 2
    session.receive(DataAppended(WRITER, 1, 0, 5, 9))
    with pytest.raises(UnexpectedReplyError):
        session.receive(DataAppended(WRITER, 1, 0, 5, 9))
    assert numbers(session.take_unacknowledged()) == [2]


def test_a_refusal_that_comes_after_the_end_is_known_says_nothing_new():
    """A store may answer the set-up before it refuses the last of the appends in flight."""
    session = ready(*(block_of([b"%d" % i]) for i in range(3)))
    assert len(sent(session)) == 3
    session.sealed()
    session.setup(2, "")
    session.receive(AppendSetup(2, session.segment, WRITER, 1))
    session.sealed()
    assert session.state is AppendState.DONE
    assert [split_events(bytes(block.data)) for block in session.take_unacknowledged()] == [[b"1"], [b"2"]]


def test_a_block_is_split_by_target_with_the_order_kept():
    block = block_of([b"a", b"", b"ccc", b"dd"])
    block.mark = 5
    parts = dict(block.split(np.array([7, 9, 7, 9])))
    assert {target: split_events(bytes(part.data)) for target, part in parts.items()} == {
        7: [b"a", b"ccc"],
        9: [b"", b"dd"],
    }
    assert parts[7].ends.tolist() == [9, 20]
    assert [part.mark for part in parts.values()] == [5, 5]
    assert parts[9].positions.tolist() == block.positions[[1, 3]].tolist()
