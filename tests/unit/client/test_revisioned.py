"""Conditional writes: the result of a write is true, also if connections and answers are lost."""

import itertools
import threading

import mmh3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.client import Revision
from pravega_connector.core.connection import Connection
from pravega_connector.errors import (
    ConfigError,
    ConnectionLostError,
    DataLossError,
    EventTooLargeError,
    OutcomeUnknownError,
    StreamNotFoundError,
    StreamSealedError,
)
from pravega_connector.single_segment import conditional_append
from pravega_connector.single_segment.revisioned import _MARK
from pravega_connector.testing.requests import Append, frame
from pravega_connector.wire import (
    AuthTokenCheckFailed,
    ConditionalAppend,
    ConditionalCheckFailed,
    GetSegmentAttribute,
    GetStreamSegmentInfo,
    InvalidEventNumber,
    SetupAppend,
    StreamName,
    TruncateSegment,
    UpdateSegmentAttribute,
    segment_id,
)
from pravega_serde import serializer_for
from pravega_serde.errors import DeserializationError
from tests.support.fake_stream import FakeStream


@pytest.fixture
def log(client, stream):
    with client.revisioned(stream.name) as log:
        yield log


def entries(stream):
    return stream.store.segments[stream.segment(0)].events


def take_effect_without_a_word(session, request):
    """The append takes effect; the connection ends before its answer."""
    session.reply = lambda message: None
    session.store.serve(session, request)
    session.drop()


def lose(session, request):
    """The append is lost with the connection."""
    session.drop()


def keep_silent(session, request):
    """The append is lost without a report."""
    session.deaf = True


# ---------------------------------------------------------------- writing and reading


def test_a_write_at_the_latest_revision_is_taken_and_at_any_other_refused(log, stream):
    start = log.oldest_revision()
    first = log.write_conditionally(start, b"one")
    assert first == Revision(stream.name, 0, 11) == log.latest_revision()
    assert log.write_conditionally(start, b"two") is None
    second = log.write_conditionally(first, b"")
    log.write_unconditionally(b"three")
    assert list(log.read_from(start)) == [(first, b"one"), (second, b""), (log.latest_revision(), b"three")]
    assert list(log.read_range(first, second)) == [(second, b"")]
    assert log.entry_after(first) == (second, b"")
    assert log.entry_after(log.latest_revision()) is None


def test_a_stream_of_several_segments_has_no_revisions(store):
    stream = FakeStream(store, segments=2)
    with stream.client() as client, pytest.raises(ConfigError, match="has 2 segments"):
        client.revisioned(stream.name)


def test_a_sealed_stream_takes_nothing(client, stream, log):
    start = log.latest_revision()
    stream.seal_all()
    with pytest.raises(StreamSealedError):
        log.write_conditionally(start, b"x")
    with pytest.raises(StreamSealedError):
        log.write_unconditionally(b"x")
    with pytest.raises(StreamSealedError):
        client.revisioned(stream.name)


def test_a_stream_that_was_deleted_is_reported(log, stream, store):
    start = log.latest_revision()
    store.segments.clear()
    stream.exists = False
    for attempt in (
        log.latest_revision,
        log.mark,
        lambda: log.read_from(start),
        lambda: log.write_conditionally(start, b"x"),
    ):
        with pytest.raises(StreamNotFoundError):
            attempt()


def test_an_entry_over_the_limit_is_not_taken(log, stream):
    with pytest.raises(EventTooLargeError):
        log.write_unconditionally(bytes((8 << 20) + 1))
    assert entries(stream) == []


def test_what_cannot_be_decoded_is_reported_with_its_place(client, stream, store):
    store.append(stream.segment(0), frame(b"{}") + frame(b"{"))
    log = client.revisioned(stream.name, serializer_for("json"))
    values = log.read_from(log.oldest_revision())
    assert next(values)[1] == {}
    with pytest.raises(DeserializationError, match="stream scope/stream, segment 0, offset 10"):
        next(values)


def test_entries_that_were_truncated_are_a_loss_at_once(log, stream):
    start = log.oldest_revision()
    first = log.write_conditionally(start, b"one")
    log.truncate_to_revision(first)
    log.truncate_to_revision(start)  # dropped already
    assert log.oldest_revision() == first
    with pytest.raises(DataLossError, match="before offset 11 were truncated"):
        log.read_from(start)
    assert list(log.read_from(first)) == []


