"""Reads of a table together with the rest of its stream: each event once, in the same columns."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.errors import ColumnTypeError, ConfigError, DataLossError, LakeTableError
from pravega_connector.operations.tier import read_table_and_tail, spark_table_and_tail, table_and_tail
from pravega_connector.operations.tier.run import open_table
from pravega_serde import AvroSerializer
from tests.integration.tier.conftest import KEYS, Lake, Run, Write
from tests.integration.tier.test_tier import SMALL, all_of, numbers
from tests.support.spark_session import spark_session

Read = Callable[..., pa.RecordBatchReader]


@pytest.fixture
def read(client: PravegaClient, stream: StreamName, lake: Lake) -> Read:
    def start(**options: Any) -> pa.RecordBatchReader:
        own = {"format": "json", "controller": client.config.controller, **options}
        return read_table_and_tail(str(stream), lake.name, storage=lake.storage, **own)

    return start


def test_each_event_is_a_row_once(
    client: PravegaClient, stream: StreamName, lake: Lake, run: Run, write: Write, read: Read
) -> None:
    write(10)
    assert numbers(read().read_all()) == all_of(10), "there is no table"
    run(target_bytes=SMALL)
    assert numbers(read().read_all()) == all_of(10), "there is no tail"
    for round_, segments in enumerate((5, 2)):
        write(10)
        client.scale_stream(stream, segments)
        write(10)
        found = read().read_all()
        assert found.schema == read().schema
        assert found.num_rows == KEYS * 10 * (3 + 2 * round_)
        assert numbers(found) == all_of(10 * (3 + 2 * round_))
        run(target_bytes=SMALL)
    assert numbers(pl.DataFrame(read()).to_arrow()) == all_of(50)


def test_runs_commit_during_the_read(run: Run, write: Write, read: Read) -> None:
    write(10)
    run()
    write(10)
    reader = read()
    first = reader.read_next_batch()
    run(target_bytes=SMALL)
    write(10)
    run()
    assert numbers(pa.Table.from_batches([first, *reader])) == all_of(20)
    assert numbers(read().read_all()) == all_of(30)


def test_a_run_commits_and_truncates_before_the_tail_is_read(
    client: PravegaClient, stream: StreamName, run: Run, write: Write, read: Read
) -> None:
    write(10)
    run()
    write(10)
    reader = read()
    write(10)
    run(truncate_after=0)
    assert client.head(stream) == client.tail(stream)
    with pytest.raises(LakeTableError, match="read again"):
        reader.read_all()
    assert numbers(read().read_all()) == all_of(30)


def test_a_run_truncates_while_the_read_begins(
    run: Run, write: Write, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(10)
    run()
    write(10)
    plan = table_and_tail.range_between

    def after_a_run(*args: Any) -> Any:
        monkeypatch.setattr(table_and_tail, "range_between", plan)
        run(truncate_after=0)
        return plan(*args)

    monkeypatch.setattr(table_and_tail, "range_between", after_a_run)
    assert numbers(read().read_all()) == all_of(20)


def test_the_first_run_truncates_while_the_read_begins(
    run: Run, write: Write, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(10)
    head = PravegaClient.head

    def after_a_run(self: PravegaClient, *args: Any) -> Any:
        monkeypatch.setattr(PravegaClient, "head", head)
        run(truncate_after=0)
        write(10)
        return head(self, *args)

    monkeypatch.setattr(PravegaClient, "head", after_a_run)
    assert numbers(read().read_all()) == all_of(20)


def test_events_that_no_program_has(
    client: PravegaClient, stream: StreamName, run: Run, write: Write, read: Read
) -> None:
    write(10)
    run()
    write(10)
    client.truncate(client.tail(stream))
    with pytest.raises(DataLossError, match="no program has them"):
        read()


def test_new_fields_of_the_tail_are_columns(run: Run, write: Write, read: Read) -> None:
    write(events=[{"key": "a", "o": {"x": 1}, "mixed": None}])
    run()
    write(events=[{"key": "a", "o": {"x": 2, "y": "b"}, "mixed": [7], "more": 1.5}])
    by_offset = sorted(read().read_all().to_pylist(), key=lambda row: row["offset"])
    assert [(row["o"], row["mixed"], row["more"]) for row in by_offset] == [
        ({"x": 1, "y": None}, None, None),
        ({"x": 2, "y": "b"}, "[7]", 1.5),
    ]
    run()
    assert sorted(read().read_all().to_pylist(), key=lambda row: row["offset"]) == by_offset


def test_an_empty_table(
    client: PravegaClient, stream: StreamName, lake: Lake, run: Run, write: Write, read: Read
) -> None:
    with pytest.raises(ColumnTypeError, match="no json events"):
        read()
    columns = pa.schema([("key", pa.string()), ("number", pa.int64())])
    assert read(schema=columns).read_all().num_rows == 0
    table = lake.open()
    assert table.position(str(stream)) is None
    table.create(pa.schema([*columns, ("segment_id", pa.int64()), ("offset", pa.int64())]), ())
    assert read().read_all().num_rows == 0
    write(3)
    assert numbers(read().read_all()) == all_of(3)
    run()
    assert numbers(read().read_all()) == all_of(3)


def test_a_stream_that_was_created_again(
    client: PravegaClient, stream: StreamName, run: Run, write: Write, read: Read
) -> None:
    write(1)
    run()
    client.seal_stream(stream)
    client.delete_stream(stream)
    client.create_stream(stream)
    with pytest.raises(ConfigError, match="deleted and created again"):
        read()


def test_columns_of_a_schema(client: PravegaClient, stream: StreamName, lake: Lake, run: Run, read: Read) -> None:
    schema = '{"type": "record", "name": "R", "fields": [{"name": "v", "type": "int"}%s]}'
    more = ', {"name": "w", "type": ["null", "string"], "default": null}'
    old, new = (AvroSerializer(schema % part) for part in ("", more))
    with client.writer(stream, old) as writer:
        writer.write({"v": 1}, routing_key="a")
    run({"format": "avro", "avro_schema": schema % ""})
    with client.writer(stream, new) as writer:
        writer.write({"v": 2, "w": "x"}, routing_key="a")
    found = read(format="avro", avro_schema=schema % more).read_all()
    rows = sorted(found.select(["v", "w"]).to_pylist(), key=lambda row: row["v"])
    assert rows == [{"v": 1, "w": None}, {"v": 2, "w": "x"}]


def test_files_with_other_names_of_columns(tmp_path: Path) -> None:
    columns = pa.schema([("key", pa.string())])
    DeltaTable.create(tmp_path, columns)
    log = tmp_path / "_delta_log"
    actions = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    (metadata,) = (action["metaData"] for action in actions if "metaData" in action)
    schema = json.loads(metadata["schemaString"])
    schema["fields"][0]["metadata"] = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    mapped = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    changed = [
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        {"metaData": {**metadata, "schemaString": json.dumps(schema), "configuration": mapped}},
    ]
    (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, changed)))
    table = open_table(f"delta:{tmp_path}", {})
    table.position("shop/orders")
    with pytest.raises(LakeTableError, match="because of column mapping"):
        table.files()


def test_spark_reads_the_files_and_the_tail(
    client: PravegaClient, stream: StreamName, lake: Lake, run: Run, write: Write, tmp_path: Path
) -> None:
    spark = spark_session(tmp_path / "warehouse")

    def rows() -> pa.Table:
        uri = client.config.controller
        frame = spark_table_and_tail(spark, str(stream), lake.name, storage=lake.storage, controller=uri, format="json")
        return frame.toArrow()

    write(10)
    assert numbers(rows()) == all_of(10)
    run(target_bytes=SMALL, partition_by=("key",))
    write(events=[{"key": "a b/c=%", "number": 0, "o": {"x": []}}])
    run()
    write(events=[{"key": "a b/c=%", "number": 1, "o": {"x": [1]}, "more": 1.5}])
    write(10)
    client.scale_stream(stream, 2)
    write(10)
    found = rows()
    assert numbers(found) == {**all_of(30), "a b/c=%": [0, 1]}
