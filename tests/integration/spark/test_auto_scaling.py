"""A stream that the server scales by its own policy, and a Spark query that reads it in the meantime."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pytest
from pyspark.sql import SparkSession

from examples.taxi import drive, fares
from pravega_connector.client import PravegaClient, ScalingPolicy
from pravega_connector.local import LocalPravega
from pravega_connector.operations.monitoring import scaling_history
from tests.support.jvm import SOON_READY

pytestmark = [pytest.mark.long, pytest.mark.real_servers("the policy is the server's")]
SOURCE, TARGET = "taxi/trips", "taxi/fares"
#: Seconds. The server looks at its rates when it wants to, and later on a busy machine.
SCALED_WITHIN = 900.0


@pytest.fixture
def client() -> Iterator[PravegaClient]:
    options = {"heap_mb": 512, "cache_mb": 256, "java_options": SOON_READY}
    with LocalPravega(quick_scaling=True, **options) as server, PravegaClient(server.config) as client:
        yield client


@pytest.mark.timeout(SCALED_WITHIN + 300)
def test_trips_stay_in_order_and_come_once_while_the_stream_scales_by_itself(
    spark: SparkSession, client: PravegaClient, checkpoint: str
) -> None:
    client.create_stream(SOURCE, ScalingPolicy.by_events(drive.RATE))
    controller = client.config.controller
    query = fares.start(spark, controller, SOURCE, TARGET, checkpoint)
    try:
        count = drive.drive(client, SOURCE, segments=2, seconds=SCALED_WITHIN)
        query.processAllAvailable()
    finally:
        query.stop()

    history = scaling_history(client, client.name(SOURCE))
    epochs = [sum(s.first <= epoch <= s.last for s in history.segments) for epoch in range(history.last + 1)]
    assert epochs[0] == epochs[-1] == 1
    assert max(epochs) >= 2

    found = [json.loads(event) for event in client.read(TARGET)]
    expected = list(islice(drive.trips(), count))
    assert sorted(fare["number"] for fare in found) == list(range(count))
    assert numbers_of_zones(found) == numbers_of_zones(expected)


def numbers_of_zones(events: Iterable[dict[str, Any]]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for event in events:
        numbers.setdefault(str(event["zone"]), []).append(event["number"])
    return numbers
