"""Streams as tables: each event once, through scalings, kills, other runs and other programs."""

import json
import shutil
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from pravega_connector.client import StreamName
from pravega_connector.errors import ColumnTypeError, ConfigError, FencedError, LakeTableError
from pravega_connector.operations.cli.root import command_line
from pravega_connector.operations.tier import TierPosition, delta, tier, tier_status
from pravega_connector.operations.tier.delta import DeltaLakeTable
from pravega_connector.operations.tier.iceberg import IcebergTable
from pravega_connector.operations.tier.lake_table import check_columns
from pravega_connector.operations.tier.run import _Run
from pravega_serde import AvroSerializer
from pravega_serde.errors import DeserializationError
from tests.integration.tier.conftest import KEYS, Lake

SMALL = 2000  # bytes: several commits a run


class _KilledError(BaseException):
    """Ends a run like a kill: nothing is cleaned up."""


def numbers(rows: pa.Table) -> dict[str, list[int]]:
    """Return the numbers of each key, in the order of the segments and offsets that the rows name."""
    found: dict[str, list[int]] = defaultdict(list)
    for row in sorted(rows.to_pylist(), key=lambda row: (row["segment_id"] >> 32, row["segment_id"], row["offset"])):
        found[row["key"]].append(row["number"])
    return found


def all_of(count: int) -> dict[str, list[int]]:
    return {f"k{key}": list(range(count)) for key in range(KEYS)}


def test_each_event_is_in_the_table_once_through_scalings(client, stream, lake, run, write):
    commits = 0
    for round_, segments in enumerate((5, 2, 4)):
        write(20)
        client.scale_stream(stream, segments)
        write(20)
        summary = run(target_bytes=SMALL)
        commits += summary.counts.commits
        assert summary.position is not None
        assert (summary.position.version, summary.position.rows) == (commits, 40 * KEYS * (round_ + 1))
    assert commits > 6
    assert numbers(lake.rows()) == all_of(120)
    assert run().counts.commits == 0, "there is nothing new"


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch, lake: Lake) -> Callable[..., None]:
    """``around(before=…, after=…)``: call these functions around the next commit."""
    kind = DeltaLakeTable if lake.kind == "delta" else IcebergTable
    commit = kind.commit

    def arm(before: Callable[[], None] = lambda: None, after: Callable[[], None] = lambda: None) -> None:
        def once(self: Any, rows: pa.Table, position: TierPosition) -> None:
            monkeypatch.setattr(kind, "commit", commit)
            before()
            commit(self, rows, position)
            after()

        monkeypatch.setattr(kind, "commit", once)

    return arm


def raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_is_killed_at_a_commit(lake, run, write, around, when):
    for count in (1, 2, 3):
        write(10)
        around(**{when: raising(_KilledError())})
        with pytest.raises(_KilledError):
            run(target_bytes=SMALL)
        assert run(target_bytes=SMALL).counts.rows > 0 or when == "after"
        assert numbers(lake.rows()) == all_of(10 * count)


def test_the_answer_of_a_commit_is_lost(lake, run, write, around):
    write(10)
    around(after=raising(LakeTableError("the connection was lost")))
    assert run(target_bytes=SMALL).counts.rows == 10 * KEYS
    assert numbers(lake.rows()) == all_of(10)


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_a_catalog_refuses_a_commit_that_it_has_done(run, write, lake, monkeypatch):
    write(10)
    run()
    write(10)
    commit = SqlCatalog.commit_table

    def done_and_refused(self: Any, *args: Any) -> Any:
        monkeypatch.setattr(SqlCatalog, "commit_table", commit)
        commit(self, *args)
        raise CommitFailedException("the requirement of the table failed: its snapshot has changed")

    monkeypatch.setattr(SqlCatalog, "commit_table", done_and_refused)
    assert run().counts.rows == 10 * KEYS
    assert numbers(lake.rows()) == all_of(20)


