"""Defaults of a session, and tables of a scope, by what they ask of Spark."""

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle

from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.selection import with_defaults
from pravega_connector.spark.session import configure, register_streams


class Settings:
    """As much of a session's settings as is used."""

    def __init__(self, values: dict[str, str]) -> None:
        self.getAll = values
        self.get, self.set = values.get, values.__setitem__


class Session:
    """As much of a Spark session as is used: what is registered, read, and made."""

    def __init__(self, streams: tuple[str, ...] = (), **conf: str) -> None:
        self.conf = Settings(conf)
        self.sources: list[type[PravegaDataSource]] = []
        self.dataSource = SimpleNamespace(register=self.sources.append)
        self.tables: dict[str, dict[str, Any]] = {}
        self.catalog = SimpleNamespace(
            tableExists=self.tables.__contains__,
            createTable=lambda name, **options: self.tables.__setitem__(name, options),
        )
        self.sql = lambda text: self.tables.pop(text.removeprefix("DROP TABLE IF EXISTS "), None)
        self.read = self
        self._streams = streams

    def format(self, _name: str) -> "Session":
        return self

    def options(self, **_options: str) -> "Session":
        return self

    def option(self, _name: str, _value: str) -> "Session":
        return self

    def load(self) -> Any:
        rows = [SimpleNamespace(stream_name=name) for name in self._streams]
        return SimpleNamespace(collect=lambda: rows)


def made(session: Session, **options: str) -> Any:
    """Cluster of a write with these options, as a process knows it that has got the class."""
    source = pickle.loads(cloudpickle.dumps(session.sources[-1]))
    assert source.name() == "pravega"
    return with_defaults(options, source.defaults, SourceOptions)


def test_a_session_has_a_cluster_and_options(monkeypatch):
    monkeypatch.setenv("PRAVEGA_SCOPE", "from-env")
    session: Any = Session(**{"spark.pravega.controller.uri": "tcp://pravega:9090", "spark.app.name": "x"})
    configure(session)
    defaults = made(session, scope="mine")
    assert (defaults["controller"], defaults["scope"]) == ("tcp://pravega:9090", "mine")
    assert made(session)["scope"] == "from-env"
    configure(session, PravegaConfig(controller="tcp://other"), fail_on_data_loss=False, columns="event")
    assert made(session, columns="offset") == {
        "controller": "tcp://other:9090",
        "tls_validate_hostname": "true",
        "fail_on_data_loss": "false",
        "columns": "offset",
    }
    assert PravegaDataSource.defaults == {}, "another session's stay its own"
    with pytest.raises(ConfigError, match="'colums'; did you mean 'columns'"):
        configure(session, colums="event")


@pytest.mark.parametrize(
    ("defaults", "given"),
    [
        ({"max_bytes_per_trigger": 9}, {"approx_bytes_per_trigger": "5"}),
        ({"inferSchema": True}, {"infer_schema": "false"}),
        ({"keycloak_file": "/k.json"}, {"username": "ann", "password": "p"}),
        ({"username": "ann", "password": "p"}, {"credential_provider": "own.module:name"}),
        ({"registry_username": "ann", "registry_password": "p"}, {"registry_token": "t"}),
        ({"also_registry_token": "t"}, {"also_registry_credential_provider": "own.module:name"}),
    ],
)
def test_options_replace_defaults_with_another_name_of_the_same(defaults: dict[str, Any], given: dict[str, str]):
    session: Any = Session()
    configure(session, PravegaConfig(), **defaults, fail_on_data_loss=False)
    found = made(session, **given)
    assert found.keys() & {name.lower() for name in (*defaults, *given)} == given.keys()
    assert found["fail_on_data_loss"] == "false"


class Builder:
    """As much of a builder as is used: its settings, and the session that it starts."""

    def __init__(self, **options: str) -> None:
        self._options: dict[str, str] = options
        self.session: Any = Session()

    def config(self, name: str, value: str) -> "Builder":
        self._options[name] = value
        return self

    def getOrCreate(self) -> Any:
        self.session.conf = Settings(dict(self._options))
        return self.session


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


SOCKETS = "spark.python.unix.domain.socket.enabled"
BUFFER = "spark.sql.execution.pandas.udf.buffer.size"


def test_a_builder_is_started_with_unix_sockets_unless_they_are_switched_off(umask):
    builder: Any = Builder()
    assert configure(builder) is builder.session
    assert builder._options == {SOCKETS: "true"}
    assert builder.session.conf.getAll == {SOCKETS: "true", BUFFER: "1048576"}
    assert len(builder.session.sources) == 1
    others: Any = Builder()
    configure(others, unix_sockets=False)
    assert others._options == {}
    own: Any = Builder(**{SOCKETS: "false", BUFFER: "65536"})
    configure(own)
    assert own.session.conf.getAll == {SOCKETS: "false", BUFFER: "65536"}, "the builder's settings win"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no umask")
