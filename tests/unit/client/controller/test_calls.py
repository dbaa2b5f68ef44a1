"""Deadlines, repetitions, errors, credentials; what a real controller answers is in tests/integration."""

import threading
import time

import pytest

from pravega_connector.config import PravegaConfig
from pravega_connector.controller import calls
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.service import ControllerClient
from pravega_connector.errors import (
    AuthenticationError,
    ConfigError,
    ControllerError,
    ControllerFailureError,
    ControllerUnavailableError,
    InvalidNameError,
    ScopeNotFoundError,
    StreamNotFoundError,
    StreamSealedError,
)
from tests.support.fakes import SilentServer
from tests.support.stopwatch import Stopwatch
from tests.unit.client.controller._answers import NO, STREAM, YES, Code, one_line


class TestDeadline:
    def test_nobody_listens(self, closed_port):
        uri = f"tcp://127.0.0.1:{closed_port}"
        started = Stopwatch()
        with pytest.raises(ControllerUnavailableError) as caught:
            ControllerClient(PravegaConfig(controller=uri), timeout=1).scope_exists("scope")
        assert started.lasted(0.9)
        assert started.within(10)
        text = one_line(caught.value)
        assert f"the controller at {uri} could not be reached for 1 s (checkScopeExists scope)" in text
        assert "check host and port" in text

    def test_somebody_listens_and_says_nothing(self):
        with SilentServer() as silent:
            started = Stopwatch()
            with pytest.raises(ControllerUnavailableError):
                ControllerClient(PravegaConfig(controller=silent.uri), timeout=0.8).scope_exists("scope")
            assert started.within(10)
            assert silent.accepted

    def test_a_slow_answer(self, fake):
        released = threading.Event()
        fake.on("checkScopeExists", lambda _: released.wait(10) and YES)
        with pytest.raises(ControllerUnavailableError, match=r"did not answer within 0\.3 s"):
            ControllerClient(PravegaConfig(controller=fake.uri), timeout=0.3).scope_exists("scope")
        released.set()

    def test_one_deadline_covers_all_repetitions(self, fake):
        fake.on("checkScopeExists", Code.UNAVAILABLE)
        started = Stopwatch()
        with pytest.raises(ControllerUnavailableError, match="could not be reached for 1 s"):
            ControllerClient(PravegaConfig(controller=fake.uri), timeout=1).scope_exists("scope")
        assert started.within(10)
        assert fake.count("checkScopeExists") >= 3

    def test_one_deadline_covers_all_pages(self, fake):
        names = iter(range(10**9))

        def endless(_: object) -> pb.ScopesResponse:
            time.sleep(0.05)
            return pb.ScopesResponse(scopes=[f"scope{next(names)}"])

        fake.on("listScopes", endless)
        with pytest.raises(ControllerUnavailableError, match=r"did not answer within 1 s"):
            ControllerClient(PravegaConfig(controller=fake.uri), timeout=1).list_scopes()
        assert fake.count("listScopes") > 2

    def test_must_be_positive(self):
        with pytest.raises(ConfigError, match="timeout must be above 0 s"):
            ControllerClient(PravegaConfig(), timeout=0)


class TestRepetition:
    def test_until_the_controller_is_back(self, fake, client):
        fake.on("checkScopeExists", Code.UNAVAILABLE, Code.CANCELLED, YES)
        assert client.scope_exists("scope")
        assert fake.count("checkScopeExists") == 3

    @pytest.mark.parametrize(
        "code", [Code.ABORTED, Code.FAILED_PRECONDITION, Code.INTERNAL, Code.RESOURCE_EXHAUSTED, Code.UNKNOWN]
    )
    @pytest.mark.usefixtures("five_failures")
    def test_as_long_as_a_failover_for_codes_that_may_pass(self, fake, code):
        with ControllerClient(PravegaConfig(controller=fake.uri), timeout=30, failover_timeout=30) as client:
            fake.on("checkScopeExists", code, code, code, code, YES)
            assert client.scope_exists("scope")
            fake.on("checkScopeExists", code)
            fake.calls.clear()
            text = f"failed in checkScopeExists scope with {code.name}: said the fake"
            with pytest.raises(ControllerFailureError, match=text) as caught:
                client.scope_exists("scope")
        assert caught.value.retriable
        assert fake.count("checkScopeExists") == 5

    @pytest.mark.parametrize("code", [Code.INVALID_ARGUMENT, Code.ALREADY_EXISTS, Code.OUT_OF_RANGE, Code.DATA_LOSS])
    def test_never_for_others(self, fake, client, code):
        fake.on("checkScopeExists", code, YES)
        with pytest.raises(ControllerError, match=code.name):
            client.scope_exists("scope")
        assert fake.count("checkScopeExists") == 1

    def test_goes_to_the_next_endpoint(self, fake, closed_port):
        fake.on("checkScopeExists", YES)
        uri = f"tcp://127.0.0.1:{closed_port},127.0.0.1:{fake.port}"
        with ControllerClient(PravegaConfig(controller=uri), timeout=60) as client:
            started = Stopwatch()
            assert client.scope_exists("scope")
            assert started.within(20)
            assert client.scope_exists("scope")
        assert fake.count("checkScopeExists") == 2


