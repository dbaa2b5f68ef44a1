"""Replies that belong to another request: each ends its connection, none counts as success or as data.

Each kind of request is answered once, and then always, with a reply that differs from the right one in one field or is
of another kind. The false reply says that the work is done, and it is not.
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pravega_connector.client import PravegaClient, Revision, StreamName
from pravega_connector.core import events
from pravega_connector.errors import (
    ConnectionLostError,
    ControllerUnavailableError,
    DeadlineExceededError,
    OutcomeUnknownError,
    UnexpectedReplyError,
)
from pravega_connector.single_segment.byte_stream import RawByteWriter
from pravega_connector.single_segment.conditional_append import NumberedAppender
from pravega_connector.stores.segments import sealed_lengths
from pravega_connector.testing import InProcessPravega
from pravega_connector.testing.requests import Append, frame
from pravega_connector.wire import (
    NO_ATTRIBUTE,
    AppendSetup,
    BlockAppend,
    ConditionalAppend,
    ConditionalBlockEnd,
    ConditionalCheckFailed,
    CreateTransientSegment,
    DataAppended,
    GetSegmentAttribute,
    GetStreamSegmentInfo,
    Hello,
    MergeSegments,
    Message,
    NoSuchSegment,
    ReadSegment,
    ReadTable,
    ReadTableEntries,
    ReadTableKeys,
    RemoveTableKeys,
    SegmentAttribute,
    SegmentAttributeUpdated,
    SegmentCreated,
    SegmentIsSealed,
    SegmentRead,
    SegmentsMerged,
    SegmentTruncated,
    SetupAppend,
    StreamSegmentInfo,
    TableEntriesRead,
    TableEntriesUpdated,
    TableKeysRead,
    TableKeysRemoved,
    TableRead,
    TruncateSegment,
    UpdateSegmentAttribute,
    UpdateTableEntries,
    WireEntry,
    replies,
)
from pravega_serde import serializer_for
from tests.support.stopwatch import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OTHER = "scope/other/0.#epoch.0"
LARGE = b"large" * 100
FIRST, MINE = frame(b"first"), frame(b"mine")
HASTE = 0.15  # seconds of a call that cannot succeed
AFTER_FALSE_REPLIES = (UnexpectedReplyError, OutcomeUnknownError, DeadlineExceededError)
NOT_REACHED = (ConnectionLostError, ControllerUnavailableError)
_numbers = itertools.count()


@pytest.fixture(scope="module")
def pravega() -> Iterator[InProcessPravega]:
    with InProcessPravega() as server:
        with server.client() as client:
            client.create_scope("scope")
        yield server


@pytest.fixture
def stream(pravega: InProcessPravega) -> Iterator[StreamName]:
    """A stream that has one event."""
    name = StreamName("scope", f"stream{next(_numbers)}")
    with pravega.client() as client:
        client.create_stream(name)
        client.write(name, b"first")
    yield name
    pravega.faults.clear()


def segment(pravega, stream, number=0):
    return pravega.store.segments[f"{stream}/0.#epoch.{number}"]


# ---------------------------------------------------------------- what clients do


def append_an_event(client, stream):
    writer = client.writer(stream)
    try:
        writer.write(b"mine")
        writer.flush()
    finally:
        writer.abandon()


def append_a_large_event(client, stream):
    writer = client.writer(stream)
    try:
        writer.write(LARGE)
        writer.flush()
    finally:
        writer.abandon()


def commit_a_transaction(client, stream):
    with client.transactions(stream) as writer, writer.begin() as transaction:
        transaction.write(b"mine")
        transaction.flush()
        transaction.commit(wait=True)


def write_conditionally(client, stream):
    with client.revisioned(stream) as log:
        assert log.write_conditionally(Revision(stream, 0, len(FIRST)), b"mine") is not None


def write_unconditionally(client, stream):
    with client.revisioned(stream) as log:
        log.write_unconditionally(b"mine")


def update_a_synchronizer(client, stream):
    text = serializer_for("string")
    with client.synchronizer(
        stream, create=str, apply=str.__add__, init_serializer=text, update_serializer=text
    ) as state:
        assert state.initialize("m")
        state.update_state(lambda _: ["ine"])
        assert state.state == "mine"


def write_bytes(client, stream):
    with RawByteWriter(client.stores, stream) as writer:
        assert writer.write(MINE) == len(MINE)


def append_with_numbers(client, stream):
    with contextlib.closing(NumberedAppender(client.stores, stream, "key", bytes(16))) as appender:
        appender.append([(7, b"mine")])


def set_the_mark(client, stream):
    with client.revisioned(stream) as log:
        assert log.compare_and_set_mark(None, Revision(stream, 0, len(FIRST)))


def get_the_mark(client, stream):
    with client.revisioned(stream) as log:
        assert log.mark() is None


def truncate(client, stream):
    with client.revisioned(stream) as log:
        log.truncate_to_revision(Revision(stream, 0, len(FIRST)))


def find_the_tail(client, stream):
    assert client.tail(stream).positions == {0: len(FIRST)}


def read(client, stream):
    assert list(client.read(stream)) == [b"first"]


def follow(client, stream):
    with client.follow(stream, start="head") as reader:
        batch = None
        while batch is None:
            batch = reader.poll(HASTE)
        assert batch.events.to_pylist() == [b"first"]


def look_up_lengths(client, stream):
    assert sealed_lengths(client.stores, stream, [0]) == {0: len(FIRST)}


def open_table(client, stream):
    """A table of the stream's name with one entry."""
    client.create_table(str(stream), 4)
    table = client.table(str(stream), key="string")
    if not table.exists("once"):
        table.put("once", b"first")
    return table


