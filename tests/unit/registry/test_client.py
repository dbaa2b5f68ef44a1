"""Settings, credentials, names and the two clients' likeness."""

import inspect
import logging
import pickle
import sys

import pytest

from pravega_serde.errors import (
    MissingExtraError,
    RegistryAuthenticationError,
    RegistryPermissionError,
    RegistryRequestError,
    SerdeError,
)
from pravega_serde.registry import (
    AsyncSchemaRegistryClient,
    Compatibility,
    CompatibilityRule,
    GroupProperties,
    RegistryConfig,
    SchemaInfo,
    SchemaRegistryClient,
    SerializationFormat,
    VersionInfo,
    clients,
    deserializer,
    shared_client,
)
from tests.unit.registry._scripted import scripted

SECRET = "s3cret-Zürich"
PROPERTIES = GroupProperties(SerializationFormat.AVRO, Compatibility.FULL)


def public(kind):
    return {name: member for name, member in inspect.getmembers(kind) if not name.startswith("_") and callable(member)}


def test_both_clients_have_the_same_methods():
    one, other = public(SchemaRegistryClient), public(AsyncSchemaRegistryClient)
    assert set(one) == set(other)
    assert len(one) == 22
    for name, method in one.items():
        parameters = [list(inspect.signature(found).parameters) for found in (method, other[name])]
        assert parameters[0] == parameters[1]
        assert inspect.iscoroutinefunction(other[name]) or inspect.isasyncgenfunction(other[name])
        assert method.__doc__
        assert other[name].__doc__


@pytest.mark.parametrize(
    ("credentials", "header"),
    [
        ({"username": "me", "password": SECRET}, "Basic bWU6czNjcmV0LVrDvHJpY2g="),
        ({"token": "s3cret"}, "Bearer s3cret"),
        ({}, None),
    ],
)
def test_credentials_are_sent_and_never_shown(connect, caplog, credentials, header):
    caplog.set_level(logging.DEBUG)
    with scripted((200, {"codecTypes": []}), (401, b""), (403, b"")) as registry:
        client = connect(registry.uri, **credentials)
        assert client.codecs("g") == []
        assert registry.requests[0].headers.get("Authorization") == header
        with pytest.raises(RegistryAuthenticationError, match="check username and password") as not_known:
            client.codecs("g")
        with pytest.raises(RegistryPermissionError, match="not permitted") as not_permitted:
            client.codecs("g")
    assert (not_known.value.status, not_permitted.value.status) == (401, 403)
    shown = repr(client.config) + repr(client) + repr(not_known.value) + str(not_permitted.value) + caplog.text
    assert "s3cret" not in shown
    assert "bWU6" not in shown


@pytest.mark.parametrize(
    ("group", "path"),
    [
        ("g%2F2 x", "g%252F2%20x"),
        ("a/b?c#d", "a%2Fb%3Fc%23d"),
        ("日本", "%E6%97%A5%E6%9C%AC"),
        ("a.b-c_d~", "a.b-c_d~"),
    ],
)
def test_names_are_encoded(connect, group, path):
    with scripted((200, {"codecTypes": []})) as registry:
        connect(registry.uri, namespace="n s&x=1").codecs(group)
    assert registry.requests[0].path == f"/v1/groups/{path}/codecTypes?namespace=n+s%26x%3D1"


@pytest.mark.parametrize("group", ["", ".", ".."])
def test_names_that_cannot_be_in_a_path(connect, group):
    with pytest.raises(RegistryRequestError, match="choose another"):
        connect("http://127.0.0.1:1").codecs(group)


def test_pages_until_an_empty_one(connect):
    def page(*names, token):
        return 200, {"groups": {name: PROPERTIES.to_json() for name in names}, "continuationToken": token}

    with scripted(page("a", "b", token="x y"), page("c", token="z"), page(token="z")) as registry:
        groups = list(connect(registry.uri).groups("ns"))
    assert groups == [("a", PROPERTIES), ("b", PROPERTIES), ("c", PROPERTIES)]
    assert [request.path for request in registry.requests] == [
        "/v1/groups?limit=100&namespace=ns",
        "/v1/groups?limit=100&continuationToken=x+y&namespace=ns",
        "/v1/groups?limit=100&continuationToken=z&namespace=ns",
    ]