def test_a_revision_from_elsewhere_is_refused(log, stream):
    far = Revision(stream.name, 0, 1000)
    for attempt in (lambda: log.read_from(far), lambda: log.truncate_to_revision(far)):
        with pytest.raises(ConfigError, match="ends at"):
            attempt()
    with pytest.raises(ConfigError, match="cannot append at offset 1000 of segment"):
        log.write_conditionally(far, b"x")
    for other in (Revision(StreamName("scope", "other"), 0, 0), Revision(stream.name, 1, 0)):
        with pytest.raises(ConfigError, match="is not of stream"):
            log.write_conditionally(other, b"x")
        with pytest.raises(ConfigError, match="is not of stream"):
            log.compare_and_set_mark(None, other)


# ---------------------------------------------------------------- lost connections


def write_ten(log):
    """Five of each kind; the revisions of the conditional ones."""
    revision = log.latest_revision()
    for i in range(0, 10, 2):
        revision = log.write_conditionally(revision, b"%d" % i)
        log.write_unconditionally(b"%d" % (i + 1))
        revision = Revision(revision.stream, revision.segment_id, revision.offset + 9)


@pytest.mark.parametrize("kind", ["cut_requests_at", "cut_replies_at"])
def test_a_connection_cut_at_any_byte_loses_and_repeats_nothing(store, kind):
    # Questions for the tail, set-ups and ten appends: some 900 bytes there and 700 back.
    for at in range(1, 640, 41):
        stream, drops = FakeStream(store), store.drops
        with stream.client() as client, client.revisioned(stream.name) as log:
            setattr(store, kind, at)
            write_ten(log)
            log.close()
        assert store.drops == drops + 1, f"no cut at byte {at}"
        assert entries(stream) == [b"%d" % i for i in range(10)]
        store.drop_all()


def test_an_answer_that_was_lost_does_not_make_it_a_refusal(log, stream, store):
    start = log.oldest_revision()
    store.on(ConditionalAppend, take_effect_without_a_word)
    assert log.write_conditionally(start, b"mine") == log.latest_revision()
    assert entries(stream) == [b"mine"]


def test_of_two_who_race_while_a_connection_is_lost_the_right_one_wins(log, stream, store):
    def lose_and_let_another_win(session, request):
        store.append(stream.segment(0), frame(b"other"))
        session.drop()

    start = log.oldest_revision()
    store.on(ConditionalAppend, lose_and_let_another_win)
    assert log.write_conditionally(start, b"mine") is None
    assert log.entry_after(start)[1] == b"other"
    assert entries(stream) == [b"other"]


@pytest.mark.parametrize("conditional", [True, False])
def test_an_append_that_lands_after_the_new_set_up_is_not_repeated(log, stream, store, conditional):
    """The old connection's append is still in flight when the new one asks what has arrived."""
    late = []

    def delay(session, request):
        late.append(request)
        session.drop()

    def set_up_then_land(session, request):
        store.serve(session, request)
        segment, append = store.segments[stream.segment(0)], late.pop()
        number = append.event_number if conditional else append.last_event_number
        segment.data += frame(b"mine")
        segment.attributes[append.writer_id] = number

    start = log.oldest_revision()
    log.write_unconditionally(b"first")
    start = log.latest_revision()
    store.on(ConditionalAppend if conditional else Append, delay)
    store.on(SetupAppend, set_up_then_land)
    if conditional:
        assert log.write_conditionally(start, b"mine") == log.latest_revision()
    else:
        log.write_unconditionally(b"mine")
    assert store.unused_rules == 0
    assert entries(stream) == [b"first", b"mine"]


def refuse(session, request):
    session.reply(ConditionalCheckFailed(request.writer_id, request.event_number, request.request_id))


def test_a_refusal_is_reported_once_the_entry_before_can_be_read(log, stream, store):
    """A store refuses for an append that it has not made durable yet."""

    def grow_later(session, request):
        store.serve(session, request)
        store.append(stream.segment(0), frame(b"other"))

    start = log.oldest_revision()
    store.on(ConditionalAppend, refuse)
    store.on(GetStreamSegmentInfo, grow_later)
    assert log.write_conditionally(start, b"mine") is None
    assert log.entry_after(start)[1] == b"other"


def test_a_refusal_for_an_append_that_was_forgotten_is_none(log, stream, store, monkeypatch):
    """The store has failed before it made the other append durable."""
    monkeypatch.setattr(conditional_append, "_SETTLING", 0.05)
    start = log.oldest_revision()
    store.on(ConditionalAppend, refuse)
    assert log.write_conditionally(start, b"mine") is not None
    assert entries(stream) == [b"mine"]


