"""States that several share: the same entries, the same states, with any process compacting."""

import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.errors import ConfigError, DataLossError, OutcomeUnknownError
from pravega_connector.single_segment.synchronizer import _Entry, _EntrySerializer
from pravega_connector.testing.requests import frame
from pravega_connector.wire import ConditionalAppend, ReadSegment
from pravega_serde import serializer_for
from pravega_serde.errors import DeserializationError

TEXT = serializer_for("string")


def synchronizer(client, stream):
    """A list of words: a first one and more."""
    return client.synchronizer(
        stream.name,
        create=lambda word: (word,),
        apply=lambda words, word: (*words, word),
        init_serializer=TEXT,
        update_serializer=TEXT,
    )


@pytest.fixture
def make(client, stream):
    made = []

    def another():
        made.append(synchronizer(client, stream))
        return made[-1]

    yield another
    for one in made:
        one.close()


def entries(stream):
    return stream.store.segments[stream.segment(0)].events


def test_the_first_initial_value_counts(make):
    first, second = make(), make()
    assert first.initialize("a")
    assert not second.initialize("b")
    assert first.state == second.state == ("a",)
    assert first.revision == second.revision


def test_updates_follow_from_the_current_state(make, stream):
    first, second = make(), make()
    first.initialize("a")
    seen = []

    def generate(state):
        seen.append(state)
        return [f"b{len(state)}", "c"]

    second.fetch_updates()
    assert first.update_state(generate) == ["b1", "c"]
    assert second.update_state(generate) == ["b3", "c"]
    assert seen == [("a",), ("a",), ("a", "b1", "c")]
    first.fetch_updates()
    assert first.state == second.state == ("a", "b1", "c", "b3", "c")
    assert first.revision == second.revision
    assert first.revision.update == 1
    assert entries(stream) == [b"\0\0\0\1a", b"\0\0\0\2\0\0\0\2b1\0\0\0\1c", b"\0\0\0\2\0\0\0\2b3\0\0\0\1c"]


def test_no_updates_write_nothing(make, stream):
    one = make()
    one.initialize("a")
    assert one.update_state(lambda state: []) == []
    one.update_state_unconditionally([])
    assert len(entries(stream)) == 1


def test_unconditional_updates_are_seen_with_the_next_look(make):
    one = make()
    one.initialize("a")
    one.update_state_unconditionally(["b", "c"])
    assert one.state == ("a",)
    one.fetch_updates()
    assert one.state == ("a", "b", "c")


def test_without_a_state_there_is_nothing_to_update(make):
    one = make()
    assert (one.state, one.revision, one.bytes_since_compaction()) == (None, None, 0)
    for attempt in (lambda: one.update_state(lambda state: ["x"]), lambda: one.compact("".join)):
        with pytest.raises(ConfigError, match="initialize it first"):
            attempt()


def test_updates_before_the_first_initial_value_make_no_state(make, stream):
    early, late = make(), make()
    early.update_state_unconditionally(["lost"])
    with pytest.raises(DataLossError, match="no initial value"):
        late.initialize("a")
    assert late.state is None


def test_a_compaction_shortens_what_a_newcomer_reads(make, stream, store):
    one, other = make(), make()
    one.initialize("a")
    for word in "bcd":
        one.update_state(lambda state, word=word: [word])
    other.fetch_updates()
    before = one.bytes_since_compaction()
    assert one.compact("".join)
    assert one.state == ("abcd",)
    assert 0 < one.bytes_since_compaction() < before
    assert store.segments[stream.segment(0)].start == 0  # those who read keep what they read
    assert one.update_state(lambda state: ["e"]) == ["e"]
    one.compact("".join)
    assert store.segments[stream.segment(0)].start > 0
    other.fetch_updates()
    newcomer = make()
    newcomer.fetch_updates()
    assert one.state == other.state == newcomer.state == ("abcde",)
    assert not make().initialize("z")


def test_a_compactor_may_decline(make, stream):
    one = make()
    one.initialize("a")
    assert not one.compact(lambda state: None)
    assert len(entries(stream)) == 1


