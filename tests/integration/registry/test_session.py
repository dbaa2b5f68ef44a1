"""The session that was recorded from a registry's REST interface, played again by the clients on real servers."""

import asyncio
import contextlib
import dataclasses
import json

import pytest

from pravega_connector.local import LocalSchemaRegistry
from pravega_connector.testing import InProcessRegistry
from pravega_serde.errors import RegistryUnavailableError
from pravega_serde.registry import (
    AsyncSchemaRegistryClient,
    Compatibility,
    GroupProperties,
    SchemaInfo,
    SchemaRegistryClient,
)
from pravega_serde.registry import SerializationFormat as Kind
from tests.integration.registry._session import RECORDED, RawCall, Step, outcome, plain, steps
from tests.support.stopwatch import Stopwatch

STEPS = steps()
AVRO = b'{"type":"record","name":"R","namespace":"n","fields":[]}'
GROUPS = {"g1", "g%2F2 x", "any", "deny"}
# On Pravega, the server never answers this one, and is at work on it for ever: a second format for a type's name.
ENDLESS = 82


def test_the_session_is_whole():
    assert len(RECORDED) == len(STEPS) == 95


@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step.number))
def test_requests_are_those_of_the_session(step):
    call = step.call
    assert (call.method, call.path) == (step.method, step.path)
    if not isinstance(call, RawCall):
        assert plain(call.body) == plain(step.body)
        # The namespace is the client's; the latest schemas are asked for without the type, and chosen from afterwards.
        own = {name: value for name, value in step.query.items() if name != "namespace"}
        assert own.items() <= call.query.items() or step.number in (28, 29)


class Player:
    """Plays a step through a client."""

    def __init__(self, uri: str) -> None:
        self.clients = {name: SchemaRegistryClient(uri, namespace=name) for name in (None, "nsx")}

    def play(self, step: Step) -> object:
        client = self.clients[step.query.get("namespace")]
        if step.number in (28, 29):
            return outcome(lambda: client.latest_schemas("g1", step.query["type"]))
        return outcome(lambda: client._run(step.call))

    def close(self) -> None:
        for client in self.clients.values():
            client.close()


class AsyncPlayer:
    """The same, for asyncio."""

    def __init__(self, uri: str) -> None:
        self.runner = asyncio.Runner()
        self.clients = {name: AsyncSchemaRegistryClient(uri, namespace=name) for name in (None, "nsx")}

    def play(self, step: Step) -> object:
        client = self.clients[step.query.get("namespace")]
        if step.number in (28, 29):
            return outcome(lambda: self.runner.run(client.latest_schemas("g1", step.query["type"])))
        return outcome(lambda: self.runner.run(client._run(step.call)))

    def close(self) -> None:
        for client in self.clients.values():
            self.runner.run(client.close())
        self.runner.close()


def expected(step: Step) -> object:
    # The server fails where it has no schema of the type asked for; the client has an answer all the same.
    return [] if step.number == 29 else step.recorded()


def assert_same(step: Step, found: object) -> None:
    wanted = expected(step)
    if isinstance(wanted, dict) and isinstance(found, dict) and step.path == "/groups":
        # Other tests' groups may be there too, and a page takes more of them than the recorded one.
        wanted, found = ({name: groups[name] for name in groups if name in GROUPS} for groups in (wanted, found))
        if step.number == 8:
            found = {name: group for name, group in found.items() if name in wanted}
    assert found == wanted, f"step {step.number}: {step.method} {step.path}"


@pytest.mark.parametrize("player_type", [Player, pytest.param(AsyncPlayer, marks=pytest.mark.long)])
def test_in_memory(player_type, on_kit):
    with (
        InProcessRegistry() if on_kit else LocalSchemaRegistry() as registry,
        contextlib.closing(player_type(registry.uri)) as player,
    ):
        for step in STEPS:
            assert_same(step, player.play(step))


def renamed(step: Step) -> Step:
    """The step with another type name where the recorded one is used for two formats."""
    body = dict(step.body or {}) if isinstance(step.body, dict) else step.body
    if step.number == ENDLESS:
        call = dataclasses.replace(step.call, body={**step.call.body, "type": "n.R2"})
        return dataclasses.replace(step, call=call, body=body, response={**step.response, "type": "n.R2"})
    if step.number == 85:
        text = json.dumps(step.response["schemas"])
        schemas = [_with_name(item) if item["versionInfo"]["id"] == 2 else item for item in json.loads(text)]
        return dataclasses.replace(step, response={"schemas": schemas})
    return step


def _with_name(item):
    return {part: {**item[part], "type": "n.R2"} for part in item}


@pytest.mark.long  # the same session in memory is above
@pytest.mark.real_servers("a registry that keeps its schemas in Pravega")
def test_on_pravega(pravega):
    with LocalSchemaRegistry(controller=pravega.config) as registry, contextlib.closing(Player(registry.uri)) as player:
        for step in map(renamed, STEPS):
            found = player.play(step)
            if step.number == 85:
                found = sorted(found, key=lambda item: item.version.id)
                assert found == sorted(expected(step), key=lambda item: item.version.id)
            else:
                assert_same(step, found)


@pytest.mark.long
@pytest.mark.real_servers("a fault of the server 0.6 on Pravega")
def test_a_request_that_the_server_never_answers(pravega):
    avro, json_schema = (SchemaInfo("n.R", kind, data) for kind, data in ((Kind.AVRO, AVRO), (Kind.JSON, b"{}")))
    with (
        LocalSchemaRegistry(controller=pravega.config) as registry,
        SchemaRegistryClient(registry.uri, timeout=2) as client,
    ):
        client.add_group("endless", GroupProperties(Kind.ANY, Compatibility.ALLOW_ANY, allow_multiple_types=True))
        client.add_schema("endless", avro)
        begin = Stopwatch()
        # Sent once: each time keeps a thread of the server at work for ever.
        with pytest.raises(RegistryUnavailableError, match=r"after 1 try .* may have done it"):
            client.add_schema("endless", json_schema)
        assert begin.within(4)
