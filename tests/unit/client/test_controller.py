"""The controller client against a server that fails on request; what a real one answers is in tests/integration."""

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from connector.client import ControllerClient, RetentionPolicy, ScalingPolicy, StreamConfig
from connector.client._grpc import grpc
from connector.client._proto import controller_pb2 as pb
from connector.config import PravegaConfig
from connector.errors import (
    AuthenticationError,
    ConfigError,
    ConnectorError,
    ControllerError,
    ControllerUnavailableError,
    DeadlineExceededError,
    InvalidNameError,
    MalformedStreamCutError,
    ScopeNotFoundError,
    StreamNotFoundError,
    StreamSealedError,
)
from connector.wire import SegmentRange, StreamCut, StreamName
from tests.fakes import FakeController, SilentServer, unused_port

STREAM = StreamName("scope", "stream")
YES, NO = pb.ExistsResponse(exists=True), pb.ExistsResponse(exists=False)
Code = grpc.StatusCode


@pytest.fixture
def fake() -> Iterator[FakeController]:
    with FakeController() as server:
        yield server


@pytest.fixture
def client(fake: FakeController) -> Iterator[ControllerClient]:
    with ControllerClient(PravegaConfig(controller=fake.uri), timeout=5) as made:
        yield made


def ranges(*segments: tuple[int, float, float]) -> pb.SegmentRanges:
    return pb.SegmentRanges(
        segmentRanges=[
            pb.SegmentRange(segmentId=pb.SegmentId(segmentId=number), minKey=low, maxKey=high)
            for number, low, high in segments
        ]
    )


def one_line(error: BaseException) -> str:
    text = str(error)
    assert text.startswith("[PRAVEGA-")
    assert "\n" not in text
    return text


class TestDeadline:
    def test_nobody_listens(self) -> None:
        uri = f"tcp://127.0.0.1:{unused_port()}"
        started = time.monotonic()
        with pytest.raises(ControllerUnavailableError) as caught:
            ControllerClient(PravegaConfig(controller=uri), timeout=0.8).scope_exists("scope")
        assert 0.6 < time.monotonic() - started < 2
        text = one_line(caught.value)
        assert f"the controller at {uri} could not be reached for 0.8 s (checkScopeExists scope)" in text
        assert "check host and port" in text

    def test_somebody_listens_and_says_nothing(self) -> None:
        with SilentServer() as silent:
            started = time.monotonic()
            with pytest.raises(ControllerUnavailableError):
                ControllerClient(PravegaConfig(controller=silent.uri), timeout=0.8).scope_exists("scope")
            assert time.monotonic() - started < 2
            assert silent.accepted

    def test_a_slow_answer(self, fake: FakeController) -> None:
        released = threading.Event()
        fake.on("checkScopeExists", lambda _: released.wait(10) and YES)
        with pytest.raises(ControllerUnavailableError, match=r"did not answer within 0\.3 s"):
            ControllerClient(PravegaConfig(controller=fake.uri), timeout=0.3).scope_exists("scope")
        released.set()

    def test_one_deadline_covers_all_repetitions(self, fake: FakeController) -> None:
        fake.on("checkScopeExists", Code.UNAVAILABLE)
        started = time.monotonic()
        with pytest.raises(ControllerUnavailableError, match="could not be reached for 1 s"):
            ControllerClient(PravegaConfig(controller=fake.uri), timeout=1).scope_exists("scope")
        assert time.monotonic() - started < 2
        assert fake.count("checkScopeExists") >= 3

    def test_one_deadline_covers_all_pages(self, fake: FakeController) -> None:
        names = iter(range(10**9))

        def endless(_: object) -> pb.ScopesResponse:
            time.sleep(0.05)
            return pb.ScopesResponse(scopes=[f"scope{next(names)}"])

        fake.on("listScopes", endless)
        with pytest.raises(ControllerUnavailableError, match=r"did not answer within 0\.5 s"):
            ControllerClient(PravegaConfig(controller=fake.uri), timeout=0.5).list_scopes()
        assert fake.count("listScopes") > 2

    def test_must_be_positive(self) -> None:
        with pytest.raises(ConfigError, match="timeout must be more than 0 s"):
            ControllerClient(PravegaConfig(), timeout=0)


