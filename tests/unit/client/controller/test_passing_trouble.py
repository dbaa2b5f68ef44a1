"""A controller's answers while a segment store is unavailable, and their meaning."""

import uuid

import pytest

from pravega_connector.controller import rpc
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.service import ControllerClient
from pravega_connector.core import retry
from pravega_connector.errors import ControllerError, ControllerFailureError, MalformedStreamCutError, StreamSealedError
from pravega_connector.wire import StreamCut
from tests.support.fakes import FakeController
from tests.unit.client.controller._answers import NO, STREAM, YES, Code

CUT = StreamCut(STREAM, {0: 7})


def statuses(kind: type, *names: str) -> list[object]:
    return [kind(status=name) for name in names]


class TestStatusFailure:
    """Covers every failure inside the controller (StreamMetadataTasks.handle...Error)."""

    def test_creating_a_stream_is_tried_again(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("createStream", *statuses(pb.CreateStreamStatus, "FAILURE", "FAILURE", "SUCCESS"))
        assert client.create_stream(STREAM)
        assert fake.count("createStream") == 3

    def test_creating_a_scope_is_tried_again(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("createScope", *statuses(pb.CreateScopeStatus, "FAILURE", "SCOPE_EXISTS"))
        assert not client.create_scope("scope")

    def test_deleting_is_tried_again(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("deleteStream", *statuses(pb.DeleteStreamStatus, "FAILURE", "STREAM_NOT_FOUND"))
        fake.on("deleteScope", *statuses(pb.DeleteScopeStatus, "FAILURE", "SUCCESS"))
        assert not client.delete_stream(STREAM)
        assert client.delete_scope("scope")

    def test_sealing_is_tried_again(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("sealStream", *statuses(pb.UpdateStreamStatus, "FAILURE", "SUCCESS"))
        client.seal_stream(STREAM)

    @pytest.mark.usefixtures("five_failures")
    def test_what_lasts_is_reported_as_what_may_pass(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("createStream", pb.CreateStreamStatus(status="FAILURE"))
        with pytest.raises(ControllerFailureError, match="cannot create stream scope/stream") as caught:
            client.create_stream(STREAM)
        assert caught.value.retriable

    def test_a_truncation_that_can_be_is_tried_again(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("truncateStream", *statuses(pb.UpdateStreamStatus, "FAILURE", "SUCCESS"))
        fake.on("isStreamCutValid", pb.StreamCutValidityResponse(response=True))
        fake.on("getSegments", segments_at((0, 5)))
        fake.on("getSegmentsBetween", pb.StreamCutRangeResponse(segments=[pb.SegmentId(segmentId=0)]))
        client.truncate_stream(CUT)
        assert fake.count("truncateStream") == 2

    def test_a_truncation_behind_the_head_is_refused_at_once(
        self, fake: FakeController, client: ControllerClient
    ) -> None:
        fake.on("truncateStream", pb.UpdateStreamStatus(status="FAILURE"))
        fake.on("isStreamCutValid", pb.StreamCutValidityResponse(response=True))
        fake.on("getSegments", segments_at((0, 9)))
        with pytest.raises(ControllerError, match="the cut is before the stream's head"):
            client.truncate_stream(CUT)
        assert fake.count("truncateStream") == 1


def segments_at(*places: tuple[int, int]) -> pb.SegmentsAtTime:
    at = pb.SegmentsAtTime.SegmentLocation
    return pb.SegmentsAtTime(
        segments=[at(segmentId=pb.SegmentId(segmentId=number), offset=offset) for number, offset in places]
    )


class TestVerdict:
    """UNKNOWN and INTERNAL mean a wrong argument, or an outage."""

    def test_no_range_while_the_controller_is_in_trouble(self, fake: FakeController, client: ControllerClient) -> None:
        answer = pb.StreamCutRangeResponse(segments=[pb.SegmentId(segmentId=0)])
        fake.on("getSegmentsBetween", *[Code.UNKNOWN] * 5, answer).on("getCurrentSegments", Code.INTERNAL)
        assert client.segments_between(CUT, StreamCut(STREAM, {0: 9})) == [0]

    def test_no_range_while_it_is_well(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("getSegmentsBetween", Code.UNKNOWN).on("getCurrentSegments", pb.SegmentRanges())
        with pytest.raises(MalformedStreamCutError):
            client.segments_between(CUT, StreamCut(STREAM, {0: 9}))
        assert fake.count("getSegmentsBetween") == 3

    def test_a_transaction_on_a_stream_that_is_not_sealed(self, fake: FakeController, client: ControllerClient) -> None:
        begun = pb.CreateTxnResponse(txnId=pb.TxnId(lowBits=7))
        fake.on("createTransaction", *[Code.INTERNAL] * 4, begun)
        fake.on("getCurrentSegments", pb.SegmentRanges(segmentRanges=[{}]))
        assert client.create_transaction(STREAM, 30_000).id.int == 7

    def test_a_transaction_on_a_sealed_stream(self, fake: FakeController, client: ControllerClient) -> None:
        fake.on("createTransaction", Code.INTERNAL).on("getCurrentSegments", pb.SegmentRanges())
        with pytest.raises(StreamSealedError):
            client.create_transaction(STREAM, 30_000)
        assert fake.count("createTransaction") == 3


def test_a_conflict_after_a_long_silence_has_time_to_pass(fake, client, monkeypatch):
    """A controller that stood still does at once what was asked of it in the meantime, several times."""
    monkeypatch.setattr(rpc, "PASSING_SECONDS", 1.0)
    monkeypatch.setattr(retry, "_LONGEST_PAUSE", 0.2)
    silence, conflicts = [Code.UNAVAILABLE] * 10, [Code.FAILED_PRECONDITION] * 2
    fake.on("pingTransaction", *silence, *conflicts, pb.PingTxnStatus(status="OK"))
    client.ping_transaction(STREAM, uuid.UUID(int=1), 1000, timeout=20)
    assert fake.count("pingTransaction") == 13


def test_a_timeout_of_the_controller_s_own_is_not_an_end(fake: FakeController, client: ControllerClient) -> None:
    fake.on("checkScopeExists", Code.DEADLINE_EXCEEDED, Code.DEADLINE_EXCEEDED, NO, YES)
    assert not client.scope_exists("scope")
    assert fake.count("checkScopeExists") == 3
