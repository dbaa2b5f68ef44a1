"""``pravega-serde sniff`` for files, without servers."""

import base64
import io
import json

import fastavro
import pytest
from click.testing import CliRunner

from pravega_connector.cli.root import command_line
from pravega_serde import AvroSerializer, JavaSerializer

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