def test_another_run_wins(lake, run, write, around):
    write(10)
    run(target_bytes=SMALL)
    write(10)
    around(before=lambda: None if run().counts.rows else pytest.fail("the other run wrote nothing"))
    with pytest.raises(FencedError, match="another run writes stream"):
        run(target_bytes=SMALL)
    assert numbers(lake.rows()) == all_of(20)


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_a_table_is_deleted_during_a_run(lake, run, write, around):
    write(10)
    run(target_bytes=SMALL)
    write(10)
    around(before=lambda: shutil.rmtree(lake.folder / "table"))
    with pytest.raises(LakeTableError, match="the table was deleted or replaced during the run"):
        run(target_bytes=SMALL)
    shutil.rmtree(lake.folder / "table", ignore_errors=True)
    run()
    assert numbers(lake.rows()) == all_of(20)


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_a_delta_table_is_loaded_again_after_some_commits(lake, run, write, monkeypatch):
    loads, load = [], DeltaLakeTable._load
    monkeypatch.setattr(DeltaLakeTable, "_load", lambda self: loads.append(self) or load(self))
    monkeypatch.setattr(delta, "_LOADED_FOR", 0, raising=False)
    write(40)
    commits = run(target_bytes=SMALL).counts.commits
    assert commits > 1
    assert len(loads) == commits + 2, "at the start, after the creation, and before each commit"
    assert numbers(lake.rows()) == all_of(40)


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_another_run_commits_before_the_table_is_loaded_again(lake, run, write, around, monkeypatch):
    monkeypatch.setattr(delta, "_LOADED_FOR", 0)
    write(10)
    run(target_bytes=SMALL)
    write(10)
    around(before=lambda: None if run().counts.rows else pytest.fail("the other run wrote nothing"))
    with pytest.raises(FencedError, match="another run writes stream"):
        run(target_bytes=SMALL)
    assert numbers(lake.rows()) == all_of(20)


def test_another_run_commits_while_the_position_is_read(stream, lake, run, write, monkeypatch):
    write(10)
    run()
    write(10)
    load = DeltaLakeTable._load

    def before_a_run(self: Any) -> Any:
        monkeypatch.setattr(DeltaLakeTable, "_load", load)
        table = load(self)
        assert run().counts.rows == 10 * KEYS
        return table

    monkeypatch.setattr(DeltaLakeTable, "_load", before_a_run)
    position = lake.open().position(str(stream))
    assert position is not None
    assert position.version == 1


def test_another_program_changes_the_table(lake, run, write, around):
    write(10)
    run()
    write(10)
    around(before=lake.change)
    summary = run()
    assert summary.counts.rows == 10 * KEYS
    # Delta's library adds the rows after commits that do not concern them.
    assert summary.counts.conflicts == (1 if lake.kind == "iceberg" else 0) or lake.kind == "delta"
    assert numbers(lake.rows()) == all_of(20)


def test_an_error_of_the_table_ends_the_run_and_the_next_one_continues(lake, run, write, around):
    write(10)
    run()
    write(10)
    around(before=raising(LakeTableError("no space is left")))
    with pytest.raises(LakeTableError, match="no space is left"):
        run()
    run()
    assert numbers(lake.rows()) == all_of(20)


def test_new_fields_of_json_are_new_columns(lake, run, write):
    write(events=[{"key": "a", "o": {"x": 1}, "empty": {}, "none": None, "list": [{"v": 1}]}])
    run()
    write(events=[{"key": "a", "o": {"x": 2, "y": "b"}, "none": 7, "list": [{"w": True}], "more": 1.5}])
    write(events=[{"key": "a", "last": "z", "list": []}])
    run()
    by_offset = sorted(lake.rows().to_pylist(), key=lambda row: row["offset"])
    assert [{k: v for k, v in row.items() if k not in ("segment_id", "offset", "key")} for row in by_offset] == [
        {
            "o": {"x": 1, "y": None},
            "empty": "{}",
            "none": None,
            "list": [{"v": 1, "w": None}],
            "more": None,
            "last": None,
        },
        {
            "o": {"x": 2, "y": "b"},
            "empty": None,
            "none": "7",
            "list": [{"v": None, "w": True}],
            "more": 1.5,
            "last": None,
        },
        {"o": None, "empty": None, "none": None, "list": [], "more": None, "last": "z"},
    ]


def test_a_value_of_another_type_is_an_error_or_left_out(lake, run, write):
    write(events=[{"key": "a", "number": 1}])
    run()
    write(events=[{"key": "a", "number": "one"}, {"key": "a", "number": 2}])
    with pytest.raises(DeserializationError, match=r"field \$.number"):
        run()
    summary = run({"mode": "DROPMALFORMED"})
    assert (summary.counts.events, summary.counts.rows) == (2, 1)
    assert summary.position is not None
    assert (summary.position.events, summary.position.rows) == (3, 2)
    assert sorted(lake.rows()["number"].to_pylist()) == [1, 2]


def test_events_without_a_format_are_bytes(lake, run, write):
    write(1)
    run({"format": None})
    assert {json.loads(event)["number"] for event in lake.rows()["event"].to_pylist()} == {0}
    assert lake.rows().num_rows == KEYS


def test_a_partitioned_and_sorted_table(lake, run, write):
    write(10)
    run(partition_by=("key",), sort_by=("number",))
    write(10)
    run(sort_by=("number",))
    assert numbers(lake.rows()) == all_of(20)
    write(1)
    with pytest.raises(ConfigError, match="there is no column 'nothing'"):
        run(sort_by=("nothing",))


