"""``pravega-serde registry`` with a Confluent-compatible registry, and with Apicurio's interface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pravega_connector.operations.cli.exit_codes import ExitCode
from pravega_connector.operations.cli.root import command_line
from pravega_connector.testing import mock_confluent_registry
from pravega_serde.errors import UnsupportedRuleError
from pravega_serde.registry import serializer

ORDER: dict[str, Any] = {"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "long"}]}
NEWER = {**ORDER, "fields": [*ORDER["fields"], {"name": "item", "type": "string", "default": ""}]}
OTHER = {**ORDER, "fields": [{"name": "id", "type": "string"}]}


@pytest.fixture(params=["confluent", "apicurio"])
def uri(request: pytest.FixtureRequest) -> str:
    return f"{request.param}+mock://cli-{abs(hash(request.node.name))}"


@pytest.fixture
def run(uri: str, tmp_path: Path) -> Any:
    """Return a function that runs a command, with parsed JSON as a file, and returns the exit code and the lines."""

    def run(command: str, *args: Any) -> tuple[int, list[str]]:
        given = []
        for number, each in enumerate(args):
            path = tmp_path / f"{number}.avsc"
            if isinstance(each, dict):
                path.write_text(json.dumps(each))
            given.append(str(path if isinstance(each, dict) else each))
        result = CliRunner().invoke(command_line, ["registry", command, "--registry", uri, *given])
        return result.exit_code, [line for line in result.output.splitlines() if line]

    return run


def test_subjects_are_registered_checked_and_deleted(run: Any) -> None:
    assert run("register", "orders-value", ORDER) == (0, ["shop.Order: version 1, id 1"])
    assert run("register", "orders-value", ORDER) == (0, ["shop.Order: version 1, id 1"])
    assert run("check", "orders-value", NEWER) == (
        0,
        ["Compatible under Backward: shop.Order and the subject 'orders-value'"],
    )
    code, lines = run("check", "orders-value", OTHER)
    assert (code, lines[0]) == (1, "Not compatible under Backward: shop.Order and the subject 'orders-value'")
    assert len(lines) > 1
    code, lines = run("register", "orders-value", OTHER)
    assert (code, "incompatible" in lines[-1]) == (1, True)
    assert run("policy", "orders-value", "AllowAny") == (0, [])
    assert run("policy", "orders-value") == (0, ["AllowAny"])
    assert run("policy", "orders-value", "DenyAll")[0] == 1
    assert run("policy", "orders-value", "Full", "--if", "Backward")[0] == 1
    assert run("register", "orders-value", OTHER, "--json") == (0, ['{"type": "shop.Order", "version": 2, "id": 2}'])
    assert json.loads(run("groups", "--json")[1][0]) == [
        {"group": "orders-value", "format": "Avro", "policy": "AllowAny", "types": "one"}
    ]
    assert run("delete", "orders-value", "--schema", 7, "--yes")[0] == ExitCode.NOT_FOUND
    assert run("delete", "orders-value", "--schema", 2, "--yes")[0] == 0
    assert [each.split() for each in run("schemas", "orders-value")[1]] == [
        ["id", "type", "format", "version", "rules"],
        ["1", "shop.Order", "Avro", "1"],
    ]
    assert run("delete", "orders-value", "--yes")[0] == 0
    assert run("schemas", "orders-value")[0] == ExitCode.NOT_FOUND
    code, lines = run("create", "orders-value", "--format", "avro")
    assert (code, "exists from its first schema on" in lines[-1]) == (1, True)


def test_rules_are_registered_and_shown(run: Any, uri: str, tmp_path: Path) -> None:
    rule = {"name": "quantum", "kind": "CONDITION", "mode": "WRITE", "type": "QUANTUM"}
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"ruleSet": {"domainRules": [rule]}, "metadata": {"properties": {"owner": "ann"}}}))
    assert run("register", "s", ORDER, "--rules", rules)[0] == 0
    assert run("schemas", "s")[1][1].split() == ["1", "shop.Order", "Avro", "1", "quantum"]
    stored = mock_confluent_registry(uri.partition("+")[2]).answer("GET", "/schemas/ids/1", {}, None)[1]
    assert json.loads(stored)["metadata"] == {"properties": {"owner": "ann"}}
    with pytest.raises(UnsupportedRuleError):
        serializer(uri, group="s", schema=ORDER, format="avro")
    rules.write_text('{"rules": []}')
    code, lines = run("register", "s", ORDER, "--rules", rules)
    assert (code, "must be an object with ruleSet" in lines[-1]) == (1, True)


def test_an_event_is_decoded(run: Any, uri: str) -> None:
    writer = serializer(uri, group="s", schema=ORDER, format="avro", register_schema=True)
    code, lines = run("decode", "s", writer.serialize({"id": 7}).hex())
    assert code == 0
    assert json.loads("".join(lines[1:])) == {"id": 7}
