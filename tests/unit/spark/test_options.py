"""Options of the source and the sink."""

import pickle
import re
import tempfile
import warnings
from dataclasses import fields, replace
from pathlib import Path

import pytest

import pravega_connector
from pravega_connector.client import RetentionPolicy, ScalingPolicy
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError, InvalidNameError, LeaseRangeError, UnknownOptionError
from pravega_connector.rows.options import FormatOptions, PravegaOptionWarning, declaration, known_names, parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark import known_clusters
from pravega_connector.spark.known_clusters import client_of, note_answer
from pravega_connector.spark.selection import all_names
from pravega_connector.spark.source.streams import StreamPattern
from pravega_connector.wire import StreamName


def source(**options: str) -> SourceOptions:
    return parse_options(SourceOptions, options)


def sink(**options: str) -> SinkOptions:
    return parse_options(SinkOptions, options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"path": "a/b"}, StreamName("a", "b")),
        ({"stream": "a/b"}, StreamName("a", "b")),
        ({"stream": "b", "scope": "a"}, StreamName("a", "b")),
        ({"path": "b", "scope": "a"}, StreamName("a", "b")),
        ({"path": "a/b", "stream": "b"}, StreamName("a", "b")),
        ({"PATH": "a/b", "sTream": "a/b"}, StreamName("a", "b")),
    ],
)
def test_finds_the_stream(options: dict[str, str], expected: StreamName):
    assert source(**options).stream_name() == expected


def test_scope_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PRAVEGA_SCOPE", "env")
    assert source(stream="b").stream_name() == StreamName("env", "b")
    assert source(stream="b", scope="option").stream_name() == StreamName("option", "b")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "no stream"),
        ({"stream": "b"}, "scope"),
        ({"stream": "b", "path": "a/c"}, "two streams"),
        ({"stream": ""}, "empty"),
    ],
)
def test_says_what_is_wrong_with_the_stream(options: dict[str, str], word: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PRAVEGA_SCOPE", raising=False)
    with pytest.raises(ConfigError, match=word):
        source(**options).stream_name()


@pytest.mark.parametrize("text", ["a/x, b/y", "b/y,a/x", '["a/x", "b/y"]', "['a/x', 'b/y']", "/a/x/,b/y,a/x"])
@pytest.mark.parametrize("name", ["path", "stream", "paths"])
def test_finds_several_streams(text: str, name: str):
    options = source(**{name: text})
    assert options.stream_names() == (StreamName("a", "x"), StreamName("b", "y"))
    with pytest.raises(ConfigError, match="several streams"):
        options.stream_name()


def test_the_scala_connectors_name_of_the_limit():
    assert source(path="a/b", approx_bytes_per_trigger="500").max_bytes_per_trigger == 500
    assert source(path="a/b", approx_bytes_per_trigger="500", max_bytes_per_trigger="500").max_bytes_per_trigger == 500
    with pytest.raises(ConfigError, match="'approx_bytes_per_trigger' is another name of it"):
        source(path="a/b", approx_bytes_per_trigger="500", max_bytes_per_trigger="400")
    with pytest.raises(ConfigError, match="option 'mode' has two values: set it once"):
        source(path="a/b", mode="PERMISSIVE", Mode="FAILFAST")


def test_several_streams_of_one_scope():
    assert source(stream="x,y", scope="a").stream_names() == (StreamName("a", "x"), StreamName("a", "y"))


@pytest.mark.parametrize(
    ("pattern", "scope", "scopes", "yes", "no"),
    [
        ("o-*", "a", ("a",), ["a/o-1", "a/o-"], ["b/o-1", "a/p", "a/xo-1"]),
        ("o-*", "a,b", ("a", "b"), ["a/o-1", "b/o-1"], ["c/o-1"]),
        ("c/o?, d/[xy]", None, ("c", "d"), ["c/o1", "d/x"], ["c/o", "d/z", "d/o1"]),
        ("*/o", None, None, ["a/o", "bb/o"], ["a/oo"]),
        ("regex:a+/o(1|2)", None, None, ["a/o1", "aa/o2"], ["a/o3", "ba/o1", "a/o11"]),
        ("regex:.*", "a", ("a",), ["a/o1"], []),
        ("v1.0", "a", ("a",), ["a/v1.0"], ["a/v1x0"]),
    ],
)
def test_patterns_of_streams(
    pattern: str, scope: str | None, scopes: tuple[str, ...] | None, yes: list[str], no: list[str]
):
    options = source(stream_pattern=pattern, **({} if scope is None else {"scope": scope}))
    found = StreamPattern.parse(pattern, options.scopes())
    assert found.scopes == scopes
    assert all(found.matches.fullmatch(name) for name in yes)
    assert not any(found.matches.fullmatch(name) for name in no)


@pytest.mark.parametrize("pattern", ["", "a/b/c", "/x", "x/", "a,,b", "regex:(", "tag:", "tag: "])
def test_refuses_what_is_not_a_pattern(pattern: str):
    with pytest.raises(ConfigError, match="stream_pattern"):
        StreamPattern.parse(source(stream_pattern=pattern, scope="s").stream_pattern or "", ("s",))


def test_refuses_names_that_pravega_refuses():
    with pytest.raises(InvalidNameError):
        source(path="a/b c").stream_name()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("start_stream_cuts", "start_stream_cut"),
        ("startStreamCut", "start_stream_cut"),
        ("MAX-ROWS-PER-TRIGGER", "max_rows_per_trigger"),
        ("strat_stream_cut", "start_stream_cut"),
        ("formt", "format"),
        ("columsn", "columns"),
        ("failOnDataLoss", "fail_on_data_loss"),
        ("startingOffsets", "start_stream_cut"),
        ("kafka.bootstrap.servers", "controller"),
        ("bootstrap.servers", "controller"),
        ("schema.registry.url", "registry"),
        ("allow_create_steam", "allow_create_stream"),  # the sink's: a table has the options of both
        ("start", "start_stream_cut"),  # the client's own argument
        ("from_beginning", "start_stream_cut"),
        ("end", "end_stream_cut"),
        ("uri", "controller"),
        ("controller_uri", "controller"),
        ("max_rows", "max_rows_per_trigger"),
        ("registry_url", "registry"),
        ("routing_key_column", "routing_key_field"),
        ("dead_letter", "dead_letter_stream' or 'dead_letter_path"),
        ("stream_cut", "start_stream_cut' or 'end_stream_cut"),
        ("partitions", "min_partitions"),
        ("maxRows", "max_rows_per_trigger"),
        ("registryUrl", "registry"),
        ("host", "controller"),
        ("user", "username"),
    ],
)
def test_an_unknown_option_is_an_error_that_names_the_nearest(name: str, meant: str):
    with pytest.raises(UnknownOptionError, match=rf"'{name.lower()}'; did you mean '{meant}'\? If ") as error:
        parse_options(SourceOptions, {"path": "a/b", name: "1"}, also_known=known_names(SinkOptions))
    assert "\n" not in str(error.value)
    with pytest.warns(PravegaOptionWarning, match=f"'{name.lower()}' has no effect"):
        source(path="a/b", ignore_unknown_options="true", **{name: "1"})


