import base64
import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.config import PravegaConfig, parse_properties
from pravega_connector.errors import ConfigError, InvalidNameError
from pravega_connector.rows.options import CommonOptions, parse_options

SECRET = "hunter2"
SECRET_TOKEN = base64.b64encode(f"admin:{SECRET}".encode()).decode()


class TestUri:
    def test_default(self) -> None:
        config = PravegaConfig()
        assert config.controller == "tcp://localhost:9090"
        assert config.endpoints == [("localhost", 9090)]
        assert not config.uses_tls_to_controller
        assert not config.uses_tls_to_stores

    @pytest.mark.parametrize(
        ("uri", "endpoints", "tls"),
        [
            ("tcp://pravega.example:9091", [("pravega.example", 9091)], False),
            ("pravega://a:1,b:2", [("a", 1), ("b", 2)], False),
            ("tls://a:1", [("a", 1)], True),
            ("ssl://a:1", [("a", 1)], True),
            ("pravegas://a:1, b:2/", [("a", 1), ("b", 2)], True),
            ("TCP://a:1", [("a", 1)], False),
            ("a:1", [("a", 1)], False),
            ("tcp://a", [("a", 9090)], False),
            ("tcp://10.0.0.1:9090", [("10.0.0.1", 9090)], False),
            ("tcp://[::1]:9092,[fe80::1]", [("::1", 9092), ("fe80::1", 9090)], False),
        ],
    )
    def test_endpoints(self, uri: str, endpoints: list[tuple[str, int]], tls: bool) -> None:
        config = PravegaConfig(controller=uri)
        assert config.endpoints == endpoints
        assert config.uses_tls_to_controller == config.uses_tls_to_stores == tls
        assert PravegaConfig(controller=config.controller) == config

    @pytest.mark.parametrize(
        "uri",
        [
            "",
            "tcp://",
            "http://a:1",
            "tcp://a:0",
            "tcp://a:65536",
            "tcp://a:b",
            "tcp://a:1,",
            "tcp://a b:1",
            "tcp://a:1/x",
            "::1",
        ],
    )
    def test_refused(self, uri: str) -> None:
        with pytest.raises(ConfigError) as caught:
            PravegaConfig(controller=uri)
        text = str(caught.value)
        assert text.startswith("[PRAVEGA-CONFIG] the controller URI")
        assert "tcp://" in text
        assert "\n" not in text

    def test_not_a_string(self) -> None:
        with pytest.raises(ConfigError, match="must be a str such as tcp://localhost:9090, not int"):
            PravegaConfig(controller=9090)  # type: ignore[arg-type]

    @given(st.text())
    def test_any_text_is_taken_or_refused_cleanly(self, uri: str) -> None:
        with suppress(ConfigError):
            assert PravegaConfig(controller=uri).endpoints

    def test_scope_is_checked(self) -> None:
        with pytest.raises(InvalidNameError):
            PravegaConfig(scope="a/b")


class TestSecrets:
    def config(self) -> PravegaConfig:
        return PravegaConfig(scope="s").with_credentials("admin", SECRET)

    def test_header(self) -> None:
        assert self.config().authorization == f"Basic {SECRET_TOKEN}"
        assert PravegaConfig().with_token("abc").authorization == "Bearer abc"
        assert PravegaConfig().authorization is None

    @pytest.mark.parametrize("show", [repr, str, "{}".format])
    def test_not_shown(self, show: Callable[[object], str]) -> None:
        assert SECRET_TOKEN not in show(self.config())
        assert SECRET not in show(self.config())

    def test_a_uri_with_credentials_is_refused_without_repeating_it(self) -> None:
        with pytest.raises(ConfigError, match="must not contain credentials") as caught:
            PravegaConfig(controller=f"tcp://admin:{SECRET}@host:9090")
        assert SECRET not in str(caught.value)

    def test_other_errors_do_not_show_them(self) -> None:
        with pytest.raises(ConfigError) as caught:
            self.config().with_controller("nonsense://x")
        assert SECRET_TOKEN not in str(caught.value)

    def test_half_of_them_is_refused(self) -> None:
        with pytest.raises(ConfigError, match=r"set pravega\.client\.auth\.method as well") as caught:
            PravegaConfig(auth_token=SECRET_TOKEN)
        assert SECRET_TOKEN not in str(caught.value)
        with pytest.raises(ConfigError, match=r"set pravega\.client\.auth\.token as well"):
            PravegaConfig(auth_method="Basic")

    def test_a_pickle_keeps_them_for_the_workers(self) -> None:
        config = self.config().with_tls(
            ca_file="/ca.p12", ca_password=SECRET, server_name="pravega", validate_hostname=False, to_stores=False
        )
        assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
