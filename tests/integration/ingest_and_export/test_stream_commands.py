"""The life of a stream, only by commands: made, written, read, followed, changed, measured, sealed, deleted."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pravega_connector.client import StreamCut, StreamName
from pravega_connector.config import PravegaConfig
from pravega_connector.operations.cli.root import command_line
from pravega_serde.registry import Compatibility, GroupProperties, SchemaInfo, SchemaRegistryClient, SerializationFormat

Run = Callable[..., Result]
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}


@pytest.fixture
def run(config: PravegaConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """``run(*arguments, code=0, input=None)``: the command line, with the server's address in the environment."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no profiles"))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, code: int = 0, input: str | bytes | None = None) -> Result:
        if arguments[0] == "write" and input is not None:
            lines = tmp_path / "standard input"  # write reads a file descriptor, which the runner's input has not
            lines.write_bytes(input.encode() if isinstance(input, str) else input)
            arguments = (*arguments, lines)
        environment = {"PRAVEGA_CONTROLLER_URI": config.controller, "COLUMNS": "160"}
        result = CliRunner().invoke(command_line, list(map(str, arguments)), env=environment, input=input)
        assert result.exit_code == code, result.output
        return result

    return run


def objects(result: Result) -> list[dict]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_cuts_that_divide_no_transaction(run, client, own_scope):
    streams, ledger = [f"{own_scope}/orders", f"{own_scope}/audit"], f"{own_scope}/decisions"
    for stream in streams:
        client.create_stream(stream, 1)
    with client.transaction_over(streams, "string", ledger=ledger, app_id="shop") as transaction:
        for stream in streams:
            transaction.write(stream, "a")
    cuts = run("cut", "decided", *streams, "--ledger", ledger, "--to", "positions").stdout.splitlines()
    assert cuts == [f"{stream}:0.#epoch.0=9" for stream in streams]
    assert "argument 'ledger' must name the stream" in run("cut", "decided", *streams, code=1).stderr
    assert "decisions-ledger does not exist" in run("cut", "decided", ledger, code=4).stderr


def test_the_life_of_a_table(run, client, own_scope):
    table = f"{own_scope}/stock"
    run("table", "create", table, "--primary-key", 4, "--partitions", 2)
    assert "exists already" in run("table", "create", table, "--primary-key", 4, code=1).stderr
    run("table", "create", table, "--primary-key", 4, "--exist-ok")
    assert (
        "the length of the primary key must be"
        in run("table", "create", f"{table}2", "--primary-key", 0, code=1).stderr
    )
    assert run("table", "list", own_scope).stdout == f"{table}\n"
    assert json.loads(run("table", "list", own_scope, "--json").stdout) == [table]

    first = run("table", "put", table, "milk", "12", "--insert").stdout.strip()
    assert "[PRAVEGA-TABLE-VERSION]" in run("table", "put", table, "milk", "13", "--insert", code=1).stderr
    second = run("table", "put", table, "milk", "11", "--if-version", first).stdout.strip()
    assert "[PRAVEGA-TABLE-VERSION]" in run("table", "remove", table, "milk", "--if-version", first, code=1).stderr
    assert run("table", "get", table, "milk").stdout == "11\n"
    told = json.loads(run("table", "get", table, "milk", "--json").stdout)
    assert told == {"key": "milk", "value": "11", "version": second}
    assert "has no entry for key 'eggs'" in run("table", "get", table, "eggs", code=4).stderr
    run("table", "put", table, "65676773", "ff", "--hex")
    assert "pass --hex" in run("table", "get", table, "eggs", code=1).stderr
    assert run("table", "scan", table, "--hex").stdout == "65676773\tff\n6d696c6b\t3131\n"
    assert run("table", "scan", table, "--prefix", "mi").stdout == "milk\t11\n"
    assert run("table", "scan", table, "--hex", "--limit", 0).stdout == ""
    run("table", "remove", table, "milk", "--if-version", second)
    run("table", "remove", table, "milk")
    assert "is not hexadecimal" in run("table", "get", table, "milk", "--hex", code=1).stderr

    carts = f"{own_scope}/carts"
    run("table", "create", carts, "--primary-key", 3, "--secondary-key", 4)
    for name in ("milk", "eggs"):
        run("table", "put", carts, "ann", "2", "--secondary", name)
    assert run("table", "scan", carts, "--primary", "ann").stdout == "ann\teggs\t2\nann\tmilk\t2\n"
    (one,) = objects(
        run("table", "scan", carts, "--primary", "ann", "--from-key", "f000", "--to-key", "zzzz", "--json")
    )
    assert (one["key"], one["secondary"], one["value"]) == ("ann", "milk", "2")

    run("table", "delete", table, code=2)
    run("table", "delete", table, "--yes")
    assert f"table {table} does not exist" in run("table", "delete", table, "--yes", code=4).stderr
    assert [str(name) for name in client.tables(own_scope)] == [carts]


