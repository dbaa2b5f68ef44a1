"""Queries and batch writes that an earlier version began, gone on with: the samples in ``tests/vectors/state``."""

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.exactly_once.batch_commit import Committed, Ledger, Prepared, from_bytes
from pravega_connector.writer.transactions import OpenTransaction
from tests.support.state_samples import GENERATIONS, Log, Script, dump, good_number, scope_of


@pytest.fixture(params=GENERATIONS, ids=lambda path: path.name)
def samples(request: pytest.FixtureRequest) -> Path:
    """A folder of samples."""
    return Path(request.param)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_query_continues_from_its_checkpoint(spark, client, config, samples, tmp_path, eventually):
    """It died when its last batch was committed in the ledger and not in Spark's log; then more events came."""
    folder, scope = samples / "query", scope_of(samples)
    script, copies = Script.load(folder / "source.jsonl"), StreamName(scope, "copies")
    script.perform(client)
    (subscriber,) = json.loads((folder / "subscribers.json").read_text())
    client.controller.create_subscriber(script.stream, subscriber.partition("/")[2])
    client.create_stream(copies, 2)
    there = json.loads((folder / "target.json").read_text())
    with client.writer(copies) as writer:
        for number in there:
            writer.write(b"%d" % number)
    ledger = Log.load(folder / "ledger.jsonl").with_transactions({})
    ledger.restore(client)
    shutil.copytree(folder / "checkpoint", tmp_path / "checkpoint")
    shutil.copytree(folder / "letters", tmp_path / "letters")
    numbers = [number for event in script.events if (number := good_number(event)) is not None]
    assert there == sorted(numbers), "all was written"
    more = [{"key": f"key {n % 7}", "event": f'{{"n":{n}}}'} for n in range(100, 110)]
    Script(script.stream, 2, (*more, {"key": "key 0", "event": "{"})).go_on(client)

    options = {
        "controller": config.controller,
        "format": "json",
        "max_rows_per_trigger": "20",
        "dead_letter_path": str(tmp_path / "letters"),
        "publish_position": "sales",
    }
    frame = spark.readStream.format("pravega").options(**options).schema("n INT").load(str(script.stream))
    rows = frame.selectExpr("CAST(CAST(n AS STRING) AS BINARY) AS event")
    query = (
        rows.writeStream.format("pravega")
        .option("controller", config.controller)
        .trigger(availableNow=True)
        .start(str(copies), checkpointLocation=str(tmp_path / "checkpoint"))
    )
    assert query.awaitTermination(240)
    last = max(int(path.name) for path in (folder / "checkpoint" / "offsets").iterdir())
    read = {progress.batchId: progress.numInputRows for progress in query.recentProgress if progress.numInputRows}
    replayed = next(
        e for e in map(from_bytes, ledger.values) if isinstance(e, Committed) and e.batch == last
    ).content.rows
    assert read == {last: replayed, last + 1: 10}

    eventually(lambda: len(list(client.read(copies))) >= len(there) + 10)
    assert sorted(map(int, client.read(copies))) == [*there, *range(100, 110)]
    entries = dump(client, ledger.stream).values
    assert entries[: len(ledger.values)] == ledger.values, "nothing was recorded again"
    added = [from_bytes(data) for data in entries[len(ledger.values) :]]
    assert [(type(entry), entry.batch) for entry in added] == [(Prepared, last + 1), (Committed, last + 1)]  # type: ignore[union-attr]
    letters = files(tmp_path / "letters")
    assert letters.items() >= files(folder / "letters").items()
    (new,) = letters.keys() - files(folder / "letters").keys()
    assert json.loads(letters[new])["event"] == "ew=="
    assert client.controller.subscribers(script.stream) == [subscriber]


@pytest.fixture
def loads(client: PravegaClient, samples: Path) -> tuple[StreamName, Log, list[Prepared]]:
    """The target of batch writes, its ledger, and what was prepared: versions 1, 2 and 3, of ten rows each."""
    target = StreamName(scope_of(samples), "loads")
    log = Log.load(samples / "loads_ledger.jsonl")
    prepared = [entry for entry in map(from_bytes, log.values) if isinstance(entry, Prepared)]
    assert [(entry.batch, [part.content.rows for part in entry.parts]) for entry in prepared] == [
        (version, [5, 5]) for version in (1, 2, 3)
    ]
    return target, log, prepared


def rows_of(spark: SparkSession, version: int) -> DataFrame:
    rows = spark.range(10 * version, 10 * version + 10, numPartitions=2)
    return rows.selectExpr("CAST(CAST(id AS STRING) AS BINARY) AS event", "CAST(id % 3 AS STRING) AS routing_key")


def test_batch_writes_continue(spark, client, config, loads, eventually):
    """Version 2 is done. Of version 3 one transaction is committed and one is lost: its rows have to come again.

    Which rows those are the ledger tells by their total.
    """
    target, log, prepared = loads
    client.create_stream(target, 2)

    def begin(rows: range) -> OpenTransaction[bytes]:
        transaction: OpenTransaction[bytes] = client.transactions(target, lease=60).begin()
        for row in rows:
            transaction.write(b"%d" % row, str(row % 3))
        transaction.detach()
        return transaction

    with client.writer(target) as writer:
        for row in range(10, 30):
            writer.write(b"%d" % row, str(row % 3))
    kept, lost = begin(range(30, 35)), begin(range(35, 40))
    kept.commit()
    lost.abort()
    ids = {str(part.transaction.id): each.id for part, each in zip(prepared[2].parts, (kept, lost), strict=True)}
    log.first(len(log.entries) - 1).with_transactions(ids).restore(client)

    def write(version: int) -> None:
        options = {"controller": config.controller, "txn_app_id": "loader", "txn_version": str(version)}
        rows_of(spark, version).write.format("pravega").mode("append").options(**options).save(str(target))

    write(3)
    write(3)
    write(4)
    rows = [*range(10, 50)]
    eventually(lambda: len(list(client.read(target))) >= len(rows))
    assert sorted(map(int, client.read(target))) == rows
    with Ledger(client.stores, log.stream) as ledger:
        entries = [entry for _, entry in ledger.history()][len(log.entries) - 1 :]
        (app,) = ledger.read()[1].values()
    assert (app.app, app.last, app.open) == ("loader", 4, None)
    assert [(type(entry), entry.batch) for entry in entries] == [
        (Prepared, 3), (Committed, 3), (Prepared, 4), (Committed, 4),
    ]  # fmt: skip
    assert isinstance(entries[0], Prepared)
    assert entries[0].generation == 1
    named = [part.transaction.id == kept.id for part in entries[0].parts]
    assert named == [True, False], "only the lost one is replaced"