@pytest.mark.parametrize("to_controller", [None, True, False])
@pytest.mark.parametrize("to_stores", [None, True, False])
def test_tls_is_set_apart(scheme: str, to_controller: bool | None, to_stores: bool | None) -> None:
    config = PravegaConfig(controller=f"{scheme}://a:1").with_tls(to_controller=to_controller, to_stores=to_stores)
    by_scheme = scheme == "tls"
    assert config.uses_tls_to_controller == (by_scheme if to_controller is None else to_controller)
    assert config.uses_tls_to_stores == (by_scheme if to_stores is None else to_stores)


def test_is_immutable() -> None:
    with pytest.raises(FrozenInstanceError):
        PravegaConfig().scope = "other"  # type: ignore[misc]


def test_explicit_settings_give_a_new_value() -> None:
    first = PravegaConfig()
    second = first.with_controller("tcp://a:1").with_scope("s").with_tls(ca_file=Path("/ca.pem"))
    assert first == PravegaConfig()
    assert (second.controller, second.scope, second.tls_ca_file) == ("tcp://a:1", "s", "/ca.pem")


class TestEnvironment:
    def test_all(self) -> None:
        config = PravegaConfig.from_env(
            {
                "PRAVEGA_CONTROLLER_URI": "tls://a:1",
                "PRAVEGA_SCOPE": "s",
                "pravega_client_auth_method": "Basic",
                "pravega_client_auth_token": SECRET_TOKEN,
                "PRAVEGA_TLS_TO_CONTROLLER": "true",
                "PRAVEGA_TLS_TO_STORES": "FALSE",
                "PRAVEGA_TLS_CA_FILE": "/ca.pem",
                "PRAVEGA_TLS_CA_PASSWORD": SECRET,
                "PRAVEGA_TLS_SERVER_NAME": "pravega",
                "PRAVEGA_TLS_VALIDATE_HOSTNAME": "False",
            }
        )
        assert config == PravegaConfig(
            controller="tls://a:1",
            scope="s",
            auth_method="Basic",
            auth_token=SECRET_TOKEN,
            tls_to_controller=True,
            tls_to_stores=False,
            tls_ca_file="/ca.pem",
            tls_ca_password=SECRET,
            tls_server_name="pravega",
            tls_validate_hostname=False,
        )
        assert SECRET not in repr(config)

    def test_the_process_s_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PRAVEGA_SCOPE", "mine")
        assert PravegaConfig.from_env().scope == "mine"
        assert PravegaConfig.resolve().scope == "mine"

    def test_empty_is_absent(self) -> None:
        assert PravegaConfig.from_env({"PRAVEGA_CONTROLLER_URI": "", "PRAVEGA_SCOPE": ""}) == PravegaConfig()

    def test_bad_boolean_names_the_variable(self) -> None:
        with pytest.raises(ConfigError, match="PRAVEGA_TLS_VALIDATE_HOSTNAME must be true or false, not 'maybe'"):
            PravegaConfig.from_env({"PRAVEGA_TLS_VALIDATE_HOSTNAME": "maybe"})


