"""A source stream with numbered events of several keys, and a destination on another cluster."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.operations.mirror import MirrorSettings, MirrorSummary, mirror
from pravega_connector.testing import InProcessPravega
from pravega_serde import ByFunction

KEYS = 12
BY_KEY = ByFunction(lambda event: event.split()[0].decode())

Run = Callable[..., MirrorSummary]
Write = Callable[[int], None]
Copied = Callable[[], dict[str, list[int]]]


@pytest.fixture
def source(client: PravegaClient, stream_name: StreamName) -> StreamName:
    client.create_stream(stream_name)  # a server refuses to merge the segments that a stream was created with
    client.scale_stream(stream_name, 2)
    return stream_name


@pytest.fixture
def other(on_kit: bool, client: PravegaClient) -> Iterator[PravegaClient]:
    """Client of the destination's cluster: on the kit another one, otherwise the same one."""
    if not on_kit:
        yield client
        return
    with InProcessPravega() as server, server.client() as other:
        yield other


@pytest.fixture
def target(source: StreamName) -> StreamName:
    return StreamName(source.scope, f"{source.stream}-copy")


@pytest.fixture
def run(client: PravegaClient, other: PravegaClient, source: StreamName, target: StreamName) -> Run:
    """``run(transaction_bytes=…)``: one run of the mirror, with these settings."""

    def start(
        *,
        name: str = "mirror",
        start: Any = None,
        takeover_after: float | None = None,
        resolve: Any = None,
        on_progress: Any = lambda _what, _counts: None,
        **settings: Any,
    ) -> MirrorSummary:
        return mirror(
            source,
            target,
            source_client=client,
            destination_client=other,
            name=name,
            start=start,
            takeover_after=takeover_after,
            resolve=resolve,
            on_progress=on_progress,
            settings=MirrorSettings(**settings),
        )

    return start


@pytest.fixture
def write(client: PravegaClient, source: StreamName) -> Write:
    """``write(count)``: write this number of events of each key, numbered over all calls."""
    written = 0

    def more(count: int) -> None:
        nonlocal written
        with client.writer(source, router=BY_KEY) as writer:
            for number in range(written, written + count):
                for key in range(KEYS):
                    writer.write(b"%d %d" % (key, number))
        written += count

    return more


@pytest.fixture
def copied(other: PravegaClient, target: StreamName) -> Copied:
    """``copied()``: the numbers of each key in the destination, in the order of a reader."""

    def read() -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for event in other.read(target):
            key, number = event.decode().split()
            found[key].append(int(number))
        return dict(found)

    return read


def each(count: int) -> dict[str, list[int]]:
    """Return what ``copied`` returns if it has ``count`` events of each key."""
    return {str(key): list(range(count)) for key in range(KEYS)}
