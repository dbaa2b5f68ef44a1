"""Defaults of a session, and tables of a scope, by what they ask of Spark."""

import pickle
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


class Session:
    """As much of a Spark session as is used: what is registered, read, and made."""

    def __init__(self, streams: tuple[str, ...] = (), **conf: str) -> None:
        self.conf = SimpleNamespace(getAll=conf)
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


def test_a_session_has_a_cluster_and_options(monkeypatch: pytest.MonkeyPatch):
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


class Builder:
    """As much of a builder as is used: its settings, and the session that it starts."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.session: Any = Session()

    def config(self, name: str, value: str) -> "Builder":
        self.settings[name] = value
        return self

    def getOrCreate(self) -> Any:
        self.session.conf = SimpleNamespace(getAll={}, get=self.settings.get, set=self.settings.__setitem__)
        return self.session


def test_a_builder_is_started_with_unix_sockets_only_for_low_latency():
    builder: Any = Builder()
    assert configure(builder) is builder.session
    assert builder.settings == {}
    assert configure(builder, low_latency=True) is builder.session
    assert builder.settings == {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.execution.pandas.udf.buffer.size": "1048576",
    }
    assert len(builder.session.sources) == 2, "registered as usual: the session has no JVM"


def test_no_session_is_started_for_an_unknown_option():
    builder: Any = Builder()
    builder.getOrCreate = pytest.fail
    with pytest.raises(ConfigError, match="unknown option 'low_latencies'"):
        configure(builder, low_latencies=True)


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
