"""A fake segment store with one stream on it, and a client of both."""

from collections.abc import Iterator

import pytest

from pravega_connector.client import PravegaClient
from tests.support.fake_stream import FakeSegmentStore, FakeStream


@pytest.fixture(autouse=True)
def again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between attempts stay short."""
    monkeypatch.setattr("pravega_connector.core.retry._LONGEST_PAUSE", 0.05)


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