def test_the_life_of_a_stream(run, client, scope, monkeypatch):
    run("scope", "create", scope)
    assert "exists already" in run("scope", "create", scope, code=1).stderr
    run("scope", "create", scope, "--exist-ok")
    assert scope in json.loads(run("scope", "list", "--json").stdout)
    stream = f"{scope}/life"
    run("stream", "create", stream, "--segments", 2, "--retain-time", "7d", "--retain-at-most", "8d", "--tag", "a")
    assert "exists already" in run("stream", "create", stream, code=1).stderr
    assert run("stream", "list", scope).stdout == f"{stream}\n"
    assert stream in run("stream", "list").stdout.splitlines()
    assert run("stream", "list", scope, "--tag", "a").stdout == f"{stream}\n"
    assert run("stream", "list", scope, "--tag", "b").stdout == ""
    assert "it has 1 streams" in run("scope", "delete", scope, "--yes", code=1).stderr
    run("stream", "create", f"{scope}-trial/one")
    run("scope", "delete", f"{scope}-trial", "--recursive", "--yes")
    assert f"{scope}-trial" not in json.loads(run("scope", "list", "--json").stdout)

    said = f"3 events (6 bytes) are in {stream}\n1 events have no routing key\n"
    assert run("write", stream, "-K", ":", input="a:1\nb:2\nnone").stderr == said
    assert sorted(run("read", stream).stdout.splitlines()) == ["1", "2", "none"]
    (one,) = objects(run("read", stream, "--json", "--limit", 1))
    assert one.keys() == {"scope", "stream", "segment", "segment_id", "offset", "bytes", "value"}
    assert (one["scope"], one["stream"], one["offset"], one["bytes"]) == (scope, "life", 0, "base64")
    assert sorted(run("read", stream, "--bytes", "hex", "--delimiter", ";").stdout) == sorted("31;32;6e6f6e65;")

    told = json.loads(run("export", stream, "life.jsonl", "--columns", "event", "--json").stdout)
    assert (told["rows"], told["file"], told["end"]) == (3, "life.jsonl", client.tail(stream).to_text())
    told = json.loads(run("stream", "describe", stream, "--json").stdout)
    assert (told["bytes"], told["sealed"], told["tags"]) == (6 + 3 * 8, False, ["a"])
    assert told["retention"] == {"kind": "time", "least": 7 * 86_400_000, "most": 8 * 86_400_000}
    assert [segment["keys"] for segment in told["segments"]] == [[0.0, 0.5], [0.5, 1.0]]
    assert StreamCut.from_text(told["tail"]) == client.tail(stream)
    assert "fixed, 2 segments" in run("stream", "describe", stream).stdout

    run("stream", "update", stream, "--scale-kbytes", 100, "--scale-factor", 3, "--no-retention", "--no-tags")
    config = client.controller.stream_config(StreamName.parse(stream))
    assert (config.retention, config.tags) == (None, ())
    assert (config.scaling.kind, config.scaling.target_rate, config.scaling.scale_factor) == ("kbytes", 100, 3)
    assert "nothing would change" in run("stream", "update", stream, "--scale-kbytes", 100, code=2).stderr
    run("stream", "update", stream, "--no-scaling", "--retain-size", "1GB")

    before = run("cut", "of", stream, "--at", "latest").stdout
    Path("before.cut").write_text(before)
    assert "has 3 segments" in run("stream", "scale", stream, "--segments", 3).stderr
    assert "has 4 segments" in run("stream", "scale", stream, "--split", "3.#epoch.1").stderr
    assert "has 3 segments" in run("stream", "scale", stream, "--merge", 5, 6).stderr
    assert "has no open segment '0'" in run("stream", "scale", stream, "--split", 0, code=1).stderr
    run("write", stream, "--routing-key", "k", input="later\n")
    assert run("read", stream, "--start", "@before.cut").stdout == "later\n"
    assert run("read", stream, "--start", "-", input=before).stdout == "later\n"

    assert run("lag", "before.cut", "--max-bytes", 13).exit_code == 0
    assert "lag of 13 bytes, more than 12" in run("lag", before.strip(), "--max-bytes", 12, code=5).stderr
    assert json.loads(run("lag", "-", "--json", input=before).stdout)["bytes"] == 13
    assert (
        "standard input is not a terminal; pass --yes"
        in run("stream", "truncate", stream, "--at", "latest", code=2).stderr
    )
    run("stream", "truncate", stream, "--at", "latest", "--yes")
    assert run("read", stream).stdout == ""
    assert ": 13 bytes were not read" in run("lag", "before.cut", code=3).stderr
    assert "[PRAVEGA-DATA-LOSS]" in run("read", stream, "--start", "@before.cut", code=3).stderr

    monkeypatch.setenv("PRAVEGA_SCOPE", scope)
    assert run("read", "life").stdout == ""
    assert run("stream", "list").stdout == f"{stream}\n"
    run("stream", "seal", stream, "--yes")
    assert "sealed" in run("stream", "describe", stream).stdout
    assert "[PRAVEGA-STREAM-SEALED]" in run("write", stream, input="no\n", code=1).stderr
    run("stream", "delete", stream, "--yes")
    assert f"{stream} was deleted" in run("lag", "before.cut", code=4).stderr
    for command in (("read",), ("write",), ("stream", "describe"), ("stream", "seal"), ("stream", "delete")):
        assert "[PRAVEGA-STREAM-NOT-FOUND]" in run(*command, stream, input="", code=4).stderr
    run("scope", "delete", scope, "--yes")
    assert "[PRAVEGA-SCOPE-NOT-FOUND]" in run("scope", "delete", scope, "--yes", code=4).stderr


