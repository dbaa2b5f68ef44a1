"""Reader groups as their users have them: readers that share streams, checkpoints, scaling, resets, retention."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.client.reader_group import GroupCheckpoint, GroupNotification, ReaderGroup, SegmentDistribution
from pravega_connector.errors import (
    ConfigError,
    DataLossError,
    ReaderGroupError,
    ReaderOfflineError,
    ReaderOnlineError,
    StreamNotFoundError,
    TimeUnknownError,
)
from pravega_connector.reader_groups.delivery import GroupEvent
from pravega_connector.reader_groups.protocol import Bound, Retention, decode_position, encode_position
from pravega_connector.reader_groups.reader import GroupReader
from pravega_serde.errors import DeserializationError


@pytest.fixture
def scope(own_scope: str) -> str:
    return own_scope  # all groups have the same name


class Picky:
    """Deserializer that one event is bad for."""

    def deserialize(self, data: bytes, /) -> str:
        if data == b"\xff":
            raise DeserializationError("bad event")
        return data.decode()


class Collector:
    """Readers of one group in one process, whose turns the test drives."""

    def __init__(self, group: ReaderGroup) -> None:
        self.group = group
        self.readers: dict[str, GroupReader[str]] = {}
        self.events: list[GroupEvent[str]] = []
        self.checkpoints: list[tuple[str, str]] = []

    def join(self, *names: str) -> None:
        for name in names:
            self.readers[name] = self.group.reader(name, str)

    def round(self) -> None:
        """One call of each reader; no segment may be owned twice."""
        for name, reader in list(self.readers.items()):
            for event in reader.poll(0.02):
                if event.checkpoint is not None:
                    self.checkpoints.append((name, event.checkpoint))
                else:
                    self.events.append(event)
        owned = [segment for reader in self.readers.values() for segment in reader.position.positions]
        assert len(owned) == len(set(owned)), "a segment is owned twice"

    def until(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, (len(self.events), self.group._fetched())
            self.round()

    @property
    def values(self) -> list[str]:
        return [str(event.value) for event in self.events]

    def owned(self) -> dict[str, set[str]]:
        return {name: {str(s) for s in at} for name, at in self.group._fetched().assigned.items()}

    def close(self) -> None:
        for reader in self.readers.values():
            reader.close()


def write(client: PravegaClient, stream: StreamName, first: int, count: int) -> list[str]:
    values = [f"{number % 7}:{number}" for number in range(first, first + count)]
    with client.writer(stream, "string") as writer:
        for value in values:
            writer.write(value, routing_key=value[0])
    return values


def poll_on(reader: GroupReader[str], found: list[GroupEvent[str]] | None = None) -> None:
    """Read until there is an error."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        events = reader.poll(0.1)
        if found is not None:
            found += events


def fail_at(value: str, reader: GroupReader[str]) -> None:
    with reader:
        for event in reader:
            if event.value == value:
                raise ZeroDivisionError


def in_order(values: list[str]) -> bool:
    """Return True if the events of each key are in order."""
    last: dict[str, int] = {}
    for value in values:
        key, number = value.split(":")
        if int(number) <= last.get(key, -1):
            return False
        last[key] = int(number)
    return True


def test_a_reader_reads_all_to_the_end(client, stream_name):
    client.create_stream(stream_name, 2)
    values = write(client, stream_name, 0, 50)
    client.seal_stream(stream_name)
    group = client.reader_group(StreamName(stream_name.scope, "g1"), stream_name, checkpoint_interval=1.0, refresh=0.2)
    with group, group.reader("r1", str) as reader:
        events = list(reader)
        assert reader.at_end
    assert sorted(str(e.value) for e in events if not e.is_checkpoint) == sorted(values)
    assert any(e.is_checkpoint and e.value is None for e in events)
    assert group.name == "g1"


def test_readers_share_a_stream_while_it_scales(client, stream_name):
    client.create_stream(stream_name, 2)
    name = StreamName(stream_name.scope, "g")
    values = write(client, stream_name, 0, 40)
    with client.reader_group(name, stream_name, checkpoint_interval=1.0, refresh=0.2) as group:
        run = Collector(group)
        run.join("r1", "r2")
        run.until(lambda: len(run.events) >= 40)
        client.scale_stream(stream_name, 5)
        values += write(client, stream_name, 40, 40)
        run.until(lambda: len(run.events) >= 80)
        run.until(lambda: sorted(len(owned) for owned in run.owned().values()) == [2, 3])
        client.scale_stream(stream_name, 2)
        values += write(client, stream_name, 80, 40)
        run.until(lambda: len(run.events) >= 120)
        assert sorted(run.values) == sorted(values), "nobody died: nothing comes twice"
        assert in_order(run.values)
        run.close()
        assert group.online_readers() == []


