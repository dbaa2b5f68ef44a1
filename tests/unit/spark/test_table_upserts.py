"""Upserts of key-value tables: lost answers, tasks of an earlier attempt, other writers."""

from __future__ import annotations

import itertools
import math
import pickle
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructField, StructType

from pravega_connector import PravegaClient
from pravega_connector.errors import (
    ColumnTypeError,
    ConfigError,
    OutcomeUnknownError,
    TableKeyOrderError,
    TableNotFoundError,
    TableVersionError,
    UnsupportedModeError,
)
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.tables import writer as table_writer
from pravega_connector.spark.tables.reader import TableReader
from pravega_connector.spark.versions import arrow_schema
from pravega_connector.tables import Table, TableName
from pravega_connector.tables.requests import SegmentRequests
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import WireEntry
from pravega_serde.errors import DeserializationError, PravegaError

Row = dict[str, Any]
_numbers = itertools.count()
STOCK = StructType(
    [
        StructField("key", StringType()),
        StructField("item", StringType()),
        StructField("pieces", IntegerType()),
        StructField("at", LongType()),
    ]
)
VERSIONED = StructType([*STOCK, StructField("version", StringType())])


@pytest.fixture
def table(client: PravegaClient) -> Table[Any]:
    name = TableName("scope", f"table{next(_numbers)}")
    client.create_table(name, 4, partitions=2)
    return client.table(name, key="string", value="json")


@pytest.fixture
def query(pravega: InProcessPravega, table: Table[Any]) -> Callable[..., Any]:
    """``query(schema=STOCK, **options)``: the writer of a write to ``table``."""

    def query(schema: StructType = STOCK, **options: str) -> Any:
        given = {"controller": pravega.uri, "table": str(table.name), "format": "json", **options}
        return PravegaDataSource(given).writer(schema, False)

    return query


def run(writer: Any, *rows: Row, batches: int = 1) -> Any:
    """Run a task of a write in batches of rows, as Spark does with a copy of the writer, and return its message."""
    names = VERSIONED if writer.encoder.version else STOCK
    schema = arrow_schema(names)
    given = [pa.RecordBatch.from_pylist(list(rows[at::batches]), schema=schema) for at in range(batches)]
    return pickle.loads(pickle.dumps(writer)).write(iter(given))


def row(key: str, pieces: int | None, at: int | None, **more: Any) -> Row:
    return {"key": key, "item": None, "pieces": pieces, "at": at, **more}


def pieces(table: Table[Any]) -> dict[str, int]:
    return {entry.key: entry.value["pieces"] for entry in table.entries()}


def test_answers_are_lost(pravega, table, query):
    """For each repeated request: with an order, with versions, and without either."""
    for options in ({}, {"order_column": "at"}):
        pravega.faults.drop_after("update table")
        run(query(**options), row("anna", 1, 1), row("bert", 1, 1))
        pravega.faults.drop_before("update table")
        run(query(**options), row("anna", 2, 2), row("bert", None, None if not options else 3))
        assert pieces(table) == {"anna": 2}
    versions = [row(entry.key, 3, 3, version=str(entry.version)) for entry in table.entries()]
    pravega.faults.drop_after("update table")
    run(query(VERSIONED), *versions, row("cora", 1, 1, version=None))
    assert pieces(table) == {"anna": 3, "cora": 1}
    pravega.faults.drop_after("update table")
    run(query(VERSIONED), *(row(entry.key, None, None, version=str(entry.version)) for entry in table.entries()))
    assert pieces(table) == {}
    assert pravega.faults.pending == 0


def test_a_task_that_outlives_its_attempt_changes_nothing_with_an_order(table, query):
    late = row("anna", 1, 1)
    for options, expected in (({}, 1), ({"order_column": "at"}, 2)):
        run(query(**options), late)
        run(query(**options), row("anna", 2, 2))
        run(query(**options), late)
        assert pieces(table) == {"anna": expected}


def test_a_value_of_only_its_order_keeps_the_greatest(table, query):
    columns = changed(item=None, pieces=None)
    schema = arrow_schema(columns)
    for at in (1, 3, 2):
        query(columns, order_column="at").write(iter([pa.RecordBatch.from_pylist([{"key": "anna", "at": at}], schema)]))
    assert [entry.value for entry in table.entries()] == [{"at": 3}]


def test_an_older_row_adds_a_removed_key_again(table, query):
    """A removed entry has no order: see docs/operate/failover-and-guarantees.md."""
    ordered = query(order_column="at")
    for each in (row("anna", 1, 1), row("anna", None, 2), row("anna", 1, 1)):
        run(ordered, each)
    assert pieces(table) == {"anna": 1}


