"""A stream that is scaled at random under load, read by a limited query with restarts. The long form is a command."""

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.wire import StreamName
from tests.support.scaled_load import Load, read_with_restarts

pytestmark = pytest.mark.real_servers("the kit scales before a restart can come inside a batch")


def test_order_per_key_through_scalings_and_restarts(
    client: PravegaClient, config: PravegaConfig, stream_name: StreamName
):
    with Load(client, stream_name, scalings=10, keys=3000, seed=7) as load:
        found = read_with_restarts(load, max_bytes=60_000, seed=7, controller=config.controller)
    assert found.rows == load.written >= 24_000
    assert set(found.next_of_key) == set(range(3000))
    assert load.splits
    assert load.merges
    assert found.replays, "a restart was to come inside a batch"
    assert found.fullest > 0.9, "the limit was to be reached"