def test_lines_as_typed_events(run, stream_name, client):
    Path("order.avsc").write_text(json.dumps(SCHEMA))
    options = ("--format", "avro", "-o", "avro_schema=order.avsc")
    good = [
        '{"id": 1, "at": "2026-01-02T03:04:05Z", "price": 12.5}',
        '{"id": 2, "at": "2026-01-02T03:04:06Z", "price": 3}',
    ]
    bad = '{"id": 3, "at": "2026-01-02T03:04:06Z", "prise": 3}'
    Path("orders.jsonl").write_text("\n".join((*good, bad, good[0])))
    told = run("write", stream_name, "orders.jsonl", *options, "--key-field", "id", "--create", 1, code=6)
    assert told.stderr.splitlines()[0].startswith("2 events (")
    assert "orders.jsonl: line 3 is not an event: the events have no field 'prise'" in told.stderr
    assert [each["value"] for each in objects(run("read", stream_name, *options, "--json"))] == [
        {"id": 1, "at": "2026-01-02T03:04:05.000000Z", "price": 12.5},
        {"id": 2, "at": "2026-01-02T03:04:06.000000Z", "price": 3.0},
    ]
    run("write", stream_name, input=b"\xff\n")
    told = run("read", stream_name, *options, code=6)
    assert len(told.stdout.splitlines()) == 2, "those before the bad one are written"
    assert "[PRAVEGA-DESERIALIZATION]" in told.stderr
    told = run("read", stream_name, *options, "--skip-bad")
    assert len(told.stdout.splitlines()) == 2
    assert told.stderr == "1 events could not be decoded and were skipped\n"
    for name, lines, line in (("string", b"ok\n\xff\n", 2), ("json", b"1\n2\n{\n", 3), ("cbor", b'{"a": 1}\n[\n', 2)):
        told = run("write", f"{stream_name}-{name}", "--create", 1, "--format", name, input=lines, code=6)
        assert f"line {line} is not an event" in told.stderr
        assert len(list(client.read(f"{stream_name}-{name}"))) == line - 1


def test_events_of_a_registry(run, registry, stream_name):
    """Which format and which schema, the registry tells both commands."""
    other = {"type": "record", "name": "Refund", "fields": [{"name": "id", "type": "int"}]}
    group = stream_name.stream
    with SchemaRegistryClient(registry) as client:
        client.add_group(group, GroupProperties(SerializationFormat.AVRO, Compatibility.ALLOW_ANY, True))
        for schema in (SCHEMA, other):
            client.add_schema(group, SchemaInfo(schema["name"], SerializationFormat.AVRO, json.dumps(schema).encode()))
    at = ("--registry", registry)
    line = '{"id": 1, "at": "2026-01-02T03:04:05Z", "price": 12.5}\n'
    run("write", stream_name, "--create", 1, *at, "-o", "registry_type=Order", input=line)
    run("write", stream_name, *at, "-o", "registry_type=Refund", input='{"id": 2}\n')
    found = objects(run("read", stream_name, *at, "--json"))
    assert [(each["type"], each["value"]["id"]) for each in found] == [("Order", 1), ("Refund", 2)]
    assert run("read", stream_name, *at, "-o", "registry_type=Refund").stdout == '{"id":2}\n'
    assert "[PRAVEGA-REGISTRY-NOT-FOUND]" in run("read", stream_name, *at, "--registry-group", "none", code=4).stderr


