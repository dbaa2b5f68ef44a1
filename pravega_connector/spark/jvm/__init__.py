"""Reader of raw events inside Spark's JVM: planned by the Python source, with the same options, offsets and errors.

::

    driver: Python                      driver: JVM                        executor: JVM
    --------------                      -----------                        -------------
    Planner  <------- py4j, JSON -----  PravegaSource, SegmentScan         Task -> SegmentReader
      options, offsets, tasks,            filters, offsets of Spark   ---->  StoreLink: one segment store
      decoder plan                                                           Decoder: events of a format -> columns
                                                                                |  event in doubt, moved segment
                                        executor: Python                        v
                                        support: the same Python source <--- Support: a helper process
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.spark.jvm.avro_steps import avro_plan as avro_plan
    from pravega_connector.spark.jvm.json_steps import json_plan as json_plan
    from pravega_connector.spark.jvm.protobuf_steps import protobuf_plan as protobuf_plan
    from pravega_connector.spark.jvm.registry_steps import decoders_by_id as decoders_by_id
else:
    from pravega_serde.public_names import public_names

    # A plan has one format, and the helper process on an executor makes no plan.
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "avro_steps": "avro_plan",
            "json_steps": "json_plan",
            "protobuf_steps": "protobuf_plan",
            "registry_steps": "decoders_by_id",
        },
    )
