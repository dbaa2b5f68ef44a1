"""Write invoices for the orders of a Java service, exactly once, even if the query is killed.

python -m examples.invoices.write_invoices --source shop/orders --target shop/invoices --checkpoint FOLDER

The orders are objects of the service's own class, with an enum and a list of another class. Java's ``JavaSerializer``
writes them (``src/main/java``). The first event of the stream determines their columns. The invoices are JSON, which
the service reads.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.sql import DataFrame, SparkSession

from pravega_connector import PravegaClient
from pyspark_pravega import configure

AMOUNT = "aggregate(lines, 0D, (amount, line) -> amount + line.count * line.price)"


def invoices(orders: DataFrame) -> DataFrame:
    """Return an invoice for each paid order."""
    return orders.where("status = 'PAID'").selectExpr("id", "customer", f"{AMOUNT} AS amount")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write invoices for the orders of a Java service")
    parser.add_argument("--controller", default="tcp://localhost:9090")
    parser.add_argument("--source", required=True, help="scope/stream of the orders")
    parser.add_argument("--target", required=True, help="scope/stream for the invoices")
    parser.add_argument("--checkpoint", required=True, help="folder from which the next run goes on")
    parser.add_argument("--once", action="store_true", help="end at the end of the stream")
    given = parser.parse_args(arguments)
    with PravegaClient(given.controller) as client:
        sample: bytes = next(iter(client.read(given.source, limit=1)))
    spark = configure(
        SparkSession.builder.master("local[2]")
        .appName("invoices")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
    )
    orders = (
        spark.readStream.format("pravega")
        .option("controller", given.controller)
        .option("start_stream_cut", "earliest")
        .option("format", "java")
        .option("java_sample", sample.hex())
        .load(given.source)
    )
    writer = (
        invoices(orders)
        .writeStream.format("pravega")
        .option("controller", given.controller)
        .option("path", given.target)
        .option("format", "json")
        .option("routing_key_field", "customer")
        .option("allow_create_stream", "true")
    )
    if given.once:
        writer = writer.trigger(availableNow=True)
    writer.option("checkpointLocation", given.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