class TestRepetition:
    def test_until_the_controller_is_back(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("checkScopeExists", Code.UNAVAILABLE, Code.UNAVAILABLE, YES)
        assert client.scope_exists("scope")
        assert fake.count("checkScopeExists") == 3

    @pytest.mark.parametrize(
        "code", [Code.ABORTED, Code.FAILED_PRECONDITION, Code.INTERNAL, Code.RESOURCE_EXHAUSTED, Code.UNKNOWN]
    )
    def test_a_few_times_for_codes_that_may_pass(
        self, fake: FakeController, client: ControllerClient, code: Code
    ) -> None:
        fake.on("checkScopeExists", code, code, YES)
        assert client.scope_exists("scope")
        fake.on("checkScopeExists", code)
        fake.calls.clear()
        with pytest.raises(ControllerError, match=f"failed in checkScopeExists scope with {code.name}: said the fake"):
            client.scope_exists("scope")
        assert fake.count("checkScopeExists") == 3

    @pytest.mark.parametrize("code", [Code.INVALID_ARGUMENT, Code.ALREADY_EXISTS, Code.OUT_OF_RANGE, Code.DATA_LOSS])
    def test_never_for_others(self, fake: FakeController, client: ControllerClient, code: Code) -> None:
        fake.on("checkScopeExists", code, YES)
        with pytest.raises(ControllerError, match=code.name):
            client.scope_exists("scope")
        assert fake.count("checkScopeExists") == 1

    def test_goes_to_the_next_endpoint(self, fake: FakeController) -> None:
        fake.on("checkScopeExists", YES)
        uri = f"tcp://127.0.0.1:{unused_port()},127.0.0.1:{fake.port}"
        with ControllerClient(PravegaConfig(controller=uri), timeout=5) as client:
            started = time.monotonic()
            assert client.scope_exists("scope")
            assert time.monotonic() - started < 2
            assert client.scope_exists("scope")
        assert fake.count("checkScopeExists") == 2


class TestErrors:
    def test_prose_decides_nothing_and_is_cut_short(self, fake: FakeController, client: ControllerClient) -> None:
        fake.details = "NOT_FOUND UNAUTHENTICATED " + "x" * 1000 + "\n\tat java.lang.Thread.run(Thread.java:840)"
        fake.on("getCurrentSegments", Code.INVALID_ARGUMENT)
        with pytest.raises(ControllerError) as caught:
            client.current_segments(STREAM)
        assert type(caught.value) is ControllerError
        text = one_line(caught.value)
        assert "NOT_FOUND UNAUTHENTICATED xxx" in text
        assert "Thread" not in text
        assert len(text) < 400

    def test_another_kind_of_server(self, client: ControllerClient) -> None:
        with pytest.raises(ControllerError, match="is no Pravega controller, or one too old for this"):
            client.list_scopes()

    @pytest.mark.parametrize(
        ("stream", "scope", "error", "text"),
        [
            (NO, YES, StreamNotFoundError, "there is no stream scope/stream: check the name, or create it first"),
            (NO, NO, ScopeNotFoundError, "there is no scope scope: check the name, or create it first"),
            (YES, YES, ControllerError, "scope/stream has no such segment or epoch"),
            (Code.INTERNAL, YES, StreamNotFoundError, "there is no stream scope/stream"),
        ],
    )
    def test_what_is_missing(
        self,
        fake: FakeController,
        client: ControllerClient,
        stream: pb.ExistsResponse | Code,
        scope: pb.ExistsResponse,
        error: type[Exception],
        text: str,
    ) -> None:
        fake.on("getEpochSegments", Code.NOT_FOUND).on("checkStreamExists", stream).on("checkScopeExists", scope)
        with pytest.raises(error, match=text) as caught:
            client.epoch_segments(STREAM, 3)
        assert type(caught.value) is error

    @pytest.mark.parametrize(
        ("status", "error", "text"),
        [
            ("STREAM_NOT_FOUND", StreamNotFoundError, "there is no stream scope/stream"),
            ("SCOPE_NOT_FOUND", ScopeNotFoundError, "there is no scope scope"),
            ("STREAM_SEALED", StreamSealedError, "cannot seal stream scope/stream: it is sealed"),
            ("FAILURE", ControllerError, "cannot seal stream scope/stream: the controller could not do it"),
        ],
    )
    def test_refused_updates(
        self, fake: FakeController, client: ControllerClient, status: str, error: type[Exception], text: str
    ) -> None:
        fake.on("checkStreamExists", NO).on("checkScopeExists", YES)
        fake.on("sealStream", pb.UpdateStreamStatus(status=status))
        with pytest.raises(error, match=text):
            client.seal_stream(STREAM)

    @pytest.mark.parametrize("name", ["a/b", "", "ä", "x" * 256])
    def test_names_are_checked_before_anything_is_sent(
        self, fake: FakeController, client: ControllerClient, name: str
    ) -> None:
        for call in (client.create_scope, client.delete_scope, client.scope_exists, client.list_streams):
            with pytest.raises(InvalidNameError):
                call(name)
        assert not fake.calls

    def test_name_refused_by_the_server(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("createScope", pb.CreateScopeStatus(status="INVALID_SCOPE_NAME"))
        with pytest.raises(InvalidNameError, match="cannot create scope scope: the controller does not take this name"):
            client.create_scope("scope")


class TestCredentials:
    CONFIG = PravegaConfig().with_credentials("admin", "hunter2")

    def test_go_with_every_call(self, fake: FakeController) -> None:
        fake.on("checkScopeExists", YES)
        with ControllerClient(self.CONFIG.with_controller(fake.uri)) as client:
            client.scope_exists("scope")
        assert fake.calls[0].metadata["authorization"] == "Basic YWRtaW46aHVudGVyMg=="

    def test_none_without_them(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("checkScopeExists", YES)
        client.scope_exists("scope")
        assert "authorization" not in fake.calls[0].metadata

    @pytest.mark.parametrize(
        ("code", "text"),
        [
            (Code.UNAUTHENTICATED, "refuses the credentials .* check user and password"),
            (Code.PERMISSION_DENIED, "does not permit this with the credentials given"),
        ],
    )
    def test_refused(self, fake: FakeController, code: Code, text: str) -> None:
        fake.on("checkScopeExists", code)
        with (
            ControllerClient(self.CONFIG.with_controller(fake.uri)) as client,
            pytest.raises(AuthenticationError, match=text) as caught,
        ):
            client.scope_exists("scope")
        assert fake.count("checkScopeExists") == 1
        for shown in (one_line(caught.value), repr(caught.value), repr(client)):
            assert "hunter2" not in shown
            assert "YWRtaW46" not in shown

    def test_missing(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("checkScopeExists", Code.UNAUTHENTICATED)
        with pytest.raises(AuthenticationError, match=r"asks for credentials .*pravega_client_auth_method"):
            client.scope_exists("scope")


class TestScaling:
    BEFORE = ranges((0, 0.0, 0.5), (1, 0.5, 1.0))
    AFTER = ranges((1, 0.5, 1.0), ((1 << 32) + 2, 0.0, 0.2), ((1 << 32) + 3, 0.2, 0.5))
    STARTED = pb.ScaleResponse(status="STARTED", epoch=1)
    NEW = ((0.0, 0.2), (0.2, 0.5))

    def scale(self, client: ControllerClient, timeout: float = 5.0) -> list[SegmentRange]:
        return client.scale_stream(STREAM, [0], self.NEW, timeout=timeout)

    def test_waits_until_it_is_done(self, fake: FakeController, client: ControllerClient) -> None:
        running, done = pb.ScaleStatusResponse(status="IN_PROGRESS"), pb.ScaleStatusResponse(status="SUCCESS")
        fake.on("getCurrentSegments", self.BEFORE, self.AFTER).on("scale", self.STARTED)
        fake.on("checkScale", running, running, running, done)
        assert [segment.id for segment in self.scale(client)] == [1, (1 << 32) + 2, (1 << 32) + 3]
        assert fake.count("checkScale") == 4
        request = next(call.request for call in fake.calls if call.name == "scale")
        assert list(request.sealedSegments) == [0]
        assert [(entry.start, entry.end) for entry in request.newKeyRanges] == list(self.NEW)
        assert abs(request.scaleTimestamp / 1000 - time.time()) < 60

    def test_not_for_ever(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("getCurrentSegments", self.BEFORE).on("scale", self.STARTED)
        fake.on("checkScale", pb.ScaleStatusResponse(status="IN_PROGRESS"))
        started = time.monotonic()
        with pytest.raises(
            DeadlineExceededError, match=r"was not scaled within 0\.5 s; the controller goes on with it"
        ):
            self.scale(client, timeout=0.5)
        assert time.monotonic() - started < 2

    def test_a_lost_answer_after_it_was_done(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("getCurrentSegments", self.BEFORE, self.AFTER).on("scale", Code.UNAVAILABLE)
        assert len(self.scale(client)) == 3
        assert fake.count("scale") == 1

    def test_a_lost_answer_before_it_was_done(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("getCurrentSegments", self.BEFORE, self.BEFORE, self.AFTER)
        fake.on("scale", Code.UNAVAILABLE, self.STARTED).on("checkScale", pb.ScaleStatusResponse(status="SUCCESS"))
        assert len(self.scale(client)) == 3
        assert fake.count("scale") == 2

    def test_is_never_repeated_without_looking(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("getCurrentSegments", self.BEFORE).on("scale", Code.INTERNAL)
        with pytest.raises(ControllerError, match="INTERNAL"):
            self.scale(client)
        assert fake.count("scale") == 1

    @pytest.mark.parametrize("status", ["FAILURE", "PRECONDITION_FAILED"])
    def test_refused(self, fake: FakeController, client: ControllerClient, status: str) -> None:
        fake.on("getCurrentSegments", self.BEFORE).on("scale", pb.ScaleResponse(status=status))
        with pytest.raises(ControllerError, match="cannot scale stream scope/stream: "):
            self.scale(client)

    def test_failed_on_the_way(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("getCurrentSegments", self.BEFORE).on("scale", self.STARTED)
        fake.on("checkScale", pb.ScaleStatusResponse(status="INVALID_INPUT"))
        with pytest.raises(
            ControllerError, match="cannot scale stream scope/stream: the controller does not know of it"
        ):
            self.scale(client)

    @pytest.mark.parametrize(
        ("seal", "new", "text"),
        [
            ([], [(0.0, 1.0)], "name the segments to replace"),
            ([0, 0], [(0.0, 0.5)], "each of them once"),
            ([7], [(0.0, 0.5)], r"scope/stream/7\.#epoch\.0 is not one of its current segments"),
            ([0], [(0.0, 0.4)], r"must cover \[0, 0.5\) once, as the replaced segments do; they are \[0, 0.4\)"),
            ([0], [(0.0, 0.3), (0.2, 0.5)], "must cover"),
            ([0], [(0.0, 0.2), (0.3, 0.5)], "must cover"),
            ([0], [], "they are none"),
            ([0], [(0.5, 0.0)], r"\[0.5, 0.0\) is not a key range"),
            ([0], [(0.0, 1.5)], r"\[0.0, 1.5\) is not a key range"),
            ([0], [(0.0, float("nan"))], "is not a key range"),
        ],
    )
    def test_what_cannot_be_right_is_not_sent(
        self, fake: FakeController, client: ControllerClient, seal: list[int], new: list[tuple[float, float]], text: str
    ) -> None:
        fake.on("getCurrentSegments", self.BEFORE)
        with pytest.raises(ConfigError, match=text) as caught:
            client.scale_stream(STREAM, seal, new)
        one_line(caught.value)
        assert not fake.count("scale")

    def test_sealed_stream(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("getCurrentSegments", pb.SegmentRanges())
        with pytest.raises(StreamSealedError):
            self.scale(client)

    def test_thirds_do_not_fail_on_rounding(self, fake: FakeController, client: ControllerClient) -> None:
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
            ({2 | 1 << 32: 0}, {0: 9, 1: 9}, "its segments come before those of the start"),
            ({0: 1}, {}, "without segments bounds nothing"),
            ({}, {0: 1}, "without segments bounds nothing"),
        ],
    )
    def test_order(
        self, fake: FakeController, client: ControllerClient, start: dict[int, int], end: dict[int, int], text: str
    ) -> None:
        with pytest.raises(MalformedStreamCutError, match=text) as caught:
            client.segments_between(self.cut(start), self.cut(end))
        one_line(caught.value)
        assert not fake.calls

    def test_of_two_streams(self, client: ControllerClient) -> None:
        other = self.cut({0: 1}, StreamName("scope", "other"))
        with pytest.raises(
            MalformedStreamCutError, match="the start is a cut of scope/stream, the end one of scope/other"
        ):
            client.segments_between(self.cut({0: 1}), other)

    def test_order_that_only_the_controller_can_tell(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("getSegmentsBetween", Code.UNKNOWN)
        with pytest.raises(MalformedStreamCutError, match="the end must not lie before the start"):
            client.segments_between(self.cut({0: 1}), self.cut({0: 2}))

    def test_between(self, fake: FakeController, client: ControllerClient) -> None:
        ids = [pb.SegmentId(segmentId=number) for number in (3 | 1 << 32, 0, 2 | 1 << 32)]
        fake.on("getSegmentsBetween", pb.StreamCutRangeResponse(segments=ids))
        found = client.segments_between(self.cut({0: 1}), self.cut({2 | 1 << 32: -1, 3 | 1 << 32: 7}))
        assert found == [0, 2 | 1 << 32, 3 | 1 << 32]
        request = fake.calls[0].request
        assert dict(getattr(request, "from")) == {0: 1}
        assert dict(request.to) == {2 | 1 << 32: -1, 3 | 1 << 32: 7}

    def test_cut_of_unknown_segments_is_not_valid(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("isStreamCutValid", Code.UNKNOWN)  # a NullPointerException, at the server
        assert not client.is_cut_valid(self.cut({77: 1}))


class TestLists:
    def test_pages(self, fake: FakeController, client: ControllerClient) -> None:
        def page(token: str, *names: str) -> pb.ScopesResponse:
            return pb.ScopesResponse(scopes=names, continuationToken=pb.ContinuationToken(token=token))

        fake.on("listScopes", page("1", "b", "_system"), page("2", "a"), page("2"))
        assert client.list_scopes() == ["_system", "a", "b"]
        assert [call.request.continuationToken.token for call in fake.calls] == ["", "1", "2"]

    def test_a_server_that_repeats_a_page(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("listScopes", pb.ScopesResponse(scopes=["a"]))
        assert client.list_scopes() == ["a"]

    def test_streams(self, fake: FakeController, client: ControllerClient) -> None:
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

    def test_of_a_missing_scope(self, fake: FakeController, client: ControllerClient) -> None:
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
    def test_round_trip(self, fake: FakeController, client: ControllerClient, config: StreamConfig) -> None:
        fake.on("createStream", pb.CreateStreamStatus(status="SUCCESS"))
        assert client.create_stream_with(STREAM, config)
        fake.on("getStreamConfiguration", fake.calls[0].request)
        assert client.stream_config(STREAM) == config

    def test_retention_without_an_upper_limit_of_an_old_stream(
        self, fake: FakeController, client: ControllerClient
    ) -> None:
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
            (lambda: ScalingPolicy(kind="more"), "'more' is no scaling policy; there are: fixed, events, kbytes"),
            (lambda: RetentionPolicy.by_time(-1), "the retention must be a whole number from 0"),
            (lambda: RetentionPolicy.by_size(10, 9), "the most that is retained must be a whole number from 10"),
            (lambda: RetentionPolicy(kind="more", least=1), "'more' is no retention policy; there are: time, size"),
        ],
    )
    def test_policies_that_cannot_be(self, make: object, text: str) -> None:
        with pytest.raises(ConfigError, match=text):
            make()  # type: ignore[operator]


class TestEndpoint:
    @pytest.mark.parametrize(
        ("given", "host"),
        [("0.0.0.0", "127.0.0.1"), ("localhost", "127.0.0.1"), ("", "127.0.0.1"), ("store-7", "store-7")],
    )
    def test_nowhere_is_the_controller_s_host(
        self, fake: FakeController, client: ControllerClient, given: str, host: str
    ) -> None:
        fake.on("getURI", pb.NodeUri(endpoint=given, port=12345))
        assert client.endpoint(STREAM, 1 << 32) == (host, 12345)
        assert fake.calls[0].request.segmentId == 1 << 32


class TestLifeCycle:
    def test_nothing_is_connected_before_the_first_call(self) -> None:
        with SilentServer() as silent:
            ControllerClient(PravegaConfig(controller=silent.uri)).close()
            assert not silent.accepted

    def test_closed(self, client: ControllerClient) -> None:
        client.close()
        client.close()
        with pytest.raises(ControllerError, match="this controller client is closed"):
            client.scope_exists("scope")

    def test_closing_ends_a_call_of_another_thread(self, fake: FakeController, client: ControllerClient) -> None:
        arrived, released = threading.Event(), threading.Event()

        def slow(_: object) -> pb.ExistsResponse:
            arrived.set()
            released.wait(10)
            return YES

        errors: list[ConnectorError] = []

        def call() -> None:
            try:
                client.scope_exists("scope")
            except ConnectorError as error:
                errors.append(error)

        fake.on("checkScopeExists", slow)
        thread = threading.Thread(target=call)
        thread.start()
        assert arrived.wait(10)
        client.close()
        thread.join(10)
        released.set()
        assert [str(error) for error in errors] == [
            "[PRAVEGA-CONTROLLER] this controller client is closed; make a new one"
        ]

    def test_threads_share_one_connection(self, fake: FakeController, client: ControllerClient) -> None:
        together = threading.Barrier(6)  # a call from each must be under way at once

        def answer(_: object) -> pb.ExistsResponse:
            together.wait(10)
            return YES

        fake.on("checkScopeExists", answer)
        found: list[bool] = []
        threads = [threading.Thread(target=lambda: found.append(client.scope_exists("scope"))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert found == [True] * 6
        assert len(client._channel._connections) == 1

    def test_pickle(self, fake: FakeController) -> None:
        fake.on("checkScopeExists", YES)
        config = PravegaConfig(controller=fake.uri).with_credentials("admin", "hunter2")
        with ControllerClient(config, timeout=7) as client:
            assert client.scope_exists("scope")  # so that there is a channel, which cannot be pickled
            copy = pickle.loads(pickle.dumps(client))
        with copy:
            assert copy.scope_exists("scope")
        assert repr(copy) == f"ControllerClient('{fake.uri}', timeout=7)"
        assert fake.calls[1].metadata["authorization"].startswith("Basic ")

    START = """
import os, subprocess, sys
from connector.client import ControllerClient
from connector.config import PravegaConfig
from connector.errors import ControllerError

client = ControllerClient(PravegaConfig(controller=sys.argv[1]), timeout=10)
"""
    FORK = """
child = os.fork()
if not child:
    try:
        client.scope_exists("child")
    except ControllerError as error:
        print(error, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
client.scope_exists("parent")
"""

    def run(self, fake: FakeController, program: str) -> tuple[str, list[str]]:
        fake.on("checkScopeExists", YES)
        command = [sys.executable, "-W", "ignore", "-c", self.START + program, fake.uri]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
        done = subprocess.run(command, check=True, timeout=60, env=environment, stdout=subprocess.PIPE, text=True)
        return done.stdout, [call.request.scope for call in fake.calls]

    def test_works_in_a_forked_child(self, fake: FakeController) -> None:
        assert self.run(fake, self.FORK) == ("", ["child", "parent"])

    def test_is_refused_in_a_forked_child_where_grpc_would_hang(self, fake: FakeController) -> None:
        output, scopes = self.run(fake, "client.scope_exists('first')" + self.FORK)
        assert output.startswith(
            "[PRAVEGA-CONTROLLER] gRPC cannot be used in a process forked from one that has used it"
        )
        assert scopes == ["first", "parent"]

    def test_others_may_fork_to_exec(self, fake: FakeController) -> None:
        # PySpark starts its JVM with a preexec_fn, hence by a real fork.
        program = """
for _ in range(30):
    client.scope_exists("scope")
    subprocess.run(["true"], check=True, preexec_fn=lambda: None)
"""
        assert self.run(fake, program)[1] == ["scope"] * 30
