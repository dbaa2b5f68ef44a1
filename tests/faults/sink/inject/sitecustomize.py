"""Start-up of every Python process of a Spark application under test: driver, planners, daemons, workers."""

import os
import sys

if "FAULTS_FOLDER" in os.environ:
    import spark_faults

    spark_faults.install()
    # Each of the 17 processes of an application would spend more time on these two than on anything else.
    # Spark puts its zipped modules first, which every process compiles again; the installed ones are the same.
    sys.path[:] = [entry for entry in sys.path if not entry.endswith((os.sep + "pyspark.zip", "-src.zip"))]
    # pyarrow imports pandas with its first array, if there is one; nothing here needs it.
    spark_faults.hide("pandas")