def put_an_entry(client, stream):
    table = open_table(client, stream)
    version = table.put("mine", b"mine")
    assert table.get("mine").version == version


def insert_an_entry(client, stream):
    table = open_table(client, stream)
    table.insert("mine", b"mine")
    assert table.get("mine").value == b"mine"


def remove_an_entry(client, stream):
    table = open_table(client, stream)
    table.remove("once")
    assert table.get("once") is None


def list_entries(client, stream):
    table = open_table(client, stream)
    assert [entry.value for entry in table.entries()] == [b"first"]
    assert list(table.keys()) == ["once"]


@dataclass(frozen=True)
class Deed:
    """Something that a client does: its requests, what it adds to the segment, and what else is true then."""

    run: Callable[[PravegaClient, StreamName], None]
    requests: tuple[type, ...]
    added: bytes = b""
    check: Callable[[Any], bool] = lambda segment: True


DEEDS = [
    Deed(append_an_event, (SetupAppend, Append), MINE),
    Deed(append_a_large_event, (CreateTransientSegment, SetupAppend, ConditionalBlockEnd, MergeSegments), frame(LARGE)),
    Deed(commit_a_transaction, (SetupAppend, Append), MINE),
    Deed(write_conditionally, (SetupAppend, ConditionalAppend), MINE),
    Deed(write_unconditionally, (SetupAppend, Append), MINE),
    Deed(update_a_synchronizer, (GetStreamSegmentInfo, ConditionalAppend)),
    Deed(write_bytes, (SetupAppend, Append), MINE),
    Deed(append_with_numbers, (SetupAppend, Append), MINE),
    Deed(set_the_mark, (UpdateSegmentAttribute,), check=lambda segment: len(FIRST) in segment.attributes.values()),
    Deed(get_the_mark, (GetSegmentAttribute,)),
    Deed(truncate, (GetStreamSegmentInfo, TruncateSegment), check=lambda segment: segment.start == len(FIRST)),
    Deed(find_the_tail, (GetStreamSegmentInfo,)),
    Deed(read, (ReadSegment,)),
    Deed(follow, (ReadSegment,)),
    Deed(look_up_lengths, (ReadTable,)),
    Deed(put_an_entry, (UpdateTableEntries, ReadTable)),
    Deed(insert_an_entry, (UpdateTableEntries,)),
    Deed(remove_an_entry, (RemoveTableKeys,)),
    Deed(list_entries, (ReadTableEntries, ReadTableKeys)),
]


# ---------------------------------------------------------------- what a store says though it has done nothing


