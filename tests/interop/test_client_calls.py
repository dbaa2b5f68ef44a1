"""Less common calls of the client with Java on the other side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from pravega_connector.wire import StreamName
from tests.interop._java_client import JavaClientPeer


@pytest.fixture(scope="module")
def java(pravega: LocalPravega) -> Iterator[JavaClientPeer]:
    with JavaClientPeer(pravega.config.controller) as java:
        yield java


def test_tags(client: PravegaClient, java: JavaClientPeer, scope: str) -> None:
    client.create_scope(scope)
    assert java.create(StreamName(scope, "java"), ["sales", "größe 2"])
    client.create_stream(f"{scope}/python", tags=["sales", "tea"])
    assert {name.stream for name in client.streams(scope, tag="sales")} == java.tagged(scope, "sales")
    assert java.tagged(scope, "sales") == {"java", "python"}
    assert [name.stream for name in client.streams(scope, tag="größe 2")] == ["java"]
    assert java.tags(StreamName(scope, "python")) == {"sales", "tea"}
    assert set(client.describe(f"{scope}/java").config.tags) == {"sales", "größe 2"}