def test_two_queries_leave_the_newest_row_of_each_key(table, query):
    chance = random.Random(7)
    rows = [row(f"k{chance.randrange(30):03}", number, chance.randrange(50)) for number in range(1200)]
    ordered = query(order_column="at")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda part: run(ordered, *rows[part::6], batches=5), range(6)))
    newest: dict[str, tuple[int, bytes]] = {}
    encode = ordered.encoder.serializer.get().serialize
    for each in rows:
        at = (each["at"], encode({"item": None, "pieces": each["pieces"], "at": each["at"]}))
        newest[each["key"]] = max(newest.get(each["key"], at), at)
    assert {entry.key: (entry.value["at"], encode(entry.value)) for entry in table.entries()} == newest


@pytest.fixture
def before_update(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``before_update(call)``: call it with the entries of each update before it is sent."""
    update = SegmentRequests.update

    def before_update(call: Callable[[Sequence[WireEntry]], object]) -> None:
        def called(self: SegmentRequests, segment_id: int, sent: Sequence[WireEntry]) -> Sequence[int]:
            call(sent)
            return update(self, segment_id, sent)

        monkeypatch.setattr(SegmentRequests, "update", called)

    return before_update


@pytest.mark.parametrize(("at", "expected"), [(5, 5), (2, 3)])
def test_an_entry_that_changes_between_read_and_update(table, query, before_update, at, expected):
    """Another client writes a newer or an older value just before the update: with an order, the newest one stays."""
    table.put("anna", {"pieces": 1, "at": 1})
    calls = itertools.count()

    def once(sent: Sequence[WireEntry]) -> None:
        if next(calls) == 0:
            table.put("anna", {"pieces": at, "at": at})  # which is an update, too

    writer = query(order_column="at")
    before_update(once)
    run(writer, row("anna", 3, 3))
    assert pieces(table) == {"anna": expected}


def test_a_row_with_a_version_conflicts(table, query):
    version = str(table.put("anna", {"pieces": 1}))
    table.put("anna", {"pieces": 2})
    with pytest.raises(TableVersionError, match=r"key b'anna' .* was not written: it was changed or removed"):
        run(query(VERSIONED), row("anna", 3, 3, version=version))
    with pytest.raises(TableVersionError, match=r"key b'anna' .* belongs to another entry"):
        run(query(VERSIONED), row("anna", 3, 3, version="7:1"))
    with pytest.raises(ConfigError, match=r"key b'anna' .* has several rows with versions"):
        run(query(VERSIONED), row("anna", 3, 3, version=version), row("anna", 4, 4, version=version))
    assert pieces(table) == {"anna": 2}


def test_a_lost_answer_and_another_client_leave_the_outcome_unknown(pravega, table, query, monkeypatch):
    """The update is made, its answer is lost, and another client changes the entry: it counts both."""
    version = str(table.put("anna", {"pieces": 1}))
    read, writes = SegmentRequests.read, list[int]()

    def overtaken(self: SegmentRequests, *given: Any) -> Any:
        if not writes:
            writes.append(1)
            table.put("anna", {"pieces": table.get("anna").value["pieces"] + 10})
        return read(self, *given)

    monkeypatch.setattr(SegmentRequests, "read", overtaken)
    pravega.faults.drop_after("update table")
    with pytest.raises(OutcomeUnknownError, match=r"key b'anna' of table .* another client has changed the entry"):
        run(query(VERSIONED), row("anna", 2, 2, version=version))
    assert writes
    assert pieces(table) == {"anna": 12}


def test_a_second_attempt_of_a_task_does_not_know_what_the_first_has_written(table, query, monkeypatch):
    version = str(table.put("anna", {"pieces": 1}))
    run(query(VERSIONED), row("anna", 2, 2, version=version))
    table.put("anna", {"pieces": 3})
    second = TaskContext()
    second._attemptNumber = 1
    monkeypatch.setattr(TaskContext, "_taskContext", second)
    with pytest.raises(TableVersionError, match="not written by this attempt of the task, but maybe by an earlier one"):
        run(query(VERSIONED), row("anna", 2, 2, version=version))


@pytest.mark.parametrize("others", [[(1.0, 1)], [(3.0, 3), (1.0, 1)]])
def test_nan_has_no_order(table, query, others):
    columns = changed(at=DoubleType())
    schema = arrow_schema(columns)
    writer = query(columns, order_column="at")
    rows = [{"key": "anna", "pieces": number, "at": at} for at, number in others]
    for position in range(len(rows) + 1):
        given = [*rows[:position], {"key": "anna", "pieces": 9, "at": math.nan}, *rows[position:]]
        with pytest.raises(ColumnTypeError, match=f"row {position} of column 'at' is NaN"):
            writer.write(iter([pa.RecordBatch.from_pylist(given, schema)]))
    assert pieces(table) == {}
    table.put("anna", {"pieces": 9, "at": math.nan})
    writer.write(iter([pa.RecordBatch.from_pylist(rows, schema)]))
    assert pieces(table) == {"anna": others[0][1]}


def test_keys_of_several_tasks(table, query, monkeypatch):
    plain, ordered = query(), query(order_column="at")
    apart = [run(plain, row("anna", 1, 1)), run(plain, row("bert", 1, 1), row("bert", 2, 2))]
    plain.commit(apart)
    both = [run(plain, row("anna", 1, 1)), run(plain, row("anna", 2, 2))]
    with pytest.raises(TableKeyOrderError, match=r"the same keys .* \(1 keys\), and any of their rows may have won"):
        plain.commit(both)
    ordered.commit([run(ordered, row("anna", 1, 1)), run(ordered, row("anna", 2, 2))])
    with pytest.raises(TableKeyOrderError, match="whether they exist is undefined"):
        ordered.commit([run(ordered, row("anna", 1, 1)), run(ordered, row("anna", None, 2))])
    with pytest.raises(UnsupportedModeError, match="none was written"):
        plain.commit([*apart, None])
    monkeypatch.setattr(table_writer, "MAX_COMPARED", 1)
    assert len(run(plain, row("anna", 1, 1), row("bert", 1, 1), batches=2).changed) == 8


def test_an_order_that_cannot_be_read_names_the_key(client, table, query):
    client.table(table.name).put(b"anna", b"{")
    with pytest.raises(DeserializationError, match=r"key b'anna' of table .* has no readable column 'at'"):
        run(query(order_column="at"), row("bert", 1, 1), row("anna", 1, 1))


def test_updates_keep_to_the_limits_of_a_server(table, query, before_update):
    seen: list[Sequence[WireEntry]] = []
    before_update(seen.append)
    run(query(), *(row(f"{number:04}", number, 1) for number in range(800)), batches=2)
    assert len(pieces(table)) == 800
    sizes = list(map(len, seen))
    assert (max(sizes) <= 256, sum(sizes)) == (True, 800)
    big = "x" * 1_000_000
    run(query(), *(row(f"{number:04}", 1, 1, item=big) for number in range(18)))
    assert sum(entry.value["item"] == big for entry in table.entries()) == 18


def test_a_deleted_table(client, table, query):
    writer = query()
    client.delete_table(table.name)
    with pytest.raises(TableNotFoundError):
        run(writer, row("anna", 1, 1))
    with pytest.raises(TableNotFoundError):
        query()


def test_a_read_is_sent_to_tasks(pravega, table):
    table.put("anna", {"pieces": 1, "at": 2})
    source = PravegaDataSource(
        {"controller": pravega.uri, "table": str(table.name), "format": "json", "key_format": "string"}
    )
    reader = pickle.loads(pickle.dumps(source.reader(STOCK)))
    assert isinstance(reader, TableReader)
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert rows == [{"key": "anna", "item": None, "pieces": 1, "at": 2}]
    assert len(reader.partitions()) == 2


# ---- errors of options, columns and rows -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stream": "a/b"}, r"a table and a stream are set: .* 'stream' is 'a/b'; set only one"),
        ({"path": "a/b"}, r"a table and a stream are set"),
        ({"start_stream_cut": "earliest"}, r"'start_stream_cut' is for streams"),
        ({"key_formt": "string"}, r"'key_formt'; did you mean 'key_format'"),
        ({"key_format": "json"}, r"'key_format' must be one of bytes, string"),
        ({"infer_schema": "true"}, r"'infer_schema' requires option 'format'"),
        ({"format": "json"}, r"'json' do not name their columns"),
        ({"format": "json", "infer_schema": "true"}, r"no json events to infer columns from"),
        ({"format": "string", "key_column": "value"}, r"'value' would exist twice"),
        ({"key_column": "version"}, r"'version' is set for two"),
        ({"table": "other"}, r"table 'other' has no scope"),
    ],
)
def test_a_read_says_what_is_wrong(pravega, table, options, words):
    with pytest.raises(PravegaError, match=words):
        PravegaDataSource({"controller": pravega.uri, "table": str(table.name), **options}).schema()


def test_a_read_of_other_columns_reports_it(pravega, table):
    source = PravegaDataSource({"controller": pravega.uri, "table": str(table.name)})
    with pytest.raises(ConfigError, match="raw values have no column 'item'"):
        source.reader(StructType([StructField("item", StringType())]))
    with pytest.raises(ConfigError, match=r"column 'key' is int in \.schema\(…\), but binary"):
        source.reader(StructType([StructField("key", IntegerType())]))


def changed(**kinds: Any) -> StructType:
    """The columns of stock with other types; None drops a column, and new ones are last."""
    kept = {field.name: field.dataType for field in STOCK} | kinds
    return StructType([StructField(name, kind) for name, kind in kept.items() if kind is not None])


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (STOCK, {"path": "a/b"}, r"a table and a stream are set"),
        (STOCK, {"writer_mode": "exactly_once"}, r"'writer_mode' is for streams"),
        (STOCK, {"mode": "insert"}, r"'mode' must be one of upsert"),
        (changed(key=None), {}, r"the DataFrame has no column 'key' with the keys .*'key_column'"),
        (changed(item=None, pieces=None, at=None), {}, r"no column of the value"),
        (changed(key=LongType()), {}, r"'key' is int64, not binary or string"),
        (changed(secondary_key=StringType()), {}, r"has no secondary keys: drop column 'secondary_key'"),
        (STOCK, {"order_column": "when"}, r"no column 'when' for 'order_column'"),
        (
            changed(item=None, pieces=None, at=StringType()),
            {"order_column": "at", "format": "string"},
            r"'at' is the whole value",
        ),
        (changed(version=IntegerType()), {}, r"'version' is int32, not versions"),
        (VERSIONED, {"order_column": "at"}, r"both decide about a row"),
        (STOCK, {"allow_create_table": "true"}, r"requires option 'primary_key_length'"),
        (STOCK, {"table": "no/such", "allow_create_table": "true", "primary_key_length": "4"}, r"allow_create_scope"),
    ],
)
def test_a_write_says_what_is_wrong(query, columns, options, words):
    with pytest.raises(PravegaError, match=words):
        query(columns, **options)


@pytest.mark.parametrize(
    ("options", "rows", "words"),
    [
        ({}, [row("anna", 1, 1), row("anna2", 1, 1)], r"row 1 of column 'key' is b'anna2', 5 bytes: .* must have 4"),
        ({}, [row("anna", 1, 1) | {"key": None}], r"row 0 of column 'key' is null"),
        ({}, [row("anna", 1, 1, item="x" * 1_100_000)], r"row 0: the value of key b'anna' .* the limit is 1,040,384"),
        ({"order_column": "at"}, [row("anna", 1, None)], r"row 0 of column 'at' is null"),
        (
            {"schema": VERSIONED},
            [row("anna", 1, 1, version="one")],
            r"row 0 of column 'version' is 'one', not a version",
        ),
    ],
)
def test_a_row_that_cannot_be_written_is_named(query, options, rows, words):
    with pytest.raises(PravegaError, match=words):
        run(query(**options), *rows)


def test_options_of_tables_without_a_table(pravega):
    def source(**options: str) -> PravegaDataSource:
        return PravegaDataSource({"controller": pravega.uri, "stream": "a/b", **options})

    with pytest.raises(ConfigError, match="mode=upsert writes a key-value table: set option 'table'"):
        source(mode="upsert", format="json").writer(STOCK, False)
    with pytest.raises(ConfigError, match="'key_column' is for key-value tables: set option 'table'"):
        source(key_column="id").schema()


def test_defaults_of_a_session_apply_to_tables(pravega, table):
    """The options for streams and for the other side are left out."""
    defaults = {"controller": pravega.uri, "stream": "a/b", "writer_mode": "exactly_once", "order_column": "at"}
    source = type(
        "Session", (PravegaDataSource,), {"defaults": defaults | {"mode": "PERMISSIVE", "key_format": "string"}}
    )
    assert source({"table": str(table.name)}).schema().fieldNames() == ["key", "value", "version"]
    writer: Any = source({"table": str(table.name), "format": "json"}).writer(STOCK, False)
    assert (writer.options.mode, writer.options.order_column) == ("upsert", "at")


def test_a_sql_table_carries_its_options(pravega, table):
    """Its columns may be null, and it has versions only if an option names their column: INSERT sets all columns."""
    table.put("anna", {"pieces": 1, "at": 2})
    options = {"controller": pravega.uri, "table": str(table.name), "format": "json", "key_format": "string"}
    options |= {"path": "/warehouse/stock", "infer_schema": "true"}

    def created(**more: str) -> StructType:
        given = options | more  # Spark repeats each option with a prefix
        return PravegaDataSource(
            given | {f"option.{k}": v for k, v in given.items()} | {"provider": "pravega"}
        ).schema()

    columns = created()
    assert [(field.name, field.nullable) for field in columns] == [("key", True), ("pieces", True), ("at", True)]
    assert created(version_column="v").fieldNames() == ["key", "pieces", "at", "v"]
    # Spark makes VARCHAR a string of it.
    texts = [StructField(f.name, StringType(), True, f.metadata) if f.name == "key" else f for f in columns]
    reader = PravegaDataSource({}).reader(StructType(texts))
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert rows == [{"key": "anna", "pieces": 1, "at": 2}]
    writer: Any = PravegaDataSource({}).writer(StructType(texts), False)
    assert (writer.options.table_name(), writer.encoder.columns) == (table.name, ("pieces", "at"))
