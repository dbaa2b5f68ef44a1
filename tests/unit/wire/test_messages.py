"""Wire messages: the bytes of each, and what is made of bytes that are none."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.errors import ProtocolError
from pravega_connector.testing.requests import Append, RequestDecoder, frame, split_events
from pravega_connector.wire import (
    MAX_FRAME_SIZE,
    AppendSetup,
    AuthTokenCheckFailed,
    BlockAppend,
    ConditionalAppend,
    ConditionalBlockEnd,
    ConditionalCheckFailed,
    CreateTransientSegment,
    DataAppended,
    ErrorMessage,
    GetSegmentAttribute,
    GetStreamSegmentInfo,
    Hello,
    InvalidEventNumber,
    KeepAlive,
    MergeSegments,
    MessageDecoder,
    NoSuchSegment,
    OperationUnsupported,
    ReadSegment,
    ReadTable,
    ReadTableEntries,
    ReadTableKeys,
    RemoveTableKeys,
    SegmentAttribute,
    SegmentAttributeUpdated,
    SegmentCreated,
    SegmentIsSealed,
    SegmentIsTruncated,
    SegmentRead,
    SegmentsMerged,
    SegmentTruncated,
    SetupAppend,
    StreamSegmentInfo,
    TableEntriesRead,
    TableEntriesUpdated,
    TableKeyBadVersion,
    TableKeyDoesNotExist,
    TableKeysRead,
    TableKeysRemoved,
    TableRead,
    TruncateSegment,
    UpdateSegmentAttribute,
    UpdateTableEntries,
    WireEntry,
    WireKey,
    WrongHost,
    decode,
    encode,
    messages,
    parse_header,
)

UUID = bytes(range(16))
SEGMENT = "s/t/0.#epoch.0"
NAME = struct.pack(">H", len(SEGMENT)) + SEGMENT.encode()
EMPTY = b"\0\0"  # an empty text
STACK = "java.lang.Exception: ü"
STACK_BYTES = b"\x00\x17java.lang.Exception: \xc3\xbc"
ONE = b"\0\0\0\0\0\0\0\x01"
TWO = b"\0\0\0\0\0\0\0\x02"
THREE = b"\0\0\0\0\0\0\0\x03"
MINUS_ONE = b"\xff" * 8
TOKEN = b"\0\x03tok"
COUNT_1 = b"\0\0\0\1"
KEY = b"\0\0\0\x0f\0\0\0\x03key"  # the version follows
VALUE = b"\0\0\0\x07\0\0\0\x03abc"
NO_VALUE = b"\0\0\0\4\0\0\0\0"

# Bodies as WireCommands.java (0.13) lays them out; checked against a real server in tests/integration.
REQUESTS = [
    (Hello(), -127, b"\0\0\0\x10\0\0\0\x05"),
    (SetupAppend(1, UUID, SEGMENT, "tok"), 1, ONE + UUID + NAME + b"\0\x03tok"),
    (ReadSegment(SEGMENT, 2, 1 << 20, "", 3), 9, NAME + TWO + b"\0\x10\0\0" + EMPTY + THREE),
    (GetStreamSegmentInfo(1, SEGMENT, ""), 11, ONE + NAME + EMPTY),
    (CreateTransientSegment(1, UUID, SEGMENT, ""), 40, ONE + UUID + NAME + EMPTY),
    (
        MergeSegments(1, SEGMENT, "s/t/x", "", attribute_id=UUID, new_value=1),
        58,
        ONE + NAME + b"\0\x05s/t/x" + EMPTY + b"\0\0\0\1" + UUID + b"\4" + ONE + b"\x80" + bytes(7),
    ),
    (ConditionalBlockEnd(UUID, 1, 2, b"abc", 3), 89, UUID + ONE + TWO + b"\0\0\0\x03abc" + THREE),
    (ConditionalAppend(UUID, 1, 2, b"abc", 3), 5, UUID + ONE + TWO + b"\0\0\0\0\0\0\0\x03abc" + THREE),
    (GetSegmentAttribute(1, SEGMENT, UUID, "tok"), 34, ONE + NAME + UUID + b"\0\x03tok"),
    (UpdateSegmentAttribute(1, SEGMENT, UUID, 2, -1, ""), 36, ONE + NAME + UUID + TWO + MINUS_ONE + EMPTY),
    (TruncateSegment(1, SEGMENT, 2, ""), 38, ONE + NAME + TWO + EMPTY),
    (ReadTable(1, SEGMENT, "tok", (WireKey(b"key", 2),)), 78, ONE + NAME + TOKEN + COUNT_1 + KEY + TWO),
    (
        UpdateTableEntries(1, SEGMENT, "tok", (WireEntry(b"key", 2, b"abc"), WireEntry(b"key", -1, b""))),
        74,
        ONE + NAME + TOKEN + b"\0\0\0\2" + KEY + TWO + VALUE + KEY + MINUS_ONE + NO_VALUE + MINUS_ONE,
    ),
    (
        RemoveTableKeys(1, SEGMENT, "tok", (WireKey(b"key"),)),
        76,
        ONE + NAME + TOKEN + COUNT_1 + KEY + b"\x80" + bytes(7) + MINUS_ONE,
    ),
    (
        ReadTableKeys(1, SEGMENT, "tok", 10, b"", b"", b"a", b"zz"),
        83,
        ONE + NAME + TOKEN + b"\0\0\0\x0a" + bytes(8) + b"\0\0\0\1a\0\0\0\2zz",
    ),
    (
        ReadTableEntries(1, SEGMENT, "tok", 10, b"", b"", b"a", b"zz"),
        85,
        ONE + NAME + TOKEN + b"\0\0\0\x0a" + bytes(8) + b"\0\0\0\1a\0\0\0\2zz",
    ),
    (KeepAlive(), 100, b""),
]
REPLIES = [
    (Hello(16, 5), -127, b"\0\0\0\x10\0\0\0\x05"),
    (AppendSetup(1, SEGMENT, UUID, -(2**63)), 2, ONE + NAME + UUID + b"\x80" + bytes(7)),
    (DataAppended(UUID, 2, -1, 1, 3), 7, UUID + TWO + MINUS_ONE + ONE + THREE),
    (SegmentRead(SEGMENT, 2, True, False, b"xyz", 3), 10, NAME + TWO + b"\1\0" + b"\0\0\0\x03xyz" + THREE),
    (StreamSegmentInfo(1, SEGMENT, True, False, True, 2, 3, 1), 12, ONE + NAME + b"\1\0\1" + TWO + THREE + ONE),
    (ConditionalCheckFailed(UUID, 2, 1), 8, UUID + TWO + ONE),
    (SegmentCreated(1, SEGMENT), 21, ONE + NAME),
    (SegmentAttribute(1, -1), 35, ONE + MINUS_ONE),
    (SegmentAttributeUpdated(1, True), 37, ONE + b"\1"),
    (SegmentTruncated(1, SEGMENT), 39, ONE + NAME),
    (WrongHost(1, SEGMENT, "", STACK), 50, ONE + NAME + EMPTY + STACK_BYTES),
    (SegmentIsSealed(1, SEGMENT, STACK, -1), 51, ONE + NAME + STACK_BYTES + MINUS_ONE),
    (NoSuchSegment(1, SEGMENT, STACK, -1), 53, ONE + NAME + STACK_BYTES + MINUS_ONE),
    (InvalidEventNumber(UUID, 1, STACK, 2), 55, UUID + ONE + STACK_BYTES + TWO),
    (SegmentIsTruncated(1, SEGMENT, 3, STACK, 2), 56, ONE + NAME + THREE + STACK_BYTES + TWO),
    (OperationUnsupported(1, "seal", STACK), 57, ONE + b"\0\x04seal" + STACK_BYTES),
    (SegmentsMerged(1, SEGMENT, "s/t/x", 3), 59, ONE + NAME + b"\0\x05s/t/x" + THREE),
    (TableRead(1, SEGMENT, (WireEntry(b"key", 2, b"abc"),)), 79, ONE + NAME + COUNT_1 + KEY + TWO + VALUE),
    (
        TableRead(1, SEGMENT, (WireEntry(b"key", -1, b""), WireEntry(b"key", 2, b"abc"))),
        79,
        ONE + NAME + b"\0\0\0\2" + KEY + MINUS_ONE + NO_VALUE + KEY + TWO + VALUE,
    ),
    (TableEntriesUpdated(1, (2, 3)), 75, ONE + b"\0\0\0\2" + TWO + THREE),
    (TableKeysRemoved(1, SEGMENT), 77, ONE + NAME),
    (TableKeyDoesNotExist(1, SEGMENT, STACK), 81, ONE + NAME + STACK_BYTES),
    (TableKeyBadVersion(1, SEGMENT, STACK), 82, ONE + NAME + STACK_BYTES),
    (TableKeysRead(1, SEGMENT, (WireKey(b"key", 2),), b"xyz"), 84, ONE + NAME + COUNT_1 + KEY + TWO + b"\0\0\0\3xyz"),
    # An empty key has no version: WireCommands.TableKey.EMPTY.
    (TableKeysRead(1, SEGMENT, (WireKey(b""),), b""), 84, ONE + NAME + COUNT_1 + b"\0\0\0\x0c" + bytes(4) + bytes(4)),
    (
        TableEntriesRead(1, SEGMENT, (WireEntry(b"key", 2, b"abc"),), b""),
        86,
        ONE + NAME + COUNT_1 + KEY + TWO + VALUE + bytes(4),
    ),
    (AuthTokenCheckFailed(1, STACK, 1), 60, ONE + STACK_BYTES + b"\0\0\0\1"),
    (ErrorMessage(1, SEGMENT, STACK, -1), 61, ONE + NAME + STACK_BYTES + b"\xff\xff\xff\xff"),
    (KeepAlive(), 100, b""),
]
LONGS = st.integers(-(2**63), 2**63 - 1)
KEYS = st.binary(min_size=1, max_size=30)
VALUES = {
    "q": LONGS,
    "i": st.integers(-(2**31), 2**31 - 1),
    "1": st.integers(-128, 127),
    "?": st.booleans(),
    "u": st.binary(min_size=16, max_size=16),
    "s": st.text(max_size=40),
    "b": st.binary(max_size=100),
    "e": st.binary(max_size=100),
    "k": st.lists(st.builds(WireKey, KEYS, LONGS), max_size=4).map(tuple),
    "t": st.lists(st.builds(WireEntry, KEYS, LONGS, st.binary(max_size=30)), max_size=4).map(tuple),
    "v": st.lists(LONGS, max_size=4).map(tuple),
}


def replies():
    built = [st.builds(cls, *(VALUES[kind] for kind in cls.LAYOUT)) for cls in messages.REPLIES.values()]
    return st.one_of(built)


def name_of(case):
    return type(case).__name__ if hasattr(case, "LAYOUT") else None


@pytest.mark.parametrize(("message", "type_code", "body"), REQUESTS, ids=name_of)
def test_a_request_has_the_bytes_that_java_expects(message, type_code, body):
    assert encode(message) == struct.pack(">ii", type_code, len(body)) + body


@pytest.mark.parametrize(("message", "type_code", "body"), REPLIES, ids=name_of)
def test_a_reply_is_read_from_the_bytes_that_java_writes(message, type_code, body):
    assert decode(type_code, memoryview(body)) == message


@pytest.mark.parametrize("kind", messages.MESSAGES.values(), ids=lambda cls: cls.__name__)
def test_a_message_is_whole(kind):
    assert len(kind.LAYOUT) == len(kind.__struct_fields__)
    assert set(kind.LAYOUT) <= {*VALUES}, "a new kind of field: docs/project/how-to-add.md says where it goes"
    assert kind.__name__ in messages.__all__, "put it into __all__ of pravega_connector/wire/messages.py"
    name, samples = ("REPLIES", REPLIES) if issubclass(kind, messages.Reply) else ("REQUESTS", REQUESTS)
    assert kind in {type(message) for message, _, _ in samples}, f"{name} above has to have its bytes"


def test_a_message_is_known_from_its_definition_on(monkeypatch):
    monkeypatch.setattr(messages, "REPLIES", dict(messages.REPLIES))
    monkeypatch.setattr(messages, "MESSAGES", dict(messages.MESSAGES))

    class Added(messages.Reply):
        TYPE = 1000
        LAYOUT = "q"
        request_id: int

    assert messages.REPLIES[1000] is Added
    with pytest.raises(TypeError, match="Other and Added have the same type 1000"):

        class Other(messages.Reply):
            TYPE = 1000
            LAYOUT = ""

    with pytest.raises(TypeError, match="AskedToo and SetupAppend have the same type 1"):

        class AskedToo(messages.Message):
            TYPE = 1
            LAYOUT = ""


def test_an_append_surrounds_the_events_with_its_block_and_end():
    events = frame(b"one") + frame(b"")
    before, after = BlockAppend(UUID, 7, 9).around(len(events), 2)
    assert before == struct.pack(">ii", 3, 16 + len(events)) + UUID
    assert after == struct.pack(">ii", 4, 44) + UUID + struct.pack(">iiiqq", len(events), 0, 2, 7, 9)
    assert RequestDecoder().feed(before + events + after) == [Append(UUID, events, 2, 7, 9)]


@pytest.mark.parametrize(
    ("in_block", "size", "behind"),
    [
        pytest.param(frame(b"whole") + struct.pack(">ii", -1, 3) + bytes(3), 13, b"", id="padding"),
        pytest.param(struct.pack(">ii", -2, 10) + frame(b"begun")[:10], 0, frame(b"begun")[10:], id="an event in two"),
        pytest.param(None, 0, frame(b"alone"), id="no block"),
    ],
)
def test_a_server_takes_blocks_as_javas_writers_end_them(in_block, size, behind):
    """Java's AppendBatchSizeTracker guesses a block's size: CommandEncoder ends it with what exists."""
    block = b"" if in_block is None else struct.pack(">ii", 3, 16 + len(in_block)) + UUID + in_block
    body = UUID + struct.pack(">ii", size, len(behind)) + behind + struct.pack(">iqq", 1, 7, 9)
    (append,) = RequestDecoder().feed(block + struct.pack(">ii", 4, len(body)) + body)
    assert (append.event_count, append.last_event_number) == (1, 7)
    assert split_events(append.data) in ([b"whole"], [b"begun"], [b"alone"])


@given(replies())
def test_every_reply_comes_back_from_its_bytes(message):
    data = encode(message)
    type_code, length = parse_header(data)
    assert (type_code, length) == (message.TYPE, len(data) - 8)
    assert decode(type_code, memoryview(data)[8:]) == message


@given(replies(), st.binary(min_size=1, max_size=20))
def test_fields_that_later_versions_append_are_ignored(message, more):
    assert decode(message.TYPE, memoryview(encode(message)[8:] + more)) == message


@given(st.data())
def test_a_message_that_is_cut_short_is_a_protocol_error(data):
    message = data.draw(replies().filter(lambda m: m.LAYOUT))
    body = encode(message)[8:]
    size = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(ProtocolError) as caught:
        decode(message.TYPE, memoryview(body)[:size])
    assert str(caught.value).startswith("[PRAVEGA-PROTOCOL] ")


@given(st.sampled_from(sorted(messages.REPLIES)), st.binary(max_size=120))
def test_any_bytes_are_a_message_or_a_protocol_error(type_code, body):
    with contextlib.suppress(ProtocolError):
        assert type_code == decode(type_code, memoryview(body)).TYPE


@given(st.integers(-(2**31), 2**31 - 1).filter(lambda t: t not in messages.REPLIES), st.binary(max_size=20))
def test_a_message_of_an_unknown_type_is_a_protocol_error_that_names_it(type_code, body):
    with pytest.raises(ProtocolError, match=str(type_code)):
        decode(type_code, memoryview(body))


def test_odd_bytes_of_a_stack_trace_do_not_hide_the_reply():
    modified_utf8 = b"\xc0\x80 \xed\xa0\x80"  # Java's NUL, and half a surrogate pair
    body = ONE + NAME + struct.pack(">H", len(modified_utf8)) + modified_utf8 + MINUS_ONE
    reply = decode(NoSuchSegment.TYPE, memoryview(body))
    assert (reply.request_id, reply.segment, reply.offset) == (1, SEGMENT, -1)


@pytest.mark.parametrize("length", [-1, -(2**31), MAX_FRAME_SIZE + 1, 2**31 - 1])
def test_a_length_that_no_server_sends_is_a_protocol_error(length):
    header = struct.pack(">ii", SegmentRead.TYPE, length)
    with pytest.raises(ProtocolError, match=str(length)):
        parse_header(header)
    with pytest.raises(ProtocolError, match=str(length)):
        MessageDecoder().feed(header)


@given(st.lists(replies(), max_size=6), st.lists(st.integers(0, 500), max_size=12))
def test_messages_are_the_same_however_the_bytes_arrive(messages, cuts):
    data = b"".join(map(encode, messages))
    decoder, found, at = MessageDecoder(), [], 0
    for cut in [*sorted(cuts), len(data)]:
        found += decoder.feed(data[at:cut])
        at = max(at, cut)
    assert found == messages


def test_the_rest_of_a_message_may_come_later():
    decoder = MessageDecoder()
    data = encode(DataAppended(UUID, 1, -1, 1, 11))
    assert decoder.feed(data[:-1]) == []
    assert decoder.feed(data[-1:] + data[:9]) == [DataAppended(UUID, 1, -1, 1, 11)]
    assert decoder.feed(data[9:]) == [DataAppended(UUID, 1, -1, 1, 11)]
