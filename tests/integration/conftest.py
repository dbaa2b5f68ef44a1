"""A client of the shared server; servers for those who follow a page."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.local import LocalSchemaRegistry
from pravega_connector.testing import InProcessPravega, InProcessRegistry
from tests.integration._users import server_with_users
from tests.support import pages


@pytest.fixture
def client(config: PravegaConfig) -> Iterator[PravegaClient]:
    with PravegaClient(config) as client:
        yield client


@pytest.fixture(scope="session")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PravegaConfig]:
    """Server whose users have different rights, for the user who may do all. The whole session shares it."""
    with server_with_users(tmp_path_factory.mktemp("users")) as config:
        yield config


@pytest.fixture
def soon_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again soon about a transaction that the server does not know: no failover is under way that hides it."""
    monkeypatch.setattr("pravega_connector.controller.transactions._UNKNOWN_PAUSE", 0.02)
    monkeypatch.setattr("pravega_connector.exactly_once.steps.log._UNKNOWN_PAUSE", 0.02)


@pytest.fixture
def follower(
    page: str, on_kit: bool, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pages.Follower]:
    """A user who follows ``page``: with servers that have nothing of it yet, in an empty folder."""
    text = (pages.site.ROOT / page).read_text()
    with ExitStack() as servers:
        if on_kit:
            controller = servers.enter_context(InProcessPravega()).uri
        else:
            controller = request.getfixturevalue("pravega").controller_uri
            client = servers.enter_context(PravegaClient(controller))
            remove_scopes(client, text)
            servers.callback(remove_scopes, client, text)
        registry = pages.REGISTRY
        if registry in text:
            registry = servers.enter_context(InProcessRegistry() if on_kit else LocalSchemaRegistry()).uri
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", controller)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no profiles"))
        in_confluent = pages.CONFLUENT in text
        confluent = request.getfixturevalue("confluent") if in_confluent else pages.CONFLUENT
        follower = pages.Follower(tmp_path, controller, registry, confluent)
        yield follower
        follower.close()


def remove_scopes(client: PravegaClient, text: str) -> None:
    """Delete the scopes that a page names, with their contents: other pages and tests name them, too."""
    for scope in list(client.scopes()):
        if not scope.startswith("_") and re.search(rf"\b{scope}\b", text):
            for name in list(client.reader_groups(scope)):
                group = client.controller.group_config(*name.split("/"))
                if group is not None:
                    client.controller.delete_group(*name.split("/"), group)
            for stream in list(client.streams(scope)):
                client.delete_stream(stream)
            for table in list(client.tables(scope)):
                client.delete_table(table)
            client.delete_scope(scope)
