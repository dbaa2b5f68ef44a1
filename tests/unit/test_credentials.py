"""Credentials of a provider: one concept for the client and the registry's, renewed before they end."""

import asyncio
import itertools
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.controller.service import ControllerClient
from pravega_connector.errors import AuthenticationError, ConfigError, ControllerUnavailableError
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.testing import InProcessPravega, InProcessRegistry
from pravega_serde import (
    AsyncSchemaRegistryClient,
    Credential,
    CredentialError,
    CredentialUnavailableError,
    RegistryAuthenticationError,
    RegistryUnavailableError,
    SchemaRegistryClient,
    SerdeError,
)
from pravega_serde.kept_credentials import KeptCredential
from pravega_serde.registry import RegistryConfig


class Issuer:
    """A provider of numbered tokens that end, and the servers' check of them."""

    def __init__(self, life: float | None = 300.0) -> None:
        self.life = life
        self.ends: dict[str, float] = {}
        self.refused = 0
        self._numbers = itertools.count(1)

    def __call__(self) -> Credential:
        credential = Credential(f"token{next(self._numbers)}", expires_in=self.life)
        self.ends[credential.authorization] = time.monotonic() + (self.life or 300.0)
        return credential

    def accepts(self, authorization: str | None) -> bool:
        accepted = time.monotonic() < self.ends.get(authorization or "", 0.0)
        self.refused += not accepted
        return accepted


#: The provider that options name, of the test that is running.
issuer = Issuer()
made: list[object] = []


def named() -> Credential:
    """Return the credential of the running test's issuer."""
    return issuer()


class OfAClass:
    """A provider whose class is named."""

    def __init__(self) -> None:
        made.append(self)

    def __call__(self) -> Credential:
        return issuer()


class Broken:
    """A provider that cannot be created."""

    def __init__(self) -> None:
        raise ValueError("hunter2")

    def __call__(self) -> str:
        return ""


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Issuer:
    found = Issuer()
    monkeypatch.setitem(globals(), "issuer", found)
    return found


def _accepts(authorization: str | None) -> bool:
    return issuer.accepts(authorization)


@pytest.fixture
def pravega() -> Iterator[InProcessPravega]:
    with InProcessPravega(accepts=_accepts) as server:
        yield server


@pytest.fixture
def registry() -> Iterator[InProcessRegistry]:
    with InProcessRegistry(accepts=_accepts) as server:
        yield server


def client_of(pravega: InProcessPravega, provider: Any, **settings: Any) -> PravegaClient:
    return PravegaClient(pravega.config.with_credential_provider(provider), **settings)


def test_clients_outlive_many_tokens(pravega, registry):
    found = issuer
    found.life = 1.5
    with client_of(pravega, found) as client, SchemaRegistryClient(registry.uri, credential_provider=found) as schemas:
        client.create_stream("s/x")
        count = 0
        while len(found.ends) < 4:
            client.write("s/x", str(count), "string")
            assert client.scope_exists("s")
            assert list(schemas.groups()) == []
            count += 1
        assert len(list(client.read("s/x"))) == count


def test_asyncio_clients_use_the_same_providers(pravega, registry):
    found = issuer

    async def main() -> None:
        config = pravega.config.with_credential_provider(found)
        schemas = AsyncSchemaRegistryClient(registry.uri, credential_provider=found)
        async with AsyncPravegaClient(config) as client, schemas:
            await client.create_stream("s/x")
            assert await client.scope_exists("s")
            assert [group async for group in schemas.groups()] == []

    asyncio.run(main())
    assert (len(found.ends), found.refused) == (2, 0)


