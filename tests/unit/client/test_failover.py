"""Stores and controllers that die, freeze and come back: a client continues by itself, and believes no ghost.

A frozen store takes connections and says nothing, as a stopped process does; a ghost is one that comes back and has
forgotten its segments, which live elsewhere by then.
"""

import base64
import contextlib
import json
import logging
import re
import socket
import threading
import time

import pyarrow as pa
import pytest

from pravega_connector.client import EventWriter
from pravega_connector.config import PravegaConfig
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.service import ControllerClient
from pravega_connector.core.retry import ClusterHealth
from pravega_connector.errors import (
    ControllerUnavailableError,
    DataLossError,
    DeadlineExceededError,
    PravegaError,
    StreamSealedError,
    TokenExpiredError,
)
from pravega_connector.reader import tail
from pravega_connector.testing.requests import frame
from pravega_connector.wire import (
    GetStreamSegmentInfo,
    NoSuchSegment,
    ReadSegment,
    SegmentIsSealed,
    SetupAppend,
    StreamCut,
)
from pravega_connector.writer import append_loop
from tests.support.fake_stream import FakeSegmentStore, FakeStream
from tests.support.fakes import FakeController, SilentServer
from tests.support.proxy import Proxy
from tests.support.stopwatch import Stopwatch
from tests.unit.client.controller._answers import YES

QUICK = 3.0  # seconds of a failover here: attempts have one each


@pytest.fixture
def other():
    """The store that segments move to."""
    with FakeSegmentStore() as store:
        yield store


def move(stream, number, target):
    """A segment lives on ``target`` now, with all that it has; the store where it was keeps its copy."""
    name = stream.segment(number)
    target.segments[name] = stream.store.segments[name]
    stream.places[number] = target


def move_when_asked_again(stream, number, target):
    """The controller names the new store when it is asked for the second time."""
    asked = []

    def endpoint(number_asked):
        asked.append(number_asked)
        if asked.count(number) == 2:
            move(stream, number, target)

    stream.on_endpoint = endpoint


def events_in(store, stream, number=0):
    return store.segments[stream.segment(number)].events


def start_of(stream):
    return StreamCut(stream.name, {r.id: 0 for r in stream.ranges})


def poll_until(reader, count, seconds=20):
    found, end = [], time.monotonic() + seconds
    while len(found) < count and time.monotonic() < end:
        with contextlib.suppress(PravegaError):
            if (batch := reader.poll(0.5)) is not None:
                found += batch.events.to_pylist()
    return found


# ---------------------------------------------------------------- frozen stores