def test_a_reader_that_vanishes_is_taken_offline(client, stream_name):
    client.create_stream(stream_name, 2)
    values = write(client, stream_name, 0, 30)
    with client.reader_group(
        StreamName(stream_name.scope, "g"), stream_name, checkpoint_interval=None, refresh=0.2
    ) as group:
        run = Collector(group)
        run.join("dead")
        run.until(lambda: len(run.events) >= 30)
        dead = run.readers.pop("dead")
        with pytest.raises(ReaderOnlineError):
            group.reader("dead")
        run.join("r2")
        assert group.reader_offline("dead")
        assert not group.reader_offline("dead")
        run.until(lambda: len(run.events) >= 60)
        assert sorted(run.values) == sorted(values * 2), "no checkpoint was taken: all comes again"
        with pytest.raises(ReaderOfflineError):
            poll_on(dead)
        run.close()


def test_a_block_that_fails_leaves_its_event_to_others(client, stream_name):
    client.create_stream(stream_name)
    values = write(client, stream_name, 0, 5)
    with client.reader_group(StreamName(stream_name.scope, "g"), stream_name, refresh=0.2) as group:
        with pytest.raises(ZeroDivisionError):
            fail_at(values[2], group.reader("r1", str))
        with group.reader("r1", str) as reader:
            events = (e for e in reader if not e.is_checkpoint)
            assert [next(events).value for _ in range(3)] == values[2:]


def test_looking_at_the_position_counts_nothing_as_done(client, stream_name):
    client.create_stream(stream_name, 1)
    (value,) = write(client, stream_name, 0, 1)

    def fail_after(reader: GroupReader[str]) -> None:
        with reader:
            event = next(event for event in reader if not event.is_checkpoint)
            (segment,) = reader.position.positions
            assert reader.position.positions[segment] > event.offset
            raise ZeroDivisionError

    with client.reader_group(StreamName(stream_name.scope, "g"), stream_name, refresh=0.2) as group:
        with pytest.raises(ZeroDivisionError):
            fail_after(group.reader("r1", str))
        with group.reader("r1", str) as reader:
            assert next(event.value for event in reader if not event.is_checkpoint) == value


def test_a_block_that_fails_for_the_group_leaves_it_all_the_same(client, stream_name):
    client.create_stream(stream_name)
    with client.reader_group(StreamName(stream_name.scope, "g"), stream_name, refresh=0.2) as group:

        def refused() -> None:
            with group.reader("r1", str):
                group.reader("r1", str)

        with pytest.raises(ReaderOnlineError):
            refused()
        assert group.online_readers() == []


def test_checkpoint_and_reset(client, stream_name):
    client.create_stream(stream_name, 2)
    write(client, stream_name, 0, 20)
    name = StreamName(stream_name.scope, "g")
    with client.reader_group(name, stream_name, checkpoint_interval=None, refresh=0.2) as group:
        run = Collector(group)
        run.join("r1", "r2")
        run.until(lambda: len(run.events) >= 20)
        with ThreadPoolExecutor(1) as pool:
            taking = pool.submit(group.checkpoint, "mine", 30.0)
            run.until(taking.done)
            checkpoint = taking.result()
            assert sorted(run.checkpoints) == [("r1", "mine"), ("r2", "mine")]
            cutting = pool.submit(group.stream_cuts, 30.0)
            run.until(cutting.done)
            assert cutting.result() == checkpoint.cuts == {stream_name: client.tail(stream_name)}
        assert len(run.checkpoints) == 2, "a silent one is not handed out"
        assert GroupCheckpoint.from_bytes(checkpoint.to_bytes()) == checkpoint
        assert group.unread_bytes() == 0
        after = write(client, stream_name, 20, 10)
        assert group.unread_bytes() == sum(len(value) + 8 for value in after)
        run.until(lambda: len(run.events) >= 30)
        group.reset(checkpoint)
        for reader in run.readers.values():
            with pytest.raises(ReaderOfflineError):
                poll_on(reader)
            reader.close()
        again = Collector(group)
        again.join("r1")
        again.until(lambda: len(again.events) >= 10)
        assert sorted(again.values) == sorted(after)
        again.close()


