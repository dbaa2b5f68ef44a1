"""Reader of raw events inside Spark's JVM: planned by the Python source, with the same options, offsets and errors.

::

    driver: Python                      driver: JVM                        executor: JVM
    --------------                      -----------                        -------------
    Planner  <------- py4j, JSON -----  PravegaSource, SegmentScan         Task -> SegmentReader
      options, offsets, tasks,            filters, offsets of Spark   ---->  StoreLink: one segment store
      decoder plan                                                           Decoder: Avro, JSON, Protobuf -> columns
                                                                                |  event in doubt, moved segment
                                        executor: Python                        v
                                        support: the same Python source <--- Support: a helper process
"""
