"""The first entry of a reader group's state, byte for byte as Java's ReaderGroupManager wrote it (client 0.13.0)."""

import struct
import uuid

from connector.wire import StreamCut, StreamName, SubscriberConfig, encode_group_init, group_stream

STREAM = StreamName("scope1", "stream2")
CONFIG = SubscriberConfig(
    stream=STREAM,
    id=uuid.UUID("34f0b56a-b02e-4b9e-b295-77e5db5075df"),
    generation=0,
    checkpoint_ms=30_000,
    refresh_ms=3000,
    checkpoints=3,
)
# createReaderGroup with MANUAL_RELEASE_AT_USER_STREAMCUT and Java's defaults, without the zeros behind it.
JAVA = bytes.fromhex(
    "000000010000000300000000be8097000003000000003400000000000075300000000000000bb801000e73636f7065312f73747265616d32"
    "0001000e73636f7065312f73747265616d3200010000003800000000000075300000000000000bb801000e73636f7065312f73747265616d"
    "320001000e73636f7065312f73747265616d320000000003020000001901000000000000000034f0b56ab02e4b9eb29577e5db5075df0100"
    "1973636f7065312f73747265616d322f302e2365706f63682e30000000000000000000010000003401001973636f7065312f73747265616d"
    "322f302e2365706f63682e30bff0000000000000bff00000000000000000000000000000020000000100"
)


def test_the_first_entry_is_javas() -> None:
    assert encode_group_init(CONFIG, StreamCut(STREAM, {0: 0}), again=False) == JAVA
    assert group_stream("scope1", "sales.stream2") == StreamName("scope1", "_RGsales.stream2")


def test_a_state_that_replaces_another_is_an_update() -> None:
    value = JAVA[4:]
    again = encode_group_init(CONFIG, StreamCut(STREAM, {0: 0}), again=True)
    assert again == struct.pack(">ii", 2, len(value)) + value
