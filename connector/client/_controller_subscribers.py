"""The controller's calls about subscribers: reader groups whose published positions hold retention back."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from google.protobuf.message import Message

from connector.client import _controller_calls as calls
from connector.client._controller_channel import Rpc
from connector.client._controller_messages import cut_message, stream_message
from connector.client._proto import controller_pb2 as pb
from connector.errors import ConfigError
from connector.wire import StreamCut, StreamName

__all__ = ["CHECKPOINTS", "CHECKPOINT_MS", "REFRESH_MS", "SubscriberCalls", "SubscriberId"]

_ANY_ID: Final = str(uuid.UUID(int=0))
# What Java's ReaderGroupConfig has by default; the server checks it, and nobody reads through these groups.
REFRESH_MS: Final = 3000
CHECKPOINT_MS: Final = 30_000
CHECKPOINTS: Final = 3

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


@dataclass(frozen=True, slots=True)
class SubscriberId:
    """A reader group as the controller tells it from an earlier one of the same name."""

    group: str
    """Name of the reader group, in the stream's scope."""
    id: str
    """UUID of the reader group."""
    generation: int
    """How often its configuration was changed."""


class _Caller(Protocol):
    def _settled(self, rpc: Rpc[Q, R], request: Q, action: str, target: StreamName | str) -> R: ...


class SubscriberCalls:
    """The part of the controller's client that is about subscribers."""

    def subscribers(self: _Caller, stream: StreamName) -> list[str]:
        """Names of the reader groups that hold the stream's retention back, as ``scope/group``, sorted."""
        what = "list the subscribers of"
        response = self._settled(calls.SUBSCRIBERS, stream_message(stream), what, stream)
        calls.outcome(pb.SubscribersResponse.Status, response.status, what, stream)
        return sorted(response.subscribers)

    def create_subscriber(self: _Caller, stream: StreamName, group: str) -> SubscriberId:
        """Make a reader group that subscribes to one stream, or give the one that there is.

        Raises ConfigError for a group of that name that does something else, InvalidNameError.
        """
        what = f"make the subscriber {group} of"
        response = self._settled(calls.CREATE_READER_GROUP, _configuration(stream, group), what, stream)
        calls.outcome(pb.CreateReaderGroupResponse.Status, response.status, what, stream)
        config = response.config
        streams = {(cut.streamInfo.scope, cut.streamInfo.stream) for cut in config.startingStreamCuts}
        if streams != {(stream.scope, stream.stream)} or config.retentionType != pb.ReaderGroupConfiguration.MANUAL:
            raise ConfigError(
                f"the reader group {stream.scope}/{group} belongs to somebody else: choose another name for the "
                f"subscriber of {stream}"
            )
        return SubscriberId(group, config.readerGroupId, config.generation)

    def renew_subscriber(self: _Caller, stream: StreamName, subscriber: SubscriberId) -> SubscriberId:
        """Subscribe to a stream again that was deleted and made anew: the server forgets subscribers with a stream.

        (Deleting the group instead is tried by the server for ever: it looks for the subscriber that is gone.)
        """
        request = _configuration(stream, subscriber.group, subscriber.id, subscriber.generation)
        what = f"renew the subscriber {subscriber.group} of"
        response = self._settled(calls.UPDATE_READER_GROUP, request, what, stream)
        calls.outcome(pb.UpdateReaderGroupResponse.Status, response.status, what, stream)
        return SubscriberId(subscriber.group, subscriber.id, response.generation)

    def update_subscriber(self: _Caller, subscriber: SubscriberId, cut: StreamCut) -> bool:
        """Publish a position; False if the stream has no such subscriber (it was made anew, or the subscriber was).

        Raises ControllerError for a position before one that was published already.
        """
        request = pb.SubscriberStreamCut(
            subscriber=f"{cut.stream.scope}/{subscriber.group}",
            generation=subscriber.generation,
            readerGroupId=subscriber.id,
            streamCut=cut_message(cut),
        )
        what = f"publish a position of {subscriber.group} in"
        status = self._settled(calls.UPDATE_SUBSCRIBER, request, what, cut.stream).status
        if status in (pb.UpdateSubscriberStatus.SUBSCRIBER_NOT_FOUND, pb.UpdateSubscriberStatus.GENERATION_MISMATCH):
            return False
        return calls.outcome(pb.UpdateSubscriberStatus.Status, status, what, cut.stream)

    def delete_subscriber(self: _Caller, stream: StreamName, subscriber: SubscriberId) -> bool:
        """Delete a subscriber's reader group; False if it is gone already."""
        request = pb.ReaderGroupInfo(
            scope=stream.scope,
            readerGroup=subscriber.group,
            readerGroupId=subscriber.id,
            generation=subscriber.generation,
        )
        what = f"delete the subscriber {subscriber.group} of"
        status = self._settled(calls.DELETE_READER_GROUP, request, what, stream).status
        if status == pb.DeleteReaderGroupStatus.RG_NOT_FOUND:
            return False
        return calls.outcome(pb.DeleteReaderGroupStatus.Status, status, what, stream)


def _configuration(
    stream: StreamName, group: str, group_id: str = _ANY_ID, generation: int = 0
) -> pb.ReaderGroupConfiguration:
    everything = pb.StreamCut(streamInfo=stream_message(stream))
    return pb.ReaderGroupConfiguration(
        scope=stream.scope,
        readerGroupName=group,
        groupRefreshTimeMillis=REFRESH_MS,
        automaticCheckpointIntervalMillis=CHECKPOINT_MS,
        maxOutstandingCheckpointRequest=CHECKPOINTS,
        retentionType=int(pb.ReaderGroupConfiguration.MANUAL),
        generation=generation,
        readerGroupId=group_id,
        startingStreamCuts=[everything],
        endingStreamCuts=[everything],
    )
