"""A fake segment store with one stream on it, and a client of both."""

from collections.abc import Iterator

import pytest

from pravega_connector.client import PravegaClient
from tests.fake_stream import FakeSegmentStore, FakeStream


@pytest.fixture
def store() -> Iterator[FakeSegmentStore]:
    with FakeSegmentStore() as store:
        yield store


@pytest.fixture
def stream(store: FakeSegmentStore) -> FakeStream:
    """A stream of one segment."""
    return FakeStream(store)


@pytest.fixture
def client(stream: FakeStream) -> Iterator[PravegaClient]:
    with stream.client() as client:
        yield client
