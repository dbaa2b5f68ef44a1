"""Credentials of a Keycloak service account."""

import asyncio
import contextlib
import json
import pickle
import socket
import threading
import time
from base64 import b64decode
from collections.abc import Iterator

import grpc
import pytest

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.service import ControllerClient
from pravega_connector.errors import AuthenticationError, ConfigError, ControllerUnavailableError
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.testing import InProcessRegistry
from pravega_serde import AsyncSchemaRegistryClient, CredentialUnavailableError, KeycloakProvider, SchemaRegistryClient
from pravega_serde.kept_credentials import KeptCredential
from tests.support.fakes import FakeController
from tests.support.keycloak import SECRET, Endpoint, Keycloak
from tests.support.stopwatch import Stopwatch


@pytest.fixture
def keycloak() -> Iterator[Keycloak]:
    server = Keycloak()
    yield server
    server.close()


@pytest.fixture
def controller() -> Iterator[FakeController]:
    with FakeController() as fake:
        yield fake.on("checkScopeExists", pb.ExistsResponse(exists=True))


def told(controller: FakeController) -> list[str]:
    return [call.metadata["authorization"] for call in controller.calls]


def test_a_token_is_got_in_two_steps_and_kept(keycloak, controller, tmp_path):
    config = PravegaConfig(controller=controller.uri, keycloak_file=keycloak.file(tmp_path))
    with ControllerClient(config, timeout=10) as client:
        assert client.scope_exists("a")
        assert client.scope_exists("b")
    assert told(controller) == ["Bearer token2"] * 2
    (path, form, authorization), (again, ticket, bearer) = keycloak.asked
    assert path == again == "/auth/realms/north%20sea/protocol/openid-connect/token"
    assert form == {"grant_type": ["client_credentials"]}
    assert b64decode(authorization.removeprefix("Basic ")) == b"spark-jobs:s3cr3t%2B%2F%C3%BC"
    assert ticket == {"grant_type": ["urn:ietf:params:oauth:grant-type:uma-ticket"], "audience": ["pravega-controller"]}
    assert bearer == "Bearer token1"


def test_a_public_client_is_reported_by_its_name(keycloak, tmp_path):
    assert KeycloakProvider(keycloak.file(tmp_path, **{"public-client": True}))().authorization == "Bearer token2"
    (_, form, authorization), _ = keycloak.asked
    assert (form["client_id"], authorization) == (["spark-jobs"], "")


