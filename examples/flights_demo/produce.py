"""Write the flights as Avro events to a stream, and scale the stream at the same time, in plain Python.

python -m examples.flights_demo.produce --controller tcp://localhost:9090 --stream demo/flights
"""

from __future__ import annotations

import argparse
import itertools
import threading
import time

from examples.flights_demo.flights import FLIGHT_SCHEMA, load_flights
from pravega_connector import PravegaClient, StreamName
from pravega_serde import serializer_for

CHUNK = 4096


def scale_to(client: PravegaClient, stream: StreamName, segments: int) -> None:
    """Replace all segments of the stream by ``segments`` segments of equal size."""
    current = client.controller.current_segments(stream)
    bounds = [i / segments for i in range(segments + 1)]
    client.controller.scale_stream(stream, [r.id for r in current], list(itertools.pairwise(bounds)))
    print(f"scaled {stream} from {len(current)} to {segments} segments", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the flights to a stream")
    parser.add_argument("--controller", required=True)
    parser.add_argument("--stream", required=True, help="scope/stream")
    parser.add_argument("--seconds", type=float, default=12.0, help="spread the writing over this time")
    arguments = parser.parse_args()
    flights = load_flights().combine_chunks().to_batches(max_chunksize=CHUNK)
    serializer = serializer_for("avro", schema=FLIGHT_SCHEMA)
    stream = StreamName.parse(arguments.stream)
    # On a slow machine, where Spark starts at the same time, the first answer of the server may take long.
    with PravegaClient(arguments.controller, timeout=60.0) as client:
        client.create_stream(stream)
        # Scale up after a third of the flights, as if the load had grown, and down after two thirds.
        scalings = {len(flights) // 3: 4, 2 * len(flights) // 3: 2}
        workers = []
        busy = 0.0
        begin = time.monotonic()
        with client.writer(stream) as writer:
            for number, batch in enumerate(flights):
                if number in scalings:
                    workers.append(threading.Thread(target=scale_to, args=(client, stream, scalings[number])))
                    workers[-1].start()
                started = time.monotonic()
                writer.write_column(serializer.encode_column(batch), batch.column("carrier"))
                busy += time.monotonic() - started
                time.sleep(max(0.0, begin + arguments.seconds * (number + 1) / len(flights) - time.monotonic()))
            started = time.monotonic()
            writer.flush()
            busy += time.monotonic() - started
        for worker in workers:
            worker.join()
        count = sum(len(batch) for batch in flights)
        print(f"wrote {count:,} flights; {count / busy:,.0f} events/s while not pausing", flush=True)


if __name__ == "__main__":
    main()
