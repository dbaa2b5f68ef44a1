"""Revisioned streams and synchronizers on a real server."""

import threading

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.errors import DataLossError, StreamNotFoundError, StreamSealedError
from pravega_serde import serializer_for

TEXT = serializer_for("string")
ROUNDS = 1000


@pytest.fixture
def stream(client, stream_name):
    client.create_stream(stream_name)
    return stream_name


@pytest.fixture
def log(client, stream):
    with client.revisioned(stream) as log:
        yield log


def test_of_two_clients_exactly_one_wins_each_round(config, stream):
    barrier, wins, seen = threading.Barrier(2), [[], []], []

    def race(me):
        with PravegaClient(config) as client, client.revisioned(stream) as log:
            revision = log.oldest_revision()
            for number in range(ROUNDS):
                barrier.wait(30)
                written = log.write_conditionally(revision, b"%d %d" % (me, number))
                wins[me].append(written is not None)
                revision, entry = log.entry_after(revision)
                assert written in (None, revision)
                if me == 0:
                    seen.append(entry)

    threads = [threading.Thread(target=race, args=(me,)) for me in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wins[0]) == len(wins[1]) == ROUNDS
    assert all(one != other for one, other in zip(*wins, strict=True))
    assert seen == [b"%d %d" % (0 if mine else 1, number) for number, mine in enumerate(wins[0])]
    assert all(any(won) for won in wins), "one has never won: that was no race"


def test_entries_marks_and_truncation(log):
    start = log.oldest_revision()
    first = log.write_conditionally(start, b"one")
    log.write_unconditionally(b"two")
    assert log.write_conditionally(first, b"late") is None
    assert [entry for _, entry in log.read_from(start)] == [b"one", b"two"]
    assert log.entry_after(first) == (log.latest_revision(), b"two")
    assert log.mark() is None
    assert log.compare_and_set_mark(None, first)
    assert not log.compare_and_set_mark(None, start)
    assert log.mark() == first
    log.truncate_to_revision(first)
    log.truncate_to_revision(start)
    assert log.oldest_revision() == first
    with pytest.raises(DataLossError):
        log.read_from(start)
    last = log.write_conditionally(log.latest_revision(), bytes(8 << 20))
    assert last == log.latest_revision()


def test_a_stream_that_ends_reports_it(client, log, stream):
    client.controller.seal_stream(stream)
    with pytest.raises(StreamSealedError):
        log.write_conditionally(log.latest_revision(), b"x")
    with pytest.raises(StreamSealedError):
        log.write_unconditionally(b"x")
    client.controller.delete_stream(stream)
    with pytest.raises(StreamNotFoundError):
        log.latest_revision()
    with pytest.raises(StreamNotFoundError):
        log.write_unconditionally(b"x")


def test_a_shared_state_survives_compactions(client, stream):
    def make():
        return client.synchronizer(
            stream,
            create=lambda words: tuple(words.split()),
            apply=lambda words, word: (*words, word),
            init_serializer=TEXT,
            update_serializer=TEXT,
        )

    with make() as one, make() as other:
        assert one.initialize("a")
        assert not other.initialize("b")
        for number in range(30):
            writer, follower = (one, other) if number % 2 else (other, one)
            assert writer.update_state(lambda words, number=number: [str(number)])
            if number % 5 == 4:
                assert follower.compact(" ".join)
        one.fetch_updates()
        other.fetch_updates()
        with make() as late:
            late.fetch_updates()
            assert late.state == one.state == other.state == ("a", *map(str, range(30)))
            assert late.bytes_since_compaction() < 200