def test_a_token_is_renewed_before_it_ends(keycloak, tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("pravega_serde.kept_credentials.time.monotonic", lambda: now[0])
    monkeypatch.setattr("pravega_serde.kept_credentials._RENEWAL_WAIT", 60.0)
    tokens = KeptCredential(KeycloakProvider(keycloak.file(tmp_path)))
    assert tokens.authorization(10) == "Bearer token2"
    now[0] += 239.0
    assert tokens.authorization(10) == "Bearer token2"
    now[0] += 2.0
    assert tokens.authorization(10) == "Bearer token4"
    keycloak.life = 30.0  # shorter than what must be left of it: half of it is used
    now[0] += 300.0
    assert tokens.authorization(10) == "Bearer token6"
    now[0] += 14.0
    assert tokens.authorization(10) == "Bearer token6"


def test_a_token_that_the_controller_refuses_is_replaced_once(keycloak, controller, tmp_path):
    controller.on("checkScopeExists", grpc.StatusCode.UNAUTHENTICATED, pb.ExistsResponse(exists=True))
    config = PravegaConfig(controller=controller.uri).with_keycloak(keycloak.file(tmp_path))
    with ControllerClient(config, timeout=10) as client:
        assert client.scope_exists("a")
        assert told(controller) == ["Bearer token2", "Bearer token4"]
        controller.on("checkScopeExists", grpc.StatusCode.UNAUTHENTICATED)
        with pytest.raises(AuthenticationError, match="refuses the credentials"):
            client.scope_exists("b")
    assert told(controller)[2:] == ["Bearer token4", "Bearer token6"]


def test_keycloak_is_waited_for(keycloak, controller, tmp_path):
    keycloak.answers = [(503, b"starting"), (200, b"<html>"), (200, b'{"access_token": "only this"}')]
    config = PravegaConfig(controller=controller.uri, keycloak_file=keycloak.file(tmp_path))
    with ControllerClient(config, timeout=20) as client:
        assert client.scope_exists("a")
    assert len(keycloak.asked) == 5
    assert told(controller) == ["Bearer token5"]


def test_without_keycloak_the_error_names_it(controller, tmp_path):
    server = Keycloak()
    config = PravegaConfig(controller=controller.uri, keycloak_file=server.file(tmp_path))
    server.close()
    with (
        ControllerClient(config, timeout=1) as client,
        pytest.raises(ControllerUnavailableError, match=rf"Keycloak at {server.url}.*Connection refused; check auth-"),
    ):
        client.scope_exists("a")
    assert controller.calls == []


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_is_one_line_without_the_secret(keycloak, controller, tmp_path, step, status):
    ours = (200, b'{"access_token": "a", "expires_in": 300}')
    keycloak.answers = [ours] * step + [(status, b'{"error": "no", "error_description": "Invalid\\nclient"}')]
    config = PravegaConfig(controller=controller.uri, keycloak_file=keycloak.file(tmp_path))
    with ControllerClient(config, timeout=10) as client, pytest.raises(AuthenticationError) as caught:
        client.scope_exists("a")
    text = str(caught.value)
    assert f"refuses the service account 'spark-jobs' with {status} (Invalid client): check realm" in text
    assert "\n" not in text
    assert SECRET not in text
    assert len(keycloak.asked) == step + 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read from .*No such file or directory; check keycloak_file"),
        ("{", "invalid JSON"),
        ("[]", "has no text for realm"),
        ('{"realm": "r", "auth-server-url": "http://k", "resource": "c"}', "has no text for credentials.secret"),
        (
            '{"realm": "r", "auth-server-url": "file:///etc", "resource": "c", "credentials": {"secret": "s"}}',
            "invalid auth-server-url in .*: write https://host:port/path, without a user and a password",
        ),
    ],
)
def test_a_wrong_file_is_reported(tmp_path, content, said):
    path = tmp_path / "keycloak.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=said):
        ControllerClient(PravegaConfig(keycloak_file=str(path)))


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_gets_neither_secret_nor_token(keycloak, controller, tmp_path, monkeypatch, step, status):
    other = Keycloak()
    location = f"http://key@127.0.0.1:{other.server_port}/auth?code=key"
    handle, answered = Endpoint.do_POST, []

    def redirect(endpoint: Endpoint) -> None:
        answered.append(endpoint.server)
        if endpoint.server is other or len(answered) <= step:
            handle(endpoint)
            return
        endpoint.rfile.read(int(endpoint.headers["Content-Length"]))
        endpoint.send_response(status)
        endpoint.send_header("Location", location)
        endpoint.send_header("Content-Length", "0")
        endpoint.end_headers()

    monkeypatch.setattr(Endpoint, "do_POST", redirect)
    monkeypatch.setattr(Endpoint, "do_GET", redirect, raising=False)
    config = PravegaConfig(controller=controller.uri, keycloak_file=keycloak.file(tmp_path))
    try:
        with ControllerClient(config, timeout=10) as client, pytest.raises(AuthenticationError) as caught:
            client.scope_exists("a")
    finally:
        other.close()
    assert answered == [keycloak] * (step + 1)
    assert f"redirects to http://127.0.0.1:{other.server_port}, and the client's secret is not sent there" in str(
        caught.value
    )
    assert "key@" not in str(caught.value)
    assert "code" not in str(caught.value)


def test_proxies_of_the_environment_get_no_secret(keycloak, tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        for variable in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        assert KeycloakProvider(keycloak.file(tmp_path))().authorization == "Bearer token2"


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_an_answer_that_drips_ends_at_the_deadline(tmp_path, beginning):
    """The status line, a header, or the body comes byte by byte: each read has something to read."""
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(beginning)
            while True:
                connection.sendall(b"x")
                time.sleep(0.02)
        ended.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=drip, args=[listener], daemon=True).start()
        path = tmp_path / "keycloak.json"
        account = {"realm": "r", "auth-server-url": f"http://127.0.0.1:{listener.getsockname()[1]}"}
        path.write_text(json.dumps(account | {"resource": "c", "credentials": {"secret": SECRET}}))
        began = Stopwatch()
        with pytest.raises(CredentialUnavailableError, match=r"no whole answer within [\d.]+ s"):
            KeycloakProvider(str(path), timeout=0.5)()
        assert began.within(5)
        assert ended.wait(120)  # nothing of ours reads on


@pytest.mark.parametrize(
    "answer",
    [
        {"access_token": "a", "expires_in": float("nan")},
        {"access_token": "a", "expires_in": float("inf")},
        {"access_token": "a", "expires_in": -1},
        {"access_token": "a\n", "expires_in": 300},
        {"access_token": "\u00e4", "expires_in": 300},
        {"access_token": 7, "expires_in": 300},
        {"access_token": "a" * (1 << 20), "expires_in": 300},
    ],
    ids=["nan", "inf", "negative", "newline", "not ASCII", "number", "large"],
)
def test_an_answer_that_is_not_a_token_is_reported(keycloak, tmp_path, answer):
    keycloak.answers = [(200, json.dumps(answer).encode())]
    with pytest.raises(CredentialUnavailableError, match=r"has no token|is larger than 1048576 bytes"):
        KeycloakProvider(keycloak.file(tmp_path))()


