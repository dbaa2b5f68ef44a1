"""Entries of the ledger as bytes, and what they amount to."""

import json
from pathlib import Path
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.errors import LedgerFormatError
from pravega_connector.exactly_once.batch_commit import (
    SEVERAL_STREAMS,
    AppState,
    Barrier,
    Committed,
    Content,
    Entry,
    Forgotten,
    Key,
    Part,
    Prepared,
    Resolved,
    Snapshot,
    TransactionId,
    content_of,
    fold,
    from_bytes,
    snapshots_of,
    to_bytes,
)

names, counts = st.text(max_size=20), st.integers(0, 2**63 - 1)
contents = st.builds(Content, counts, counts, st.integers(0, 2**128 - 1))
ids = st.builds(TransactionId, st.sampled_from(["s/t#0", "s/t#3", "s/u#0"]), st.uuids())
parts = st.builds(Part, ids, contents, st.none() | st.integers(-(2**63), 2**63))
prepared = st.builds(
    Prepared, names, names, names, names, counts, counts, st.lists(parts, max_size=4).map(tuple), names, counts
)
committed = st.builds(Committed, names, names, names, names, counts, contents, names, counts)
apps = st.builds(
    AppState, names, names, st.integers(-1, 2**63 - 1), st.integers(-1, 2**63 - 1), names, names,
    st.lists(st.tuples(counts, contents), max_size=3).map(tuple), st.lists(ids, max_size=3).map(tuple),
    st.none() | prepared, st.lists(names, max_size=3).map(tuple), names, counts,
)  # fmt: skip
entries = st.one_of(
    prepared,
    committed,
    st.builds(Resolved, names, names, counts, st.sampled_from(["accept", "discard"]), names),
    st.builds(Forgotten, st.lists(st.builds(Key, names, names), max_size=3).map(tuple), names),
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


@given(st.lists(parts, max_size=5), st.randoms())
def test_the_content_of_a_batch_does_not_depend_on_its_partitions(some: list[Part], random: Random):
    whole = content_of(some)
    assert (whole.rows, whole.bytes) == (sum(p.content.rows for p in some), sum(p.content.bytes for p in some))
    random.shuffle(some)
    assert content_of(some) == whole
    if len(some) > 1 and some[0].transaction.stream == some[1].transaction.stream:
        together = Part(some[0].transaction, some[0].content + some[1].content)
        assert content_of([together, *some[2:]]) == whole


def test_the_content_of_a_batch_has_the_streams_of_its_rows():
    rows = Content(1, 1, 1)
    one, other = Part(PART, rows), Part(SECOND, rows)
    again = Part(TransactionId("s/u#7", UUID(int=3)), rows)
    assert len({content_of(some) for some in ([one], [other], [one, other], [one, one], [other, other])}) == 5
    assert content_of([one, other]) == content_of([again, one]), "a recreated stream is the same"


def test_the_lanes_of_a_total_do_not_carry():
    most = Content(1, 1, 2**128 - 1)
    assert most + Content(1, 1, 2**64 + 1) == Content(2, 2, 0)


@given(st.lists(prepared | committed, max_size=8))
def test_a_snapshot_says_what_all_before_it_said(history: list[Entry]):
    state = fold(history)
    assert fold(snapshots_of(state)) == state
    for cut in range(len(history)):
        assert fold(history[cut:], fold(history[:cut])) == state


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"[]", b"{}", b'{"v":4,"type":"other"}', b'{"v":4,"type":"committed"}']
)
def test_what_is_not_an_entry_is_refused(data: bytes):
    with pytest.raises(LedgerFormatError):
        from_bytes(data)


@pytest.mark.parametrize("version", [1, 2, 3, 5])
def test_an_entry_of_another_version_is_not_guessed_at(version: int):
    other = json.loads(to_bytes(Barrier("n"))) | {"v": version}
    with pytest.raises(LedgerFormatError, match=f"version {version}, but this pravega-serde reads version 4"):
        from_bytes(json.dumps(other).encode())