def test_there_are_no_sockets_to_which_others_could_connect(umask, caplog):
    umask(0o002)
    builder: Any = Builder()
    with caplog.at_level("INFO", logger="pravega_connector.spark.session"):
        configure(builder)
    assert SOCKETS not in builder._options
    assert "unix domain sockets (other users could connect to them: set the umask to 022)" in caplog.text


def test_one_line_has_the_reason_of_each_part_that_is_missing(caplog):
    session: Any = Session()
    with caplog.at_level("INFO", logger="pravega_connector.spark.session"):
        configure(session)
    (record,) = caplog.records
    assert record.levelname == "INFO"
    assert record.message == (
        "this Spark session does without: JVM reader, fork server, local checkpoint files (this is a session of Spark "
        f"Connect); unix domain sockets ({SOCKETS} is not set: pass SparkSession.builder before the application starts)"
    )
    caplog.clear()
    parts = ("jvm_reader", "fork_server", "unix_sockets", "local_checkpoint_files")
    configure(session, **dict.fromkeys(parts, False))
    assert caplog.records == []


def test_a_platform_that_refuses_a_part_does_not_stop_the_session(monkeypatch, caplog):
    def refuse(*_: object) -> None:
        raise RuntimeError("ADD JAR is not allowed\n\tat org.apache.spark")

    monkeypatch.setattr("pravega_connector.spark.session.obstacle", lambda _: None)
    monkeypatch.setattr("pravega_connector.spark.session.use_jvm_reader", refuse)
    session: Any = Session()
    with caplog.at_level("INFO", logger="pravega_connector.spark.session"):
        assert configure(session, local_checkpoint_files=False) is session
    assert "JVM reader (RuntimeError: ADD JAR is not allowed);" in caplog.text
    assert len(session.sources) == 1


def test_no_session_is_started_for_an_unknown_option():
    builder: Any = Builder()
    builder.getOrCreate = pytest.fail
    with pytest.raises(ConfigError, match="unknown option 'jvm_readers'"):
        configure(builder, jvm_readers=True)


def test_credentials_of_a_query_replace_those_of_its_session():
    session: Any = Session()
    configure(session, PravegaConfig().with_token("s3cret-word"))
    assert made(session)["auth_token"] == "s3cret-word"
    own = made(session, username="me", password="mine")
    assert own.keys() & {"auth_method", "auth_token", "username", "password"} == {"username", "password"}


def test_streams_become_tables():
    session: Any = Session(("orders", "orders-ledger", "my-log.v1", "ledger"))
    names = {"orders": "orders", "my-log.v1": "my_log_v1", "ledger": "ledger"}
    assert register_streams(session, "shop", format="string") == names
    options = {"source": "pravega", "format": "string", "stream": "shop/my-log.v1"}
    assert session.tables["my_log_v1"] == options
    register_streams(session, "shop", format="bytes")
    assert session.tables["my_log_v1"] == options, "it was there"
    register_streams(session, "shop", format="bytes", replace=True)
    assert session.tables["my_log_v1"] == options | {"format": "bytes"}
    register_streams(session, "shop", database="db")
    assert session.tables["db.orders"] == {"source": "pravega", "stream": "shop/orders"}


def test_two_streams_that_would_be_one_table_are_an_error():
    session: Any = Session(("a-b", "A_b"))
    with pytest.raises(ConfigError, match="'A_b' and 'a-b'"):
        register_streams(session, "shop")
    assert not session.tables


def test_an_application_whose_session_is_not_configured_logs_one_line(monkeypatch, caplog, tmp_path):
    monkeypatch.setattr("pravega_connector.spark.data_source.is_spark_process", lambda: True)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    monkeypatch.setenv("SPARK_JOB_ARTIFACT_UUID", "default")
    session: Any = Session()
    configure(session)
    caplog.clear()
    session.sources[-1]({})
    assert caplog.records == []
    for _ in range(2):
        PravegaDataSource({})
    (record,) = caplog.records
    assert record.levelname == "WARNING", "Spark's Python processes have no other level on standard error"
    assert "create it with pyspark_pravega.configure(SparkSession.builder)" in record.message
    caplog.clear()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "absent"))
    PravegaDataSource({})
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    (tmp_path / "pravega-not-configured").unlink()
    monkeypatch.setenv("SPARK_JOB_ARTIFACT_UUID", "5f7a")  # Spark Connect
    PravegaDataSource({})
    assert caplog.records == []
