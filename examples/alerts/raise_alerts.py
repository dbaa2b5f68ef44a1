"""Write an alert for each order above its customer's limit, with a Spark query: exactly once, even after a crash.

python -m examples.alerts.raise_alerts --source shop/orders --customers customers.parquet --target shop/alerts \
    --checkpoint FOLDER
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.sql import SparkSession

from pyspark_pravega import configure


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write an alert for each order above its customer's limit")
    parser.add_argument("--controller", default="tcp://localhost:9090")
    parser.add_argument("--registry", default="http://localhost:9092")
    parser.add_argument("--source", required=True, help="scope/stream of the orders")
    parser.add_argument("--customers", required=True, help="Parquet file of the customers")
    parser.add_argument("--target", required=True, help="scope/stream for the alerts")
    parser.add_argument("--checkpoint", required=True, help="folder from which the next run goes on")
    parser.add_argument("--once", action="store_true", help="end at the end of the stream")
    given = parser.parse_args(arguments)
    spark = configure(
        SparkSession.builder.master("local[2]")
        .appName("alerts")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
    )
    place = {"controller": given.controller, "registry": given.registry}
    orders = (
        spark.readStream.format("pravega")
        .options(**place)
        .option("start_stream_cut", "earliest")
        .option("max_rows_per_trigger", 1000)
        .load(given.source)  # the registry has the columns
    )
    alerts = (
        orders.join(spark.read.parquet(given.customers), "customer_id")
        .where("amount > credit")
        .select("order_id", "customer_id", "name", "amount", "credit", "ordered_at")
    )
    writer = (
        alerts.writeStream.format("pravega")
        .options(**place)
        .option("format", "avro")
        .option("registry_type", "shop.Alert")
        .option("create_group", True)
        .option("register_schema", True)
        .option("allow_create_stream", True)
        .option("routing_key_field", "customer_id")
        .option("checkpointLocation", given.checkpoint)
    )
    if given.once:
        writer = writer.trigger(availableNow=True)
    writer.start(given.target).awaitTermination()


if __name__ == "__main__":
    main()
