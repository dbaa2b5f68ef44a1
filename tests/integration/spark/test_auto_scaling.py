"""A stream that the server scales by its own policy, and a Spark query that reads it in the meantime."""

import json
from collections.abc import Iterator
from itertools import islice

import pytest
from pyspark.sql import SparkSession

from examples.taxi import drive, fares
from pravega_connector.client import PravegaClient, ScalingPolicy
from pravega_connector.local import LocalPravega
from pravega_connector.operations.monitoring import scaling_history
from tests.support.jvm import SOON_READY

pytestmark = [pytest.mark.long, pytest.mark.real_servers("the policy is the server's")]
SOURCE, TARGET = "taxi/trips", "taxi/fares"


@pytest.fixture
def client() -> Iterator[PravegaClient]:
    options = {"heap_mb": 512, "cache_mb": 256, "java_options": SOON_READY}
    with LocalPravega(quick_scaling=True, **options) as server, PravegaClient(server.config) as client:
        yield client


def test_trips_stay_in_order_and_come_once_while_the_stream_scales_by_itself(
    spark: SparkSession, client: PravegaClient, checkpoint: str
) -> None:
    client.create_stream(SOURCE, ScalingPolicy.by_events(drive.RATE))
    controller = client.config.controller
    query = fares.start(spark, controller, SOURCE, TARGET, checkpoint)
    try:
        count = drive.drive(client, SOURCE, segments=2, seconds=900.0)
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
    for zone in {trip["zone"] for trip in expected}:
        assert [fare["number"] for fare in found if fare["zone"] == str(zone)] == [
            trip["number"] for trip in expected if trip["zone"] == zone
        ]
