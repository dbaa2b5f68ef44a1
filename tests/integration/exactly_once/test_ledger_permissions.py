"""Permissions that exactly-once needs, checked before the first event."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import AuthenticationError
from pravega_connector.exactly_once.batch_commit import Ledger
from pravega_connector.rows.encoding import encoder_for
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.spark.sink.transactions import ExactlyOnce
from tests.integration._users import ADMIN, LEDGER, SALES, as_user

pytestmark = pytest.mark.real_servers("users with rights of their own")

Prepare = Callable[[str], None]


@pytest.fixture(scope="module")
def config(admin: PravegaConfig) -> PravegaConfig:
    with PravegaClient(admin) as client:
        client.controller.create_scope(SALES.scope)
        client.create_stream(SALES)
    return admin


@pytest.fixture
def prepare(config: PravegaConfig) -> Prepare:
    """``prepare(user)``: what the sink does before the first task."""
    options = parse_options(SinkOptions, {"path": str(SALES), "controller": config.controller})
    encoder = encoder_for(pa.schema({"event": pa.binary()}), options)

    def prepare(user: str) -> None:
        with PravegaClient(as_user(config, user)) as client:
            ExactlyOnce(options, encoder, streaming=True).prepare(client)

    return prepare


def test_a_ledger_that_is_not_there_can_be_created_by_those_alone_who_may(config: PravegaConfig, prepare: Prepare):
    for user in ("no-ledger", "reads-ledger", "writes-ledger"):
        with pytest.raises(AuthenticationError, match=str(LEDGER)):
            prepare(user)
    prepare(ADMIN)
    with PravegaClient(config) as client:
        assert client.controller.stream_exists(LEDGER)


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("user", ["no-ledger", "reads-ledger"])
def test_a_user_who_cannot_write_to_the_ledger_is_refused_before_the_first_event(
    config: PravegaConfig, prepare: Prepare, user: str
):
    with pytest.raises(AuthenticationError, match=str(LEDGER)):
        prepare(user)


@pytest.mark.usefixtures("ledger")
def test_a_ledger_that_exists_takes_no_right_on_the_scope(prepare: Prepare):
    prepare("writes-ledger")


@pytest.fixture
def ledger(config: PravegaConfig) -> None:
    with PravegaClient(config) as client, Ledger(client.stores, LEDGER):
        pass
