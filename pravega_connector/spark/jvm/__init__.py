"""Reader of raw events inside Spark's JVM: planned by the Python source, with the same options, offsets and errors."""