@pytest.mark.parametrize("name", ["header", "mergeSchema", "multiLine", "includeHeaders", "dbtable"])
def test_an_option_that_is_for_others_is_an_error_unless_the_user_allows_it(name: str):
    with pytest.raises(UnknownOptionError, match=f"'{name.lower()}'; 'pravega-serde options' lists .* If .*another"):
        source(path="a/b", **{name: "1"})
    with pytest.warns(PravegaOptionWarning, match=f"'{name.lower()}' has no effect"):
        source(path="a/b", ignore_unknown_options="true", **{name: "1"})


def test_names_of_other_systems_stand_for_options_that_exist():
    meant = {each for names in declaration._MEANT.values() for each in names.split()}
    assert len(meant) > 15
    assert meant <= all_names()
    assert declaration._MEANT.keys().isdisjoint(all_names())


def test_sparks_own_options_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source(
            path="a/b",
            checkpointlocation="/x",
            queryname="q",
            provider="p",
            owner="me",
            location="/w",
            comment="c",
            external="true",
        )


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"mode": "whatever"}, "mode"),
        ({"mode": "permisive"}, "did you mean 'PERMISSIVE'"),
        ({"columns": "event,ofset"}, "did you mean 'offset'"),
        ({"fail_on_data_loss": "flase"}, "did you mean 'false'"),
        ({"columns": "event,nothing"}, "nothing"),
        ({"columns": "event,event"}, "twice"),
        ({"max_rows_per_trigger": "0"}, "max_rows_per_trigger"),
        ({"max_rows_per_trigger": "many"}, "many"),
        ({"timeout_ms": "5"}, "timeout_ms"),
    ],
)
def test_refuses_values_that_cannot_be_right(options: dict[str, str], word: str):
    with pytest.raises(ConfigError, match=word):
        source(path="a/b", **options)


def test_a_password_is_never_shown():
    options = source(path="a/b", username="me", password="s3cret-word")
    assert "s3cret-word" not in repr(options) + str(options) + repr(options.config)
    assert options.config.authorization is not None


