"""The state of the reader group that a subscriber is, byte for byte as Java's ReaderGroupManager wrote it (0.13.0)."""

import struct
from typing import Any

from pravega_connector.client import Subscriber
from pravega_connector.core.values import SubscriberId
from pravega_connector.wire import StreamCut, StreamName
from tests.support.fake_stream import FakeSegmentStore, FakeStream

STREAM = StreamName("scope1", "stream2")
# createReaderGroup with MANUAL_RELEASE_AT_USER_STREAMCUT and Java's defaults, without the zeros behind it.
JAVA = bytes.fromhex(
    "000000010000000300000000be8097000003000000003400000000000075300000000000000bb801000e73636f7065312f73747265616d32"
    "0001000e73636f7065312f73747265616d3200010000003800000000000075300000000000000bb801000e73636f7065312f73747265616d"
    "320001000e73636f7065312f73747265616d320000000003020000001901000000000000000034f0b56ab02e4b9eb29577e5db5075df0100"
    "1973636f7065312f73747265616d322f302e2365706f63682e30000000000000000000010000003401001973636f7065312f73747265616d"
    "322f302e2365706f63682e30bff0000000000000bff00000000000000000000000000000020000000100"
)
MADE = SubscriberId("sales.stream2", "34f0b56a-b02e-4b9e-b295-77e5db5075df", 0)


class Groups(FakeStream):
    """A controller that makes the group; the stream on its store holds the group's state."""

    known = True

    def create_subscriber(self, stream: StreamName, group: str) -> SubscriberId:
        assert (stream, group) == (STREAM, MADE.group)
        return MADE

    def renew_subscriber(self, stream: StreamName, subscriber: SubscriberId) -> SubscriberId:
        return subscriber

    def update_subscriber(self, subscriber: SubscriberId, cut: StreamCut, **options: Any) -> bool:
        self.known, known = True, self.known
        return known

    def head_cut(self, stream: StreamName, **options: Any) -> StreamCut:
        return StreamCut(STREAM, {0: 0})


def test_the_first_entry_is_javas_and_a_renewal_is_an_update() -> None:
    with FakeSegmentStore() as store:
        groups = Groups(store, name=StreamName("scope1", "_RGsales.stream2"))
        with groups.client() as client:
            subscriber = Subscriber(client.stores, STREAM, "sales")
            subscriber.publish(StreamCut(STREAM, {0: 10}))
            subscriber.publish(StreamCut(STREAM, {0: 20}))
            entries = store.segments[groups.segment(0)].events
            assert entries == [JAVA]
            groups.known = False  # the stream was made again
            subscriber.publish(StreamCut(STREAM, {0: 30}))
            value = JAVA[4:]
            assert store.segments[groups.segment(0)].events == [JAVA, struct.pack(">ii", 2, len(value)) + value]
