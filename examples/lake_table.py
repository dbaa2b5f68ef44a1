"""Keep the orders of a stream in a Delta table, with a run that is killed, and sum them over the table and the tail.

python -m examples.lake_table --controller tcp://localhost:9090

The program needs ``pravega-serde[lake]``, polars, and an address of Pravega: ``pravega-serde local up`` starts one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from pravega_connector import PravegaClient
from pravega_connector.tier import read_table_and_tail, tier_status


def orders(start: int, end: int) -> Iterator[dict[str, object]]:
    return ({"id": number, "customer": f"customer {number % 7}", "cents": number % 100} for number in range(start, end))


def keep(controller: str, stream: str, folder: str) -> bool:
    table = f"delta:{folder}/orders"
    tier = [str(Path(sys.executable).with_name("pravega-serde")), "tier", stream, table]
    tier += ["--controller", controller, "--format", "json"]

    def write(client: PravegaClient, start: int, end: int) -> None:
        with client.writer(stream, "json") as writer:
            for order in orders(start, end):
                writer.write(order, routing_key=order["customer"])

    with PravegaClient(controller) as client:
        client.create_stream(stream, 2)
        write(client, 0, 10_000)
        follow = [*tier, "--follow", "--target-size", "50kB", "--max-interval", "1s"]
        with subprocess.Popen(follow, stderr=subprocess.PIPE, text=True) as run:
            assert run.stderr is not None
            print(run.stderr.readline().strip())
            run.kill()  # perhaps during a commit
        client.scale_stream(stream, 4)
        write(client, 10_000, 20_000)
        subprocess.run([*tier, "--quiet"], check=True)  # resumes at the stream cut of the last commit
        position, _ = tier_status(stream, table, controller=controller)
        assert position is not None
        print(f"{position.rows:,} orders in the table")

        write(client, 20_000, 20_500)
        found = pl.DataFrame(read_table_and_tail(stream, table, controller=controller, format="json"))
        print(f"{len(found):,} orders in the table and the tail of the stream, {found['id'].n_unique():,} distinct")
        print(found.group_by("customer").agg(pl.col("cents").sum() / 100).sort("customer").head(2))
    return sorted(found["id"]) == list(range(20_500))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--controller", default="tcp://localhost:9090")
    parser.add_argument("--stream", default="shop/lake-orders", help="new stream")
    with tempfile.TemporaryDirectory() as folder:
        given = parser.parse_args()
        sys.exit(not keep(given.controller, given.stream, folder))
