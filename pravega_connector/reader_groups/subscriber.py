"""Subscribers of a stream: readers whose published positions hold retention back, and let it truncate behind them.

Pravega knows a subscriber as a reader group whose retention type is not NONE. Nothing reads through the group: its
position is published by hand (MANUAL). A group of its own for each stream, in the stream's scope, keeps two streams
of one reader apart.

What the server does with it (``StreamMetadataTasks.truncateInternal`` in 0.13): a stream with a retention policy is
truncated at the position of its slowest subscriber, as long as that keeps the policy's least; beyond its most it is
truncated all the same. A subscriber that has not published yet holds nothing back.

The controller makes a group without a state: that is for the client to write (``ReaderGroupManagerImpl``), and Java
cannot open a group that has none. So it is written here as well, though no position of ours is ever in it.
"""

from __future__ import annotations

import logging
from typing import Final

from pravega_connector.core.events import RawEvents
from pravega_connector.core.values import SubscriberId
from pravega_connector.errors import ConfigError, ConnectorError, ControllerError
from pravega_connector.single_segment.revisioned import RevisionedStreamClient
from pravega_connector.single_segment.synchronizer import encode_init, encode_updates
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import StreamCut, StreamName

_log: Final = logging.getLogger(__name__)


class Subscriber:
    """A named reader of a stream that tells the server what it has done with. Not thread safe.

    The server may drop what lies before the published position, as the stream's retention policy allows, and keeps
    what lies after it up to the policy's upper limit. It stays so after the reader has ended: :meth:`remove` ends it.
    """

    def __init__(self, stores: SegmentStores, stream: StreamName, name: str) -> None:
        if not isinstance(name, str):
            raise ConfigError(f"a subscriber is named by a str, not by {name!r}")
        self._stores, self._controller = stores, stores.controller
        self._id: SubscriberId | None = None
        self.stream = stream
        self.name = name

    @property
    def group(self) -> str:
        """The reader group's name: that of the reader and of the stream."""
        return f"{self.name}.{self.stream.stream}"

    def publish(self, cut: StreamCut) -> None:
        """Tell the server that everything before the cut is done with; it is durable on return.

        Makes the subscriber if need be. Raises ControllerError for a cut before one that was published, ConfigError
        for a name that another application uses.
        """
        if self._controller.update_subscriber(self._made(), cut):
            return
        # The group is older than the stream, or another process has renewed it.
        made = self._remade()
        try:
            self._id = self._controller.renew_subscriber(self.stream, made)
        except ControllerError:
            # It was renewed since, by another process or by a request of ours whose answer was lost.
            if (now := self._remade()) == made:
                raise
            self._id = now
        self._write_state(self._id, again=True)
        self._controller.update_subscriber(self._id, cut)

    def remove(self) -> bool:
        """Hold nothing back any more; False if there was no such subscriber."""
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
        """Write the state that Java's manager opens the group by, unless it has one; ``again``: replace that.

        Positions do not depend on it: what fails is a warning.
        """
        from pravega_connector.controller.methods import subscriber_config  # noqa: PLC0415 - loads gRPC
        from pravega_connector.reader_group_protocol import Init, Ranged, Segment, StateSerializer, group_stream  # noqa: PLC0415 - most clients have no group

        config = subscriber_config(self.stream, made)
        try:
            with RevisionedStreamClient(self._stores, group_stream(self.stream.scope, made.group), RawEvents()) as log:
                end = log.latest_revision()
                has_state = end != log.oldest_revision()
                if has_state and not again:
                    return
                head = self._controller.head_cut(self.stream)
                start = Ranged.of({Segment(self.stream, number): at for number, at in head.positions.items()})
                init = StateSerializer().serialize(Init(config, start))
                # Refused means that another process has written one.
                log.write_conditionally(end, encode_updates([init]) if has_state else encode_init(init))
        except ConnectorError as error:
            _log.warning(
                "reader group %s/%s has no state, so that Java cannot open it (ReaderGroupManager.getReaderGroup); "
                "positions are published all the same: %s",
                self.stream.scope,
                made.group,
                error,
            )
