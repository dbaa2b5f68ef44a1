"""Kill a streaming query with kill -9, restart it, and check that its target has each row once, in order per key.

python -m examples.kill_and_restart

The program starts its own Pravega, which needs ``pravega-serde[local,spark]`` and Java 17.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from operator import itemgetter

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

from pyspark.sql import SparkSession

from pravega_connector import LocalPravega, PravegaClient
from pyspark_pravega import configure

ORDERS = [{"id": number, "customer": f"customer {number % 7}"} for number in range(3000)]
EXPECTED = [order for order in ORDERS if order["id"] % 3]
by_customer = itemgetter("customer")


def query(controller: str, source: str, target: str, checkpoint: str) -> None:
    session = SparkSession.builder.master("local[2]").config("spark.log.level", "ERROR")
    spark = configure(session.config("spark.ui.showConsoleProgress", "false"))
    pravega = {"controller": controller, "format": "json"}
    orders = spark.readStream.format("pravega").options(**pravega, start_stream_cut="earliest")
    orders = orders.option("max_rows_per_trigger", 200).schema("id BIGINT, customer STRING").load(source)
    sink = orders.where("id % 3 <> 0").writeStream.format("pravega").options(**pravega, routing_key_field="customer")
    sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(target).awaitTermination()


def kill_and_restart(controller: str, source: str, target: str, checkpoint: str) -> bool:
    with PravegaClient(controller) as client:
        client.create_stream(source, 3)
        client.create_stream(target, 2)
        with client.writer(source, "json") as writer:
            for order in ORDERS:
                writer.write(order, routing_key=order["customer"])
        with client.follow(target, "json", start="earliest") as reader:
            command = [sys.executable, __file__, controller, source, target, checkpoint]
            first = subprocess.Popen(command, start_new_session=True)  # a new process group, which includes its JVM
            try:
                served = []
                while not served and first.poll() is None:
                    served += reader.poll(timeout=1)
            finally:
                os.killpg(first.pid, signal.SIGKILL)  # Python and its JVM
            print(f"exit code {first.wait()} after {len(served)} of {len(EXPECTED)} rows")

            print(f"exit code {subprocess.run(command, check=False).returncode} of the restarted query")
            while values := reader.poll(timeout=10):  # rows that are written twice would follow
                served += values
    print(f"{len(served)} rows, {len({order['id'] for order in served})} distinct")
    correct = sorted(served, key=by_customer) == sorted(EXPECTED, key=by_customer)  # a stable sort keeps their order
    print(f"each row once, in order per customer: {correct}")
    return correct


if __name__ == "__main__":
    if sys.argv[1:]:
        query(*sys.argv[1:])
    else:
        with LocalPravega() as server, tempfile.TemporaryDirectory() as folder:
            sys.exit(not kill_and_restart(server.controller_uri, "shop/orders", "shop/served", folder))
