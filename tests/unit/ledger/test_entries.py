"""Entries of the ledger as bytes, and what they amount to."""

import json
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import LedgerFormatError
from connector.ledger import (
    AppState,
    Barrier,
    Committed,
    Content,
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
contents = st.builds(Content, counts, st.none() | counts, st.none() | st.integers(0, 2**128 - 1))
parts = st.builds(Part, st.uuids(), contents, st.none() | st.integers(-(2**63), 2**63))
prepared = st.builds(Prepared, names, names, names, names, counts, counts, st.lists(parts, max_size=4).map(tuple))
committed = st.builds(Committed, names, names, names, names, counts, contents)
apps = st.builds(
    AppState, names, names, st.integers(-1, 2**63 - 1), names, names,
    st.lists(st.tuples(counts, contents), max_size=3).map(tuple), st.lists(st.uuids(), max_size=3).map(tuple),
    st.none() | prepared, st.lists(names, max_size=3).map(tuple),
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


@given(st.lists(contents, max_size=5), st.integers(0, 5))
def test_contents_add_up_in_any_order(some: list[Content], cut: int):
    whole = sum(some, Content())
    assert sum(reversed(some), Content()) == whole
    assert sum(some[:cut], Content()) + sum(some[cut:], Content()) == whole
    assert (whole.total is None) is any(content.total is None for content in some)


def test_the_lanes_of_a_total_do_not_carry():
    most = Content(1, 1, 2**128 - 1)
    assert most + Content(1, 1, 2**64 + 1) == Content(2, 2, 0)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Content(3, 30, 7), Content(3, 30, 7), True),
        (Content(3, 30, 7), Content(3, 30, 8), False),
        (Content(3, 30, 7), Content(3, 31, 7), False),
        (Content(3, None, None), Content(3, 30, 7), True),
        (Content(3, None, None), Content(4, 30, 7), False),
        (Content(3, 30, None), Content(3, 31, 7), False),
    ],
)
def test_contents_are_compared_by_what_is_known_of_both(one: Content, other: Content, same: bool):
    assert one.same_as(other) is other.same_as(one) is same


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
    newer = json.loads(to_bytes(Barrier("n"))) | {"v": 3}
    with pytest.raises(LedgerFormatError, match="version 3"):
        from_bytes(json.dumps(newer).encode())


HERE, PART, TOTAL = Path(__file__).parent, UUID(int=1), 2**127 + 255
ENTRIES = [
    Prepared("a", "q", "r", "n", 7, 0, (Part(PART, Content(2, 3, TOTAL)), Part(UUID(int=2), Content(2, 3, 0), 9))),
    Committed("a", "q", "r", "n", 7, Content(2, 3, TOTAL)),
    Snapshot((AppState("a", "q", 7, "r", "n", ((7, Content(2, None, None)),), (PART,), None, ("r",)),), "n"),
    Resolved("a", "n", 7, "accept"),
    Barrier("n"),
]
PREPARED_1 = Prepared(
    "a", "q", "r", "n", 8, 0, (Part(PART, Content(2, 3, None)), Part(UUID(int=2), Content(2, 3, None), 9))
)
ENTRIES_1 = [
    PREPARED_1,
    Committed("a", "q", "r", "n", 7, Content(2, None, None)),
    Snapshot((AppState("a", "q", 7, "r", "n", ((7, Content(2, None, None)),), (), PREPARED_1, ("r",)),), "n"),
    Snapshot((AppState("a"),), "n"),
    Resolved("a", "n", 7, "accept"),
    Barrier("n"),
]


def test_the_bytes_of_entries_stay_what_they_are():
    """Ledgers outlive versions of this project: this text must be readable for ever."""
    lines = (HERE / "entries-2.jsonl").read_bytes().splitlines()
    assert [to_bytes(entry) for entry in ENTRIES] == lines
    assert [from_bytes(line) for line in lines] == ENTRIES


def test_entries_of_version_1_are_read():
    """As it wrote them: without totals, and with digests that nothing is compared with any more."""
    assert [from_bytes(line) for line in (HERE / "entries-1.jsonl").read_bytes().splitlines()] == ENTRIES_1


def test_a_limited_number_of_batches_is_remembered():
    history = [Committed("a", "q", "r", "n", batch, Content(batch, 0, 0)) for batch in range(150)]
    state = fold(history)["a"]
    assert [batch for batch, _ in state.recent] == list(range(50, 150))
    assert state.content_of(49) is None
    assert state.content_of(149) == Content(149, 0, 0)
    assert len(to_bytes(snapshot_of({"a": state}))) < 8000


def test_the_last_set_is_that_of_the_last_batch_with_rows():
    written = Prepared("a", "q", "r", "n", 0, 0, (Part(PART, Content(1, 1, 1)),))
    state = fold([written, Committed("a", "q", "r", "n", 0), Committed("a", "q", "r", "n", 1)])["a"]
    assert (state.last, state.last_set) == (1, (PART,))


def test_an_accepted_batch_is_known_by_what_was_to_be_written():
    written = Prepared("a", "q", "r", "n", 3, 0, (Part(PART, Content(1, 1, 1)), Part(UUID(int=2), Content(2, 2, 2))))
    state = fold([written, Resolved("a", "n", 3, "accept")])["a"]
    assert (state.last, state.content_of(3), state.open) == (3, Content(3, 3, 3), None)
    assert fold([written, Resolved("a", "n", 3, "discard")])["a"].last == -1
