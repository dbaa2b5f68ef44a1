"""Once for a Spark session: ``from pyspark_pravega.session import QueryMetrics, configure, register_streams``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.spark.query_metrics import QueryMetrics
    from pravega_connector.spark.session import configure, register_streams
else:
    from pravega_connector.spark.query_metrics import QueryMetrics
    from pravega_connector.spark.session import configure, register_streams

__all__ = ["QueryMetrics", "configure", "register_streams"]