def test_lists_do_not_sort_rows(client, stream, lake, run):
    client.write(stream, {"key": "1", "number": 0, "marks": [1]}, "json")
    with pytest.raises(ConfigError, match=r"column 'marks' of type list<.*> cannot sort the rows"):
        run(sort_by=("marks",))
    assert lake.open().position(str(stream)) is None


def test_only_committed_events_are_truncated(client, stream, lake, run, write, around):
    write(10)
    run(truncate_after=3600)
    assert client.head(stream) != client.tail(stream), "the commit is not old enough"
    run(truncate_after=0)  # nothing is new, so nothing is committed or truncated
    write(10)
    around(before=raising(_KilledError()))
    with pytest.raises(_KilledError):
        run(truncate_after=0)
    write(10)
    summary = run(truncate_after=0)
    assert summary.position is not None
    assert client.head(stream) == summary.position.stream_cut() == client.tail(stream)
    assert numbers(lake.rows()) == all_of(30)


def test_a_run_that_truncates_reads_the_old_commits_once(client, stream, lake, run, write, monkeypatch):
    write(10)
    run(target_bytes=SMALL)
    write(60)
    kind: Any = DeltaLakeTable if lake.kind == "delta" else IcebergTable
    positions, calls = kind.positions, []

    def counted(self: Any, name: str) -> Any:
        calls.append(name)
        return positions(self, name)

    monkeypatch.setattr(kind, "positions", counted)
    assert run(target_bytes=SMALL, truncate_after=0).counts.commits > 1
    assert client.head(stream) == client.tail(stream)
    assert calls == [str(stream)]


def test_a_stream_that_was_created_again(client, stream, lake, run, write):
    write(1)
    run()
    client.seal_stream(stream)
    client.delete_stream(stream)
    client.create_stream(stream)
    write(1)
    with pytest.raises(ConfigError, match="deleted and created again"):
        run()
    uri = client.config.controller
    tier(str(stream), lake.name, storage=lake.storage, controller=uri, format="json", start="earliest")
    assert sorted(lake.rows()["number"].to_pylist()) == [0] * KEYS + [1] * KEYS
    with pytest.raises(ConfigError, match="continues there"):
        tier(str(stream), lake.name, storage=lake.storage, controller=uri, format="json", start="earliest")


def test_two_streams_in_one_table(client, stream, lake, run, write):
    other = StreamName(stream.scope, f"{stream.stream}-2")
    client.create_stream(other)
    write(2)
    with client.writer(other, "json") as writer:
        writer.write({"key": "other", "number": 0}, routing_key="other")
    uri = client.config.controller
    for _ in range(2):
        run()
        tier(str(other), lake.name, storage=lake.storage, controller=uri, format="json")
    assert numbers(lake.rows()) == {**all_of(2), "other": [0]}


def test_the_command(client, stream, lake, write):
    storage = [part for item in lake.storage.items() for part in ("--storage", "=".join(item))]
    common = ["tier", str(stream), lake.name, "--controller", client.config.controller, *storage]

    def command(*more: str) -> str:
        result = CliRunner().invoke(command_line, [*common, *more], catch_exceptions=False)
        assert result.exit_code == 0
        return result.stdout

    assert command("--status") == "no commit of this stream\n"
    write(3)
    lines = command("--format", "json", "--json").splitlines()
    assert json.loads(lines[-1]) == {
        "events": 3 * KEYS,
        "rows": 3 * KEYS,
        "commits": 1,
        "conflicts": 0,
        "cut": client.tail(stream).to_text(),
    }
    write(1)
    shown = command("--status")
    assert f"commit 1: {3 * KEYS} events" in shown
    assert "lag: 0 bytes" not in shown
    position, lag = tier_status(str(stream), lake.name, storage=lake.storage, controller=client.config.controller)
    assert position is not None
    assert lag is not None
    assert (position.version, lag.bytes > 0) == (1, True)


def test_null_lists_stay_null(lake, run, write):
    write(events=[{"key": "a", "list": [{"v": 1}]}, {"key": "b"}, {"key": "c", "list": []}])
    run()
    (file,) = lake.folder.rglob("*.parquet")
    found = pq.read_table(file).to_pylist()
    assert {row["key"]: row["list"] for row in found} == {"a": [{"v": 1}], "b": None, "c": []}


