"""Print alerts as they arrive, with or without asyncio, and without Spark.

python -m examples.alerts.show_alerts --stream shop/alerts --start earliest
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import islice

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import PravegaClient
from pravega_serde import Serializer, typed
from pravega_serde.registry import deserializer


@dataclass
class Alert:
    """Order above its customer's limit."""

    order_id: str
    customer_id: int
    name: str
    amount: Decimal
    credit: Decimal
    ordered_at: datetime

    def __str__(self) -> str:
        over = self.amount - self.credit
        return f"{self.ordered_at:%H:%M:%S} {self.order_id} {self.name}: {self.amount}, {over} over the limit"


def show(controller: str, stream: str, alerts: Serializer[Alert], start: str, limit: int | None) -> None:
    with PravegaClient(controller) as client, client.follow(stream, alerts, start=start) as reader:
        for alert in islice(reader, limit):
            print(alert, flush=True)


async def show_async(controller: str, stream: str, alerts: Serializer[Alert], start: str, limit: int | None) -> None:
    shown = 0
    async with AsyncPravegaClient(controller) as client, client.follow(stream, alerts, start=start) as reader:
        async for alert in reader:
            print(alert, flush=True)
            shown += 1
            if shown == limit:
                break


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Print alerts as they come")
    parser.add_argument("--controller", default="tcp://localhost:9090")
    parser.add_argument("--registry", default="http://localhost:9092")
    parser.add_argument("--stream", required=True, help="scope/stream of the alerts")
    parser.add_argument("--start", default="latest", help="earliest, latest, a time, a stream cut")
    parser.add_argument("--limit", type=int, help="end after so many alerts")
    parser.add_argument("--asyncio", action="store_true", help="read in an event loop")
    given = parser.parse_args(arguments)
    alerts = typed(deserializer(given.registry, group=given.stream.partition("/")[2]), Alert)
    place = (given.controller, given.stream, alerts, given.start, given.limit)
    if given.asyncio:
        asyncio.run(show_async(*place))
    else:
        show(*place)


if __name__ == "__main__":
    main()
