"""Profiles of the user's file: what they hold, what rules over them, what is said of mistakes."""

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError
from pravega_connector.rows.options import CommonOptions, parse_options
from pravega_serde.errors import SerdeError
from pravega_serde.profiles import load_profile, named, profile_names
from pravega_serde.registry import RegistryConfig, SchemaRegistryClient

Write = Callable[..., Path]
SECRET = "hunter2"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """``write(text)``: the user's file, which only the user may read."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("PRAVEGA_", "pravega_"))]:
        monkeypatch.delenv(name)

    def write(text: str, mode: int = 0o600) -> Path:
        file = tmp_path / "pravega-serde" / "config.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    return write


def test_a_profile_rules_over_the_environment_if_it_is_named(write: Write, monkeypatch: pytest.MonkeyPatch):
    write('[a]\ncontroller = "tls://a:1"\nscope = "s"\ntls_validate_hostname = false\n[b]\nscope = "t"\n')
    assert profile_names() == ["a", "b"]
    assert PravegaConfig.resolve() == PravegaConfig()
    found = PravegaConfig.resolve(profile="a")
    assert found == PravegaConfig(controller="tls://a:1", scope="s", tls_validate_hostname=False)
    monkeypatch.setenv("PRAVEGA_PROFILE", "b")
    assert PravegaConfig.resolve().scope == "t"
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", "tcp://env:1")
    assert PravegaConfig.resolve().controller == "tcp://env:1"
    monkeypatch.setenv("PRAVEGA_PROFILE", "a")
    assert PravegaConfig.resolve() == replace(found, controller="tcp://env:1"), "the environment's own profile"
    monkeypatch.setenv("PRAVEGA_SCOPE", "e")
    assert PravegaConfig.resolve(profile="a") == found, "a named one rules over the environment"
    assert PravegaConfig.resolve(profile="b") == PravegaConfig(controller="tcp://env:1", scope="t")
    assert PravegaConfig.resolve(profile="a", properties={"pravega.scope": "p"}).scope == "p"
    assert PravegaConfig.resolve(profile="a", scope="explicit").scope == "explicit"
    assert PravegaConfig.from_env() == PravegaConfig(controller="tcp://env:1", scope="e"), "the environment alone"


def test_credentials_are_one_setting_and_not_shown(write: Write, monkeypatch: pytest.MonkeyPatch):
    write(f'[a]\nusername = "u"\npassword = "{SECRET}"\n')
    assert PravegaConfig.resolve(profile="a") == PravegaConfig().with_credentials("u", SECRET)
    assert SECRET not in repr(load_profile("a"))
    monkeypatch.setenv("pravega_client_auth_method", "Bearer")
    monkeypatch.setenv("pravega_client_auth_token", "t")
    assert PravegaConfig.resolve(profile="a") == PravegaConfig().with_credentials("u", SECRET)
    monkeypatch.setenv("PRAVEGA_PROFILE", "a")
    assert PravegaConfig.resolve() == PravegaConfig().with_token("t")


def test_settings_of_the_registry(write: Write, monkeypatch: pytest.MonkeyPatch):
    write('[a]\nregistry = "http://a:1"\nregistry_token = "t"\nregistry_namespace = "n"\n')
    options = parse_options(CommonOptions, {"path": "s/t", "group": "g"})
    monkeypatch.setenv("PRAVEGA_PROFILE", "a")
    found = options.registry_config(1.0)
    assert (found.uri, found.namespace, found.token) == ("http://a:1", "n", "t")
    monkeypatch.setenv("PRAVEGA_REGISTRY_USERNAME", "u")
    monkeypatch.setenv("PRAVEGA_REGISTRY_PASSWORD", "p")
    monkeypatch.setenv("PRAVEGA_REGISTRY_URI", "http://env:1")
    found = options.registry_config(1.0)
    assert (found.uri, found.namespace, found.username, found.token) == ("http://env:1", "n", "u", None)
    assert RegistryConfig.resolve() == RegistryConfig(uri="http://env:1", namespace="n", username="u", password="p")
    assert RegistryConfig.resolve(uri="http://b:1", token="x").token == "x", "the credentials are one setting"
    assert RegistryConfig.resolve(profile="a") == RegistryConfig(uri="http://a:1", namespace="n", token="t")


def test_a_block_names_the_profile_for_all_in_it(write: Write, monkeypatch: pytest.MonkeyPatch):
    write('[a]\ncontroller = "tcp://a:1"\nregistry = "http://a:1"\n[b]\ncontroller = "tcp://b:1"\n')
    monkeypatch.setenv("PRAVEGA_PROFILE", "b")
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", "tcp://env:1")
    with named("a"):
        assert PravegaConfig.resolve().controller == "tcp://a:1"
        assert SchemaRegistryClient().config.uri == "http://a:1"
        assert PravegaConfig.resolve(profile="b").controller == "tcp://b:1"
    assert PravegaConfig.resolve().controller == "tcp://env:1"


def test_a_registrys_client_without_arguments(write: Write, monkeypatch: pytest.MonkeyPatch):
    """As a PravegaClient(): of the environment, then of the profile that it names."""
    write('[a]\nregistry = "http://a:1"\nregistry_token = "t"\nregistry_namespace = "n"\n')
    with pytest.raises(
        SerdeError, match=r"pass it \(--registry\), such as http://localhost:9092, or set PRAVEGA_REGISTRY_URI"
    ):
        SchemaRegistryClient()
    monkeypatch.setenv("PRAVEGA_PROFILE", "a")
    assert SchemaRegistryClient().config == RegistryConfig(uri="http://a:1", token="t", namespace="n")
    monkeypatch.setenv("PRAVEGA_REGISTRY_URI", "http://env:1")
    assert SchemaRegistryClient(namespace="m", timeout=5).config == RegistryConfig(
        uri="http://env:1", token="t", namespace="m", timeout=5
    )
    assert SchemaRegistryClient("http://b:1").config == RegistryConfig(uri="http://b:1")
    monkeypatch.setenv("PRAVEGA_PROFILE", "b")
    with pytest.raises(SerdeError, match="profile 'b' does not exist"):
        SchemaRegistryClient()


def test_secrets_that_others_may_read_are_a_warning_once(write: Write, caplog: pytest.LogCaptureFixture):
    file = write('[a]\nscope = "s"\n[b]\nauth_method = "Bearer"\nauth_token = "t"\n', 0o644)
    with caplog.at_level(logging.WARNING):
        load_profile("a")
        assert caplog.messages == []
        load_profile("b")
        load_profile("b")
    assert caplog.messages == [f"{file} contains secrets and other users can read it: run chmod 600 {file}"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"profile 'staging' does not exist in .*config.toml: write the file, with a table \[staging\]"),
        ("[stagin]\n", "profile 'staging' does not exist .*; did you mean 'stagin'"),
        ('[staging]\ncontroler = "tcp://a:1"\n', "unknown setting 'controler'; did you mean 'controller'"),
        ("[staging]\nqqq = 1\n", "unknown setting 'qqq'; known settings: controller, scope"),
        ("[staging]\nscope = 1\n", "scope in profile 'staging' .* must be text in quotes"),
        ('[staging]\ntls_validate_hostname = "no"\n', "must be true or false, without quotes"),
        ('[staging]\nusername = "u"\n', "only one of username and password"),
        ('[staging]\nusername = "u"\npassword = "p"\nauth_token = "t"\n', "a username and an auth_token"),
        ('scope = "s"\n', r"'scope' in .* is outside of a profile: move it below a line such as \[default\]"),
        ("[staging\n", "invalid TOML in "),
        pytest.param("a = " + "[" * 20_000, "invalid TOML in .*: its values are nested too deeply", id="deep lists"),
        pytest.param(
            "a = " + "{a = " * 20_000, "invalid TOML in .*: its values are nested too deeply", id="deep tables"
        ),
    ],
)
def test_mistakes(write: Write, text: str, said: str):
    write(text)
    with pytest.raises(ConfigError, match=said):
        PravegaConfig.resolve(profile="staging")


def test_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert profile_names() == []
    assert load_profile() is None
    with pytest.raises(SerdeError, match="profile 'x' does not exist"):
        load_profile("x")
