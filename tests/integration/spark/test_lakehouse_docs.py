"""docs/spark/lakehouse.md with a real Delta table."""

import pytest
from pyspark.sql import SparkSession

from tests.support import pages

PAGE = "docs/spark/lakehouse.md"
DELTA = "Delta Lake with the deltalake package"


@pytest.mark.parametrize("page", [PAGE])
def test_a_delta_table_has_each_row_once(page: str, spark: SparkSession, follower: pages.Follower) -> None:
    follower.spark = follower.names["spark"] = spark
    first, delta = (block for block in pages.blocks(page) if block.section in ("To Delta Lake and Iceberg", DELTA))
    follower.run(first)
    follower.run(delta)
