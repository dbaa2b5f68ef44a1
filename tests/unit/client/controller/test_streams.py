"""Questions and answers about streams: scaling, cuts, lists, configurations, where their segments are."""

import time

import pytest

from pravega_connector.client import RetentionPolicy, ScalingPolicy, StreamConfig
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.service import ControllerClient
from pravega_connector.errors import (
    ConfigError,
    ControllerError,
    DeadlineExceededError,
    MalformedStreamCutError,
    ScopeNotFoundError,
    StreamSealedError,
)
from pravega_connector.wire import SegmentRange, StreamCut, StreamName
from tests.support.stopwatch import Stopwatch
from tests.unit.client.controller._answers import STREAM, Code, one_line


def ranges(*segments: tuple[int, float, float]) -> pb.SegmentRanges:
    return pb.SegmentRanges(
        segmentRanges=[
            pb.SegmentRange(segmentId=pb.SegmentId(segmentId=number), minKey=low, maxKey=high)
            for number, low, high in segments
        ]
    )


class TestScaling:
    BEFORE = ranges((0, 0.0, 0.5), (1, 0.5, 1.0))
    AFTER = ranges((1, 0.5, 1.0), ((1 << 32) + 2, 0.0, 0.2), ((1 << 32) + 3, 0.2, 0.5))
    STARTED = pb.ScaleResponse(status="STARTED", epoch=1)
    NEW = ((0.0, 0.2), (0.2, 0.5))

    def scale(self, client: ControllerClient, timeout: float = 30.0) -> list[SegmentRange]:
        return client.scale_stream(STREAM, [0], self.NEW, timeout=timeout)

    def test_waits_until_it_is_done(self, fake, client):
        running, done = pb.ScaleStatusResponse(status="IN_PROGRESS"), pb.ScaleStatusResponse(status="SUCCESS")
        fake.on("getCurrentSegments", self.BEFORE, self.AFTER).on("scale", self.STARTED)
        fake.on("checkScale", running, running, running, done)
        assert [segment.id for segment in self.scale(client)] == [1, (1 << 32) + 2, (1 << 32) + 3]
        assert fake.count("checkScale") == 4
        request = next(call.request for call in fake.calls if call.name == "scale")
        assert list(request.sealedSegments) == [0]
        assert [(entry.start, entry.end) for entry in request.newKeyRanges] == list(self.NEW)
        assert abs(request.scaleTimestamp / 1000 - time.time()) < 60

    def test_not_for_ever(self, fake, client):
        fake.on("getCurrentSegments", self.BEFORE).on("scale", self.STARTED)
        fake.on("checkScale", pb.ScaleStatusResponse(status="IN_PROGRESS"))
        started = Stopwatch()
        with pytest.raises(DeadlineExceededError, match=r"was not scaled within 4 s; the controller continues"):
            self.scale(client, timeout=4)  # on a busy machine, an answer of the fake takes more than a second
        assert started.within(20)

    def test_a_lost_answer_after_it_was_done(self, fake, client):
        fake.on("getCurrentSegments", self.BEFORE, self.AFTER).on("scale", Code.UNAVAILABLE)
        assert len(self.scale(client)) == 3
        assert fake.count("scale") == 1

    def test_a_lost_answer_before_it_was_done(self, fake, client):
        fake.on("getCurrentSegments", self.BEFORE, self.BEFORE, self.AFTER)
        fake.on("scale", Code.UNAVAILABLE, self.STARTED).on("checkScale", pb.ScaleStatusResponse(status="SUCCESS"))
        assert len(self.scale(client)) == 3
        assert fake.count("scale") == 2

    @pytest.mark.usefixtures("five_failures")
    def test_is_never_repeated_without_looking(self, fake, client):
        fake.on("getCurrentSegments", self.BEFORE).on("scale", Code.INTERNAL)
        with pytest.raises(ControllerError, match="INTERNAL"):
            self.scale(client)
        assert (fake.count("scale"), fake.count("getCurrentSegments")) == (5, 6)

    @pytest.mark.usefixtures("five_failures")
    @pytest.mark.parametrize("status", ["FAILURE", "PRECONDITION_FAILED"])
    def test_refused(self, fake, client, status):
        fake.on("getCurrentSegments", self.BEFORE).on("scale", pb.ScaleResponse(status=status))
        with pytest.raises(ControllerError, match="cannot scale stream scope/stream: "):
            self.scale(client)

    def test_failed_on_the_way(self, fake, client):
        fake.on("getCurrentSegments", self.BEFORE).on("scale", self.STARTED)
        fake.on("checkScale", pb.ScaleStatusResponse(status="INVALID_INPUT"))
        with pytest.raises(
            ControllerError, match="cannot scale stream scope/stream: the controller does not know of it"
        ):
            self.scale(client)

    @pytest.mark.parametrize(
        ("seal", "new", "text"),
        [
            ([], [(0.0, 1.0)], "name each segment to replace once"),
            ([0, 0], [(0.0, 0.5)], "name each segment to replace once"),
            ([7], [(0.0, 0.5)], r"scope/stream/7\.#epoch\.0 is not one of its current segments"),
            (
                [0],
                [(0.0, 0.4)],
                r"must cover \[0, 0.5\) exactly once, as the replaced segments do; they are \[0, 0.4\)",
            ),
            ([0], [(0.0, 0.3), (0.2, 0.5)], "must cover"),
            ([0], [(0.0, 0.2), (0.3, 0.5)], "must cover"),
            ([0], [], "they are none"),
            ([0], [(0.5, 0.0)], r"invalid key range \[0.5, 0.0\)"),
            ([0], [(0.0, 1.5)], r"invalid key range \[0.0, 1.5\)"),
            ([0], [(0.0, float("nan"))], "invalid key range"),
        ],
    )
    def test_what_cannot_be_right_is_not_sent(self, fake, client, seal, new, text):
        fake.on("getCurrentSegments", self.BEFORE)
        with pytest.raises(ConfigError, match=text) as caught:
            client.scale_stream(STREAM, seal, new)
        one_line(caught.value)
        assert not fake.count("scale")

    def test_sealed_stream(self, fake, client):
        fake.on("getCurrentSegments", pb.SegmentRanges())
        with pytest.raises(StreamSealedError):
            self.scale(client)

    def test_thirds_do_not_fail_on_rounding(self, fake, client):
        fake.on("getCurrentSegments", ranges((0, 0.0, 1.0)), ranges((1, 0.0, 1.0))).on("scale", self.STARTED)
        fake.on("checkScale", pb.ScaleStatusResponse(status="SUCCESS"))
        client.scale_stream(STREAM, [0], [(0.0, 1 / 3), (1 / 3, 0.1 + 0.2 + 1 / 3), (0.3 + 1 / 3, 1.0)])
        assert fake.count("scale") == 1