class TestFrozenStore:
    @pytest.fixture
    def frozen(self, stream, store, other):
        """The stream's store is frozen; its segment has moved, as the controller tells who asks again."""
        store.append(stream.segment(0), frame(b"a") + frame(b"b"))
        store.freeze()
        move_when_asked_again(stream, 0, other)
        return stream

    def test_the_tail_is_asked_elsewhere(self, frozen, other):
        with frozen.client(timeout=QUICK) as client:
            assert client.tail(frozen.name) == StreamCut(frozen.name, {0: 18})
        assert other.count(GetStreamSegmentInfo) == 1

    def test_a_read_continues_elsewhere(self, frozen):
        with frozen.client(timeout=QUICK) as client:
            assert list(client.read(frozen.name, end=StreamCut(frozen.name, {0: 18}))) == [b"a", b"b"]

    def test_a_conditional_write_continues_elsewhere(self, frozen, other):
        with frozen.client(timeout=QUICK) as client, client.revisioned(frozen.name) as log:
            assert log.write_conditionally(log.latest_revision(), b"c") is not None
        assert events_in(other, frozen) == [b"a", b"b", b"c"]

    def test_a_writer_continues_elsewhere(self, frozen, other, monkeypatch):
        monkeypatch.setattr(append_loop, "SILENCE_SECONDS", 0.5)
        with frozen.client() as client, client.writer(frozen.name) as writer:
            writer.write(b"c")
            writer.flush(10)
        assert events_in(other, frozen) == [b"a", b"b", b"c"]

    def test_a_store_that_freezes_under_a_reader_at_the_tail_is_left(self, stream, store, other, monkeypatch):
        monkeypatch.setattr(tail, "_PING_AFTER", 0.3)
        with stream.client(timeout=QUICK) as client, client.follow(stream.name, start=start_of(stream)) as reader:
            while not store.parked():
                assert reader.poll(0.05) is None
            store.freeze()
            move(stream, 0, other)
            other.append(stream.segment(0), frame(b"late"))
            assert poll_until(reader, 1) == [b"late"]
            assert client.counters.as_dict()["segment_moves"] == 1
            assert client.counters.as_dict()["reconnects"] >= 1

    def test_it_does_not_hold_up_the_segments_of_others_that_are_followed(self, store, other):
        stream = FakeStream(store, segments=2)
        move(stream, 1, other)
        store.freeze()
        with stream.client(timeout=30) as client, client.follow(stream.name, start=start_of(stream)) as reader:
            began = Stopwatch()
            for number in range(20):
                other.append(stream.segment(1), frame(b"%d" % number))
                assert poll_until(reader, 1, seconds=4) == [b"%d" % number]
            assert began.within(4)  # one attempt at the frozen one has 5
            assert store.connections

    def test_answers_that_are_slow_get_their_time(self, stream, store):
        """A store that needs longer than an attempt has at first."""

        def slowly(session, request):
            time.sleep(1.5)
            store.serve(session, request)

        store.on(GetStreamSegmentInfo, slowly, times=2)
        with stream.client(timeout=12) as client:
            assert client.tail(stream.name) == StreamCut(stream.name, {0: 0})


class TestDeadHost:
    @pytest.fixture
    def unreachable(self):
        """An address where a connect waits: of a socket whose queue is full."""
        with socket.socket() as listener, contextlib.ExitStack() as waiting:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            for _ in range(3):
                sock = waiting.enter_context(socket.socket())
                sock.setblocking(False)
                sock.connect_ex(listener.getsockname())
            yield listener.getsockname()

    def test_connects_to_it_do_not_hold_up_healthy_segments(self, store, other, unreachable):
        stream = FakeStream(store, segments=2)
        store.endpoint = unreachable
        move(stream, 1, other)
        with stream.client(timeout=30) as client:
            writer = client.writer(stream.name)
            began = Stopwatch()
            for number in range(20):
                writer.write_column(pa.array([b"dead", b"alive %d" % number]), pa.array(["key-0", "key-2"]))
            while len(events_in(other, stream, 1)) < 20:
                assert began.within(4), "an attempt at the other one has 5"
                time.sleep(0.01)
            began = Stopwatch()
            writer.abandon()
            assert began.within(4), "an attempt has 5"

    def test_tls_that_is_never_answered_does_not_hold_up_the_writer_either(self, stream):
        with SilentServer() as silent, stream.client() as client:
            host, port = silent.uri.removeprefix("tcp://").split(":")
            stream.store.endpoint = host, int(port)
            writer = client.writer(stream.name)
            writer.write(b"a")
            with pytest.raises(DeadlineExceededError, match="9 bytes are not acknowledged"):
                writer.flush(0.5)
            began = Stopwatch()
            writer.abandon()
            assert began.within(4), "an attempt has 5"
            assert silent.accepted


def test_many_segments_are_looked_up_by_a_few_threads(store):
    stream = FakeStream(store, segments=200)
    most = []

    def slowly(_number):
        most.append(sum("errand" in thread.name for thread in threading.enumerate()))
        time.sleep(0.001)

    stream.on_endpoint = slowly
    with stream.client() as client, client.follow(stream.name, start=start_of(stream)) as reader:
        for number in range(200):
            store.append(stream.segment(number), frame(b"%d" % number))
        assert sorted(poll_until(reader, 200), key=int) == [b"%d" % number for number in range(200)]
    assert 1 < max(most) <= 40


