"""Every Python process of a Spark application under test starts with this: driver, planners, daemons, workers."""

import os
import sys

if "EXACTLY_ONCE_FOLDER" in os.environ:
    import spark_faults

    spark_faults.install()
    # Spark puts its zipped modules first, which each process compiles anew; the installed ones are the same.
    sys.path[:] = [entry for entry in sys.path if not entry.endswith((os.sep + "pyspark.zip", "-src.zip"))]
