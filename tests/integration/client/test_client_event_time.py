"""Event time on a real server: noting it, reading watermarks, finding times."""

from collections.abc import Callable

import pytest

from pravega_connector.client import PravegaClient, StreamConfig, StreamCut, TimeWindow, Watermark
from pravega_connector.config import PravegaConfig
from pravega_connector.controller import methods as calls
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.methods import stream_message
from pravega_connector.errors import ConfigError, ReaderGroupError, StreamNotFoundError, TimeUnknownError
from pravega_connector.wire import StreamName


@pytest.fixture
def marked(client: PravegaClient, stream_name: StreamName, eventually) -> Callable[[int], Watermark]:
    """Await the watermark of a time."""

    def wait(low: int) -> Watermark:
        eventually(lambda: any(mark.low == low for mark in client.watermarks(stream_name)))
        return next(mark for mark in client.watermarks(stream_name) if mark.low == low)

    return wait


def test_times_that_a_writer_notes_are_found_again(client, stream_name, marked, eventually) -> None:
    client.create_stream(stream_name, 2)
    assert client.watermarks(stream_name) == []
    head, tails = client.head(stream_name), {}
    with client.writer(stream_name) as writer:
        for time in (1000, 2000, 3000):
            for number in range(20):
                writer.write(b"%d" % (time - number), f"key {number}")
            assert writer.note_time(time)
            tails[time] = client.tail(stream_name)
            assert marked(time) == Watermark(time, time, tails[time], marked(time).ranges)
        assert not writer.note_time(2999)
    assert sum(segment.high - segment.low for segment in marked(1000).ranges) == 1

    assert client.time_window(head) == TimeWindow(None, 1000)
    assert client.time_window(tails[1000]) == TimeWindow(1000, 2000)
    assert client.time_window(tails[3000]) == TimeWindow(3000, None)
    with client.reader_group(f"{stream_name.scope}/times", stream_name, refresh=0.2) as group:
        assert group.time_window(stream_name) == TimeWindow(None, 1000)
        with group.reader("reader") as reader:
            eventually(lambda: not reader.poll(0.1) and group.time_window(stream_name) == TimeWindow(3000, None))
        with pytest.raises(ReaderGroupError, match=f"does not read stream {stream_name.scope}/other"):
            group.time_window(f"{stream_name.scope}/other")
    # With a client that has read nothing yet.
    with PravegaClient(client.config) as other:
        found = {time: other.cut_at(stream_name, time) for time in (-5, 1000, 2000, 2001, 3000, 3001, 10**15)}
        assert found == {
            **dict.fromkeys((-5, 1000, 2000), head),
            **dict.fromkeys((2001, 3000), tails[1000]),
            **dict.fromkeys((3001, 10**15), tails[2000]),
        }
        for time, cut in found.items():
            before = other.read(stream_name, start=head, end=cut)
            assert all(int(event) < time for event in before)
        assert other.cut_at(stream_name, 1001, end=True) == tails[2000]
        with pytest.raises(TimeUnknownError, match=r"no end position .* yet: .*\(3000 ms\)"):
            other.cut_at(stream_name, 3001, end=True)


def test_a_stream_whose_writers_note_no_time(client, stream_name) -> None:
    client.controller.create_scope(stream_name.scope)
    with pytest.raises(StreamNotFoundError):
        client.cut_at(stream_name, 0)
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        writer.write(b"event")
    with pytest.raises(TimeUnknownError, match="no writer has called note_time"):
        client.cut_at(stream_name, 0)
    assert client.time_window(client.tail(stream_name)) == TimeWindow(None, None)


def test_the_server_answers_the_head_whatever_the_time(client, stream_name) -> None:
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        writer.write(b"event")
    for time in (0, 1, 2**40, 2**62):
        request = pb.GetSegmentsRequest(streamInfo=stream_message(stream_name), timestamp=time)
        [segment] = client.controller._call(calls.SEGMENTS_AT, request, stream_name).segments
        assert segment.offset == 0
    assert client.tail(stream_name).positions == {0: 13}


def test_the_slowest_writer_gives_the_lower_bound_and_the_fastest_the_upper(client, stream_name, marked) -> None:
    client.create_stream(stream_name)
    slow, fast = (client.writer(stream_name, writer_id=name) for name in ("slow", "fast"))
    with slow, fast:
        slow.write(b"s")
        slow.note_time(100)
        fast.write(b"f")
        fast.note_time(500)
        assert (marked(100).low, marked(100).high in (100, 500)) == (100, True)
        # While the stream's timeout is 0, the controller does not wait for a silent writer.
        slow.note_time(200)
        fast.note_time(600)
        assert marked(200).high in (500, 600)
    # Both are closed: what they have noted last still counts.
    assert marked(600).cut == client.tail(stream_name)


