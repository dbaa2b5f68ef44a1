"""The controller's methods that are called, and what its numbered outcomes mean."""

from __future__ import annotations

import re
from typing import Final, Protocol

from google.protobuf.message import Message

from connector.client._controller_channel import Failure, Rpc, not_found
from connector.client._grpc import grpc
from connector.client._proto import controller_pb2 as pb
from connector.errors import (
    ConnectorError,
    ControllerError,
    ControllerFailureError,
    InvalidNameError,
    LeaseRangeError,
    MalformedStreamCutError,
    StreamSealedError,
)
from connector.wire import StreamName

# Seconds; Config.MIN_LEASE_VALUE of the controller, which can be set to something else.
DEFAULT_SHORTEST_LEASE: Final = 10.0
_SAID: Final = 160  # characters of a server's text that an error repeats


def _no_range(failure: Failure) -> ConnectorError | None:
    # A wrong range comes as UNKNOWN without a text, and so does trouble with the controller's own metadata.
    if failure.code is not grpc.StatusCode.UNKNOWN or not failure.is_well():
        return None
    return MalformedStreamCutError(
        f"the controller finds no way in {failure.target} from the start cut to the end cut: the end must not lie "
        "before the start, and both must be cuts of this stream (not of a deleted one of its name)"
    )


def _no_such_segments(failure: Failure) -> ConnectorError | None:
    if failure.code is not grpc.StatusCode.UNKNOWN or not failure.is_well():
        return None
    return MalformedStreamCutError(f"the controller does not know the cut's segments in {failure.target}")


def _no_transaction(failure: Failure) -> ConnectorError | None:
    """A lease outside the bounds comes as UNKNOWN with a free text, in which only the upper bound is a number.

    For a sealed stream the controller answers INTERNAL, as for any trouble of its own: who asks must look.
    """
    target, said = failure.target, failure.said
    if failure.code is grpc.StatusCode.INTERNAL:
        return ControllerFailureError(f"the controller could not begin a transaction on {target}: {said[:_SAID]}")
    if failure.code is not grpc.StatusCode.UNKNOWN or "lease" not in said:
        return None
    bound = re.search(r"max value is (\d+)", said)
    if bound is None:
        return LeaseRangeError(
            f"the controller refuses the lease for a transaction on {target}: it is shorter than the server allows "
            f"({DEFAULT_SHORTEST_LEASE:g} s unless set otherwise: controller.transaction.lease.count.min)"
        )
    longest = int(bound[1]) / 1000
    return LeaseRangeError(
        f"the controller refuses the lease for a transaction on {target}: it is longer than {longest:g} s, "
        "the longest that the server allows (controller.transaction.lease.count.max)",
        longest=longest,
    )


ABORT_TRANSACTION: Final = Rpc("abortTransaction", pb.TxnRequest, pb.TxnStatus)
CHECK_SCALE: Final = Rpc("checkScale", pb.ScaleStatusRequest, pb.ScaleStatusResponse)
COMMIT_TRANSACTION: Final = Rpc("commitTransaction", pb.TxnRequest, pb.TxnStatus)
CREATE_READER_GROUP: Final = Rpc(
    "createReaderGroup", pb.ReaderGroupConfiguration, pb.CreateReaderGroupResponse, works=True
)
CREATE_SCOPE: Final = Rpc("createScope", pb.ScopeInfo, pb.CreateScopeStatus, works=True)
CREATE_STREAM: Final = Rpc("createStream", pb.StreamConfig, pb.CreateStreamStatus, works=True)
# Repeated after a lost answer it begins another one; the first, which nobody knows, ends with its lease.
CREATE_TRANSACTION: Final = Rpc(
    "createTransaction", pb.CreateTxnRequest, pb.CreateTxnResponse, works=True, verdict=_no_transaction
)
CURRENT_SEGMENTS: Final = Rpc("getCurrentSegments", pb.StreamInfo, pb.SegmentRanges)
CUT_VALID: Final = Rpc("isStreamCutValid", pb.StreamCut, pb.StreamCutValidityResponse, verdict=_no_such_segments)
DELEGATION_TOKEN: Final = Rpc("getDelegationToken", pb.StreamInfo, pb.DelegationToken)
DELETE_READER_GROUP: Final = Rpc("deleteReaderGroup", pb.ReaderGroupInfo, pb.DeleteReaderGroupStatus, works=True)
DELETE_SCOPE: Final = Rpc("deleteScope", pb.ScopeInfo, pb.DeleteScopeStatus, works=True)
DELETE_STREAM: Final = Rpc("deleteStream", pb.StreamInfo, pb.DeleteStreamStatus, works=True)
EPOCH_SEGMENTS: Final = Rpc("getEpochSegments", pb.GetEpochSegmentsRequest, pb.SegmentRanges)
LIST_SCOPES: Final = Rpc("listScopes", pb.ScopesRequest, pb.ScopesResponse)
LIST_STREAMS: Final = Rpc("listStreamsInScope", pb.StreamsInScopeRequest, pb.StreamsInScopeResponse)
NOTE_TIMESTAMP: Final = Rpc("noteTimestampFromWriter", pb.TimestampFromWriter, pb.TimestampResponse)
PING_TRANSACTION: Final = Rpc("pingTransaction", pb.PingTxnRequest, pb.PingTxnStatus)
REMOVE_WRITER: Final = Rpc("removeWriter", pb.RemoveWriterRequest, pb.RemoveWriterResponse)
# Repeated after it took effect, it would be refused: its segments are sealed by then.
SCALE: Final = Rpc("scale", pb.ScaleRequest, pb.ScaleResponse, repeatable=False, works=True)
SCOPE_EXISTS: Final = Rpc("checkScopeExists", pb.ScopeInfo, pb.ExistsResponse)
SEAL_STREAM: Final = Rpc("sealStream", pb.StreamInfo, pb.UpdateStreamStatus, works=True)
SEGMENTS_AT: Final = Rpc("getSegments", pb.GetSegmentsRequest, pb.SegmentsAtTime)
SEGMENTS_BETWEEN: Final = Rpc("getSegmentsBetween", pb.StreamCutRange, pb.StreamCutRangeResponse, verdict=_no_range)
STREAM_CONFIG: Final = Rpc("getStreamConfiguration", pb.StreamInfo, pb.StreamConfig)
STREAM_EXISTS: Final = Rpc("checkStreamExists", pb.StreamInfo, pb.ExistsResponse)
SUBSCRIBERS: Final = Rpc("listSubscribers", pb.StreamInfo, pb.SubscribersResponse)
SUCCESSORS: Final = Rpc("getSegmentsImmediatelyFollowing", pb.SegmentId, pb.SuccessorResponse)
TRANSACTION_STATE: Final = Rpc("checkTransactionState", pb.TxnRequest, pb.TxnState)
TRUNCATE_STREAM: Final = Rpc("truncateStream", pb.StreamCut, pb.UpdateStreamStatus, works=True)
UPDATE_READER_GROUP: Final = Rpc(
    "updateReaderGroup", pb.ReaderGroupConfiguration, pb.UpdateReaderGroupResponse, works=True
)
UPDATE_STREAM: Final = Rpc("updateStream", pb.StreamConfig, pb.UpdateStreamStatus, works=True)
UPDATE_SUBSCRIBER: Final = Rpc("updateSubscriberStreamCut", pb.SubscriberStreamCut, pb.UpdateSubscriberStatus)
URI: Final = Rpc("getURI", pb.SegmentId, pb.NodeUri)


