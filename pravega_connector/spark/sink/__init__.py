"""The Spark sink: batch and streaming writes to a stream.

``options`` and ``encoding`` (rows as events; ``registry`` for those of a schema registry) need no Spark, and load none.
``writers`` is what Spark calls, ``targets`` the streams that rows go to, ``exactly_once`` the transactions of its tasks
and their commit, ``contents`` the totals by which a repeated batch is compared with the committed one. Each is
loaded when one of its names is asked for.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.spark.sink.encoding import EventEncoder as EventEncoder
    from pravega_connector.spark.sink.encoding import encoder_for as encoder_for
    from pravega_connector.spark.sink.options import SinkOptions as SinkOptions
    from pravega_connector.spark.sink.writers import PravegaBatchWriter as PravegaBatchWriter
    from pravega_connector.spark.sink.writers import PravegaStreamWriter as PravegaStreamWriter
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "encoding": "EventEncoder encoder_for",
            "options": "SinkOptions",
            "writers": "PravegaBatchWriter PravegaStreamWriter",
        },
    )
