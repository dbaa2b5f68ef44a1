"""Spark session of the tests. The tests of a process share it, because a JVM has one."""

from __future__ import annotations

import warnings
from pathlib import Path

from pyspark.sql import SparkSession

__all__ = ["spark_session"]


def spark_session(folder: Path) -> SparkSession:
    """Return the session, or start it with two cores. Tables are in ``folder``. A failed task is tried once more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own
        return (
            SparkSession.builder.master("local[2,2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", str(folder))
            .config("spark.log.level", "OFF")
            .config("spark.sql.codegen.cache.maxEntries", "5000")  # many tests have the same plans
            .getOrCreate()
        )
