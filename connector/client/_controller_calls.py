"""The controller's methods that are called, and what its numbered outcomes mean."""

from __future__ import annotations

from typing import Final, Protocol

from connector.client._controller_channel import Rpc, not_found
from connector.client._proto import controller_pb2 as pb
from connector.errors import (
    ConnectorError,
    ControllerError,
    InvalidNameError,
    MalformedStreamCutError,
    StreamSealedError,
)
from connector.wire import StreamName


def _no_range(target: StreamName | str | None) -> ConnectorError:
    return MalformedStreamCutError(
        f"the controller finds no way in {target} from the start cut to the end cut: the end must not lie before the "
        f"start, and both must be cuts of this stream (not of a deleted one of its name)"
    )


def _no_such_segments(target: StreamName | str | None) -> ConnectorError:
    return MalformedStreamCutError(f"the controller does not know the cut's segments in {target}")


CHECK_SCALE: Final = Rpc("checkScale", pb.ScaleStatusRequest, pb.ScaleStatusResponse)
CREATE_SCOPE: Final = Rpc("createScope", pb.ScopeInfo, pb.CreateScopeStatus)
CREATE_STREAM: Final = Rpc("createStream", pb.StreamConfig, pb.CreateStreamStatus)
CURRENT_SEGMENTS: Final = Rpc("getCurrentSegments", pb.StreamInfo, pb.SegmentRanges)
CUT_VALID: Final = Rpc("isStreamCutValid", pb.StreamCut, pb.StreamCutValidityResponse, unknown=_no_such_segments)
DELEGATION_TOKEN: Final = Rpc("getDelegationToken", pb.StreamInfo, pb.DelegationToken)
DELETE_SCOPE: Final = Rpc("deleteScope", pb.ScopeInfo, pb.DeleteScopeStatus)
DELETE_STREAM: Final = Rpc("deleteStream", pb.StreamInfo, pb.DeleteStreamStatus)
EPOCH_SEGMENTS: Final = Rpc("getEpochSegments", pb.GetEpochSegmentsRequest, pb.SegmentRanges)
LIST_SCOPES: Final = Rpc("listScopes", pb.ScopesRequest, pb.ScopesResponse)
LIST_STREAMS: Final = Rpc("listStreamsInScope", pb.StreamsInScopeRequest, pb.StreamsInScopeResponse)
# Repeated after it took effect, it would be refused: its segments are sealed by then.
SCALE: Final = Rpc("scale", pb.ScaleRequest, pb.ScaleResponse, repeatable=False)
SCOPE_EXISTS: Final = Rpc("checkScopeExists", pb.ScopeInfo, pb.ExistsResponse)
SEAL_STREAM: Final = Rpc("sealStream", pb.StreamInfo, pb.UpdateStreamStatus)
SEGMENTS_AT: Final = Rpc("getSegments", pb.GetSegmentsRequest, pb.SegmentsAtTime)
SEGMENTS_BETWEEN: Final = Rpc("getSegmentsBetween", pb.StreamCutRange, pb.StreamCutRangeResponse, unknown=_no_range)
STREAM_CONFIG: Final = Rpc("getStreamConfiguration", pb.StreamInfo, pb.StreamConfig)
STREAM_EXISTS: Final = Rpc("checkStreamExists", pb.StreamInfo, pb.ExistsResponse)
SUCCESSORS: Final = Rpc("getSegmentsImmediatelyFollowing", pb.SegmentId, pb.SuccessorResponse)
TRUNCATE_STREAM: Final = Rpc("truncateStream", pb.StreamCut, pb.UpdateStreamStatus)
UPDATE_STREAM: Final = Rpc("updateStream", pb.StreamConfig, pb.UpdateStreamStatus)
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
    "FAILURE": (ControllerError, "the controller could not do it"),
    "PRECONDITION_FAILED": (
        ControllerError,
        "the stream is being scaled by somebody else, or would have fewer segments than its scaling policy asks for",
    ),
    "INVALID_SCOPE_NAME": (InvalidNameError, "the controller does not take this name"),
    "INVALID_STREAM_NAME": (InvalidNameError, "the controller does not take this name"),
    "SCOPE_NOT_EMPTY": (ControllerError, "it still has streams; seal and delete them first"),
    "STREAM_NOT_SEALED": (ControllerError, "it is not sealed; seal it first"),
    "STREAM_SEALED": (StreamSealedError, "it is sealed"),
    "INVALID_INPUT": (ControllerError, "the controller does not know of it"),
    "INTERNAL_ERROR": (ControllerError, "the controller could not do it"),
}


def outcome(enum: _Enum, number: int, action: str, target: StreamName | str, hint: str = "") -> bool:
    """Whether something was changed; raises for an outcome that is a refusal. ``hint`` explains a bare FAILURE."""
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
    if name == "FAILURE" and hint:
        reason = hint
    raise error(f"cannot {action} {target}: {reason}")
