"""The controller client on the real server: what each call does, and what each refusal looks like."""

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pravega_connector.client import PravegaClient, RetentionPolicy, ScalingPolicy, StreamConfig
from pravega_connector.config import PravegaConfig
from pravega_connector.controller.service import ControllerClient
from pravega_connector.core.values import Successor
from pravega_connector.errors import (
    ConfigError,
    ControllerError,
    MalformedStreamCutError,
    ScopeNotFoundError,
    StreamNotFoundError,
    StreamSealedError,
)
from pravega_connector.wire import SegmentRange, StreamCut, StreamName, segment_id

HALVES = [(0.0, 0.5), (0.5, 1.0)]


@pytest.fixture
def scope(own_scope: str) -> str:
    return own_scope


@pytest.fixture
def controller(config: PravegaConfig, scope: str) -> Iterator[ControllerClient]:
    with ControllerClient(config) as client:
        client.create_scope(scope)
        yield client


@pytest.fixture
def stream(controller: ControllerClient, stream_name: StreamName) -> StreamName:
    """A stream with one segment."""
    assert controller.create_stream(stream_name)
    return stream_name


def cut(stream: StreamName, *segments: int, offset: int = 0) -> StreamCut:
    return StreamCut(stream, dict.fromkeys(segments, offset))


def ids(segments: list[SegmentRange]) -> list[int]:
    return [segment.id for segment in segments]


class TestScopes:
    def test_life(self, controller):
        name = f"scope-{uuid.uuid4().hex}"
        assert not controller.scope_exists(name)
        assert controller.create_scope(name)
        assert not controller.create_scope(name)
        assert controller.scope_exists(name)
        assert name in controller.list_scopes()
        assert controller.list_streams(name) == []
        assert controller.delete_scope(name)
        assert not controller.delete_scope(name)
        assert name not in controller.list_scopes()

    def test_with_streams_is_not_deleted(self, controller, stream):
        with pytest.raises(ControllerError, match="it has streams or tables; seal and delete them first"):
            controller.delete_scope(stream.scope)
        assert controller.stream_exists(stream)

    def test_streams_of_a_missing_one(self, controller):
        with pytest.raises(ScopeNotFoundError, match="scope nowhere does not exist"):
            controller.list_streams("nowhere")


class TestStreams:
    def test_life(self, controller, stream_name):
        assert not controller.stream_exists(stream_name)
        assert controller.create_stream(stream_name, ScalingPolicy.fixed(2))
        assert not controller.create_stream(stream_name, ScalingPolicy.fixed(5))
        assert controller.stream_exists(stream_name)
        assert controller.list_streams(stream_name.scope) == [stream_name]
        marks = StreamName(stream_name.scope, f"_MARK{stream_name.stream}")
        assert controller.list_streams(stream_name.scope, internal=True) == [marks, stream_name]
        segments = controller.current_segments(stream_name)
        assert [(segment.low, segment.high) for segment in segments] == HALVES

        with pytest.raises(ControllerError, match="it is not sealed; seal it first"):
            controller.delete_stream(stream_name)
        controller.seal_stream(stream_name)
        controller.seal_stream(stream_name)
        assert controller.current_segments(stream_name) == []
        assert controller.head_cut(stream_name) == cut(stream_name, *ids(segments))
        assert controller.delete_stream(stream_name)
        assert not controller.delete_stream(stream_name)
        assert not controller.stream_exists(stream_name)

    def test_are_listed_by_tag(self, controller, stream_name):
        controller.create_scope(stream_name.scope)
        names = [StreamName(stream_name.scope, f"stream-{number:02}") for number in range(40)]
        for number, name in enumerate(names):
            controller.create_stream_with(name, StreamConfig(tags=("all", "odd" if number % 2 else "even")))
        controller.create_stream(stream_name)
        scope = stream_name.scope
        assert controller.list_streams(scope, tag="all") == names
        assert controller.list_streams(scope, tag="odd") == names[1::2]
        assert controller.list_streams(scope, tag="none") == []
        controller.update_stream(names[0], StreamConfig(tags=("all", "odd")))
        assert controller.list_streams(scope, tag="even") == names[2::2]
        controller.seal_stream(names[1])
        controller.delete_stream(names[1])
        assert controller.list_streams(scope, tag="odd") == [names[0], *names[3::2]]
        with pytest.raises(ScopeNotFoundError, match="scope nowhere does not exist"):
            controller.list_streams("nowhere", tag="all")

    def test_recreated_stream_has_new_segments(self, controller, stream):
        old = controller.head_cut(stream)
        controller.seal_stream(stream)
        assert controller.delete_stream(stream)
        assert controller.create_stream(stream)
        new = controller.head_cut(stream)
        assert set(new.positions).isdisjoint(old.positions)
        assert controller.epoch_segments(stream, 0) == controller.current_segments(stream)
        assert not controller.is_cut_valid(old)
        with pytest.raises(MalformedStreamCutError, match="both must be cuts of this stream"):
            controller.segments_between(old, old)

    @pytest.mark.parametrize(
        "wanted",
        [
            StreamConfig(scaling=ScalingPolicy.by_events(1000, 3, 2), retention=RetentionPolicy.by_time(3_600_000)),
            StreamConfig(scaling=ScalingPolicy.by_kbytes(100), retention=RetentionPolicy.by_size(1 << 30, 1 << 31)),
            StreamConfig(scaling=ScalingPolicy.fixed(3), tags=("a", "b"), rollover_size_bytes=1 << 20),
        ],
    )
    def test_configuration(self, controller, stream_name, wanted):
        assert controller.create_stream_with(stream_name, wanted)
        assert controller.stream_config(stream_name) == wanted
        assert len(controller.current_segments(stream_name)) == wanted.scaling.min_segments
        changed = replace(wanted, retention=None, tags=("c",))
        controller.update_stream(stream_name, changed)
        assert controller.stream_config(stream_name) == changed

    def test_more_fixed_segments_are_made_at_once(self, controller, stream):
        controller.update_stream(stream, StreamConfig(scaling=ScalingPolicy.fixed(2)))
        assert ids(controller.current_segments(stream)) == [segment_id(1, 1), segment_id(2, 1)]

    def test_in_a_missing_scope(self, controller):
        with pytest.raises(ScopeNotFoundError, match="scope nowhere does not exist"):
            controller.create_stream(StreamName("nowhere", "stream"))
        assert not controller.stream_exists(StreamName("nowhere", "stream"))
        assert not controller.scope_exists("nowhere")

    def test_sealed_one_cannot_be_changed(self, controller, stream):
        controller.seal_stream(stream)
        for change in (
            lambda: controller.update_stream(stream, StreamConfig()),
            lambda: controller.truncate_stream(cut(stream, 0)),
            lambda: controller.scale_stream(stream, [0], HALVES),
        ):
            with pytest.raises(StreamSealedError, match=f"stream {stream}: it is sealed"):
                change()