class TestArguments:
    def test_takes_its_own_and_leaves_the_rest(self) -> None:
        config, rest = PravegaConfig.from_args(["in.csv", "--controller", "tcp://a:1", "--rows=5", "--scope=s", "-v"])
        assert (config.controller, config.scope) == ("tcp://a:1", "s")
        assert rest == ["in.csv", "--rows=5", "-v"]

    def test_stops_at_a_double_dash(self) -> None:
        config, rest = PravegaConfig.from_args(["--scope", "s", "--", "--scope", "t"])
        assert (config.scope, rest) == ("s", ["--", "--scope", "t"])

    def test_the_last_one_counts(self) -> None:
        assert PravegaConfig.from_args(["--scope", "s", "--scope", "t"])[0].scope == "t"

    @pytest.mark.parametrize("argv", [["--controller"], ["--controller="], ["--controller", "--scope", "s"]])
    def test_a_missing_value_is_an_error(self, argv: list[str]) -> None:
        with pytest.raises(ConfigError, match="--controller requires a value: --controller tcp://host:port"):
            PravegaConfig.from_args(argv)

    def test_longer_names_are_others(self) -> None:
        assert PravegaConfig.from_args(["--scopes", "s"]) == (PravegaConfig(), ["--scopes", "s"])


class TestProperties:
    def test_mapping(self) -> None:
        config = PravegaConfig.from_properties(
            {
                "pravega.controller.uri": "tcp://a:1",
                "pravega.scope": "s",
                "pravega.tls.validate.hostname": "false",
                "other": "x",
            }
        )
        assert config == PravegaConfig(controller="tcp://a:1", scope="s", tls_validate_hostname=False)

    def test_file(self, tmp_path: Path) -> None:
        path = tmp_path / "pravega.properties"
        path.write_text("# where it is\npravega.controller.uri=tcp://a:1\npravega.scope : s\n", encoding="utf-8")
        assert PravegaConfig.from_properties(path) == PravegaConfig(controller="tcp://a:1", scope="s")
        assert PravegaConfig.from_properties(str(path)) == PravegaConfig(controller="tcp://a:1", scope="s")

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"none\.properties cannot be read: No such file"):
            PravegaConfig.from_properties(tmp_path / "none.properties")

    def test_file_that_is_not_text(self, tmp_path: Path) -> None:
        path = tmp_path / "x.properties"
        path.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(ConfigError, match="invalid UTF-8 in the properties file"):
            PravegaConfig.from_properties(path)

    def test_spark_conf(self) -> None:
        pairs = [("spark.app.name", "x"), ("spark.pravega.scope", "prefixed"), ("pravega.controller.uri", "tcp://a:1")]
        assert PravegaConfig.from_spark_conf(pairs) == PravegaConfig(controller="tcp://a:1", scope="prefixed")
        assert PravegaConfig.from_spark_conf([*pairs, ("pravega.scope", "plain")]).scope == "plain"
        assert PravegaConfig.from_spark_conf(dict(pairs)).scope == "prefixed"


class TestPrecedence:
    SOURCES = (
        ("environment", {"environment": {"PRAVEGA_SCOPE": "environment"}}),
        ("properties", {"properties": {"pravega.scope": "properties"}}),
        ("arguments", {"arguments": ["--scope", "arguments"]}),
        ("explicit", {"scope": "explicit"}),
    )

    @pytest.mark.parametrize("count", range(1, 5))
    def test_each_source_beats_those_before(self, count: int) -> None:
        given_sources: dict = {"environment": {}}
        for _, source in self.SOURCES[:count]:
            given_sources |= source
        assert PravegaConfig.resolve(**given_sources).scope == self.SOURCES[count - 1][0]

    def test_default(self) -> None:
        assert PravegaConfig.resolve(environment={}) == PravegaConfig()

    def test_each_setting_for_itself(self) -> None:
        config = PravegaConfig.resolve(
            arguments=["--controller", "tcp://a:1"],
            environment={"PRAVEGA_SCOPE": "s", "PRAVEGA_CONTROLLER_URI": "tcp://b:2"},
        )
        assert (config.controller, config.scope) == ("tcp://a:1", "s")

    def test_none_leaves_a_setting_to_the_others(self) -> None:
        assert PravegaConfig.resolve(scope=None, environment={"PRAVEGA_SCOPE": "s"}).scope == "s"

    def test_an_explicit_false_counts(self) -> None:
        config = PravegaConfig.resolve(
            tls_validate_hostname=False, environment={"PRAVEGA_TLS_VALIDATE_HOSTNAME": "true"}
        )
        assert not config.tls_validate_hostname

    def test_credentials_are_never_mixed(self) -> None:
        environment = {"pravega_client_auth_method": "Basic", "pravega_client_auth_token": SECRET_TOKEN}
        with pytest.raises(ConfigError, match="a method but no token"):
            PravegaConfig.resolve(environment=environment, properties={"pravega.client.auth.method": "Bearer"})
        properties = {"pravega.client.auth.method": "Bearer", "pravega.client.auth.token": "t"}
        assert PravegaConfig.resolve(environment=environment, properties=properties).authorization == "Bearer t"

    def test_unknown_setting(self) -> None:
        with pytest.raises(ConfigError, match="unknown setting 'contoller'; did you mean 'controller'"):
            PravegaConfig.resolve(contoller="tcp://a:1", environment={})

    @pytest.mark.parametrize("name", ["bootstrap_servers", "service_url", "controller_uri", "uri"])
    def test_what_other_clients_call_the_controller(self, name: str) -> None:
        with pytest.raises(ConfigError, match=f"unknown setting '{name}'; did you mean 'controller'"):
            PravegaConfig.resolve(**{name: "tcp://a:1"}, environment={})