# ---------------------------------------------------------------- raising and continuing


def test_a_follower_that_raised_continues_when_it_is_polled_again(stream, store, other):
    with stream.client(timeout=1) as client, client.follow(stream.name, start=start_of(stream)) as reader:
        store.append(stream.segment(0), frame(b"a"))
        move(stream, 0, other)
        stream.places[0] = store
        store.close()
        with pytest.raises(PravegaError) as caught:
            reader.poll(20)
        assert caught.value.retriable
        stream.places[0] = other
        assert poll_until(reader, 1, seconds=5) == [b"a"]


def write_in_a_block(writer, then):
    with writer:
        writer.write(b"a")
        then(writer)


def test_a_block_of_a_writer_ends_after_one_timeout(stream, store):
    store.freeze()
    with stream.client() as client:
        began = Stopwatch()
        with pytest.raises(DeadlineExceededError):
            write_in_a_block(client.writer(stream.name, timeout=2), EventWriter.flush)
        assert began.lasted(2)
        assert began.within(4)


def test_a_block_that_fails_otherwise_still_writes(stream, client):
    with pytest.raises(ZeroDivisionError):
        write_in_a_block(client.writer(stream.name), lambda _: 1 / 0)
    assert events_in(stream.store, stream) == [b"a"]


# ---------------------------------------------------------------- ghosts


class TestGhost:
    """A store that was frozen says that a segment is not there; the controller knows better."""

    @pytest.fixture
    def ghost(self, stream, store, other):
        """The stream, whose store answers as a ghost until the controller is asked again."""
        store.append(stream.segment(0), frame(b"a"))
        move_when_asked_again(stream, 0, other)
        return stream

    @staticmethod
    def deny(session, request):
        session.reply(NoSuchSegment(request.request_id, request.segment, "stack", -1))

    def test_a_writer_is_not_told_that_its_stream_is_sealed(self, ghost, store, other):
        store.on(SetupAppend, self.deny, times=100)
        with ghost.client() as client, client.writer(ghost.name) as writer:
            writer.write(b"b")
        assert events_in(other, ghost) == [b"a", b"b"]

    def test_a_writer_is_told_when_it_is(self, stream, store, client):
        writer = client.writer(stream.name)
        stream.seal_all()
        store.on(SetupAppend, self.deny, times=100)
        writer.write(b"b")
        with pytest.raises(StreamSealedError):
            writer.flush()
        writer.abandon()

    def test_a_segment_sealed_for_nobody_to_follow_is_asked_about_again(self, ghost, store, other):
        store.on(SetupAppend, store.serve)
        store.on(SetupAppend, lambda s, r: s.reply(SegmentIsSealed(r.request_id, r.segment, "stack", -1)), times=100)
        with ghost.client() as client, client.writer(ghost.name) as writer:
            writer.write(b"b")
            writer.flush()
            store.drop_all()
            writer.write(b"c")
        found = events_in(store, ghost) if store is ghost.places.get(0, store) else events_in(other, ghost)
        assert found == [b"a", b"b", b"c"]

    def test_the_tail_is_that_of_the_segment(self, ghost, store):
        store.on(GetStreamSegmentInfo, self.deny, times=100)
        with ghost.client() as client:
            assert client.tail(ghost.name) == StreamCut(ghost.name, {0: 9})

    def test_a_read_is_not_a_data_loss(self, ghost, store):
        store.on(ReadSegment, self.deny, times=100)
        with ghost.client() as client:
            assert list(client.read(ghost.name, end=StreamCut(ghost.name, {0: 9}))) == [b"a"]

    def test_following_is_not_a_data_loss(self, ghost, store):
        store.on(ReadSegment, self.deny, times=100)
        with ghost.client() as client, client.follow(ghost.name, start=start_of(ghost)) as reader:
            assert reader.poll(10).events.to_pylist() == [b"a"]

    def test_a_segment_that_was_truncated_away_is_data_loss(self, stream, store, client):
        (new,) = stream.scale([0], 0.0, 1.0)
        stream.head = {new: 0}
        del store.segments[stream.segment(0)]
        with pytest.raises(DataLossError):
            list(client.read(stream.name, start=StreamCut(stream.name, {0: 0}), end=StreamCut(stream.name, {0: 9})))

    def test_a_transaction_that_is_open_continues(self, stream, store):
        store.on(SetupAppend, self.deny, times=3)
        with stream.client() as client, client.transactions(stream.name).begin() as transaction:
            transaction.write(b"a")
            transaction.flush()
        assert store.unused_rules == 0
        assert events_in(store, stream) == [b"a"]

    def test_a_revisioned_stream_continues(self, ghost, store, other):
        store.on(SetupAppend, self.deny, times=100)
        with ghost.client() as client, client.revisioned(ghost.name) as log:
            log.write_unconditionally(b"b")
        assert events_in(other, ghost) == [b"a", b"b"]