@pytest.mark.parametrize("name", ["orders", "delta:", "iceberg:main.orders", "hudi:/x"])
def test_names_of_tables(client, name):
    with pytest.raises(ConfigError, match="write delta:PATH or iceberg:CATALOG"):
        tier("a/b", name, controller=client.config.controller)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (pa.time64("us"), "x"),
        (pa.struct([("a", pa.list_(pa.duration("us")))]), "x.a.element"),
        (pa.map_(pa.string(), pa.uint32()), "x.value"),
        (pa.struct([]), "x"),
    ],
)
def test_columns_that_tables_do_not_have(kind, path):
    with pytest.raises(ColumnTypeError, match=f"column '{path}' is"):
        check_columns(pa.schema([("id", pa.int64()), ("x", kind)]), "delta:/x")


def test_another_first_run_wins(lake, run, write, monkeypatch):
    write(10)
    collect = _Run._round

    def after_the_other(self: Any, *args: Any) -> None:
        monkeypatch.setattr(_Run, "_round", collect)
        assert run().counts.rows == 10 * KEYS
        collect(self, *args)

    monkeypatch.setattr(_Run, "_round", after_the_other)
    with pytest.raises(FencedError, match="another run writes stream"):
        run()
    assert numbers(lake.rows()) == all_of(10)


def test_another_run_commits_and_truncates(lake, run, write, monkeypatch):
    write(10)
    run()
    write(10)
    collect = _Run._round

    def after_the_other(self: Any, *args: Any) -> None:
        monkeypatch.setattr(_Run, "_round", collect)
        assert run(truncate_after=0).counts.rows == 10 * KEYS
        collect(self, *args)

    monkeypatch.setattr(_Run, "_round", after_the_other)
    with pytest.raises(FencedError, match="another run writes stream"):
        run()
    assert numbers(lake.rows()) == all_of(20)


def test_only_a_nested_field_is_new(lake, run, write):
    write(events=[{"o": {"x": 1}, "l": [{"v": 1}], "key": "a"}])
    run()
    write(events=[{"o": {"x": 2, "y": "b"}, "l": [{"v": 2, "w": True}], "key": "a"}])
    run()
    write(events=[{"o": {"x": 3}, "l": [], "key": "a"}])
    run()
    by_offset = sorted(lake.rows().to_pylist(), key=lambda row: row["offset"])
    assert [(row["o"], row["l"]) for row in by_offset] == [
        ({"x": 1, "y": None}, [{"v": 1, "w": None}]),
        ({"x": 2, "y": "b"}, [{"v": 2, "w": True}]),
        ({"x": 3, "y": None}, []),
    ]


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED"])
def test_a_field_with_the_name_of_a_column_of_malformed_records(client, stream, lake, run, mode):
    client.write(stream, {"key": "1", "number": 0, "_corrupt_record_error": "mine"}, "json")
    with pytest.raises(ConfigError, match="set 'column_name_of_corrupt_record' to another name"):
        run({"mode": mode})
    run({"mode": mode, "column_name_of_corrupt_record": "bad"})
    assert lake.rows()["_corrupt_record_error"].to_pylist() == ["mine"]


def test_fields_of_cbor_with_two_types_are_an_error(client, stream, lake, run):
    with client.writer(stream, "cbor") as writer:
        writer.write({"key": "a", "n": 1}, routing_key="a")
    run({"format": "cbor"})
    with client.writer(stream, "cbor") as writer:
        writer.write({"key": "a", "n": 1, "new": 5, "m": 1}, routing_key="a")
        writer.write({"key": "a", "n": 1, "m": "x"}, routing_key="a")
    with pytest.raises(ColumnTypeError, match="do not have columns in common"):
        run({"format": "cbor"})


def test_a_wider_type_than_that_of_a_delta_table(client, stream, tmp_path):
    uri, table = client.config.controller, f"delta:{tmp_path}/table"
    schema = '{"type": "record", "name": "R", "fields": [{"name": "v", "type": "%s"}]}'
    for kind in ("float", "double"):
        with client.writer(stream, AvroSerializer(schema % kind)) as writer:
            writer.write({"v": 0.1}, routing_key="a")
        options: dict[str, Any] = {"controller": uri, "format": "avro", "avro_schema": schema % kind}
        if kind == "float":
            tier(str(stream), table, **options)
    with pytest.raises(ColumnTypeError, match="'v' is float in the table and double"):
        tier(str(stream), table, **options)


def test_partition_columns_whose_values_would_change(lake, run, write):
    write(events=[{"key": "a", "x": 1.5}, {"key": "", "x": 2.5}])
    with pytest.raises(ConfigError, match="column 'x' of type double cannot be a partition column"):
        run(partition_by=("x",))
    if lake.kind == "delta":
        with pytest.raises(ColumnTypeError, match="'key' has an empty text"):
            run(partition_by=("key",))
    else:
        run(partition_by=("key",))
        assert sorted(lake.rows()["key"].to_pylist()) == ["", "a"]
