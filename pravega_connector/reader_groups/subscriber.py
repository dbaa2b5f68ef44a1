"""Subscribers of a stream: readers with published positions, which limit how far retention may truncate.

To Pravega, a subscriber is a reader group with a retention type other than NONE. No reader reads through the group: its
position is published explicitly (MANUAL). Each stream has a separate group in its scope, so two streams of one reader
stay independent.

The server truncates a stream with a retention policy at the position of its slowest subscriber, if that keeps the
policy's minimum. Above the policy's maximum, it truncates in any case (``StreamMetadataTasks.truncateInternal`` in
0.13). A subscriber that has not published a position does not limit truncation.

The controller creates a group without a state, which the client must write (``ReaderGroupManagerImpl``). Java cannot
open a group without a state. So this module writes one, although it never contains a subscriber's position.
"""

from __future__ import annotations

import logging
from typing import Final

from pravega_connector import controller
from pravega_connector.core import arguments
from pravega_connector.core.events import RawEvents
from pravega_connector.core.values import SubscriberId
from pravega_connector.errors import ConfigError, ConnectorError, ControllerError
from pravega_connector.reader_groups import protocol
from pravega_connector.single_segment.revisioned import RevisionedStreamClient
from pravega_connector.single_segment.synchronizer import encode_init, encode_updates
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import StreamCut, StreamName
from pravega_connector.wire.names import group_stream

_log: Final = logging.getLogger(__name__)


class Subscriber:
    """Named reader of a stream that publishes its position to the server. Not thread safe.

    The server may truncate the events before the published position, as the stream's retention policy allows. It keeps
    the events after it, up to the policy's maximum. The position stays effective after the reader has ended, until you
    call :meth:`remove`.
    """

    def __init__(self, stores: SegmentStores, stream: StreamName, name: str) -> None:
        if not isinstance(name, str):
            raise ConfigError(f"the name of a subscriber must be a str, not {name!r}")
        self._stores, self._controller = stores, stores.controller
        self._id: SubscriberId | None = None
        self.stream = stream
        self.name = name

    @property
    def group(self) -> str:
        """Name of the reader group, built from the names of the reader and the stream."""
        return f"{self.name}.{self.stream.stream}"

    def publish(self, cut: StreamCut) -> None:
        """Publish that everything before the cut was processed. Durable on return.

        Creates the subscriber if it does not exist. Raises ControllerError for a cut before a published one, and
        ConfigError for a name that another application uses.
        """
        arguments.instance("cut", cut, StreamCut, "reader.position, client.tail(stream)", optional=False)
        if self._controller.update_subscriber(self._made(), cut):
            return
        # The group is older than the stream, or another process has recreated it.
        made = self._remade()
        try:
            self._id = self._controller.renew_subscriber(self.stream, made)
        except ControllerError:
            # It was recreated since, by another process or by our own request with a lost answer.
            if (now := self._remade()) == made:
                raise
            self._id = now
        self._write_state(self._id, again=True)
        self._controller.update_subscriber(self._id, cut)

    def remove(self) -> bool:
        """Stop limiting truncation. Return False if the subscriber did not exist."""
        if f"{self.stream.scope}/{self.group}" not in self._controller.subscribers(self.stream):
            return False
        made, self._id = self._made(), None
        return self._controller.delete_subscriber(self.stream, made)

    def _remade(self) -> SubscriberId:
        self._id = None
        return self._made()

    def _made(self) -> SubscriberId:
        if self._id is None:
            self._id = self._controller.create_subscriber(self.stream, self.group)
            self._write_state(self._id, again=False)
        return self._id

    def _write_state(self, made: SubscriberId, *, again: bool) -> None:
        """Write the state with which Java's manager opens the group, unless it has one.

        With ``again``, replace an existing state. Positions do not depend on it, so a failure is only a warning.
        """
        config = controller.subscriber_config(self.stream, made)
        try:
            with RevisionedStreamClient(self._stores, group_stream(self.stream.scope, made.group), RawEvents()) as log:
                end = log.latest_revision()
                has_state = end != log.oldest_revision()
                if has_state and not again:
                    return
                head = self._controller.head_cut(self.stream)
                start = protocol.Ranged.of(
                    {protocol.Segment(self.stream, number): at for number, at in head.positions.items()}
                )
                init = protocol.StateSerializer().serialize(protocol.Init(config, start))
                # A refused write means that another process has written a state.
                log.write_conditionally(end, encode_updates([init]) if has_state else encode_init(init))
        except ConnectorError as error:
            _log.warning(
                "reader group %s/%s has no state, so Java cannot open it (ReaderGroupManager.getReaderGroup); "
                "positions are published nevertheless: %s",
                self.stream.scope,
                made.group,
                error,
            )
