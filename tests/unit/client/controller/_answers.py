"""Answers for the tests of the controller client."""

from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.rpc import grpc
from pravega_connector.wire import StreamName

STREAM = StreamName("scope", "stream")
YES, NO = pb.ExistsResponse(exists=True), pb.ExistsResponse(exists=False)
Code = grpc.StatusCode


def one_line(error: BaseException) -> str:
    text = str(error)
    assert text.startswith("[PRAVEGA-")
    assert "\n" not in text
    return text
