"""Every Python process of a Spark application under test starts with this: driver, planners, daemons, workers."""

import os

if "EXACTLY_ONCE_FOLDER" in os.environ:
    import spark_faults

    spark_faults.install()
