"""Reads and writes on Spark 3.5 and later: ``from pyspark_pravega import read, write``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.spark.dataframes import read, write
else:
    from pravega_connector.spark.dataframes import read, write

__all__ = ["read", "write"]
