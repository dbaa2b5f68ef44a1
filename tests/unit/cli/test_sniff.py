"""``pravega-serde sniff`` for files, without servers."""

import base64
import io
import json

import fastavro
import pytest
from click.testing import CliRunner

from pravega_connector.operations.cli.root import command_line
from pravega_serde import AvroSerializer, JavaSerializer
from pravega_serde.registry import deserializer, serializer
from tests.unit.registry._scripted import answer, scripted

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}],
}


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no profiles"))
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", "nowhere://")
    monkeypatch.chdir(tmp_path)


def run(*arguments, code=0, **options):
    result = CliRunner().invoke(command_line, ["sniff", *map(str, arguments)], **options)
    assert result.exit_code == code, result.output
    return result


def parts(result):
    return [(part["format"], part["events"]) for part in json.loads(result.stdout)["parts"]]


def test_lines_of_a_file(tmp_path):
    lines = [json.dumps({"id": i, "day": "2026-05-01"}) for i in range(50)]
    (tmp_path / "events.jsonl").write_text("\n".join(lines))
    result = run("@events.jsonl")
    assert "100.0%  json, confidence high" in result.stdout
    assert 'schema("id BIGINT, day DATE")' in result.stdout
    assert parts(run("@events.jsonl", "--json")) == [("json", 50)]


@pytest.mark.parametrize(("form", "encode"), [("hex", bytes.hex), ("base64", base64.b64encode)])
def test_binary_events_on_standard_input(form, encode):
    events = [JavaSerializer().serialize(f"text {i}") for i in range(30)]
    text = b"\n".join(each.encode() if isinstance(each, str) else each for each in map(encode, events))
    assert parts(run("-", "--bytes", form, "--json", input=text)) == [("java", 30)]


def test_a_whole_file_and_its_schema(tmp_path):
    out = io.BytesIO()
    fastavro.writer(out, AVRO, [{"id": 1, "item": "tea"}])
    (tmp_path / "orders.avro").write_bytes(out.getvalue())
    run("@orders.avro", "--bytes", "whole", "--schema-file", "orders.avsc")
    schema = json.loads((tmp_path / "orders.avsc").read_text())
    assert [each["name"] for each in schema["fields"]] == ["id", "item"]


def test_an_avro_schema_confirms_events():
    serializer = AvroSerializer(json.dumps(AVRO))
    text = b"\n".join(serializer.serialize({"id": i, "item": "tea"}).hex().encode() for i in range(40))
    assert parts(run("-", "--bytes", "hex", "--json", input=text)) == [("unknown", 40)]
    confirmed = run("-", "--bytes", "hex", "--json", "--avro-schema", json.dumps(AVRO), input=text)
    assert parts(confirmed) == [("avro", 40)]


def hex_lines(events):
    return b"\n".join(each.hex().encode() for each in events)


def test_a_registry_names_the_schemas_of_its_ids():
    uri = "mock://sniffed"
    writer = serializer(uri, group="orders", schema=AVRO, format="avro", create_group=True, register_schema=True)
    text = hex_lines(writer.serialize({"id": i, "item": f"{i:x}" * (i % 5)}) for i in range(40))
    command = ("-", "--bytes", "hex", "--registry", uri, "--registry-group", "orders")
    found = json.loads(run(*command, "--json", input=text).stdout)
    assert found["encodings"] == {"0": "Avro Order, version 0"}
    (part,) = found["parts"]
    assert (part["format"], part["confidence"]) == ("avro", "high")
    assert "0 is Avro Order, version 0" in part["reason"]
    assert part["proposal"]["spark"] == {"registry": uri, "group": "orders"}
    assert f'deserializer("{uri}", group="orders")' in part["proposal"]["client"]
    assert part["proposal"]["registry_format"] == "Avro"
    assert "100.0%  avro in pravega-registry" in run(*command, input=text).stdout


def test_a_registry_without_the_ids_names_nothing():
    text = hex_lines(b"\1\0\0\0\3" + bytes(range(7 * i, 7 * i + i % 5)) for i in range(1, 30))
    deserializer("mock://empty", group="orders", create_group=True)
    command = ("-", "--bytes", "hex", "--json", "--registry", "mock://empty", "--registry-group", "orders")
    found = json.loads(run(*command, input=text).stdout)
    assert found["encodings"] == {"3": "not in the registry"}
    assert [(part["format"], part["framing"]) for part in found["parts"]] == [("unknown", ["pravega-registry"])]


@pytest.mark.parametrize("kind", ["confluent", "apicurio"])
def test_schemas_of_other_registries_are_named(kind):
    base = "/apis/ccompat/v7" if kind == "apicurio" else ""

    def act(handler):
        found = handler.path == f"{base}/schemas/ids/7"
        answer(handler, 200 if found else 404, {"schema": json.dumps(AVRO)} if found else {})

    body = AvroSerializer(json.dumps(AVRO))
    header = b"\0" + (7).to_bytes(4, "big")
    text = hex_lines(header + body.serialize({"id": 1 << i, "item": f"{i:x}" * (i % 5)}) for i in range(40))
    with scripted(act) as registry:
        uri = f"{kind}+{registry.uri}"
        found = json.loads(run("-", "--bytes", "hex", "--json", "--registry", uri, input=text).stdout)
    assert found["encodings"] == {"7": "Avro Order"}
    (part,) = found["parts"]
    assert (part["format"], part["framing"]) == ("avro", ["confluent"])
    assert part["proposal"]["spark"] == {"registry": uri, "group": "stream-value"}


def test_limits_are_reported():
    found = json.loads(run("-", "--limit", 10, "--json", input=b"a line of text\n" * 100).stdout)
    assert (found["scanned"], found["stopped"]) == (10, "events")
    found = json.loads(run("-", "--json", input=b"[" + b"1," * 3_000_000 + b"1]\n" + b"a line of text\n" * 9).stdout)
    assert (found["scanned"], found["examined"]) == (10, 9)
    assert "more than 1048576 bytes" in found["notes"][0]


def test_no_escape_sequence_reaches_a_terminal():
    event = json.dumps({"\x1b]0;title\x07": 1, "\ud800": 2, "plain": 3})
    result = run("-", input=f"{event}\n" * 5)
    assert "\x1b" not in result.stdout
    assert "\\x1b]0;title" in result.stdout
    json.loads(run("-", "--json", input=f"{event}\n" * 5).stdout)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["@missing.jsonl"], 1, "cannot read events from missing.jsonl"),
        (["-", "--bytes", "hex"], 6, "line 1 of standard input is not hex; check --bytes"),
        (["-", "--avro-schema", "missing.avsc"], 1, "missing.avsc"),
        (["-", "--schema-file", "a.json"], 1, "the events define no schema, so a.json was not written"),
        (["-", "--limit", "0"], 2, "--limit"),
    ],
)
def test_errors_are_one_line(arguments, code, said):
    result = run(*arguments, code=code, input=b"plain text, no digits\n")
    assert said in result.stderr
    if code != 2:
        assert len(result.stderr.splitlines()) == 1
