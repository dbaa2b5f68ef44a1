"""Write orders as Avro events whose schema is in a registry, and their customers to a Parquet file, without Spark.

python -m examples.alerts.orders --stream shop/orders --customers customers.parquet --count 20000
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq

from pravega_connector.client import PravegaClient
from pravega_serde import typed
from pravega_serde.registry import serializer

CUSTOMERS = 500
SCHEMA = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "order_id", "type": "string"},
        {"name": "customer_id", "type": "long"},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "ordered_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


@dataclass
class Order:
    """Order of a customer."""

    order_id: str
    customer_id: int
    amount: Decimal
    ordered_at: datetime


def orders() -> Iterator[Order]:
    """Yield an endless sequence of orders, which is the same at every call."""
    chance = random.Random(7)
    at = datetime(2026, 11, 22, 8, tzinfo=UTC)
    number = 0
    while True:
        at += timedelta(milliseconds=chance.randrange(1, 400))
        amount = Decimal(chance.lognormvariate(4, 1)).quantize(Decimal("0.01"))
        yield Order(f"o-{number:06}", chance.randrange(CUSTOMERS), amount, at)
        number += 1


def customers() -> pa.Table:
    """Return the name of each customer, and the limit for one order."""
    chance = random.Random(1)
    limits = [Decimal(chance.choice((100, 150, 250, 500))) for _ in range(CUSTOMERS)]
    return pa.table(
        {
            "customer_id": pa.array(range(CUSTOMERS), pa.int64()),
            "name": [f"Customer {number}" for number in range(CUSTOMERS)],
            "credit": pa.array(limits, pa.decimal128(12, 2)),
        }
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write orders to a stream")
    parser.add_argument("--controller", default="tcp://localhost:9090")
    parser.add_argument("--registry", default="http://localhost:9092")
    parser.add_argument("--stream", required=True, help="scope/stream of the orders")
    parser.add_argument("--customers", help="Parquet file to make of the customers")
    parser.add_argument("--first", type=int, default=0, help="number of the first order")
    parser.add_argument("--count", type=int, default=1000)
    given = parser.parse_args(arguments)
    if given.customers:
        pq.write_table(customers(), given.customers)
    group = given.stream.partition("/")[2]
    avro = serializer(
        given.registry, group=group, schema=SCHEMA, format="avro", create_group=True, register_schema=True
    )
    with PravegaClient(given.controller) as client:
        client.create_stream(given.stream, 3)
        with client.writer(given.stream, typed(avro, Order)) as writer:
            for order in islice(orders(), given.first, given.first + given.count):
                writer.write(order, routing_key=str(order.customer_id))
    print(f"{given.count} orders written to {given.stream}")


if __name__ == "__main__":
    main()