# ---------------------------------------------------------------- controllers


class TestFrozenController:
    def test_the_next_one_is_asked(self):
        with FakeController() as first, FakeController() as second, Proxy(("127.0.0.1", first.port)) as way:
            first.on("checkScopeExists", YES)
            second.on("checkScopeExists", YES)
            uri = f"tcp://127.0.0.1:{way.endpoint[1]},127.0.0.1:{second.port}"
            with ControllerClient(PravegaConfig(controller=uri), timeout=6, failover_timeout=6) as client:
                assert client.scope_exists("scope")
                way.stall()
                began = Stopwatch()
                for _ in range(4):
                    assert client.scope_exists("scope")
                assert began.within(5)
            assert (first.count("checkScopeExists"), second.count("checkScopeExists")) == (1, 4)

    def test_it_is_not_given_the_time_that_work_takes(self):
        with FakeController() as first, FakeController() as second, Proxy(("127.0.0.1", first.port)) as way:
            second.on("createScope", pb.CreateScopeStatus(status=pb.CreateScopeStatus.SUCCESS))
            uri = f"tcp://127.0.0.1:{way.endpoint[1]},127.0.0.1:{second.port}"
            way.stall()
            with ControllerClient(PravegaConfig(controller=uri), timeout=60) as client:
                began = Stopwatch()
                assert client.create_scope("scope")
                assert began.within(10)

    def test_a_new_connection_helps_where_there_is_one_address(self):
        with FakeController() as first, FakeController() as second, Proxy(("127.0.0.1", first.port)) as way:
            first.on("checkScopeExists", YES)
            second.on("checkScopeExists", YES)
            uri = f"tcp://127.0.0.1:{way.endpoint[1]}"
            with ControllerClient(PravegaConfig(controller=uri), timeout=6, failover_timeout=6) as client:
                assert client.scope_exists("scope")
                way.stall_open()
                way.target = ("127.0.0.1", second.port)
                assert client.scope_exists("scope")
            assert second.count("checkScopeExists") == 1


# ---------------------------------------------------------------- tokens


@pytest.mark.parametrize("seconds", [20, 1, -5], ids=["short", "shorter", "a clock that is fast"])
def test_tokens_of_a_short_life_are_used(stream, store, seconds):
    claims = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + seconds}).encode()).decode().rstrip("=")
    stream.valid_token = f"head.{claims}.signature"
    with stream.client() as client, client.follow(stream.name, start=start_of(stream)) as reader:
        with client.writer(stream.name) as writer:
            writer.write(b"a")
        assert poll_until(reader, 1, seconds=5) == [b"a"]
        assert client.tail(stream.name) == StreamCut(stream.name, {0: 9})
    assert stream.asked["delegation_token"] < 10


# ---------------------------------------------------------------- patience


