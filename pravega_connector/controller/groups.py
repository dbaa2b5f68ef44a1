"""Calls about subscribers and reader groups."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pravega_connector.controller import methods
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.calls import ControllerCalls
from pravega_connector.core.values import SubscriberId
from pravega_connector.wire import StreamCut, StreamName

if TYPE_CHECKING:
    from pravega_connector.reader_groups.protocol import GroupConfig


class GroupCalls(ControllerCalls):
    """Calls about subscribers and reader groups."""

    # ---- subscribers ----

    def subscribers(self, stream: StreamName) -> list[str]:
        """Return the reader groups that limit the stream's retention, as ``scope/group``, sorted."""
        request = methods.stream_message(stream)
        return sorted(self._done(methods.SUBSCRIBERS, request, "list the subscribers of", stream).subscribers)

    def create_subscriber(self, stream: StreamName, group: str) -> SubscriberId:
        """Create a reader group that subscribes to one stream, or return the existing one.

        Raises ConfigError for a group of that name with another purpose, and InvalidNameError.
        """
        what = f"create the subscriber {group} of"
        request = methods.group_message(stream.scope, group, methods.subscriber_config(stream))
        response = self._done(methods.CREATE_READER_GROUP, request, what, stream)
        return methods.decode_subscriber(response.config, stream, group)

    def renew_subscriber(self, stream: StreamName, subscriber: SubscriberId) -> SubscriberId:
        """Subscribe again to a recreated stream. The server forgets subscribers when a stream is deleted.

        Deleting the group instead would make the server retry forever: it looks for the deleted subscriber.
        """
        request = methods.group_message(stream.scope, subscriber.group, methods.subscriber_config(stream, subscriber))
        what = f"renew the subscriber {subscriber.group} of"
        generation = self._done(methods.UPDATE_READER_GROUP, request, what, stream).generation
        return SubscriberId(subscriber.group, subscriber.id, generation)

    def update_subscriber(self, subscriber: SubscriberId, cut: StreamCut, *, scope: str | None = None) -> bool:
        """Publish a position. Return False if the stream has no such subscriber.

        In that case, the stream or the subscriber was recreated. The group is in the stream's scope, or in ``scope``.
        Raises ControllerError for a position before one that was already published.
        """
        request = methods.position_message(scope or cut.stream.scope, subscriber, cut)
        what = f"publish a position of {subscriber.group} in"
        status = self._settled(methods.UPDATE_SUBSCRIBER, request, what, cut.stream).status
        if status in (pb.UpdateSubscriberStatus.SUBSCRIBER_NOT_FOUND, pb.UpdateSubscriberStatus.GENERATION_MISMATCH):
            return False
        return methods.outcome(pb.UpdateSubscriberStatus.Status, status, what, cut.stream)

    def delete_subscriber(self, stream: StreamName, subscriber: SubscriberId) -> bool:
        """Delete a subscriber's reader group. Return False if it does not exist."""
        what = f"delete the subscriber {subscriber.group} of"
        request = methods.group_info(stream.scope, subscriber.group, methods.subscriber_config(stream, subscriber))
        return self._delete_group(request, what, stream)

    # ---- reader groups ----

    def create_group(self, scope: str, group: str, config: GroupConfig) -> GroupConfig:
        """Create a reader group without a state. Return its configuration, or that of an existing group.

        The creator sets a random id and the generation 0. Raises InvalidNameError.
        """
        request = methods.group_message(scope, group, config)
        response = self._done(methods.CREATE_READER_GROUP, request, f"create the reader group {group} in scope", scope)
        return methods.decode_group(response.config)

    def group_config(self, scope: str, group: str) -> GroupConfig | None:
        """Return the configuration of a reader group; None if the group does not exist."""
        request, what = methods.group_info(scope, group), f"look up the reader group {group} in scope"
        response = self._settled(methods.GROUP_CONFIG, request, what, scope)
        if response.status == pb.ReaderGroupConfigResponse.RG_NOT_FOUND:
            return None
        methods.outcome(pb.ReaderGroupConfigResponse.Status, response.status, what, scope)
        return methods.decode_group(response.config)

    def update_group(self, scope: str, group: str, config: GroupConfig) -> GroupConfig | None:
        """Change the configuration of the group with this id and generation, and return it with the next generation.

        Returns None if the group has another id or generation by now: another process was faster, or an answer was
        lost. Raises ControllerError if the group does not exist.
        """
        request, what = methods.group_message(scope, group, config), f"change the reader group {group} in scope"
        response = self._settled(methods.UPDATE_READER_GROUP, request, what, scope)
        if response.status == pb.UpdateReaderGroupResponse.INVALID_CONFIG:
            return None
        methods.outcome(pb.UpdateReaderGroupResponse.Status, response.status, what, scope)
        return replace(config, generation=response.generation)

    def delete_group(self, scope: str, group: str, config: GroupConfig) -> bool:
        """Delete the reader group with this id, including its state. Return False if it does not exist."""
        request = methods.group_info(scope, group, config)
        return self._delete_group(request, f"delete the reader group {group} in scope", scope)

    def _delete_group(self, request: pb.ReaderGroupInfo, what: str, target: StreamName | str) -> bool:
        status = self._settled(methods.DELETE_READER_GROUP, request, what, target).status
        if status == pb.DeleteReaderGroupStatus.RG_NOT_FOUND:
            return False
        return methods.outcome(pb.DeleteReaderGroupStatus.Status, status, what, target)
