"""Our ingestion of files, in one warm process."""

from __future__ import annotations

import platform
from typing import Any

from benchmarks.peers._serve import Stopwatch, serve
from pravega_connector.config import PravegaConfig
from pravega_connector.ingest import ingest


def run(controller: str, stream: str, folder: str, options: dict[str, str]) -> dict[str, Any]:
    """Ingest a folder, each file in one transaction.

    The time is from listing the files until the last event can be read.
    """
    watch = Stopwatch()
    summary = ingest(folder, stream, client=PravegaConfig.resolve(controller=controller), options=options)
    return watch.answer(summary.counts.events, summary.counts.bytes)


if __name__ == "__main__":
    serve(f"python {platform.python_version()}", {"ingest": run})