@pytest.mark.parametrize("name", ["named", "OfAClass"])
def test_a_name_is_shared_by_the_process(pravega, registry, name):
    made.clear()
    place = f"{__name__}:{name}"
    for _ in range(2):
        with client_of(pravega, place) as client, SchemaRegistryClient(registry.uri, credential_provider=place) as each:
            client.create_scope("s")
            assert list(each.groups()) == []
    assert len(made) <= 1


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of credentials, which a test advances. A call waits as long as a renewal takes."""
    found = [1000.0]
    monkeypatch.setattr("pravega_serde.kept_credentials.time.monotonic", lambda: found[0])
    monkeypatch.setattr("pravega_serde.kept_credentials._RENEWAL_WAIT", 60.0)
    return found


def test_a_credential_is_kept_until_it_is_to_be_renewed(now):
    lives = iter([(300.0, 60.0), (20.0, 60.0), (300.0, 1.0), (300.0, 1.0)])
    numbers = itertools.count(1)

    def provider() -> Credential:
        life, spare = next(lives)
        return Credential(f"t{next(numbers)}", expires_in=life, renew_before=spare)

    kept = KeptCredential(provider)
    for seconds, expected in (
        *((0.0, "t1"), (239.0, "t1")),
        # Half of a short life.
        *((2.0, "t2"), (9.0, "t2")),
        *((2.0, "t3"), (298.0, "t3"), (2.0, "t4")),
    ):
        now[0] += seconds
        assert kept.authorization(10) == f"Bearer {expected}"


def test_a_failed_renewal_leaves_the_current_credential_until_its_end(now, caplog):
    answers: list[Any] = [Credential("t1", expires_in=300), ConnectionRefusedError(111, "Connection refused")]
    answers += [ValueError("hunter2"), CredentialError("the vault is sealed")] * 2 + [Credential("t2", expires_in=300)]
    left = iter(answers)

    def provider() -> Credential:
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    kept = KeptCredential(provider)
    for seconds in (0.0, 241.0, 4.0, 2.0, 6.0, 40.0):  # the pauses of 5 s hold between the failures
        now[0] += seconds
        assert kept.authorization(10) == "Bearer t1"
    assert [record.getMessage().rpartition("; ")[2] for record in caplog.records] == [
        f"the current credential is used, which is valid for {seconds} s" for seconds in (59, 53, 47, 7)
    ]
    assert "failed with ConnectionRefusedError (Connection refused)" in caplog.text
    assert "hunter2" not in caplog.text
    now[0] += 8.0
    with pytest.raises(CredentialError, match="the vault is sealed"):
        kept.authorization(10)
    assert kept.authorization(10) == "Bearer t2"


def test_a_slow_renewal_delays_no_call(now, monkeypatch, eventually):
    monkeypatch.setattr("pravega_serde.kept_credentials._RENEWAL_WAIT", 0.0)
    go = threading.Event()
    names = iter(["t1", "t2"])

    def provider() -> Credential:
        name = next(names)
        assert name == "t1" or go.wait(120)
        return Credential(name, expires_in=300)

    kept = KeptCredential(provider)
    assert kept.authorization(30) == "Bearer t1"
    now[0] += 241.0
    assert [kept.authorization(30) for _ in range(3)] == ["Bearer t1"] * 3
    go.set()
    eventually(lambda: kept.authorization(30) == "Bearer t2")


def test_without_a_known_life_the_provider_is_called_for_each_call(pravega):
    found = issuer
    found.life = None
    with client_of(pravega, found) as client:
        for _ in range(3):
            client.create_scope("s")
    assert (len(found.ends), found.refused) == (3, 0)


def test_threads_wait_for_one_call():
    begun, go = threading.Event(), threading.Event()
    calls: list[int] = []

    def provider() -> Credential:
        calls.append(1)
        begun.set()
        assert go.wait(120)
        return Credential("t", expires_in=300)

    kept = KeptCredential(provider)
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(kept.authorization(30))) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert begun.wait(120)
    # A caller with less patience does not wait for it.
    with pytest.raises(CredentialUnavailableError, match=r"returned no credential within 0\.05 s"):
        kept.authorization(0.05)
    go.set()
    for thread in threads:
        thread.join(30)
    assert (found, len(calls)) == (["Bearer t"] * 8, 1)


@pytest.mark.parametrize("server", ["pravega", "registry"])
def test_threads_that_are_refused_renew_with_one_call(pravega, registry, server):
    found = issuer
    accepts, refused = found.accepts, threading.Barrier(4)

    def all_at_once(authorization: str | None) -> bool:
        accepted = accepts(authorization)
        if not accepted:
            refused.wait(60)
        return accepted

    with client_of(pravega, found) as client, SchemaRegistryClient(registry.uri, credential_provider=found) as schemas:
        call = {"pravega": lambda: client.scope_exists("s"), "registry": lambda: list(schemas.groups())}[server]
        call()
        found.ends.clear()  # all tokens are revoked
        found.accepts = all_at_once  # type: ignore[method-assign]
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda _: call(), range(4)))
    assert (len(found.ends), found.refused) == (1, 4)


def test_threads_renew_with_one_call():
    found = issuer
    kept = KeptCredential(found)
    with ThreadPoolExecutor(8) as threads:
        for number in range(1, 50):
            assert set(threads.map(lambda _: kept.authorization(60), range(8))) == {f"Bearer token{number}"}
            kept.forget(f"Bearer token{number}")


def test_a_refused_credential_is_replaced_once(pravega, registry):
    found = issuer
    with client_of(pravega, found) as client, SchemaRegistryClient(registry.uri, credential_provider=found) as schemas:
        client.create_scope("s")
        assert list(schemas.groups()) == []
        found.ends.clear()  # all tokens are revoked
        client.create_scope("t")
        assert list(schemas.groups()) == []
        assert found.refused == 2
        found.accepts = lambda _: False  # type: ignore[method-assign]
        with pytest.raises(AuthenticationError, match="refuses the credentials"):
            client.create_scope("u")
        with pytest.raises(RegistryAuthenticationError, match="status 401"):
            list(schemas.groups())


class VaultError(CredentialError):
    """An error of the application with other arguments."""

    def __init__(self, code: int, path: str) -> None:
        super().__init__(f"the vault has no {path} ({code})")


def sealed() -> Credential:
    raise VaultError(7, "shop")


def refused() -> Credential:
    raise CredentialError("the vault refuses the job 'billing'")


FAILING: list[tuple[Any, str]] = [
    (lambda: int("hunter2"), "failed with ValueError: call it in a separate program to see the error"),
    (lambda: b"hunter2", "returned a bytes, not a Credential or a str"),
    (lambda: "hunter2\n", "the token of a credential begins or ends with a blank or a line end"),
    (refused, "the vault refuses the job 'billing'"),
    (sealed, "the vault has no shop (7)"),
]


@pytest.mark.parametrize(("provider", "said"), FAILING)
def test_a_provider_that_fails_is_named_without_its_text(pravega, registry, provider, said):
    with client_of(pravega, provider) as client, pytest.raises(AuthenticationError) as caught:
        client.create_scope("s")
    assert said in caught.value.message
    with (
        SchemaRegistryClient(registry.uri, credential_provider=provider) as schemas,
        pytest.raises(RegistryAuthenticationError) as refusal,
    ):
        list(schemas.groups())
    assert "cannot list the groups: " in refusal.value.message
    assert said in refusal.value.message
    for error in (caught.value, refusal.value):
        assert "hunter2" not in str(error)
        assert error.__cause__ is None
        assert error.__suppress_context__
    assert pravega.controller.calls["createScope"] == 0


def test_a_provider_that_is_unavailable_is_called_again(pravega, registry):
    found = issuer
    away = iter(
        [ConnectionRefusedError(111, "Connection refused"), CredentialUnavailableError("the vault restarts")] * 2
    )

    def provider() -> Credential:
        error = next(away, None)
        if error is not None:
            raise error
        return found()

    with client_of(pravega, provider) as client:
        client.create_scope("s")
    with SchemaRegistryClient(registry.uri, credential_provider=provider) as schemas:
        assert list(schemas.groups()) == []
    assert next(away, None) is None

    def never() -> Credential:
        raise ConnectionRefusedError(111, "Connection refused")

    with client_of(pravega, never, timeout=0.5) as client, pytest.raises(ControllerUnavailableError) as caught:
        client.create_scope("s")
    assert "failed with ConnectionRefusedError (Connection refused)" in caught.value.message
    with (
        SchemaRegistryClient(registry.uri, credential_provider=never, timeout=0.5) as schemas,
        pytest.raises(RegistryUnavailableError) as late,
    ):
        list(schemas.groups())
    assert "failed with ConnectionRefusedError (Connection refused)" in late.value.message
    assert "check that the schema registry" not in late.value.message


def test_a_provider_that_hangs_ends_with_the_timeout(pravega, registry):
    go = threading.Event()

    def hanging() -> str:
        go.wait(60)
        return "t"

    try:
        with client_of(pravega, hanging, timeout=0.5) as client, pytest.raises(ControllerUnavailableError) as caught:
            client.create_scope("s")
        with (
            SchemaRegistryClient(registry.uri, credential_provider=hanging, timeout=0.5) as schemas,
            pytest.raises(RegistryUnavailableError, match="returned no credential within"),
        ):
            list(schemas.groups())
    finally:
        go.set()
    assert "hanging returned no credential within" in caught.value.message


def test_a_lost_call_is_replaced_after_a_minute_then_after_two(now, eventually):
    go = threading.Event()
    ended: list[bool] = []

    def late() -> str:
        ended.append(go.wait(60))
        return "late"

    answers: Iterator[Callable[[], Any]] = iter([late, late, lambda: Credential("t3", expires_in=300)])
    calls: list[int] = []

    def provider() -> Any:
        calls.append(1)
        return next(answers)()

    kept = KeptCredential(provider)
    try:
        for seconds, expected in ((0.0, 1), (59.0, 1), (2.0, 2), (119.0, 2)):
            now[0] += seconds
            with pytest.raises(CredentialUnavailableError, match="returned no credential within"):
                kept.authorization(0.01)
            eventually(lambda expected=expected: len(calls) >= expected)
            assert len(calls) == expected
        now[0] += 2.0
        assert kept.authorization(30) == "Bearer t3"
    finally:
        go.set()
    # Results of the lost calls are not kept.
    eventually(lambda: len(ended) == 2)
    assert kept.authorization(30) == "Bearer t3"


UNUSABLE = {
    "nowhere_at_all:x": "cannot be imported: No module named 'nowhere_at_all'",
    f"{__name__}:absent": "cannot be imported: module .* has no attribute 'absent'",
    f"{__name__}:made": "is a list, not callable",
    f"{__name__}:Broken": "failed with ValueError: call it in a separate program",
}


@pytest.mark.parametrize(("name", "said"), UNUSABLE.items())
def test_a_name_that_is_not_a_provider_is_an_error_at_once(name, said):
    with pytest.raises(ConfigError, match=said) as caught:
        ControllerClient(PravegaConfig(credential_provider=name))
    assert "hunter2" not in str(caught.value)
    with pytest.raises(SerdeError, match=said):
        SchemaRegistryClient("http://127.0.0.1:1", credential_provider=name)


def test_a_provider_is_a_setting_like_the_others():
    place = f"{__name__}:named"
    config = PravegaConfig(credential_provider=place)
    assert PravegaConfig.from_env({"pravega_client_auth_provider": place}) == config
    assert (
        PravegaConfig.from_env({"pravega_client_auth_provider": place, "pravega_client_auth_method": "Bearer"})
        == config
    )
    assert PravegaConfig.from_properties({"pravega.client.auth.provider": place}) == config
    assert pickle.loads(pickle.dumps(config)) == config
    assert config.with_token("t") == PravegaConfig(token="t")
    assert PravegaConfig(token="t").with_credential_provider(place) == config
    assert config.with_keycloak("k.json").with_credentials("ann", "secret").credential_provider is None
    # A function has a hash, like any other key of a cache.
    assert hash(PravegaConfig(credential_provider=named)) is not None
    assert PravegaConfig(credential_provider=named) != PravegaConfig(credential_provider=refused)
    for more in ({"token": "t"}, {"keycloak_file": "k.json"}):
        with pytest.raises(ConfigError, match="set twice"):
            PravegaConfig(credential_provider=place, **more)
        with pytest.raises(SerdeError, match="set twice"):
            RegistryConfig(uri="http://h", credential_provider=place, **more)
    environment = {"PRAVEGA_REGISTRY_URI": "http://h", "PRAVEGA_REGISTRY_CREDENTIAL_PROVIDER": place}
    assert RegistryConfig.from_env(environment) == RegistryConfig(uri="http://h", credential_provider=place)
    environment |= {"PRAVEGA_REGISTRY_TOKEN": "t"}
    given = RegistryConfig.resolve(environment=environment, keycloak_file="k.json")
    assert given == RegistryConfig(uri="http://h", keycloak_file="k.json")


def test_spark_accepts_only_names(monkeypatch):
    place = f"{__name__}:named"
    monkeypatch.setenv("pravega_client_auth_method", "Basic")
    monkeypatch.setenv("pravega_client_auth_token", "old")
    config = PravegaConfig(credential_provider=place)
    options = parse_options(
        SourceOptions,
        config.options()
        | {"stream": "s/x", "registry": "http://h", "registry_credential_provider": place}
        | {"also_registry": "http://i", "also_group": "x", "also_registry_credential_provider": place},
    )
    assert options.config.credential_provider == place
    assert pickle.loads(pickle.dumps(options)).config == options.config
    assert options.registry_config(1.0).credential_provider == place
    (second,) = options.also_registries(1.0)
    assert second.credential_provider == place
    with pytest.raises(ConfigError, match=r"set its name, package\.module:name"):
        PravegaConfig(credential_provider=named).options()
    with pytest.raises(ConfigError, match="option 'credential_provider' is not a name"):
        parse_options(SourceOptions, {"stream": "s/x", "credential_provider": "named"})
    with pytest.raises(ConfigError, match="'token' and 'credential_provider' both are credentials"):
        _ = parse_options(SourceOptions, {"stream": "s/x", "token": "t", "credential_provider": place}).config


@pytest.mark.parametrize("life", [0.0, -1.0, float("nan")])
def test_a_life_that_is_none_is_refused(life):
    with pytest.raises(SerdeError, match="expires_in"):
        Credential("t", expires_in=life)


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_renewal_after_the_end_is_refused(seconds):
    with pytest.raises(SerdeError, match="renew_before"):
        Credential("t", expires_in=60, renew_before=seconds)
