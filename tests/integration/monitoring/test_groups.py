"""Reader groups as operators see them: the commands, their lag to the byte, the live view."""

import json
from collections.abc import Callable, Iterator

import pytest
from click.testing import Result

from pravega_connector.client import PravegaClient, ScalingPolicy
from pravega_connector.client.reader_group import ReaderGroup
from pravega_connector.errors import ReaderOfflineError, ReaderOnlineError
from pravega_connector.operations.monitoring import StreamWatch, group_lag, group_view
from pravega_connector.reader_groups.reader import GroupReader
from pravega_connector.wire import StreamName
from tests.integration._events import SIZE, write_events

Run = Callable[..., Result]


@pytest.fixture
def stream(client: PravegaClient, own_scope: str) -> StreamName:
    name = StreamName(own_scope, "orders")
    client.create_stream(name, 2)
    return name


@pytest.fixture
def group(client: PravegaClient, stream: StreamName) -> Iterator[ReaderGroup]:
    with client.reader_group(f"{stream.scope}/billing", stream, checkpoint_interval=0.2, refresh=0.1) as group:
        yield group


def read(reader: GroupReader[bytes], count: int) -> None:
    """Take this many events; more come with the last call only if they are of one segment."""
    while count > 0:
        count -= sum(not event.is_checkpoint for event in reader.poll(1.0))


def _merge(client: PravegaClient, stream: StreamName) -> None:
    client.update_stream(stream, segments=ScalingPolicy.by_events(1000))
    client.scale_stream(stream, segments=1)


def told(reader: GroupReader[bytes], condition: Callable[[], bool]) -> None:
    """Call a reader until what it has told reports it."""
    for _ in range(600):
        if condition():
            return
        reader.poll(0.1)
    raise AssertionError(condition)


def test_a_lag_is_right_to_the_byte(client, stream, group, run):
    name = f"{stream.scope}/billing"
    write_events(client, stream, 30)
    assert json.loads(run("group", "lag", name, "--json", "--events").output)["events"] == 30
    assert run("group", "lag", name, "--max-bytes", 30 * SIZE).stderr == ""
    assert "bytes, more than" in run("group", "lag", name, "--max-bytes", 30 * SIZE - 1, code=5).stderr
    with group.reader("r1") as reader:
        read(reader, 30)
        told(reader, lambda: sum(lag.bytes for lag in group_lag(client, group_view(client, name))) == 0)
        write_events(client, stream, 5)
        assert json.loads(run("group", "lag", name, "--json").output)["bytes"] == 5 * SIZE
        read(reader, 5)
    _merge(client, stream)
    write_events(client, stream, 7)
    assert json.loads(run("group", "lag", name, "--json").output)["bytes"] == 7 * SIZE


def test_a_lag_through_a_merge_that_one_reader_has_not_come_to(client, stream, group):
    name = f"{stream.scope}/billing"
    write_events(client, stream, 20)
    _merge(client, stream)
    write_events(client, stream, 3)
    first, second = group.reader("r1"), group.reader("r2")
    with first, second:

        def waits() -> bool:
            if not group.state.future:  # looked at after each turn of both: two may be past the merge
                second.poll(0)
            return bool(group.state.future)

        # r2 takes its segment and reads nothing but with poll(0): it is behind when r1 has come to the merge.
        told(first, waits)
        rest = sum(lag.bytes for lag in group_lag(client, group_view(client, name)))
        assert rest >= 3 * SIZE
        told(first, lambda: second.poll(0.1) is not None and not group.state.future)
        told(
            first,
            lambda: (
                second.poll(0) is not None and not sum(lag.bytes for lag in group_lag(client, group_view(client, name)))
            ),
        )


def test_a_group_with_an_end_is_behind_that(client, stream, own_scope):
    end = write_events(client, stream, 10)
    write_events(client, stream, 10)
    with client.reader_group(f"{own_scope}/bounded", stream, end=end):
        [lag] = group_lag(client, group_view(client, f"{own_scope}/bounded"))
    assert lag.bytes == 10 * SIZE


