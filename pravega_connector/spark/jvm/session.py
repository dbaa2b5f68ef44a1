"""Set-up of the JVM reader in a Spark session."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.jvm.planner import Planner
from pravega_connector.spark.versions import jvm_reader_obstacle, start_callbacks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The compiled reader. A checkout or wheel that was built without a Java compiler does not have it.
JAR: Final = Path(__file__).with_name("pravega-reader.jar")
#: Reason that the user can remove.
NOT_BUILT: Final = f"{JAR.name} was not built: run ./run jvm in the checkout, or install the wheel"

# Setting with the id of a session. Spark copies the settings of a session for foreachBatch, but not its id.
_SESSION: Final = "spark.pravegaserde.session"

# Hadoop's setting of the file system for local paths, its default, and the class in the reader's jar.
_LOCAL_FILES: Final = "fs.AbstractFileSystem.file.impl"
_HADOOPS_LOCAL_FS: Final = "org.apache.hadoop.fs.local.LocalFs"
_LOCAL_CHECKPOINT_FS: Final = "pravegaserde.spark.LocalCheckpointFs"

_planner: Planner | None = None  # one for the driver: its JVM has one place for it


def use_jvm_reader(spark: SparkSession, source: type[PravegaDataSource] = PravegaDataSource) -> bool:
    """Read raw events inside the JVM in this session, and return True. ``source`` has the session's default options.

    Return False if only the Python reader is possible, see :func:`obstacle`.
    """
    global _planner  # noqa: PLW0603 - see above
    if obstacle(spark) is not None:
        return False
    context = spark.sparkContext
    _add_jar(spark)
    start_callbacks(context)
    if _planner is None or _planner.context is not context:
        _planner = Planner(context)
        context._jvm.pravegaserde.spark.Planning.set(_planner)
    session = spark._jsparkSession.sessionUUID()
    spark.conf.set(_SESSION, session)
    _planner.plan_for(session, source)
    return True


def leave_to_python(spark: SparkSession) -> None:
    """Read all events by Python in this session, also if an earlier call loaded the JVM reader."""
    if _planner is not None and hasattr(spark, "_jsparkSession"):
        _planner.forget(spark._jsparkSession.sessionUUID())


def use_local_checkpoint_files(spark: SparkSession, use: bool) -> str | None:
    """Write local checkpoints without a process per file in this session, or with ``use`` False as Spark does.

    The session must have the JVM reader. Return the reason if it is not possible.
    """
    current = spark.conf.get(_LOCAL_FILES, None)
    if not use:
        if current == _LOCAL_CHECKPOINT_FS:
            spark.conf.unset(_LOCAL_FILES)
        return None
    if sys.platform == "win32":
        return "Windows has other permissions"
    master = spark.sparkContext.master
    if not master.startswith("local") or master.startswith("local-cluster"):
        return f"it needs a local master, not {master}"
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    usual = hadoop.get(_LOCAL_FILES)
    if usual != _HADOOPS_LOCAL_FS or current not in (None, _LOCAL_CHECKPOINT_FS):
        return f"{_LOCAL_FILES} is {current or usual}"
    hadoop.getClassByName(_LOCAL_CHECKPOINT_FS)  # raises an error here instead of in the first query
    spark.conf.set(_LOCAL_FILES, _LOCAL_CHECKPOINT_FS)
    return None


def obstacle(spark: SparkSession) -> str | None:
    """Return the reason why this session cannot read inside the JVM, or None."""
    if not hasattr(spark, "_jsparkSession"):
        return "this is a session of Spark Connect"
    return jvm_reader_obstacle() or (None if JAR.is_file() else NOT_BUILT)


def _add_jar(spark: SparkSession) -> None:
    """Load the reader in the driver and the executors."""
    from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]  # noqa: PLC0415 - not everywhere

    # Spark's UI loads the classes of metrics from the application's jars only, not from those of ADD JAR.
    application = spark._jsparkSession.sharedState().jarClassLoader().getParent()
    if is_instance_of(spark.sparkContext._gateway, application, "org.apache.spark.util.MutableURLClassLoader"):
        application.addURL(spark._jvm.java.net.URI.create(JAR.as_uri()).toURL())
    spark.sql(f"ADD JAR '{JAR}'")
