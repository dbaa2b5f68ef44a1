"""Secrets: no error, no representation and no log shows one, in any failure of its holder."""

import json
import logging
import math
import traceback
from base64 import b64encode, urlsafe_b64encode
from functools import partial

import pytest

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.controller.service import ControllerClient
from pravega_connector.local.download import Repository
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.stores import segment_stores
from pravega_serde import Credential, KeycloakProvider, SchemaRegistryClient
from pravega_serde.errors import PravegaError
from pravega_serde.kept_credentials import KeptCredential
from pravega_serde.keycloak import ServiceAccount
from pravega_serde.profiles import load_profile
from pravega_serde.registry import RegistryConfig

SECRET = "hunter2"
#: A secret as people have it by mistake -> part of what is said of it.
BAD = {
    f"{SECRET}\n": "begins or ends with a blank or a line end",
    f" {SECRET}": "begins or ends with a blank or a line end",
    f"{SECRET}ü": "has characters that a header cannot contain",
    f"{SECRET}\r\nx: y": "has characters that a header cannot contain",
    f"{SECRET}\0": "has characters that a header cannot contain",
}
NO_UTF8 = f"{SECRET}\udcfc"
WRONG = {
    "a client of a mapping": lambda _: PravegaClient({"password": SECRET}),
    "a client of a list": lambda _: PravegaClient([SECRET]),
    "an asyncio client of a mapping": lambda _: AsyncPravegaClient({"password": SECRET}),
    "a client of a mapping by name": lambda _: PravegaClient(controller={"password": SECRET}),
    "a URI with a user": lambda _: PravegaClient(f"tcp://ann:{SECRET}@host:9090"),
    "a URI without a scheme's colon": lambda _: PravegaClient(f"tcp//ann:{SECRET}@host"),
    "a URI of nothing but the user": lambda _: PravegaClient(f"ann:{SECRET}@"),
    "a password without a user": lambda _: PravegaConfig(password=SECRET),
    "a password that is no UTF-8": lambda _: PravegaConfig(username="ann", password=NO_UTF8),
    "a password in a list": lambda _: PravegaConfig(username="ann", password=[SECRET]),
    "a user and a token": lambda _: PravegaConfig(username="ann", password=SECRET, token=SECRET),
    "a token of bytes": lambda _: PravegaConfig(token=SECRET.encode()),
    "a token without a method": lambda _: PravegaConfig(auth_token=SECRET),
    "a token twice": lambda _: PravegaConfig(token=SECRET, auth_method="Basic", auth_token=SECRET),
    "a token and a file": lambda _: PravegaConfig(token=SECRET, keycloak_file="k"),
    "an unknown setting": lambda _: PravegaConfig.resolve(pasword=SECRET),
    "a token in the environment": lambda _: PravegaConfig.from_env({"pravega_client_auth_token": SECRET}),
    "a token in properties": lambda _: PravegaConfig.from_properties({"pravega.client.auth.token": SECRET}),
    "options with a token and a user": lambda _: options(SourceOptions, token=SECRET, username="ann", password=SECRET),
    "a sink's with an unknown one": lambda _: options(SinkOptions, passwrd=SECRET),
    "a source's with a bad token": lambda _: options(SourceOptions, token=f"{SECRET}\n").config,
    "a profile with a number": lambda folder: profile(folder, f'password = ["{SECRET}"]'),
    "a profile with a typing error": lambda folder: profile(folder, f'pasword = "{SECRET}"'),
    "a profile that is no TOML": lambda folder: profile(folder, f'password = "{SECRET}'),
    "a profile's registry without a user": lambda folder: profile(folder, f'registry_pasword = "{SECRET}"'),
    "a file of Keycloak": lambda folder: keycloak(folder, **{"auth-server-url": f"https://ann:{SECRET}@host"}),
    "a file of Keycloak without a realm": lambda folder: keycloak(folder, realm=None),
    "a provider of a mapping": lambda _: PravegaConfig(credential_provider={"password": SECRET}),
    "a provider that is a token": lambda _: PravegaConfig(credential_provider=SECRET),
    "a provider and a token": lambda _: PravegaConfig(credential_provider="a:b", token=SECRET),
    "a registry's provider of a mapping": lambda _: RegistryConfig(uri="http://h", credential_provider={"a": SECRET}),
    "a registry's provider that is a token": lambda _: RegistryConfig(uri="http://h", credential_provider=SECRET),
    "a registry's provider and token": lambda _: RegistryConfig(
        uri="http://h", credential_provider="a:b", token=SECRET
    ),
    "an option that is a token": lambda _: options(SourceOptions, credential_provider=SECRET),
    "a credential with a line end": lambda _: Credential(f"{SECRET}\n"),
    "a credential of bytes": lambda _: Credential(SECRET.encode()),
    "a credential of another method": lambda _: Credential("x", f"{SECRET}\n"),
    "a credential's password in no UTF-8": lambda _: Credential.basic("ann", NO_UTF8),
    "a provider that fails": lambda _: KeptCredential(partial(int, SECRET)).authorization(10),
    "a provider that cannot connect": lambda _: KeptCredential(partial(open, SECRET)).authorization(10),
    "a provider that returns bytes": lambda _: KeptCredential(SECRET.encode).authorization(10),
    "a provider that returns a line": lambda _: KeptCredential(lambda: f"{SECRET}\n").authorization(10),
    "a repository of jars": lambda _: Repository(f"htp://ann:{SECRET}@host/", 1),
    **{
        f"a registry at {form.format('…')}": lambda _, form=form: SchemaRegistryClient(form.format(SECRET))
        for form in (
            "http//ann:{}@host",
            "http:/ann:{}@host/",
            "http:ann:{}@host",
            "ann:{}@host:9092",
            "htp://ann:{}@host:9092",
            "http://ann:{}@",
            "http://ann:{}@host:x",
            "http://ann:{}@ho st",
            "http://ann:{}@[::1",
        )
    },
    "a registry of a mapping": lambda _: SchemaRegistryClient(RegistryConfig(uri={"password": SECRET})),
    "a registry with a query": lambda _: RegistryConfig(uri=f"confluent+http://h:1/?token={SECRET}"),
    "a registry with a fragment": lambda _: RegistryConfig(uri=f"http://h:1#{SECRET}"),
    "a controller with a query": lambda _: PravegaConfig(controller=f"tcp://h:1/?token={SECRET}"),
    "a registry's password alone": lambda _: RegistryConfig(uri="http://h", password=SECRET),
    "a registry's user and token": lambda _: RegistryConfig(
        uri="http://h", username="a", password=SECRET, token=SECRET
    ),
    "a registry's password in no UTF-8": lambda _: RegistryConfig(uri="http://h", username="a", password=NO_UTF8),
    "a registry's token of bytes": lambda _: RegistryConfig(uri="http://h", token=SECRET.encode()),
}


