"""Lets Spark find ``format("pravega")`` by itself; and the names that Spark's users need.

Spark imports every top-level package whose name begins with ``pyspark_`` and takes its ``DefaultSource``. An error in
any of these imports would hide all of them, so nothing here may fail: not even where a user's own ``connector.py``
hides the package of that name.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.spark.data_source import PravegaDataSource as DefaultSource
    from pravega_connector.spark.data_source import PravegaDataSource as PravegaDataSource
    from pravega_connector.spark.dataframes import read as read
    from pravega_connector.spark.dataframes import write as write
    from pravega_connector.spark.functions import from_pravega as from_pravega
    from pravega_connector.spark.functions import pravega_segment_key as pravega_segment_key
    from pravega_connector.spark.functions import to_pravega as to_pravega
    from pravega_connector.spark.query_metrics import QueryMetrics as QueryMetrics
    from pravega_connector.spark.session import configure as configure
    from pravega_connector.spark.session import register_streams as register_streams
    from pravega_connector.spark.sql_functions import register_functions as register_functions
else:
    from pravega_connector.spark.data_source import PravegaDataSource
    from pravega_serde.public_names import public_names

    DefaultSource = PravegaDataSource
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "dataframes": "read write",
            "functions": "from_pravega pravega_segment_key to_pravega",
            "session": "QueryMetrics configure register_functions register_streams",
        },
        there=["DefaultSource", "PravegaDataSource"],
    )