def test_a_refusal_in_doubt_for_an_append_that_was_forgotten_is_none(log, stream, store, monkeypatch):
    monkeypatch.setattr(conditional_append, "_SETTLING", 0.05)
    start = log.oldest_revision()
    store.on(ConditionalAppend, lose)
    store.on(ConditionalAppend, refuse)
    assert log.write_conditionally(start, b"mine") is not None
    assert entries(stream) == [b"mine"]


def test_a_number_that_is_refused_is_settled_by_the_next_set_up(log, stream, store):
    def refuse(session, request):
        store.serve(session, request)
        session.reply(InvalidEventNumber(request.writer_id, request.request_id, "stack", request.event_number))
        session.drop()

    start = log.oldest_revision()
    store.on(ConditionalAppend, lose)
    store.on(ConditionalAppend, refuse)
    assert log.write_conditionally(start, b"mine") is not None
    assert entries(stream) == [b"mine"]


def test_an_append_in_doubt_that_a_sealed_segment_has_was_taken(log, stream, store):
    def take_effect_and_seal(session, request):
        take_effect_without_a_word(session, request)
        store.seal(stream.segment(0))

    store.on(ConditionalAppend, take_effect_and_seal)
    assert log.write_conditionally(log.oldest_revision(), b"mine") is not None


# ---------------------------------------------------------------- outcomes that stay unknown


@pytest.fixture
def hasty(stream):
    with stream.client(timeout=1.0) as client:
        yield client


@pytest.mark.parametrize("landed", [True, False])
def test_the_same_call_finds_out_what_became_of_it(hasty, stream, store, landed):
    def silence(session, request):
        if landed:
            session.reply = lambda message: None
            store.serve(session, request)
        session.deaf = True

    with hasty.revisioned(stream.name) as log:
        start = log.oldest_revision()
        store.on(ConditionalAppend, silence)
        with pytest.raises(OutcomeUnknownError, match="write the same bytes at the same revision again"):
            log.write_conditionally(start, b"mine")
        assert entries(stream) == [b"mine"] * landed
        assert log.write_conditionally(start, b"mine") == log.latest_revision()
        assert entries(stream) == [b"mine"]


def test_the_same_call_finds_out_that_somebody_else_was_first(hasty, stream, store):
    with hasty.revisioned(stream.name) as log:
        start = log.oldest_revision()
        store.on(ConditionalAppend, keep_silent)
        with pytest.raises(OutcomeUnknownError):
            log.write_conditionally(start, b"mine")
        store.append(stream.segment(0), frame(b"mine"))  # the same bytes, but another's
        assert log.write_conditionally(start, b"mine") is None


def test_another_value_after_an_unknown_outcome_is_another_write(hasty, stream, store):
    with hasty.revisioned(stream.name) as log:
        start = log.oldest_revision()
        store.on(ConditionalAppend, take_effect_without_a_word)
        store.on(SetupAppend, store.serve)
        store.on(SetupAppend, keep_silent)
        with pytest.raises(OutcomeUnknownError):
            log.write_conditionally(start, b"zero")
        assert store.unused_rules == 0
        assert log.write_conditionally(start, b"other") is None
        log.write_unconditionally(b"last")
    assert entries(stream) == [b"zero", b"last"]


@pytest.mark.parametrize("landed", [True, False])
def test_another_process_finds_out_by_bytes_that_are_unique(hasty, client, stream, store, landed):
    def silence(session, request):
        if landed:
            session.reply = lambda message: None
            store.serve(session, request)
        session.deaf = True

    with hasty.revisioned(stream.name) as log, client.revisioned(stream.name) as other:
        start = log.oldest_revision()
        store.on(ConditionalAppend, silence)
        with pytest.raises(OutcomeUnknownError):
            log.write_once(start, b"nonce 1")
        assert other.write_once(start, b"nonce 1") == other.latest_revision()
        assert other.write_once(start, b"nonce 2") is None
        assert log.write_once(start, b"nonce 1") == log.latest_revision()
    assert entries(stream) == [b"nonce 1"]


def test_unsent_data_has_no_unknown_outcome(stream):
    with stream.client(timeout=1.0) as client, client.revisioned(stream.name) as log:
        start = log.oldest_revision()
        stream.store.close()
        with pytest.raises(ConnectionLostError):
            log.write_conditionally(start, b"x")


