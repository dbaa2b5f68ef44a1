"""Transactions, revisioned streams and state synchronizers shared with Java, both ways."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pravega_connector.client import PravegaClient, StateSynchronizer, TransactionStatus
from pravega_connector.errors import DataLossError, TransactionAbortedError
from pravega_connector.local import LocalPravega
from pravega_connector.wire import StreamName
from pravega_serde import serializer_for
from tests.interop._java_state import JavaStatePeer

TEXT = serializer_for("string")
EVENTS = [(f"key {number % 7}", f"event {number}") for number in range(200)]


@pytest.fixture(scope="module")
def java(pravega: LocalPravega) -> Iterator[JavaStatePeer]:
    with JavaStatePeer(pravega.config.controller) as java:
        yield java


@pytest.fixture
def stream(client: PravegaClient, stream_name: StreamName) -> StreamName:
    """A stream of one segment."""
    client.create_stream(stream_name)
    return stream_name


# ---------------------------------------------------------------- transactions


def test_we_commit_what_java_has_written(client, java, stream_name):
    client.create_stream(stream_name, 3)
    transaction = client.transaction(stream_name, java.begin(stream_name, EVENTS))
    assert transaction.status() is TransactionStatus.OPEN
    transaction.ping()
    assert list(client.read(stream_name)) == []
    assert transaction.commit() is TransactionStatus.COMMITTED
    assert java.finish("status", stream_name, transaction.id) == "COMMITTED"
    assert sorted(client.read(stream_name)) == sorted(event.encode() for _, event in EVENTS)


def test_java_commits_what_we_have_written(client, java, stream_name):
    client.create_stream(stream_name, 3)
    transaction = client.transactions(stream_name, TEXT, lease=30).begin()
    for key, event in EVENTS:
        transaction.write(event, key)
    transaction.detach()
    assert java.finish("status", stream_name, transaction.id) == "OPEN"
    assert java.finish("commit", stream_name, transaction.id) in ("COMMITTING", "COMMITTED")
    assert transaction.commit() is TransactionStatus.COMMITTED
    found = list(client.read(stream_name, TEXT))
    for key in {key for key, _ in EVENTS}:
        mine = [event for other, event in EVENTS if other == key]
        assert [event for event in found if event in set(mine)] == mine


def test_each_aborts_what_the_other_has_written(client, java, stream_name):
    client.create_stream(stream_name, 2)
    theirs = client.transaction(stream_name, java.begin(stream_name, EVENTS))
    assert theirs.abort().is_aborted
    assert java.finish("status", stream_name, theirs.id) in ("ABORTING", "ABORTED")
    ours = client.transactions(stream_name, TEXT, lease=30).begin()
    ours.write("gone")
    ours.flush()
    assert java.finish("abort", stream_name, ours.id) in ("ABORTING", "ABORTED")
    with pytest.raises(TransactionAbortedError):
        ours.commit()
    assert list(client.read(stream_name)) == []


# ---------------------------------------------------------------- revisioned streams


def test_both_read_and_write_one_revisioned_stream(client, java, stream):
    with client.revisioned(stream, TEXT) as log:
        start = log.oldest_revision()
        written, revision = [], start
        for number in range(20):
            write = log.write_conditionally if number % 2 else (lambda r, e: java.append_at(stream, r, e))
            refuse = (lambda r, e: java.append_at(stream, r, e)) if number % 2 else log.write_conditionally
            after = write(revision, f"entry {number}: ä€😀")
            assert after is not None
            assert refuse(revision, "too late") is None
            written.append((after, f"entry {number}: ä€😀"))
            revision = after
        log.write_unconditionally("ours")
        java.append(stream, "theirs")
        ours, theirs = list(log.read_from(start)), java.entries(stream, start)
        assert ours == theirs
        assert ours[:20] == written
        assert [entry for _, entry in ours[20:]] == ["ours", "theirs"]
        assert java.revisions(stream) == [start, log.latest_revision(), None]
        assert java.entries(stream, written[9][0]) == ours[10:]


def test_both_see_one_mark_and_one_truncation(client, java, stream):
    with client.revisioned(stream, TEXT) as log:
        start = log.oldest_revision()
        first = log.write_conditionally(start, "one")
        second = java.append_at(stream, first, "two")
        assert first is not None
        assert second is not None
        assert log.compare_and_set_mark(None, first)
        assert java.revisions(stream)[2] == first
        assert not java.set_mark(stream, None, second)
        assert java.set_mark(stream, first, second)
        assert log.mark() == second
        assert java.set_mark(stream, second, None)
        assert log.mark() is None
        java.truncate(stream, first)
        assert log.oldest_revision() == first
        with pytest.raises(DataLossError):
            log.read_from(start)
        log.truncate_to_revision(second)
        assert java.revisions(stream)[0] == second
        java.truncate(stream, first)
        log.truncate_to_revision(first)
        assert log.oldest_revision() == second


# ---------------------------------------------------------------- state synchronizers

Words = StateSynchronizer[tuple[str, ...], str, str]


@pytest.fixture
def ours(client: PravegaClient, stream: StreamName) -> Iterator[Words]:
    def add(words: tuple[str, ...], word: str) -> tuple[str, ...]:
        return (*words, word)

    with client.synchronizer(
        stream, create=lambda word: (word,), apply=add, init_serializer=TEXT, update_serializer=TEXT
    ) as made:
        yield made


def state(words: Words) -> list[str]:
    words.fetch_updates()
    assert words.state is not None
    return list(words.state)


@pytest.mark.parametrize("java_first", [True, False])
def test_both_follow_one_state(java, stream, ours, java_first):
    if java_first:
        assert java.words("initialize", stream, word="first") == ["first"]
        assert not ours.initialize("second")
    else:
        assert ours.initialize("first")
        assert java.words("initialize", stream, word="second") == ["first"]
    expected = ["first"]
    for number in range(5):
        mine, theirs = [f"ours {number}", "ä"], [f"theirs {number}", "", "😀"]
        ours.update_state(lambda _, mine=mine: mine)
        assert java.words("update", stream, words=theirs) == [*expected, *mine, *theirs]
        ours.update_state_unconditionally(["ours anyway"])
        java.words("updateAnyway", stream, words=["theirs", "anyway"])
        expected += [*mine, *theirs, "ours anyway", "theirs", "anyway"]
        assert state(ours) == expected
    assert java.words("state", stream) == expected


def test_each_continues_after_the_compaction_of_the_other(client, java, stream, ours):
    ours.initialize("a")
    assert java.words("update", stream, words=["b"]) == ["a", "b"]
    for turn in range(3):
        assert java.words("compact", stream) == ["+".join(state(ours))]
        ours.update_state(lambda _, turn=turn: [f"o{turn}"])
        # Twice: the second truncates what came before the first.
        for _ in range(2):
            assert ours.compact("+".join)
        assert java.words("update", stream, words=[f"j{turn}"]) == [*ours.state, f"j{turn}"]  # type: ignore[misc]
    assert state(ours) == ["a+b+o0+j0+o1+j1+o2", "j2"]
    with client.revisioned(stream) as log:
        assert log.oldest_revision().offset > 0
    # Only Java compacts, so often that our place is truncated away.
    for number in range(3):
        java.words("compact", stream)
        java.words("update", stream, words=[f"k{number}"])
    assert state(ours) == java.words("state", stream)
    assert java.words("compact", stream) == state(ours)
    newcomer = client.synchronizer(
        stream,
        create=lambda word: (word,),
        apply=lambda words, word: (*words, word),
        init_serializer=TEXT,
        update_serializer=TEXT,
    )
    with newcomer:
        assert not newcomer.initialize("z")
        assert list(newcomer.state or ()) == state(ours)
