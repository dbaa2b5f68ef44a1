"""The controller's calls about event time: what a writer has reached, from which the controller makes watermarks."""

from __future__ import annotations

from typing import Final, Protocol, TypeVar

from google.protobuf.message import Message

from connector.client import _controller_calls as calls
from connector.client._controller_channel import Rpc
from connector.client._controller_messages import cut_message, stream_message
from connector.client._deadline import Deadline
from connector.client._health import ClusterHealth
from connector.client._proto import controller_pb2 as pb
from connector.errors import ConfigError, ControllerError
from connector.wire import StreamCut, StreamName

__all__ = ["EventTimeCalls", "check_millis"]

_MAX_LONG: Final = 2**63 - 1

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


class _Caller(Protocol):
    health: ClusterHealth

    def _call(
        self, rpc: Rpc[Q, R], request: Q, target: StreamName | str | None, deadline: Deadline | None = None
    ) -> R: ...

    def _settled(self, rpc: Rpc[Q, R], request: Q, action: str, target: StreamName | str) -> R: ...


def check_millis(millis: int) -> int:
    """A time as servers take it: milliseconds in a Java long. Raises ConfigError."""
    # The least long stands for "no time" (Watermark.EMPTY, and commits without a timestamp).
    if not -_MAX_LONG <= millis <= _MAX_LONG:
        raise ConfigError(f"{millis} is no time in milliseconds: it does not fit into 64 bits")
    return millis


class EventTimeCalls:
    """The part of :class:`ControllerClient` that is about event time."""

    def note_time(self: _Caller, writer_id: str, position: StreamCut, millis: int) -> bool:
        """Note that what a writer wrote before a position is of a time or earlier, and what follows of it or later.

        False if it has noted a later time, or position, before: nothing is changed then.
        """
        stream, statuses = position.stream, pb.TimestampResponse
        request = pb.TimestampFromWriter(
            writer=writer_id, position=cut_message(position), timestamp=check_millis(millis)
        )
        status = self._settled(calls.NOTE_TIMESTAMP, request, f"note a time of writer {writer_id} of", stream).result
        if status in (statuses.SUCCESS, statuses.INVALID_TIME, statuses.INVALID_POSITION):
            return status == statuses.SUCCESS
        raise ControllerError(f"time {millis} of writer {writer_id} of stream {stream} could not be noted")

    def remove_writer(self: _Caller, stream: StreamName, writer_id: str, *, timeout: float | None = None) -> bool:
        """Let the watermarks of a stream not wait for a writer any longer; False if it has noted no time."""
        request = pb.RemoveWriterRequest(writer=writer_id, stream=stream_message(stream))
        status = self._call(calls.REMOVE_WRITER, request, stream, self.health.deadline(timeout)).result
        if status in (pb.RemoveWriterResponse.SUCCESS, pb.RemoveWriterResponse.UNKNOWN_WRITER):
            return status == pb.RemoveWriterResponse.SUCCESS
        raise ControllerError(f"writer {writer_id} of stream {stream} could not be removed")
