"""Key-value tables: entries, versions, atomic updates, ranges, limits."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pravega_connector import (
    ConfigError,
    ControllerError,
    Insert,
    InvalidNameError,
    PravegaClient,
    Put,
    Remove,
    ScopeNotFoundError,
    Table,
    TableConfig,
    TableExistsError,
    TableLimitError,
    TableName,
    TableNotFoundError,
    TableVersionError,
    Version,
)
from pravega_connector.tables.requests import MAX_VALUE
from pravega_serde import SerializationError

_numbers = itertools.count()


@pytest.fixture
def name(scope: str) -> TableName:
    return TableName(scope, f"table{next(_numbers)}")


@pytest.fixture
def plain(client: PravegaClient, name: TableName) -> Table[str]:
    """A table of three partitions, without secondary keys."""
    client.create_table(name, 4, partitions=3)
    return client.table(name, key="string", value="string")


@pytest.fixture
def table(client: PravegaClient, name: TableName) -> Table[str]:
    """A table of three partitions, with secondary keys."""
    client.create_table(name, 4, 2, partitions=3)
    return client.table(name, key="string", value="string")


@pytest.fixture
def filled(table: Table[str]) -> Iterator[Table[str]]:
    """A table with the primary keys k000 to k019, each with the secondary keys a0, a1 and b0."""
    for number in range(20):
        key = f"k{number:03}"
        table.update([Put((key, second), f"{key}.{second}") for second in ("b0", "a1", "a0")])
    return table


def keys_of(*numbers: int) -> list[tuple[str, str]]:
    return [(f"k{number:03}", second) for number in numbers for second in ("a0", "a1", "b0")]


# ---------------------------------------------------------------- administration


def test_a_table_is_created_listed_described_and_deleted(client: PravegaClient, own_scope: str) -> None:
    name = TableName(own_scope, "ages")
    with pytest.raises(ScopeNotFoundError):
        list(client.tables(own_scope))
    assert client.create_table(name, 8, 4, partitions=2)
    assert not client.create_table(name, 1)
    with pytest.raises(TableExistsError):
        client.create_table(name, 8, if_exists="error")
    assert client.table_config(str(name)) == TableConfig(primary_key=8, secondary_key=4, partitions=2)
    assert client.table_exists(name)
    assert list(client.tables(own_scope)) == [name]
    assert list(client.streams(own_scope)) == []
    with pytest.raises(ControllerError, match="it has streams or tables"):
        client.delete_scope(own_scope)
    assert client.delete_table(name)
    assert not client.delete_table(name)
    assert not client.table_exists(name)
    assert list(client.tables(own_scope)) == []
    with pytest.raises(TableNotFoundError, match=f"table {name} does not exist"):
        client.delete_table(name, if_missing="error")
    with pytest.raises(TableNotFoundError, match=f"table {name} does not exist"):
        client.table(name)


@pytest.mark.parametrize("lengths", [(0, 0), (257, 0), (200, 57), (-1, 4), (4, -1)])
def test_lengths_that_no_server_takes_are_refused_before_they_are_sent(
    client: PravegaClient, name: TableName, lengths: tuple[int, int]
) -> None:
    with pytest.raises(ConfigError, match="the length of the"):
        client.create_table(name, *lengths)


def test_a_name_without_its_scope_needs_the_client_s(client: PravegaClient, name: TableName) -> None:
    with PravegaClient(client.config.controller) as other, pytest.raises(InvalidNameError, match="scope/table"):
        other.table("ages")


def test_a_deleted_table_is_not_found_by_those_who_have_it_open(client: PravegaClient, plain: Table[str]) -> None:
    plain.put("anna", "old")
    client.delete_table(plain.name)
    client.create_table(plain.name, 4, partitions=3)
    for use in (
        lambda: plain.get("anna"),
        lambda: plain.put("anna", "new"),
        lambda: plain.remove("anna"),
        lambda: list(plain.entries()),
        lambda: list(plain.keys()),
    ):
        with pytest.raises(TableNotFoundError, match="open it again"):
            use()
    assert client.table(plain.name).get(b"anna") is None


# ---------------------------------------------------------------- entries and versions


def test_an_entry_is_inserted_changed_and_removed(plain: Table[str]) -> None:
    assert plain.get("anna") is None
    assert "anna" not in plain
    first = plain.insert("anna", "31")
    entry = plain.get("anna")
    assert entry is not None
    assert (entry.key, entry.value, entry.version) == ("anna", "31", first)
    second = plain.put("anna", "32")
    assert second != first
    assert plain.exists("anna")
    plain.remove("anna")
    plain.remove("anna")
    assert plain.get("anna") is None


def test_an_empty_value_is_not_a_missing_entry(plain: Table[str]) -> None:
    plain.put("anna", "")
    entry = plain.get("anna")
    assert entry is not None
    assert entry.value == ""


def test_one_of_two_conditional_updates_wins(plain: Table[str]) -> None:
    first = plain.insert("anna", "1")
    second = plain.put("anna", "2", first)
    refused = "was refused: an entry has another version"
    with pytest.raises(TableVersionError, match=refused):
        plain.put("anna", "3", first)
    with pytest.raises(TableVersionError, match=refused):
        plain.remove("anna", first)
    with pytest.raises(TableVersionError, match=refused):
        plain.insert("anna", "3")
    entry = plain.get("anna")
    assert entry is not None
    assert (entry.value, entry.version) == ("2", second)
    plain.remove("anna", second)
    with pytest.raises(TableVersionError, match=refused):
        plain.put("anna", "3", second)
    assert plain.insert("anna", "4") != first


def test_threads_that_count_by_version_lose_no_step(plain: Table[str]) -> None:
    plain.insert("anna", "0")

    def count(_: int) -> int:
        refused = 0
        for _ in range(10):
            while True:
                entry = plain.get("anna")
                assert entry is not None
                try:
                    plain.put("anna", str(int(entry.value) + 1), entry.version)
                    break
                except TableVersionError:
                    refused += 1
        return refused

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(count, range(4)))
    entry = plain.get("anna")
    assert entry is not None
    assert entry.value == "40"


def test_a_version_of_another_segment_is_refused(plain: Table[str]) -> None:
    version = plain.put("anna", "1")
    with pytest.raises(TableVersionError, match="another entry, or to an earlier table"):
        plain.put("anna", "2", Version(version.segment_id + 7, version.number))


def test_many_keys_are_read_in_their_order(plain: Table[str]) -> None:
    keys = [f"{number:04}" for number in range(60)]
    for key in keys:
        plain.put(key, key)
    wanted = [*keys, "none", "0001"]
    random.Random(7).shuffle(wanted)
    found = plain.get_all(wanted)
    assert [entry and entry.value for entry in found] == [None if key == "none" else key for key in wanted]
    assert plain.get_all([]) == []


def test_keys_and_values_are_bytes_without_serializers(client: PravegaClient, name: TableName) -> None:
    client.create_table(name, 2, 1)
    table = client.table(name)
    table.put((b"\x00\xff", b"\x80"), b"value")
    assert [(entry.key, entry.value) for entry in table.entries()] == [((b"\x00\xff", b"\x80"), b"value")]
    with pytest.raises(SerializationError, match="a key of a table must be bytes, not str"):
        table.get(("ab", "c"))
    with pytest.raises(SerializationError, match="a value of a table must be bytes, not int"):
        table.put((b"ab", b"c"), 3)  # type: ignore[arg-type]


def test_primary_and_secondary_keys_may_have_two_serializers(client: PravegaClient, name: TableName) -> None:
    client.create_table(name, 4, 2)
    table = client.table(name, key="string", secondary="bytes", value="json")
    table.put(("anna", b"\x00\x01"), {"cups": 2})
    assert [(entry.key, entry.value) for entry in table.entries("anna")] == [(("anna", b"\x00\x01"), {"cups": 2})]


# ---------------------------------------------------------------- atomic updates


def test_an_update_of_several_entries_is_all_or_none(table: Table[str]) -> None:
    one, two = table.update([Insert(("anna", "a0"), "1"), Put(("anna", "a1"), "2")])
    assert {one.segment_id} == {two.segment_id}
    with pytest.raises(TableVersionError):
        table.update([Put(("anna", "a0"), "3", one), Insert(("anna", "a1"), "4")])
    with pytest.raises(TableVersionError):
        table.update([Remove(("anna", "a0"), one), Remove(("anna", "a1"), one)])
    assert [entry.value for entry in table.entries("anna")] == ["1", "2"]
    assert table.update([Remove(("anna", "a0"), one), Remove(("anna", "zz"))]) == []
    assert [entry.value for entry in table.entries("anna")] == ["2"]
    assert table.update([]) == []


def test_updates_that_cannot_be_atomic_are_refused(table: Table[str]) -> None:
    with pytest.raises(TableLimitError, match="entries of several primary keys"):
        table.update([Put(("anna", "a0"), "1"), Put(("berta"[:4], "a0"), "2")])
    with pytest.raises(ConfigError, match="only Put and Insert, or only Remove"):
        table.update([Put(("anna", "a0"), "1"), Remove(("anna", "a1"))])
    with pytest.raises(ConfigError, match="twice"):
        table.update([Put(("anna", "a0"), "1"), Insert(("anna", "a0"), "2")])
    with pytest.raises(ConfigError, match="'version' must be a Version"):
        table.put(("anna", "a0"), "1", "0:27")  # type: ignore[arg-type]
    assert list(table.entries()) == []


# ---------------------------------------------------------------- ranges


@pytest.mark.parametrize("batch_size", [1, 7, 100])
def test_all_entries_are_in_the_order_of_their_keys(filled: Table[str], batch_size: int) -> None:
    entries = list(filled.entries(batch_size=batch_size))
    assert [entry.key for entry in entries] == keys_of(*range(20))
    assert [entry.value for entry in entries] == [".".join(key) for key in keys_of(*range(20))]
    assert list(filled.keys(batch_size=batch_size)) == keys_of(*range(20))
    assert entries[3] == filled.get(("k001", "a0"))


def test_ranges_of_primary_keys_include_both_ends(filled: Table[str]) -> None:
    assert list(filled.keys(start="k003", end="k005")) == keys_of(3, 4, 5)
    assert list(filled.keys(start="k018")) == keys_of(18, 19)
    assert list(filled.keys(end="k001")) == keys_of(0, 1)
    assert list(filled.keys(start="k004", end="k004")) == keys_of(4)
    assert list(filled.keys(start="k005", end="k003")) == []
    assert list(filled.keys(prefix="k01")) == keys_of(*range(10, 20))
    assert list(filled.keys(prefix="k0")) == keys_of(*range(20))
    assert list(filled.keys(prefix=b"x")) == []


def test_ranges_of_secondary_keys_include_both_ends(filled: Table[str]) -> None:
    assert list(filled.keys("k003")) == keys_of(3)
    assert [entry.key for entry in filled.entries("k003", start="a1")] == keys_of(3)[1:]
    assert list(filled.keys("k003", end="a1")) == keys_of(3)[:2]
    assert list(filled.keys("k003", start="a1", end="a1")) == keys_of(3)[1:2]
    assert list(filled.keys("k003", prefix="a")) == keys_of(3)[:2]
    assert list(filled.keys("none")) == []


def test_a_range_ends_at_the_last_key(client: PravegaClient, name: TableName) -> None:
    client.create_table(name, 1)
    table = client.table(name)
    for key in (b"\x00", b"\x7f", b"\xff"):
        table.put(key, key)
    assert list(table.keys(batch_size=1)) == [b"\x00", b"\x7f", b"\xff"]
    assert list(table.keys(b"\x7f")) == [b"\x7f"]
    assert list(table.keys(start=b"\xff")) == [b"\xff"]


def test_invalid_ranges_are_refused_at_the_call(filled: Table[str], client: PravegaClient, name: TableName) -> None:
    with pytest.raises(TableLimitError, match=r"the primary key b'k1' has 2 bytes; in table .* it must have 4"):
        filled.keys(start="k1")
    with pytest.raises(TableLimitError, match=r"the secondary key b'k1000' has 5 bytes; .* it must have 2"):
        filled.entries("k001", start="k1000")
    with pytest.raises(TableLimitError, match="it must have at most 4"):
        filled.keys(prefix="k00100")
    with pytest.raises(ConfigError, match="either 'prefix', or 'start' and 'end'"):
        filled.keys(prefix="k", end="k001")
    with pytest.raises(ConfigError, match="'batch_size' must be a whole number"):
        filled.keys(batch_size=0)
    other = TableName(name.scope, f"{name.table}-plain")
    client.create_table(other, 4)
    with pytest.raises(ConfigError, match="has no secondary keys"):
        client.table(other, key="string").keys("anna", start="a")


def test_entries_with_long_values_come_in_several_answers(client: PravegaClient, name: TableName) -> None:
    client.create_table(name, 4)
    table = client.table(name, key="string")
    for number in range(6):
        table.put(f"{number:04}", bytes([number]) * 800_000)
    assert [entry.value[:1] for entry in table.entries()] == [bytes([number]) for number in range(6)]
    found = table.get_all([f"{number:04}" for number in range(20)])
    assert [entry and entry.value[0] for entry in found] == [*range(6), *[None] * 14]


# ---------------------------------------------------------------- limits


def test_limits_are_named_before_anything_is_sent(table: Table[str]) -> None:
    with pytest.raises(TableLimitError, match=r"the primary key b'ann' has 3 bytes"):
        table.put(("ann", "a0"), "1")
    with pytest.raises(TableLimitError, match="the secondary key b'a' has 1 bytes"):
        table.get(("anna", "a"))
    with pytest.raises(ConfigError, match=r"a key must be a tuple \(primary, secondary\), not 'anna'"):
        table.get("anna")
    with pytest.raises(TableLimitError, match="1,040,385 bytes; the limit is 1,040,384"):
        table.put(("anna", "a0"), "x" * (MAX_VALUE + 1))
    many = [Put(("anna", f"{number:02x}"), "") for number in range(256)]
    with pytest.raises(TableLimitError, match="has 257 changes; the limit is 256"):
        table.update([*many, Put(("anna", "zz"), "")])
    with pytest.raises(TableLimitError, match="the limit is 16,769,023: split it"):
        table.update([Put(change.key, "x" * MAX_VALUE) for change in many[:17]])
    assert list(table.keys()) == []


def test_values_and_updates_of_the_largest_size_are_taken(table: Table[str]) -> None:
    table.put(("anna", "a0"), "x" * MAX_VALUE)
    entry = table.get(("anna", "a0"))
    assert entry is not None
    assert len(entry.value) == MAX_VALUE
    versions = table.update([Put(("anna", f"{number:02x}"), "y" * 1000) for number in range(256)])
    assert len(set(versions)) == 256
    assert len(list(table.keys("anna"))) == 256  # one of the keys is a0