class TestPatience:
    def test_the_first_contact_is_short_and_continuing_is_long(self):
        with FakeController() as fake:
            fake.on("checkScopeExists", YES)
            client = ControllerClient(PravegaConfig(controller=fake.uri), timeout=1, failover_timeout=77)
            assert client.health.seconds == 1
            client.scope_exists("scope")
            assert client.health.seconds == 77
        assert ClusterHealth(1, 77, service=True).seconds == 77

    def test_what_failed_is_not_a_contact(self, closed_port):
        client = ControllerClient(PravegaConfig(controller=f"tcp://127.0.0.1:{closed_port}"), timeout=0.5)
        with pytest.raises(ControllerUnavailableError):
            client.scope_exists("scope")
        assert client.health.seconds == 0.5

    def test_a_call_that_continues_outlives_the_first_timeout(self):
        back = threading.Event()
        with FakeController() as fake, Proxy(("127.0.0.1", fake.port)) as way:
            fake.on("checkScopeExists", YES)
            uri = f"tcp://127.0.0.1:{way.endpoint[1]}"
            with ControllerClient(PravegaConfig(controller=uri), timeout=0.5, failover_timeout=30) as client:
                client.scope_exists("scope")
                way.stall()
                threading.Timer(1, lambda: (back.set(), way.flow())).start()
                assert client.scope_exists("scope")
        assert back.is_set()


# ---------------------------------------------------------------- reports


class TestTold:
    @pytest.fixture
    def trouble(self, monkeypatch):
        """An outage is one at once, and soon over."""
        monkeypatch.setattr("pravega_connector.core.retry.OUTAGE_AFTER", 0.0)

    @pytest.mark.usefixtures("trouble")
    def test_an_outage_is_logged_once_counted_and_over(self, stream, store, other, caplog):
        store.append(stream.segment(0), frame(b"a"))
        store.close()
        seen = []

        def endpoint(_number):
            seen.append(client.trouble)
            if len(seen) == 8:
                move(stream, 0, other)

        stream.on_endpoint = endpoint
        with stream.client(timeout=20) as client, caplog.at_level(logging.INFO, logger="pravega_connector"):
            assert client.trouble is None
            client.tail(stream.name)
            assert client.trouble is None
        counted = client.counters.as_dict()
        assert counted["retries"] == 7
        assert counted["outages"] == counted["segment_moves"] == 1
        assert 0 < counted["outage_seconds"] < 20
        assert seen[0] is None
        assert "stream scope/stream: unreachable for " in seen[-1]
        assert "no connection to the segment store at 127.0.0.1" in seen[-1]
        warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        assert len(warnings) == 2
        assert re.search(r"retrying for (1\d|20) s more; last error: no connection", warnings[0])
        assert warnings[1].startswith("stream scope/stream: recovered after ")
        retries = [r for r in caplog.records if r.getMessage().startswith("stream scope/stream: trying again after")]
        assert len(retries) == 1

    def test_a_short_failure_is_not_an_outage(self, stream, store, client, caplog):
        store.on(GetStreamSegmentInfo, lambda session, _: session.drop(), times=2)
        with caplog.at_level(logging.WARNING, logger="pravega_connector"):
            client.tail(stream.name)
        assert not caplog.records
        assert client.counters.as_dict()["outages"] == 0
        assert client.counters.as_dict()["retries"] == 2

    def test_tokens_that_were_renewed_are_counted(self, stream, client):
        stream.valid_token = "old"
        assert client.stores.token(stream.name, write=False) == "old"
        assert client.counters.as_dict()["token_refreshes"] == 0
        client.stores.forget(stream.name, 0, TokenExpiredError("refused"))
        stream.valid_token = "new"
        assert client.stores.token(stream.name, write=False) == "new"
        assert client.counters.as_dict()["token_refreshes"] == 1

    def test_lines_of_a_kind_are_rare_and_say_how_many_were_left_out(self, caplog, monkeypatch):
        monkeypatch.setattr("pravega_connector.core.retry.NOTE_EVERY", 1000.0)
        health, logger = ClusterHealth(), logging.getLogger("pravega_connector.test")
        with caplog.at_level(logging.INFO, logger="pravega_connector"):
            for _ in range(100):
                health.count("reconnects", logger, "lost")
            health.count("segment_moves", logger, "moved")
            assert [r.getMessage() for r in caplog.records] == ["lost", "moved"]
            monkeypatch.setattr("pravega_connector.core.retry.NOTE_EVERY", 0.0)  # that time has passed
            health.count("reconnects", logger, "lost again")
        assert caplog.records[-1].getMessage() == "lost again (and 99 similar messages left out before)"
        assert health.counters.as_dict()["reconnects"] == 101

    def test_outages_at_the_same_time_count_once(self, monkeypatch):
        monkeypatch.setattr("pravega_connector.core.retry.OUTAGE_AFTER", 0.0)
        health, logger = ClusterHealth(), logging.getLogger("pravega_connector.test")
        first, second = (health.attempts(logger, what) for what in ("first", "second"))
        first.failed(ControllerUnavailableError("gone"))
        second.failed(ControllerUnavailableError("gone too"))
        assert health.trouble is not None
        assert re.match(r"first: unreachable for \d+ s, retrying for ", health.trouble)
        first.done()
        assert health.trouble is not None
        assert health.trouble.startswith("second: ")
        second.close()
        assert health.trouble is None
        assert health.counters.as_dict()["outages"] == 1

    def test_an_outage_ends_with_who_has_it(self, monkeypatch):
        monkeypatch.setattr("pravega_connector.core.retry.OUTAGE_AFTER", 0.0)
        health = ClusterHealth()
        attempts = health.attempts(logging.getLogger("pravega_connector.test"), "a reader that was not closed")
        attempts.failed(ControllerUnavailableError("gone"))
        assert health.trouble is not None
        assert health.counters.goes_on
        del attempts
        assert health.trouble is None
        assert not health.counters.goes_on
        assert health.counters.as_dict()["outages"] == 1
        first = health.counters.as_dict()["outage_seconds"]
        assert first == health.counters.as_dict()["outage_seconds"]  # it is over