def test_an_unconditional_write_may_stay_unknown_too(hasty, stream, store):
    with hasty.revisioned(stream.name) as log:
        store.on(Append, keep_silent)
        with pytest.raises(OutcomeUnknownError, match="the event may still arrive"):
            log.write_unconditionally(b"x")


def test_an_interrupt_leaves_no_answer_for_the_next_write(log, stream, monkeypatch):
    start = log.oldest_revision()
    first = log.write_conditionally(start, b"one")
    receive = Connection.receive

    def interrupted(self, deadline):
        monkeypatch.setattr(Connection, "receive", receive)
        raise KeyboardInterrupt

    monkeypatch.setattr(Connection, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.write_conditionally(first, b"two")
    assert log.write_conditionally(first, b"two") == log.latest_revision()
    assert entries(stream) == [b"one", b"two"]


def test_of_two_writers_exactly_one_wins_each_round(client, stream):
    rounds, barrier, wins = 200, threading.Barrier(2), [[], []]

    def race(me):
        with client.revisioned(stream.name) as log:
            for number in range(rounds):
                revision = log.latest_revision()
                barrier.wait()
                wins[me].append(log.write_conditionally(revision, b"%d %d" % (me, number)) is not None)
                barrier.wait()

    threads = [threading.Thread(target=race, args=(me,)) for me in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one != other for one, other in zip(*wins, strict=True))
    assert len(entries(stream)) == rounds


# ---------------------------------------------------------------- the mark


def test_a_mark_is_replaced_only_where_it_is_the_expected_one(log):
    start = log.oldest_revision()
    first = log.write_conditionally(start, b"one")
    assert log.mark() is None
    assert not log.compare_and_set_mark(first, start)
    assert log.compare_and_set_mark(None, first)
    assert log.mark() == first
    assert not log.compare_and_set_mark(None, start)
    assert log.compare_and_set_mark(first, None)
    assert log.mark() is None


def test_a_mark_whose_answer_was_lost_is_found_in_place(log, store):
    start = log.oldest_revision()
    store.on(UpdateSegmentAttribute, take_effect_without_a_word)
    assert log.compare_and_set_mark(None, start)
    assert log.mark() == start


@pytest.mark.parametrize("kind", [GetSegmentAttribute, UpdateSegmentAttribute, TruncateSegment, SetupAppend])
def test_a_token_that_is_refused_is_replaced(log, stream, store, kind):
    def refuse(session, request):
        assert request.token == "old"
        stream.valid_token = "new"
        session.reply(AuthTokenCheckFailed(request.request_id, "stack", 1))

    def check(session, request):
        assert request.token == "new"
        store.serve(session, request)

    stream.valid_token = "old"
    store.on(kind, refuse)
    store.on(kind, check)
    first = log.write_conditionally(log.oldest_revision(), b"one")
    assert log.compare_and_set_mark(log.mark(), first)
    log.truncate_to_revision(first)
    assert store.unused_rules == 0


def test_the_marks_id_is_the_hash_that_java_makes_of_its_name():
    seed = 0
    for character in "SegmentAttribute":  # String.hashCode
        seed = (31 * seed + ord(character)) % 2**32
    assert mmh3.hash_bytes("RevisionStreamClientMark".encode("utf-16-le"), seed, x64arch=True) == _MARK


# ---------------------------------------------------------------- revisions as text

names = st.from_regex(r"\A[a-z0-9.\-]{1,20}\Z")
ids = st.builds(segment_id, st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
revisions = st.builds(
    Revision, st.builds(StreamName, names, names), ids, st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1)
)


@given(revisions)
def test_a_revision_is_the_same_after_its_text(revision):
    assert Revision.parse(str(revision)) == revision


def test_a_revision_has_the_text_of_java():
    revision = Revision(StreamName("scope", "stream"), 5 << 32 | 3, 1234, 2)
    assert str(revision) == "scope/stream/3.#epoch.5:1234:2"


def test_revisions_are_in_order():
    stream = StreamName("scope", "stream")
    places = [Revision(stream, 0, offset, update) for offset, update in ((0, 0), (0, 1), (8, 0), (19, 0))]
    assert all(one < other for one, other in itertools.pairwise(places))


@pytest.mark.parametrize(
    "text", ["", "x", "scope/stream/0.#epoch.0:1", "scope/stream/0.#epoch.0:a:0", "scope/stream:1:0", "a/b/0:1:2:3"]
)
def test_other_text_is_not_a_revision(text):
    with pytest.raises(ConfigError, match="invalid revision"):
        Revision.parse(text)