def test_a_group_is_reset_to_places_as_people_write_them(client, stream_name):
    other = StreamName(stream_name.scope, f"{stream_name.stream}-other")
    for stream in (stream_name, other):
        client.create_stream(stream)
    values = write(client, stream_name, 0, 10)
    others = write(client, other, 10, 10)
    name = StreamName(stream_name.scope, "g")
    with client.reader_group(name, [stream_name, other], checkpoint_interval=1.0, refresh=0.2) as group:

        def delivered() -> list[str]:
            with group.reader("r1", str) as reader:
                found: list[str] = []
                while group.unread_bytes() or len(found) < 10:
                    found += [str(event.value) for event in reader.poll(0.2) if not event.is_checkpoint]
                return sorted(found)

        group.reset("latest")
        assert group.unread_bytes() == 0
        group.reset("earliest")
        assert delivered() == sorted([*values, *others])
        group.reset("latest")
        group.reset([client.head(other).to_text()])
        assert delivered() == sorted(others), "the other stream begins where it was told to last"
        group.reset(group.stream_cuts())
        assert group.unread_bytes() == 0
        with pytest.raises(ConfigError, match="argument 'to' must be 'earliest'"):
            group.reset(5)  # type: ignore[arg-type]
        with pytest.raises(TimeUnknownError):
            group.reset("timestamp:2026-01-01T00:00:00Z")
        assert group.unread_bytes() == 0


def test_a_group_is_reset_to_other_streams_and_settings(client, stream_name):
    other, third = (StreamName(stream_name.scope, f"{stream_name.stream}-{which}") for which in ("other", "third"))
    for stream in (stream_name, other, third):
        client.create_stream(stream, 2)
    write(client, stream_name, 0, 10)
    others, thirds = write(client, other, 10, 10), write(client, third, 20, 10)
    name = StreamName(stream_name.scope, "g")
    with client.reader_group(name, [stream_name, other], checkpoint_interval=None, refresh=0.2) as group:
        before = group.config
        run = Collector(group)
        run.join("r1")
        run.until(lambda: len(run.events) == 20)
        with ThreadPoolExecutor(1) as pool:
            taking = pool.submit(group.checkpoint, "before", 30.0)
            run.until(taking.done)
        more = write(client, stream_name, 30, 10)

        # Nothing is changed by what cannot be.
        for error, wrong in (
            (StreamNotFoundError, {"streams": f"{stream_name}-missing"}),
            (ConfigError, {"retention": "forever"}),
            (ConfigError, {"refresh": None}),
            (ConfigError, {"max_outstanding": 0}),
            (ConfigError, {"start": "earliest"}),
            (ConfigError, {"streams": stream_name, "end": client.head(stream_name)}),
        ):
            with pytest.raises(error):
                group.reset(**wrong)  # type: ignore[arg-type]
        with pytest.raises(ReaderGroupError, match=f"does not read {third}"):
            group.reset(client.tail(third))
        assert (group.config, group.state.updating, group.online_readers()) == (before, False, ["r1"])

        # One stays, and continues at the checkpoint. One goes, and one comes and begins at its head.
        group.reset(streams=[stream_name, third], retention="manual", checkpoint_interval=0.3, max_outstanding=5)
        now = group.config
        assert (list(now.start), now.generation, now.id) == ([stream_name, third], before.generation + 1, before.id)
        assert (now.retention, now.checkpoint_ms) == (Retention.MANUAL, 300)
        assert (now.refresh_ms, now.max_outstanding) == (200, 5)
        assert client.controller.group_config(name.scope, name.stream) == now
        subscribers = client.controller.subscribers
        assert [subscribers(each) for each in (stream_name, other, third)] == [[str(name)], [], [str(name)]]
        with pytest.raises(ReaderOfflineError):
            poll_on(run.readers["r1"])
        run.close()
        again = Collector(group)
        again.join("r1", "r2")
        again.until(lambda: len(again.events) == 20)
        assert sorted(again.values) == sorted([*more, *thirds])
        again.close()

        # The checkpoint has cuts of one that comes back and of one that stays: at these they begin.
        group.reset(taking.result(), streams=[stream_name, other], retention="none")
        last = Collector(group)
        last.join("r3")
        last.until(lambda: len(last.events) == 10)
        assert sorted(last.values) == sorted(more)
        last.close()
        assert [subscribers(each) for each in (stream_name, third)] == [[], []]

        # It ends at the given end, and then never again.
        end = client.tail(other)
        group.reset("earliest", streams=other, end=end)
        write(client, other, 40, 10)
        with group.reader("r4", str) as reader:
            assert sorted(str(event.value) for event in reader if not event.is_checkpoint) == sorted(others)
        group.reset("latest", streams=[other, third], end=None)
        assert group.config.end == {other: Bound(), third: Bound()}
        assert group.unread_bytes() == 0


