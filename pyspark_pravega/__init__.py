"""Lets Spark find ``format("pravega")`` by itself.

Spark imports every top-level package whose name begins with ``pyspark_`` and takes its ``DefaultSource``. An error in
any of these imports would hide all of them, so nothing here may fail: not even where a user's own ``connector.py``
hides the package of that name.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connector.data_source import PravegaDataSource as DefaultSource
else:
    from pravega_connector.data_source import PravegaDataSource as DefaultSource

__all__ = ["DefaultSource"]