class TestErrors:
    def test_prose_decides_nothing_and_is_cut_short(self, fake, client):
        fake.details = "NOT_FOUND UNAUTHENTICATED " + "x" * 1000 + "\n\tat java.lang.Thread.run(Thread.java:840)"
        fake.on("getCurrentSegments", Code.INVALID_ARGUMENT)
        with pytest.raises(ControllerError) as caught:
            client.current_segments(STREAM)
        assert type(caught.value) is ControllerError
        text = one_line(caught.value)
        assert "NOT_FOUND UNAUTHENTICATED xxx" in text
        assert "Thread" not in text
        assert len(text) < 400

    def test_another_kind_of_server(self, client):
        with pytest.raises(ControllerError, match="is not a Pravega controller, or is too old for this call"):
            client.list_scopes()

    @pytest.mark.parametrize(
        ("stream", "scope", "error", "text"),
        [
            (NO, YES, StreamNotFoundError, "stream scope/stream does not exist: check its name and scope, or create"),
            (NO, NO, ScopeNotFoundError, "scope scope does not exist: check its name, or create it first"),
            (YES, YES, ControllerError, "scope/stream has no such segment or epoch"),
            (Code.INTERNAL, YES, StreamNotFoundError, "stream scope/stream does not exist"),
        ],
    )
    @pytest.mark.usefixtures("five_failures")
    def test_what_is_missing(self, fake, client, stream, scope, error, text):
        fake.on("getEpochSegments", Code.NOT_FOUND).on("checkStreamExists", stream).on("checkScopeExists", scope)
        with pytest.raises(error, match=text) as caught:
            client.epoch_segments(STREAM, 3)
        assert type(caught.value) is error

    @pytest.mark.parametrize(
        ("name", "rpc", "answer"),
        [
            ("current_segments", "getCurrentSegments", pb.SegmentRanges()),
            ("head_cut", "getSegments", pb.SegmentsAtTime()),
            (
                "stream_config",
                "getStreamConfiguration",
                pb.StreamConfig(scalingPolicy=pb.ScalingPolicy(minNumSegments=1)),
            ),
        ],
    )
    def test_a_stream_that_another_client_is_creating_is_waited_for(self, fake, client, name, rpc, answer):
        fake.on("checkStreamExists", YES).on(rpc, Code.NOT_FOUND, Code.NOT_FOUND, answer)
        getattr(client, name)(STREAM)
        assert fake.count(rpc) == 3

    def test_a_creation_that_was_broken_off_is_said(self, fake, client, monkeypatch):
        monkeypatch.setattr(calls, "_CREATION_SECONDS", 0.3)
        fake.on("checkStreamExists", YES).on("getCurrentSegments", Code.NOT_FOUND)
        with pytest.raises(ControllerError, match="scope/stream is being created, or its creation was interrupted"):
            client.current_segments(STREAM)

    @pytest.mark.parametrize(
        ("status", "error", "text"),
        [
            ("STREAM_NOT_FOUND", StreamNotFoundError, "stream scope/stream does not exist"),
            ("SCOPE_NOT_FOUND", ScopeNotFoundError, "scope scope does not exist"),
            ("STREAM_SEALED", StreamSealedError, "cannot seal stream scope/stream: it is sealed"),
            ("FAILURE", ControllerError, "cannot seal stream scope/stream: the controller failed"),
        ],
    )
    @pytest.mark.usefixtures("five_failures")
    def test_refused_updates(self, fake, client, status, error, text):
        fake.on("checkStreamExists", NO).on("checkScopeExists", YES)
        fake.on("sealStream", pb.UpdateStreamStatus(status=status))
        with pytest.raises(error, match=text):
            client.seal_stream(STREAM)

    @pytest.mark.parametrize("name", ["a/b", "", "ä", "x" * 256])
    def test_names_are_checked_before_anything_is_sent(self, fake, client, name):
        for call in (client.create_scope, client.delete_scope, client.scope_exists, client.list_streams):
            with pytest.raises(InvalidNameError):
                call(name)
        assert not fake.calls

    def test_name_refused_by_the_server(self, fake, client):
        fake.on("createScope", pb.CreateScopeStatus(status="INVALID_SCOPE_NAME"))
        with pytest.raises(InvalidNameError, match="cannot create scope scope: the controller refuses this name"):
            client.create_scope("scope")


class TestCredentials:
    CONFIG = PravegaConfig().with_credentials("admin", "hunter2")

    def test_go_with_every_call(self, fake):
        fake.on("checkScopeExists", YES)
        with ControllerClient(self.CONFIG.with_controller(fake.uri)) as client:
            client.scope_exists("scope")
        assert fake.calls[0].metadata["authorization"] == "Basic YWRtaW46aHVudGVyMg=="

    def test_none_without_them(self, fake, client):
        fake.on("checkScopeExists", YES)
        client.scope_exists("scope")
        assert "authorization" not in fake.calls[0].metadata

    @pytest.mark.parametrize(
        ("code", "text"),
        [
            (Code.UNAUTHENTICATED, "refuses the credentials .* check user and password"),
            (Code.PERMISSION_DENIED, "does not permit this call with these credentials"),
        ],
    )
    def test_refused(self, fake, code, text):
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

    def test_missing(self, fake, client):
        fake.on("checkScopeExists", Code.UNAUTHENTICATED)
        with pytest.raises(AuthenticationError, match=r"requires credentials .*pravega_client_auth_method"):
            client.scope_exists("scope")


def test_a_token_that_no_request_to_a_store_can_contain(client, fake):
    fake.on("getDelegationToken", lambda _: pb.DelegationToken(delegationToken="t" * 65_535))
    assert len(client.delegation_token(STREAM, write=True)) == 65_535
    fake.on("getDelegationToken", lambda _: pb.DelegationToken(delegationToken="t" * 65_536))
    with pytest.raises(AuthenticationError) as caught:
        client.delegation_token(STREAM, write=True)
    text = one_line(caught.value)
    assert "a token of 65536 characters for stream scope/stream; segment stores accept 65535 bytes" in text
    assert "ttt" not in text