def test_times_continue_through_scaling_and_truncation(client, stream_name, marked) -> None:
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        for time in (10, 20):
            writer.write(b"event %d" % time, "key")
            writer.note_time(time)
            first = marked(time).cut
        client.controller.scale_stream(stream_name, [0], [(0.0, 0.5), (0.5, 1.0)])
        for time in (30, 40):
            writer.write(b"event %d" % time, "key")
            writer.note_time(time)
            second = marked(time).cut
    assert (len(first.positions), len(second.positions)) == (1, 2)
    assert client.time_window(first) == TimeWindow(20, 30)
    # A segment that began after the watermarks of its predecessor. No watermark names it.
    begin = StreamCut(stream_name, dict.fromkeys(second.positions, 0))
    assert client.time_window(begin) == TimeWindow(20, 30)
    assert client.cut_at(stream_name, 25) == marked(10).cut
    client.truncate(first)
    assert client.head(stream_name) == first
    assert client.cut_at(stream_name, 25) == first
    assert client.cut_at(stream_name, 15, end=True) == first
    assert client.cut_at(stream_name, 41).positions == marked(30).cut.positions
    client.controller.seal_stream(stream_name)
    with PravegaClient(client.config) as other:
        assert other.cut_at(stream_name, 41).positions == marked(30).cut.positions


def test_a_commit_brings_its_time_with_it(client, stream_name, marked) -> None:
    client.create_stream(stream_name, 2)
    transactions = client.transactions(stream_name, lease=60)
    for time in (1000, 2000):
        transaction = transactions.begin()
        for number in range(20):
            transaction.write(b"event %d" % number, f"key {number}")
        assert transaction.commit(time).is_committed
        assert marked(time).cut == client.tail(stream_name)
    # From another process, by the id.
    open_one = transactions.begin()
    open_one.write(b"event", "key")
    open_one.detach()
    stranger = client.transaction(stream_name, open_one.id)
    with pytest.raises(ConfigError, match="set writer_id"):
        stranger.commit(3000)
    client.transaction(stream_name, open_one.id, writer_id=transactions.writer_id).commit(3000)
    assert marked(3000).cut == client.tail(stream_name)
    transactions.close()
    assert not client.controller.remove_writer(stream_name, "nobody")


def test_a_stream_that_was_made_again_has_none_of_its_old_times(client, stream_name, marked) -> None:
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        writer.write(b"event")
        writer.note_time(1000)
        marked(1000)
    client.controller.seal_stream(stream_name)
    client.controller.delete_stream(stream_name)
    with pytest.raises(StreamNotFoundError):
        client.watermarks(stream_name)
    client.create_stream(stream_name)
    assert client.watermarks(stream_name) == []


def test_times_that_are_none(client: PravegaClient, config: PravegaConfig, stream_name: StreamName) -> None:
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        for time in (2**63, -(2**63)):
            with pytest.raises(ConfigError, match="does not fit into 64 bits"):
                writer.note_time(time)


def test_a_slow_writer_keeps_the_lower_bound_true(client, stream_name, marked, eventually) -> None:
    """Without a timeout the controller does not wait: the faster writer's time would be the bound of all events."""
    client.create_stream(stream_name)
    control = StreamName(stream_name.scope, "control")
    client.controller.create_stream_with(control, StreamConfig(timestamp_aggregation_timeout_ms=0))
    streams = (stream_name, control)
    fast, slow = ([client.writer(stream, writer_id=name) for stream in streams] for name in ("fast", "slow"))
    for writer in (*fast, *slow):
        writer.write(b"1000")
        writer.note_time(1000)
    marked(1000)
    for time in (5000, 6000):
        for writer in fast:
            writer.write(b"%d" % time)
            writer.note_time(time)
        # The controller has looked, and would have made one of the stream, too.
        eventually(lambda time=time: client.watermarks(control)[-1:] and client.watermarks(control)[-1].low == time)
    places = {stream: client.tail(stream) for stream in streams}
    for writer in slow:
        writer.write(b"2000")
        writer.note_time(2000)
    marked(2000)
    low, wrong = (client.time_window(places[stream]).low for stream in streams)
    assert low is not None
    assert low <= 2000, "a row of this place is of this time"
    assert wrong == 6000, "what a timeout of 0 gives"
    for writer in (*fast, *slow):
        writer.close()