def test_a_task_uses_the_configuration_of_the_driver(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", "tcp://driver:1")
    monkeypatch.setenv("PRAVEGA_SCOPE", "s")
    carried = pickle.dumps([source(path="x"), source(path="x", scope="a,b"), sink(path="x", token="given-word")])
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", "tcp://worker:2")
    monkeypatch.delenv("PRAVEGA_SCOPE")
    monkeypatch.setattr(PravegaConfig, "resolve", None)  # nothing is looked up again
    one, several, written = pickle.loads(carried)
    assert one.config == PravegaConfig(controller="tcp://driver:1", scope="s")
    assert (str(one.stream_name()), several.scopes()) == ("s/x", ("a", "b"))
    assert written.config == PravegaConfig(controller="tcp://driver:1", scope="s", token="given-word")
    assert str(written.stream_named("y")) == "s/y"


def test_a_secret_of_the_environment_is_read_by_each_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", "tcp://driver:1")
    monkeypatch.setenv("pravega_client_auth_method", "Bearer")
    monkeypatch.setenv("pravega_client_auth_token", "s3cret-word")
    planned = source(path="s/x")
    assert planned.config.authorization == "Bearer s3cret-word"
    carried = pickle.dumps(planned)
    assert b"s3cret-word" not in carried
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", "tcp://worker:2")
    monkeypatch.setenv("pravega_client_auth_token", "renewed")
    for _ in range(2):  # a task may pickle its options again
        restored = pickle.loads(carried)
        assert restored.config == PravegaConfig(controller="tcp://driver:1", token="renewed")
        carried = pickle.dumps(restored)
        assert b"renewed" not in carried


def test_the_password_of_a_trust_store_is_read_by_each_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PRAVEGA_TLS_CA_PASSWORD", "s3cret-word")
    planned = source(path="s/x", token="given-word")
    assert planned.config.tls_ca_password == "s3cret-word"
    carried = pickle.dumps(planned)
    assert b"s3cret-word" not in carried
    monkeypatch.setenv("PRAVEGA_TLS_CA_PASSWORD", "renewed")
    monkeypatch.setenv("pravega_client_auth_keycloak", "/not-used.json")
    assert pickle.loads(carried).config == PravegaConfig(token="given-word", tls_ca_password="renewed")


def test_every_setting_of_a_cluster_is_an_option():
    given = {
        "controller": "tls://pravega:9091",
        "scope": "a",
        "auth_method": "Custom",
        "auth_token": "s3cret-word",
        "tls_to_controller": "true",
        "tls_to_stores": "false",
        "tls_ca_file": "/ca.pem",
        "tls_ca_password": "s3cret-word",
        "tls_server_name": "pravega.example",
        "tls_validate_hostname": "false",
    }
    alone = {"keycloak_file", "credential_provider"}
    assert given.keys() | alone == {each.name for each in fields(PravegaConfig)}
    for options in (source(path="a/b", **given), sink(path="a/b", **given)):
        flags = {"tls_to_controller": True, "tls_to_stores": False, "tls_validate_hostname": False}
        assert options.config == PravegaConfig(**(given | flags))
        assert "s3cret-word" not in repr(options)
    options = source(path="a/b", token="s3cret-word")
    assert options.config.authorization == "Bearer s3cret-word"
    assert "s3cret-word" not in repr(options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"username": "me"}, "'username' requires option 'password'"),
        ({"password": "s3cret-word"}, "'password' requires option 'username'"),
        ({"auth_token": "s3cret-word"}, "'auth_token' requires option 'auth_method'"),
        ({"token": "s3cret-word", "username": "me"}, "set only one"),
    ],
)
def test_credentials_that_cannot_be(options: dict[str, str], words: str):
    with pytest.raises(ConfigError, match=words) as error:
        _ = source(path="a/b", **options).config
    assert "s3cret-word" not in str(error.value)


def test_a_misspelt_writer_mode_names_the_right_one():
    with pytest.raises(ConfigError, match="did you mean 'exactly_once'"):
        sink(writer_mode="exactly-once")


def test_nothing_is_an_option_that_nobody_asks_for():
    sources = "".join(file.read_text() for file in Path(pravega_connector.__file__).parent.rglob("*.py"))
    # A format's options are handed to it by their declarations.
    names = {each.name for kind in (SourceOptions, SinkOptions) for each in fields(kind)}
    names -= {each.name for each in fields(FormatOptions)}
    assert len(names) > 50
    assert [name for name in names if not re.search(rf"[.\"']{name}\b", sources)] == []


_IDS = {"txn_app_id": "job", "txn_version": "7"}