def options(kind, **given):
    return parse_options(kind, {"stream": "s/x", **given}).config


def profile(folder, line):
    file = folder / "pravega-serde" / "config.toml"
    file.parent.mkdir()
    file.write_text(f"[one]\n{line}\n")
    return load_profile("one", {"XDG_CONFIG_HOME": str(folder)})


def keycloak(folder, **changes):
    told = {"realm": "r", "auth-server-url": "http://127.0.0.1:1", "resource": "c", "credentials": {"secret": SECRET}}
    path = folder / "keycloak.json"
    path.write_text(json.dumps(told | changes))
    return KeycloakProvider(str(path))


def shown(error):
    """All that a log or a notebook shows of an error, and what it was made of."""
    texts, each = [], error
    while each is not None:
        texts += [str(each), repr(each), *map(repr, each.args)]
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    frames = traceback.TracebackException.from_exception(error)
    return "\n".join([*texts, *(line for line in frames.format_exception_only())])


def hidden(text):
    return SECRET not in text and b64encode(SECRET.encode()).decode().rstrip("=") not in text


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_no_error_shows_a_secret(call, tmp_path, caplog):
    with caplog.at_level(logging.DEBUG), pytest.raises(PravegaError) as caught:
        call(tmp_path)
    assert hidden(shown(caught.value))
    assert hidden(caplog.text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("secret", "said"), BAD.items(), ids=["line end", "blank", "umlaut", "header", "NUL"])
def test_a_token_that_no_header_carries_is_refused_at_once(secret, said):
    for make in (
        lambda: PravegaConfig(token=secret),
        lambda: PravegaConfig(auth_method="Custom", auth_token=secret),
        lambda: PravegaConfig(auth_method=secret, auth_token="x"),
        lambda: PravegaConfig().with_token(secret),
        lambda: PravegaClient("tcp://127.0.0.1:1", token=secret),
        lambda: RegistryConfig(uri="http://h", token=secret),
    ):
        with pytest.raises(PravegaError, match=said) as caught:
            make()
        assert hidden(shown(caught.value))


def test_passwords_may_have_any_character():
    odd = " ü€\n"
    assert PravegaConfig(username="ann", password=odd).authorization is not None
    assert RegistryConfig(uri="http://h", username="ann", password=odd).authorization is not None


def test_no_representation_shows_a_secret(tmp_path):
    keycloak(tmp_path)
    file = str(tmp_path / "keycloak.json")
    basic = PravegaConfig(controller="tcp://127.0.0.1:1", username="ann", password=SECRET)
    bearer = basic.with_token(SECRET)
    with PravegaClient(basic) as client, ControllerClient(bearer) as controller:
        registry = RegistryConfig(uri="http://h", username="ann", password=SECRET)
        for each in (
            basic,
            bearer,
            client,
            controller,
            client.stores,
            AsyncPravegaClient(bearer),
            ServiceAccount.read(file),
            KeycloakProvider(file),
            Credential(SECRET),
            Credential.basic("ann", SECRET),
            KeptCredential(partial(str, SECRET)),
            PravegaConfig(credential_provider=partial(str, SECRET)),
            RegistryConfig(uri="http://h", credential_provider=partial(str, SECRET)),
            registry,
            RegistryConfig(uri="http://h", token=SECRET),
            SchemaRegistryClient(registry),
            parse_options(SourceOptions, {"stream": "s/x", "token": SECRET}),
            parse_options(SinkOptions, {"stream": "s/x", "username": "ann", "password": SECRET}),
            profile(tmp_path, f'username = "ann"\npassword = "{SECRET}"'),
        ):
            assert hidden(repr(each) + str(each)), type(each)


@pytest.mark.parametrize("host", ["a..b", ".a", "a.", "-", "a" * 64, f"b.{'a' * 64}.c", "a..b:9090,c"])
def test_a_host_that_no_name_service_knows_is_refused_at_once(host):
    if host in ("a.", "-"):  # the root's dot is valid; what is odd, the name service may know
        assert PravegaConfig(controller=host).endpoints == [(host, 9090)]
        return
    with pytest.raises(PravegaError, match="has no valid host and port in"):
        PravegaClient(f"tcp://{host}")


@pytest.mark.parametrize("claims", ["[" * 100_000, '{"exp": 1' + "0" * 400 + "}", '{"exp": NaN}', '{"exp": []}', "5"])
def test_a_delegation_token_that_says_no_time_is_used_until_it_is_refused(claims):
    assert segment_stores._token_end(f"x.{urlsafe_b64encode(claims.encode()).decode().rstrip('=')}.x") == math.inf