class _Enum(Protocol):
    def Name(self, number: int) -> str: ...  # noqa: N802 - protobuf's name


# Outcomes that end well, and whether something was changed. An outcome has one meaning in every message that has it.
_DONE: Final = {
    "SUCCESS": True,
    "STARTED": True,
    "SCOPE_EXISTS": False,
    "STREAM_EXISTS": False,
}
_REFUSED: Final[dict[str, tuple[type[ConnectorError], str]]] = {
    "FAILURE": (ControllerFailureError, "the controller could not do it"),
    "PRECONDITION_FAILED": (
        ControllerError,
        "the stream is being scaled by somebody else, or would have fewer segments than its scaling policy asks for",
    ),
    "INVALID_SCOPE_NAME": (InvalidNameError, "the controller does not take this name"),
    "INVALID_STREAM_NAME": (InvalidNameError, "the controller does not take this name"),
    "INVALID_RG_NAME": (InvalidNameError, "the controller does not take this name"),
    "RG_NOT_FOUND": (ControllerError, "there is no such reader group"),
    "INVALID_CONFIG": (ControllerError, "the reader group was changed by somebody else"),
    "SUBSCRIBER_NOT_FOUND": (ControllerError, "the stream has no such subscriber"),
    "STREAM_CUT_NOT_VALID": (ControllerError, "a later position was published under that name before"),
    "GENERATION_MISMATCH": (ControllerError, "the reader group was changed by somebody else"),
    "SCOPE_NOT_EMPTY": (ControllerError, "it still has streams; seal and delete them first"),
    "STREAM_NOT_SEALED": (ControllerError, "it is not sealed; seal it first"),
    "STREAM_SEALED": (StreamSealedError, "it is sealed"),
    "INVALID_INPUT": (ControllerError, "the controller does not know of it"),
    "INTERNAL_ERROR": (ControllerFailureError, "the controller could not do it"),
}


def outcome(enum: _Enum, number: int, action: str, target: StreamName | str) -> bool:
    """Whether something was changed; raises for an outcome that is a refusal, or a failure that may pass."""
    try:
        name = enum.Name(number)
    except ValueError:  # proto3 hands on the numbers of a newer server
        name = f"status {number}"
    if name in _DONE:
        return _DONE[name]
    scope = target.scope if isinstance(target, StreamName) else target
    if name == "SCOPE_NOT_FOUND":
        raise not_found(scope)
    if name == "STREAM_NOT_FOUND":
        raise not_found(target)
    error, reason = _REFUSED.get(name, (ControllerError, f"the controller answered {name}"))
    raise error(f"cannot {action} {target}: {reason}")


def failed(response: Message) -> bool:
    """Whether the outcome in an answer is a failure of the controller's own, which may pass."""
    for field in response.DESCRIPTOR.fields:
        if field.enum_type is not None and field.name in ("status", "result"):
            value = field.enum_type.values_by_number.get(getattr(response, field.name))
            return value is not None and value.name in ("FAILURE", "INTERNAL_ERROR")
    return False
