"""Entries of the ledger as bytes, and what they amount to."""

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import LedgerFormatError
from connector.ledger import (
    AppState,
    Barrier,
    Committed,
    Entry,
    Part,
    Prepared,
    Resolved,
    Snapshot,
    fold,
    from_bytes,
    snapshot_of,
    to_bytes,
)

names, counts = st.text(max_size=20), st.integers(0, 2**63 - 1)
parts = st.builds(
    Part, st.uuids(), counts, counts, st.text("0123456789abcdef", max_size=32), st.none() | st.integers(-(2**63), 2**63)
)
prepared = st.builds(Prepared, names, names, names, names, counts, counts, st.lists(parts, max_size=4).map(tuple))
committed = st.builds(Committed, names, names, names, names, counts, counts)
apps = st.builds(
    AppState, names, names, st.integers(-1, 2**63 - 1), names, names, counts, st.none() | prepared,
    st.lists(names, max_size=3).map(tuple),
)  # fmt: skip
entries = st.one_of(
    prepared,
    committed,
    st.builds(Resolved, names, names, counts, st.sampled_from(["accept", "discard"])),
    st.builds(Barrier, names),
    st.builds(Snapshot, st.lists(apps, max_size=3).map(tuple), names),
)


@given(entries)
def test_entries_are_read_as_they_were_written(entry: Entry):
    assert from_bytes(to_bytes(entry)) == entry


def test_a_part_without_event_time_is_written_as_before_there_was_any():
    id_ = UUID(int=1)
    entry = Prepared("app", "query", "run", "nonce", 7, 0, (Part(id_, 3, 30, "ab"), Part(id_, 3, 30, "ab", 1000)))
    written = json.loads(to_bytes(entry))
    assert written["parts"] == [[str(id_), 3, 30, "ab"], [str(id_), 3, 30, "ab", 1000]]
    assert written["v"] == 1


@given(st.lists(prepared | committed, max_size=8))
def test_a_snapshot_says_what_all_before_it_said(history: list[Entry]):
    state = fold(history)
    assert fold([snapshot_of(state)]) == state
    for cut in range(len(history)):
        assert fold(history[cut:], fold(history[:cut])) == state


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"[]", b"{}", b'{"v":1,"type":"other"}', b'{"v":1,"type":"committed"}']
)
def test_what_is_no_entry_is_refused(data: bytes):
    with pytest.raises(LedgerFormatError):
        from_bytes(data)


def test_an_entry_of_a_newer_version_is_not_guessed_at():
    newer = json.loads(to_bytes(Barrier("n"))) | {"v": 2}
    with pytest.raises(LedgerFormatError, match="version 2"):
        from_bytes(json.dumps(newer).encode())


def test_the_bytes_of_an_entry_stay_what_they_are():
    """Ledgers outlive versions of this project: this text must be readable for ever."""
    part = Part(UUID(int=1), 2, 3, "ab")
    text = (
        b'{"app":"a","batch":7,"generation":0,"nonce":"n","parts":[["00000000-0000-0000-0000-000000000001",2,3,"ab"]],'
        b'"query":"q","run":"r","type":"prepared","v":1}'
    )
    assert to_bytes(Prepared("a", "q", "r", "n", 7, 0, (part,))) == text
    assert to_bytes(Committed("a", "q", "r", "n", 7, 2)) == (
        b'{"app":"a","batch":7,"nonce":"n","query":"q","rows":2,"run":"r","type":"committed","v":1}'
    )
