"""Key-value tables shared with Java, both ways."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.errors import TableVersionError
from pravega_connector.local import LocalPravega
from pravega_connector.tables import Put, Table, TableConfig, TableEntry, Version
from pravega_connector.tables.requests import MAX_VALUE
from pravega_connector.wire import StreamName, TableName
from tests.interop._java_tables import JavaTablePeer, Key

# Lengths around the blocks of 16 bytes of the hash, and the longest.
LENGTHS = [(1, 0), (4, 2), (15, 1), (16, 0), (17, 15), (32, 0), (255, 1), (256, 0)]


@pytest.fixture(scope="module")
def java(pravega: LocalPravega) -> Iterator[JavaTablePeer]:
    with JavaTablePeer(pravega.config.controller) as java:
        yield java


@pytest.fixture
def name(client: PravegaClient, stream_name: StreamName) -> TableName:
    client.create_scope(stream_name.scope)
    return TableName(stream_name.scope, stream_name.stream)


@pytest.fixture
def table(client: PravegaClient, name: TableName) -> Table[bytes]:
    """A table of four partitions with primary keys of 8 and secondary keys of 2 bytes."""
    client.create_table(name, 8, 2, partitions=4)
    return client.table(name)


def some_entries(primary: int, secondary: int) -> dict[Key, bytes]:
    """Entries with up to 30 random primary keys, with up to three secondary keys each, if there are any."""
    chance = random.Random(f"{primary} {secondary}")
    firsts = {chance.randbytes(primary) for _ in range(30)}
    seconds = {chance.randbytes(secondary) for _ in range(3)}
    return {(first, second): chance.randbytes(chance.randrange(200)) for first in firsts for second in seconds}


def values_of(entries: list[TableEntry[bytes]]) -> list[tuple[Key, bytes]]:
    return [(entry.key if isinstance(entry.key, tuple) else (entry.key, b""), entry.value) for entry in entries]


def our_key(key: Key) -> Key | bytes:
    return key if key[1] else key[0]


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_we_read_what_java_writes(client, java, name, lengths):
    assert java.create(name, 5, *lengths)
    assert client.table_config(name) == TableConfig(primary_key=lengths[0], secondary_key=lengths[1], partitions=5)
    entries = some_entries(*lengths)
    versions = {key: java.put(name, [(key, value)]) for key, value in entries.items()}
    table = client.table(name)
    assert values_of(list(table.entries())) == sorted(entries.items())
    for entry in table.get_all(map(our_key, entries)):
        assert entry is not None
        ((key, value),) = values_of([entry])
        assert ([entry.version], entry.value) == (versions[key], value)


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_java_reads_what_we_write(client, java, name, lengths):
    assert client.create_table(name, *lengths, partitions=5)
    assert str(name) in java.tables(name)
    entries = some_entries(*lengths)
    table = client.table(name)
    versions = {key: table.put(our_key(key), value) for key, value in entries.items()}
    found = java.entries(name)
    assert values_of(found) == sorted(entries.items())
    assert {entry.key: entry.version for entry in found} == versions
    assert values_of([entry for entry in java.get(name, entries) if entry]) == list(entries.items())
    assert java.delete(name)
    assert not client.table_exists(name)


def test_both_have_the_same_ranges(java, table):
    for number in range(20):
        changes = [Put((b"key%05d" % number, b"s%d" % second), b"%d" % second) for second in range(3)]
        table.update(changes)
    for start, end in ((None, None), (b"key00003", b"key00009"), (b"key00015", None), (None, b"key00002")):
        assert java.entries(table.name, start, end) == list(table.entries(start=start, end=end, batch_size=4))
    for start, end in ((None, None), (b"s1", None), (None, b"s1"), (b"s1", b"s1")):
        theirs = java.entries_of(table.name, b"key00007", start, end)
        assert theirs == list(table.entries(b"key00007", start=start, end=end))


def test_one_of_us_wins_an_update_by_version(java, table):
    key = (b"accounts", b"ab")
    first = java.insert(table.name, key, b"0")
    assert first is not None
    with pytest.raises(TableVersionError):
        table.insert(key, b"1")
    second = table.put(key, b"1", first)
    assert java.put_at(table.name, key, b"2", first) is None
    assert not java.remove(table.name, key, first)
    third = java.put_at(table.name, key, b"2", second)
    assert third is not None
    with pytest.raises(TableVersionError):
        table.put(key, b"3", second)
    with pytest.raises(TableVersionError):
        table.remove(key, second)
    assert table.get(key) == TableEntry(key, b"2", third)
    assert java.get(table.name, [key]) == [table.get(key)]
    table.remove(key, third)
    assert java.get(table.name, [key]) == [None]


def test_both_count_in_one_entry_at_once(java, table):
    key, steps = (b"counters", b"ab"), 40
    table.insert(key, b"0")

    def java_counts() -> None:
        for _ in range(steps):
            while True:
                (entry,) = java.get(table.name, [key])
                assert entry is not None
                if java.put_at(table.name, key, b"%d" % (int(entry.value) + 1), entry.version):
                    break

    def we_count() -> None:
        for _ in range(steps):
            while True:
                entry = table.get(key)
                assert entry is not None
                try:
                    table.put(key, b"%d" % (int(entry.value) + 1), entry.version)
                    break
                except TableVersionError:
                    continue

    with ThreadPoolExecutor(2) as threads:
        for counting in [threads.submit(java_counts), threads.submit(we_count)]:
            counting.result()
    entry = table.get(key)
    assert entry is not None
    assert entry.value == b"%d" % (2 * steps)


def test_the_longest_values_are_the_same(java, table):
    ours, theirs = (b"longest1", b"ab"), (b"longest2", b"ab")
    value = random.Random(1).randbytes(MAX_VALUE)
    table.put(ours, value)
    java.put(table.name, [(theirs, value)])
    found = table.get(theirs)
    (entry,) = java.get(table.name, [ours])
    assert found is not None
    assert entry is not None
    assert found.value == entry.value == value


def test_a_version_is_the_text_of_java(java, table):
    version = table.put((b"versions", b"ab"), b"1")
    (entry,) = java.get(table.name, [(b"versions", b"ab")])
    assert entry is not None
    assert Version.parse(str(version)) == entry.version