@pytest.mark.parametrize("retention", ["none", "manual"])
def test_a_deleted_stream_is_left_only_without_retention(client, stream_name, retention):
    """With it the server would look for its subscriber for ever."""
    gone = StreamName(stream_name.scope, f"{stream_name.stream}-gone")
    for stream in (stream_name, gone):
        client.create_stream(stream)
    name = StreamName(stream_name.scope, f"g-{retention}")
    with client.reader_group(name, [stream_name, gone], retention=retention) as group:
        client.delete_stream(gone)
        with pytest.raises(StreamNotFoundError):
            group.reset()
        if retention == "none":
            group.reset(streams=stream_name)
            assert list(group.config.start) == [stream_name]
        else:
            refusal = f"cannot leave stream {gone}, which was deleted"
            with pytest.raises(ReaderGroupError, match=refusal):
                group.reset(streams=stream_name)
            client.create_stream(gone)
            for changes in ({"streams": stream_name}, {"retention": "none"}):
                with pytest.raises(ReaderGroupError, match=refusal):
                    group.reset(**changes)  # type: ignore[arg-type]
            assert group.config.generation == 0
        assert not group.state.updating


def test_a_group_ends_where_it_was_told_to(client, stream_name):
    client.create_stream(stream_name, 2)
    values = write(client, stream_name, 0, 20)
    end = client.tail(stream_name)
    write(client, stream_name, 20, 20)
    name = StreamName(stream_name.scope, "g")
    with (
        client.reader_group(name, stream_name, end=end, checkpoint_interval=1.0, refresh=0.2) as group,
        group.reader("r1", str) as reader,
    ):
        assert sorted(str(e.value) for e in reader if not e.is_checkpoint) == sorted(values)


def test_joining_and_other_configurations(client, stream_name):
    client.create_stream(stream_name)
    name = StreamName(stream_name.scope, "g")
    with pytest.raises(ReaderGroupError, match=r"reader group .* does not exist"):
        client.reader_group(name)
    with client.reader_group(name, stream_name, retention="manual") as made:
        with client.reader_group(name) as joined, client.reader_group(name, stream_name, retention="manual") as same:
            assert joined.config == same.config == made.config
        with pytest.raises(ReaderGroupError, match="a different configuration"):
            client.reader_group(name, stream_name)
        write(client, stream_name, 0, 3)
        made.update_retention_cut([client.tail(stream_name)])
        assert client.controller.subscribers(stream_name) == [str(name)]
        assert made.delete()
    with pytest.raises(ReaderGroupError, match=r"reader group .* does not exist"):
        client.reader_group(name)


def test_a_client_closes_its_groups(client, stream_name):
    client.create_stream(stream_name)
    with PravegaClient(client.config) as own:
        group = own.reader_group(f"{stream_name.scope}/left", stream_name)
    del group
    gc.collect()  # a connection that is left open is a ResourceWarning, and an error of this test


def test_truncated_data_are_an_error_once(client, stream_name):
    client.create_stream(stream_name)
    name = StreamName(stream_name.scope, "g")
    write(client, stream_name, 0, 5)
    with client.reader_group(name, stream_name, refresh=0.2) as group, group.reader("r1", str) as reader:
        client.truncate(client.tail(stream_name))
        after = write(client, stream_name, 5, 2)
        with pytest.raises(DataLossError):
            poll_on(reader)
        events = (e for e in reader if not e.is_checkpoint)
        assert [next(events).value for _ in range(2)] == after


def test_columns_and_bad_events(client, stream_name):
    client.create_stream(stream_name)
    name = StreamName(stream_name.scope, "g")
    with client.writer(stream_name) as writer:
        for event in (b"a", b"\xff", b"c"):
            writer.write(event, routing_key="k")
    with client.reader_group(name, stream_name, checkpoint_interval=None, refresh=0.2) as group:
        with group.reader("r1") as reader:
            while (batch := reader.poll_columns(0.1)) is None:
                pass
            assert not isinstance(batch, GroupEvent)
            assert batch.events.to_pylist()[0] == b"a"
        group.reset(client.head(stream_name))
        with group.reader("r2", Picky()) as text:
            seen: list[GroupEvent[str]] = []
            with pytest.raises(DeserializationError):
                poll_on(text, seen)
            while len(seen) < 2:
                seen += text.poll(0.1)
            assert [event.value for event in seen] == ["a", "c"]