def test_a_compaction_that_somebody_overtakes_compacts_the_newer_state(make):
    one, other = make(), make()
    one.initialize("a")
    other.fetch_updates()
    other.update_state(lambda state: ["b"])
    assert one.compact("".join)
    assert one.state == ("ab",)


def compact_twice(one):
    for _ in range(2):
        one.update_state(lambda state: ["x"])
        one.compact("".join)


def test_a_state_whose_successors_were_truncated_restarts_at_the_mark(make):
    one, other = make(), make()
    one.initialize("a")
    other.fetch_updates()
    compact_twice(one)
    compact_twice(one)
    other.fetch_updates()
    assert other.state == one.state == ("axxxx",)
    assert other.update_state(lambda state: ["y"]) == ["y"]


def test_a_compaction_between_the_look_at_the_mark_and_the_reading_is_harmless(make, store):
    one, newcomer = make(), make()
    one.initialize("a")
    compact_twice(one)

    def compact_first(session, request):
        compact_twice(one)
        store.serve(session, request)

    store.on(ReadSegment, compact_first)
    newcomer.fetch_updates()
    assert store.unused_rules == 0
    assert newcomer.state == one.state == ("axxxx",)


def test_a_beginning_that_always_escapes_is_an_error(make, stream, store, monkeypatch):
    one = make()
    one.initialize("a")
    segment = store.segments[stream.segment(0)]

    def truncate_first(session, request):
        segment.start = len(segment.data)
        store.serve(session, request)

    store.on(ReadSegment, truncate_first, times=1)
    newcomer = make()
    with pytest.raises(DataLossError, match="has no initial value at the start of its entries"):
        newcomer.fetch_updates()


def test_an_update_of_unknown_outcome_is_reported(stream, store):
    with stream.client(timeout=1.0) as client, synchronizer(client, stream) as one:
        one.initialize("a")

        def keep_silent(session, request):
            session.deaf = True

        store.on(ConditionalAppend, keep_silent)
        with pytest.raises(OutcomeUnknownError):
            one.update_state(lambda state: ["b"])
        assert one.state == ("a",)
        assert one.update_state(lambda state: [] if "b" in state else ["b"]) == ["b"]
    assert len(entries(stream)) == 2


def test_all_come_to_the_same_state(make):
    one = make()
    one.initialize("0")
    everybody = [make() for _ in range(3)]

    def work(me):
        for number in range(30):
            everybody[me].update_state(lambda state, word=f"{me}.{number}": [word])
            if number % 10 == 9:
                everybody[me].compact(",".join)

    threads = [threading.Thread(target=work, args=(me,)) for me in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    states = set()
    for each in [*everybody, one, make()]:
        each.fetch_updates()
        states.add(",".join(each.state))
    (state,) = states
    words = state.split(",")
    assert sorted(words) == sorted(["0"] + [f"{me}.{number}" for me in range(3) for number in range(30)])
    for me in range(3):
        assert [w for w in words if w.startswith(f"{me}.")] == [f"{me}.{number}" for number in range(30)]


# ---------------------------------------------------------------- entries as bytes

ENTRIES = _EntrySerializer(TEXT, TEXT)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.lists(texts, max_size=5))
def test_entries_are_the_same_after_their_bytes(updates):
    entry = _Entry([], updates)
    assert ENTRIES.deserialize(ENTRIES.serialize(entry)) == entry
    if updates:
        first = _Entry(updates[:1], [])
        assert ENTRIES.deserialize(ENTRIES.serialize(first)) == first


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\1",
        b"\0\0\0\3",
        struct.pack(">ii", 2, -1),
        struct.pack(">ii", 2, 2) + b"x",
        struct.pack(">i", 2) + b"\0\0",
        struct.pack(">ii", 2, 2**31 - 1),
    ],
)
def test_other_bytes_are_not_entries(make, stream, store, data):
    one = make()
    one.initialize("a")
    store.append(stream.segment(0), frame(data))
    with pytest.raises(DeserializationError, match="stream scope/stream, segment 0, offset 13"):
        one.fetch_updates()
    assert one.state == ("a",)


@given(st.binary(max_size=30))
def test_no_bytes_are_worse_than_an_error(data):
    try:
        ENTRIES.deserialize(data)
    except DeserializationError:
        pass
