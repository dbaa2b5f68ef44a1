"""``pravega-serde sniff`` for streams and a schema registry."""

import json

import pytest
from click.testing import CliRunner

import pravega_serde
from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.operations.cli.root import command_line
from pravega_serde.registry import serializer

SCHEMA = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})


@pytest.fixture
def run(config: PravegaConfig, monkeypatch, tmp_path):
    """``run(*arguments)``: the result of the command as JSON."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no profiles"))

    def run(*arguments: object, code: int = 0) -> dict:
        environment = {"PRAVEGA_CONTROLLER_URI": config.controller}
        result = CliRunner().invoke(command_line, ["sniff", *map(str, arguments), "--json"], env=environment)
        assert result.exit_code == code, result.output
        return json.loads(result.stdout) if code == 0 else {"error": result.stderr}

    return run


def test_all_segments_of_a_stream_are_sampled(run, client: PravegaClient, scope: str):
    client.create_scope(scope)
    stream = f"{scope}/mixed"
    client.create_stream(stream, 4)
    with client.writer(stream, "json") as writer:
        for i in range(200):
            writer.write({"id": i}, routing_key=str(i))
    with client.writer(stream, "java") as writer:
        for i in range(100):
            writer.write(i, routing_key=str(i))
    found = run(stream)
    shares = {part["format"]: part["share"] for part in found["parts"]}
    assert shares == {"json": pytest.approx(2 / 3), "java": pytest.approx(1 / 3)}
    assert (found["scanned"], found["stopped"]) == (300, "")
    few = run(stream, "--limit", 40)
    assert (few["scanned"], few["stopped"]) == (40, "events")
    assert run(stream, "--start", "latest")["parts"] == []
    values = list(client.read(stream))
    assert sorted(json.loads(each)["id"] for each in values if each[:1] == b"{") == list(range(200))


@pytest.mark.parametrize(
    ("format_name", "value"),
    [("json", {"id": 1, "item": "tea"}), ("cbor", {"id": 1, "item": "tea"}), ("java", 7), ("string", "some text")],
)
def test_the_proposed_call_reads_the_stream(run, client: PravegaClient, scope: str, format_name: str, value: object):
    client.create_scope(scope)
    stream = f"{scope}/{format_name}"
    client.create_stream(stream, 1)
    with client.writer(stream, format_name) as writer:
        for _ in range(30):
            writer.write(value, routing_key="a")
    (part,) = run(stream)["parts"]
    assert list(eval(part["proposal"]["client"], {"client": client, "pravega_serde": pravega_serde})) == [value] * 30


def test_a_missing_stream(run, scope: str):
    assert "does not exist" in run(f"{scope}/none", code=4)["error"]


def test_the_registry_names_encoding_ids(run, client: PravegaClient, scope: str, registry: str):
    client.create_scope(scope)
    stream = f"{scope}/orders"
    client.create_stream(stream, 1)
    group = f"{scope}-orders"
    made = serializer(registry, group=group, schema=SCHEMA, format="avro", create_group=True, register_schema=True)
    with client.writer(stream, made) as writer:
        for i in range(30):
            writer.write({"id": 1 << i}, routing_key="a")
    found = run(stream, "--registry", registry, "--registry-group", group)
    assert found["encodings"] == {"0": "Avro Order, version 0"}
    assert [(part["format"], part["framing"]) for part in found["parts"]] == [("avro", ["pravega-registry"])]
    assert found["parts"][0]["proposal"]["spark"] == {"registry": registry, "group": group}
    missing = run(stream, "--registry", registry, "--registry-group", "another")
    assert missing["encodings"] == {"0": "not in the registry"}