class TestMissingStreams:
    CALLS = (
        ("stream_config", ()),
        ("update_stream", (StreamConfig(),)),
        ("seal_stream", ()),
        ("current_segments", ()),
        ("epoch_segments", (0,)),
        ("head_cut", ()),
        ("successors", (0,)),
        ("scale_stream", ([0], [(0.0, 1.0)])),
    )
    CUT_CALLS = ("truncate_stream", "is_cut_valid")

    @pytest.mark.parametrize(("method", "arguments"), CALLS, ids=[name for name, _ in CALLS])
    def test_stream_or_scope_is_named(self, controller, scope, method, arguments):
        with pytest.raises(StreamNotFoundError, match=f"stream {scope}/missing does not exist: check its name"):
            getattr(controller, method)(StreamName(scope, "missing"), *arguments)
        with pytest.raises(ScopeNotFoundError, match="scope nowhere does not exist: check its name"):
            getattr(controller, method)(StreamName("nowhere", "missing"), *arguments)
        assert controller.list_streams(scope, internal=True) == [], "asking creates nothing"

    @pytest.mark.parametrize("method", CUT_CALLS)
    def test_stream_of_a_cut(self, controller, scope, method):
        with pytest.raises(StreamNotFoundError):
            getattr(controller, method)(cut(StreamName(scope, "missing"), 0))
        with pytest.raises(ScopeNotFoundError):
            getattr(controller, method)(cut(StreamName("nowhere", "missing"), 0))

    def test_stream_of_a_range(self, controller, scope):
        missing = cut(StreamName(scope, "missing"), 0)
        with pytest.raises(StreamNotFoundError):
            controller.segments_between(missing, missing)

    def test_part_of_a_stream_that_exists(self, controller, stream):
        with pytest.raises(ControllerError, match=f"{stream} has no such segment or epoch") as caught:
            controller.epoch_segments(stream, 9)
        assert type(caught.value) is ControllerError


