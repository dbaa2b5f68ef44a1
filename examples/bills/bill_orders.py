"""Bill orders, each exactly once. Several of these programs can share the work, and you can kill each at any time.

python -m examples.bills.bill_orders --orders shop/orders --bills shop/bills --group shop/billing --name worker-1

Restart it with the same name. Run only one program per name at a time. Orders are lines ``customer:amount``.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence

from pravega_connector.client import PravegaClient
from pravega_connector.errors import ReaderOfflineError

log = logging.getLogger(__name__)


def bill(controller: str, orders: str, bills: str, group: str, name: str) -> None:
    with (
        PravegaClient(controller) as client,
        client.reader_group(group, orders, checkpoint_interval=2.0, refresh=1.0) as joined,
    ):
        while True:
            joined.reader_offline(name)  # removes a killed reader of this name
            try:
                with joined.exactly_once(name, "string", to=bills, output="string") as reader:
                    for event in reader:
                        customer, amount = str(event.value).split(":")
                        reader.write(f"{customer}:{amount}", routing_key=customer)
                return  # the stream was sealed, and all orders are billed
            except ReaderOfflineError as error:
                log.warning("%s", error)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Bill orders, each exactly once")
    parser.add_argument("--controller", default="tcp://localhost:9090")
    parser.add_argument("--orders", required=True, help="scope/stream of the orders")
    parser.add_argument("--bills", required=True, help="scope/stream of the bills")
    parser.add_argument("--group", required=True, help="scope/name of the reader group")
    parser.add_argument("--name", required=True, help="name of this program among those that share the work")
    given = parser.parse_args(arguments)
    bill(given.controller, given.orders, given.bills, given.group, given.name)


if __name__ == "__main__":
    main()