def test_one_that_is_silent_is_taken_offline_and_no_other(client, stream_name, scope):
    client.create_stream(stream_name, 2)
    values = write(client, stream_name, 0, 40)
    with client.reader_group(f"{scope}/watched", stream_name, checkpoint_interval=0.3, refresh=0.1) as group:
        with pytest.raises(ConfigError, match="use 3 s or more"):
            group.take_silent_offline(1.0)
        silent = group.reader("silent", str)
        silent.poll(1.0)
        collector = Collector(group)
        collector.join("busy")
        taken: list[str] = []
        began = time.monotonic()
        collector.until(lambda: taken.extend(group.take_silent_offline(9.0)) or taken)
        assert time.monotonic() - began >= 9.0
        assert taken == ["silent"]
        assert group.online_readers() == ["busy"]
        collector.until(lambda: set(values) <= set(collector.values))
        collector.close()
        poll_offline(silent)


def poll_offline(reader: GroupReader[str]) -> None:
    with pytest.raises(ReaderOfflineError):
        poll_on(reader)


def test_a_position_is_handed_on_as_bytes(client, stream_name, scope):
    client.create_stream(stream_name, 2)
    values = write(client, stream_name, 0, 40)
    with client.reader_group(f"{scope}/handed", stream_name, refresh=0.1) as group:
        first = Collector(group)
        first.join("first")
        first.until(lambda: first.values)
        data = encode_position(first.readers["first"].position)
        assert group.reader_offline("first", decode_position(data))
        first.readers["first"].close()
        second = Collector(group)
        second.join("second")
        second.until(lambda: len(first.values) + len(second.values) >= 40)
        second.close()
    assert sorted(first.values + second.values) == sorted(values)


def test_the_distribution_of_segments_is_watched_to_the_end_of_the_data(client, stream_name):
    client.create_stream(stream_name, 2)
    client.write(stream_name, "a", "string")
    group = client.reader_group(StreamName(stream_name.scope, "g"), stream_name, checkpoint_interval=0.5, refresh=0.2)
    with group:
        seen = group.watch(0.1)
        assert next(seen) == GroupNotification(2, 0, end_of_data=False)
        assert group.segment_distribution() == SegmentDistribution({}, 2)
        assert group.reported_cuts() == {stream_name: client.head(stream_name)}
        with group.reader("r") as reader:
            while group.segment_distribution() != SegmentDistribution({"r": 2}, 0):
                reader.poll(0.1)
            assert next(seen) == GroupNotification(2, 1, end_of_data=False)
            while group.reported_cuts() != {stream_name: client.tail(stream_name)}:
                reader.poll(0.1)
            client.scale_stream(stream_name, 3)
            while group.segment_distribution().segments != 3:
                reader.poll(0.1)
            assert next(seen).segments == 3
            client.seal_stream(stream_name)
            while not group.state.is_end_of_data:
                reader.poll(0.1)
        *_, last = seen
        assert last.end_of_data
        assert last.segments == 0
        assert group.reported_cuts() == {}
        with pytest.raises(ConfigError, match="interval"):
            group.watch(0)


def test_outstanding_checkpoints_are_cancelled(client, stream_name):
    """The reader of the group has failed, so that no checkpoint ends."""
    client.create_stream(stream_name)
    group = client.reader_group(
        StreamName(stream_name.scope, "g"), stream_name, checkpoint_interval=None, refresh=0.2, max_outstanding=1
    )
    with group, group.reader("r") as reader, ThreadPoolExecutor(1) as threads:
        reader.poll(0.1)
        waiting = threads.submit(group.checkpoint, "first", 60)
        while group.state.checkpoints.outstanding != ["first"]:
            assert not waiting.done()
        with pytest.raises(ReaderGroupError, match="the group allows 1"):
            group.checkpoint("second", 1)
        group.cancel_outstanding_checkpoints()
        assert group.state.checkpoints.outstanding == []
        with pytest.raises(ReaderGroupError, match="was given up"):
            waiting.result()
        group.cancel_outstanding_checkpoints()
