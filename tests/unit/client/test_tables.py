"""Key-value tables when answers are lost or false, segments move, or a process forks."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import threading
from collections.abc import Generator, Iterator
from contextlib import suppress

import pyarrow as pa
import pytest

from pravega_connector import PravegaClient, Put, Remove, Table, TableNotFoundError, TableVersionError, Version
from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.errors import ConfigError, ConnectionLostError, OutcomeUnknownError, SegmentStoreError
from pravega_connector.tables import keys
from pravega_connector.tables.columns import KeySegments, key_hashes, key_rows
from pravega_connector.tables.keys import TableSegments, after, key_position
from pravega_connector.tables.values import TableEntry
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import (
    NoSuchSegment,
    ReadTable,
    ReadTableEntries,
    SegmentRange,
    TableEntriesRead,
    TableEntriesUpdated,
    TableName,
    UpdateTableEntries,
    WireEntry,
)

_numbers = itertools.count()


@pytest.fixture(scope="module")
def pravega() -> Iterator[InProcessPravega]:
    with InProcessPravega() as server:
        yield server


@pytest.fixture
def client(pravega: InProcessPravega) -> Iterator[PravegaClient]:
    with pravega.client() as client:
        yield client
    pravega.faults.clear()


@pytest.fixture
def table(client: PravegaClient) -> Table[str]:
    """A table with the entry anna: 1."""
    name = TableName("scope", f"table{next(_numbers)}")
    client.create_table(name, 4, partitions=2)
    table = client.table(name, key="string", value="string")
    table.insert("anna", "1")
    return table


def value_of(table: Table[str], key: str = "anna") -> str | None:
    entry = table.get(key)
    return None if entry is None else entry.value


def version_of(table: Table[str]) -> Version:
    entry = table.get("anna")
    assert entry is not None
    return entry.version


# ---------------------------------------------------------------- lost answers


def test_an_unconditional_update_is_repeated(pravega, table):
    pravega.faults.drop_after("update table", times=2)
    version = table.put("anna", "2")
    assert table.get("anna") is not None
    assert (value_of(table), version_of(table)) == ("2", version)
    pravega.faults.drop_after("update table")
    table.remove("anna")
    assert value_of(table) is None
    assert pravega.faults.pending == 0


def test_a_conditional_update_that_did_not_arrive_is_made_once(pravega, table):
    first = version_of(table)
    pravega.faults.drop_before("update table", times=2)
    second = table.put("anna", "2", first)
    assert (value_of(table), version_of(table)) == ("2", second)
    pravega.faults.drop_before("update table")
    table.insert("bert", "1")
    pravega.faults.drop_before("update table")
    table.remove("anna", second)
    assert value_of(table) is None
    assert pravega.faults.pending == 0


@pytest.mark.parametrize(
    ("change", "values"),
    [
        (lambda table: table.put("anna", "2", version_of(table)), ("2", None)),
        (lambda table: table.insert("bert", "2"), ("1", "2")),
        (lambda table: table.remove("anna", version_of(table)), (None, None)),
        (lambda table: table.update([Put("anna", "2", version_of(table))]), ("2", None)),
        (lambda table: table.update([Remove("anna", version_of(table))]), (None, None)),
    ],
    ids=["put", "insert", "remove", "update", "update that removes"],
)
def test_a_conditional_update_without_its_answer_is_of_unknown_outcome(pravega, table, change, values):
    pravega.faults.drop_after("update table")
    with pytest.raises(OutcomeUnknownError, match="get the entry to find out"):
        change(table)
    assert pravega.faults.pending == 0
    assert (value_of(table), value_of(table, "bert")) == values


def test_a_refusal_of_the_first_attempt_is_certain(pravega, table):
    old = version_of(table)
    table.put("anna", "2")
    pravega.faults.segment_moved("update table")  # it was refused, so it cannot have taken effect
    with pytest.raises(TableVersionError):
        table.put("anna", "3", old)
    assert value_of(table) == "2"


@pytest.mark.parametrize(("conditional", "advice"), [(True, "get the entry to find out"), (False, "update it again")])
def test_an_update_that_is_never_answered_is_of_unknown_outcome(pravega, table, conditional, advice):
    with PravegaClient(pravega.config, timeout=5, failover_timeout=0.5) as hasty:
        mine = hasty.table(table.name, key="string", value="string")
        version = version_of(table)
        mine.get("anna")
        with pravega.faults.frozen(), pytest.raises(OutcomeUnknownError, match=advice):
            mine.put("anna", "2", version if conditional else None)
    assert value_of(table) == "1"


def test_reads_are_repeated(pravega, table):
    for fault in (pravega.faults.drop_before, pravega.faults.drop_after, pravega.faults.segment_moved):
        for read in (lambda: value_of(table), lambda: next(entry.value for entry in table.entries())):
            fault("read table")
            assert read() == "1"
        fault("read table")
        assert list(table.keys()) == ["anna"]
    assert pravega.faults.pending == 0


def test_many_keys_are_read_with_several_requests_at_once(pravega, table):
    names = [f"k{number:03}" for number in range(200)]
    for name in names[::2]:
        table.insert(name, name)
    expected = [name if number % 2 == 0 else None for number, name in enumerate(names)]
    held: list[ReadTable] = []

    def swap(session, request):
        held.append(request)
        if len(held) == 2:
            for each in reversed(held):
                pravega.store.serve(session, each)

    def read() -> list[str | None]:
        return [entry and entry.value for entry in table.get_all(names)]

    assert table.config.partitions == 2
    one_segment = [name for name in names if table._segments.of(name.encode()) == table._segments.ids[0]]
    pravega.store.on(ReadTable, swap, 2)
    assert [entry and entry.value for entry in table.get_all(one_segment)] == [
        value for name, value in zip(names, expected, strict=True) if name in one_segment
    ]
    assert len(held) == 2
    for fault in (pravega.faults.drop_before, pravega.faults.drop_after, pravega.faults.segment_moved):
        fault("read table")
        assert read() == expected
    assert pravega.faults.pending == 0


def test_more_requests_are_sent_at_once_for_short_values(pravega, numbers):
    names = [f"{number:04}" for number in range(200)]
    held: list[ReadTable] = []

    def hold(session, request):
        held.append(request)
        if len(held) == 14:
            for each in held:
                pravega.store.serve(session, each)

    def read() -> list[str]:
        return [entry.value for entry in numbers.get_all(names) if entry]

    assert read() == NUMBERS
    pravega.store.on(ReadTable, hold, 14)
    assert read() == NUMBERS
    assert len(held) == 14


def test_a_failure_of_the_server_is_raised(pravega, table):
    pravega.faults.fail("update table")
    with pytest.raises(SegmentStoreError, match="asked for by the test"):
        table.put("anna", "2")
    pravega.faults.fail("read table")
    with pytest.raises(SegmentStoreError, match="asked for by the test"):
        table.get("anna")


# ---------------------------------------------------------------- iterations

NUMBERS = [f"{number:04}" for number in range(60)]


@pytest.fixture
def numbers(client: PravegaClient) -> Table[str]:
    """A table with one segment and 60 entries."""
    name = TableName("scope", f"table{next(_numbers)}")
    client.create_table(name, 4)
    table = client.table(name, key="string", value="string")
    for number in NUMBERS:
        table.put(number, number)
    return table


def begin_iteration(pravega: InProcessPravega, table: Table[str]) -> Generator[TableEntry[str], None, None]:
    """Return an iteration at its 16th entry, after the request for the third page of 10 has arrived."""
    arrived, pages = threading.Event(), itertools.count(1)

    def serve(session, request):
        pravega.store.serve(session, request)
        if next(pages) == 3:
            arrived.set()

    pravega.store.on(ReadTableEntries, serve, times=3)
    entries = table.entries(batch_size=10)
    assert [next(entries).value for _ in range(5)] == NUMBERS[:5]
    assert pravega.store.unused_rules == 2  # a caller that stops in the first page needs no other
    assert [next(entries).value for _ in range(10)] == NUMBERS[5:15]
    assert arrived.wait(120)
    return entries


def test_the_next_page_is_requested_while_the_caller_has_one(pravega, numbers):
    entries = begin_iteration(pravega, numbers)
    assert [entry.value for entry in entries] == NUMBERS[15:]


def test_an_iteration_that_is_left_keeps_no_answer_for_the_next_request(pravega, numbers):
    begin_iteration(pravega, numbers).close()
    assert value_of(numbers, "0007") == "0007"
    assert [entry.value for entry in numbers.entries(batch_size=10)] == NUMBERS


def test_a_page_that_was_requested_ahead_and_lost_is_requested_again(pravega, numbers):
    entries = begin_iteration(pravega, numbers)
    pravega.faults.drop_connections()
    assert [entry.value for entry in entries] == NUMBERS[15:]


def test_a_forked_child_requests_the_page_again(pravega, numbers):
    entries = begin_iteration(pravega, numbers)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with suppress(BaseException):
            os.write(writing, " ".join(entry.value for entry in entries).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read().decode().split() == NUMBERS[15:]
    os.waitpid(child, 0)
    assert [entry.value for entry in entries] == NUMBERS[15:]


def test_pages_of_several_segments_are_merged(client):
    name = TableName("scope", f"table{next(_numbers)}")
    client.create_table(name, 4, partitions=5)
    table = client.table(name, key="string", value="string")
    for number in NUMBERS:
        table.put(number, number)
    for size in (1, 3, 100):
        assert [entry.value for entry in table.entries(batch_size=size)] == NUMBERS
        assert list(table.keys(start="0011", end="0052", batch_size=size)) == NUMBERS[11:53]


# ---------------------------------------------------------------- false answers


def test_a_store_that_does_not_know_the_segment_is_not_believed(pravega, table):
    def deny(session, request):
        session.reply(NoSuchSegment(request.request_id, request.segment, "", -1))

    pravega.store.on(UpdateTableEntries, deny)
    table.put("anna", "2")
    assert value_of(table) == "2"
    assert pravega.faults.pending == 0


@pytest.mark.parametrize(
    "entries",
    [
        (WireEntry(b"berta", 0, b"x"),),
        (WireEntry(b"\x00\x00\x00\x01", 0, b"x"), WireEntry(b"\x00\x00\x00\x01", 0, b"x")),
        (WireEntry(b"bert", 0, b"x"), WireEntry(b"anna", 0, b"x")),
        (WireEntry(b"zoes", 0, b"x"),),
    ],
    ids=["of another length", "twice", "out of order", "outside the range"],
)
def test_entries_that_were_not_requested_are_not_believed(pravega, table, entries):
    def lie(session, request):
        session.reply(TableEntriesRead(request.request_id, request.segment, entries, b""))

    pravega.store.on(ReadTableEntries, lie)
    assert [entry.key for entry in table.entries(start="a\0\0\0", end="y\0\0\0")] == ["anna"]
    assert pravega.faults.pending == 0


def test_versions_of_other_entries_are_not_believed(pravega, table):
    def lie(session, request):
        session.reply(TableEntriesUpdated(request.request_id, (1, 2)))

    pravega.store.on(UpdateTableEntries, lie)
    version = table.put("anna", "2")
    assert (value_of(table), version_of(table)) == ("2", version)


# ---------------------------------------------------------------- moves, forks, event loops


def test_a_table_outlives_a_restart_of_its_store(pravega, table):
    pravega.faults.drop_connections()
    assert value_of(table) == "1"
    pravega.faults.drop_connections()
    table.put("anna", "2")
    assert value_of(table) == "2"


def test_a_forked_child_uses_the_table_on_connections_of_its_own(table):
    table.get("anna")
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with suppress(BaseException):
            table.put("anna", "2")
            os.write(writing, (value_of(table) or "").encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"2"
    os.waitpid(child, 0)
    assert value_of(table) == "2"


def test_coroutines_use_a_table(pravega, table):
    async def main() -> None:
        async with AsyncPravegaClient(pravega.config) as client:
            name = TableName("scope", f"table{next(_numbers)}")
            with pytest.raises(TableNotFoundError):
                await client.table(name)
            assert await client.create_table(name, 4, 2, partitions=2)
            assert name in [each async for each in client.tables("scope")]
            mine = client.table(name, key="string", value="json")
            with pytest.raises(ConfigError, match="not open yet"):
                assert mine.config
            assert [entry async for entry in client.table(name, key="string").entries()] == []
            versions = await asyncio.gather(*(mine.put((f"k{i:03}", "aa"), i) for i in range(50)))
            assert len({*versions}) == 50
            assert (mine.name, mine.config.secondary_key) == (name, 2)
            assert [entry.value async for entry in mine.entries(batch_size=7)] == [*range(50)]
            assert [key async for key in mine.keys("k007")] == [("k007", "aa")]
            with pytest.raises(TableVersionError):
                await mine.insert(("k007", "aa"), 8)
            await mine.remove(("k007", "aa"))
            assert not await mine.exists(("k007", "aa"))
            found = await mine.get_all([("k006", "aa"), ("k007", "aa")])
            assert [entry and entry.value for entry in found] == [6, None]
            async with client.table(table.name, key="string", value="string") as other:
                entry = await other.get("anna")
                assert entry is not None
                assert entry.value == "1"
            assert await client.delete_table(name)
            assert not await client.table_exists(name)

    asyncio.run(main())


# ---------------------------------------------------------------- the place of a key


@pytest.mark.parametrize(
    ("key", "position"),
    [
        (b"a", 0.6272098046731807),
        (b"key00001", 0.10746373259718034),
        (bytes(16), 0.8153192835338181),
        (bytes(range(256)), 0.7101550448669356),
    ],
)
def test_the_position_of_a_key_is_that_of_java(key, position):
    """As HashHelper.seededWith("KeyValueTableRouter").hashToRange of 0.13 returns it."""
    assert key_position(key) == position


@pytest.mark.parametrize("length", [1, 8, 15, 16, 17, 32, 255])
def test_columns_of_keys_have_the_same_segments(length):
    chance = random.Random(length)
    given = [chance.randbytes(length) for _ in range(200)]
    ranges = [SegmentRange(number, number / 7, (number + 1) / 7) for number in range(7)]
    rows = key_rows(pa.array([b"x" * length, *given], pa.binary())[1:], length)
    assert KeySegments(ranges).of(rows).tolist() == [TableSegments(ranges).of(key) for key in given]
    assert KeySegments(ranges[:1]).of(rows).tolist() == [0] * 200
    positions = [float(each >> 12) * 2.0**-52 for each in key_hashes(rows).tolist()]
    assert positions == [key_position(key) for key in given]


def test_the_upper_bound_of_a_segment_belongs_to_it(monkeypatch):
    segments = TableSegments([SegmentRange(2, 0.5, 1.0), SegmentRange(1, 0.0, 0.5)])
    for position, expected in ((0.0, 1), (0.5, 1), (0.5000001, 2)):
        monkeypatch.setattr(keys, "key_position", lambda _, at=position: at)
        assert segments.of(b"key") == expected


@pytest.mark.parametrize(
    ("key", "following"),
    [(b"\x00", b"\x01"), (b"\x00\xff", b"\x01\x00"), (b"\xff\xff", None), (b"a\xff\xff", b"b\0\0")],
)
def test_the_next_key_has_the_same_length(key, following):
    assert after(key) == following


def test_a_version_is_read_from_its_text():
    assert Version.parse("4294967296:27") == Version(1 << 32, 27)
    for text in ("", "1", "1:", ":1", "a:b", "1:2:3", "-1:2", None):
        with pytest.raises(ConfigError, match="segment:number"):
            Version.parse(text)  # type: ignore[arg-type]


def test_an_unreachable_store_is_named(pravega, table):
    with PravegaClient(pravega.config, timeout=5, failover_timeout=0.5) as hasty:
        mine = hasty.table(table.name, key="string", value="string")
        pravega.faults.drop_before("read table", times=1000)
        with pytest.raises(ConnectionLostError):
            mine.get("anna")