class TestCuts:
    def cut(self, positions: dict[int, int], stream: StreamName = STREAM) -> StreamCut:
        return StreamCut(stream, positions)

    @pytest.mark.parametrize(
        ("start", "end", "text"),
        [
            ({0: 5}, {0: 4}, r"scope/stream/0\.#epoch\.0, 4 < 5"),
            ({0: 5, 1: 5}, {0: 9, 1: 4}, r"scope/stream/1\.#epoch\.0, 4 < 5"),
            ({2 | 1 << 32: 0}, {0: 9, 1: 9}, "its segments come before the segments of the start"),
            ({0: 1}, {}, "without segments is not a bound"),
            ({}, {0: 1}, "without segments is not a bound"),
        ],
    )
    def test_order(self, fake, client, start, end, text):
        with pytest.raises(MalformedStreamCutError, match=text) as caught:
            client.segments_between(self.cut(start), self.cut(end))
        one_line(caught.value)
        assert not fake.calls

    def test_of_two_streams(self, client):
        other = self.cut({0: 1}, StreamName("scope", "other"))
        with pytest.raises(
            MalformedStreamCutError, match="the start is a cut of scope/stream and the end is a cut of scope/other"
        ):
            client.segments_between(self.cut({0: 1}), other)

    def test_order_that_only_the_controller_can_tell(self, fake, client):
        fake.on("getSegmentsBetween", Code.UNKNOWN)
        with pytest.raises(MalformedStreamCutError, match="the end must not be before the start"):
            client.segments_between(self.cut({0: 1}), self.cut({0: 2}))

    def test_between(self, fake, client):
        ids = [pb.SegmentId(segmentId=number) for number in (3 | 1 << 32, 0, 2 | 1 << 32)]
        fake.on("getSegmentsBetween", pb.StreamCutRangeResponse(segments=ids))
        found = client.segments_between(self.cut({0: 1}), self.cut({2 | 1 << 32: -1, 3 | 1 << 32: 7}))
        assert found == [0, 2 | 1 << 32, 3 | 1 << 32]
        request = fake.calls[0].request
        assert dict(getattr(request, "from")) == {0: 1}
        assert dict(request.to) == {2 | 1 << 32: -1, 3 | 1 << 32: 7}

    def test_cut_of_unknown_segments_is_not_valid(self, fake, client):
        fake.on("isStreamCutValid", Code.UNKNOWN)  # a NullPointerException, at the server
        assert not client.is_cut_valid(self.cut({77: 1}))


