"""A stream on the shared server, and a proxy on the way to it."""

from collections.abc import Iterator

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.wire import StreamName
from tests.support.proxy import Proxy


@pytest.fixture
def stream(config: PravegaConfig, stream_name: StreamName) -> StreamName:
    with PravegaClient(config) as client:
        client.create_stream(stream_name)
    return stream_name


@pytest.fixture
def proxy(config: PravegaConfig, stream: StreamName) -> Iterator[Proxy]:
    with PravegaClient(config) as client, Proxy(client.controller.endpoint(stream, 0)) as proxy:
        yield proxy
