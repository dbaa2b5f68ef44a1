"""Options of a query, as its tasks get them."""

from __future__ import annotations

from pravega_connector.spark.options.source import SourceOptions
from pravega_connector.spark.pickling import Exchanged


class TaskOptions(Exchanged):
    """Options of a query with the resolved configuration, for a Python process on an executor."""

    def __init__(self, options: SourceOptions) -> None:
        _ = options.config
        self.options = options
