"""Change events and keyed rows as a Delta table with the last row of each key."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.errors import ColumnTypeError, ConfigError, FencedError, LakeTableError
from pravega_connector.operations.cli.root import command_line
from pravega_connector.operations.tier import TierMerge, TierSettings, TierSummary, read_table_and_tail, tier
from pravega_connector.operations.tier.delta import DeltaLakeTable

Merge = Callable[..., TierSummary]
Change = Callable[..., None]

BY_ID = TierMerge(key=("id",), order="position")


@pytest.fixture
def stream(client: PravegaClient, stream_name: StreamName) -> StreamName:
    client.create_stream(stream_name)
    return stream_name


@pytest.fixture
def table(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def merge(client: PravegaClient, stream: StreamName, table: str) -> Merge:
    def start(by: TierMerge = BY_ID, **options: Any) -> TierSummary:
        own = {"format": "json", "unwrap": "debezium", "controller": client.config.controller, **options}
        return tier(str(stream), f"delta:{table}", settings=TierSettings(merge=by), **own)

    return start


@pytest.fixture
def change(client: PravegaClient, stream: StreamName) -> Change:
    """``change(at, op, before, after)``: write a change event with this position in the log of the database."""

    def write(at: int, op: str, before: Any = None, after: Any = None) -> None:
        source = {"connector": "postgresql", "ts_ms": 1777636800000, "table": "orders", "sequence": f'["{at}","{at}"]'}
        event = {"op": op, "before": before, "after": after, "source": source}
        key = str((after or before or {}).get("id"))
        client.write(stream, json.dumps(event), "string", routing_key=key)

    return write


def rows(table: str, *columns: str) -> list[Any]:
    found = DeltaTable(table).to_pyarrow_table().select(columns or ["id", "item"]).to_pylist()
    return sorted((tuple(row.values()) for row in found), key=lambda row: (row[0] is None, row[0]))


def test_changes_of_a_batch_and_of_later_batches(merge: Merge, change: Change, table: str) -> None:
    change(1, "r", None, {"id": 1, "item": "tea"})
    change(2, "c", None, {"id": 2, "item": "milk"})
    change(3, "u", {"id": 2, "item": "milk"}, {"id": 2, "item": "salt"})
    change(4, "c", None, {"id": 3, "item": "oil"})
    change(5, "d", {"id": 3, "item": "oil"})
    summary = merge()
    assert (summary.counts.events, summary.counts.commits) == (5, 1)
    assert rows(table) == [(1, "tea"), (2, "salt")]
    change(6, "u", {"id": 1, "item": "tea"}, {"id": 1, "item": None})
    change(7, "d", {"id": 2, "item": "salt"})
    change(8, "c", None, {"id": 3, "item": "rice", "price": 1.5})
    merge()
    assert rows(table, "id", "item", "price") == [(1, None, None), (3, "rice", 1.5)]
    assert merge().counts.events == 0
    assert [field.name for field in DeltaTable(table).schema().fields] == [
        *("id", "item", "position", "segment_id", "offset", "price")
    ]


def test_repeated_changes_do_not_go_back(merge: Merge, change: Change, table: str) -> None:
    change(1, "c", None, {"id": 1, "item": "tea"})
    change(2, "u", None, {"id": 1, "item": "milk"})
    merge()
    change(1, "c", None, {"id": 1, "item": "tea"})
    summary = merge()
    assert summary.position is not None
    assert (summary.counts.events, summary.position.version) == (1, 2), "the position is committed without a row"
    assert rows(table) == [(1, "milk")]
    change(3, "u", None, {"id": 1, "item": "oil"})
    change(2, "u", None, {"id": 1, "item": "milk"})
    merge()
    assert rows(table) == [(1, "oil")]


def test_rows_of_deleted_keys_keep_repeated_changes_out(merge: Merge, change: Change, table: str) -> None:
    by = TierMerge(key=("id",), order="position", keep_deleted=True)
    change(1, "c", None, {"id": 1, "item": "tea"})
    change(2, "c", None, {"id": 2, "item": "milk"})
    merge(by)
    change(3, "d", {"id": 1, "item": "tea"})
    merge(by)
    change(1, "c", None, {"id": 1, "item": "tea"})
    merge(by)
    assert rows(table, "id", "item", "deleted") == [(1, None, True), (2, "milk", False)]
    change(4, "c", None, {"id": 1, "item": "new"})
    merge(by)
    assert rows(table, "id", "item", "deleted") == [(1, "new", False), (2, "milk", False)]


def test_events_with_a_key(client: PravegaClient, stream: StreamName, merge: Merge, table: str) -> None:
    by = TierMerge(key=("shop", "id"))

    def write(*events: dict[str, Any]) -> None:
        with client.writer(stream, "json") as writer:
            for event in events:
                writer.write(event, routing_key=f"{event['shop']}/{event['id']}")

    write({"shop": "a", "id": 1, "n": 1}, {"shop": "b", "id": 1, "n": 2}, {"shop": "a", "id": 1, "n": 3})
    merge(by, unwrap=None)
    assert rows(table, "shop", "id", "n") == [("a", 1, 3), ("b", 1, 2)]
    client.scale_stream(stream, 2)
    write({"shop": "a", "id": 1, "n": None}, {"shop": "b", "id": 1, "n": 4})
    merge(by, unwrap=None)
    assert rows(table, "shop", "id", "n") == [("b", 1, 4)]
    write({"shop": "c", "id": None, "n": 4})
    with pytest.raises(ColumnTypeError, match="column 'id' is null in the event of segment"):
        merge(by, unwrap=None)


@pytest.mark.parametrize("more", ["stream", "event"])
def test_deletions_beside_other_columns_of_the_source(
    client: PravegaClient, stream: StreamName, merge: Merge, table: str, more: str
) -> None:
    given = {"unwrap": None, "columns": f"segment_id,offset,{more}"}
    client.write(stream, '{"id": 1, "item": "tea"}', "string", routing_key="1")
    client.write(stream, '{"id": 2, "item": "oil"}', "string", routing_key="2")
    merge(TierMerge(key=("id",)), **given)
    client.write(stream, '{"id": 1, "item": null}', "string", routing_key="1")
    merge(TierMerge(key=("id",)), **given)
    assert rows(table) == [(2, "oil")]


def test_events_that_have_only_the_key_delete_it(
    client: PravegaClient, stream: StreamName, merge: Merge, table: str
) -> None:
    by = TierMerge(key=("id",))
    client.write(stream, '{"id": 1}', "string", routing_key="1")
    merge(by, unwrap=None)
    assert rows(table, "id") == []
    client.write(stream, '{"id": 1, "item": "tea"}', "string", routing_key="1")
    client.write(stream, '{"id": 2, "item": "oil"}', "string", routing_key="2")
    merge(by, unwrap=None)
    client.write(stream, '{"id": 1}', "string", routing_key="1")
    merge(by, unwrap=None)
    assert rows(table) == [(2, "oil")]


def test_another_run_and_another_program(
    merge: Merge, change: Change, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(1, "c", None, {"id": 1, "item": "tea"})
    merge()
    commit = DeltaLakeTable.merge

    def after(do: Callable[[], object]) -> None:
        def once(self: Any, *args: Any) -> None:
            monkeypatch.setattr(DeltaLakeTable, "merge", commit)
            do()
            commit(self, *args)

        monkeypatch.setattr(DeltaLakeTable, "merge", once)

    change(2, "u", None, {"id": 1, "item": "milk"})
    after(merge)
    with pytest.raises(FencedError, match="another run writes stream"):
        merge()
    assert rows(table) == [(1, "milk")]
    change(3, "u", None, {"id": 2, "item": "oil"})
    foreign = DeltaTable(table).to_pyarrow_table().slice(0, 1).set_column(0, "id", pa.array([2]))
    after(lambda: write_deltalake(table, foreign, mode="append"))
    assert merge().counts.conflicts == 1
    assert rows(table) == [(1, "milk"), (2, "oil")]


def test_order_by_a_column_of_the_row(merge: Merge, change: Change, table: str) -> None:
    by = TierMerge(key=("id",), order="version")
    change(1, "c", None, {"id": 1, "item": "tea", "version": 1})
    change(2, "c", None, {"id": 2, "item": "oil", "version": 1})
    merge(by)
    change(3, "u", None, {"id": 2, "item": "salt", "version": 2})
    change(4, "d", {"id": 1, "item": "tea", "version": 1})
    change(5, "d", {"id": 2, "item": "oil", "version": 1})
    merge(by)
    assert rows(table) == [(2, "salt")]
    change(6, "d", {"id": 2, "item": "salt", "version": 2})
    merge(by)
    assert rows(table) == []
    change(7, "d", {"id": 2})
    with pytest.raises(ColumnTypeError, match="column 'version' is null in the event of segment"):
        merge(by)


def test_new_fields_inside_columns(merge: Merge, change: Change, table: str) -> None:
    change(1, "c", None, {"id": 1, "o": {"x": 1}, "l": [{"v": 1}]})
    merge()
    change(2, "u", None, {"id": 1, "o": {"x": 1, "y": "b"}, "l": [{"v": 1, "w": True}]})
    change(3, "c", None, {"id": 2, "o": {"x": 2}, "l": None})
    merge()
    assert rows(table, "id", "o", "l") == [
        (1, {"x": 1, "y": "b"}, [{"v": 1, "w": True}]),
        (2, {"x": 2, "y": None}, None),
    ]


def test_the_command(client: PravegaClient, stream: StreamName, change: Change, table: str) -> None:
    change(1, "c", None, {"id": 1, "item": "tea"})
    change(2, "d", {"id": 1, "item": "tea"})
    common = ["tier", str(stream), f"delta:{table}", "--controller", client.config.controller, "--format", "json"]
    given = ["-o", "unwrap=debezium", "--merge-order", "position", "--keep-deleted", "--quiet"]
    assert CliRunner().invoke(command_line, [*common, *given]).exit_code == 2
    result = CliRunner().invoke(command_line, [*common, *given, "--merge-by", "id"], catch_exceptions=False)
    assert result.exit_code == 0
    assert rows(table, "id", "item", "deleted") == [(1, None, True)]


def test_a_merged_table_has_only_merges(
    client: PravegaClient, stream: StreamName, merge: Merge, change: Change, table: str
) -> None:
    common: Any = {"format": "json", "controller": client.config.controller}
    change(1, "c", None, {"id": 1, "item": "tea"})
    merge()
    with pytest.raises(ConfigError, match="has merged rows of stream"):
        read_table_and_tail(str(stream), f"delta:{table}", **common)
    with pytest.raises(ConfigError, match="has merged rows of stream"):
        tier(str(stream), f"delta:{table}", **common)
    tier(str(stream), f"delta:{table}-events", **common)
    with pytest.raises(ConfigError, match="has all events of stream"):
        tier(str(stream), f"delta:{table}-events", settings=TierSettings(merge=BY_ID), unwrap="debezium", **common)
    assert rows(table) == [(1, "tea")]


def test_changes_that_are_not_merged(merge: Merge, change: Change, stream: StreamName, client: PravegaClient) -> None:
    change(1, "c", None, {"id": 1, "item": "tea"})
    with pytest.raises(ConfigError, match="no column 'number' to merge by; columns: id, item, position"):
        merge(TierMerge(key=("number",), order="position"))
    with pytest.raises(ConfigError, match="FAILFAST or DROPMALFORMED"):
        merge(mode="PERMISSIVE")
    with pytest.raises(ConfigError, match="metadata column 'offset'"):
        merge(columns="segment_id")
    with pytest.raises(ConfigError, match="set option 'format'"):
        merge(TierMerge(key=("event",)), format=None, unwrap=None)
    uri, by = client.config.controller, TierSettings(merge=BY_ID)
    with pytest.raises(ConfigError, match="Delta tables only, because the upsert of pyiceberg deletes no rows"):
        tier(str(stream), "iceberg:main.a.b", settings=by, controller=uri, format="json", unwrap="debezium")
    with pytest.raises(ConfigError, match="needs the columns of the key"):
        TierMerge(key=())
    change(2, "t")
    with pytest.raises(LakeTableError, match="truncates the source table"):
        merge()
