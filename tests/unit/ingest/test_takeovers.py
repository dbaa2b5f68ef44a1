"""Ingesters that consider each other ended, because steps last longer than the wait: work continues."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

from pravega_connector.client import PravegaClient
from pravega_connector.operations.ingest import Chunk, FileSource, ingest
from tests.unit.ingest._servers import TARGET, Servers

# Until others take an ingester for gone, and what a step takes it at least.
TAKEOVER_AFTER, STEP = 0.05, 0.2


class SlowSource(FileSource):
    """Files that take longer to read than the others wait."""

    def read(self, id_: str, offset: int = 0) -> Iterator[Chunk]:
        time.sleep(STEP)
        yield from super().read(id_, offset)


def test_ingesters_that_suspect_each_other_too_soon_come_to_an_end(
    servers: Servers, client: PravegaClient, six_files: Path
):
    def run() -> None:
        ingest(SlowSource([six_files]), TARGET, client=client, takeover_after=TAKEOVER_AFTER)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    assert [thread.is_alive() for thread in threads] == [False] * 3
    assert sorted(servers.numbers) == list(range(30))
