"""Write random taxi trips from a fixed seed to a stream, which splits during the rush and merges after it.

pravega-serde local up --quick-scaling     # in a separate terminal; without the option, a split takes ten minutes
python -m examples.taxi.drive --stream taxi/trips --segments 2

The program writes until the stream has ``--segments`` segments, waits until it has one again, and prints each change. A
few zones have most of the trips, as in New York. The routing key of a trip is its zone. Within a zone, trips keep the
order of ``number``.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from pravega_connector.client import PravegaClient, ScalingPolicy
from pravega_serde import serializer_for

ZONES = 260
#: Events per second of a segment. The server splits a segment at five times this rate.
RATE = 10
_BATCH = 100
_PAUSE = 1.0


def trips() -> Iterator[dict[str, Any]]:
    """Yield an endless sequence of trips, which is the same at every call."""
    chance = random.Random(2026)
    number = 0
    while True:
        zone = min(int(chance.paretovariate(0.8)), ZONES)
        miles = round(chance.lognormvariate(0.6, 0.8), 2)
        fare = round(3.0 + 2.8 * miles + chance.uniform(0, 5), 2)
        yield {"number": number, "zone": zone, "miles": miles, "fare": fare}
        number += 1


def drive(client: PravegaClient, stream: str, segments: int, seconds: float = 600.0) -> int:
    """Write until the stream has this number of segments, and wait until it has one again.

    Return the number of trips. Raises TimeoutError.
    """
    every, written, busy, last = trips(), 0, True, 0
    end = time.monotonic() + seconds
    with client.writer(stream, serializer_for("json")) as writer:
        while time.monotonic() < end:
            if busy:
                for trip in islice(every, _BATCH):
                    writer.write(trip, routing_key=str(trip["zone"]))
                writer.flush()
                written += _BATCH
            now = len(client.describe(stream).segments)
            if now != last:
                print(f"{written:,} trips, {now} segments", flush=True)
                last = now
            if busy and now >= segments:
                busy = False
            elif not busy and now == 1:
                return written
            time.sleep(_PAUSE)
    raise TimeoutError(f"{stream} still has {last} segments after {seconds:g} s; was the server told --quick-scaling?")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write taxi trips until the stream has split, and wait for its merge")
    parser.add_argument("--controller", default="tcp://localhost:9090")
    parser.add_argument("--stream", required=True, help="scope/stream; made if it does not exist")
    parser.add_argument("--segments", type=int, default=2, help="how many there are to be before the rush is over")
    given = parser.parse_args(arguments)
    with PravegaClient(given.controller) as client:
        client.create_stream(given.stream, ScalingPolicy.by_events(RATE))
        drive(client, given.stream, given.segments)


if __name__ == "__main__":
    main()
