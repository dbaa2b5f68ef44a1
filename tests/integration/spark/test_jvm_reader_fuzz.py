"""A part of what ``python -m tests.fuzz.jvm_reader`` does at length."""

import pytest
from pyspark.sql import SparkSession

from pravega_connector.testing import InProcessPravega
from tests.fuzz.jvm_reader import FAULTS, Comparison

ROUNDS = 30


@pytest.mark.long
def test_random_reads_are_equal(jvm_session: SparkSession) -> None:
    with InProcessPravega() as pravega:
        comparison = Comparison(jvm_session, pravega, 20261125)
        findings = [each for each in comparison.rounds(range(ROUNDS)) if each is not None]
    assert findings == []
    assert comparison.kinds.keys() >= {"rows", "count", "error"}
    assert comparison.faults.keys() >= set(FAULTS), "each fault has happened"
