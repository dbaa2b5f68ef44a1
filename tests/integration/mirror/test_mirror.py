"""Mirrors: each event once, in order per routing key, while both streams are scaled, truncated, sealed or deleted."""

import itertools
import threading
from dataclasses import replace
from typing import Any

import pytest

from pravega_connector.client import PravegaClient, ScalingPolicy, StreamName
from pravega_connector.core.values import STATE_TAG
from pravega_connector.errors import (
    ConfigError,
    DataLossError,
    InvalidNameError,
    StepsStateError,
    StreamNotFoundError,
    StreamSealedError,
)
from pravega_connector.operations.mirror import MirrorCounts, mirror, mirror_status
from pravega_connector.operations.mirror.source import Source
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import StreamCut
from tests.integration.mirror.conftest import BY_KEY, KEYS, each


def scale(client: PravegaClient, stream: StreamName, *bounds: float) -> None:
    """Replace all segments."""
    sealed = [segment.id for segment in client.controller.current_segments(stream)]
    client.controller.scale_stream(stream, sealed, list(itertools.pairwise(bounds)))


def bounds_of(client: PravegaClient, stream: StreamName) -> list[tuple[float, float]]:
    return sorted((segment.low, segment.high) for segment in client.controller.current_segments(stream))


def test_it_follows_scalings_of_the_source(client, other, source, target, run, write, copied):
    write(5)
    scale(client, source, 0.0, 0.2, 0.7, 1.0)
    write(5)
    scale(client, source, 0.0, 0.4, 1.0)
    scale(client, source, 0.0, 1.0)
    write(5)
    summary = run(transaction_bytes=200)
    assert summary.counts.events == 15 * KEYS
    assert summary.counts.barriers == 4
    assert copied() == each(15)
    assert bounds_of(other, target) == bounds_of(client, source) == [(0.0, 1.0)]
    scale(client, source, 0.0, 0.5, 1.0)
    write(1)
    assert run().counts.events == KEYS
    assert copied() == each(16)
    for key in range(KEYS):  # each event is in a segment that owns its key
        found = other.read(target, key=str(key), router=BY_KEY)
        assert [int(event.split()[1]) for event in found] == list(range(16))


def test_others_may_scale_the_destination(client, other, source, target, run, write, copied):
    write(5)
    run()

    def meddle(what: str, counts: MirrorCounts) -> None:
        if what == "copying" and counts.transactions in (1, 3):
            scale(other, target, *((0.0, 0.1, 0.3, 0.6, 1.0) if counts.transactions == 1 else (0.0, 1.0)))

    write(5)
    scale(client, source, 0.0, 0.3, 1.0)
    write(5)
    scale(client, source, 0.0, 1.0)
    write(5)
    summary = run(transaction_bytes=60, on_progress=meddle)
    assert summary.counts.transactions > 3
    assert copied() == each(20)
    assert bounds_of(other, target) == bounds_of(client, source)


def test_events_of_any_size(client, other, source, target, run):
    sizes = [0, 1, 0, 3_000_000, 7, 0]
    with client.writer(source) as writer:
        for size in sizes:
            writer.write(bytes(size), "key")
    assert run(transaction_bytes=1).counts.transactions == len(sizes)
    assert [len(event) for event in other.read(target)] == sizes


def test_it_begins_at_a_position(client, source, run, write, copied):
    write(3)
    start = client.tail(source)
    write(2)
    assert run(start=start).counts.events == 2 * KEYS
    assert run(start="earliest").counts.events == 0  # the first run has decided
    assert copied() == {str(key): [3, 4] for key in range(KEYS)}


def test_it_ends_at_the_tail_of_its_start(client, source, run, write, copied):
    write(2)

    def write_more(what: str, counts: MirrorCounts) -> None:
        if what == "copying" and counts.transactions == 1:
            write(2)
            scale(client, source, 0.0, 1.0)

    assert run(on_progress=write_more).counts.events == 2 * KEYS
    assert run().counts.events == 2 * KEYS
    assert copied() == each(4)


class _StopError(BaseException):
    """Ends a run that follows the source."""


def test_it_follows_the_source_and_ends_in_order(client, source, run, write, copied, eventually):
    stopping = threading.Event()
    seen: list[MirrorCounts] = []

    def on_progress(_what: str, counts: MirrorCounts) -> None:
        seen.append(counts)
        if stopping.is_set():
            raise _StopError

    def follow() -> None:
        with pytest.raises(_StopError):
            run(follow=True, on_progress=on_progress)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        write(2)
        eventually(lambda: copied() == each(2) if seen else False)
        scale(client, source, 0.0, 0.3, 1.0)
        write(2)
        eventually(lambda: copied() == each(4))
    finally:
        stopping.set()
        thread.join()
    write(1)
    assert run().counts.recovered == 0  # its last step is settled
    assert copied() == each(5)


# ---- ends ------------------------------------------------------------------------------------------------------------