@pytest.mark.parametrize(
    ("options", "streaming", "mode"),
    [
        ({}, True, "exactly_once"),
        ({}, False, "at_least_once"),
        (_IDS, False, "exactly_once"),
        ({"exactly_once": "true"}, True, "exactly_once"),
        ({"exactly_once": "false"}, True, "at_least_once"),
        ({**_IDS, "writer_mode": "at_least_once"}, False, "at_least_once"),
        ({"writer_mode": "BEST_EFFORT"}, True, "best_effort"),
        ({"exactly_once": "false", "writer_mode": "best_effort"}, False, "best_effort"),
    ],
)
def test_writer_mode(options: dict[str, str], streaming: bool, mode: str):
    assert sink(**options).mode(streaming=streaming) == mode


@pytest.mark.parametrize(
    ("options", "streaming"),
    [
        ({"writer_mode": "exactly_once"}, False),
        ({"exactly_once": "true"}, False),
        ({"txn_app_id": "job"}, False),
        ({"txn_version": "7"}, False),
        (_IDS, True),
        ({"exactly_once": "true", "writer_mode": "at_least_once"}, True),
        ({"exactly_once": "false", "writer_mode": "exactly_once"}, True),
    ],
)
def test_a_guarantee_that_cannot_be_given_is_refused(options: dict[str, str], streaming: bool):
    with pytest.raises(ConfigError):
        sink(**options).mode(streaming=streaming)


def test_scaling_and_retention_of_a_created_stream():
    assert sink().scaling() == ScalingPolicy.fixed(1)
    assert sink(default_num_segments="3", default_segment_target_rate_bytes_per_sec="20480").scaling() == (
        ScalingPolicy.by_kbytes(20, 2, 3)
    )
    assert sink(default_segment_target_rate_events_per_sec="7", default_scale_factor="4").scaling() == (
        ScalingPolicy.by_events(7, 4, 1)
    )
    assert sink().retention() is None
    assert sink(default_retention_duration_milliseconds="9").retention() == RetentionPolicy.by_time(9)
    assert sink(default_retention_size_bytes="9").retention() == RetentionPolicy.by_size(9)
    with pytest.raises(ConfigError, match="by time or by size"):
        sink(default_retention_size_bytes="9", default_retention_duration_milliseconds="9").retention()


def test_a_first_contact_is_short_and_what_continues_is_patient(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    options = source(path="a/b", controller="tcp://127.0.0.1:1", timeout_ms="2000", failover_timeout_ms="90000")
    assert client_of(options).stores.timeout == 2
    assert client_of(options) is client_of(options)
    note_answer(options.config)
    assert client_of(options).stores.timeout == 2, "a file decides nothing outside Spark's processes"
    monkeypatch.setattr(known_clusters, "is_spark_process", lambda: True)
    note_answer(options.config)  # a process that planned another batch
    assert client_of(options).stores.timeout == 90
    other = replace(options, controller="tcp://127.0.0.1:2")
    assert client_of(other).stores.timeout == 2
    assert client_of(other, service=True).stores.timeout == 90
    assert client_of(other, service=True, failover_timeout=7).stores.timeout == 7


def test_timeouts_of_the_sink_are_those_of_a_failover_unless_they_are_given():
    given = {"path": "a/b", "failover_timeout_ms": "90000"}
    options = sink(**given)
    assert (options.write_timeout, options.commit_timeout) == (90, 90)
    options = sink(**given, write_timeout_ms="5000", commit_timeout_ms="6000")
    assert (options.write_timeout, options.commit_timeout) == (5, 6)


@pytest.mark.parametrize(
    ("given", "commit"),
    [
        ({"transaction_timeout_ms": "9000"}, "300000, which is failover_timeout_ms unless it is set"),
        ({"transaction_timeout_ms": "60000", "commit_timeout_ms": "60000"}, "60000: "),
        ({"failover_timeout_ms": "900000"}, "900000, which"),
    ],
)
def test_a_lease_that_a_commit_can_outlast_is_refused(given, commit):
    with pytest.raises(LeaseRangeError, match=f"is not longer than commit_timeout_ms {commit}"):
        sink(path="a/b", **given).check_lease()


def test_the_default_lease_is_longer_than_a_commit():
    sink(path="a/b").check_lease()
    sink(path="a/b", transaction_timeout_ms="60001", commit_timeout_ms="60000").check_lease()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"routing_key": "a"}, "requires one of 'routing_key_field' and 'keep_other_keys'"),
        ({"routing_key": "a", "routing_key_field": "k", "keep_other_keys": "true"}, "requires one of"),
        ({"keep_other_keys": "true"}, "'keep_other_keys' requires option 'routing_key'"),
        ({"routing_key": "a", "routing_key_field": "k"}, "'routing_key_field' requires option 'format' or 'registry'"),
    ],
)
def test_options_of_a_routing_key_that_do_not_go_together(given, words):
    with pytest.raises(ConfigError, match=words):
        parse_options(SourceOptions, {"path": "a/b", **given})