TARGET = "s/t#0"
HERE, PART, TOTAL = Path(__file__).parent, TransactionId(TARGET, UUID(int=1)), 2**127 + 255
SECOND = TransactionId("s/u#4", UUID(int=2))
ENTRIES = [
    Prepared(
        "a", "q", "r", "n", 7, 0,
        (Part(PART, Content(2, 3, TOTAL)), Part(SECOND, Content(2, 3, 0), 9)), SEVERAL_STREAMS, 1_700_000_000_000,
    ),
    Committed("a", "q", "r", "n", 7, Content(2, 3, TOTAL), TARGET, 1_700_000_000_000),
    Snapshot(
        (
            AppState(
                "a", "q", 7, 6, "r", "n", ((7, Content(2, 3, TOTAL)),), (PART, SECOND), None, ("r",), TARGET, 17
            ),
        ),
        "n",
    ),
    Resolved("a", "n", 7, "accept", TARGET),
    Forgotten((Key("a", TARGET), Key("b", "s/u#1")), "n"),
    Barrier("n"),
]  # fmt: skip


def test_the_bytes_of_entries_stay_what_they_are():
    """Ledgers outlive versions of this project: this text must be readable for ever."""
    lines = (HERE / "entries-4.jsonl").read_bytes().splitlines()
    assert [to_bytes(entry) for entry in ENTRIES] == lines
    assert [from_bytes(line) for line in lines] == ENTRIES


A = Key("a", "")


def test_a_limited_number_of_batches_is_remembered():
    history = [Committed("a", "q", "r", "n", batch, Content(batch, 0, 0)) for batch in range(150)]
    state = fold(history)[A]
    assert [batch for batch, _ in state.recent] == list(range(50, 150))
    assert state.content_of(49) is None
    assert state.content_of(149) == Content(149, 0, 0)
    assert len(to_bytes(snapshots_of({A: state})[0])) < 8000


def test_the_last_set_is_that_of_the_last_batch_with_rows():
    written = Prepared("a", "q", "r", "n", 0, 0, (Part(PART, Content(1, 1, 1)),))
    state = fold([written, Committed("a", "q", "r", "n", 0), Committed("a", "q", "r", "n", 1)])[A]
    assert (state.last, state.last_set) == (1, (PART,))


def test_an_accepted_batch_is_known_by_what_was_to_be_written():
    written = Prepared("a", "q", "r", "n", 3, 0, (Part(PART, Content(1, 1, 1)), Part(SECOND, Content(2, 2, 2))))
    state = fold([written, Resolved("a", "n", 3, "accept")])[A]
    assert (state.last, state.content_of(3), state.open) == (3, written.content, None)
    assert fold([written, Resolved("a", "n", 3, "discard")])[A].last == -1


def test_targets_of_one_application_are_kept_apart():
    history = [
        Committed("a", "q", "r", "n", batch, Content(batch, 0, 0), target)
        for batch, target in ((3, "s/t#0"), (1, "s/u#0"), (0, "s/t#1"))
    ]
    state = fold(history)
    assert {key: app.last for key, app in state.items()} == {
        Key("a", "s/t#0"): 3,
        Key("a", "s/u#0"): 1,
        Key("a", "s/t#1"): 0,
    }
    assert all(app.key == key for key, app in state.items())
    history += [Resolved("a", "n", 5, "accept", "s/u#0"), Forgotten((Key("a", "s/t#0"), Key("b", "s/t#0")), "n")]
    assert {key: app.last for key, app in fold(history).items()} == {Key("a", "s/u#0"): 5, Key("a", "s/t#1"): 0}


def test_a_large_state_is_in_several_snapshots():
    rows = [(batch, Content(batch, 0, 0)) for batch in range(100)]
    state = {Key(f"app {n}", "s/t#0"): AppState(f"app {n}", recent=tuple(rows), target="s/t#0") for n in range(500)}
    snapshots = snapshots_of(state)
    sizes = [len(to_bytes(snapshot)) for snapshot in snapshots]
    assert len(sizes) > 1
    assert max(sizes) <= 2**20
    assert fold(snapshots) == state
    assert fold(snapshots[:1], state) == state, "one whose others were refused changes nothing"