def test_a_sealed_source(client, other, source, target, run, write, copied):
    write(3)
    client.seal_stream(source)
    assert run(follow=True).sealed
    assert bounds_of(other, target)  # open
    assert run(seal=True).sealed
    assert not bounds_of(other, target)
    assert run(seal=True).counts.events == 0
    assert copied() == each(3)


def test_a_sealed_destination(other, target, run, write):
    write(1)
    run()
    other.seal_stream(target)
    write(1)
    with pytest.raises(StreamSealedError, match=str(target)):
        run()


def test_truncated_events_are_an_error(client, source, run, write, copied):
    write(1)
    run()
    write(2)
    client.truncate(client.tail(source))
    write(1)
    with pytest.raises(
        DataLossError, match=rf"{source}, segment .* were truncated before they were mirrored.*skip_lost"
    ):
        run()
    summary = run(skip_lost=True)
    assert summary.counts.skipped_bytes > 0
    assert copied() == {str(key): [0, 3] for key in range(KEYS)}


def test_segments_that_are_truncated_away(client, source, run, write, copied):
    """The mirror has read one of them to its end, and another one not at all."""
    write(1)
    run()
    scale(client, source, 0.0, 0.5, 1.0)
    client.truncate(client.tail(source))
    write(1)
    assert run().counts.skipped_bytes == 0
    write(1)
    scale(client, source, 0.0, 1.0)
    client.truncate(client.tail(source))
    write(1)
    with pytest.raises(DataLossError, match=f"{source}, segment"):
        run()
    assert run(skip_lost=True).counts.events == KEYS
    assert copied() == {str(key): [0, 1, 3] for key in range(KEYS)}


def test_a_deleted_segment_of_unknown_length(client, source, run, write, copied, monkeypatch, caplog):
    """The controller's tables cannot be read, for example without the permission."""
    monkeypatch.setattr("pravega_connector.operations.mirror.source.sealed_lengths", lambda *_: {})
    write(1)
    run()
    scale(client, source, 0.0, 1.0)
    write(1)
    client.truncate(client.tail(source))
    write(1)
    with pytest.raises(DataLossError, match="events were truncated before they were mirrored"):
        run()
    summary = run(skip_lost=True)
    assert (summary.counts.events, summary.counts.skipped_bytes > 0) == (KEYS, True)
    assert "to its unknown end" in caplog.text
    assert copied() == {str(key): [0, 2] for key in range(KEYS)}


def test_events_that_are_truncated_while_they_are_read(client, source, run, write, copied, monkeypatch):
    write(1)
    read, truncated = Source.read, []

    def late(self: Source, *given: Any) -> Any:
        if not truncated:
            truncated.append(client.tail(source))
            client.truncate(truncated[0])
            write(1)
        return read(self, *given)

    monkeypatch.setattr(Source, "read", late)
    assert run(skip_lost=True).counts.events == 0  # it ends at the tail of its start
    assert run().counts.events == KEYS
    assert copied() == {str(key): [1] for key in range(KEYS)}


def test_a_deleted_source(client, source, target, run, write):
    write(1)
    run()
    client.delete_stream(source)
    with pytest.raises(StreamNotFoundError, match=str(source)):
        run()
    client.create_stream(source)
    with pytest.raises(
        StepsStateError, match=rf"{target}-mirror keeps the state of the mirror of {source}#0 to .*another name"
    ):
        run()


def test_a_source_that_is_deleted_during_a_run(client, source, run, write):
    write(1)

    def delete(what: str, _counts: MirrorCounts) -> None:
        if what == "waiting for new events" and client.stream_exists(source):
            client.delete_stream(source)

    with pytest.raises(StreamNotFoundError, match=f"{source} was deleted while it was in use"):
        run(follow=True, on_progress=delete)


def test_a_deleted_destination(other, target, run, write, copied):
    write(1)
    run()
    other.delete_stream(target)
    with pytest.raises(StreamNotFoundError, match=f"{target} was deleted, but .* delete stream {target}-mirror"):
        run()
    assert run(name="again").counts.events == KEYS
    with pytest.raises(StepsStateError, match=f"{target}-mirror keeps the state of the mirror"):
        run()
    assert copied() == each(1)


# ---- settings, tags and time -----------------------------------------------------------------------------------------


def test_the_destination_has_the_settings_of_the_source(client, other, source, target, run):
    config = client.describe(source).config
    config = replace(config, tags=("orders", "daily"), timestamp_aggregation_timeout_ms=5000)
    client.controller.update_stream(source, replace(config, scaling=ScalingPolicy.fixed(2)))
    run()
    assert other.describe(target).config.tags == ("daily", "orders")
    assert other.describe(target).config.timestamp_aggregation_timeout_ms == 5000
    assert len(bounds_of(other, target)) == 2
    scale(client, source, 0.0, 0.1, 0.2, 1.0)
    run()
    assert len(bounds_of(other, target)) == 3
    config = other.describe(target).config
    other.controller.update_stream(target, replace(config, tags=(*config.tags, "copy")))
    config = client.describe(source).config
    client.controller.update_stream(source, replace(config, tags=("hourly", "orders"), scaling=ScalingPolicy.fixed(3)))
    run()
    assert other.describe(target).config.tags == ("copy", "hourly", "orders")
    assert bounds_of(other, target) == [(0.0, 0.1), (0.1, 0.2), (0.2, 1.0)]


