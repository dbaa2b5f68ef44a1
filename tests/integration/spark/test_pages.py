"""The code on the pages that needs Spark runs unchanged, after the page's blocks that do not."""

import re

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener

from pravega_connector.spark.versions import VERSION
from tests.support import pages

#: Pages that a new user follows, and the one about other versions. They run on each version; all others are ``long``.
FIRST = ("README.md", "docs/get-started/quick-start.md", "docs/spark/read-and-write.md", "docs/spark/versions.md")
#: The page whose examples are for Spark 3.5: ``./run test-spark 3.5`` runs it.
OF_SPARK_3 = "docs/spark/spark-3.5.md"


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.each_spark if page in (*FIRST, OF_SPARK_3) else pytest.mark.long)
        for page in pages.run_by(pages.WITH_SPARK)
        if page != OF_SPARK_3 or VERSION < (4, 0)
    ],
)
def test_a_page_runs_unchanged(page: str, spark: SparkSession, follower: pages.Follower) -> None:
    database = "page_" + re.sub(r"\W", "_", page)  # its tables are its own
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"USE {database}")
    try:
        follower.spark = follower.names["spark"] = spark
        for block in pages.programs():
            if block.page == page and pages.who_runs(block) in (pages.ON_SERVERS, pages.WITH_SPARK):
                follower.run(block)
    finally:
        # A page may listen to the queries of the session.
        for each in follower.names.values():
            if isinstance(each, StreamingQueryListener):
                spark.streams.removeListener(each)
        for view in spark.catalog.listTables():
            if view.isTemporary:
                spark.catalog.dropTempView(view.name)
        spark.sql("USE default")
        spark.sql(f"DROP DATABASE {database} CASCADE")