def right_reply(request) -> Message:
    """The reply that says, wrongly but in the right form, that a request is done."""
    match request:
        case SetupAppend(request_id=number, writer_id=writer, segment=name):
            return AppendSetup(number, name, writer, NO_ATTRIBUTE)
        case Append(request_id=number, writer_id=writer, last_event_number=last):
            return DataAppended(writer, last, last - 1, number, 1000)
        case ConditionalAppend(request_id=number, writer_id=writer, event_number=event):
            return DataAppended(writer, event, event - 1, number, 1000)
        case ConditionalBlockEnd(request_id=number, writer_id=writer, event_number=event):
            return DataAppended(writer, event, event - 1, number, 1000)
        case ReadSegment(request_id=number, segment=name, offset=offset):
            return SegmentRead(name, offset, False, False, memoryview(frame(b"false")), number)
        case GetStreamSegmentInfo(request_id=number, segment=name):
            return StreamSegmentInfo(number, name, True, False, False, 0, 1000, 0)
        case GetSegmentAttribute(request_id=number):
            return SegmentAttribute(number, 1000)
        case UpdateSegmentAttribute(request_id=number):
            return SegmentAttributeUpdated(number, True)
        case TruncateSegment(request_id=number, segment=name):
            return SegmentTruncated(number, name)
        case CreateTransientSegment(request_id=number, parent=parent):
            return SegmentCreated(number, f"{parent}#transient.1000")
        case MergeSegments(request_id=number, target=target, source=source):
            return SegmentsMerged(number, target, source, 1000)
        case ReadTable(request_id=number, segment=name, keys=keys):
            return TableRead(number, name, tuple(WireEntry(key, 1, b"false") for key, _ in keys))
        case UpdateTableEntries(request_id=number, entries=entries):
            return TableEntriesUpdated(number, tuple(range(1000, 1000 + len(entries))))
        case RemoveTableKeys(request_id=number, segment=name):
            return TableKeysRemoved(number, name)
        case ReadTableEntries(request_id=number, segment=name):
            return TableEntriesRead(number, name, (), b"")
        case ReadTableKeys(request_id=number, segment=name):
            return TableKeysRead(number, name, (), b"")
    raise AssertionError(f"no reply to {request}")


# Each makes another request's reply out of the right one; None where the right one has no such field.
FIELDS = {
    "request_id": lambda value: value + 1000,
    "segment": lambda _: OTHER,
    "target": lambda _: OTHER,
    "source": lambda _: OTHER,
    "writer_id": lambda _: b"another writer!!",
    "event_number": lambda value: value + 1000,
    "last_event_number": lambda _: 1000,
    "offset": lambda value: value + 1000,
}
REPLY_OF = {
    SetupAppend: AppendSetup,
    Append: DataAppended,
    **{request: kinds[0] for request, kinds in replies._ANSWERS.items()},
}
# Replies to other requests, with the number of this one.
KINDS = {
    "an append": (DataAppended, lambda number: DataAppended(b"another writer!!", 1, 0, number, 1000)),
    "a refused append": (ConditionalCheckFailed, lambda number: ConditionalCheckFailed(b"another writer!!", 1, number)),
    "a segment's state": (
        StreamSegmentInfo,
        lambda number: StreamSegmentInfo(number, OTHER, True, False, False, 0, 9, 0),
    ),
    "an attribute": (SegmentAttribute, lambda number: SegmentAttribute(number, 1000)),
    "a changed attribute": (SegmentAttributeUpdated, lambda number: SegmentAttributeUpdated(number, True)),
    "a missing segment": (NoSuchSegment, lambda number: NoSuchSegment(number, OTHER, "", -1)),
    "a sealed segment": (SegmentIsSealed, lambda number: SegmentIsSealed(number, OTHER, "", -1)),
    "a greeting": (Hello, lambda _: Hello()),
}


def lies_about(kind):
    """Names of the false replies to a kind of request."""
    right = REPLY_OF[kind]
    return [
        *(name for name in FIELDS if name in right.__struct_fields__),
        *(name for name, (reply, _) in KINDS.items() if reply is not right or "writer_id" in right.__struct_fields__),
    ]