def test_watermarks_are_noted_again(client, other, source, target, run, eventually):
    def bounds(client: PravegaClient, stream: StreamName) -> list[tuple[int, int]]:
        return [(mark.low, mark.high) for mark in client.watermarks(stream)]

    for time in (1000, 2000):
        with client.writer(source, writer_id="writer") as writer:
            for number in range(10):
                writer.write(b"%d" % (time - number), f"key {number}")
            writer.note_time(time)
        eventually(lambda time=time: bounds(client, source)[-1:] == [(time, time)])
        run(transaction_bytes=50)
        eventually(lambda time=time: bounds(other, target)[-1:] == [(time, time)])
    for mark in other.watermarks(target):
        assert all(int(event) <= mark.high for event in other.read(target, end=mark.cut))
        assert all(int(event) > mark.low for event in other.read(target, start=mark.cut))


# ---- status ----------------------------------------------------------------------------------------------------------


def test_the_status_maps_positions(client, other, source, target, run, write):
    clients = {"source_client": client, "destination_client": other}
    with pytest.raises(StreamNotFoundError, match=f"{target} does not exist"):
        mirror_status(source, target, **clients)
    write(2)
    run()
    reached = client.tail(source)
    write(1)
    status = mirror_status(source, target, **clients)
    assert status.source == reached
    assert status.aligned
    assert status.lag is not None
    assert status.lag.bytes == sum(len(event) + 8 for event in client.read(source, start=reached))
    assert isinstance(status.destination, StreamCut)
    run()
    assert list(other.read(target, start=status.destination)) == list(client.read(source, start=status.source))


def test_several_mirrors_of_one_source(client, other, source, run, write):
    """Each name is a mirror. Two mirrors to one destination copy everything twice."""
    write(1)
    assert [run(name=name).counts.events for name in ("one", "two", "one")] == [KEYS, KEYS, 0]


def test_a_stream_is_not_mirrored_to_itself_under_another_address(client, source, write):
    write(1)
    same = replace(client.config, controller=client.config.controller.replace("127.0.0.1", "localhost"))
    before = client.tail(source)
    with PravegaClient(same) as other:
        for destination in (client, other):
            with pytest.raises(
                ConfigError, match=f"{source} cannot be mirrored to itself: .* one stream of one cluster"
            ):
                mirror(source, source, source_client=client, destination_client=destination)
    assert client.tail(source) == before
    assert not client.stream_exists(StreamName(source.scope, f"{source.stream}-mirror"))


def test_a_destination_without_events_is_refused(client, source, write):
    write(1)
    ledger, internal = (StreamName(source.scope, name) for name in ("decisions", f"_MARK{source.stream}"))
    client.create_stream(ledger, 1, tags=[STATE_TAG])
    for stream, reason in ((ledger, "has the state of exactly-once writes"), (internal, "is internal")):
        with pytest.raises(InvalidNameError, match=f"{stream} {reason}"):
            mirror(source, stream, source_client=client, destination_client=client)
    assert client.tail(ledger) == client.head(ledger)
    assert not client.stream_exists(StreamName(source.scope, "decisions-mirror"))


def test_a_stream_is_mirrored_to_its_name_in_another_cluster(client, source, write):
    write(1)
    with InProcessPravega() as second, second.client() as two, InProcessPravega() as third, third.client() as three:
        for _ in range(2):  # the second run resumes: the destination exists, and has the same creation
            mirror(source, source, source_client=client, destination_client=two)
            mirror(source, source, source_client=two, destination_client=three)
        assert len(list(three.read(source))) == KEYS
        # Back to the first cluster: mirrors in the source's cluster do not lead from the third one to it.
        with pytest.raises(ConfigError, match="would close a circle"):
            mirror(source, source, source_client=two, destination_client=client)
        assert len(list(client.read(source))) == KEYS


def test_a_chain_of_mirrors_does_not_close_a_circle(client, source, write):
    write(1)
    second, third = (StreamName(source.scope, f"{source.stream}-{n}") for n in (2, 3))
    both = {"source_client": client, "destination_client": client}
    mirror(source, second, **both)
    mirror(second, third, **both)
    for end in (second, third):
        with pytest.raises(
            ConfigError, match=f"mirror of {end} to {source} would close a circle: a mirror copies {source}"
        ):
            mirror(end, source, **both)
    assert [len(list(client.read(each))) for each in (source, second, third)] == [KEYS] * 3
    mirror(source, third, name="direct", **both)  # not a circle
