"""Once for a Spark session: ``from pyspark_pravega.session import configure, register_functions``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.spark.query_metrics import QueryMetrics
    from pravega_connector.spark.session import configure, register_streams
    from pravega_connector.spark.sql_functions import register_functions
else:
    from pravega_connector.spark.query_metrics import QueryMetrics
    from pravega_connector.spark.session import configure, register_streams
    from pravega_connector.spark.sql_functions import register_functions

__all__ = ["QueryMetrics", "configure", "register_functions", "register_streams"]