def test_groups_are_listed_described_reset_and_deleted(client, stream, group, run):
    scope, name = stream.scope, f"{stream.scope}/billing"
    write_events(client, stream, 10)
    client.controller.create_subscriber(stream, "published")
    assert json.loads(run("group", "list", scope, "--json").output) == [name, f"{scope}/published"]
    assert run("group", "list", scope).output == f"{name}\n{scope}/published\n"
    assert json.loads(run("group", "describe", f"{scope}/published", "--json").output)["readers"] is None
    assert "has no state" in run("group", "lag", f"{scope}/published", code=1).stderr

    with group.reader("r1") as reader:
        read(reader, 10)
        told(reader, lambda: bool(group.state.checkpoints.last))
        shown = json.loads(run("group", "describe", name, "--json").output)
        assert shown["streams"] == [str(stream)]
        assert shown["checkpoint_interval"] == 0.2
        assert [segment.rpartition("/")[0] for segment in shown["readers"]["r1"]] == [str(stream)] * 2
        text = run("group", "describe", name).output
        assert "r1" in text
        assert f"{stream}/0.#epoch.0" in text

        assert "standard input is not a terminal; pass --yes" in run("group", "reset", name, code=2).stderr
        run("group", "reset", name, "--at", "earliest", "--yes")
        assert group.state.readers == 0
        assert json.loads(run("group", "lag", name, "--json").output)["bytes"] == 10 * SIZE
    run("group", "reset", name, "--at", client.tail(stream), "--yes")
    assert json.loads(run("group", "lag", name, "--json").output)["bytes"] == 0
    assert "--at is set 2 times" in run("group", "reset", name, "--at", "earliest", "--at", "x", code=2).stderr

    client.create_stream(f"{scope}/returns")
    run("group", "reset", name, "--stream", stream, "--stream", f"{scope}/returns", "--end", "latest",
        "--retention", "manual", "--checkpoint-interval", "0", "--refresh", "2", "--yes")  # fmt: skip
    shown = json.loads(run("group", "describe", name, "--json").output)
    assert (shown["streams"], shown["start"][f"{scope}/returns"]) == ([str(stream), f"{scope}/returns"], None)
    assert shown["end"] == {each: str(client.tail(each)) for each in shown["streams"]}
    assert (shown["retention"], shown["checkpoint_interval"], shown["refresh"]) == ("manual", None, 2.0)
    assert "--end is set 3 times" in run("group", "reset", name, *("--end", "latest") * 3, code=2).stderr
    run("group", "reset", name, "--end", "unbounded", "--stream", stream, "--max-outstanding", 7, "--yes")
    shown = json.loads(run("group", "describe", name, "--json").output)
    assert (shown["streams"], shown["end"], shown["max_outstanding"]) == ([str(stream)], {}, 7)

    run("group", "delete", name, "--yes")
    for command in ("describe", "lag", "delete"):
        assert "PRAVEGA-READER-GROUP-NOT-FOUND" in run("group", command, name, code=4).stderr
    assert json.loads(run("group", "list", scope, "--json").output) == [f"{scope}/published"]


def test_a_reader_that_has_died_is_taken_out(client, stream, group, run):
    name = f"{stream.scope}/billing"
    write_events(client, stream, 10)
    dead = group.reader("r1")  # is not called any more, and never leaves
    told(dead, lambda: len(group.state.assigned["r1"]) == 2)
    with pytest.raises(ReaderOnlineError, match=r"by group.reader_offline\('r1'\) or pravega-serde group offline"):
        group.reader("r1")
    assert "standard input is not a terminal; pass --yes" in run("group", "offline", name, "r1", code=2).stderr
    assert group.online_readers() == ["r1"]
    with group.reader("r2") as reader:
        run("group", "offline", name, "r1", "--yes")
        read(reader, 10)
        refused = run("group", "offline", name, "r1", "r2", "r3", "--yes", code=1).stderr
    assert "has no reader r1, r3; its readers: none" in refused
    assert group.online_readers() == []
    with pytest.raises(ReaderOfflineError):
        told(dead, lambda: False)  # it hears of it within a refresh
    dead.close()


def test_the_live_view_knows_who_reads(client, stream, group, run):
    name = f"{stream.scope}/billing"
    write_events(client, stream, 10)
    looker = StreamWatch(client, stream, group=name)
    assert sum(segment.behind or 0 for segment in looker.look().segments) == 10 * SIZE
    assert [segment.reader for segment in looker.look().segments] == [None, None]
    with group.reader("r1") as reader:
        read(reader, 10)
        told(reader, lambda: not any(segment.behind for segment in looker.look().segments))
        shown = json.loads(
            run("watch", stream, "--once", "--interval", "0.1", "--json", "--group", name).output.split("\n")[0]
        )
        assert [segment["reader"] for segment in shown["segments"]] == ["r1", "r1"]
        assert "r1" in run("watch", stream, "--once", "--interval", "0.1", "--group", name).output
    client.create_stream(f"{stream.scope}/other")
    other = run("watch", f"{stream.scope}/other", "--once", "--interval", "0.1", "--group", name, code=1)
    assert "does not read" in other.stderr