# ---------------------------------------------------------------- a writer after a deadline


def wait_until(is_so, seconds=15):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_writer_reconnects_long_after_its_last_flush(stream, store):
    with stream.client(timeout=0.3) as client, client.writer(stream.name, timeout=10) as writer:
        writer.write(b"a")
        writer.flush(timeout=1)
        time.sleep(1.1)  # the deadline of that flush passes
        store.drop_all()
        writer.write(b"b")
        wait_until(lambda: events_in(store, stream) == [b"a", b"b"])


def test_a_writer_that_never_flushes_reconnects_after_any_outage(stream, store):
    with stream.client(timeout=0.3) as client:
        store.on(SetupAppend, lambda session, request: session.drop(), times=1000)
        with client.writer(stream.name, timeout=10) as writer:
            writer.write(b"a")
            time.sleep(1)  # several times what a call may take
            assert 0 < store.unused_rules < 999
            store.forget_rules()
            wait_until(lambda: events_in(store, stream) == [b"a"])


def test_short_flushes_in_a_loop_get_through(stream, store):
    with stream.client(timeout=0.3) as client:
        writer = client.writer(stream.name, timeout=10)
        writer.write(b"a")
        writer.flush()
        store.freeze()
        writer.write(b"b")
        for _ in range(4):
            with pytest.raises(DeadlineExceededError):
                writer.flush(timeout=0.1)
        store.thaw()

        def flushed():
            try:
                writer.flush(timeout=0.1)
            except DeadlineExceededError:
                return False
            return True

        wait_until(flushed)
        assert events_in(store, stream) == [b"a", b"b"]
        writer.close(5)