def lie(name):
    def answer(session, request):
        if name in FIELDS:
            right = right_reply(request)
            session.reply(msgspec.structs.replace(right, **{name: FIELDS[name](getattr(right, name))}))
        else:
            session.reply(KINDS[name][1](request.request_id))

    return answer


LIES = [
    (deed, kind, name)
    for deed in DEEDS
    for kind in deed.requests
    for name in lies_about(kind)
    # Any process may have appended with these numbers before.
    if (deed.run, name) != (append_with_numbers, "last_event_number")
]


def cases(lies):
    """Yield the parameters of a test. Two of three are ``long``; each request and each lie is among the others."""
    found = set()
    for number, (deed, kind, name) in enumerate(lies):
        marks = pytest.mark.long if number % 3 and name in found else ()
        found.add(name)
        yield pytest.param(deed, kind, name, id=f"{deed.run.__name__}-{kind.__name__}-{name}", marks=marks)


@pytest.fixture(autouse=True)
def _small_events_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_LARGE_FRAME", len(LARGE))


def prepared(pravega, stream, deed):
    """Make what a deed needs; return its segment."""
    found = segment(pravega, stream)
    if deed.run is update_a_synchronizer:
        del found.data[:]
    if deed.run is look_up_lengths:
        with pravega.client() as client:
            client.scale_stream(stream, 2)
    return found


def is_done(deed, found):
    if deed.run is update_a_synchronizer:
        return len(found.events) == 2
    return deed.check(found) and bytes(found.data) == FIRST + deed.added


def test_every_kind_of_request_is_lied_about():
    requests = {kind for deed in DEEDS for kind in deed.requests}
    assert requests == {Append if kind is BlockAppend else kind for kind in replies._ANSWERS}
    now = [case.values for case in cases(LIES) if not case.marks]
    assert {kind for _, kind, _ in now} == requests
    assert {name for _, _, name in now} == {*FIELDS, *KINDS}


@pytest.mark.parametrize(("deed", "kind", "name"), list(cases(LIES)))
def test_a_false_reply_ends_its_connection_and_the_request_is_made_again(pravega, stream, deed, kind, name):
    found = prepared(pravega, stream, deed)
    pravega.store.on(kind, lie(name))
    with pravega.client() as client:
        deed.run(client, stream)
    assert pravega.faults.pending == 0
    assert is_done(deed, found)


@pytest.mark.parametrize(
    ("deed", "kind"),
    [pytest.param(deed, kind, id=f"{deed.run.__name__}-{kind.__name__}") for deed in DEEDS for kind in deed.requests],
)
def test_a_reply_that_comes_twice_is_not_a_reply_to_the_next_request(pravega, stream, deed, kind):
    def repeat(session, request):
        session.copies = 2
        pravega.store.serve(session, request)
        session.copies = 1

    found = prepared(pravega, stream, deed)
    pravega.store.on(kind, repeat, times=3)
    with pravega.client() as client:
        deed.run(client, stream)
    if deed.run is append_a_large_event:
        assert set(found.events) == {b"first", LARGE}  # it may come twice where the answer to its merge is lost
    else:
        assert is_done(deed, found)


@pytest.mark.parametrize(
    ("deed", "kind", "name"), list(cases(lie for lie in LIES if lie[2] in (*FIELDS, "an append", "a missing segment")))
)
def test_false_replies_without_end_are_an_error_in_time(pravega, stream, deed, kind, name):
    found = prepared(pravega, stream, deed)
    before = bytes(found.data)
    pravega.store.on(kind, lie(name), times=1_000_000)
    # On a busy machine, a short call may end before it has reached the server: repeat it with a longer deadline.
    for seconds in (HASTE, 2, 20):
        began = Stopwatch()
        with (
            PravegaClient(pravega.config, timeout=seconds, failover_timeout=seconds) as client,
            pytest.raises((*AFTER_FALSE_REPLIES, *NOT_REACHED)) as caught,
        ):
            deed.run(client, stream)
        assert began.within(seconds + 5)
        if not isinstance(caught.value, NOT_REACHED):
            break
    assert isinstance(caught.value, AFTER_FALSE_REPLIES)
    assert MINE not in bytes(found.data)[len(before) :]
