"""Lets Spark find ``format("pravega")`` by itself.

Spark imports every top-level package whose name begins with ``pyspark_`` and takes its ``DefaultSource``. An error in
any of these imports would hide all of them, so nothing here may fail.
"""

from connector.data_source import PravegaDataSource as DefaultSource

__all__ = ["DefaultSource"]