class TestScaling:
    def test_split_and_merge(self, controller, stream):
        head = controller.head_cut(stream)
        split = controller.scale_stream(stream, [0], HALVES)
        one, two = segment_id(1, 1), segment_id(2, 1)
        assert split == [SegmentRange(one, 0.0, 0.5), SegmentRange(two, 0.5, 1.0)]
        assert split == controller.current_segments(stream)
        assert controller.successors(stream, 0) == [Successor(segment, (0,)) for segment in split]
        assert controller.successors(stream, one) == []

        merged = controller.scale_stream(stream, [two, one], [(0.0, 1.0)])
        three = segment_id(3, 2)
        assert merged == [SegmentRange(three, 0.0, 1.0)]
        follower = [Successor(merged[0], (one, two))]
        assert controller.successors(stream, one) == controller.successors(stream, two) == follower

        assert [ids(controller.epoch_segments(stream, epoch)) for epoch in range(3)] == [[0], [one, two], [three]]
        assert controller.segments_between(head, cut(stream, three)) == [0, one, two, three]
        assert controller.segments_between(cut(stream, one, two), cut(stream, three)) == [one, two, three]
        assert controller.segments_between(head, head) == [0]

    def test_part_of_a_stream(self, controller, stream_name):
        controller.create_stream(stream_name, ScalingPolicy.fixed(3))
        thirds = controller.current_segments(stream_name)
        after = controller.scale_stream(stream_name, [1], [(thirds[1].low, 0.5), (0.5, thirds[1].high)])
        assert ids(after) == [0, 2, segment_id(3, 1), segment_id(4, 1)]
        mixed = cut(stream_name, 0, 2, segment_id(3, 1), segment_id(4, 1))
        assert controller.is_cut_valid(mixed)
        assert controller.segments_between(controller.head_cut(stream_name), mixed) == [0, 1, 2, *ids(after)[2:]]

    def test_by_a_wish_that_cannot_be(self, controller, stream):
        with pytest.raises(ConfigError, match=r"must cover \[0, 1\) exactly once"):
            controller.scale_stream(stream, [0], [(0.0, 0.5)])
        controller.scale_stream(stream, [0], HALVES)
        with pytest.raises(ConfigError, match=r"0\.#epoch\.0 is not one of its current segments"):
            controller.scale_stream(stream, [0], HALVES)
        assert len(controller.current_segments(stream)) == 2


class TestCuts:
    def test_validity(self, controller, stream):
        controller.scale_stream(stream, [0], HALVES)
        one, two = segment_id(1, 1), segment_id(2, 1)
        assert controller.is_cut_valid(cut(stream, 0))
        assert controller.is_cut_valid(cut(stream, one, two))
        assert not controller.is_cut_valid(cut(stream, one))
        assert not controller.is_cut_valid(cut(stream, 0, one))
        assert not controller.is_cut_valid(cut(stream, 77))

    def test_reversed_range(self, controller, stream):
        head = controller.head_cut(stream)
        after = cut(stream, *ids(controller.scale_stream(stream, [0], HALVES)))
        with pytest.raises(MalformedStreamCutError, match=r"is before the start cut .*: swap them"):
            controller.segments_between(after, head)

    def test_range_that_only_the_server_can_refuse(self, controller, stream_name):
        """The end is before the start for some keys and after it for others."""
        controller.create_stream(stream_name, ScalingPolicy.fixed(4))
        quarters = controller.current_segments(stream_name)
        controller.scale_stream(stream_name, [1], [(quarters[1].low, 0.3), (0.3, quarters[1].high)])
        controller.scale_stream(stream_name, [2], [(quarters[2].low, 0.6), (0.6, quarters[2].high)])
        first, second = (segment_id(4, 1), segment_id(5, 1)), (segment_id(6, 2), segment_id(7, 2))
        start, end = cut(stream_name, 0, *first, 2, 3), cut(stream_name, 0, 1, *second, 3)
        assert controller.is_cut_valid(start)
        assert controller.is_cut_valid(end)
        with pytest.raises(MalformedStreamCutError, match="the end must not be before the start"):
            controller.segments_between(start, end)

    def test_truncation(self, config, controller, stream):
        with PravegaClient(config) as client, client.writer(stream) as writer:
            writer.write(b"x" * 92)
            writer.flush()
            middle = client.tail(stream)
            writer.write(b"x" * 92)
            writer.flush()
            tail = client.tail(stream)
        assert (middle, tail) == (cut(stream, 0, offset=100), cut(stream, 0, offset=200))
        head = controller.head_cut(stream)
        controller.truncate_stream(middle)
        assert controller.head_cut(stream) == middle
        controller.truncate_stream(middle)
        with pytest.raises(ControllerError, match="the cut is before the stream's head"):
            controller.truncate_stream(head)
        after = controller.scale_stream(stream, [0], HALVES)
        with pytest.raises(ControllerError, match="does not cover all routing keys"):
            controller.truncate_stream(cut(stream, after[0].id))
        controller.truncate_stream(cut(stream, *ids(after)))
        assert controller.head_cut(stream) == cut(stream, *ids(after))


class TestWayToTheStores:
    def test_endpoint(self, controller, config, stream):
        host, port = controller.endpoint(stream, 0)
        assert host == config.endpoints[0][0]
        assert port != config.endpoints[0][1]

    def test_no_token_is_asked_for_without_authentication(self, controller, stream):
        assert controller.delegation_token(stream, write=True) == ""
        assert controller.delegation_token(stream, write=False) == ""