class TestPropertiesFormat:
    # Expected values are from java.util.Properties.load.
    @pytest.mark.parametrize(
        ("text", "entries"),
        [
            ("", {}),
            ("a=b", {"a": "b"}),
            ("  a \t=\t b  ", {"a": "b  "}),
            ("a:b=c", {"a": "b=c"}),
            ("a b", {"a": "b"}),
            ("a", {"a": ""}),
            ("=b", {"": "b"}),
            ("#a=b\n ! c=d\n\ne=f", {"e": "f"}),
            ("a=b\\\n   c\r\nd=e\rf=g", {"a": "bc", "d": "e", "f": "g"}),
            ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
            ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
            ("a=\\u00e9\\t\\z", {"a": "é\tz"}),
            ("a=b\\\n#c", {"a": "b#c"}),
            ("a=1\na=2", {"a": "2"}),
        ],
    )
    def test_as_java(self, text: str, entries: dict[str, str]) -> None:
        assert parse_properties(text) == entries

    @given(st.text(alphabet=" \t\n\r=:#!\\ua0f", max_size=40))
    def test_any_text_is_read(self, text: str) -> None:
        assert len(parse_properties(text)) <= len(text.splitlines())

    @given(st.dictionaries(st.from_regex(r"[a-z.]+", fullmatch=True), st.from_regex(r"([!-~][ -~]*)?", fullmatch=True)))
    def test_round_trip(self, entries: dict[str, str]) -> None:
        lines = [f"{key}={value}".replace("\\", "\\\\") for key, value in entries.items()]
        assert parse_properties("\n".join(lines)) == entries


def test_users_and_tokens_are_given_by_name():
    as_user = PravegaConfig(username="ann", password="a:b")
    assert as_user == PravegaConfig().with_credentials("ann", "a:b")
    assert "a:b" not in repr(as_user)
    assert PravegaConfig(token="secret") == PravegaConfig().with_token("secret")
    assert as_user.with_scope("s").authorization == as_user.authorization
    known = {"pravega_client_auth_method": "Bearer", "pravega_client_auth_token": "old"}
    assert PravegaConfig.resolve(username="ann", password="a:b", environment=known) == as_user
    for wrong, says in (
        ({"username": "ann"}, "no password"),
        ({"username": "ann", "password": "b", "token": "t"}, "set twice"),
        ({"token": "t", "auth_method": "Basic", "auth_token": "t"}, "set twice"),
        ({"token": 5}, "the token must be a str"),
    ):
        for make in (PravegaConfig, PravegaConfig.resolve):
            with pytest.raises(ConfigError, match=says):
                make(**wrong)


def test_the_options_of_spark_say_the_same(tmp_path):
    full = PravegaConfig(
        controller="tls://a:1", scope="s", tls_ca_file=str(tmp_path / "ca.pem"), tls_validate_hostname=False
    ).with_credentials("ann", "a:b")
    apart = PravegaConfig(tls_to_controller=True, tls_to_stores=False, tls_ca_file="/ca.p12", tls_ca_password=SECRET)
    for config in (full, apart, PravegaConfig(), PravegaConfig(token="t"), PravegaConfig(tls_server_name="a")):
        assert all(isinstance(value, str) for value in config.options().values())
        assert parse_options(CommonOptions, config.options()).config == config