class TestLists:
    def test_pages(self, fake, client):
        def page(token: str, *names: str) -> pb.ScopesResponse:
            return pb.ScopesResponse(scopes=names, continuationToken=pb.ContinuationToken(token=token))

        fake.on("listScopes", page("1", "b", "_system"), page("2", "a"), page("2"))
        assert client.list_scopes() == ["_system", "a", "b"]
        assert [call.request.continuationToken.token for call in fake.calls] == ["", "1", "2"]

    def test_a_server_that_repeats_a_page(self, fake, client):
        fake.on("listScopes", pb.ScopesResponse(scopes=["a"]))
        assert client.list_scopes() == ["a"]

    def test_streams(self, fake, client):
        names = ("b", "_MARKb", "a", "_RGgroup", "_MARK_RGgroup")
        full = pb.StreamsInScopeResponse(streams=[pb.StreamInfo(scope="scope", stream=name) for name in names])
        fake.on("listStreamsInScope", full, pb.StreamsInScopeResponse())
        assert [stream.stream for stream in client.list_streams("scope")] == ["a", "b"]
        fake.on("listStreamsInScope", full, pb.StreamsInScopeResponse())
        assert [stream.stream for stream in client.list_streams("scope", internal=True)] == [
            "_MARKb",
            "_RGgroup",
            "a",
            "b",
        ]

    def test_of_a_missing_scope(self, fake, client):
        fake.on("listStreamsInScope", pb.StreamsInScopeResponse(status="SCOPE_NOT_FOUND"))
        with pytest.raises(ScopeNotFoundError):
            client.list_streams("scope")


class TestStreamConfig:
    @pytest.mark.parametrize(
        "config",
        [
            StreamConfig(),
            StreamConfig(scaling=ScalingPolicy.fixed(7), tags=("a", "b")),
            StreamConfig(scaling=ScalingPolicy.by_events(100, 3, 2), retention=RetentionPolicy.by_time(1000)),
            StreamConfig(scaling=ScalingPolicy.by_kbytes(5), retention=RetentionPolicy.by_size(10, 20)),
            StreamConfig(timestamp_aggregation_timeout_ms=5, rollover_size_bytes=6),
        ],
    )
    def test_round_trip(self, fake, client, config):
        fake.on("createStream", pb.CreateStreamStatus(status="SUCCESS"))
        assert client.create_stream_with(STREAM, config)
        fake.on("getStreamConfiguration", fake.calls[0].request)
        assert client.stream_config(STREAM) == config

    def test_retention_without_an_upper_limit_of_an_old_stream(self, fake, client):
        old = pb.RetentionPolicy(retentionType="TIME", retentionParam=9)
        fake.on("getStreamConfiguration", pb.StreamConfig(retentionPolicy=old, scalingPolicy={"minNumSegments": 1}))
        assert client.stream_config(STREAM).retention == RetentionPolicy.by_time(9)

    @pytest.mark.parametrize(
        ("make", "text"),
        [
            (lambda: ScalingPolicy.fixed(0), "the number of segments must be a whole number from 1"),
            (lambda: ScalingPolicy.fixed(True), "not True"),
            (lambda: ScalingPolicy.fixed(2**31), "from 1 to 2147483647, not 2147483648"),
            (lambda: ScalingPolicy.by_events(0), "the target rate must be a whole number from 1"),
            (lambda: ScalingPolicy.by_kbytes(1, 0), "the scale factor must be a whole number from 1"),
            (lambda: ScalingPolicy(kind="more"), "invalid scaling policy 'more'; valid kinds: fixed, events, kbytes"),
            (lambda: RetentionPolicy.by_time(-1), "the retention must be a whole number from 0"),
            (lambda: RetentionPolicy.by_size(10, 9), "the most that is retained must be a whole number from 10"),
            (lambda: RetentionPolicy(kind="more", least=1), "invalid retention policy 'more'; valid kinds: time, size"),
        ],
    )
    def test_policies_that_cannot_be(self, make, text):
        with pytest.raises(ConfigError, match=text):
            make()  # type: ignore[operator]


class TestEndpoint:
    @pytest.mark.parametrize(
        ("given", "host"),
        [("0.0.0.0", "127.0.0.1"), ("localhost", "127.0.0.1"), ("", "127.0.0.1"), ("store-7", "store-7")],
    )
    def test_nowhere_is_the_controller_s_host(self, fake, client, given, host):
        fake.on("getURI", pb.NodeUri(endpoint=given, port=12345))
        assert client.endpoint(STREAM, 1 << 32) == (host, 12345)
        assert fake.calls[0].request.segmentId == 1 << 32
