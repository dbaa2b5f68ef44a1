"""The column functions of the data source: ``from pyspark_pravega.functions import from_pravega, to_pravega``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.spark.functions import from_pravega, pravega_segment_key, to_pravega
else:
    from pravega_connector.spark.functions import from_pravega, pravega_segment_key, to_pravega

__all__ = ["from_pravega", "pravega_segment_key", "to_pravega"]