def test_an_event_loop_continues_while_a_token_is_got(keycloak, controller, tmp_path):
    asked = threading.Event()
    handle = Endpoint.do_POST

    def wait(endpoint: Endpoint) -> None:
        assert asked.wait(120)
        handle(endpoint)

    async def main() -> bool:
        config = PravegaConfig(controller=controller.uri, keycloak_file=keycloak.file(tmp_path))
        async with AsyncPravegaClient(config) as client:
            asking = asyncio.create_task(client.scope_exists("a"))
            while not asking.done():  # the answer comes only after the loop has got here
                await asyncio.sleep(0.01)
                asked.set()
            return await asking

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Endpoint, "do_POST", wait)
        assert asyncio.run(main())
    assert told(controller) == ["Bearer token2"]


def test_the_registry_gets_the_tokens_too(keycloak, tmp_path):
    with InProcessRegistry(accepts=keycloak.accepts) as registry:
        with SchemaRegistryClient(registry.uri, keycloak_file=keycloak.file(tmp_path)) as client:
            assert list(client.groups()) == []

        async def main() -> list[object]:
            async with AsyncSchemaRegistryClient(registry.uri, keycloak_file=keycloak.file(tmp_path)) as client:
                return [group async for group in client.groups()]

        assert asyncio.run(main()) == []
    # One token for all clients of the process.
    assert len(keycloak.asked) == 2
    assert keycloak.refused == []


def test_a_secret_can_be_replaced_while_programs_run(keycloak, tmp_path):
    provider = KeycloakProvider(keycloak.file(tmp_path))
    provider()
    keycloak.file(tmp_path, credentials={"secret": "next"})
    provider()
    sent = [b64decode(asked[2].removeprefix("Basic ")) for asked in keycloak.asked[::2]]
    assert sent == [b"spark-jobs:s3cr3t%2B%2F%C3%BC", b"spark-jobs:next"]
    (tmp_path / "keycloak.json").write_text("{")
    with pytest.raises(CredentialUnavailableError, match="invalid JSON"):
        provider()


def test_the_file_is_a_setting_like_the_others(tmp_path):
    file = str(tmp_path / "keycloak.json")
    for environment in (
        {"pravega_client_auth_keycloak": file},
        {"pravega_client_auth_keycloak": file, "pravega_client_auth_method": "Bearer"},
        {
            "pravega_client_auth_loadDynamic": "true",
            "pravega_client_auth_method": "Bearer",
            "KEYCLOAK_SERVICE_ACCOUNT_FILE": file,
        },
    ):
        config = PravegaConfig.from_env(environment)
        assert (config.keycloak_file, config.authorization) == (file, None)
    assert PravegaConfig.from_env({"KEYCLOAK_SERVICE_ACCOUNT_FILE": file}).keycloak_file is None
    assert PravegaConfig.from_properties({"pravega.client.auth.keycloak": file}) == config
    assert pickle.loads(pickle.dumps(config)) == config
    # Explicit credentials replace the environment's as a whole.
    named = PravegaConfig.resolve(environment=environment, username="ann", password="secret")
    assert named == PravegaConfig(username="ann", password="secret")
    known = {"pravega_client_auth_method": "Basic", "pravega_client_auth_token": "old"}
    assert PravegaConfig.resolve(environment=known, keycloak_file=file) == config
    assert config.with_token("new") == PravegaConfig(token="new")
    with pytest.raises(ConfigError, match="set twice, as keycloak_file"):
        PravegaConfig(keycloak_file=file, token="x")


def test_the_file_is_an_option_of_spark(tmp_path, monkeypatch):
    monkeypatch.setenv("pravega_client_auth_method", "Basic")
    monkeypatch.setenv("pravega_client_auth_token", "old")
    config = PravegaConfig(keycloak_file=str(tmp_path / "keycloak.json"))
    options = parse_options(SourceOptions, config.options() | {"stream": "s/x"})
    assert options.config.keycloak_file == config.keycloak_file
    both = parse_options(SourceOptions, config.options() | {"stream": "s/x", "token": "t"})
    with pytest.raises(ConfigError, match="'token' and 'keycloak_file' both are credentials"):
        _ = both.config
