"""Tests that depend on the version of Spark."""

from pravega_connector.spark.versions import HAS_FILTERS

#: Tests of what this Spark does not have. tests/integration/spark/test_version_differences.py asserts the difference.
collect_ignore = [] if HAS_FILTERS else ["test_pushdown.py"]
