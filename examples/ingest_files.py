"""Exactly-once ingestion: each line of a folder's files becomes one event, even if a run is killed.

python -m examples.ingest_files trips --stream taxi/trips --key zone

Run it again to ingest new files. Events in the stream are not written twice. If you kill a run, the next one resumes.
``pravega-serde ingest`` does the same from a shell.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from pravega_connector.client import PravegaClient
from pravega_connector.ingest import Sizes, ingest


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Ingest files into a stream, exactly once")
    parser.add_argument("folder", type=Path, help="CSV, JSON lines, text, Avro or Parquet, compressed or not")
    parser.add_argument("--controller", default="tcp://localhost:9090")
    parser.add_argument("--stream", required=True, help="scope/stream; made if it does not exist")
    parser.add_argument("--key", required=True, help="column that is the routing key")
    parser.add_argument("--records", type=int, default=10_000, help="of one transaction")
    given = parser.parse_args(arguments)
    with PravegaClient(given.controller) as client:
        client.create_stream(given.stream, 2)
        sizes = Sizes(variant="count", records=given.records)
        summary = ingest(
            given.folder, given.stream, client=client, sizes=sizes, options={"routing_key_field": given.key}
        )
    print(f"{summary.counts.events:,} events written to {given.stream}", flush=True)


if __name__ == "__main__":
    main()