def test_validate_sends_the_groups_own_policy(connect):
    with scripted((200, PROPERTIES.to_json()), (200, {"valid": True})) as registry:
        schema = SchemaInfo("t", SerializationFormat.AVRO, b"{}")
        assert connect(registry.uri).validate("g", schema) is True
    assert b'"compatibility": {"policy": "Full"}' in registry.requests[1].body


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"uri": "localhost:9092"}, "; write http://host:9092"),
        ({"uri": "tcp://localhost:9092"}, "; write http://host:9092"),
        ({"uri": "http://"}, "; write http://host:9092"),
        ({"uri": "http://host:99999"}, "; write http://host:9092"),
        ({"uri": "http://[::1"}, "; write http://host:9092"),
        ({"uri": f"http://me:{SECRET}@host"}, "set username and password"),
        ({"username": "me"}, "both username and password"),
        ({"username": "me", "password": "x", "token": "y"}, "set twice"),
        ({"timeout": 0}, "must be positive"),
        ({"cache_entries": 0}, "must be positive"),
    ],
)
def test_settings_that_cannot_be_right(settings, message):
    with pytest.raises(SerdeError, match=message) as caught:
        SchemaRegistryClient(**{"uri": "http://host:9092", **settings})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("kind", [SchemaRegistryClient, AsyncSchemaRegistryClient])
def test_a_client_made_of_something_else_says_what_to_write(kind):
    with pytest.raises(SerdeError, match=rf"not a dict: write {kind.__name__}\('http://host:9092'\)"):
        kind({"url": "http://localhost:9092"})


def test_a_serializer_made_of_a_client_says_what_to_write():
    with pytest.raises(SerdeError, match=r"not a SchemaRegistryClient; for a client, pass client\.config"):
        deserializer(SchemaRegistryClient("http://localhost:1"), group="orders")


def test_a_method_of_other_registries_clients_is_named():
    client = SchemaRegistryClient("http://localhost:1")
    with pytest.raises(AttributeError, match=r"has no 'register_schema': write add_schema\(group") as caught:
        client.register_schema("orders", "{}")
    assert caught.value.obj is None  # so the interpreter does not add that delete_schema may be meant
    with pytest.raises(AttributeError, match="SchemaRegistryClient has no 'add_shema': did you mean 'add_schema'"):
        client.add_shema("orders")
    with pytest.raises(AttributeError, match=r"AsyncSchemaRegistryClient has no 'getSubjects': write groups\(\)"):
        _ = AsyncSchemaRegistryClient("http://localhost:1").getSubjects
    assert not hasattr(client, "__array__")


def test_what_is_meant_exists():
    for name, hint in clients._MEANT.items():
        assert not hasattr(SchemaRegistryClient, name)
        assert hasattr(SchemaRegistryClient, hint.removeprefix("write ").partition("(")[0]), hint


def test_a_file_without_certificates(tmp_path):
    path = tmp_path / "ca.pem"
    with pytest.raises(SerdeError, match="has no certificates"):
        SchemaRegistryClient("https://host", ca_file=str(path))
    path.write_text("nothing")
    with pytest.raises(SerdeError, match="has no certificates"):
        SchemaRegistryClient("https://host", ca_file=str(path))


def test_settings_from_the_environment():
    found = {
        "PRAVEGA_REGISTRY_URI": "https://host:1",
        "PRAVEGA_REGISTRY_NAMESPACE": "ns",
        "PRAVEGA_REGISTRY_USERNAME": "me",
        "PRAVEGA_REGISTRY_PASSWORD": SECRET,
        "PRAVEGA_REGISTRY_TOKEN": "",
        "PRAVEGA_REGISTRY_CA_FILE": "/ca.pem",
        "PRAVEGA_REGISTRY_CA_PASSWORD": "changeit",
    }
    assert RegistryConfig.from_env(found) == RegistryConfig(
        uri="https://host:1", namespace="ns", username="me", password=SECRET, ca_file="/ca.pem", ca_password="changeit"
    )
    with pytest.raises(SerdeError, match="set PRAVEGA_REGISTRY_URI"):
        RegistryConfig.from_env({})


def test_one_client_for_each_configuration_and_process():
    config = RegistryConfig(uri="http://127.0.0.1:1", username="me", password=SECRET)
    again = pickle.loads(pickle.dumps(config))
    assert shared_client(config) is shared_client(again)
    assert shared_client(config) is not shared_client(RegistryConfig(uri="http://127.0.0.1:2"))
    assert shared_client(config).config == config


def test_without_httpx2(monkeypatch):
    monkeypatch.delitem(sys.modules, "pravega_serde.registry.http", raising=False)
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pravega-serde\[registry\]'"):
        SchemaRegistryClient("http://host")


def test_advanced_policies_have_two_directions():
    till = CompatibilityRule("BackwardTill", VersionInfo("t", "Avro", 0, 0))
    policy = Compatibility.advanced(backward=till, forward=CompatibilityRule("Forward"))
    assert Compatibility.from_json(policy.to_json()) == policy
    assert policy.to_json()["advanced"]["forwardPolicy"] == {"forwardPolicy": {"name": "Forward"}}
    assert Compatibility.from_json(Compatibility.advanced(backward=till).to_json()).forward is None