def test_a_transaction_is_all_or_nothing(run, stream_name, client):
    told = run("write", stream_name, "--create", 2, "--transaction", "--format", "json", input="1\n2\n{\n", code=6)
    assert told.stderr.startswith("0 events (0 bytes)")
    assert list(client.read(stream_name)) == []
    run("write", stream_name, "--transaction", "--format", "json", input="1\n2\n")
    assert list(client.read(stream_name)) == [b"1", b"2"]


def test_a_reader_continues_where_it_ended(run, stream_name, client):
    """Across scaling, and by any number of events at a time."""
    client.create_stream(stream_name)
    written = 0
    for segments in (3, 1, 2):
        run(
            "write",
            stream_name,
            "--key-field",
            "k",
            input="".join(f'{{"k": {i}}}\n' for i in range(written, written + 20)),
        )
        written += 20
        run("stream", "scale", stream_name, "--segments", segments)
    assert len(objects(run("read", stream_name, "--cut-file", "kept", "--limit", 7))) == 7
    seen = [each["k"] for each in objects(run("read", stream_name, "--limit", 7))]
    while found := objects(run("read", stream_name, "--cut-file", "kept", "--limit", 11)):
        assert len(found) == 11 or len(seen) + len(found) == written
        seen += [each["k"] for each in found]
        run("lag", "kept")
    assert sorted(seen) == list(range(written))
    assert StreamCut.from_text(Path("kept").read_text().strip()) == client.tail(stream_name)


def test_following_a_second_writer(run, stream_name, client, command):
    client.create_stream(stream_name)
    run("write", stream_name, input="old\n")
    reader = command("read", stream_name, "--follow", "--start", "earliest", "--cut-file", "kept", "--format", "string")
    assert reader.stdout.readline() == b"old\n"
    run("write", stream_name, input="new\n")
    assert reader.stdout.readline() == b"new\n"
    limited = command("read", stream_name, "--follow", "--limit", 1, "--start", "@kept", "--json")
    reader.send_signal(signal.SIGTERM)
    assert (reader.wait(120), reader.stderr.read()) == (143, b"")
    kept = StreamCut.from_text(Path("kept").read_text().strip())
    assert kept in (client.tail(stream_name), StreamCut(stream_name, {0: 3 + 8})), (
        "what was being written may come again"
    )
    run("write", stream_name, input="last\n")
    assert json.loads(limited.stdout.readline())["stream"] == stream_name.stream
    assert limited.wait(120) == 0
    run("stream", "seal", stream_name, "--yes")
    assert run("read", stream_name, "--follow", "--start", "earliest").stdout == "old\nnew\nlast\n"


def test_signals_and_a_closed_pipe(stream_name, client, command):
    client.create_stream(stream_name)
    writer = command("write", stream_name, bufsize=0)
    writer.stdin.write(b"one\ntwo\nhalf")
    with client.follow(stream_name, start=client.head(stream_name)) as reader:
        seen = 0
        while seen < 2:
            batch = reader.poll(10)
            seen += 0 if batch is None else len(batch.events)
    writer.send_signal(signal.SIGINT)
    said = f"2 events (6 bytes) are in {stream_name}\n4 bytes at the end of an input were not a whole line\n"
    assert (writer.wait(120), writer.stderr.read().decode()) == (130, said)
    held = command("write", stream_name, "--transaction", bufsize=0)
    held.stdin.write(b"three\n")
    held.send_signal(signal.SIGTERM)
    assert held.wait(120) == 143 or held.returncode == -signal.SIGTERM
    assert list(client.read(stream_name)) == [b"one", b"two"]
    with client.writer(stream_name) as more:
        for _ in range(64):
            more.write(bytes(1 << 16))
    closed = command("read", stream_name)
    assert closed.stdout.readline() == b"one\n"
    closed.stdout.close()
    assert (closed.wait(120), closed.stderr.read()) == (141, b"")
